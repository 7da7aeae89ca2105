"""A contradiction is said only where it holds with a margin."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet import Status

DOUBLE = torch.float64


def nearly_parallel() -> gdpnet.RuleModel:
    """Rows about 2 a - 3 b = -2, some of them 1e-10 apart; (7, -1) is 8.667 away from the rules."""
    low = [
        ((1.9999999998, -3.0000000002), "<=", -2.0000000001),
        ((1.9999999999, -3.0), ">=", -2.0000000001),
        ((2.000000002, -3.0), ">=", -2.000000001),
    ]
    thin = [
        ((1.9999998, -3.0), "<=", -1.9999998),
        ((2.0000000001, -2.9999999999), "<=", -1.9999999998),
        ((2.0000000001, -2.9999999999), "<=", -1.9999999999),
        ((1.9999998, -3.0), ">=", -2.0000002),
    ]
    above = [
        ((2.0, -2.9999999999), ">=", -1.9999999999),
        ((2.0, -3.000002), ">=", -2.000002),
        ((2.002, -3.002), ">=", -1.999),
    ]
    between = [((2.000001, -3.000002), ">=", -2.000002), ((2.0000001, -3.0), "<=", -2.0000002)]
    wide = [((1.9998, -3.0002), ">=", -1.9999), ((1.99998, -2.99998), "<=", -2.00002)]
    last = [
        ((2.0000000001, -3.0000000002), "<=", -2.0000000002),
        ((1.9999, -3.0002), "<=", -2.0001),
    ]
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(-10, 10))

    def relation(row: tuple[tuple[float, float], str, float]) -> object:
        (a, b), sense, right = row
        left = a * m.y[0] + b * m.y[1]
        return left <= right if sense == "<=" else left >= right

    for k, rule in enumerate([[low, thin], [above, between, wide], [last]]):
        terms = [[relation(row) for row in disjunct] for disjunct in rule]
        m.add_component(f"r{k}", Disjunction(expr=terms))
    return gdpnet.RuleModel(m, outputs=[m.y])


@pytest.mark.parametrize("solver", ["auto", "milp"])
def test_no_prediction_is_told_of_a_conflict_that_is_none(solver: str) -> None:
    rules = nearly_parallel()
    generator = torch.Generator().manual_seed(0)
    yhat = torch.rand(40 if solver == "milp" else 200, 2, generator=generator).double() * 16 - 8
    yhat = torch.cat([torch.tensor([[7.0, -1.0]], dtype=DOUBLE), yhat])
    p = gdpnet.project(rules, yhat, solver=solver)
    assert (p.status == Status.PROJECTED).all()
    assert rules.satisfied(p.y, tol=1e-9).all()
    assert p.distance[0].item() == pytest.approx(26 / 3, abs=1e-4)


def between(gap: float) -> gdpnet.RuleModel:
    """`y <= 3` and `y >= 3 + gap`, and a rule beside it."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.z = pyo.Var(bounds=(0, 10))
    m.low = pyo.Constraint(expr=m.y + m.z <= 3)
    m.high = pyo.Constraint(expr=m.y + m.z >= 3 + gap)
    m.r = Disjunction(expr=[[m.y <= 1], [m.z <= 1]])
    return gdpnet.RuleModel(m, outputs=[m.y, m.z])


@pytest.mark.parametrize("solver", ["auto", "milp"])
@pytest.mark.parametrize(
    ("gap", "status"),
    [
        (-1e-3, Status.PROJECTED),
        (0.0, Status.PROJECTED),
        (1e-11, Status.PROJECTED),  # within the tolerance of every row
        (2e-8, Status.UNSOLVED),  # too close to be sure
        (1e-6, Status.CONFLICT),
        (1e-3, Status.CONFLICT),
        (1.0, Status.CONFLICT),
    ],
)
def test_status_by_the_size_of_a_contradiction(solver: str, gap: float, status: Status) -> None:
    rules = between(gap)
    assert Fraction(3 + gap) - 3 >= 0 or gap < 0
    yhat = torch.tensor(np.random.default_rng(0).uniform(0, 10, (20, 2)))
    p = gdpnet.project(rules, yhat, solver=solver)
    assert [Status(int(s)).name for s in p.status] == [status.name] * 20
    if status is Status.UNSOLVED:
        assert torch.equal(p.y, yhat)
        assert p.distance.isinf().all()
        assert (p.disjunct == -1).all()
