"""Rows by their nonzeros: what a large table is held as."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Compressed:
    """A matrix by rows: row i has the entries `start[i]` to `start[i + 1]`.

    Attributes:
        start: `rows + 1`.
        column: of each entry.
        value: of each entry.
        columns: how many there are.
    """

    start: Array
    column: Array
    value: Array
    columns: int

    @staticmethod
    def of(matrix: Array) -> Compressed:
        """The nonzeros of a dense matrix."""
        row, column = np.nonzero(matrix)
        start = np.searchsorted(row, np.arange(len(matrix) + 1))
        return Compressed(start, column, matrix[row, column], matrix.shape[1])

    def __len__(self) -> int:
        return len(self.start) - 1

    @cached_property
    def row(self) -> Array:
        """Which row each entry stands in."""
        return np.repeat(np.arange(len(self)), np.diff(self.start))

    @cached_property
    def largest(self) -> Array:
        """The largest coefficient of each row in size, 0 for an empty one, `rows`."""
        return self.most(np.abs(self.value))

    def most(self, value: Array) -> Array:
        """The largest of some numbers of a row's entries, none of them negative, `rows`."""
        found = np.zeros(len(self))
        filled = np.flatnonzero(np.diff(self.start))
        if len(filled):
            found[filled] = np.maximum.reduceat(value, self.start[filled])
        return found

    def times(self, z: Array) -> Array:
        """The product with a vector, `rows`, or with each of a batch, `batch x rows`."""
        if z.ndim == 1:
            return np.bincount(self.row, self.value * z[self.column], len(self))
        found = np.zeros((len(z), len(self)))
        filled = np.flatnonzero(np.diff(self.start))
        if len(filled):
            terms = z[:, self.column] * self.value
            found[:, filled] = np.add.reduceat(terms, self.start[filled], axis=1)
        return found

    def dense(self) -> Array:
        """All of it, `rows x columns`."""
        matrix = np.zeros((len(self), self.columns))
        matrix[self.row, self.column] = self.value
        return matrix

    def entries(self, rows: Array) -> Array:
        """Where the entries of some rows stand, one row after the other."""
        length = np.diff(self.start)[rows]
        before = np.cumsum(length) - length
        return np.repeat(self.start[rows] - before, length) + np.arange(length.sum())

    def take(self, rows: Array | Sequence[int]) -> Compressed:
        """Some of the rows."""
        rows = np.asarray(rows, dtype=np.int64)
        entry = self.entries(rows)
        start = np.concatenate([[0], np.cumsum(np.diff(self.start)[rows])])
        return Compressed(start, self.column[entry], self.value[entry], self.columns)

    def by(self, factor: Array) -> Compressed:
        """Every row times a factor of its own."""
        return Compressed(self.start, self.column, self.value * factor[self.row], self.columns)

    def filled(self, rows: Array, given: Array) -> Compressed:
        """The same with other coefficients in some rows.

        Args:
            rows: which.
            given: their coefficients, `k x columns`; only entries that are there are taken.
        """
        place = np.full(len(self), -1)
        place[rows] = np.arange(len(rows))
        own = place[self.row]
        value = np.where(own < 0, self.value, given[own, self.column] if len(rows) else 0.0)
        return Compressed(self.start, self.column, value, self.columns)

    def without_zeros(self) -> Compressed:
        """The same without entries that are 0."""
        kept = self.value != 0.0
        if kept.all():
            return self
        start = np.concatenate([[0], np.cumsum(kept)])[self.start]
        return Compressed(start, self.column[kept], self.value[kept], self.columns)

    def widened(self, columns: int) -> Compressed:
        """The same with further columns, which no row has."""
        return Compressed(self.start, self.column, self.value, columns)

    def with_column(self, value: Array) -> Compressed:
        """The same with one more column, at the end of each row where it is not 0."""
        length = np.diff(self.start)
        more = value != 0.0
        start = np.concatenate([[0], np.cumsum(length + more)])
        at = self.start[1:][more]
        return Compressed(
            start,
            np.insert(self.column, at, self.columns),
            np.insert(self.value, at, value[more]),
            self.columns + 1,
        )

    def above(self, other: Compressed) -> Compressed:
        """The rows of this one, then those of another."""
        return Compressed(
            np.concatenate([self.start, self.start[-1] + other.start[1:]]),
            np.concatenate([self.column, other.column]),
            np.concatenate([self.value, other.value]),
            self.columns,
        )


class Coefficients:
    """Constant coefficients of rows as torch uses them: a dense table, or nonzeros where large.

    Args:
        rows: by their nonzeros.
    """

    LARGE = 2**21
    """Entries of a table from which on it is not held dense, unless it is full."""

    def __init__(self, rows: Compressed) -> None:
        self.rows = rows
        size = len(rows) * rows.columns
        self.small = size <= self.LARGE or 8 * len(rows.column) > size
        self._dense = torch.from_numpy(rows.dense()) if self.small else None
        self._on: dict[torch.device, tuple[torch.Tensor, ...]] = {}

    @property
    def dense(self) -> torch.Tensor:
        """The table, `rows x columns`; made anew each time where it is large."""
        return torch.from_numpy(self.rows.dense()) if self._dense is None else self._dense

    def _at(self, device: torch.device) -> tuple[torch.Tensor, ...]:
        """On a device: the table, or where entries stand and what they are; the largest of rows."""
        if device not in self._on:
            parts = [torch.from_numpy(self.rows.largest)]
            if self._dense is not None:
                parts.append(self._dense)
            else:
                entries = self.rows.row, self.rows.column, self.rows.value
                parts += [torch.from_numpy(each) for each in entries]
            self._on[device] = tuple(part.to(device) for part in parts)
        return self._on[device]

    def largest(self, device: torch.device) -> torch.Tensor:
        """The largest coefficient of each row in size, `rows`."""
        return self._at(device)[0]

    def times(self, z: torch.Tensor) -> torch.Tensor:
        """The product with each row of a batch, `batch x columns` to `batch x rows`."""
        _, *parts = self._at(z.device)
        if self.small:
            return z @ parts[0].T
        row, column, value = parts
        found = z.new_zeros(len(z), len(self.rows))
        return found.index_add(1, row, z[:, column] * value)

    def of_rows(self, index: torch.Tensor) -> torch.Tensor:
        """Coefficients of some rows, dense, `k x columns`."""
        if self._dense is not None:
            return self._at(index.device)[1][index]
        return torch.from_numpy(self.rows.take(index.cpu().numpy()).dense()).to(index.device)
