"""Models that use pyomo.dae, pyomo.network, units, or were transformed already."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo
import pytest
from pyomo.core.base.units_container import _PyomoUnit
from pyomo.dae import ContinuousSet, DerivativeVar, Integral
from pyomo.gdp import Disjunct, Disjunction
from pyomo.network import Arc, Port

import gdpnet
from gdpnet.testing import oracles

# ---- pyomo.dae --------------------------------------------------------------------------------


def dynamic() -> Any:
    m = pyo.ConcreteModel()
    m.t = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(m.t, bounds=(0, 10))
    m.u = pyo.Var(m.t, bounds=(0, 5))
    m.dx = DerivativeVar(m.x, bounds=(-10, 10))
    m.ode = pyo.Constraint(m.t, rule=lambda m, t: m.dx[t] == m.u[t] - m.x[t])
    m.d = Disjunction(expr=[[m.x[1] <= 2], [m.x[1] >= 4]])
    return m


@pytest.mark.parametrize("scheme", ["dae.finite_difference", "dae.collocation"])
def test_a_discretised_model_is_an_ordinary_one(scheme: str) -> None:
    m = dynamic()
    pyo.TransformationFactory(scheme).apply_to(m, nfe=3)
    outputs = list(m.x.values())
    rules = gdpnet.RuleModel(m, outputs=outputs)
    yhat = [3.0] * len(outputs)
    wanted = oracles.pyomo_distance(m, [v.name for v in outputs], yhat)
    assert wanted > 0.5
    assert gdpnet.project(rules, yhat).distance.item() == pytest.approx(wanted, abs=1e-6)


def test_a_model_that_is_not_discretised_is_told_how() -> None:
    m = dynamic()
    with pytest.raises(gdpnet.errors.RuleError) as caught:
        gdpnet.RuleModel(m, outputs=[m.x])
    assert str(caught.value) == (
        "'t' is a ContinuousSet, which gdpnet does not understand. Discretise it first: "
        "pyo.TransformationFactory('dae.finite_difference') or "
        "pyo.TransformationFactory('dae.collocation'), .apply_to(model). "
        "1 more obstacle (dx): gdpnet.check(model) lists all."
    )


def test_an_integral_has_the_right_article() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 1))
    m.b = pyo.Block()
    time = ContinuousSet(bounds=(0, 1))
    m.b.time = time
    m.b.total = Integral(time, wrt=time, rule=lambda b, t: m.y)
    m.b.del_component(time)
    with pytest.raises(
        gdpnet.errors.RuleError, match=r"'b\.total' is an Integral.*dae\.collocation"
    ):
        gdpnet.RuleModel(m, outputs=[m.y])


# ---- pyomo.network ----------------------------------------------------------------------------


def test_arcs_are_told_to_expand_and_read_once_they_are() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 10))
    m.left, m.right = Port(), Port()
    m.left.add(m.y[0], "flow")
    m.right.add(m.y[1], "flow")
    m.pipe = Arc(source=m.left, destination=m.right)
    m.d = Disjunction(expr=[[m.y[0] <= 3], [m.y[0] >= 7]])
    with pytest.raises(gdpnet.errors.RuleError) as caught:
        gdpnet.RuleModel(m, outputs=[m.y])
    assert str(caught.value) == (
        "'pipe' is an Arc, which gdpnet does not understand. Expand it first: "
        "pyo.TransformationFactory('network.expand_arcs').apply_to(model)."
    )
    pyo.TransformationFactory("network.expand_arcs").apply_to(m)
    p = gdpnet.project(gdpnet.RuleModel(m, outputs=[m.y]), [4.0, 3.0])
    assert p.y.tolist() == [3.0, 3.0]


# ---- units --------------------------------------------------------------------------------------

# Made by hand: Pyomo's container of units needs pint, which nothing else here does.
KG, HOUR = _PyomoUnit("kg", "registry"), _PyomoUnit("h", "registry")


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (3 * KG, 7 * KG),
        (3 * KG / HOUR, 7.0 * (KG / HOUR)),
        (3 * KG * HOUR**-1, 7 * KG**2 / KG / HOUR),
        (KG + 2 * KG, KG * 8 - KG),
    ],
    ids=["product", "quotient", "power", "sum"],
)
def test_units_count_as_one(low: Any, high: Any) -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0 * KG, 10 * KG))
    m.d = Disjunction(expr=[[m.y <= low], [m.y * HOUR / HOUR >= high]])
    m.e = pyo.Expression(expr=m.y * (KG / HOUR))
    m.c = pyo.Constraint(expr=m.e <= 9 * KG / HOUR)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    assert gdpnet.project(rules, [[4.5], [9.5]]).y.tolist() == [[3.0], [9.0]]
    assert "y <= 3 or y >= 7" in repr(rules)


def test_units_of_inputs_and_conditions() -> None:
    m = pyo.ConcreteModel()
    m.p = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var(bounds=(0, 10))
    m.d = Disjunction(expr=[[m.y <= m.p * KG], [m.y >= 7 * KG]])
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.active_when[m.d] = m.p * KG >= 2 * KG
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    p = gdpnet.project(rules, [[4.5], [4.5]], [[1.0], [2.5]])
    assert p.y.tolist() == [[4.5], [2.5]]


# ---- transformed already ------------------------------------------------------------------------


def gap() -> Any:
    m = pyo.ConcreteModel("gap")
    m.y = pyo.Var(range(2), bounds=(0, 10))
    m.low, m.high = Disjunct(range(2)), Disjunct(range(2))
    for i in range(2):
        m.low[i].c = pyo.Constraint(expr=m.y[i] <= 3)
        m.high[i].c = pyo.Constraint(expr=m.y[i] >= 7)
    m.d = Disjunction(range(2), rule=lambda m, i: [m.low[i], m.high[i]])
    return m


@pytest.mark.parametrize("name", ["bigm", "hull", "mbigm"])
@pytest.mark.parametrize("in_block", [False, True])
def test_a_transformed_model_is_told(name: str, in_block: bool) -> None:
    m = gap()
    options = {"solver": pyo.SolverFactory("appsi_highs")} if name == "mbigm" else {}
    pyo.TransformationFactory(f"gdp.{name}").apply_to(m, **options)
    y = m.y
    if in_block:
        outer = pyo.ConcreteModel("plant")
        outer.unit = m
        m = outer
    with pytest.raises(
        gdpnet.errors.RuleError, match=rf"transformed by gdp\.{name}.*before the transf"
    ):
        gdpnet.RuleModel(m, outputs=[y])


def test_a_transformed_part_is_rows() -> None:
    m = gap()
    pyo.TransformationFactory("gdp.bigm").apply_to(m, targets=[m.d[0]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    assert rules.names == ("d[1]",)
    assert gdpnet.project(rules, [4.5, 6.0]).y.tolist() == pytest.approx([3.0, 7.0])


# ---- how many rows are not convex ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (1, None),
        (2, "1 more obstacle (c[1]): gdpnet.check(model) lists all."),
        (4, "3 more obstacles (c[1], c[2], c[3]): gdpnet.check(model) lists all."),
        (9, "8 more obstacles (c[1], c[2], c[3], ...): gdpnet.check(model) lists all."),
    ],
)
def test_nonconvex_rows_are_counted(count: int, said: str | None) -> None:
    m = gap()
    m.ok = pyo.Constraint(expr=m.y[0] + m.y[1] <= 15)
    m.c = pyo.Constraint(range(count), rule=lambda m, i: m.y[0] * m.y[1] >= i)
    with pytest.raises(gdpnet.errors.RuleError) as caught:
        gdpnet.RuleModel(m, outputs=[m.y])
    text = str(caught.value)
    assert text.startswith("Constraint 'c[0]': 'y[0]*y[1]' makes it neither convex nor concave")
    assert ("more obstacle" in text) == (said is not None)
    assert said is None or text.endswith(said)
