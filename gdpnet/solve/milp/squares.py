"""Squared distances in linear programs: by tangents.

    t >= s^2,    s = slope (v - centre)

holds where `t >= 2 a s - a^2` does for every a. Some of these are there, and where a point is found
whose squares they miss, those at this point join them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gdpnet.lp.program import SparseLinearProgram
from gdpnet.solve.milp.moves import shifted

Array = np.ndarray


@dataclass(frozen=True)
class Squares:
    """Columns whose squared distance from a centre is what a program minimises.

    Attributes:
        column: of the program, (k,).
        away: the columns that are at least these squares, (k,).
        slope: what a column moves by is multiplied by this, (k,).
        centre: (k,).
        origin: what columns are measured from: the centre, or a whole number next to it, (k,).
        points: where there are tangents, as moves s, (points, k).
        own: of which columns a point has a tangent of their own, (points, k) bool.
    """

    column: Array
    away: Array
    slope: Array
    centre: Array
    origin: Array
    points: Array
    own: Array

    @staticmethod
    def at_centre(
        column: Array, away: Array, slope: Array, centre: Array, integer: Array
    ) -> Squares:
        """With the tangents at the centre alone; `integer` are columns that are whole, bool."""
        origin, own = np.where(integer, np.rint(centre), centre), np.ones((1, len(column)), bool)
        return Squares(column, away, slope, centre, origin, np.zeros(own.shape), own)

    @property
    def offset(self) -> Array:
        """What columns have moved by at their origins, (k,)."""
        return np.asarray(self.slope * (self.origin - self.centre))

    def moves(self, point: Array) -> Array:
        """What columns move by at a point of the program, (k,)."""
        return np.asarray(self.slope * (point[self.column] - self.centre))

    def touching(self, s: Array, square: Array | None = None, missing: float = 0.0) -> Squares:
        """The same with tangents at moves; itself where there is nothing to add.

        Args:
            s: the moves, (k,).
            square: what a program takes their squares to be, (k,); None for what it has to.
            missing: squares that are no more than this too small stay.
        """
        if square is None:
            square = (2.0 * self.points * s - self.points**2).max(0, where=self.own, initial=0.0)
        short = s * s - square > missing
        if not short.any():
            return self
        points, own = np.vstack([self.points, s]), np.vstack([self.own, short])
        return replace(self, points=points, own=own)

    def shifted(self, program: SparseLinearProgram) -> SparseLinearProgram:
        """A program whose columns are measured from their origins."""
        return shifted(program, self.column, self.origin)

    def back(self, point: Array) -> Array:
        """A point of the program from one of its shifted."""
        found = point.copy()
        found[self.column] += self.origin
        return found
