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
    """One prediction: inputs, prediction, and what is known about the answer.

    Attributes:
        yhat: The prediction, d numbers.
        x: Values of the inputs.
        distance: Least l1 distance; infinite where the rules contradict each other, None where it
            is not known without solving.
        euclidean: Least l2 distance, in the same way.
        tie: Whether several disjuncts are equally near.
    """

    yhat: Point
    x: Point = ()
    distance: float | None = None
    tie: bool = False
    euclidean: float | None = None


@dataclass(frozen=True)
class Problem:
    """Rules as a Pyomo model, and predictions to project.

    Attributes:
        name: An identifier, for tests.
        build: Makes the Pyomo model anew.
        samples: The predictions.
        outputs: Names of Vars.
        inputs: Names of mutable scalar Params.
        input_bounds: Range of each input; none where not given.
        off: Names of the components that do not apply at given inputs.
        reach: A bound that the oracle may put on Vars without one.
        auxiliaries: Whether Vars other than the outputs stand in the rules.

    Example:
        >>> from gdpnet.testing import BY_NAME
        >>> problem = BY_NAME["two_boxes"]
        >>> problem.yhat.shape, problem.x is None
        (torch.Size([4, 2]), True)
        >>> [sample.distance for sample in problem.samples]
        [4, 1.5, 0, 12]
        >>> problem.rules().names
        ('boxes',)
    """

    name: str
    build: Callable[[], Any]
    samples: tuple[Sample, ...]
    outputs: tuple[str, ...] = ("y",)
    inputs: tuple[str, ...] = ()
    input_bounds: tuple[tuple[float, float], ...] | None = None
    off: Callable[[dict[str, float]], list[str]] = field(default=lambda x: [])
    reach: float = 1000.0
    auxiliaries: bool = False

    def rules(self, model: Any = None) -> gdpnet.RuleModel:
        """The rules of `model`, or of one that is built anew."""
        m = self.build() if model is None else model
        return gdpnet.RuleModel(
            m,
            outputs=[m.find_component(name) for name in self.outputs],
            inputs=[m.find_component(name) for name in self.inputs],
            input_bounds=self.input_bounds,
        )

    @property
    def yhat(self) -> torch.Tensor:
        """Predictions of all samples, (samples, d), float64."""
        return torch.tensor([list(s.yhat) for s in self.samples], dtype=torch.float64)

    @property
    def x(self) -> torch.Tensor | None:
        """Inputs of all samples, (samples, inputs), float64; None without inputs."""
        if not self.inputs:
            return None
        return torch.tensor([list(s.x) for s in self.samples], dtype=torch.float64)

    def params(self, sample: Sample) -> dict[str, float]:
        """Value of each input, by name."""
        return dict(zip(self.inputs, sample.x, strict=True))


def samples(*yhats: Point, distances: Sequence[float] | None = None) -> tuple[Sample, ...]:
    """Predictions of a problem without inputs, with their distances where they are known."""
    known = [None] * len(yhats) if distances is None else list(distances)
    return tuple(Sample(tuple(y), distance=d) for y, d in zip(yhats, known, strict=True))


def problem(given: Sequence[Sample], **options: Any) -> Callable[[Callable[[], Any]], Problem]:
    """Decorator: a problem of a function that builds its model and gives it its name.

    Example:
        >>> import pyomo.environ as pyo
        >>> from gdpnet.testing import problem, samples
        >>> @problem(samples((2.0,), distances=(1.0,)))
        ... def at_most_one():
        ...     m = pyo.ConcreteModel()
        ...     m.y = pyo.Var(bounds=(0, 1))
        ...     return m
        >>> at_most_one.name
        'at_most_one'
    """

    def made(build: Callable[[], Any]) -> Problem:
        return Problem(build.__name__, build, tuple(given), **options)

    return made
