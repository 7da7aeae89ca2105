"""Prices in the Pyomo chain: one more disjunct a rule, price times weight in the objective."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.gdp import Disjunct, Disjunction

import gdpnet
from gdpnet.relaxation import convexify, get_products, get_src_disjuncts, pyomo_model
from gdpnet.relaxation.pyomo.adapter import read_matrices
from gdpnet.testing import PROBLEMS, Problem, with_random_prices
from tests.relaxation._programs import value_at

RuleError = gdpnet.errors.RuleError


def gap(price: Any) -> Any:
    m = pyo.ConcreteModel()
    m.p = pyo.Param(mutable=True, initialize=2.0)
    m.y = pyo.Var(bounds=(0, 10))
    m.gap = Disjunction(expr=[[m.y <= 3], [m.y >= 7]])
    m.rule_price = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.rule_price[m.gap] = price(m) if callable(price) else price
    return m


@pytest.mark.parametrize(("price", "value"), [(1.0, 1.0), (2.0, 1.5), (0.0, 0.0), (math.inf, 1.5)])
def test_a_rule_may_be_bought_off(price: float, value: float) -> None:
    m = gap(price)
    lp = convexify(m, [m.y], yhat=[4.5])
    assert value_at(lp, [4.5]) == pytest.approx(value, abs=1e-9)
    assert len(m.gap.disjuncts) == 2, "the model itself is not changed"


def test_a_price_may_depend_on_params_and_be_set_anew() -> None:
    m = gap(lambda m: 0.5 * m.p)
    lp = convexify(m, [m.y], inputs=[m.p], yhat=[4.5])
    assert value_at(lp, [4.5]) == pytest.approx(1.0)
    lp.p = 8.0
    assert value_at(lp, [4.5]) == pytest.approx(1.5)
    matrices = read_matrices(lp)
    place = [param.name for param in matrices.params].index("p")
    values = matrices.values()
    values[place] = 6.0
    assert sorted(matrices.cost_at(values))[-1] == 3.0


def two() -> Any:
    """Two rules over one output, with prices of a rule and of disjuncts."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.first = Disjunction(expr=[[m.y <= 3], [m.y >= 6]])
    m.second = Disjunction(expr=[[m.y <= 2], [m.y >= 7]])
    m.rule_price = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.rule_price[m.first] = 0.25
    m.rule_price[m.second] = 4.0
    m.rule_price[m.second.disjuncts[0]] = 0.5
    return m


def test_a_product_costs_the_sum_of_its_members() -> None:
    m = two()
    pyo.TransformationFactory("gdpnet.basic_steps").apply_to(m, clusters=[[m.first, m.second]])
    broken = m.first.disjuncts[2]
    assert not list(broken.component_data_objects(pyo.Constraint))
    assert {len(get_src_disjuncts(p)) for p in get_products(broken)} == {2}
    pyo.TransformationFactory("gdpnet.lift_projection").apply_to(m, outputs=[m.y], yhat=[2.75])
    pyo.TransformationFactory("gdpnet.hull").apply_to(m)
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(m)
    # 2 costs 0.75 and 0.5; to stay costs 4, since the first rule holds at 2.75.
    assert value_at(m, [2.75]) == pytest.approx(1.25)
    # At 4: to 2 and 0.5, or 7 for 3; or both broken, 4.25.
    assert value_at(m, [4.0]) == pytest.approx(2.5)
    assert value_at(m, [6.5]) == pytest.approx(0.5)


def test_lift_and_hull_without_basic_steps() -> None:
    m = two()
    m.second.deactivate()
    pyo.TransformationFactory("gdpnet.lift_projection").apply_to(m, outputs=[m.y], yhat=[4.5])
    pyo.TransformationFactory("gdpnet.hull").apply_to(m)
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(m)
    assert value_at(m, [4.5]) == pytest.approx(0.25)
    assert value_at(m, [3.125]) == pytest.approx(0.125)


def nested() -> Any:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([0, 1], bounds=(0, 10))
    m.low, m.high = Disjunct(), Disjunct()
    m.low.row = pyo.Constraint(expr=m.y[0] <= 4)
    m.low.inner = Disjunction(expr=[[m.y[1] <= 1], [m.y[1] >= 9]])
    m.high.row = pyo.Constraint(expr=m.y[0] >= 8)
    m.outer = Disjunction(expr=[m.low, m.high])
    m.rule_price = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.rule_price[m.low.inner] = 2.0
    m.rule_price[m.high] = 0.5
    return m


@pytest.mark.parametrize("clusters", ["cnf", "dnf"])
def test_what_is_nested_costs_where_its_parent_is_chosen(clusters: str) -> None:
    m = nested()
    lp = convexify(m, [m.y], clusters=clusters)
    # (5, 5): 1 to the low side and 2 for its inner rule, or 3 to the high side and 0.5.
    assert value_at(lp, [5.0, 5.0]) == pytest.approx(3.0)
    assert value_at(lp, [6.5, 5.0]) == pytest.approx(2.0)
    assert value_at(lp, [1.0, 2.5]) == pytest.approx(1.5)
    assert value_at(lp, [9.0, 5.0]) == pytest.approx(0.5)


def conditional(within: bool) -> Any:
    """A conditional constraint with a price, by itself or in a disjunct."""
    m = pyo.ConcreteModel()
    m.p = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var(bounds=(0, 10))
    m.part = Disjunct()
    m.part.top = pyo.Constraint(expr=m.y <= 9)
    block = m.part if within else m
    block.when = pyo.Constraint(expr=m.y >= 6)
    m.rule = Disjunction(expr=[m.part])
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.active_when[block.when] = m.p >= 1
    m.rule_price = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.rule_price[block.when] = 0.75 * m.p
    return m


@pytest.mark.parametrize("clusters", ["cnf", "dnf"])
@pytest.mark.parametrize("within", [False, True])
def test_conditional_constraints(within: bool, clusters: str) -> None:
    m = conditional(within)
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    for p, yhat, value in ((1.0, 5.5, 0.5), (1.0, 4.0, 0.75), (2.0, 4.0, 1.5), (0.5, 4.0, 0.0)):
        lp = convexify(m, [m.y], inputs=[m.p], clusters=clusters, x=[p])
        assert value_at(lp, [yhat]) == pytest.approx(value, abs=1e-9)
        found = gdpnet.project(rules, [[yhat]], [[p]], relaxation=clusters, solver="extended")
        assert found.value.item() == pytest.approx(value, abs=1e-9)


def test_improper_steps() -> None:
    """A constraint merged into a rule holds where the rule is broken, too."""
    m = gap(1.0)
    m.cap = pyo.Constraint(expr=m.y <= 4)
    steps = pyo.TransformationFactory("gdpnet.basic_steps")
    steps.apply_to(m, clusters=[[m.gap, m.cap]])
    pyo.TransformationFactory("gdpnet.lift_projection").apply_to(m, outputs=[m.y])
    pyo.TransformationFactory("gdpnet.hull").apply_to(m)
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(m)
    assert value_at(m, [5.0]) == pytest.approx(2.0)
    assert value_at(m, [3.5]) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("price", "message"),
    [
        (-1.0, "rule_price of 'gap': expected a number from 0 on, got -1"),
        (math.nan, "rule_price of 'gap': expected a number from 0 on, got nan"),
        ("dear", "rule_price of 'gap': expected a number or an expression of Params, got 'dear'"),
    ],
)
def test_wrong_prices(price: Any, message: str) -> None:
    m = gap(price)
    with pytest.raises(RuleError, match=message):
        convexify(m, [m.y])


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_rebuilt_models_have_the_prices(problem: Problem) -> None:
    rules = with_random_prices(problem.rules(), np.random.default_rng(3))
    again = pyomo_model(rules)
    outputs = [again.find_component(name) for name in rules.output_names]
    inputs = [again.find_component(name) for name in rules.input_names]
    read = gdpnet.RuleModel(again, outputs, inputs, rules.data.input_bounds)

    def prices(data: Any) -> list[tuple[str, Any]]:
        every = [(data.price_of(k), data.booleans[k].price) for k in data.priced]
        return sorted(every, key=str)

    assert prices(read.data) == prices(rules.data)
    assert read.data.hard == rules.data.hard
