"""Bounds of columns, and what rows make of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

_LEAST = 1e-3  # a bound is moved by no less than this share of the column's range
_WIDE = 1e12  # ends beyond this are as good as none: sums with them lose digits
_EMPTY = 1e-7  # a box is empty only by more than this, relative


@dataclass
class Box:
    """Bounds of columns, each `n`."""

    lower: np.ndarray
    upper: np.ndarray

    def most(self, columns: Sequence[int], values: Sequence[float]) -> float:
        """The most that a sum can be."""
        lower, upper = self.lower, self.upper
        return float(
            sum(
                a * (upper[j] if a > 0.0 else lower[j])
                for j, a in zip(columns, values, strict=True)
                if a != 0.0
            )
        )


class SparseRows:
    """Rows `a v <= b` or `a v == b` by their nonzeros.

    Args:
        start, column, value: compressed rows.
        bound: right sides.
        equality: bool.
    """

    def __init__(
        self,
        start: np.ndarray,
        column: np.ndarray,
        value: np.ndarray,
        bound: np.ndarray,
        equality: np.ndarray,
    ) -> None:
        self.start, self.column, self.value = start, column, value
        self.bound, self.equality = bound, equality
        self._starts = start.tolist()
        self._columns, self._values = column.tolist(), value.tolist()
        self._bounds, self._equal = bound.tolist(), equality.tolist()

    @staticmethod
    def of(matrix: np.ndarray, bound: np.ndarray, equality: np.ndarray) -> SparseRows:
        """Rows of a dense matrix."""
        row, column = np.nonzero(matrix)
        start = np.searchsorted(row, np.arange(len(matrix) + 1))
        return SparseRows(start, column, matrix[row, column], bound, equality)

    def row(self, i: int) -> tuple[list[int], list[float], float, bool]:
        """Columns, coefficients, right side, and whether it is an equality."""
        at = slice(self._starts[i], self._starts[i + 1])
        return self._columns[at], self._values[at], self._bounds[i], self._equal[i]

    def take(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Some rows, compressed: where they start, columns, coefficients."""
        entry = self.entries(index)
        start = np.concatenate([[0], np.cumsum(np.diff(self.start)[index])])
        return start, self.column[entry], self.value[entry]

    def entries(self, index: np.ndarray) -> np.ndarray:
        """Where the entries of some rows stand, one row after the other."""
        length = np.diff(self.start)[index]
        before = np.cumsum(length) - length
        return np.repeat(self.start[index] - before, length) + np.arange(length.sum())

    def single(self, i: int) -> bool:
        """Whether it has one entry."""
        return self._starts[i + 1] - self._starts[i] == 1

    def tighten(self, rows: Sequence[int], box: Box, local: Mapping[int, int]) -> bool:
        """Tighten a small box by some rows, twice; False where it is empty.

        Args:
            rows: which.
            box: of the columns in `local`.
            local: where a column stands in the box.
        """
        for _ in range(2):
            for i in rows:
                columns, values, bound, equal = self.row(i)
                ats = [local[j] for j in columns]
                for sign in (1.0, -1.0) if equal else (1.0,):
                    if not _tighten(box, ats, [sign * a for a in values], sign * bound):
                        return False
        return True


def _tighten(box: Box, columns: Sequence[int], values: Sequence[float], bound: float) -> bool:
    """Bounds that `a v <= bound` leaves; False where there are none."""
    lower, upper = box.lower, box.upper
    least = [a * (lower[j] if a > 0.0 else upper[j]) for j, a in zip(columns, values, strict=True)]
    total = sum(least)
    size = max(1.0, abs(bound), max(map(abs, values), default=0.0))
    if total > bound + _EMPTY * size:
        return False
    if not total > -_WIDE:
        missing = [at for at, part in enumerate(least) if not part > -_WIDE]
        if len(missing) != 1:
            return True
    else:
        missing = list(range(len(least)))
    for at in missing:
        j, a = columns[at], values[at]
        rest = sum(part for k, part in enumerate(least) if k != at)
        if not abs(rest) < _WIDE:
            continue
        end = (bound - rest) / a
        if a > 0.0 and end < upper[j]:
            upper[j] = max(end, lower[j])
        elif a < 0.0 and end > lower[j]:
            lower[j] = min(end, upper[j])
    return True


def propagate(rows: SparseRows, which: Sequence[int], box: Box, rounds: int) -> None:
    """Tighten a box by some rows, all of them at once, for some rounds.

    Bounds that are not finite are left alone where two of a row are.

    Args:
        rows: the rows.
        which: those that count.
        box: changed in place.
        rounds: at most.
    """
    index = np.fromiter(dict.fromkeys(which), dtype=np.int64)
    if not len(index):
        return
    entry = rows.entries(index)
    owner = np.repeat(np.arange(len(index)), np.diff(rows.start)[index])
    column, value = rows.column[entry], rows.value[entry]
    for _ in range(rounds):
        before = box.lower.copy(), box.upper.copy()
        for sign in (1.0, -1.0):
            active = np.ones(len(index), bool) if sign > 0 else rows.equality[index]
            a, b = sign * value, sign * rows.bound[index]
            with np.errstate(invalid="ignore"):
                least = a * np.where(a > 0.0, box.lower[column], box.upper[column])
            wide = ~(least > -_WIDE)
            kept = np.where(wide, 0.0, least)
            total = np.bincount(owner, kept, len(index))
            missing = np.bincount(owner, wide, len(index))
            usable = active[owner] & ((missing[owner] == 0) | ((missing[owner] == 1) & wide))
            usable &= np.abs(total[owner]) < _WIDE
            end = (b[owner] - (total[owner] - kept)) / a
            up = usable & (a > 0.0)
            down = usable & (a < 0.0)
            np.minimum.at(box.upper, column[up], end[up])
            np.maximum.at(box.lower, column[down], end[down])
        crossed = box.lower > box.upper  # by rounding, or the rows contradict: nobody asks here
        box.lower[crossed], box.upper[crossed] = before[0][crossed], before[1][crossed]
        with np.errstate(invalid="ignore"):  # two infinite ones: not moved
            moved = (before[1] - box.upper > _LEAST) | (box.lower - before[0] > _LEAST)
        if not moved.any():
            return
