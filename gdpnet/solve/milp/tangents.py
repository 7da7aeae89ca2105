"""Tangents of squared distances as rows that see what a Disjunction costs.

Where s has a box in each disjunct of a Disjunction, the tangent of `t >= s^2` at a is lifted: with
the binaries z_k of the disjuncts

    t >= 2 a s - sum_k c_k z_k,    c_k = a^2 - (distance of a from the box of k)^2,

since c_k is the most that `2 a s - s^2` can be there. For all a these are the hull of (s, t) over
the disjuncts. The same holds of all columns together that a Disjunction touches, a being a point:

    sum t >= sum 2 a s - sum_k c_k z_k,    c_k = |a|^2 - (distance of a from disjunct k)^2,

of which its box and each of its rows tell a part. Without this a program does not see what a rule
costs before it is decided.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from gdpnet.solve.milp.boxes import Box
from gdpnet.solve.milp.envelopes import Envelopes
from gdpnet.solve.milp.frame import listed

if TYPE_CHECKING:
    from gdpnet.solve.milp.disjunctive import DisjunctiveProgram
    from gdpnet.solve.milp.squares import Squares

Array = np.ndarray
Entries = tuple[Array, Array, Array]

_KIND = 2  # where they stand among the rows of a choice
_FARTHER = 1e-9  # a row says more than the box of its disjunct where it is further away by this


class Tangents:
    """The rows of a program's squares, over columns measured from their origins.

    Args:
        program: the program.
        squares: of it.
        slots: bounds of its slots.
        kept: disjuncts that have a point, bool.
    """

    def __init__(
        self, program: DisjunctiveProgram, squares: Squares, slots: Box, kept: Array
    ) -> None:
        self._program, self._squares, self._kept = program, squares, kept
        self._frame = frame = program.frame
        # Where columns stand among the squares, -1 for nowhere.
        self._place = np.full(len(program.cost), -1)
        self._place[squares.column] = np.arange(len(squares.column))
        at = self._place[frame.slot_column]
        slope, centre = squares.slope[at], squares.centre[at]
        self._low = np.where(at >= 0, slope * (slots.lower - centre), -np.inf)
        self._high = np.where(at >= 0, slope * (slots.upper - centre), np.inf)

    def rows(self) -> tuple[Entries, Array, Iterator[tuple[Envelopes, Array]]]:
        """All of them.

        Returns:
            Of those that no Disjunction lifts row, column and value of the entries, and the right
            sides; the others, and which of them say anything.
        """
        squares, frame = self._squares, self._frame
        point, k = np.nonzero(squares.own)
        a = squares.points[point, k]
        known = 2.0 * a * squares.offset[k]  # of the left side
        choice, column, pair = frame.pairs
        each = listed(self._place[column], len(squares.column)).take(k)
        inside = listed(pair, len(choice)).take(each.column)
        of, slot = each.row[inside.row], inside.column
        near = np.clip(a[of], self._low[slot], self._high[slot])
        ends = near * (2.0 * a[of] - near) - known[of]
        single = Envelopes(
            choice[each.column],
            _KIND,
            self._entries(k[each.row], a[each.row]),
            (a * a - known)[each.row],
            (inside.row, frame.slot_owner[slot], ends),
        )
        cutting = single.cutting(self._kept)
        alone = np.ones(len(a), dtype=bool)
        alone[each.row[cutting]] = False
        plain = self._entries(k[alone], a[alone])

        def lifted() -> Iterator[tuple[Envelopes, Array]]:
            yield single, cutting
            yield from map(self._together, squares.points)

        return plain, (a * a - known)[alone], lifted()

    def _entries(self, k: Array, a: Array) -> Entries:
        """A row for each of some columns."""
        squares, every = self._squares, np.arange(len(k))
        return (
            np.concatenate([every, every]),
            np.concatenate([squares.column[k], squares.away[k]]),
            np.concatenate([2.0 * a * squares.slope[k], -np.ones(len(k))]),
        )

    def _together(self, s: Array) -> tuple[Envelopes, Array]:
        """For each choice with a row of several entries, the columns that it touches together."""
        squares, frame, place = self._squares, self._frame, self._place
        inside = place[frame.touched_column] >= 0
        choice, column = frame.touched_choice[inside], frame.touched_column[inside]
        k = place[column]
        a = s[k]
        here = np.where(place[frame.slot_column] >= 0, s[place[frame.slot_column]], 0.0)
        off = np.maximum(np.maximum(self._low - here, here - self._high), 0.0)
        by_box = np.bincount(frame.slot_owner, off * off, len(frame.members))
        far = by_box.copy()
        np.maximum.at(far, frame.own_owner, self._from_rows(s))
        every = np.arange(frame.choices)
        most = np.bincount(choice, a * a - 2.0 * a * squares.offset[k], frame.choices)
        left = (
            np.concatenate([choice, choice]),
            np.concatenate([column, squares.away[k]]),
            np.concatenate([2.0 * a * squares.slope[k], -np.ones(len(k))]),
        )
        pairs = frame.group, np.arange(len(far)), most[frame.group] - far
        # What a box tells is told column by column.
        wanted = np.zeros(frame.choices, dtype=bool)
        wanted[frame.group[self._kept & (far > by_box + _FARTHER)]] = True
        return Envelopes(every, _KIND, left, most, pairs), wanted

    def _from_rows(self, s: Array) -> Array:
        """The least squared distance of a point from each row of a disjunct, (own rows,)."""
        squares, program, own = self._squares, self._program, self._frame.own
        value, column = program.rows.value[own.entry], program.rows.column[own.entry]
        k = self._place[column]
        at = np.where(k >= 0, squares.centre[k] + s[k] / squares.slope[k], 0.0)
        broken = np.bincount(own.owner, value * at, len(own.row)) - program.bound[own.row]
        broken = np.where(program.equality[own.row], np.abs(broken), np.maximum(broken, 0.0))
        # A column that costs nothing mends any row.
        steep = np.where(k >= 0, (value / squares.slope[k]) ** 2, np.inf)
        size = np.bincount(own.owner, steep, len(own.row))
        return np.divide(broken**2, size, where=size > 0.0, out=np.zeros(len(size)))
