"""The mixed-integer form: small, tight, and the same optimum as enumeration and the engine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunct, Disjunction

import gdpnet
from gdpnet.ir.compressed import Compressed
from gdpnet.ir.logic import ClauseWriter, counts_in
from gdpnet.lp import highs
from gdpnet.lp.program import Outcome, SparseLinearProgram
from gdpnet.solve.milp.boxes import Box, propagate
from gdpnet.solve.milp.moves import Moves
from gdpnet.solve.milp.sample import RulesAtSample
from gdpnet.solve.milp.written import Written


def _written(rules: gdpnet.RuleModel, yhat: list[float]) -> Written:
    evaluated = rules.evaluate(torch.zeros(1, 0, dtype=torch.float64))
    sample = RulesAtSample.of(rules, evaluated, 0)
    start = sample.clip(np.array(yhat))
    return Written(sample.projection(start, np.ones(len(start))))


def _members(size: int, least: int, upwards: bool = True) -> tuple[pyo.ConcreteModel, list[float]]:
    """`size` outputs that are low or high, `least` of them at least (or at most) high."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(size), bounds=(0, 1))
    m.high = Disjunct(range(size))
    m.low = Disjunct(range(size))
    for k in range(size):
        m.high[k].row = pyo.Constraint(expr=m.y[k] >= 0.8)
        m.low[k].row = pyo.Constraint(expr=m.y[k] <= 0.3)
    m.either = Disjunction(range(size), rule=lambda m, k: [m.high[k], m.low[k]])
    say = pyo.atleast if upwards else pyo.atmost
    m.many = pyo.LogicalConstraint(expr=say(least, *(m.high[k].indicator_var for k in range(size))))
    return m, np.linspace(0.05, 0.7, size).tolist()


@pytest.mark.parametrize("upwards", [True, False], ids=["at least", "at most"])
def test_a_count_is_one_row(upwards: bool) -> None:
    m, yhat = _members(12, 6, upwards)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    written = _written(rules, yhat)
    helpers = sum(boolean.helper for boolean in rules.data.booleans)
    assert helpers > 12 * 6
    # 24 indicators, and of the count the helper that is implied and its last step; y twice.
    assert len(written.linear.cost) <= 2 * 12 + 24 + 2
    answers = [gdpnet.project(rules, torch.tensor([yhat]), solver=s) for s in ("milp", "exact")]
    assert answers[0].distance.item() == pytest.approx(answers[1].distance.item(), abs=1e-9)
    assert answers[0].disjunct.tolist() == answers[1].disjunct.tolist()


def test_steps_of_a_count_are_found_again_with_their_truth() -> None:
    made = iter(range(20, 1000))
    clauses = ClauseWriter(lambda _: next(made)).clauses(
        ("atleast", 4, *(("literal", k) for k in (1, -2, 3, 4, 5, -6, 7, 8, 9))), ""
    )
    helpers = {abs(k) for clause in clauses for k in clause if abs(k) > 20}
    (count,) = counts_in(clauses, helpers)
    assert (count.least, count.members) == (4, (1, -2, 3, 4, 5, -6, 7, 8, 9))
    true = {k: k in (1, 4, 8, 9) for k in range(1, 10)}  # with -2 and -6: six of them hold
    true |= count.steps(true) | {count.cells[-1]: True}
    said = [clause for clause in clauses if clause in count.clauses]
    assert len(said) == len(clauses) - 2  # the helper that implies it, and what is required
    assert all(any(true[abs(k)] == (k > 0) for k in clause) for clause in said)


def test_a_count_that_others_use_is_left_alone() -> None:
    made = iter(range(20, 1000))
    clauses = ClauseWriter(lambda _: next(made)).clauses(
        ("atleast", 4, *(("literal", k) for k in range(1, 10))), ""
    )
    helpers = {abs(k) for clause in clauses for k in clause if abs(k) > 20}
    assert counts_in(clauses, helpers)
    assert counts_in([*clauses, (1, 30)], helpers) == []


def test_disjuncts_of_a_choice_add_up_to_one() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.z = pyo.Var(bounds=(0, 100))
    m.gap = Disjunction(expr=[[m.y <= 3, m.z == 2 * m.y], [m.y >= 7, m.z == m.y + 20]])
    written = _written(gdpnet.RuleModel(m, outputs=[m.y, m.z]), [4.5, 9.0])
    linear = written.linear
    rows = [
        dict(zip(linear.column[a:b].tolist(), linear.value[a:b].tolist(), strict=True))
        for a, b in zip(linear.start[:-1], linear.start[1:], strict=True)
    ]
    sums = [i for i, row in enumerate(rows) if set(row) == {4, 5} and set(row.values()) == {1.0}]
    assert [(linear.row_lower[i], linear.row_upper[i]) for i in sums] == [(1.0, 1.0)]
    # The largest is y - z <= -20 of the second disjunct, at most 3 in the box of the first; with z
    # up to 100 as everywhere, z - 2 y <= 0 of the first would need 50.
    constants = {abs(v) for row in rows for k, v in row.items() if k in (4, 5)}
    assert max(constants) == 23.0


def test_moves_have_no_rows() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(5), bounds=(0, 1))
    m.total = pyo.Constraint(expr=sum(m.y.values()) == 2)
    written = _written(gdpnet.RuleModel(m, outputs=[m.y]), [0.1, 0.9, 0.4, 0.4, 0.4])
    assert len(written.linear.row_lower) == 1


def test_a_split_program_has_the_same_points() -> None:
    rng = np.random.default_rng(0)
    rows = SparseLinearProgram(
        cost=np.array([0.0, 1.0, 2.0, 0.5]),
        row_lower=np.array([-np.inf]),
        row_upper=np.array([1.0]),
        lower=np.array([-1.0, -2.0, 0.0, 0.0]),
        upper=np.array([1.0, 2.0, np.inf, 3.0]),
        start=np.array([0, 3]),
        column=np.array([0, 1, 3]),
        value=np.array([1.0, -2.0, 1.0]),
    )
    moves = Moves({0: (2, 0.4)})
    split = moves.split(rows)
    assert split.upper[[0, 2]].tolist() == [0.6, 1.4]
    for _ in range(20):
        point = rng.uniform(0, 1, 4)
        there = moves.back(point)
        move = point[0] - point[2]
        assert there[0] == 0.4 + move
        assert there[2] == abs(move)
        value = split.value @ point[split.column]
        assert value - split.row_upper[0] == pytest.approx(
            there[0] - 2 * there[1] + there[3] - 1.0, abs=1e-12
        )
        # At an optimum one of the two moves is 0.
        point[[0, 2]] -= min(point[0], point[2])
        assert split.cost @ point == pytest.approx(rows.cost @ moves.back(point))


def test_propagation_never_cuts_a_point_off() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        n, m = 5, 4
        matrix = np.round(rng.normal(size=(m, n)) * (rng.random((m, n)) < 0.6), 1)
        inside = rng.uniform(-1, 1, n)
        equality = rng.random(m) < 0.3
        bound = matrix @ inside + np.where(equality, 0.0, rng.uniform(0, 0.5, m))
        lower, upper = np.full(n, -2.0), np.full(n, 2.0)
        lower[rng.random(n) < 0.2] = -np.inf
        upper[rng.random(n) < 0.2] = np.inf
        box = Box(lower.copy(), upper.copy())
        assert not propagate(Compressed.of(matrix), bound, equality, box, 3).any()
        assert (box.lower >= lower).all()
        assert (box.lower <= inside + 1e-9).all()
        assert (box.upper >= inside - 1e-9).all()


def test_propagation_tightens() -> None:
    rows = Compressed.of(np.array([[1.0, 1.0]])), np.array([1.0]), np.array([False])
    box = Box(np.zeros(2), np.full(2, 5.0))
    assert not propagate(*rows, box, 3).any()
    assert box.upper.tolist() == [1.0, 1.0]
    assert propagate(*rows, Box(np.ones(2), np.full(2, 5.0)), 3).all()


def test_moves_know_what_a_disjunct_costs_before_it_is_chosen() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 10))
    m.state = Disjunction(range(2), rule=lambda m, j: [[m.y[j] <= 0], [m.y[j] >= 4]])
    m.pair = Disjunction(expr=[[m.y[0] + 2 * m.y[1] <= 1], [m.y[0] - m.y[1] >= 2]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    for yhat, least in (([1.0, 0.0], 1.0), ([3.0, 5.0], 1.0), ([0.0, 7.0], 0.0)):
        linear = _written(rules, yhat).linear
        relaxed = highs.solve(replace(linear, integer=None))
        assert relaxed.bound >= least - 1e-9
        found = gdpnet.project(rules, torch.tensor([yhat]), solver="exact").distance.item()
        assert highs.solve(linear).bound == pytest.approx(found, abs=1e-7)
        assert relaxed.bound <= found + 1e-9


def test_a_column_does_not_move_both_ways_at_once() -> None:
    # What has to move up to 1 would move down again where only rows hold it above 0.5.
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(3), bounds=(0, 1))
    m.sum = pyo.Constraint(expr=sum(m.y.values()) == 2.5)
    m.gap = Disjunction(range(3), rule=lambda m, j: [[m.y[j] <= 0.1], [m.y[j] == 1.0]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    assert highs.solve(_written(rules, [0.6, 0.5, 0.4]).linear).outcome is Outcome.INFEASIBLE
    p = gdpnet.project(rules, [[0.6, 0.5, 0.4]], solver="milp")
    assert p.status.tolist() == [gdpnet.Status.CONFLICT]


def test_a_frame_that_is_kept_writes_what_a_new_one_does() -> None:
    m = pyo.ConcreteModel()
    m.a = pyo.Param(range(2), mutable=True, initialize=1.0)
    m.y = pyo.Var(range(3), bounds=(-5, 5))
    m.z = pyo.Var(bounds=(0, 3))
    m.all = pyo.Constraint(expr=m.y[0] + m.y[1] + m.z <= 4 + m.a[0])
    m.one = Disjunction(
        expr=[[m.y[0] <= m.a[0], m.a[1] * m.y[1] + m.y[2] >= 2], [m.y[0] + m.z == 3], [m.z >= 2]]
    )
    m.two = Disjunction(expr=[[m.y[2] <= -1], [m.y[2] >= m.a[0]]])
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.a])
    # The second 0 of a[1] takes an entry away: another frame.
    x = torch.tensor([[1.0, 2.0], [0.5, -1.0], [2.0, 0.0], [1.0, 3.0]], dtype=torch.float64)
    evaluated = rules.evaluate(x)
    frames = []
    for s in range(len(x)):
        sample = RulesAtSample.of(rules, evaluated, s)
        program = sample.projection(sample.clip(np.array([1.0, 0.0, 0.2])), np.ones(3))
        kept, new = Written(program).linear, Written(replace(program, frames=None)).linear
        for name in (
            "cost",
            "row_lower",
            "row_upper",
            "lower",
            "upper",
            "start",
            "column",
            "value",
        ):
            assert np.array_equal(getattr(kept, name), getattr(new, name)), name
        frames.append(program.frame)
    assert frames[0] is frames[1] is frames[3]
    assert frames[2] is not frames[0]
