"""Whether rows of rules leave a point, for every input there may be."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from gdpnet.ir.data import RuleData
from gdpnet.ir.intervals import Interval, interval, times
from gdpnet.ir.linear import Coefficient
from gdpnet.lp.feasibility import Row, RowStack


class FeasibilityCheck(RowStack[int]):
    """A linear program over columns and global rows to which rows come and go as on a stack.

    An expression of the inputs is a variable within its range, the same in all rows, and so is its
    product with a column. So rows that are found contradictory are so for every x in the ranges.

    Args:
        data: the rules.
        ranges: range of each input, infinite where it is not known.

    Attributes:
        empty: whether the global rows leave nothing by themselves.
    """

    def __init__(self, data: RuleData, ranges: Sequence[Interval]) -> None:
        super().__init__()
        self._data, self._ranges = data, ranges
        for j, column in enumerate(data.columns):
            self._column(j, column.lower, column.upper)
        self.empty = not self.push(data.global_rows)

    def _rows_of(self, item: int) -> Iterator[Row]:
        row = self._data.rows[item]
        if row.curves:  # without it more is found feasible, never less
            return
        terms: dict[int, float] = {}
        for j, coefficient in row.terms:
            for column, value in self._times(coefficient, j):
                terms[column] = terms.get(column, 0.0) + value
        for atom, multiplier in row.bound.atoms.items():
            column = self._column(atom, *interval(atom, self._ranges))
            terms[column] = terms.get(column, 0.0) - multiplier
        high = row.bound.number
        yield high if row.equality else -math.inf, terms, high

    def _times(self, coefficient: Coefficient, j: int) -> list[tuple[int, float]]:
        column = self._data.columns[j]
        found = [(self._columns[j], coefficient.number)]
        for atom, multiplier in coefficient.atoms.items():
            bounds = times(interval(atom, self._ranges), (column.lower, column.upper))
            found.append((self._column((atom, j), *bounds), multiplier))
        return found
