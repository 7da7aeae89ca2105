"""What a problem of coupled.py is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo

import gdpnet

Array = np.ndarray


@dataclass(frozen=True)
class Case:
    """A problem of some size.

    Attributes:
        name: of the problem, with its size.
        build: makes the model, its outputs and its inputs.
        sample: so many inputs and predictions, `count x p` and `count x d`.
    """

    name: str
    build: Callable[[], tuple[pyo.ConcreteModel, list[Any], list[Any]]]
    sample: Callable[[int], tuple[Array, Array]]

    def rules(self) -> gdpnet.RuleModel:
        """The rules."""
        model, outputs, inputs = self.build()
        return gdpnet.RuleModel(model, outputs=outputs, inputs=inputs)
