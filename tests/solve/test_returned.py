"""What is returned holds, in the type it is returned in."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet import Status
from tests.fuzz.judge import case_of
from tests.fuzz.oracle import Problem, Sample

DOUBLE = torch.float64


def names(projection: Any) -> list[str]:
    return [Status(int(code)).name for code in projection.status.flatten()]


def gap(width: float = 1e6) -> gdpnet.RuleModel:
    """Two pressures that may differ by 0.3 at most, or the first is low."""
    m = pyo.ConcreteModel()
    m.p = pyo.Var(range(2), bounds=(0, width))
    m.r = Disjunction(expr=[[m.p[0] - m.p[1] <= 0.3], [m.p[0] <= 1000]])
    return gdpnet.RuleModel(m, outputs=[m.p])


# ---- integers ------------------------------------------------------------------------------


@pytest.fixture(params=["in a rule", "in no rule"])
def integer(request: pytest.FixtureRequest) -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.n = pyo.Var(domain=pyo.Integers, bounds=(-(2**50), 2**50))
    m.u = pyo.Var(bounds=(0, 1))
    if request.param == "in a rule":
        m.r = Disjunction(expr=[[m.n <= 3], [m.n >= 7]])
    else:
        m.r = Disjunction(expr=[[m.u <= 0.3], [m.u >= 0.7]])
    return gdpnet.RuleModel(m, outputs=[m.n, m.u])


@pytest.mark.parametrize(
    "keywords",
    [{}, {"solver": gdpnet.solve.Exact(tie="least_norm")}, {"strict": True}, {"solver": "milp"}],
)
@pytest.mark.parametrize(
    "value",
    [2.0000000001, -7.0000000001, 1e6 + 0.5, 1e9 + 0.5, 1e10 + 0.5, 1e12 + 0.25, 1e15 + 0.5],
)
def test_integer_outputs_are_whole(
    integer: gdpnet.RuleModel, value: float, keywords: dict[str, Any]
) -> None:
    p = gdpnet.project(integer, torch.tensor([[value, 0.0]], dtype=DOUBLE), **keywords)
    n = p.y[0, 0].item()
    assert n == round(n)
    assert p.distance.item() == abs(n - value) <= 0.5
    # A solver's proof is worth little beside large numbers.
    doubted = keywords.get("solver") == "milp" and value > 1e9
    assert names(p) == ["LIMIT" if doubted else "PROJECTED"]
    assert integer.satisfied(p.y, tol=0.0).item()


def test_integers_behind_rows_with_large_numbers() -> None:
    m = pyo.ConcreteModel()
    m.n = pyo.Var(domain=pyo.Integers, bounds=(-(2**50), 2**50))
    m.u = pyo.Var(bounds=(0, 2**50))
    m.above = pyo.Constraint(expr=m.n - m.u >= 0.25)
    m.least = pyo.Constraint(expr=m.n >= 10**10 + 0.5)
    rules = gdpnet.RuleModel(m, outputs=[m.n, m.u])
    p = gdpnet.project(rules, torch.tensor([[7.3, 7.5], [3e11 + 0.75, 3e11 + 0.95]], dtype=DOUBLE))
    assert p.y.tolist() == [[10**10 + 1, 7.5], [3e11 + 1, 3e11 + 0.75]]
    assert names(p) == ["PROJECTED"] * 2


# ---- large numbers -------------------------------------------------------------------------


def test_large_predictions_hold_or_say_that_they_cannot() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2))
    m.r = Disjunction(expr=[[m.y[0] + m.y[1] <= 1], [m.y[0] - m.y[1] == 3]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    size = torch.tensor([1e3, 1e15, 1e16, 1e17, 1e20], dtype=DOUBLE)
    p = gdpnet.project(rules, size[:, None].expand(-1, 2))
    assert names(p) == ["PROJECTED", "PROJECTED", "ERROR", "ERROR", "ERROR"]
    broken = rules.violation(p.y).amax(1)
    assert torch.equal(broken > 1e-9, p.status == Status.ERROR)
    assert torch.equal(p.info.rounding, torch.where(broken > 1e-9, broken, 0.0))
    assert p.distance.isfinite().all()
    strict = gdpnet.project(rules, size[:, None].expand(-1, 2), strict=True)
    assert strict.info.strict.tolist() == [True, True, False, False, False]


def test_random_large_predictions_are_never_broken_in_silence() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2))
    m.q = Disjunction(expr=[[m.y[0] - 2 * m.y[1] <= 0.3], [m.y[0] <= -1], [3 * m.y[1] == 1]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    rng = np.random.default_rng(5)
    yhat = torch.from_numpy(
        rng.choice([-1.0, 1.0], (400, 2)) * 10.0 ** rng.uniform(0, 19, (400, 2))
    )
    p = gdpnet.project(rules, yhat)
    claimed = (p.status == Status.SATISFIED) | (p.status == Status.PROJECTED)
    assert claimed.sum() > 350
    assert rules.satisfied(p.y[claimed], tol=1e-9).all()
    exact = p.y[(p.status == Status.PROJECTED)]
    assert len(exact) > 50


# ---- small types ---------------------------------------------------------------------------


@pytest.mark.parametrize("keywords", [{}, {"solver": "milp"}, {"strict": True}])
def test_float32_holds_at_ordinary_sizes(keywords: dict[str, Any]) -> None:
    rules = gap()
    count = 60 if "solver" in keywords else 1000
    yhat = 2e5 + 5e5 * torch.rand(count, 2, generator=torch.Generator().manual_seed(0))
    p = gdpnet.project(rules, yhat, **keywords)
    assert p.y.dtype is torch.float32
    moved = p.status == Status.PROJECTED
    assert moved.sum() > count / 3
    assert rules.satisfied(p.y).all()  # within 1e-6, the tolerance of float32
    exact = gdpnet.project(rules, yhat.double())
    # One or two units in the last place further away.
    assert ((p.distance.double() - exact.distance).abs() <= 0.13).all()


def test_an_equality_that_float32_cannot_hold_is_an_error_with_its_size() -> None:
    m = pyo.ConcreteModel()
    m.p = pyo.Var(range(2), bounds=(0, 1e6))
    m.r = pyo.Constraint(expr=m.p[0] - m.p[1] == 0.3)
    rules = gdpnet.RuleModel(m, outputs=[m.p])
    p = gdpnet.project(rules, torch.tensor([[4e5, 3e5], [1.0, 1.0]]))
    assert names(p) == ["ERROR", "PROJECTED"]
    assert p.info.rounding.tolist() == pytest.approx([0.0125, 0.0])
    assert p.y[0].tolist() == [300000.3125, 300000.0]  # a nearest point, rounded
    assert p.value[0].item() == pytest.approx(99999.7)
    assert "info.rounding" in Status.ERROR.message


def test_float32_relaxations_are_judged_as_returned() -> None:
    rules = gap()
    yhat = 2e5 + 5e5 * torch.rand(200, 2, generator=torch.Generator().manual_seed(1))
    p = gdpnet.project(rules, yhat, relaxation="cnf")
    claimed = (p.status == Status.SATISFIED) | (p.status == Status.PROJECTED)
    assert rules.satisfied(p.y[claimed]).all()
    assert (p.status == Status.RELAXED).any()


def test_strict_gives_away_nothing_in_float16() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.gap = Disjunction(expr=[[m.y <= 3], [m.y >= 7]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    yhat = torch.tensor([[3.002], [6.99], [5.0]], dtype=torch.float16)
    p = gdpnet.project(rules, yhat, strict=True)
    assert p.y.flatten().tolist() == [3.0, 7.0, 3.0]
    assert p.info.strict.all()


# ---- small rows ----------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["exact", "milp", "highs", "extended"])
@pytest.mark.parametrize("size", [1e-5, 1e-7, 1e-9, 1e-12])
def test_rows_in_small_units_count(solver: str, size: float) -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.r = Disjunction(expr=[[size * m.y <= 3 * size], [size * m.y >= 7 * size]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    p = gdpnet.project(rules, torch.tensor([[4.5], [2.0]], dtype=DOUBLE), solver=solver)
    assert p.y.flatten().tolist() == pytest.approx([3.0, 2.0], abs=1e-12)
    assert names(p) == ["PROJECTED", "SATISFIED"]


# ---- balances ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("auxiliary", [False, True])
def test_balances_of_large_flows_hold_in_small_types(dtype: torch.dtype, auxiliary: bool) -> None:
    """Two balances that share a flow, an inequality beside them, and flows of some thousands."""
    m = pyo.ConcreteModel()
    m.f = pyo.Var(range(5), bounds=(0, 9000))
    m.loss = pyo.Var(bounds=(0, 500))
    m.first = pyo.Constraint(expr=m.f[0] + m.f[1] - m.f[2] == 0)
    m.second = pyo.Constraint(expr=m.f[2] - m.f[3] - 2 * m.f[4] == (m.loss if auxiliary else 0))
    m.r = Disjunction(expr=[[m.f[0] - m.f[3] <= 0.3], [m.f[4] >= 3000.7]])
    rules = gdpnet.RuleModel(m, outputs=[m.f])
    yhat = 4000 * torch.rand(300, 5, generator=torch.Generator().manual_seed(3))
    p = gdpnet.project(rules, yhat.to(dtype))
    projected, error = p.status == Status.PROJECTED, p.status == Status.ERROR
    assert (projected | error).all()
    assert error.sum() <= (0 if dtype is torch.float32 else 5)  # eight bits are few
    tolerance = {torch.float32: 1e-6, torch.bfloat16: 2e-2}[dtype]
    assert rules.satisfied(p.y[projected].double(), tol=tolerance).all()
    exact = gdpnet.project(rules, yhat.to(dtype).double())
    further = (p.distance.double() - exact.distance)[projected]
    few = 40 * torch.finfo(dtype).eps * 4000  # units in the last place of the flows
    assert (further.abs() <= few).all()


def test_what_is_returned_does_not_depend_on_the_samples_beside_it() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2))
    m.r = Disjunction(expr=[[3 * m.y[0] + m.y[1] == 0], [m.y[1] >= 8]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    rng = np.random.default_rng(2)
    yhat = -torch.from_numpy(10.0 ** rng.uniform(4, 11, (64, 2)))
    together = gdpnet.project(rules, yhat)
    alone = torch.cat([gdpnet.project(rules, one).y for one in yhat.split(1)])
    assert torch.equal(together.y, alone)
    assert (together.status == Status.PROJECTED).all()


def test_rules_that_a_prediction_drowns_are_not_said_to_hold() -> None:
    """Predictions of 1e16 and no bounds: a point that broke a rule by 0.5 was PROJECTED."""
    case = case_of("large_predictions", 60006)
    for strict in (False, True):
        p = gdpnet.project(case.rules, case.yhat, case.x, strict=strict)
        claimed = (p.status == Status.PROJECTED) | (p.status == Status.SATISFIED)
        assert claimed.tolist() == [True, False, True, True]
        assert case.rules.satisfied(p.y[claimed], tol=1e-9).all()


@pytest.mark.parametrize("strict", [False, True])
def test_rules_are_judged_at_the_point_that_is_kept(strict: bool) -> None:
    """Steps beside 5e16 had lost the digits in which the second rule is broken."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(3))
    y = m.y
    m.r = Disjunction(
        expr=[
            [-2 * y[0] + 2 * y[1] - 3 * y[2] <= 3, 2 * y[0] - 3 * y[1] + 3 * y[2] <= 1],
            [3 * y[0] + y[1] - 3 * y[2] == -1, -2 * y[0] + 3 * y[2] >= 8],
        ]
    )
    m.q = Disjunction(expr=[[y[0] + 2 * y[1] - y[2] <= -2]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    yhat = torch.tensor([[1.793002593093084, -4.8149e16, -5.6360e16]], dtype=DOUBLE)
    p = gdpnet.project(rules, yhat, strict=strict)
    assert names(p) == ["PROJECTED"]
    assert rules.satisfied(p.y, tol=1e-9).all()
    assert not strict or bool(p.info.strict)
    # The vertex of all three rows: y1 >= -4 follows from the first two.
    assert p.y[0].tolist() == pytest.approx([1.4, -4.0, -4.6], abs=1e-12)


# ---- strict --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [60007, 80012])
def test_margins_of_one_disjunct_do_not_push_another(seed: int) -> None:
    """Products that hold within a tolerance only asked for margins that the next one kept.

    The nearest point is that of the rules with each row tightened by a few units in its last
    place: between rows that differ by 1e-9 this alone is 4e-5.
    """
    case = case_of("parallel", seed)
    p = gdpnet.project(case.rules, case.yhat, strict=True)
    strict = p.info.strict
    assert strict.sum() >= 3
    problem = Problem.of(case.rules, None)

    def tighter(row: int) -> Fraction:
        a, b = problem.rows[row]
        return -8 * Fraction(2.0**-52) * (abs(b) + 20 * sum(abs(c) for c in a.values()))

    for yhat, own in zip(case.yhat[strict], p.distance[strict].tolist(), strict=True):
        sample = Sample(problem, yhat.tolist(), [1.0, 1.0])
        assert float(sample.nearest) * (1 - 1e-9) <= own
        assert own <= float(sample.relaxed(tighter, "tighter")) * (1 + 1e-9)
