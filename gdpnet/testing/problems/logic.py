"""Propositions over indicators and BooleanVars."""

from __future__ import annotations

import pyomo.environ as pyo
from pyomo.gdp import Disjunct, Disjunction

from gdpnet.testing._problem import Problem, problem, samples

POINTS = samples((0.5, 0.5, 0.5), (0.2, 0.9, 0.4), (0.95, 0.9, 0.85), (0.05, 0.1, 0.1))
INF = float("inf")


def three_rules(xor: bool = True) -> pyo.ConcreteModel:
    """Each output low or high; `m.low[i]`, `m.high[i]` are the disjuncts."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(3), bounds=(0, 1))
    m.low, m.high = Disjunct(range(3)), Disjunct(range(3))
    for i in range(3):
        m.low[i].row = pyo.Constraint(expr=m.y[i] <= 0.3 + 0.05 * i)
        m.high[i].row = pyo.Constraint(expr=m.y[i] >= 0.7 + 0.05 * i)
    m.split = Disjunction(range(3), rule=lambda m, i: [m.low[i], m.high[i]], xor=xor)
    return m


def highs(m: pyo.ConcreteModel) -> list:
    return [m.high[i].indicator_var for i in range(3)]


@problem(POINTS)
def exactly() -> pyo.ConcreteModel:
    m = three_rules()
    m.count = pyo.LogicalConstraint(expr=pyo.exactly(1, *highs(m)))
    return m


@problem(POINTS)
def atleast() -> pyo.ConcreteModel:
    m = three_rules()
    m.count = pyo.LogicalConstraint(expr=pyo.atleast(2, *highs(m)))
    return m


@problem(POINTS)
def atmost_of_or() -> pyo.ConcreteModel:
    """OR disjunctions: both indicators of a rule may be true, none of them must."""
    m = three_rules(xor=False)
    m.count = pyo.LogicalConstraint(expr=pyo.atmost(1, *highs(m)))
    m.lows = pyo.LogicalConstraint(expr=pyo.atmost(2, *(m.low[i].indicator_var for i in range(3))))
    return m


@problem(POINTS)
def implication() -> pyo.ConcreteModel:
    m = three_rules()
    m.first = pyo.LogicalConstraint(expr=m.high[0].indicator_var.implies(m.low[1].indicator_var))
    m.second = pyo.LogicalConstraint(
        expr=pyo.implies(m.low[2].indicator_var, m.high[0].indicator_var)
    )
    return m


@problem(POINTS)
def exclusive() -> pyo.ConcreteModel:
    m = three_rules()
    m.odd = pyo.LogicalConstraint(expr=pyo.xor(m.high[0].indicator_var, m.high[1].indicator_var))
    m.same = pyo.LogicalConstraint(
        expr=pyo.equivalent(m.high[1].indicator_var, m.low[2].indicator_var)
    )
    return m


@problem(POINTS)
def boolean_vars() -> pyo.ConcreteModel:
    m = three_rules()
    m.winter, m.summer = pyo.BooleanVar(), pyo.BooleanVar()
    m.season = pyo.LogicalConstraint(expr=pyo.exactly(1, m.winter, m.summer))
    m.cold = pyo.LogicalConstraint(
        expr=m.winter.implies(pyo.land(m.high[0].indicator_var, m.high[1].indicator_var))
    )
    m.warm = pyo.LogicalConstraint(
        expr=m.summer.implies(pyo.lnot(pyo.lor(m.high[1].indicator_var, m.high[2].indicator_var)))
    )
    return m


@problem(POINTS)
def fixed_boolean() -> pyo.ConcreteModel:
    m = three_rules()
    m.on = pyo.BooleanVar()
    m.on.fix(True)
    m.rule = pyo.LogicalConstraint(expr=m.on.implies(pyo.lnot(m.low[0].indicator_var)))
    m.high[2].indicator_var.fix(True)
    return m


@problem(POINTS)
def logic_inside_disjunct() -> pyo.ConcreteModel:
    """A proposition that holds only where its Disjunct is chosen, and a nested rule in logic."""
    m = three_rules()
    m.strict, m.loose = Disjunct(), Disjunct()
    m.strict.rule = pyo.LogicalConstraint(expr=pyo.atleast(2, *highs(m)))
    m.strict.row = pyo.Constraint(expr=m.y[0] + m.y[1] + m.y[2] <= 2)
    m.loose.row = pyo.Constraint(expr=m.y[0] + m.y[1] + m.y[2] <= 0.6)
    m.mode = Disjunction(expr=[m.strict, m.loose])
    return m


@problem(samples((0.5, 0.5), (0.1, 0.9), (0.9, 0.9)))
def nested_in_logic() -> pyo.ConcreteModel:
    """An indicator of a nested disjunct is tied to another rule."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 1))
    m.left, m.right = Disjunct(), Disjunct()
    m.left.row = pyo.Constraint(expr=m.y[0] <= 0.3)
    m.left.a, m.left.b = Disjunct(), Disjunct()
    m.left.a.row = pyo.Constraint(expr=m.y[1] <= 0.2)
    m.left.b.row = pyo.Constraint(expr=m.y[1] >= 0.6)
    m.left.split = Disjunction(expr=[m.left.a, m.left.b])
    m.right.row = pyo.Constraint(expr=m.y[0] >= 0.8)
    m.rule = Disjunction(expr=[m.left, m.right])
    m.c, m.d = Disjunct(), Disjunct()
    m.c.row = pyo.Constraint(expr=m.y[0] + m.y[1] <= 0.7)
    m.d.row = pyo.Constraint(expr=m.y[0] + m.y[1] >= 1.4)
    m.other = Disjunction(expr=[m.c, m.d])
    m.tie = pyo.LogicalConstraint(expr=m.left.b.indicator_var.implies(m.d.indicator_var))
    return m


@problem(samples((0.5, 0.5), (0.95, 0.1), (0.1, 0.7)))
def children_of_an_unchosen_parent() -> pyo.ConcreteModel:
    """Logic may want both children of an XOR whose parent is not chosen; their rows then hold."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 1))
    m.a, m.b = Disjunct(), Disjunct()
    m.a.row = pyo.Constraint(expr=m.y[1] >= 0.3)
    m.b.row = pyo.Constraint(expr=m.y[1] <= 0.6)
    m.parent, m.other = Disjunct(), Disjunct()
    m.parent.row = pyo.Constraint(expr=m.y[0] <= 0.2)
    m.parent.split = Disjunction(expr=[m.a, m.b])
    m.other.row = pyo.Constraint(expr=m.y[0] >= 0.6)
    m.rule = Disjunction(expr=[m.parent, m.other])
    both = pyo.land(m.a.indicator_var, m.b.indicator_var)
    m.wanted = pyo.LogicalConstraint(expr=m.other.indicator_var.implies(both))
    return m


@problem(samples((0.5, 0.5, 0.5), distances=(INF,)))
def contradictory_logic() -> pyo.ConcreteModel:
    m = three_rules()
    m.many = pyo.LogicalConstraint(expr=pyo.atleast(2, *highs(m)))
    m.few = pyo.LogicalConstraint(expr=pyo.atmost(1, *highs(m)))
    m.unrelated = pyo.LogicalConstraint(
        expr=pyo.lor(m.low[0].indicator_var, m.high[0].indicator_var)
    )
    return m


@problem(samples((0.5, 0.5), (0.2, 0.1), (1.0, 0.0)))
def overlapping_or() -> pyo.ConcreteModel:
    """OR without logic: overlapping disjuncts, both may hold."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 1))
    m.rule = Disjunction(expr=[[m.y[0] >= 0.6], [m.y[0] >= 0.4, m.y[1] >= 0.8]], xor=False)
    return m


PROBLEMS: list[Problem] = [
    *(exactly, atleast, atmost_of_or, implication, exclusive, boolean_vars, fixed_boolean),
    *(
        logic_inside_disjunct,
        nested_in_logic,
        children_of_an_unchosen_parent,
        contradictory_logic,
        overlapping_or,
    ),
]
