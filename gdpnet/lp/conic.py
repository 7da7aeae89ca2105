"""Conic programs by compressed rows, as solvers of cones are handed them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np

from gdpnet.lp.program import Outcome

Array = np.ndarray


class ConeKind(StrEnum):
    """What the members of a cone satisfy."""

    ROTATED = "rotated"
    """(p, q, r_1, ...): `p q >= sum r_i^2`, p and q not negative."""
    SECOND_ORDER = "second_order"
    """(p, r_1, ...): `p >= root(sum r_i^2)`."""
    EXPONENTIAL = "exponential"
    """(p, q, r): `p >= q exp(r / q)`, q positive, or its limit at 0."""
    POWER = "power"
    """(p, q, r): `p^a q^(1 - a) >= |r|`, p and q not negative, a the exponent."""


@dataclass(frozen=True)
class Cone:
    """Rows whose `a v - bound` together are in a cone.

    Attributes:
        kind: which.
        first: its first row.
        size: number of its rows, one behind the other.
        exponent: of `POWER`.
    """

    kind: ConeKind
    first: int
    size: int
    exponent: float = 0.5


@dataclass(frozen=True)
class ConicStructure:
    """What all samples of a conic program share: everything but numbers.

    Rows are `a v <= bound`, or `==`, or members of a cone; those of no cone are linear.

    Attributes:
        lower, upper: bounds of the columns, `n`.
        start: `rows + 1`.
        column: of each entry.
        equality: bool `rows`.
        cones: those there are.
    """

    lower: Array
    upper: Array
    start: Array
    column: Array
    equality: Array
    cones: tuple[Cone, ...]


class MoreDigits(Protocol):
    """A solution in more digits than arrays have."""

    def adjoint(self, along: Array) -> tuple[Array, Array, Array]:
        """Gradients with respect to costs, entries of A and right sides.

        Args:
            along: gradient with respect to the columns, `n`.
        """


@dataclass(frozen=True)
class ConicSolution:
    """What a solver found for one sample.

    Attributes:
        outcome: how it ended.
        point: values of the columns, `n`; None where there are none.
        bound: proved lower bound on the optimal value, that of the dual point.
        slack: what is left of each row of the standard form, in the solver's order; None likewise.
        dual: multipliers of the same rows.
        exact: the same in more digits, with its own derivative; None where there are none.
        doubtful: whether it was looked at and leaves open what is tight.
    """

    outcome: Outcome
    point: Array | None = None
    bound: float = -np.inf
    slack: Array | None = None
    dual: Array | None = None
    exact: MoreDigits | None = None
    doubtful: bool = False

    @property
    def known(self) -> bool:
        """Whether a point was found, or that there is none."""
        return self.outcome in (Outcome.OPTIMAL, Outcome.INFEASIBLE)


def part_of_no_cone(rows: int, cones: Sequence[Cone]) -> Array:
    """Rows that are linear, bool `rows`."""
    linear = np.ones(rows, dtype=bool)
    for cone in cones:
        linear[cone.first : cone.first + cone.size] = False
    return linear
