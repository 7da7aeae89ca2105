"""Prices and importances as data: what is read, written, described, and refused."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunct, Disjunction

import gdpnet
from gdpnet.ir.instance import Instance
from gdpnet.ir.linear import Coefficient

RuleError = gdpnet.errors.RuleError


def base() -> Any:
    m = pyo.ConcreteModel("m")
    m.p = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var(range(2), bounds=(0, 10))
    m.gap = Disjunction(expr=[[m.y[0] <= 3], [m.y[0] >= 7]])
    m.d = Disjunct([0, 1])
    m.d[0].c = pyo.Constraint(expr=m.y[1] <= 2)
    m.d[1].c = pyo.Constraint(expr=m.y[1] >= 4)
    m.d[1].inner = Disjunction(expr=[[m.y[0] <= 1], [m.y[0] >= 2]])
    m.side = Disjunction(expr=[m.d[0], m.d[1]])
    m.cap = pyo.Constraint(expr=m.y[0] + m.y[1] <= 12)
    m.when = pyo.Constraint(expr=m.y[0] >= m.y[1])
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.active_when[m.when] = m.p >= 2
    return m


def read(m: Any, **given: Any) -> gdpnet.RuleModel:
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p], **given)


def prices(rules: gdpnet.RuleModel) -> dict[str, float]:
    return {b.name: b.price.number for b in rules.data.booleans if not b.price.is_zero}


def priced() -> gdpnet.RuleModel:
    m = base()
    m.rule_price = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    for component, price in ((m.gap, 0.5), (m.d[1], 2), (m.d[1].inner, 3), (m.when, 0.1 * m.p)):
        m.rule_price[component] = price
    m.rule_importance = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.rule_importance[m.side] = 4
    return read(m)


def test_what_is_read() -> None:
    data = priced().data
    by_name = {clause.name: clause for clause in data.clauses}
    gap, inner, when = by_name["gap"], by_name["d[1].inner"], by_name["when"]
    for clause, price in ((gap, Coefficient(0.5)), (inner, Coefficient(3.0))):
        breaking = data.booleans[clause.breaking]
        assert clause.literals[-1] == clause.breaking + 1
        assert breaking.price == price
        assert breaking.true_rows == breaking.false_rows == ()
        assert len(clause.disjuncts) == 2
    assert data.booleans[when.breaking].price == Coefficient(0.0, {("input", 0): 0.1})
    assert by_name["side"].breaking == -1
    assert data.booleans[by_name["side"].literals[1] - 1].price == Coefficient(2.0)
    assert [rule.importance for rule in data.rules] == [1.0, 4.0, 1.0]
    assert [rule.positions for rule in data.rules] == [(0, 1, -1), (0, 1), (0, -1)]
    assert data.hard == (False, True, False)


def test_prices_at_inputs_by_core_and_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = priced()
    x = np.array([[1.0], [5.0]])
    # In the order of the booleans; that of an inactive rule is nothing.
    wanted = [[0.5, 2.0, 3.0, 0.0], [0.5, 2.0, 3.0, 0.5]]
    assert sorted(Instance.of(rules, x).price[1].tolist()) == sorted(wanted[1])
    found = Instance.of(rules, x)
    assert found.finite
    monkeypatch.setattr("gdpnet.core.AVAILABLE", False)
    other = Instance.of(rules, x)
    assert np.array_equal(found.price, other.price)
    names = [rules.data.booleans[k].name for k in rules.data.priced]
    assert dict(zip(names, found.price[0], strict=True))["when is broken"] == 0.0
    given = torch.from_numpy(x).requires_grad_()
    rules.evaluate(given).prices.sum().backward()
    assert given.grad is not None
    assert given.grad.flatten().tolist() == [0.0, 0.1]


def test_satisfied_counts_hard_rules_and_violation_all() -> None:
    rules = priced()
    # gap is broken, side holds, inner holds; then side is broken as well.
    y, x = [[5.0, 1.0], [5.0, 3.0]], [[1.0], [1.0]]
    assert rules.satisfied(y, x).tolist() == [True, False]
    assert (rules.violation(y, x)[:, 0] > 0.1).all()
    # A nested rule that may be broken keeps no disjunct from holding.
    assert rules.satisfied([[1.5, 5.0]], [[1.0]]).tolist() == [True]
    assert rules.violation([[1.5, 5.0]], [[1.0]])[0].tolist() == [0.0, 0.0, 0.0]
    assert rules.global_violation([[5.0, 1.0]], [[1.0]]).tolist() == [0.0]


def test_satisfied_with_auxiliaries_and_logic() -> None:
    m = base()
    m.z = pyo.Var(bounds=(0, 10))
    m.link = pyo.Constraint(expr=m.z == m.y[0])
    m.far = Disjunction(expr=[[m.z <= 1], [m.z >= 9]])
    rules = read(m, prices={m.far: 1.0, m.gap: 1.0})
    assert rules.satisfied([[5.0, 1.0]], [[1.0]]).tolist() == [True]
    violation = rules.violation([[5.0, 1.0], [0.5, 1.0]], [[1.0], [1.0]])
    assert violation[0, rules.names.index("far")] > 0.3
    assert (violation[1] == 0.0).all()
    m = base()
    m.choose = pyo.LogicalConstraint(expr=m.gap.disjuncts[0].indicator_var.lor(
        m.d[0].indicator_var))  # fmt: skip
    rules = read(m, prices={m.gap: 1.0})
    assert rules.satisfied([[5.0, 1.0], [5.0, 5.0]], [[1.0]] * 2).tolist() == [True, False]


def test_texts() -> None:
    text = str(priced())
    assert "gap: y[0] <= 3 or y[0] >= 7 or broken for 0.5\n" in text
    assert "d[1] (y[1] >= 4 and (y[0] <= 1 or y[0] >= 2 or broken for 3)) for 2" in text
    assert "side: d[0] (y[1] <= 2) or " in text
    assert "(importance 4)\n" in text
    assert "when: if p >= 2: -y[0] + y[1] <= 0 or broken for 0.1*p" in text


def test_files(tmp_path: Path) -> None:
    rules = priced()
    rules.save(tmp_path / "rules.json")
    content = json.loads((tmp_path / "rules.json").read_text())
    assert content["version"] == 4
    loaded = gdpnet.load_rules(tmp_path / "rules.json")
    assert loaded.data == rules.data
    assert loaded.fingerprint == rules.fingerprint
    assert str(loaded) == str(rules)
    plain = read(base())
    assert plain.fingerprint != rules.fingerprint
    plain.save(tmp_path / "plain.json")
    assert json.loads((tmp_path / "plain.json").read_text())["version"] == 2


DAMAGE: dict[str, tuple[Callable[[Any], Any], str]] = {
    "negative": (lambda c: c["booleans"][2].update(price=[-1.0]), "number from 0 on"),
    "no number": (lambda c: c["booleans"][2].update(price=[]), "expected a number"),
    "missing": (lambda c: c["booleans"][2].pop("price"), "'price' is missing"),
    "another literal": (lambda c: c["clauses"][0].update(breaking=0), "last literal"),
    "rows": (lambda c: c["booleans"][2].update(true=[0]), "of what breaks a rule"),
    "importance": (lambda c: c["rules"][0].update(importance=0), "positive number"),
    "positions": (lambda c: c["rules"][0].update(positions=[0, 1, 2]), "-1 for what breaks"),
    "format 3": (lambda c: c.update(version=3), "'price' is not known"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_files(name: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    priced().save(path)
    content = json.loads(path.read_text())
    edit, said = DAMAGE[name]
    edit(content)
    path.write_text(json.dumps(content))
    with pytest.raises(RuleError, match=said):
        gdpnet.load_rules(path)


# ---- where prices are found ----------------------------------------------------------------------


def test_keyword_before_suffix_and_member_before_container() -> None:
    m = base()
    m.rule_price = pyo.Suffix()
    m.rule_price[m.gap], m.rule_price[m.d] = 1, 2
    m.d[1].rule_price = pyo.Suffix()
    m.d[1].rule_price[m.d[1].inner] = 7
    m.rule_price[m.d[0]] = 3
    assert prices(read(m)) == {
        "gap is broken": 1.0, "d[0]": 3.0, "d[1]": 2.0, "d[1].inner is broken": 7.0
    }  # fmt: skip
    found = prices(read(m, prices={m.gap: 5, "d[1].inner": 6}))
    assert found["gap is broken"] == 5.0
    assert found["d[1].inner is broken"] == 6.0
    m.rule_price.deactivate()
    assert prices(read(m)) == {"d[1].inner is broken": 7.0}


def test_a_block_of_a_model_has_prices_from_above() -> None:
    m = pyo.ConcreteModel()
    m.b = pyo.Block([0, 1])
    for k in m.b:
        m.b[k].y = pyo.Var(bounds=(0, 1))
        m.b[k].r = Disjunction(expr=[[m.b[k].y <= 0.2], [m.b[k].y >= 0.8]])
    m.rule_price = pyo.Suffix()
    m.rule_price[m.b[0].r], m.rule_price[m.b[1].r] = 1, 2
    rules = gdpnet.RuleModel(m.b[1], outputs=[m.b[1].y])
    assert prices(rules) == {"b[1].r is broken": 2.0}


def test_a_component_of_that_name_that_is_no_suffix_is_left_alone() -> None:
    m = base()
    m.rule_price = pyo.Param(initialize=3.0)
    assert prices(read(m)) == {}
    with pytest.raises(RuleError, match="'rule_price' is a Param"):
        m.more = gdpnet.rule(m.y[0] <= 1, price=2)


def test_formulas() -> None:
    m = base()
    both = gdpnet.all_of(m.y[0] <= 4, gdpnet.any_of(m.y[1] <= 1, m.y[1] >= 9))
    m.both = gdpnet.rule(both, when=m.p <= 3, price=1 + m.p, importance=2)
    rules = read(m)
    assert prices(rules) == {"both[0] is broken": 1.0, "both[1] is broken": 1.0}
    assert [r.importance for r in rules.data.rules if r.name.startswith("both")] == [2.0, 2.0]
    price = Instance.of(rules, np.array([[2.0], [4.0]])).price
    assert price.tolist() == [[3.0, 3.0], [0.0, 0.0]]


def test_zero_is_listed_and_infinity_is_hard() -> None:
    m = base()
    rules = read(m, prices={m.gap: 0, m.side: math.inf})
    assert rules.data.hard == (False, True, True)
    assert rules.data.priced == ()
    assert "broken for 0" in str(rules)
    assert rules.satisfied([[5.0, 1.0]], [[0.0]]).tolist() == [True]


def test_a_fixed_or_inactive_disjunct_may_have_a_price() -> None:
    m = base()
    m.d[1].deactivate()
    assert prices(read(m, prices={m.d[1]: 5})) == {}
    m = base()
    m.d[0].indicator_var.fix(False)
    assert prices(read(m, prices={m.d: 5})) == {"d[1]": 5.0}


# ---- what is refused -----------------------------------------------------------------------------

WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "negative": (lambda m: {m.gap: -1}, "price of 'gap': expected a number from 0 on, got -1"),
    "nan": (lambda m: {m.gap: math.nan}, "price of 'gap': expected a number from 0 on, got nan"),
    "minus infinity": (lambda m: {m.gap: -math.inf}, "price of 'gap': expected a number from 0"),
    "text": (lambda m: {m.gap: "2"}, "price of 'gap': expected a number or an expression"),
    "none": (lambda m: {m.gap: None}, "prices: expected a price for 'gap', got None"),
    "a Var": (lambda m: {m.gap: m.y[0]}, "price of 'gap' depends on a Var"),
    "infinite disjunct": (lambda m: {m.d[0]: math.inf}, "price of 'd.0.' is infinite.*Deactivate"),
    "always": (lambda m: {m.cap: 1}, "Constraint 'cap' holds always.*active_when"),
    "in a disjunct": (lambda m: {m.d[0].c: 1}, "Constraint 'd.0..c' holds always, or with"),
    "a Var's price": (lambda m: {m.y: 1}, "prices: expected a price for one of Disjunction"),
    "unknown name": (lambda m: {"gaap": 1}, "prices: the model 'm' has no component 'gaap'"),
    "another model's": (lambda _: {base().gap: 1}, "'gap' is no active part of the model"),
    "no mapping": (lambda _: 5, "prices: expected a mapping"),
    "never positive": (lambda m: {m.gap: -1 - m.p**2}, "price of 'gap': expected a number from 0"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_prices(name: str) -> None:
    m = base()
    given, said = WRONG[name]
    with pytest.raises(RuleError, match=said):
        read(m, prices=given(m))
    assert not gdpnet.check(m, outputs=[m.y], inputs=[m.p], prices=given(m)).ok


def test_a_default_of_a_suffix_is_refused() -> None:
    m = base()
    m.rule_price = pyo.Suffix()
    m.rule_price[None] = 4
    with pytest.raises(RuleError, match="rule_price: expected a price for one of"):
        read(m)


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, "much", True])
def test_wrong_importances(value: Any) -> None:
    m = base()
    with pytest.raises(RuleError, match="importance of 'gap': expected a positive number"):
        read(m, importances={m.gap: value})


def test_importances_of_what_is_not_dropped_by_itself() -> None:
    m = base()
    with pytest.raises(RuleError, match=r"'d.1..inner': it stands in a disjunct of another rule"):
        read(m, importances={m.d[1].inner: 2})
    with pytest.raises(RuleError, match=r"Constraint 'cap' holds always.*an importance"):
        read(m, importances={m.cap: 2})
    with pytest.raises(RuleError, match="importances: expected an importance for one of"):
        read(m, importances={m.d[0]: 2})


def test_prices_that_inputs_make_negative() -> None:
    m = base()
    rules = read(m, prices={m.gap: m.p - 2})
    with pytest.raises(
        gdpnet.errors.InputError, match="price of breaking 'gap' is negative or no number for row 0"
    ):
        rules.satisfied([[1.0, 1.0], [1.0, 1.0]], [[1.0], [3.0]])
    # Only where the rule applies.
    assert read(m, prices={m.when: m.p - 2}).satisfied([[1.0, 1.0]], [[1.0]]).tolist() == [True]
    with pytest.raises(RuleError, match="number from 0 on, got between"):
        read(m, prices={m.gap: m.p - 2}, input_bounds={"p": (0, 1)})
