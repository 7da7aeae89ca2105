"""norm="l2" with every keyword of `project`: strict, contradictions, limits, what rows cost."""

from __future__ import annotations

import itertools
import math
import time
from fractions import Fraction
from typing import Any

import clarabel
import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunct, Disjunction
from scipy import sparse

import gdpnet
from gdpnet import Status
from gdpnet.solve import Exact
from gdpnet.testing import BY_NAME, PROBLEMS, Problem
from models.cooling import model as cooling
from tests.derivative.random_models import random_model
from tests.solve.l2_oracle import Oracle
from tests.solve.test_project_options import (
    ELASTIC_BOUNDS,
    ELASTIC_GLOBALS,
    ELASTIC_RULES,
    elastic_model,
    needing,
)

# ---- strict ---------------------------------------------------------------------------------


def thirds() -> gdpnet.RuleModel:
    """Rows whose nearest points are no floating-point numbers."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(3), bounds=(0, 10))
    m.total = pyo.Constraint(expr=0.1 * m.y[0] + 0.7 * m.y[1] + 0.3 * m.y[2] <= 1.1)
    m.rule = Disjunction(
        expr=[[m.y[0] - 3 * m.y[1] <= -0.1], [m.y[0] + m.y[2] >= 3.3, m.y[1] <= 0.3]]
    )
    return gdpnet.RuleModel(m, outputs=[m.y])


def holds_exactly(rules: gdpnet.RuleModel, y: torch.Tensor, disjunct: int) -> bool:
    """In rational numbers, of a model with one rule and without inputs."""
    data = rules.data
    literal = data.clauses[data.rules[0].clause].literals[disjunct]
    rows = [*data.global_rows, *data.booleans[literal - 1].true_rows]
    values = [Fraction(v) for v in y.double().tolist()]
    return all(
        sum(Fraction(a.number) * values[j] for j, a in data.rows[i].terms)
        <= Fraction(data.rows[i].bound.number)
        for i in rows
    )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_strict_holds_in_exact_arithmetic(dtype: torch.dtype) -> None:
    rules = thirds()
    yhat = (torch.rand(300, 3, generator=torch.Generator().manual_seed(0)).double() * 8).to(dtype)
    p = gdpnet.project(rules, yhat, norm="l2", strict=True)
    assert p.info.strict is not None
    assert p.info.strict.all()
    assert all(
        holds_exactly(rules, y, k) for y, k in zip(p.y, p.disjunct[:, 0].tolist(), strict=True)
    )
    plain = gdpnet.project(rules, yhat, norm="l2")
    broken = [
        not holds_exactly(rules, y, k)
        for y, k in zip(plain.y, plain.disjunct[:, 0].tolist(), strict=True)
    ]
    assert any(broken), "nothing to tighten: the test shows nothing"
    # It costs rounding errors only.
    exact = gdpnet.project(rules, yhat.double(), norm="l2")
    most = 20 * float(torch.finfo(dtype).eps)
    assert ((p.distance.double() - exact.distance).abs() <= most * (1 + exact.distance)).all()


def test_strict_on_cooling_satisfies_with_no_tolerance() -> None:
    rules = cooling.build()
    x, _ = cooling.sample(400, "ood", seed=1)
    yhat = torch.rand(400, 3, generator=torch.Generator().manual_seed(2)).double() * 1.4 - 0.2
    p = gdpnet.project(rules, yhat, x, norm="l2", strict=True)
    assert p.info.strict is not None
    assert p.info.strict.all()
    assert float(rules.violation(p.y, x).max()) <= 1e-15
    plain = gdpnet.project(rules, yhat, x, norm="l2")
    assert float((p.distance - plain.distance).abs().max()) <= 1e-12


# ---- contradictions -------------------------------------------------------------------------


def elastic_by_hand(yhat: list[float], weights: list[float]) -> tuple[float, float]:
    """Least sum of scaled violations, then least distance, by Clarabel: columns (y, v)."""
    count = len(ELASTIC_RULES)
    best = (math.inf, math.inf)
    for choice in itertools.product(*ELASTIC_RULES):
        rows: list[list[float]] = []
        right = []
        for a, b in ELASTIC_GLOBALS:
            rows.append([*a, *[0.0] * count])
            right.append(b)
        for r, term in enumerate(choice):
            for a, b in term:
                scale = max(1.0, abs(b), *map(abs, a))
                rows.append([*a, *(-scale * (k == r) for k in range(count))])
                right.append(b)
        identity = np.eye(2 + count)
        for j, (low, high) in enumerate(ELASTIC_BOUNDS):
            rows += [list(identity[j]), list(-identity[j])]
            right += [high, -low]
        rows += [list(-identity[2 + k]) for k in range(count)]
        right += [0.0] * count
        violation = np.array([0.0, 0.0, *[1.0] * count])
        first, _ = by_clarabel(np.zeros(2 + count), violation, rows, right)
        square = np.array([w * w for w in weights] + [0.0] * count)
        linear = -2 * square * np.array([*yhat, *[0.0] * count])
        _, z = by_clarabel(2 * square, linear, [*rows, violation], [*right, first + 1e-9])
        far = math.sqrt(sum((w * (z[j] - yhat[j])) ** 2 for j, w in enumerate(weights)))
        if first < best[0] - 1e-8 or (first < best[0] + 1e-8 and far < best[1]):
            best = (min(best[0], first), far)
    return best


def by_clarabel(square: Any, linear: Any, rows: Any, right: Any) -> tuple[float, np.ndarray]:
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    matrix = sparse.csc_matrix(np.array(rows, dtype=float))
    solver = clarabel.DefaultSolver(
        *(sparse.csc_matrix(np.diag(square)), np.asarray(linear, dtype=float), matrix),
        *(np.array(right, dtype=float), [clarabel.NonnegativeConeT(len(right))], settings),
    )
    found = solver.solve()
    assert "Solved" in str(found.status)
    return float(found.obj_val), np.array(found.x)


@pytest.mark.parametrize("weights", [[1.0, 1.0], [0.5, 3.0]], ids=str)
@pytest.mark.parametrize("yhat", [[0.5, 0.5], [0.9, 0.9], [0.0, 1.0], [0.3, 0.2], [1.8, -0.4]])
def test_nearest_breaks_as_little_as_possible(yhat: list[float], weights: list[float]) -> None:
    rules = elastic_model()
    start = torch.tensor([yhat]).double()
    p = gdpnet.project(rules, start, norm="l2", weights=weights, on_conflict="nearest")
    least, far = elastic_by_hand(yhat, weights)
    assert least > 1e-3
    assert p.status.tolist() == [Status.CONFLICT]
    assert p.distance.tolist() == p.value.tolist() == [math.inf]
    assert rules.violation(p.y).sum().item() == pytest.approx(least, abs=1e-7)
    assert rules.global_violation(p.y).item() <= 1e-9
    moved = ((p.y - start) * torch.tensor(weights)).norm().item()
    assert moved == pytest.approx(far, abs=1e-6)
    passed = gdpnet.project(rules, start, norm="l2", weights=weights)
    assert passed.status.tolist() == [Status.CONFLICT]
    assert torch.equal(passed.y, start)
    with pytest.raises(gdpnet.errors.ConflictError, match="contradict each other"):
        gdpnet.project(rules, start, norm="l2", on_conflict="raise")


def test_nearest_tells_where_no_rule_is_to_blame() -> None:
    x = torch.tensor([[1.0], [20.0], [9.0], [30.0]]).double()
    yhat = torch.tensor([[8.0], [8.0], [8.0], [4.5]]).double()
    with pytest.warns(gdpnet.errors.ConflictWarning, match="2 of 4 rows"):
        p = gdpnet.project(needing(), yhat, x, norm="l2", on_conflict="nearest")
    assert p.y.flatten().tolist() == pytest.approx([7.0, 8.0, 9.0, 4.5])
    assert p.status.tolist() == [Status.PROJECTED] + 3 * [Status.CONFLICT]
    assert p.info.unmendable is not None
    assert p.info.unmendable.tolist() == [False, True, False, True]


def contradictory(*, nested: bool, auxiliary: bool, whole: bool) -> gdpnet.RuleModel:
    """Two rules of which one must be broken, with what rules may have besides."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var([0, 1], bounds=(0, 10))
    if whole:
        m.y[1].domain = pyo.Integers
    first: Any = m.y[0]
    if auxiliary:
        m.a = pyo.Var(bounds=(-100, 100))
        m.link = pyo.Constraint(expr=m.a == m.y[0] + 0.5 * m.y[1])
        first = m.a
    m.low, m.high, m.other = Disjunct(), Disjunct(), Disjunct()
    m.low.row = pyo.Constraint(expr=first <= 2)
    if nested:
        m.low.inner = Disjunction(expr=[[m.y[1] <= 1], [m.y[1] >= 9]])
    m.other.row = pyo.Constraint(expr=first <= 1)
    m.small = Disjunction(expr=[m.low, m.other])
    m.high.row = pyo.Constraint(expr=first >= 6)
    m.large = Disjunction(expr=[m.high])
    m.some = pyo.LogicalConstraint(expr=m.low.indicator_var.implies(m.high.indicator_var))
    return gdpnet.RuleModel(m, outputs=[m.y])


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("auxiliary", [False, True])
@pytest.mark.parametrize("nested", [False, True])
def test_nearest_with_nesting_auxiliaries_and_whole_numbers(
    nested: bool, auxiliary: bool, whole: bool
) -> None:
    rules = contradictory(nested=nested, auxiliary=auxiliary, whole=whole)
    yhat = torch.tensor([[4.0, 5.2], [0.5, 0.4], [9.0, 9.7]]).double()
    least = gdpnet.project(rules, yhat, on_conflict="nearest")
    p = gdpnet.project(rules, yhat, norm="l2", on_conflict="nearest")
    assert (p.status == Status.CONFLICT).all()
    # As little as in the other norm, and no further than that, in this norm.
    broken = rules.violation(p.y).sum(1)
    assert broken.tolist() == pytest.approx(rules.violation(least.y).sum(1).tolist(), abs=1e-6)
    assert ((p.y - yhat).norm(dim=1) <= (least.y - yhat).norm(dim=1) + 1e-6).all()
    # None of many feasible points that break the rules no more is nearer.
    line = torch.linspace(0, 10, 11 if auxiliary else 201)  # a program a point with auxiliaries
    grid = torch.cartesian_prod(line, line).double()
    good = rules.global_violation(grid) <= 1e-9
    good &= rules.violation(grid).sum(1) <= float(broken[0]) + 1e-6
    for k in range(3):
        nearest = (grid[good] - yhat[k]).norm(dim=1).min()
        assert (p.y[k] - yhat[k]).norm() <= nearest + 1e-6


# ---- limits ---------------------------------------------------------------------------------


def test_a_time_limit_is_kept_and_said() -> None:
    problem = BY_NAME["jl_largesize"]
    rules = problem.rules()
    yhat = problem.yhat.repeat(40, 1)
    free = gdpnet.project(rules, yhat, norm="l2")
    started = time.perf_counter()
    p = gdpnet.project(rules, yhat, norm="l2", time_limit=1e-7)
    assert time.perf_counter() - started < 5.0
    late = [s in (Status.LIMIT, Status.UNSOLVED) for s in p.status.tolist()]
    for k, is_late in enumerate(late):
        if not is_late:
            assert p.y[k].tolist() == free.y[k].tolist()
    held = p.status == Status.LIMIT
    assert rules.satisfied(p.y[held]).all()
    assert (p.value <= free.value + 1e-9).all()
    generous = gdpnet.project(rules, yhat, norm="l2", time_limit=60.0)
    assert torch.equal(generous.y, free.y)
    few = problem.yhat
    limited = gdpnet.project(rules, few, norm="l2", solver=Exact(node_limit=1))
    assert limited.answer.finished_by("milp").any()  # what the search left open
    assert limited.status.tolist() == free.status[: len(few)].tolist()
    assert torch.allclose(limited.value, free.value[: len(few)], rtol=1e-8, atol=1e-8)


# ---- what rows cost -------------------------------------------------------------------------


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_tight_rows_balance_the_slope(problem: Problem) -> None:
    rules = problem.rules()
    balanced(rules, problem.yhat, problem.x, [1.0] * len(rules.output_names))


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_tight_rows_of_random_models(first: int) -> None:
    for seed in range(first, first + 20):
        model = random_model(seed, batch=4)
        weights = model.weights or [1.0] * model.yhat.shape[1]
        balanced(model.rules, model.yhat, model.x, weights)


def balanced(rules: gdpnet.RuleModel, yhat: Any, x: Any, weights: Any) -> None:
    """What is left of the slope, at what is on no bound and not whole, is nothing."""
    p = gdpnet.project(rules, yhat, x, norm="l2", weights=weights)
    rows, rates = p.info.tight
    data, d = rules.data, len(rules.output_names)
    z = np.concatenate([p.answer.y, p.answer.auxiliaries], 1)
    z = np.nan_to_num(z)
    for k in range(len(z)):
        at = None if x is None else np.asarray(x[k])
        oracle = Oracle(rules, p.answer.y[k], at)
        own = rows[k][rows[k] >= 0].tolist() if rows.shape[1] else []
        if p.status[k] != Status.PROJECTED:
            assert not own
            continue
        left = np.zeros(len(data.columns))
        w = np.asarray(weights, dtype=float)
        left[:d] = w**2 * (z[k, :d] - p.request.yhat[k]) / float(p.distance[k])
        for row, rate in zip(own, rates[k].tolist(), strict=False):
            assert rate >= 0.0 or data.rows[row].equality
            size = np.abs(full_row(rules, row, at)).max()
            left += rate * oracle.rows[row] * size  # the oracle's rows are scaled
        for j, column in enumerate(data.columns):
            if column.integer:
                continue
            ends = (column.lower, column.upper)
            near = [math.isfinite(v) and abs(z[k, j] - v) <= 1e-7 * max(1.0, abs(v)) for v in ends]
            rest = float(left[j])
            allowed = 1e-6 * max(1.0, w.max())
            assert abs(rest) <= allowed or (near[0] and rest > 0) or (near[1] and rest < 0), (
                column.name,
                rest,
            )


def full_row(rules: gdpnet.RuleModel, row: int, x: Any) -> np.ndarray:
    inputs = torch.zeros(1, 0).double() if x is None else torch.as_tensor(x).double().reshape(1, -1)
    values = rules.evaluate(inputs).rows
    place = (values.varying == row).nonzero().flatten().tolist()
    return (values.coefficients[0, place[0]] if place else values.shared.dense[row]).numpy()


# ---- networks -------------------------------------------------------------------------------


def test_with_rules_takes_it() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([0, 1], bounds=(0, 1))
    m.total = pyo.Constraint(expr=m.y[0] + m.y[1] == 1)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    network = torch.nn.Linear(3, 2)
    ruled = gdpnet.nn.with_rules(network, rules, rule_inputs=[], norm="l2", gradient="vertex")
    assert "norm='l2'" in repr(ruled)
    x = torch.randn(16, 3)
    y = ruled(x)
    wanted = gdpnet.project(rules, network(x).detach(), norm="l2").y
    assert torch.equal(y.detach(), wanted)
    (y[:, 0] ** 2).sum().backward()
    assert network.weight.grad is not None
    assert float(network.weight.grad.abs().sum()) > 0
    with pytest.raises(gdpnet.errors.InputError, match=r"norm: solver .* got 'linf'"):
        gdpnet.nn.with_rules(network, rules, rule_inputs=[], norm="linf")
