"""A feasible point by a few linear programs: fix what is nearly decided, and learn from conflicts.

The relaxation of a mixed-integer program decides most of its binaries, and where rows couple many
rules it knows at what price. What it leaves open is rounded, of each choice the disjunct that it
has most of, half of it at a time, and the relaxation is solved again from its last basis. Where
that has no point, the multipliers that prove it name the columns whose values contradict each
other: the one that was fixed last takes its other value, the next time it is left open. So a
conflict costs one linear program, and what has nothing to do with it stays.

The number of programs is limited, not their time: the point depends on nothing but the program.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gdpnet.lp.clock import Clock
from gdpnet.lp.options import LINEAR
from gdpnet.lp.persistent import PersistentHighs
from gdpnet.lp.program import Outcome, SparseLinearProgram

Array = np.ndarray

_MOST = 300  # linear programs
_SHARE = 0.5  # of what is open, that is fixed at a time
_SLOW = 0.75  # where more than this share of it is still open, all is fixed: the rest is conflicts
_WHOLE = 1e-6  # as near to a whole number
_TAKES_PART = 1e-9  # in a conflict, relative to the largest part


class Dived(NamedTuple):
    """What a dive found.

    Attributes:
        point: of the program, where its whole columns are whole; None where none was found.
        bound: what every point costs at least.
        programs: linear programs solved.
        multipliers: of the rows in the first of them, where it has a point.
    """

    point: Array | None
    bound: float
    programs: int
    multipliers: Array


def dive(program: SparseLinearProgram, choice: Array, clock: Clock) -> Dived:
    """Look for a point.

    Args:
        program: with whole columns.
        choice: by column, which choice it is a binary of, -1 for none; one of them is 1 at most.
        clock: when to stop.
    """
    search = _Search(program, choice)
    outcome, bound, multipliers = search.run(clock), -np.inf, np.empty(0)
    if outcome is Outcome.OPTIMAL:
        bound = float(program.cost @ search.model.point)
        multipliers = search.model.multipliers
    programs = 1
    while outcome in (Outcome.OPTIMAL, Outcome.INFEASIBLE) and programs < _MOST:
        if outcome is Outcome.OPTIMAL:
            point = search.model.point
            if not search.fix(point):
                return Dived(point, bound, programs, multipliers)
        elif not search.give_way():
            break
        outcome = search.run(clock)
        programs += 1
    return Dived(None, bound, programs, multipliers)


class _Search:
    """A relaxation, and which of its columns are fixed."""

    def __init__(self, program: SparseLinearProgram, choice: Array) -> None:
        self._program, self._choice = program, choice
        self.model = PersistentHighs(replace(program, integer=None, guess=None), LINEAR)
        self._whole = np.flatnonzero(np.asarray(program.integer))
        self._row = program.row
        self._lower, self._upper = program.lower.copy(), program.upper.copy()
        count = len(program.cost)
        self._fixed = np.zeros(count, dtype=bool)
        # The value that a fixed column takes where it has to give way, and when it was fixed.
        self._other, self._since = np.zeros(count), np.zeros(count)
        self._gave_way = np.zeros(count, dtype=np.int64)
        self._steps, self._open = 0, 0

    def run(self, clock: Clock) -> Outcome:
        """Solve it as it is fixed now."""
        self.model.set_columns(self._lower, self._upper)
        return self.model.run_within(clock)

    def fix(self, point: Array) -> bool:
        """Fix some of what is not whole at a point; False where all is."""
        value = point[self._whole]
        apart = np.abs(value - np.rint(value)) > _WHOLE
        if not apart.any():
            return False
        column = self._most_of_choices(self._whole[apart], point)
        to = np.where(self._choice[column] >= 0, 1.0, np.rint(point[column]))
        order = np.argsort(np.abs(point[column] - to), kind="stable")
        column, to = column[order], to[order]
        if len(column) > _SLOW * self._open > 0:
            # What is whole moves away as the rest is fixed; now it stays.
            still = self._whole[~apart & ~self._fixed[self._whole]]
            still = still[(self._choice[still] < 0) | (point[still] > 0.5)]
            self._hold(still, np.rint(point[still]), point)
        else:
            self._open = len(column)
            count = int(np.ceil(_SHARE * len(column)))
            column, to = column[:count], to[:count]
        self._hold(column, to, point)
        return True

    def give_way(self) -> bool:
        """Take back what contradicts the rest; False where that is nothing that was fixed."""
        proof = self.model.conflict()
        if proof is None:
            return False
        program = self._program
        part = program.value * proof[self._row]
        size = np.abs(np.bincount(program.column, part, len(program.cost)))
        met = np.flatnonzero(self._fixed & (size > _TAKES_PART * max(1.0, size.max(initial=0.0))))
        if not len(met):
            return False
        column = met[np.lexsort((-self._since[met], self._gave_way[met]))[0]]
        self._gave_way[column] += 1
        if self._gave_way[column] == 1:
            self._lower[column] = self._upper[column] = self._other[column]
            self._since[column] = -1.0
        else:
            self._lower[column], self._upper[column] = program.lower[column], program.upper[column]
            self._fixed[column] = False
        return True

    def _most_of_choices(self, column: Array, point: Array) -> Array:
        """The columns, of each choice only the largest."""
        choice = self._choice[column]
        order = np.lexsort((column, -point[column], choice))
        column, choice = column[order], choice[order]
        first = np.concatenate([[True], choice[1:] != choice[:-1]]) | (choice < 0)
        return np.asarray(column[first])

    def _hold(self, column: Array, to: Array, point: Array) -> None:
        """Fix columns, the ones that come first the longest."""
        program = self._program
        to = np.clip(to, program.lower[column], program.upper[column])
        other = np.where(point[column] > to, to + 1.0, to - 1.0)
        inside = (other >= program.lower[column]) & (other <= program.upper[column])
        self._other[column] = np.where(inside, other, 2.0 * to - other)
        self._lower[column] = self._upper[column] = to
        self._fixed[column] = True
        self._since[column] = self._steps + np.arange(len(column))
        self._steps += len(column)
