"""The fuzzing of tests/fuzz: a few cases of every class, and its oracle against others."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunct, Disjunction
from scipy.optimize import linprog, milp

import gdpnet
from gdpnet import Status
from tests.fuzz import judge as judging
from tests.fuzz import worker as working
from tests.fuzz.classes import Case
from tests.fuzz.judge import NAMES, judge
from tests.fuzz.oracle import Problem, Sample, least_broken, nearest_broken
from tests.fuzz.rational import Whole, minimum

CASES = 3


@pytest.mark.parametrize("name", NAMES)
def test_a_few_cases_of_every_class(name: str) -> None:
    for seed in range(CASES):
        tally = judge(name, seed)
        assert tally.failures == []
        assert tally.samples > tally.undecided


@pytest.mark.parametrize("seed", [1007, 70006, 70032])
def test_a_set_without_an_interior_is_not_closed_by_rounding(seed: int) -> None:
    """Another disjunct was called the nearest.

    Cuts contradicted each other by 2e-10; a bound was that of a point off its active rows, times
    multipliers of 1e9; a contradiction was found at such a point.
    """
    assert judge("convex_thin", seed).failures == []


@pytest.mark.parametrize(
    "seed",
    [
        # A ratio test lost its own limit in rounding: what could hold was called contradictory.
        91181,
        # A contradiction that a margin of 1e-8 leaves was not decided.
        *(91003, 93148, 93482),
        # Margins of strict=True began with what the search's tolerance had left.
        *(91128, 93075, 93709, 94124, 94179),
        # A mixed-integer solver's tolerances chose the disjunct, 12.1 away instead of 7.0.
        *(80005, 93240, 94035, 94290, 94370),
        # Equalities that differ by 1e-8 determined a column to seven digits only.
        102127,
        # HiGHS left tight rows by 1e-11, whose multipliers are 1e9.
        *(92130, 100220, 100245, 100755, 101835),
        # A relaxation's lower bound was above the nearest point, by what rounding left unproved.
        *(93360, 93569),
        # ... or far above: a basis between rows that differ by 1e-10 was told as optimal.
        *(101274, 110212, 110227, 110398, 110697, 110864, 120137),
    ],
)
def test_rows_that_are_nearly_parallel(seed: int) -> None:
    assert judge("parallel", seed).failures == []


# ---- the oracle ---------------------------------------------------------------------------------


def _program(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows, columns = int(rng.integers(1, 7)), int(rng.integers(1, 6))
    matrix = rng.integers(-3, 4, (rows, columns)).astype(float)
    return rng.integers(0, 4, columns).astype(float), matrix, rng.integers(-6, 7, rows) / 2.0


def _rational(matrix: np.ndarray, right: np.ndarray) -> list[tuple[dict[int, Fraction], Fraction]]:
    return [
        ({j: Fraction(float(c)) for j, c in enumerate(row) if c}, Fraction(float(b)))
        for row, b in zip(matrix, right, strict=True)
    ]


@pytest.mark.parametrize("lazy", [False, True])
def test_rational_programs_are_those_of_highs(lazy: bool) -> None:
    solved = 0
    for seed in range(150):
        cost, matrix, right = _program(np.random.default_rng(seed))
        rows = _rational(matrix, right)
        exact = [Fraction(float(c)) for c in cost]
        found = minimum(exact, () if lazy else rows, rows if lazy else ())
        other = linprog(cost, A_ub=matrix, b_ub=right)
        assert (found is None) == (other.status == 2)
        if found is not None:
            solved += 1
            value, x = found
            assert float(value) == pytest.approx(other.fun, abs=1e-9)
            assert sum(c * v for c, v in zip(exact, x, strict=True)) == value
            assert all(sum(c * x[j] for j, c in a.items()) <= b for a, b in rows)
    assert 40 < solved < 150


def test_whole_rational_programs_are_those_of_highs() -> None:
    different = 0
    for seed in range(100):
        cost, matrix, right = _program(np.random.default_rng(seed))
        n = len(cost)
        exact = [Fraction(float(c)) for c in cost]
        rows = [*_rational(matrix, right), *_rational(np.eye(n), np.full(n, 20.0))]
        whole = [Whole({j: Fraction(1)}, Fraction(0)) for j in range(n)]
        found = minimum(exact, rows, whole=whole)
        other = milp(
            cost,
            integrality=np.ones(n),
            bounds=(0, 20),
            constraints=(matrix, -np.inf, right),
        )
        assert (found is None) == (other.status == 2)
        if found is not None:
            assert float(found[0]) == pytest.approx(other.fun, abs=1e-6)
            assert all(v.denominator == 1 for v in found[1])
            different += found[0] != minimum(exact, rows)[0]  # type: ignore[index]
    assert different > 5


def test_values_from_the_cutoff_on_are_not_looked_for() -> None:
    rows = [({0: Fraction(-1)}, Fraction(-3))]
    assert minimum([Fraction(1)], rows) == (3, [3])
    assert minimum([Fraction(1)], rows, cutoff=Fraction(3)) is None


def _gap() -> gdpnet.RuleModel:
    """y <= 3 or y >= 7, and n whole with n >= y."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.n = pyo.Var(domain=pyo.Integers, bounds=(0, 10))
    m.gap = Disjunction(expr=[[m.y <= 3], [m.y >= 7]])
    m.above = pyo.Constraint(expr=m.n >= m.y)
    return gdpnet.RuleModel(m, outputs=[m.y, m.n])


def test_distances_proved_by_hand() -> None:
    problem = Problem.of(_gap(), None)
    assert len(problem.products) == 2
    sample = Sample(problem, [4.5, 3.25], [1.0, 2.0])
    # y moves to 3, n to 3: 1.5 + 2 * 0.25.
    assert sample.nearest == 2
    # With a tenth more room y stops at 3.1, and n at 3 is above it within that.
    assert sample.relaxed(lambda row: Fraction(1, 10), "relaxed") == Fraction(19, 10)


def test_nested_disjunctions_bind_only_where_the_parent_is_chosen() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.low, m.high = Disjunct(), Disjunct()
    m.low.row = pyo.Constraint(expr=m.y <= 4)
    m.low.inner = Disjunction(expr=[[m.y <= 1], [m.y >= 3]])
    m.high.row = pyo.Constraint(expr=m.y >= 9)
    m.rule = Disjunction(expr=[m.low, m.high])
    sample = Sample(Problem.of(gdpnet.RuleModel(m, outputs=[m.y]), None), [1.5], [1.0])
    assert len(sample.problem.products) == 3
    assert sample.nearest == Fraction(1, 2)
    m.not_low = pyo.LogicalConstraint(expr=pyo.lnot(m.low.indicator_var))
    sample = Sample(Problem.of(gdpnet.RuleModel(m, outputs=[m.y]), None), [1.5], [1.0])
    assert sample.nearest == Fraction(15, 2)


def test_least_violation_of_a_contradiction() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.one = Disjunction(expr=[[m.y <= 2]])
    m.two = Disjunction(expr=[[m.y >= 8]])
    sample = Sample(Problem.of(gdpnet.RuleModel(m, outputs=[m.y]), None), [5.0], [1.0])
    # Scales are 2 and 8: breaking the second by 6 costs 6 / 8, the first by 6 costs 3.
    assert least_broken(sample) == Fraction(3, 4)
    assert nearest_broken(sample, Fraction(3, 4)) == 3


# ---- the judge ----------------------------------------------------------------------------------


def _said(status: Status, y: list[float], distance: float, strict: bool | None = None) -> Any:
    info = SimpleNamespace(solver="exact", strict=None if strict is None else [strict])
    return SimpleNamespace(
        status=torch.tensor([status]),
        y=torch.tensor([y], dtype=torch.float64),
        distance=torch.tensor([distance], dtype=torch.float64),
        value=torch.tensor([distance], dtype=torch.float64),
        price=torch.zeros(1, dtype=torch.float64),
        info=info,
    )


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (_said(Status.PROJECTED, [3.0, 3.0], 1.75), None),
        (_said(Status.PROJECTED, [2.5, 3.0], 2.25), "nearest is at 1.75"),
        (_said(Status.PROJECTED, [3.0, 3.0], 1.5), "y is at 1.75"),
        (_said(Status.PROJECTED, [3.0, 3.25], 1.5), "is not whole"),
        (_said(Status.PROJECTED, [4.5, 5.0], 1.75), "do not hold within 1e-09"),
        (_said(Status.PROJECTED, [3.0000001, 3.0], 1.7499999), "do not hold within 1e-09"),
        (_said(Status.PROJECTED, [3.0000000005, 3.0], 1.7499999995), None),
        (_said(Status.PROJECTED, [3.0000000005, 3.0], 1.7499999995, True), "do not hold strictly"),
        (_said(Status.PROJECTED, [-1.0, 3.0], 5.75), "outside of its bound"),
        (_said(Status.SATISFIED, [3.0, 3.0], 1.75), "is not the prediction"),
        (_said(Status.CONFLICT, [4.5, 3.25], float("inf")), "there is a point at 1.75"),
        (_said(Status.ERROR, [4.5, 3.25], float("nan")), "rounding prevents nothing"),
        (_said(Status.RELAXED, [4.5, 3.25], 0.0), "status RELAXED"),
        (_said(Status.LIMIT, [4.5, 5.0], 1.75), "do not hold"),
    ],
)
def test_wrong_answers_are_found(said: Any, found: str | None) -> None:
    rules = _gap()
    case = Case(rules, torch.tensor([[4.5, 3.25]], dtype=torch.float64))
    sample = Sample(Problem.of(rules, None), [4.5, 3.25], [1.0, 1.0])
    told = list(judging._nearest_point(sample, judging.Answer(case, said, 0), "random"))
    if found is None:
        assert told == []
    else:
        assert any(found in sentence for sentence in told), told


def test_bounds_above_the_distance_are_found() -> None:
    sample = Sample(Problem.of(_gap(), None), [4.5, 3.25], [1.0, 1.0])
    assert list(judging._above(sample, 1.75)) == []
    assert "there is a point at 1.75" in next(judging._above(sample, 1.8))


def test_a_case_that_does_not_come_back_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = working.Worker()
    tally = worker.judge("float16", 0)
    assert tally is not None
    assert tally.samples == 4
    monkeypatch.setattr(working, "DEADLINE", 0.0)
    assert worker.judge("float16", 0) is None
    assert not worker.process.is_alive()
