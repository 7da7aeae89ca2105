"""gdpnet.hull: what Pyomo's own hull freezes, refuses or gets wrong."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pyomo.environ as pyo
import pytest
from pyomo.gdp import Disjunct, Disjunction, GDP_Error

import gdpnet
from gdpnet.testing.oracles import solved
from tests.relaxation._programs import assert_same, matrix

HULL = "gdpnet.hull"


def base(p: float = 3.0, q: float = 2.0) -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.p = pyo.Param(mutable=True, initialize=p)
    m.q = pyo.Param(mutable=True, initialize=q)
    m.y = pyo.Var(bounds=(-10, 10))
    m.z = pyo.Var(bounds=(-5, 5))
    return m


def row(m: Any, expression: Any) -> Any:
    """A rule with the row in one disjunct, and something else in the other."""
    m.rule = Disjunction(expr=[[expression], [m.y >= 7.0, m.z == 1.0]])
    return m


# Where a Param may stand: each makes a model from the values of p and q.
PLACES: dict[str, Callable[[float, float], Any]] = {}


def place(build: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PLACES[build.__name__] = lambda p, q: build(base(p, q))
    return build


@place
def right_side(m: Any) -> Any:
    return row(m, m.y >= m.p)


@place
def ranged(m: Any) -> Any:
    return row(m, pyo.inequality(m.p, m.y + m.z, m.p + 3))


@place
def two_variables_equal(m: Any) -> Any:
    return row(m, m.y + m.z == m.p)


@place
def in_the_body(m: Any) -> Any:
    return row(m, m.y - m.p <= m.z)


@place
def coefficient(m: Any) -> Any:
    return row(m, m.p * m.y + m.z <= m.q * m.p)


@place
def equal_to_a_param(m: Any) -> Any:
    return row(m, m.y == m.p)


@place
def equal_with_the_param_in_the_body(m: Any) -> Any:
    return row(m, m.y - m.p == 0)


@place
def functions(m: Any) -> Any:
    step = pyo.Expr_if(IF=m.p >= 1, THEN=m.q, ELSE=0.5)
    return row(m, step * m.y + pyo.exp(m.q) * m.z <= gdpnet.maximum(m.p, 1, m.q**2) / 4)


@place
def named_expression(m: Any) -> Any:
    m.slope = pyo.Expression(expr=m.p - 1)
    m.left = pyo.Expression(expr=m.slope * m.y + m.q * m.z)
    return row(m, m.left <= m.slope + 2)


@place
def bound_of_a_var(m: Any) -> Any:
    m.y.setub(m.p)
    m.z.setlb(-m.q)
    m.rule = Disjunction(expr=[[m.y + m.z >= 1], [m.y <= -1]])
    return m


@place
def no_variable_at_all(m: Any) -> Any:
    return row(m, m.p <= 1.0)


@pytest.mark.parametrize("start", [(3.0, 2.0), (0.0, 0.0)], ids=["ordinary", "all zero"])
@pytest.mark.parametrize("name", PLACES)
def test_params_changed_after_the_hull(name: str, start: tuple[float, float]) -> None:
    """Every Param set anew gives the numbers of a fresh build, also one that was 0 before."""
    build = PLACES[name]
    m = build(*start)
    pyo.TransformationFactory(HULL).apply_to(m)
    for p, q in ((-1.5, 4.0), (0.0, 0.5), (2.5, -3.0)):
        m.p, m.q = p, q
        fresh = build(p, q)
        pyo.TransformationFactory(HULL).apply_to(fresh)
        assert_same(m, fresh)


DIRECTIONS = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 2), (-2, 1))


def optima(m: Any) -> list[float]:
    """Least value of several objectives over a transformed model, weights relaxed."""
    for variable in m.component_data_objects(pyo.Var, descend_into=(pyo.Block, Disjunct)):
        if variable.is_binary():
            variable.domain = pyo.UnitInterval
    found = []
    for one, two in DIRECTIONS:
        m.del_component("cost")
        m.cost = pyo.Objective(expr=one * m.y + two * m.z)
        assert solved(m)
        found.append(pyo.value(m.cost))
    return found


@pytest.mark.parametrize("name", ["right_side", "ranged", "two_variables_equal"])
def test_same_set_as_the_stock_hull(name: str) -> None:
    """Where Pyomo's own hull is right, both have the same optimum in every direction tried."""
    ours, stock = PLACES[name](3.0, 2.0), PLACES[name](3.0, 2.0)
    pyo.TransformationFactory(HULL).apply_to(ours)
    pyo.TransformationFactory("gdp.hull").apply_to(stock)
    assert optima(ours) == pytest.approx(optima(stock), abs=1e-8)


def nested_rule(p: float, q: float) -> Any:
    m = base(p, q)
    m.a, m.b = Disjunct(), Disjunct()
    m.a.row = pyo.Constraint(expr=m.y - m.p <= 0)
    m.a.inner = Disjunction(expr=[[m.q * m.z <= 1], [m.y + m.z == m.q]])
    m.b.row = pyo.Constraint(expr=m.y >= 2 * m.p)
    m.rule = Disjunction(expr=[m.a, m.b])
    return m


def test_nested_rules_keep_their_params() -> None:
    """Pyomo numbers the bounds of nested copies in no fixed order, so optima are compared."""
    ours = nested_rule(0.0, 0.0)
    pyo.TransformationFactory(HULL).apply_to(ours)
    for p, q in ((3.0, 2.0), (-1.5, 4.0), (2.5, -3.0)):
        ours.p, ours.q = p, q
        fresh = nested_rule(p, q)
        pyo.TransformationFactory("gdp.hull").apply_to(fresh)
        assert optima(ours) == pytest.approx(optima(fresh), abs=1e-8)


def test_the_source_var_keeps_its_param() -> None:
    m = base()
    m.y.setub(m.p)
    m.rule = Disjunction(expr=[[m.y <= 1], [m.y >= 2]])
    pyo.TransformationFactory(HULL).apply_to(m)
    m.p = 9.0
    assert m.y.ub == 9.0


def test_equal_to_zero_keeps_its_row() -> None:
    """Pyomo fixes the copy instead, and its column disappears from the matrix."""
    m = base()
    m.rule = Disjunction(expr=[[m.y == 0], [m.z >= 1]])
    hull = pyo.TransformationFactory(HULL)
    hull.apply_to(m)
    source = m.rule.disjuncts[0].constraint[1]
    assert not hull.get_disaggregated_var(m.y, m.rule.disjuncts[0]).fixed
    (written,) = hull.get_transformed_constraints(source)
    assert written.active
    assert hull.get_src_constraint(written) is source


def test_a_fixed_var_is_a_constant_that_may_change() -> None:
    m = base()
    m.seen = pyo.Var()
    m.seen.fix(5.0)
    m.eta = pyo.Var(bounds=(0, 20))
    m.rule = Disjunction(
        expr=[
            [limit, m.y - m.seen <= m.eta, m.seen - m.y <= m.eta] for limit in (m.y <= 3, m.y >= 7)
        ]
    )
    m.cost = pyo.Objective(expr=m.eta)
    pyo.TransformationFactory(HULL).apply_to(m)
    for seen, cost in ((5.0, 2.0), (4.5, 1.5), (9.0, 0.0)):
        m.seen.fix(seen)
        for variable in m.component_data_objects(pyo.Var, descend_into=(pyo.Block, Disjunct)):
            if variable.is_binary():
                variable.domain = pyo.UnitInterval
        assert solved(m)
        assert pyo.value(m.cost) == pytest.approx(cost)


def test_nonlinear_rows_are_refused_by_name_and_nothing_is_changed() -> None:
    m = base()
    m.rule = Disjunction(expr=[[m.y <= 3], [m.y * m.z >= 7]])
    before = len(list(m.component_objects()))
    with pytest.raises(GDP_Error, match=r"rule_disjuncts\[1\].constraint\[1\].*neither convex nor concave"):
        pyo.TransformationFactory(HULL).apply_to(m)
    assert len(list(m.component_objects())) == before
    assert m.rule.active
    assert all(d.active for d in m.rule.disjuncts)


def test_missing_bounds_are_named_all_at_once() -> None:
    m = base()
    m.free = pyo.Var(range(2))
    m.half = pyo.Var(domain=pyo.NonNegativeReals)
    m.rule = Disjunction(expr=[[m.free[0] + m.half <= 3], [m.free[1] >= 7, m.y <= 0]])
    with pytest.raises(GDP_Error) as caught:
        pyo.TransformationFactory(HULL).apply_to(m)
    message = str(caught.value)
    for part in ("'free[0]' (lower and upper)", "'free[1]'", "'half' (upper)", "setub", "fbbt"):
        assert part in message
    assert "'y'" not in message


def test_symbolic_bounds_in_nested_rules_are_refused() -> None:
    m = base()
    m.y.setub(m.p)
    m.a, m.b = Disjunct(), Disjunct()
    m.a.inner = Disjunction(expr=[[m.y <= 1], [m.y >= 2]])
    m.rule = Disjunction(expr=[m.a, m.b])
    with pytest.raises(gdpnet.errors.RuleError, match=r"'y'.*nested.*basic_steps"):
        pyo.TransformationFactory(HULL).apply_to(m)


def test_targets_and_create_using() -> None:
    m = base()
    m.one = Disjunction(expr=[[m.y <= m.p], [m.y >= 7]])
    m.two = Disjunction(expr=[[m.z <= 0], [m.z >= m.q]])
    made = pyo.TransformationFactory(HULL).create_using(m, targets=[m.one])
    assert m.one.active
    assert not made.one.active
    assert made.two.active
    assert made.two.disjuncts[0].active
    pyo.TransformationFactory("gdp.bigm").apply_to(made)
    assert matrix(made)


def test_transforming_is_silent(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        m = PLACES["functions"](3.0, 2.0)
        pyo.TransformationFactory(HULL).apply_to(m)
    assert not caplog.records
