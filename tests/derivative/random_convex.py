"""Random rules with convex rows that depend on inputs, for derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyomo.environ as pyo
import torch
from pyomo.gdp import Disjunction

import gdpnet
from tests.derivative.random_models import RandomModel


def random_convex(seed: int, batch: int = 8, plain: bool = False) -> RandomModel:
    """1 to 5 outputs, up to 2 inputs in centres, radii, weights and slopes, up to 2 auxiliaries.

    Args:
        seed: of everything.
        batch: samples.
        plain: without auxiliaries and whole numbers.
    """
    rng = np.random.default_rng(seed)
    d, p = int(rng.integers(1, 6)), int(rng.integers(0, 3))
    a = 0 if plain else int(rng.choice([0, 0, 0, 1, 2]))
    m = pyo.ConcreteModel()
    m.x = pyo.Param(range(p), mutable=True, initialize=1.0)
    m.z = pyo.Var(range(d + a), bounds=(-3.0, 3.0))
    if not plain and rng.random() < 0.1:
        m.z[int(rng.integers(d))].domain = pyo.Integers

    def moving(number: float) -> Any:
        """A number that may depend on the inputs."""
        if p == 0 or rng.random() < 0.6:
            return number
        x = m.x[int(rng.integers(p))]
        return number + (0.3 * x if rng.random() < 0.5 else 0.2 * x**2)

    def affine(size: int | None = None) -> Any:
        count = int(rng.integers(1, min(4, d + a) + 1)) if size is None else size
        columns = rng.choice(d + a, size=count, replace=False)
        return sum(moving(float(rng.normal())) * m.z[int(j)] for j in columns)

    def squares() -> Any:
        return sum((affine() - moving(float(rng.normal()))) ** 2 for _ in range(rng.integers(1, 4)))

    kinds: list[Callable[[], Any]] = [
        lambda: squares() <= moving(float(rng.uniform(0.5, 3.0))),
        lambda: moving(1.0) * squares() + affine() <= moving(float(rng.uniform(0.5, 2.0))),
        lambda: pyo.sqrt(squares()) + 0.3 * affine() <= moving(float(rng.uniform(0.5, 2.0))),
        lambda: pyo.sqrt(squares() + 0.1) <= moving(float(rng.uniform(0.8, 2.0))),
        lambda: pyo.exp(affine()) + 0.3 * affine() <= moving(float(rng.uniform(0.5, 2.0))),
        lambda: pyo.log(affine() + 1.5) >= moving(float(rng.normal(0.0, 0.3))),
        lambda: pyo.sqrt(affine() + 1.5) >= 0.3 * affine() + moving(0.2),
        lambda: (affine() + 1.0) ** 1.5 + 0.2 * affine() <= moving(float(rng.uniform(0.5, 2))),
        lambda: affine() ** 4 + 0.3 * affine() <= moving(float(rng.uniform(0.3, 1.5))),
        lambda: 1 / (m.z[int(rng.integers(d))] + 3.2) <= 0.3 * affine() + moving(0.6),
        lambda: affine() <= moving(float(rng.normal(0.3, 0.7))),
        lambda: affine() == moving(float(rng.normal(0.0, 0.5))),
    ]

    def relation() -> Any:
        weights = np.array([3, 2, 3, 1, 2, 2, 2, 2, 2, 1, 5, 0.4])
        return kinds[int(rng.choice(len(kinds), p=weights / weights.sum()))]()

    m.fixed = pyo.ConstraintList()
    for j in range(a):  # every auxiliary stands beside an output
        m.fixed.add(m.z[int(rng.integers(d))] ** 2 - m.z[d + j] <= moving(1.0))
    if rng.random() < 0.4:
        m.fixed.add(relation())
    m.rules = Disjunction(
        range(int(rng.integers(1, 3))),
        rule=lambda _, r: [
            [relation() for _ in range(int(rng.integers(1, 3)))]
            for _ in range(int(rng.integers(1, 3)))
        ],
    )
    rules = gdpnet.RuleModel(
        m,
        outputs=[m.z[j] for j in range(d)],
        inputs=[m.x[k] for k in range(p)],
        input_bounds=[(0.0, 2.0)] * p,
    )
    yhat = torch.from_numpy(rng.uniform(-3.3, 3.3, (batch, d)))
    x = torch.from_numpy(rng.uniform(0.2, 1.5, (batch, p))) if p else None
    weights = rng.uniform(0.5, 2.0, d).tolist() if rng.random() < 0.3 else None
    return RandomModel(rules, yhat, x, weights)
