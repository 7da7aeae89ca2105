"""A row over all outputs is left out at a price: the bound holds, and so does what is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet.lp import highs
from gdpnet.lp.clock import UNLIMITED, Clock
from gdpnet.lp.program import Outcome
from gdpnet.solve.milp import disjunctive, long_row
from gdpnet.solve.milp.disjunctive import DisjunctiveAnswer, DisjunctiveProgram
from gdpnet.solve.milp.sample import RulesAtSample

D = 20


def program(seed: int, sense: str) -> tuple[gdpnet.RuleModel, DisjunctiveProgram, float]:
    """Gaps under one sum; and the nearest distance, by the engine."""
    rng = np.random.default_rng(seed)
    low, factor = rng.uniform(0.2, 0.5, D).tolist(), rng.uniform(0.5, 2.0, D).tolist()
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(D), bounds=(0, 1))
    total = sum(factor[j] * m.y[j] for j in range(D))
    say: dict[str, Callable[[], object]] = {
        "==": lambda: total == 0.45 * sum(factor),
        "<=": lambda: total <= 0.35 * sum(factor),
        ">=": lambda: total >= 0.55 * sum(factor),
    }
    m.total = pyo.Constraint(expr=say[sense]())
    m.gap = Disjunction(range(D), rule=lambda m, j: [[m.y[j] <= low[j]], [m.y[j] >= low[j] + 0.3]])
    m.pair = Disjunction(
        range(0, D, 2), rule=lambda m, j: [[m.y[j] + m.y[j + 1] >= 0.9], [m.y[j] <= 0.1]]
    )
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    start = rng.uniform(0.0, 1.0, D)
    weights = rng.uniform(0.5, 2.0, D)
    nearest = gdpnet.project(
        rules, start[None], weights=weights, solver=gdpnet.solve.Exact(node_limit=10**7)
    )
    sample = RulesAtSample.of(rules, rules.evaluate(torch.zeros(1, 0, dtype=torch.float64)), 0)
    return rules, sample.projection(start, weights), nearest.distance.item()


@pytest.mark.parametrize("sense", ["==", "<=", ">="])
@pytest.mark.parametrize("seed", range(4))
def test_the_bound_holds_and_what_is_found_holds(monkeypatch, seed: int, sense: str) -> None:
    monkeypatch.setattr(long_row, "_LONG", D)
    rules, given, nearest = program(seed, sense)
    place = long_row.long_row(given)
    assert place is not None
    known = DisjunctiveAnswer(Outcome.LIMIT)
    found = long_row.by_multiplier(given, place, 0.0, known, highs.solve, UNLIMITED)
    assert found.bound <= nearest + 1e-8
    rows = tuple(row for k, row in enumerate(given.global_rows) if k != place)
    without = disjunctive.solve(replace(given, global_rows=rows))
    assert found.bound >= without.value + 0.2 * (nearest - without.value) - 1e-9
    assert found.point is not None
    assert nearest - 1e-8 <= found.value < np.inf
    assert bool(rules.satisfied(torch.from_numpy(found.point[None, :D]), tol=1e-8).all())


def test_what_is_known_is_kept_where_nothing_nearer_is_found(monkeypatch) -> None:
    monkeypatch.setattr(long_row, "_LONG", D)
    _, given, nearest = program(0, "==")
    known = DisjunctiveAnswer(Outcome.LIMIT, given.lower, nearest - 1e-7, 0.5 * nearest)
    found = long_row.by_multiplier(given, 0, 0.0, known, highs.solve, UNLIMITED)
    assert found.point is known.point
    assert found.bound > known.bound
    assert long_row.by_multiplier(given, 0, 0.0, known, highs.solve, Clock(0.0)) == known


def test_only_one_row_is_left_out(monkeypatch) -> None:
    _, given, _ = program(0, "==")
    assert long_row.long_row(given) is None  # too short
    monkeypatch.setattr(long_row, "_LONG", 1)
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(3), bounds=(0, 1))
    m.sums = pyo.Constraint([1, 2], rule=lambda m, k: m.y[0] + k * m.y[1] <= 1)
    m.gap = Disjunction(expr=[[m.y[2] <= 0.2], [m.y[2] >= 0.8]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    sample = RulesAtSample.of(rules, rules.evaluate(torch.zeros(1, 0, dtype=torch.float64)), 0)
    assert long_row.long_row(sample.projection(np.full(3, 0.5), np.ones(3))) is None
