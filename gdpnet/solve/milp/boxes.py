"""Bounds of columns, and what rows make of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gdpnet.ir.compressed import Compressed

_LEAST = 1e-3  # a bound is moved by no less than this
_WIDE = 1e12  # ends beyond this are as good as none: sums with them lose digits
_EMPTY = 1e-7  # a box is empty only by more than this, relative


@dataclass
class Box:
    """Bounds of columns, each `n`."""

    lower: np.ndarray
    upper: np.ndarray

    def farthest(self, column: np.ndarray, value: np.ndarray) -> np.ndarray:
        """The most that each of some terms can be, `terms`; no value is 0."""
        return value * np.where(value > 0.0, self.upper[column], self.lower[column])


def propagate(
    rows: Compressed, bound: np.ndarray, equality: np.ndarray, box: Box, rounds: int
) -> np.ndarray:
    """Tighten a box by rows `a v <= b` or `a v == b`, all of them at once, for some rounds.

    Bounds that are not finite are left alone where two of a row are.

    Args:
        rows: by their nonzeros.
        bound: right sides.
        equality: bool.
        box: changed in place.
        rounds: at most.

    Returns:
        Rows that nothing in the box satisfies, or that take all of it away, bool.
    """
    empty = np.zeros(len(rows), dtype=bool)
    owner, column = rows.row, rows.column
    room = _EMPTY * np.maximum(1.0, np.maximum(np.abs(bound), rows.largest))
    for _ in range(rounds):
        before = box.lower.copy(), box.upper.copy()
        for sign in (1.0, -1.0):
            active = np.ones(len(rows), bool) if sign > 0 else equality
            if not active.any():
                continue
            a, b = sign * rows.value, sign * bound
            with np.errstate(invalid="ignore"):
                least = a * np.where(a > 0.0, box.lower[column], box.upper[column])
            wide = ~(least > -_WIDE)
            kept = np.where(wide, 0.0, least)
            total = np.bincount(owner, kept, len(rows))
            missing = np.bincount(owner, wide, len(rows))
            empty |= active & (missing == 0) & (total > b + room)
            usable = active[owner] & ((missing[owner] == 0) | ((missing[owner] == 1) & wide))
            usable &= np.abs(total[owner]) < _WIDE
            end = (b[owner] - (total[owner] - kept)) / a
            up = usable & (a > 0.0)
            down = usable & (a < 0.0)
            np.minimum.at(box.upper, column[up], end[up])
            np.maximum.at(box.lower, column[down], end[down])
        if (box.lower > box.upper).any():
            with np.errstate(invalid="ignore"):
                size = np.maximum(1.0, np.maximum(np.abs(box.lower), np.abs(box.upper)))
                gone = box.lower - box.upper > _EMPTY * size
            empty |= np.bincount(owner, gone[column], len(rows)) > 0
            box.lower[gone], box.upper[gone] = before[0][gone], before[1][gone]
            # What rounding alone has crossed is nearly a point.
            ends = np.minimum(box.lower, box.upper), np.maximum(box.lower, box.upper)
            box.lower[:], box.upper[:] = ends
        with np.errstate(invalid="ignore"):  # two infinite ones: not moved
            moved = (before[1] - box.upper > _LEAST) | (box.lower - before[0] > _LEAST)
        if not moved.any():
            break
    return empty
