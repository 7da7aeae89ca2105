"""Comparisons tell rules that have to hold and rules with a price apart."""

from __future__ import annotations

import pyomo.environ as pyo
import pytest

import gdpnet
import gdpnet.study


def test_hard_rules_and_priced_ones() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.gap = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 7), price=1.25)
    m.hole = gdpnet.rule(gdpnet.any_of(m.y <= 4, m.y >= 6))
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    found = gdpnet.study.compare(rules, [[3.5], [6.0], [8.0], [4.75]], relaxations="cnf,dnf")
    cnf, dnf = found.table.to_dict("records")
    # 3.5 moves to 3; 6 would move by 1; 8 stays; 4.75 moves to 3 by 1.75.
    assert dnf["value_mean"] == pytest.approx((0.5 + 1.0 + 0.0 + 1.75) / 4)
    assert dnf["price_mean"] == 0.0
    assert dnf["priced_held"] == 1.0
    assert dnf["csat"] == 1.0
    assert dnf["gap_max"] == pytest.approx(0.0, abs=1e-9)
    assert cnf["gap_max"] > 0.1
    bought = gdpnet.study.compare(rules, [[3.5], [6.0], [4.25]], relaxations="dnf").table
    assert bought["price_mean"].item() == 0.0
    cheap = gdpnet.RuleModel(m, outputs=[m.y], prices={m.gap: 0.75})
    told = gdpnet.study.compare(cheap, [[6.0], [3.5]], relaxations="dnf")
    row = told.table.to_dict("records")[0]
    assert row["price_mean"] == pytest.approx(0.375)
    assert row["priced_held"] == 0.5
    assert row["csat"] == 1.0, "the broken rule has a price"
    text = repr(told)
    assert "Samples that satisfy all rules that have to hold" in text
    assert "mean price paid" in text
