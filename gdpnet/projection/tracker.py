"""Projections one after the other, each from the last answer on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from gdpnet.errors import InputError
from gdpnet.ir.rules import Rules
from gdpnet.projection.projection import Projection
from gdpnet.projection.projector import Projector


class Tracker:
    """Projects step by step, as a receding horizon does: each step starts from the last answer.

    A start changes what a hard sample costs, and that it has an answer when a limit is reached;
    never which outputs are the nearest.

    Args:
        rules: the rules.
        shift: what the last answer is moved by between two steps. A sequence of `d` indices:
            output j starts from output `shift[j]` of the last answer, so that each hour starts from
            the hour after it. A function of y, `... x d`, for anything else. None: as it was.
        **keywords: of `gdpnet.project`.

    Attributes:
        last: the last projection; None before the first.

    Example:
        >>> import pyomo.environ as pyo, gdpnet, torch
        >>> from pyomo.gdp import Disjunction
        >>> m = pyo.ConcreteModel()
        >>> m.p = pyo.Var(range(3), bounds=(0, 10))
        >>> m.on = Disjunction(range(3), rule=lambda m, t: [[m.p[t] == 0], [m.p[t] >= 4]])
        >>> rules = gdpnet.RuleModel(m, outputs=[m.p])
        >>> track = gdpnet.Tracker(rules, shift=[1, 2, 2])
        >>> track(torch.tensor([1.0, 3.0, 6.0])).y.tolist()
        [0.0, 4.0, 6.0]
        >>> track(torch.tensor([3.0, 6.0, 1.0])).y.tolist()
        [4.0, 6.0, 0.0]
    """

    def __init__(
        self,
        rules: Rules,
        *,
        shift: Sequence[int] | Callable[[torch.Tensor], torch.Tensor] | None = None,
        **keywords: Any,
    ) -> None:
        self._project = Projector(rules, **keywords)
        self._shift = shift if shift is None or callable(shift) else _mover(shift, rules)
        self.last: Projection | None = None

    def __call__(self, yhat: Any, x: Any = None) -> Projection:
        """Project the next step; for the arguments see `gdpnet.project`."""
        self.last = self._project(yhat, x, start=self.start(yhat))
        return self.last

    def start(self, yhat: Any) -> torch.Tensor | None:
        """Where the next step starts from: None before the first, and after another shape."""
        if self.last is None or tuple(self.last.y.shape) != tuple(torch.as_tensor(yhat).shape):
            return None
        y = self.last.y.detach()
        return y if self._shift is None else self._shift(y)

    def reset(self) -> None:
        """Forget the last answer."""
        self.last = None


def _mover(shift: Sequence[int], rules: Rules) -> Callable[[torch.Tensor], torch.Tensor]:
    d = rules.data.outputs
    index = torch.as_tensor(shift)
    whole = not index.is_floating_point() and index.dtype is not torch.bool
    if not whole or index.shape != (d,) or bool(((index < 0) | (index >= d)).any()):
        raise InputError(
            f"shift: expected {d} indices from 0 to {d - 1}, one for each output, or a function, "
            f"got {shift!r}."
        )
    return lambda y: y[..., index]
