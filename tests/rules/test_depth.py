"""Expressions and formulas that are nested deep: read, or refused in a sentence."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunct, Disjunction

import gdpnet
from gdpnet.ir.atoms import DEEPEST

DEEP = 5000


def one_output() -> Any:
    m = pyo.ConcreteModel()
    m.t = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var(bounds=(0, 10))
    return m


def nested_functions(m: Any, depth: int) -> Any:
    expression = m.t
    for _ in range(depth):
        expression = pyo.sin(expression) + 0.1
    return expression


def test_linear_expressions_may_be_as_deep_as_they_like() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(3), bounds=(-100, 100))
    level = m.y[0]
    named = m.y[0]
    m.e = pyo.Expression(range(DEEP))
    for k in range(DEEP):
        level = -(2 * (level + m.y[k % 3] - 1)) / 2  # turns its sign at each level
        m.e[k] = named + 0.001
        named = m.e[k]
    m.c = pyo.Constraint(expr=level <= 3)
    m.d = pyo.Constraint(expr=named <= 7)
    (first, second) = gdpnet.RuleModel(m, outputs=[m.y]).data.rows
    value = {0: 2.0, 1: -3.0, 2: 5.0}
    expected = value[0]
    for k in range(DEEP):
        expected = -(expected + value[k % 3] - 1)
    found = sum(a.number * value[column] for column, a in first.terms) - first.bound.number
    assert found == pytest.approx(expected - 3, rel=1e-9)
    assert second.terms == ((0, second.terms[0][1]),)
    assert second.bound.number == pytest.approx(7 - 0.001 * DEEP)


def nested_maxima(m: Any, depth: int) -> Any:
    """Operations that the engine evaluates without torch."""
    expression = abs(m.t)
    for _ in range(depth):
        expression = gdpnet.maximum(m.t, expression)
    return expression


@pytest.mark.parametrize(
    ("write", "depth"),
    # A function and a sum a level, and the input; the maxima, the absolute value and the input.
    [(nested_functions, DEEPEST // 2 - 1), (nested_maxima, DEEPEST - 2)],
)
def test_as_deep_as_allowed_works_everywhere(write: Any, depth: int, tmp_path: Path) -> None:
    m = one_output()
    expression = write(m, depth)
    m.r = Disjunction(expr=[[m.y <= 3 + expression], [m.y >= 7]])
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t])
    rules.save(tmp_path / "rules.json")
    loaded = gdpnet.load_rules(tmp_path / "rules.json")
    for one in (rules, loaded, pickle.loads(pickle.dumps(rules)), copy.deepcopy(rules)):
        x = torch.ones(1, 1, dtype=torch.float64, requires_grad=True)
        p = gdpnet.project(one, [[4.9]], x, gradient="vertex")
        assert p.y.item() == pytest.approx(3 + pyo.value(expression))
        assert bool(one.satisfied(p.y, x).all())
        assert one.fingerprint == rules.fingerprint
        assert repr(one) == repr(rules)
        p.y.sum().backward()
        assert bool(x.grad.isfinite().all())
    assert gdpnet.convexify(rules, yhat=[4.9], x=[1.0]) is not None


@pytest.mark.parametrize("depth", [DEEPEST, 250, DEEP])
@pytest.mark.parametrize("kind", ["function", "maximum", "product", "division", "power", "if"])
def test_deeper_functions_are_refused(kind: str, depth: int) -> None:
    m = one_output()
    expression = m.t
    for _ in range(depth):
        expression = {
            "function": lambda e: pyo.sin(e) + 0.1,
            "maximum": lambda e: gdpnet.maximum(m.t, e),
            "product": lambda e: (e + 1) * m.t,
            "division": lambda e: 1 / (e + 1),
            "power": lambda e: (e + 1) ** m.t,
            "if": lambda e: pyo.Expr_if(m.t >= 1, e, 0),
        }[kind](expression)
    m.r = Disjunction(expr=[[m.y <= 3 + expression], [m.y >= 7]])
    with pytest.raises(gdpnet.errors.RuleError) as caught:
        gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t])
    assert str(caught.value) == (
        "Constraint 'r_disjuncts[0].constraint[1]': the expression of the inputs is nested more "
        "than 100 deep. Compute it beforehand and hand over the result as an input (a mutable "
        "Param)."
    )


@pytest.mark.parametrize("depth", [DEEPEST, DEEP])
def test_deep_conditions_are_refused(depth: int) -> None:
    m = one_output()
    condition = m.t >= 0
    for k in range(depth):
        condition = pyo.lnot(pyo.land(m.t >= k, condition))
    m.r = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 7), when=condition)
    with pytest.raises(
        gdpnet.errors.RuleError, match=r"active_when of 'r': the condition is nested more"
    ):
        gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t])


@pytest.mark.parametrize("depth", [DEEPEST + 1, DEEP])
def test_deep_propositions_are_refused(depth: int) -> None:
    m = one_output()
    m.Y = pyo.BooleanVar(range(2))
    proposition = m.Y[0]
    for k in range(depth):
        proposition = m.Y[k % 2].implies(proposition)
    m.said = pyo.LogicalConstraint(expr=proposition)
    with pytest.raises(
        gdpnet.errors.RuleError, match=r"'said': the proposition is nested more than 100"
    ):
        gdpnet.RuleModel(m, outputs=[m.y])


def test_a_proposition_as_deep_as_allowed() -> None:
    m = one_output()
    m.low, m.high = Disjunct(), Disjunct()
    m.low.c = pyo.Constraint(expr=m.y <= 3)
    m.high.c = pyo.Constraint(expr=m.y >= 7)
    m.d = Disjunction(expr=[m.low, m.high])
    proposition = m.high.indicator_var
    for _ in range(DEEPEST):
        proposition = pyo.lnot(proposition)
    m.said = pyo.LogicalConstraint(expr=proposition)
    assert gdpnet.project(gdpnet.RuleModel(m, outputs=[m.y]), [1.0]).y.tolist() == [7.0]


def test_a_formula_that_grows_in_a_loop_stays_flat() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(500), bounds=(0, 10))
    either, both = gdpnet.any_of(m.y[0] >= 7), gdpnet.all_of(m.y[0] <= 8)
    for k in range(1, 500):
        either, both = gdpnet.any_of(either, m.y[k] >= 7), gdpnet.all_of(both, m.y[k] <= 8)
    m.either, m.both = gdpnet.rule(either), gdpnet.rule(both)
    assert len(m.either.disjuncts) == 500
    assert len(m.both) == 500


def test_deep_formulas_are_refused() -> None:
    m = one_output()

    def deep() -> Any:
        formula = gdpnet.any_of(m.y <= 3)
        for _ in range(DEEP):
            formula = gdpnet.none_of(gdpnet.all_of(formula, m.y <= 5))
        return formula

    with pytest.raises(
        gdpnet.errors.RuleError, match=r"formula is nested more than 100 deep.*any_of\("
    ):
        deep()


def test_disjunctions_nested_deep_are_read_or_refused() -> None:
    m = one_output()
    block = m
    for k in range(1000):
        block.low, block.high = Disjunct(), Disjunct()
        block.high.c = pyo.Constraint(expr=m.y >= k / 1000)
        block.d = Disjunction(expr=[block.low, block.high])
        block = block.low
    with pytest.raises(gdpnet.errors.RuleError, match="nested too deep for Python's stack"):
        gdpnet.RuleModel(m, outputs=[m.y])
