"""Distances without rows: a column is its centre and what it moves up, less what it moves down.

w |v - c|  as  v - e <= c, -v - e <= -c, cost w e    takes two rows and a column for each output;
as  v = c + up - down, cost w (up + down) takes a column and no row, and solvers are
several times faster on what is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from gdpnet.lp.program import SparseLinearProgram


def shifted(
    program: SparseLinearProgram, column: np.ndarray, by: np.ndarray
) -> SparseLinearProgram:
    """A program some of whose columns are measured from somewhere else than 0.

    Args:
        program: the program.
        column: those columns.
        by: where their 0 is.
    """
    at = np.zeros(len(program.cost))
    at[column] = by
    shift = np.bincount(program.row, program.value * at[program.column], len(program.row_lower))
    return replace(
        program,
        row_lower=program.row_lower - shift,
        row_upper=program.row_upper - shift,
        lower=program.lower - at,
        upper=program.upper - at,
    )


class Moves:
    """Columns whose distance from a centre is what a program minimises.

    Args:
        moves: for each of them the column that is its distance, which stands in no row, and the
            centre, which lies within its bounds.

    Attributes:
        column: that move; in a split program the column is the move up.
        away: their distances; in a split program the move down.
        centre: of each.
    """

    def __init__(self, moves: Mapping[int, tuple[int, float]]) -> None:
        self.column = np.fromiter(moves, dtype=np.int64)
        self.away = np.array([away for away, _ in moves.values()], dtype=np.int64)
        self.centre = np.array([centre for _, centre in moves.values()])

    def spread(self, columns: int) -> tuple[np.ndarray, np.ndarray]:
        """For each of some columns the one that is its distance, or -1, and its centre, or 0."""
        down, centre = np.full(columns, -1), np.zeros(columns)
        down[self.column], centre[self.column] = self.away, self.centre
        return down, centre

    def split(self, program: SparseLinearProgram) -> SparseLinearProgram:
        """The program in up and down instead of column and distance."""
        if not len(self.column):
            return program
        down, _ = self.spread(len(program.cost))
        program = shifted(program, self.column, self.centre)
        owner, column, value = program.row, program.column, program.value
        moved = down[column] >= 0
        owner = np.concatenate([owner, owner[moved]])
        column = np.concatenate([column, down[column[moved]]])
        value = np.concatenate([value, -value[moved]])
        order = np.argsort(owner, kind="stable")
        count = np.bincount(owner, minlength=len(program.row_lower))
        cost, lower, upper = program.cost.copy(), program.lower.copy(), program.upper.copy()
        cost[self.away] = program.cost[self.away] - program.cost[self.column]
        cost[self.column] += program.cost[self.away]
        upper[self.away] = -program.lower[self.column]
        lower[self.column] = lower[self.away] = 0.0
        return replace(
            program,
            cost=cost,
            lower=lower,
            upper=upper,
            start=np.concatenate([[0], np.cumsum(count)]),
            column=column[order],
            value=value[order],
        )

    def back(self, point: np.ndarray) -> np.ndarray:
        """A point of the program from one of its split."""
        found = point.copy()
        up, down = point[self.column], point[self.away]
        found[self.column] = self.centre + (up - down)
        found[self.away] = np.abs(up - down)
        return found
