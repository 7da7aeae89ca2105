"""Many rules at once: k two-term rules in d outputs, all always active.

The instance used to see how sizes and times grow with the number of rules: outputs in the unit
box, one row for the load, one minimum for the last output (the pump), and k rules with two
one-row disjuncts. Rows of a rule bound two different outputs from below or above at thresholds
that follow a low-discrepancy sequence, so the model is the same everywhere, needs no seed, and
the first k rules do not depend on how many follow. The full DNF has 2^k terms.

One point, `witness(d)`, satisfies everything at the largest load: in every rule one disjunct is
placed around it with little slack and the other excludes it. So no instance is infeasible,
however many rules it has. The only input is the load.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray
from pyomo.core.expr import RelationalExpression
from pyomo.gdp import Disjunction

from gdpnet.testing._problem import Problem, Sample

Array = NDArray[np.float64]

PUMP_MIN = 0.2

_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0


@dataclass(frozen=True)
class StressRow:
    """One disjunct: output `column` at most, or at least, `threshold`."""

    column: int
    upper: bool
    threshold: float

    def holds(self, y: Array) -> NDArray[np.bool_]:
        """Whether the row holds at points (n, d); (n,)."""
        value = y[:, self.column]
        return value <= self.threshold if self.upper else value >= self.threshold


def witness(d: int = 3) -> Array:
    """A point (d,) that satisfies every rule and global of `build(k, d)` for all k and loads."""
    return np.array([0.35 + 0.3 * _spread(j) for j in range(d)])


def capacities(d: int = 3) -> Array:
    """Coefficients (d,) of the outputs in the load row; the pump delivers nothing."""
    return np.array([*np.linspace(0.6, 1.0, d - 1), 0.0])


def rule_rows(k: int = 10, d: int = 3) -> list[tuple[StressRow, StressRow]]:
    """The two rows of each of the k rules."""
    if k < 0 or d < 2:
        raise ValueError(f"need k >= 0 rules and d >= 2 outputs; got k={k}, d={d}")
    point = witness(d)
    rules = []
    for i in range(k):
        first = i % d
        # A shift of 1 to d - 1: the two rows never bound the same output.
        second = (first + 1 + i // d % (d - 1)) % d
        around = i % 2
        rows = []
        for term, column in enumerate((first, second)):
            u = _spread(2 * i + term + 7)
            upper = _spread(5 * i + 3 * term + 1) < 0.5
            # Slack of 0.02 to 0.1 where the witness is inside, a gap of 0.1 to 0.3 where not.
            room = 0.02 + 0.08 * u if term == around else -(0.1 + 0.2 * u)
            threshold = point[column] + room if upper else point[column] - room
            rows.append(StressRow(column, upper, round(float(threshold), 3)))
        rules.append((rows[0], rows[1]))
    return rules


def pyomo_model(k: int = 10, d: int = 3) -> pyo.ConcreteModel:
    """The rules as an ordinary Pyomo.GDP model.

    Args:
        k: number of rules.
        d: number of outputs, at least 2.

    Returns:
        A model with outputs `y[0..d-1]`, the input `need` and the rules `rule[0..k-1]`.
    """
    rules = rule_rows(k, d)
    m = pyo.ConcreteModel("stress")
    m.need = pyo.Param(mutable=True, initialize=0.5 * delivered(d), doc="required load")
    m.y = pyo.Var(range(d), bounds=(0, 1))
    capacity = capacities(d)
    m.demand = pyo.Constraint(expr=sum(capacity[j] * m.y[j] for j in range(d - 1)) >= m.need)
    m.pump = pyo.Constraint(expr=m.y[d - 1] >= PUMP_MIN)

    def relation(row: StressRow) -> RelationalExpression:
        y = m.y[row.column]
        return y <= row.threshold if row.upper else y >= row.threshold

    m.rule = Disjunction(range(k), rule=lambda _, i: [[relation(row)] for row in rules[i]])
    return m


def delivered(d: int = 3) -> float:
    """Load that the witness covers."""
    return float(capacities(d) @ witness(d))


def _spread(i: int) -> float:
    """The i-th number of a low-discrepancy sequence in [0, 1)."""
    return float((i + 1) * _GOLDEN % 1.0)


PROBLEMS = [
    Problem(
        "stress",
        partial(pyomo_model, 6),
        tuple(
            Sample(y, (need,)) for y in ((0.1, 0.9, 0.5), (0.7, 0.2, 0.1)) for need in (0.2, 0.7)
        ),
        inputs=("need",),
    )
]
