"""What a problem of the bank is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

import gdpnet

Point = Sequence[float]


@dataclass(frozen=True)
class Sample:
    """One prediction: inputs, prediction, and what is known about the answer."""

    yhat: Point
    x: Point = ()
    distance: float | None = None  # inf: the rules contradict each other
    tie: bool = False


@dataclass(frozen=True)
class Problem:
    """Rules as a Pyomo model, and predictions to project.

    Attributes:
        name: of the test.
        build: makes the model anew.
        samples: predictions.
        outputs: names of Vars.
        inputs: names of mutable Params.
        off: names of the components that do not apply at given inputs.
        reach: bound that the oracle may put on Vars without one.
        auxiliaries: whether Vars other than the outputs stand in the rules.
    """

    name: str
    build: Callable[[], Any]
    samples: tuple[Sample, ...]
    outputs: tuple[str, ...] = ("y",)
    inputs: tuple[str, ...] = ()
    off: Callable[[dict[str, float]], list[str]] = field(default=lambda x: [])
    reach: float = 1000.0
    auxiliaries: bool = False

    def rules(self, model: Any = None) -> gdpnet.RuleModel:
        m = self.build() if model is None else model
        return gdpnet.RuleModel(
            m,
            outputs=[m.find_component(name) for name in self.outputs],
            inputs=[m.find_component(name) for name in self.inputs],
        )

    @property
    def yhat(self) -> torch.Tensor:
        return torch.tensor([list(s.yhat) for s in self.samples], dtype=torch.float64)

    @property
    def x(self) -> torch.Tensor | None:
        if not self.inputs:
            return None
        return torch.tensor([list(s.x) for s in self.samples], dtype=torch.float64)

    def params(self, sample: Sample) -> dict[str, float]:
        """Value of each input; all of them are scalar."""
        return dict(zip(self.inputs, sample.x, strict=True))


def samples(*yhats: Point, distances: Sequence[float] | None = None) -> tuple[Sample, ...]:
    """Predictions of a problem without inputs."""
    known = [None] * len(yhats) if distances is None else list(distances)
    return tuple(Sample(y, distance=d) for y, d in zip(yhats, known, strict=True))


def problem(given: Sequence[Sample], **options: Any) -> Callable[[Callable[[], Any]], Problem]:
    """Makes a problem of a function that builds its model."""

    def made(build: Callable[[], Any]) -> Problem:
        return Problem(build.__name__, build, tuple(given), **options)

    return made
