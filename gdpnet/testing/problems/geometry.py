"""Ties, degenerate rows, equalities, unbounded outputs, scales, nesting, contradictions."""

from __future__ import annotations

import pyomo.environ as pyo
from pyomo.gdp import Disjunct, Disjunction

from gdpnet.testing._problem import Problem, problem, samples

INF = float("inf")


@problem(samples((0.25, 0.25, 0.25, 0.25), (0.4, 0.4, 0.1, 0.1), (0.6, 0.2, 0.1, 0.1)))
def uniform_softmax() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(4), bounds=(0, 1))
    m.total = pyo.Constraint(expr=sum(m.y.values()) == 1)
    m.sure = Disjunction(expr=[[m.y[0] >= 0.5], [m.y[1] >= 0.5]])
    return m


@problem(samples((5, 5), (4.5, 1), (2, 2), (12, -3), distances=(4, 1.5, 0, 12)))
def two_boxes() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 10))
    m.boxes = Disjunction(
        expr=[
            [m.y[0] <= 3, m.y[1] <= 3],
            [m.y[0] >= 7, m.y[1] >= 7],
        ]
    )
    return m


@problem(samples((5,), (3,), (7,), (4.999999,), distances=(2, 0, 0, 1.999999)))
def midway() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.gap = Disjunction(expr=[[m.y <= 3], [m.y >= 7]])
    return m


@problem(samples((0, 0), (0.9, 0.3), (2, 2), (0.25, 0.25)))
def duplicate_rows() -> pyo.ConcreteModel:
    """The same row several times, scaled, in globals and disjuncts; the same disjunct twice."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 1))
    m.always = pyo.ConstraintList()
    for factor in (1, 2, 1, 0.5):
        m.always.add(factor * (m.y[0] + m.y[1]) >= factor)
    m.split = Disjunction(
        expr=[
            [m.y[0] >= 0.7, 3 * m.y[0] >= 2.1, m.y[0] + m.y[1] >= 1],
            [m.y[0] >= 0.7],
            [m.y[0] <= 0.2, m.y[0] + m.y[1] <= 1, m.y[0] + m.y[1] >= 1],
        ]
    )
    return m


@problem(samples((0, 0, 0), (1, 2, 3), (0.5, 0.2, 0.3), (3, 3, -3)))
def equalities() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(3), bounds=(-5, 5))
    m.total = pyo.Constraint(expr=m.y[0] + m.y[1] + m.y[2] == 1)
    m.rule = Disjunction(
        expr=[
            [m.y[0] == 2 * m.y[1], m.y[2] >= 0],
            [m.y[0] - m.y[1] == 4],
            [m.y[0] == -1, m.y[1] == 1],
        ]
    )
    return m


@problem(samples((0, 0), (30, -40), (-3, 3), (2, 5)))
def unbounded_outputs() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2))
    m.slope = pyo.Constraint(expr=m.y[0] + 2 * m.y[1] >= 3)
    m.far = Disjunction(expr=[[m.y[0] <= -10], [m.y[0] >= 10, m.y[1] <= 4], [m.y[1] == m.y[0]]])
    return m


@problem(samples((0, 0), (3, 1), (-4, 0.5)))
def half_bounded_outputs() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=lambda _, i: ((0, None), (None, 1))[i])
    m.rule = Disjunction(expr=[[m.y[0] - m.y[1] >= 5], [m.y[0] - m.y[1] <= -5]])
    return m


@problem(samples((1, 1), (-2, 0.3)))
def no_rules() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 1))
    m.total = pyo.Constraint(expr=m.y[0] + m.y[1] <= 1)
    return m


@problem(samples((0.5,), (2,), distances=(0, 1)))
def empty_disjunct() -> pyo.ConcreteModel:
    """A disjunct without rows: the rule always holds."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 1))
    m.one = Disjunct()
    m.one.row = pyo.Constraint(expr=m.y >= 0.9)
    m.nothing = Disjunct()
    m.rule = Disjunction(expr=[m.one, m.nothing])
    return m


@problem(samples((0.1, 0.1), (0.5, 0.6), (1, 0), (0.5, 0.5)))
def deactivated_disjunct() -> pyo.ConcreteModel:
    """The middle disjunct is switched off; a fourth one by its indicator."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 1))
    m.d = Disjunct(range(4))
    m.d[0].row = pyo.Constraint(expr=m.y[0] >= 0.8)
    m.d[1].row = pyo.Constraint(expr=m.y[0] + m.y[1] <= 2)
    m.d[2].row = pyo.Constraint(expr=m.y[1] >= 0.8)
    m.d[3].row = pyo.Constraint(expr=m.y[0] <= 1)
    m.rule = Disjunction(expr=[m.d[k] for k in range(4)])
    m.d[1].deactivate()
    m.d[3].indicator_var.fix(False)
    return m


@problem(samples((0, 0), (4, 4), (1e6, 1), (2e6, -1)), reach=1e8)
def bad_scales() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=lambda _, i: ((0, 2e6), (-10, 10))[i])
    m.large = pyo.Constraint(expr=1e6 * m.y[0] + 1e6 * m.y[1] >= 2e6)
    m.small = pyo.Constraint(expr=1e-4 * m.y[0] + 1e-3 * m.y[1] <= 150)
    m.rule = Disjunction(
        expr=[[1e4 * m.y[0] <= 5e4, m.y[1] >= 1], [1e-3 * m.y[0] >= 1e3, m.y[1] <= -1]]
    )
    return m


@problem(samples((0.2, 0.2), (0.9, 0.1), distances=(0.3, 0)))
def zero_rows() -> pyo.ConcreteModel:
    """Rows that vanish: `0 y <= 1` always holds, `0 y >= 1` never, as a disjunct or in one."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 1))
    m.zero = pyo.Param(initialize=0.0, mutable=True)
    m.harmless = pyo.Constraint(expr=m.zero * m.y[0] <= 1)
    m.rule = Disjunction(
        expr=[
            [m.zero * m.y[0] + m.zero * m.y[1] >= 1],
            [m.y[0] >= 0.5, m.zero * m.y[1] <= 0],
            [m.y[1] >= 0.9, m.y[1] - m.y[1] == m.zero],
        ]
    )
    return m


@problem(samples((0.5, 0.5), (0.1, 0.95), (0.35, 0.1)))
def ranges_and_expressions() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 1))
    m.power = pyo.Expression(expr=2 * m.y[0] + 3 * m.y[1])
    m.band = pyo.Constraint(expr=(1, m.power, 4))
    m.left = Disjunct()
    m.left.rows = pyo.Constraint([0, 1], rule=lambda b, i: (0.2 * i, m.y[i], 0.3 + 0.2 * i))
    m.right = Disjunct()
    m.right.inner = pyo.Block()
    m.right.inner.row = pyo.Constraint(expr=m.power >= 3.5)
    m.rule = Disjunction(expr=[m.left, m.right])
    return m


@problem(samples((0.5, 0.5), (0.9, 0.9), (0.1, 0.4), (0.65, 0.05)))
def nested() -> pyo.ConcreteModel:
    """Two levels: left (low or high), right (three kinds, one of them nested again)."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 1))
    m.left = Disjunct()
    m.left.row = pyo.Constraint(expr=m.y[0] <= 0.3)
    m.left.split = Disjunction(expr=[[m.y[1] <= 0.2], [m.y[1] >= 0.7]])
    m.right = Disjunct()
    m.right.row = pyo.Constraint(expr=m.y[0] >= 0.6)
    m.right.low = Disjunct()
    m.right.low.row = pyo.Constraint(expr=m.y[1] <= 0.1)
    m.right.high = Disjunct()
    m.right.high.row = pyo.Constraint(expr=m.y[1] >= 0.8)
    m.right.high.corner = Disjunction(expr=[[m.y[0] + m.y[1] <= 1.5], [m.y[0] >= 0.95]])
    m.right.split = Disjunction(expr=[m.right.low, m.right.high])
    m.rule = Disjunction(expr=[m.left, m.right])
    m.other = Disjunction(expr=[[m.y[0] + m.y[1] <= 0.9], [m.y[0] + m.y[1] >= 1.1]])
    return m


@problem(samples((0, 0), (5, 1), (-3, 2)))
def nested_unbounded() -> pyo.ConcreteModel:
    """A disjunct is chosen although what is nested in it does not hold yet; no big-M exists."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2))
    m.left, m.right = Disjunct(), Disjunct()
    m.left.row = pyo.Constraint(expr=m.y[0] <= 1)
    m.left.split = Disjunction(expr=[[m.y[1] >= 4], [m.y[0] + m.y[1] <= -4]])
    m.right.row = pyo.Constraint(expr=m.y[0] >= 6)
    m.rule = Disjunction(expr=[m.left, m.right])
    return m


@problem(samples((0.5, 0.5), (0.1, 0.9), distances=(INF, INF)))
def contradictory_rules() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 1))
    m.total = pyo.Constraint(expr=m.y[0] + m.y[1] == 1)
    m.first = Disjunction(expr=[[m.y[0] >= 0.8], [m.y[1] >= 0.8]])
    m.second = Disjunction(expr=[[m.y[0] <= 0.7, m.y[1] <= 0.7]])
    m.third = Disjunction(expr=[[m.y[0] >= 0.1], [m.y[1] >= 0.1]])
    return m


@problem(samples((0.5, 0.5), distances=(INF,)))
def contradictory_globals() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2))
    m.low = pyo.Constraint(expr=m.y[0] + m.y[1] <= 1)
    m.high = pyo.Constraint(expr=m.y[0] + m.y[1] >= 2)
    m.other = pyo.Constraint(expr=m.y[0] <= 5)
    m.rule = Disjunction(expr=[[m.y[0] >= 0], [m.y[1] >= 0]])
    return m


@problem(samples((3, 3), distances=(INF,)))
def contradictory_unbounded() -> pyo.ConcreteModel:
    """No big-M exists, and every product is empty."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2))
    m.order = pyo.Constraint(expr=m.y[0] <= m.y[1])
    m.first = Disjunction(expr=[[m.y[0] >= 5, m.y[1] <= 4], [m.y[0] - m.y[1] >= 1]])
    return m


PROBLEMS: list[Problem] = [
    *(uniform_softmax, two_boxes, midway, duplicate_rows, equalities, unbounded_outputs),
    *(half_bounded_outputs, no_rules, empty_disjunct, deactivated_disjunct, bad_scales),
    *(zero_rows, ranges_and_expressions, nested, nested_unbounded),
    *(contradictory_rules, contradictory_globals, contradictory_unbounded),
]
