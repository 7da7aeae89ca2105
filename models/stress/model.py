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

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray
from pyomo.core.expr import RelationalExpression
from pyomo.gdp import Disjunction

import gdpnet

if TYPE_CHECKING:
    import torch

Array = NDArray[np.float64]

PUMP_MIN = 0.2
LOADS = {"train": (0.3, 0.8), "iid": (0.3, 0.8), "ood": (0.7, 0.95)}
"""Range of the load, as a fraction of what the witness delivers."""

_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0


@dataclass(frozen=True)
class Row:
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


def rule_rows(k: int = 10, d: int = 3) -> list[tuple[Row, Row]]:
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
            rows.append(Row(column, upper, round(float(threshold), 3)))
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
    m.need = pyo.Param(mutable=True, initialize=0.5 * _delivered(d), doc="required load")
    m.y = pyo.Var(range(d), bounds=(0, 1))
    capacity = capacities(d)
    m.demand = pyo.Constraint(expr=sum(capacity[j] * m.y[j] for j in range(d - 1)) >= m.need)
    m.pump = pyo.Constraint(expr=m.y[d - 1] >= PUMP_MIN)

    def relation(row: Row) -> RelationalExpression:
        y = m.y[row.column]
        return y <= row.threshold if row.upper else y >= row.threshold

    m.rule = Disjunction(range(k), rule=lambda _, i: [[relation(row)] for row in rules[i]])
    return m


def build(k: int = 10, d: int = 3) -> gdpnet.RuleModel:
    """k two-term rules in d outputs.

    Args:
        k: number of rules.
        d: number of outputs, at least 2.

    Returns:
        The rule model with the load as its only input.
    """
    m = pyomo_model(k, d)
    low = min(a for a, _ in LOADS.values()) * _delivered(d)
    high = max(b for _, b in LOADS.values()) * _delivered(d)
    bounds = np.array([[low, high]])
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.need], input_bounds=bounds)


def feasible(x: Array, y: Array, k: int = 10, d: int = 3) -> NDArray[np.bool_]:
    """Which points (n, d) satisfy globals, bounds and rules at inputs (n, 1); (n,)."""
    good = np.all((y >= 0) & (y <= 1), axis=1) & (y[:, -1] >= PUMP_MIN)
    good &= y @ capacities(d) >= x[:, 0]
    for first, second in rule_rows(k, d):
        good &= first.holds(y) | second.holds(y)
    return good


def sample(
    n: int, split: str = "iid", seed: int = 0, k: int = 10, d: int = 3
) -> "tuple[torch.Tensor, torch.Tensor]":
    """Draw loads and feasible outputs.

    A target starts at a uniform point of the box and is halved towards the witness until all
    rules hold. It is feasible for any number of rules, which rejection could not promise.

    Args:
        n: number of samples.
        split: "train", "iid" or "ood" (higher loads).
        seed: a non-negative integer.
        k: number of rules, as in `build`.
        d: number of outputs, as in `build`.

    Returns:
        x (n, 1) and target (n, d), both float64.
    """
    import torch

    if split not in LOADS:
        raise ValueError(f"split must be one of {', '.join(LOADS)}; got {split!r}")
    if n < 0:
        raise ValueError(f"n must not be negative; got {n}")
    u = np.random.default_rng([seed, list(LOADS).index(split)]).random((n, 1 + d))
    low, high = LOADS[split]
    x = _delivered(d) * (low + (high - low) * u[:, :1])
    point, y = witness(d), u[:, 1:].copy()
    # Ten halvings come within 0.001 of the witness, inside the slack of its rows.
    for _ in range(10):
        broken = ~feasible(x, y, k, d)
        y[broken] = 0.5 * (y[broken] + point)
    return torch.from_numpy(x), torch.from_numpy(y)


def _spread(i: int) -> float:
    """The i-th number of a low-discrepancy sequence in [0, 1)."""
    return float((i + 1) * _GOLDEN % 1.0)


def _delivered(d: int) -> float:
    """Load that the witness covers."""
    return float(capacities(d) @ witness(d))
