"""One (mixed-integer) linear program, and what a solver says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from gdpnet.lp.clock import Clock


class Outcome(IntEnum):
    """How a program ended; the codes have no order."""

    OPTIMAL = 0
    INFEASIBLE = 1
    FAILED = 2
    LIMIT = 3
    UNBOUNDED = 4

    @property
    def message(self) -> str:
        """What it means, to be read after a colon."""
        return _MESSAGES[self]


_MESSAGES = {
    Outcome.OPTIMAL: "optimal",
    Outcome.INFEASIBLE: "infeasible",
    Outcome.FAILED: "the solver failed",
    Outcome.LIMIT: "a limit was reached",
    Outcome.UNBOUNDED: "unbounded",
}


@dataclass(frozen=True)
class LinearProgram:
    """Minimise `cost v` subject to `row_lower <= matrix v <= row_upper`, `lower <= v <= upper`.

    Attributes:
        cost: `n`.
        matrix: `rows x n`, dense; rows are few and samples many, so building it is what counts.
        row_lower: `rows`.
        row_upper: `rows`.
        lower: `n`.
        upper: `n`.
        integer: bool `n`.
    """

    cost: np.ndarray
    matrix: np.ndarray
    row_lower: np.ndarray
    row_upper: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    integer: np.ndarray

    def sparse(self) -> SparseLinearProgram:
        """The same by compressed rows."""
        row_of, column_of = np.nonzero(self.matrix)
        return SparseLinearProgram(
            *(self.cost, self.row_lower, self.row_upper, self.lower, self.upper),
            start=np.searchsorted(row_of, np.arange(len(self.matrix) + 1)),
            column=column_of,
            value=self.matrix[row_of, column_of],
            integer=self.integer,
        )


@dataclass(frozen=True)
class SparseLinearProgram:
    """A linear program by compressed rows: row i has the entries `start[i]` to `start[i + 1]`.

    Attributes:
        cost, row_lower, row_upper, lower, upper: as in `LinearProgram`.
        start: `rows + 1`.
        column: of each entry.
        value: of each entry.
        integer: bool `n`; None where no column is whole.
        guess: where to look first, `n`, NaN where nothing is known; None for nowhere.
    """

    cost: np.ndarray
    row_lower: np.ndarray
    row_upper: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    start: np.ndarray
    column: np.ndarray
    value: np.ndarray
    integer: np.ndarray | None = None
    guess: np.ndarray | None = None

    @property
    def row(self) -> np.ndarray:
        """The row of each entry."""
        return np.repeat(np.arange(len(self.row_lower)), np.diff(self.start))

    def sparse(self) -> SparseLinearProgram:
        """It is."""
        return self


@dataclass(frozen=True)
class Solution:
    """What a solver found.

    Attributes:
        outcome: how it ended.
        point: `n`, where one was found.
        bound: proved lower bound on the optimal value.
        multipliers: of the rows of a linear program, as HiGHS tells them: change of the value with
            each right side.
        nodes: of a mixed-integer program, where the solver counts them.
    """

    outcome: Outcome
    point: np.ndarray | None = None
    bound: float = -np.inf
    multipliers: np.ndarray | None = None
    nodes: int = 0


Solver = Callable[[LinearProgram | SparseLinearProgram, Clock], Solution]
"""A function `(program, clock) -> Solution` that stops when the clock is over."""
