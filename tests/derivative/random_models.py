"""Random rules with all that gradients meet, and Jacobians of projections by finite differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyomo.environ as pyo
import torch
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet.projection.projector import Projector

STEP = 1e-5
AGREE = 1e-4  # one-sided and halved differences, relative to max(1, largest of them)


@dataclass(frozen=True)
class RandomModel:
    """Rules with a batch to project.

    Attributes:
        rules: the rules.
        yhat: predictions, `batch x d`.
        x: inputs, `batch x p`; None where there are none.
        weights: of the outputs, `d`; None for equal ones.
    """

    rules: gdpnet.RuleModel
    yhat: torch.Tensor
    x: torch.Tensor | None
    weights: list[float] | None


def random_model(seed: int, batch: int = 8, plain: bool = False) -> RandomModel:
    """2 to 5 outputs, up to 2 inputs in right sides and coefficients, everything at random.

    Args:
        seed: of everything.
        batch: samples.
        plain: without auxiliaries and whole numbers, as relaxations want it.
    """
    rng = np.random.default_rng(seed)
    d, p = int(rng.integers(2, 6)), int(rng.integers(0, 3))
    a = 0 if plain else int(rng.choice([0, 0, 1, 2]))
    unit = rng.random() < 0.4  # coefficients of +-1: many points are equally near
    whole = np.zeros(d + a, dtype=bool)
    if not plain and rng.random() < 0.6:
        whole[rng.integers(0, d + a, size=int(rng.integers(1, 3)))] = True
    m = pyo.ConcreteModel()
    m.x = pyo.Param(range(p), mutable=True, initialize=1.0)
    m.z = pyo.Var(range(d + a), domain=lambda _, j: pyo.Integers if whole[j] else pyo.Reals)
    for j in range(d + a):
        m.z[j].setlb(-3 if whole[j] else -2.0)
        m.z[j].setub(3 if whole[j] else 2.0)

    def moving(number: float) -> Any:
        """A number that may depend on the inputs."""
        if p == 0 or rng.random() < 0.6:
            return number
        x = m.x[int(rng.integers(0, p))]
        if rng.random() < 0.3:
            return number + 0.5 * x
        return number + (0.3 * x**2 if rng.random() < 0.5 else 0.4 * pyo.exp(0.5 * x))

    def row(narrow: bool = False) -> tuple[Any, Any]:
        """A linear expression of some columns, and a right side."""
        size = 1 if narrow else int(rng.integers(1, min(4, d + a) + 1))
        columns = rng.choice(d + a, size=size, replace=False)
        terms = 0.0
        varies = rng.random() < 0.4
        for j in columns:
            number = float(rng.choice([-1.0, 1.0])) * (1.0 if unit else float(rng.uniform(0.3, 2)))
            terms += (moving(number) if varies else number) * m.z[int(j)]
        return terms, moving(float(rng.normal()))

    def relation() -> Any:
        left, right = row()
        return left <= right if rng.random() < 0.5 else left >= right

    m.fixed = pyo.ConstraintList()
    if rng.random() < 0.5:
        left, right = row()
        m.fixed.add(left == right)
    for j in np.flatnonzero(whole):
        if rng.random() < 0.5:  # a row of its own on a whole number
            m.fixed.add(m.z[int(j)] >= moving(float(rng.normal(-1.0, 0.5))))
        if rng.random() < 0.5:  # a sum of whole numbers, which rows alone determine
            m.fixed.add(sum(m.z[int(k)] for k in np.flatnonzero(whole)) >= 1)
    for j in range(a):  # every auxiliary stands beside an output
        out = m.z[int(rng.integers(0, d))]
        m.fixed.add(m.z[d + j] + float(rng.choice([-1.0, 1.0])) * out <= moving(0.5))
    m.fixed.add(relation())
    m.rules = Disjunction(
        range(int(rng.integers(1, 4))),
        rule=lambda _, r: [
            [relation() for _ in range(int(rng.integers(1, 3)))]
            for _ in range(int(rng.integers(2, 4)))
        ],
    )
    rules = gdpnet.RuleModel(
        m, outputs=[m.z[j] for j in range(d)], inputs=[m.x[k] for k in range(p)]
    )
    yhat = torch.from_numpy(rng.uniform(-2.2, 2.2, (batch, d)))
    x = torch.from_numpy(rng.uniform(0.2, 1.5, (batch, p))) if p else None
    weights = rng.uniform(0.5, 2.0, d).tolist() if rng.random() < 0.3 else None
    return RandomModel(rules, yhat, x, weights)


@dataclass
class Tally:
    """What a comparison with finite differences found.

    Attributes:
        smooth: samples that were moved and are smooth nearby.
        through_x: those of them that move with an input.
        wrong: what differed, in words.
    """

    smooth: int = 0
    through_x: int = 0
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Count another one in."""
        self.smooth += other.smooth
        self.through_x += other.through_x
        self.wrong += other.wrong


def compare(model: RandomModel, tolerance: float, name: str = "", **keywords: Any) -> Tally:
    """The Jacobian with respect to yhat and x against differences, where it has one.

    Args:
        model: the rules and their batch.
        tolerance: relative to max(1, largest difference quotient) of a sample.
        name: of the model, for the report.
        **keywords: of `gdpnet.project`.
    """
    d = model.yhat.shape[1]
    project = Projector(model.rules, weights=model.weights, **keywords)
    point = model.yhat if model.x is None else torch.cat([model.yhat, model.x], 1)

    def run(at: torch.Tensor) -> Any:
        return project(at[:, :d], None if model.x is None else at[:, d:])

    leaf = point.clone().requires_grad_()
    found = run(leaf)
    taken = _moved(found)
    if not taken.any():
        return Tally()
    jacobian = _rows_of_jacobian(found.y, leaf)
    expected, smooth = _differences(run, point, found.y.detach(), taken)
    size = expected.abs().amax((1, 2)).clamp_min(1.0)
    off = (jacobian - expected).abs().amax((1, 2)) / size
    tally = Tally(int(smooth.sum()), int((smooth & (expected[:, :, d:] != 0).any(2).any(1)).sum()))
    for s in torch.nonzero(smooth & ~(off <= tolerance)).flatten().tolist():
        tally.wrong.append(
            f"{name} sample {s}: {jacobian[s].tolist()} instead of {expected[s].tolist()}"
        )
    return tally


def _rows_of_jacobian(y: torch.Tensor, leaf: torch.Tensor) -> torch.Tensor:
    with warnings.catch_warnings():  # an output of its own may well be held in place everywhere
        warnings.simplefilter("ignore", gdpnet.errors.ZeroGradientWarning)
        rows = [torch.autograd.grad(one.sum(), leaf, retain_graph=True)[0] for one in y.unbind(1)]
    return torch.stack(rows, 1)


def _moved(projection: Any) -> torch.Tensor:
    status = projection.status
    return (status == gdpnet.Status.PROJECTED) | (status == gdpnet.Status.RELAXED)


def _differences(
    run: Callable[[torch.Tensor], Any], point: torch.Tensor, base: torch.Tensor, taken: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Difference quotients, `batch x d x parameters`, and where they have a limit."""
    smooth = taken.clone()
    columns = []
    for k in range(point.shape[1]):
        quotients = []
        for step in (STEP, -STEP, STEP / 2, -STEP / 2):
            moved = point.clone()
            moved[:, k] += step
            result = run(moved)
            smooth &= _moved(result)
            quotients.append((result.y.detach() - base) / step)
        each = torch.stack(quotients)
        size = each.abs().amax((0, 2)).clamp_min(1.0)
        smooth &= (each.amax(0) - each.amin(0)).amax(1) <= AGREE * size
        columns.append((quotients[2] + quotients[3]) / 2)
    return torch.stack(columns, 2), smooth
