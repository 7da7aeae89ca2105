"""Vars that are no outputs, and whole numbers."""

from __future__ import annotations

import pyomo.environ as pyo
from pyomo.gdp import Disjunct, Disjunction

from gdpnet.testing._problem import Problem, problem, samples


@problem(samples((0, 0), (0.7, 0.1), (0.6, 0.6), distances=(1, 0.2, 0)), auxiliaries=True)
def coupled_by_auxiliary() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 1))
    m.a = pyo.Var(bounds=(0, 1))
    m.first = pyo.Constraint(expr=m.y[0] >= m.a)
    m.second = pyo.Constraint(expr=m.y[1] >= 1 - m.a)
    return m


@problem(samples((0.9, 0.9), (0.2, 0.3), (1, 0.2)), outputs=("f", "c"), auxiliaries=True)
def power() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.f, m.c = pyo.Var(bounds=(0, 1)), pyo.Var(bounds=(0, 1))
    m.P = pyo.Var(bounds=(0, 10))
    m.define = pyo.Constraint(expr=m.P == 2 * m.f + 3 * m.c)
    m.limit = Disjunction(expr=[[m.P <= 2], [m.P >= 3, m.c <= 0.4]])
    return m


@problem(samples((0, 0), (3, -2), (8, 8)), auxiliaries=True)
def unbounded_auxiliary() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(-10, 10))
    m.a = pyo.Var()
    m.b = pyo.Var(domain=pyo.NonNegativeReals)
    m.link = pyo.Constraint(expr=m.a == m.y[0] + m.y[1] - m.b)
    m.rule = Disjunction(expr=[[m.a >= 7, m.b >= 1], [m.a <= -7, m.b == 2], [m.a + m.y[0] == 20]])
    return m


@problem(samples((0.5, 0.5), (0.9, 0.05), (0.3, 0.3)), auxiliaries=True)
def auxiliary_on_disjunct() -> pyo.ConcreteModel:
    """Each disjunct has a Var of its own; a rule without one stands beside it."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 1))
    m.one = Disjunct()
    m.one.t = pyo.Var(bounds=(0, 1))
    m.one.rows = pyo.ConstraintList()
    m.one.rows.add(m.y[0] == 0.2 + 0.2 * m.one.t)
    m.one.rows.add(m.y[1] == 0.8 - 0.4 * m.one.t)
    m.two = Disjunct()
    m.two.row = pyo.Constraint(expr=m.y[0] - m.y[1] >= 0.7)
    m.rule = Disjunction(expr=[m.one, m.two])
    m.plain = Disjunction(expr=[[m.y[1] <= 0.1], [m.y[1] >= 0.5]])
    return m


@problem(samples((1.4, 0.3), (2.6, 0.7), (-3, 2), (1.5, 0.5), (2, 1)))
def whole_outputs() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), domain=lambda _, i: (pyo.Integers, pyo.Binary)[i], bounds=(0, 3))
    m.y[1].setub(1)
    m.row = pyo.Constraint(expr=m.y[0] + 2 * m.y[1] >= 2)
    m.rule = Disjunction(expr=[[m.y[0] <= 1], [m.y[0] >= 2, m.y[1] <= 0.5]])
    return m


@problem(samples((0.3, 0.6), (1.2, 2.9), (0.9, 0)))
def mixed_outputs() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), domain=lambda _, i: (pyo.Binary, pyo.Reals)[i])
    m.y[1].setlb(0)
    m.y[1].setub(5)
    m.on = pyo.Constraint(expr=m.y[1] <= 5 * m.y[0])
    m.least = pyo.Constraint(expr=m.y[1] >= 2 * m.y[0])
    return m


@problem(samples((0.5, 0.5), (3, 1), (6.2, 0.1)), auxiliaries=True)
def plain_milp() -> pyo.ConcreteModel:
    """No Disjunctions: y0 is a multiple of 2.5, y1 is switched by a binary."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 10))
    m.n = pyo.Var(domain=pyo.Integers, bounds=(0, 4))
    m.on = pyo.Var(domain=pyo.Binary)
    m.step = pyo.Constraint(expr=m.y[0] == 2.5 * m.n)
    m.high = pyo.Constraint(expr=m.y[1] <= 10 * m.on)
    m.low = pyo.Constraint(expr=m.y[1] >= 4 * m.on)
    m.some = pyo.Constraint(expr=m.n + m.on >= 1)
    return m


@problem(samples((0.5, 0.4), (0.1, 0.1), (0.9, 0.8)), auxiliaries=True)
def whole_auxiliary_and_rule() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 1))
    m.k = pyo.Var(domain=pyo.NonNegativeIntegers, bounds=(0, 5))
    m.grid = pyo.Constraint(expr=m.y[0] == 0.2 * m.k)
    m.rule = Disjunction(expr=[[m.y[1] >= 0.3 * m.k], [m.k >= 4, m.y[1] <= 0.25]])
    return m


@problem(samples((0.5, 0.5), (0.2, 0.9)), auxiliaries=True)
def binary_of_indicator() -> pyo.ConcreteModel:
    """The binary that belongs to an indicator stands in a Constraint."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 1))
    m.a, m.b = Disjunct(), Disjunct()
    m.a.row = pyo.Constraint(expr=m.y[0] <= 0.3)
    m.b.row = pyo.Constraint(expr=m.y[0] >= 0.6)
    m.rule = Disjunction(expr=[m.a, m.b])
    m.cost = pyo.Constraint(expr=m.y[1] >= 0.8 * m.a.binary_indicator_var)
    return m


@problem(samples((0.5, 0.5), (0.2, 0.9), (0.75, 0.1)), auxiliaries=True)
def binary_of_nested_indicator() -> pyo.ConcreteModel:
    """The binary of a nested indicator is free where its parent is not chosen."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 1))
    m.left, m.right = Disjunct(), Disjunct()
    m.left.row = pyo.Constraint(expr=m.y[0] <= 0.4)
    m.left.a, m.left.b = Disjunct(), Disjunct()
    m.left.a.row = pyo.Constraint(expr=m.y[1] <= 0.3)
    m.left.b.row = pyo.Constraint(expr=m.y[1] >= 0.6)
    m.left.split = Disjunction(expr=[m.left.a, m.left.b])
    m.right.row = pyo.Constraint(expr=m.y[0] >= 0.7)
    m.rule = Disjunction(expr=[m.left, m.right])
    m.price = pyo.Constraint(expr=m.y[0] + m.left.b.binary_indicator_var >= 0.95)
    return m


PROBLEMS: list[Problem] = [
    *(coupled_by_auxiliary, power, unbounded_auxiliary, auxiliary_on_disjunct, whole_outputs),
    *(mixed_outputs, plain_milp, whole_auxiliary_and_rule, binary_of_indicator),
    binary_of_nested_indicator,
]
