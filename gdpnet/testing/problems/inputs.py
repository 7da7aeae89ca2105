"""Coefficients and activation that depend on inputs."""

from __future__ import annotations

import pyomo.environ as pyo
from pyomo.gdp import Disjunct, Disjunction

import gdpnet
from gdpnet.testing._problem import Problem, Sample, problem


def with_suffix() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    return m


@problem(
    [
        Sample((0.3, 0.3), (1.0, 0.5)),
        Sample((0.3, 0.3), (-2.0, 0.5)),
        Sample((0.9, 0.2), (0.0, 1.5)),
        Sample((0.1, 0.6), (3.0, 0.1)),
        Sample((0.2, 0.1), (1.0, 1.0)),
    ],
    inputs=("s", "t"),
)
def coefficients() -> pyo.ConcreteModel:
    """A and b depend on the inputs: products, exp, Expr_if, maximum; a coefficient may vanish."""
    m = pyo.ConcreteModel()
    m.s = pyo.Param(mutable=True, initialize=1.0)
    m.t = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var(range(2), bounds=(0, 1))
    m.row = pyo.Constraint(expr=m.s * m.y[0] + 2 * m.y[1] <= 1 + pyo.exp(m.t) / 2)
    step = pyo.Expr_if(IF=m.s >= 1, THEN=0.7, ELSE=0.4)
    m.rule = Disjunction(
        expr=[
            [m.y[0] >= step, m.y[1] * (1 + m.s**2) >= 0.2 * m.t],
            [(m.s * m.t - 1) * m.y[0] + m.y[1] >= gdpnet.maximum(0.6, m.t / 2)],
        ]
    )
    return m


@problem(
    [Sample((0.1, 0.2), (10.0,)), Sample((0.1, 0.2), (30.0,)), Sample((0.1, 0.2), (28.0,))],
    inputs=("Ta",),
    outputs=("f", "c"),
    off=lambda x: [] if x["Ta"] > 28 else ["hot"],
)
def strictly_hot() -> pyo.ConcreteModel:
    m = with_suffix()
    m.Ta = pyo.Param(mutable=True, initialize=20.0)
    m.f, m.c = pyo.Var(bounds=(0, 1)), pyo.Var(bounds=(0, 1))
    m.demand = pyo.Constraint(expr=0.8 * m.f + m.c >= 0.1 + 0.01 * m.Ta)
    m.hot = Disjunction(expr=[[m.c >= 0.45], [m.f >= 0.75]])
    m.active_when[m.hot] = m.Ta > 28
    return m


@problem(
    [Sample((0.5, 0.5), (a, b)) for a in (0.0, 1.0) for b in (0.0, 1.0)],
    inputs=("a", "b"),
    off=lambda x: (
        ([] if x["a"] >= 0.5 else ["single"])
        + ([] if x["a"] >= 0.5 or x["b"] >= 0.5 else ["group"])
        + ([] if x["b"] >= 0.5 else ["many"])
        + ([] if x["a"] < 0.5 else ["more[1]"])
    ),
)
def conditions() -> pyo.ConcreteModel:
    """Conditions on a Constraint, a Block, an indexed Disjunction and one of its members."""
    m = with_suffix()
    m.a, m.b = pyo.Param(mutable=True, initialize=0), pyo.Param(mutable=True, initialize=0)
    m.y = pyo.Var(range(2), bounds=(0, 1))
    m.single = pyo.Constraint(expr=m.y[0] + m.y[1] <= 0.9)
    m.active_when[m.single] = m.a >= 0.5
    m.group = pyo.Block()
    m.group.row = pyo.Constraint(expr=m.y[0] - m.y[1] <= 0.2)
    m.group.rule = Disjunction(expr=[[m.y[0] <= 0.3], [m.y[0] >= 0.6]])
    m.active_when[m.group] = pyo.lor(m.a >= 0.5, m.b >= 0.5)
    m.many = Disjunction(range(2), rule=lambda m, i: [[m.y[i] <= 0.35], [m.y[i] >= 0.55 + 0.1 * i]])
    m.active_when[m.many] = m.b >= 0.5
    m.more = Disjunction(range(2), rule=lambda m, i: [[m.y[i] <= 0.48], [m.y[i] >= 0.54]])
    m.active_when[m.more[1]] = pyo.lnot(m.a >= 0.5)
    return m


@problem(
    [Sample((0.5, 0.5), (0.0,)), Sample((0.5, 0.5), (2.0,)), Sample((0.9, 0.9), (2.0,))],
    inputs=("a",),
    off=lambda x: [] if x["a"] > 1 else ["second", "tie"],
)
def conditional_logic() -> pyo.ConcreteModel:
    """A proposition that names an indicator of an inactive rule is dropped."""
    m = with_suffix()
    m.a = pyo.Param(mutable=True, initialize=0)
    m.y = pyo.Var(range(2), bounds=(0, 1))
    m.low, m.high = Disjunct(range(2)), Disjunct(range(2))
    for i in range(2):
        m.low[i].row = pyo.Constraint(expr=m.y[i] <= 0.3 - 0.1 * i)
        m.high[i].row = pyo.Constraint(expr=m.y[i] >= 0.7 - 0.05 * i)
    m.first = Disjunction(expr=[m.low[0], m.high[0]])
    m.second = Disjunction(expr=[m.low[1], m.high[1]])
    m.tie = pyo.LogicalConstraint(
        expr=pyo.equivalent(m.low[0].indicator_var, m.high[1].indicator_var)
    )
    m.active_when[m.second] = lambda x: x[:, 0] > 1
    return m


@problem(
    [Sample((0.4,), (0.0,), 0.1), Sample((0.4,), (1.0,), float("inf"))],
    inputs=("a",),
    off=lambda x: [] if x["a"] > 0.5 else ["never"],
)
def conflict_at_some_inputs() -> pyo.ConcreteModel:
    m = with_suffix()
    m.a = pyo.Param(mutable=True, initialize=0)
    m.y = pyo.Var(bounds=(0, 1))
    m.gap = Disjunction(expr=[[m.y <= 0.3], [m.y >= 0.7]])
    m.never = Disjunction(expr=[[m.y >= 0.4, m.y <= 0.6]])
    m.active_when[m.never] = m.a > 0.5
    return m


@problem(
    [Sample((0.2, 2.0), (1.0,)), Sample((0.2, 2.0), (3.0,)), Sample((5.0, 0.0), (0.5,))],
    inputs=("top",),
)
def bounds_from_inputs() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.top = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var(range(2), bounds=(0, m.top))
    m.rule = Disjunction(expr=[[m.y[0] >= m.top / 2], [m.y[1] <= 0.25 * m.top]])
    return m


@problem(
    [Sample((0.5, 0.5), (0.0,)), Sample((0.5, 0.5), (1.0,))],
    inputs=("a",),
    off=lambda x: [] if x["a"] > 0.5 else ["left.split", "left.extra"],
)
def condition_on_nested() -> pyo.ConcreteModel:
    """Conditions on what stands inside a Disjunct."""
    m = with_suffix()
    m.a = pyo.Param(mutable=True, initialize=0)
    m.y = pyo.Var(range(2), bounds=(0, 1))
    m.left, m.right = Disjunct(), Disjunct()
    m.left.row = pyo.Constraint(expr=m.y[0] <= 0.4)
    m.left.split = Disjunction(expr=[[m.y[1] <= 0.1], [m.y[1] >= 0.9]])
    m.left.extra = pyo.Constraint(expr=m.y[0] >= 0.2)
    m.right.row = pyo.Constraint(expr=m.y[0] >= 0.8)
    m.rule = Disjunction(expr=[m.left, m.right])
    m.active_when[m.left.split] = m.a > 0.5
    m.active_when[m.left.extra] = m.a > 0.5
    return m


PROBLEMS: list[Problem] = [
    *(coefficients, strictly_hot, conditions, conditional_logic, conflict_at_some_inputs),
    *(bounds_from_inputs, condition_on_nested),
]
