"""A first point by a dive: it satisfies the rules, its bound holds, conflicts are learnt from."""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet import Status
from gdpnet.lp import highs
from gdpnet.lp.clock import UNLIMITED, Clock
from gdpnet.lp.program import Outcome, SparseLinearProgram
from gdpnet.solve.milp import l1
from gdpnet.solve.milp.diving import dive
from gdpnet.solve.milp.sample import RulesAtSample
from gdpnet.solve.milp.started import dived, nearest_literals
from tests.fuzz.classes import case_of


def coupled(d: int, seed: int, share: float = 0.4) -> tuple[gdpnet.RuleModel, np.ndarray]:
    """Gaps and alternatives under one sum over all outputs."""
    rng = np.random.default_rng(seed)
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(d), bounds=(0, 1))
    m.total = pyo.Constraint(expr=sum(m.y.values()) == share * d)
    low = rng.uniform(0.2, 0.5, d)
    m.gap = Disjunction(
        range(d), rule=lambda m, j: [[m.y[j] <= float(low[j])], [m.y[j] >= float(low[j]) + 0.25]]
    )
    three = rng.integers(0, d, (d // 2, 3)).tolist()
    m.either = Disjunction(
        range(len(three)),
        rule=lambda m, k: [
            [m.y[three[k][0]] + m.y[three[k][1]] >= 0.9],
            [m.y[three[k][2]] <= 0.1],
        ],
    )
    return gdpnet.RuleModel(m, outputs=[m.y]), 0.4 + 0.3 * rng.normal(size=(1, d))


@pytest.mark.parametrize("seed", range(8))
def test_what_a_dive_finds_holds_and_its_bound_does(seed: int) -> None:
    rules, yhat = coupled(24, seed)
    engine = gdpnet.project(rules, yhat, solver=gdpnet.solve.Exact(node_limit=10**7))
    sample = RulesAtSample.of(rules, rules.evaluate(torch.zeros(1, 0, dtype=torch.float64)), 0)
    start = sample.clip(yhat[0])
    outside = np.abs(start - yhat[0]).sum()
    program = sample.projection(start, np.ones(24))
    found = dived(program, highs.solve, UNLIMITED)
    assert found.point is not None
    assert bool(rules.satisfied(torch.from_numpy(found.point[None, :24]), tol=1e-8).all())
    assert found.bound + outside <= engine.distance.item() + 1e-9
    assert found.value + outside >= engine.distance.item() - 1e-9
    again = dived(program, highs.solve, UNLIMITED)
    assert np.array_equal(found.point, again.point)


def rows(
    cost: list[float], matrix: list[list[float]], lower: list[float]
) -> tuple[SparseLinearProgram, np.ndarray]:
    """Binaries of no choice, in rows `>=`."""
    row, column = np.nonzero(np.array(matrix))
    count = len(cost)
    program = SparseLinearProgram(
        cost=np.array(cost),
        row_lower=np.array(lower),
        row_upper=np.full(len(lower), np.inf),
        lower=np.zeros(count),
        upper=np.ones(count),
        start=np.searchsorted(row, np.arange(len(lower) + 1)),
        column=column,
        value=np.array(matrix)[row, column],
        integer=np.ones(count, dtype=bool),
    )
    return program, np.full(count, -1)


def test_what_contradicts_the_rest_gives_way() -> None:
    # Rounded down, three halves are none; the first that gives way is 1, and still one is missing.
    cost, matrix, lower = [1.0, 1.1, 1.2], [[1.0, 1.0, 1.0], [2.0, 2.0, -2.0]], [1.2, -0.6]
    program, choice = rows(cost, matrix, lower)
    found = dive(program, choice, UNLIMITED)
    assert found.point is not None
    assert found.programs > 2
    assert np.allclose(found.point, np.rint(found.point), atol=1e-6)
    assert (np.array(matrix) @ found.point >= np.array(lower) - 1e-9).all()
    assert found.bound <= program.cost @ found.point + 1e-9


def test_where_there_is_no_point_a_dive_says_none() -> None:
    # y0 + y1 is 1.5 of two binaries: the relaxation has points, the program none.
    program, choice = rows([1.0, 1.0], [[1.0, 1.0], [-1.0, -1.0]], [1.5, -1.5])
    found = dive(program, choice, UNLIMITED)
    assert found.point is None
    assert found.bound == pytest.approx(1.5)
    # Nor where the relaxation has none.
    program, choice = rows([1.0, 1.0], [[1.0, 1.0]], [2.5])
    assert dive(program, choice, UNLIMITED)[:3] == (None, -np.inf, 1)


def test_a_dive_keeps_to_its_clock() -> None:
    program, choice = rows([1.0, 1.0], [[1.0, 1.0]], [1.5])
    assert dive(program, choice, Clock(0.0))[:3] == (None, -np.inf, 1)


@pytest.mark.parametrize("seed", range(3))
def test_coupled_rules_have_an_answer_before_anything_is_searched(monkeypatch, seed: int) -> None:
    rules, yhat = coupled(200, seed)
    nothing = l1.DisjunctiveAnswer(Outcome.LIMIT)
    monkeypatch.setattr(l1.disjunctive, "solve", lambda *_: nothing)
    p = gdpnet.project(rules, yhat, solver="milp")
    assert Status(int(p.status[0])) is Status.LIMIT
    assert bool(rules.satisfied(p.y, tol=1e-8).all())
    assert 0.0 < p.info.gap.item() < 0.5  # what the relaxation proves, and not everything


def test_a_first_point_satisfies_what_logic_makes_required() -> None:
    """Logic may choose a disjunct that nobody else did: then what is nested in it is required."""
    looked_at = 0
    for seed in range(600000, 600020):
        case = case_of("priced", seed)
        if case.x is not None:
            continue
        sample = RulesAtSample.of(case.rules, case.rules.evaluate(torch.zeros(1, 0).double()), 0)
        for yhat in case.yhat.double().numpy():
            literals = nearest_literals(sample, sample.clip(yhat))
            for clause in sample.clauses if literals is not None else ():
                if clause.guard < 0 or clause.guard + 1 in literals:
                    assert literals & set(clause.literals), (seed, clause)
                    looked_at += 1
    assert looked_at > 100
