"""Convex rows: discs, norms, other curves; with inputs, auxiliaries, nesting, logic, integers.

They are no part of `PROBLEMS`, which solvers of linear rows run through too. Distances are by hand.
"""

from __future__ import annotations

import math

import pyomo.environ as pyo
from pyomo.gdp import Disjunct, Disjunction

from gdpnet.testing._problem import Point, Problem, Sample, problem

INF = float("inf")
TWO = math.sqrt(2.0)


def _at(yhat: Point, l1: float | None = None, l2: float | None = None, x: Point = ()) -> Sample:
    return Sample(yhat, x, distance=l1, euclidean=l2)


@problem(
    [
        Sample((0, 0), distance=1, euclidean=1, tie=True),
        *(_at((3, 0), 0, 0), _at((6, 0), 1, 1), _at((-2, 3), 2, 2)),
        _at((-4, 2), 4 - TWO, math.sqrt(8) - 1),
    ]
)
def two_discs() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(-6, 6))
    m.discs = Disjunction(
        expr=[
            [(m.y[0] + 2) ** 2 + m.y[1] ** 2 <= 1],
            [(m.y[0] - 3) ** 2 + m.y[1] ** 2 <= 4],
        ]
    )
    return m


@problem([_at((0, 0), 1, 1), _at((1, 1), 0, 0), _at((-2, 3)), _at((1.5, 0), 0, 0)])
def ellipse_written_out() -> pyo.ConcreteModel:
    """No single term of the global row is convex by itself but the squares."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(-5, 5))
    m.inside = pyo.Constraint(expr=m.y[0] ** 2 + m.y[0] * m.y[1] + m.y[1] ** 2 <= 3)
    m.apart = Disjunction(expr=[[m.y[0] >= 1], [m.y[0] <= -1]])
    return m


@problem([_at((0, 0, -1), 1, 1), _at((3, 4, 5), 0, 0), _at((1, 0, 0), 1, 1 / TWO), _at((2, 2, 2))])
def ice_cream() -> pyo.ConcreteModel:
    """A cone with its apex at 0, low or high."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(3), bounds=(-6, 6))
    m.cone = pyo.Constraint(expr=pyo.sqrt(m.y[0] ** 2 + m.y[1] ** 2) <= m.y[2])
    m.height = Disjunction(expr=[[m.y[2] <= 1], [m.y[2] >= 3]])
    return m


@problem([_at((2, 1), 1, 1), _at((1, 1), 0, 0), _at((-3, 0), 0, 0), _at((0.5, 1), 0.5, 0.5)])
def single_point() -> pyo.ConcreteModel:
    """A disjunct without an interior."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(-4, 4))
    m.rule = Disjunction(
        expr=[[(m.y[0] - 1) ** 2 + (m.y[1] - 1) ** 2 <= 0], [m.y[0] <= -1]],
    )
    return m


@problem([_at((0, 1), 1, 1), _at((0, 3), 1, 1), _at((0, 0), 0, 0)])
def touching_discs() -> pyo.ConcreteModel:
    """Two discs that have one point in common."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(-5, 5))
    m.rule = Disjunction(
        expr=[
            [(m.y[0] - 1) ** 2 + m.y[1] ** 2 <= 1, (m.y[0] + 1) ** 2 + m.y[1] ** 2 <= 1],
            [m.y[1] >= 4],
        ]
    )
    return m


@problem([_at((1, 0), 1, 1 / TWO), _at((2, 2), 0, 0), _at((-1, -4), 3, 3 / TWO)])
def flat() -> pyo.ConcreteModel:
    """A square that is at most 0 is an equality."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(-5, 5))
    m.equal = pyo.Constraint(expr=(m.y[0] - m.y[1]) ** 2 <= 0)
    return m


@problem(
    [
        *(_at((3, 0), 1, 1, x=(1, 1)), _at((0, 3), 1, 1, x=(0, 2)), _at((0.5, 0), 0, 0, x=(0, 1))),
        _at((2, 2), 4 - TWO, math.sqrt(8) - 1, x=(0, 1)),
    ],
    inputs=("centre", "radius"),
    input_bounds=((-3, 3), (0.5, 3)),
)
def moving_disc() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(-8, 8))
    m.centre = pyo.Param(initialize=0.0, mutable=True)
    m.radius = pyo.Param(initialize=1.0, mutable=True)
    m.near = pyo.Constraint(expr=(m.y[0] - m.centre) ** 2 + m.y[1] ** 2 <= m.radius**2)
    m.side = Disjunction(expr=[[m.y[1] >= 0], [m.y[1] <= -0.1]])
    return m


@problem(
    [
        _at((0, 0), 0, 0, x=(1,)),
        _at((2, 1), x=(1,)),
        _at((2, 1), x=(4,)),
        _at((0, 1), 0, 0, x=(2,)),
    ],
    inputs=("p",),
    input_bounds=((1, 4),),
)
def matrix_of_inputs() -> pyo.ConcreteModel:
    """Positive definite for every input within its bounds, though its terms are not convex."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(-5, 5))
    m.p = pyo.Param(initialize=1.0, mutable=True)
    m.inside = pyo.Constraint(expr=m.p * m.y[0] ** 2 + m.y[0] * m.y[1] + m.y[1] ** 2 <= 1)
    return m


@problem(
    [
        *(_at((3, 0), 1, 1, x=(4,)), _at((3, 0), 2, 2, x=(16,)), _at((-2, -2), x=(9,))),
        _at((0, 1), 0, 0, x=(0,)),
    ],
    inputs=("p",),
    input_bounds=((0, 16),),
)
def weight_of_inputs() -> pyo.ConcreteModel:
    """A square whose weight may be 0."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(-5, 5))
    m.p = pyo.Param(initialize=1.0, mutable=True)
    m.inside = pyo.Constraint(expr=m.p * m.y[0] ** 2 + m.y[1] ** 2 <= 16)
    return m


@problem(
    [_at((0, 1), 0, 0), _at((0, 0), 1), _at((5, 0), 0, 0), _at((2, -3), math.e - 2, math.e - 2)]
)
def exponential_or_logarithm() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(-3, 6))
    m.rule = Disjunction(expr=[[pyo.exp(m.y[0]) <= m.y[1]], [pyo.log(m.y[0]) >= 1]])
    return m


@problem([_at((2, 2), 0, 0), _at((1, 4), 0, 0), _at((1, 1), 2, TWO), _at((0.5, 6), 0, 0)])
def areas() -> pyo.ConcreteModel:
    """A length and a width that make an area: hyperbolas."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 8))
    m.rule = Disjunction(expr=[[4 / m.y[0] <= m.y[1]], [1 / m.y[0] <= m.y[1] - 3]])
    return m


@problem([_at((0, 0), 1, 1), _at((5, 0), 2, 2), _at((2, 1), 0, 0), _at((3, 3), 3 - TWO, 3 - TWO)])
def roots_and_powers() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 6))
    m.below = pyo.Constraint(expr=pyo.sqrt(m.y[0] - 1) >= m.y[1])
    m.cube = pyo.Constraint(expr=m.y[0] ** 3 <= 27)
    m.power = pyo.Constraint(expr=m.y[1] ** 1.5 <= 8)
    return m


@problem([_at((3, 3), 4, 2 * TWO), _at((0, 0), 0, 0), _at((0.5, -0.5), 0, 0), _at((-2, 0), 1, 1)])
def diamond() -> pyo.ConcreteModel:
    """Absolute values, and a maximum: linear rows in the end."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(-5, 5))
    m.inside = pyo.Constraint(expr=abs(m.y[0]) + abs(m.y[1]) <= 2)
    m.left = pyo.Constraint(expr=abs(m.y[0]) <= 1)
    return m


@problem(
    [
        *(_at((3, 0), 0, 0, x=(20,)), _at((3, 0), 1, 1, x=(30,)), _at((0, 0), 0, 0, x=(30,))),
        _at((3, 1), x=(30,)),
    ],
    inputs=("Ta",),
    input_bounds=((0, 40),),
    off=lambda x: [] if x["Ta"] >= 28 else ["hot", "deep"],
)
def nested_and_conditional() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(-5, 5))
    m.Ta = pyo.Param(initialize=20.0, mutable=True)
    m.hot = pyo.Constraint(expr=m.y[0] ** 2 + m.y[1] ** 2 <= 4)
    m.outer = Disjunct([0, 1])
    m.outer[0].left = pyo.Constraint(expr=m.y[0] <= 0)
    m.outer[1].inner = Disjunction(expr=[[(m.y[0] - 2) ** 2 + m.y[1] ** 2 <= 1], [m.y[1] >= 4]])
    m.deep = Disjunction(expr=[m.outer[0], m.outer[1]])
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.active_when[m.hot] = m.Ta >= 28
    m.active_when[m.deep] = m.Ta >= 28
    return m


@problem(
    [_at((-2, 0), 1, 1), _at((4.5, 0), 0.5, 0.5), _at((1, 3), 2, 2), _at((1, 0), 0, 0)],
    auxiliaries=True,
)
def beside_a_segment() -> pyo.ConcreteModel:
    """Within 1 of some point between 0 and 3, which is no output."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(-5, 8))
    m.z = pyo.Var(bounds=(0, 3))
    m.near = pyo.Constraint(expr=pyo.sqrt((m.y[0] - m.z) ** 2 + m.y[1] ** 2) <= 1)
    return m


@problem([_at((-3, 0), 1, 1), _at((3, 0), 1, 1), _at((3, 4), 1, 1)])
def discs_with_logic() -> pyo.ConcreteModel:
    """The right disc goes with the upper half only."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(-5, 5))
    m.side = Disjunct(["left", "right"])
    m.side["left"].row = pyo.Constraint(expr=m.y[0] ** 2 + m.y[1] ** 2 <= 4)
    m.side["right"].row = pyo.Constraint(expr=(m.y[0] - 3) ** 2 + m.y[1] ** 2 <= 9)
    m.half = Disjunct(["low", "high"])
    m.half["low"].row = pyo.Constraint(expr=m.y[1] <= 0)
    m.half["high"].row = pyo.Constraint(expr=m.y[1] >= 2)
    m.sides = Disjunction(expr=[m.side["left"], m.side["right"]])
    m.halves = Disjunction(expr=[m.half["low"], m.half["high"]])
    m.tied = pyo.LogicalConstraint(
        expr=pyo.implies(m.side["right"].indicator_var, m.half["high"].indicator_var)
    )
    return m


@problem([_at((0, 0), INF, INF), _at((5, 5), INF, INF)])
def disc_without_room() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(-6, 6))
    m.disc = pyo.Constraint(expr=m.y[0] ** 2 + m.y[1] ** 2 <= 1)
    m.far = Disjunction(expr=[[m.y[0] >= 2], [m.y[0] + m.y[1] <= -2]])
    return m


@problem([_at((1.4, 0), 0.4, 0.4), _at((3, 0), 1, 1), _at((1, 0.5), 0, 0)])
def whole_numbers_in_a_disc() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 4))
    m.y[0].domain = pyo.Integers
    m.disc = pyo.Constraint(expr=(m.y[0] - 1.5) ** 2 + m.y[1] ** 2 <= 1)
    return m


PROBLEMS: list[Problem] = [
    two_discs,
    ellipse_written_out,
    ice_cream,
    single_point,
    touching_discs,
    flat,
    moving_disc,
    matrix_of_inputs,
    weight_of_inputs,
    exponential_or_logarithm,
    areas,
    roots_and_powers,
    diamond,
    nested_and_conditional,
    beside_a_segment,
    discs_with_logic,
    disc_without_room,
    whole_numbers_in_a_disc,
]
