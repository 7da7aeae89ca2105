"""Whether rows leave a point, for every input there may be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gdpnet.ir.atoms import Tree
from gdpnet.ir.data import RuleData
from gdpnet.ir.linear import Coefficient
from gdpnet.lp import highs
from gdpnet.relaxation.intervals import Interval, interval, times


class Room:
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
        self._data, self._ranges = data, ranges
        highspy = highs.package()
        self._infeasible = highspy.HighsModelStatus.kInfeasible
        self._solver = highspy.Highs()
        options: dict[str, Any] = {"output_flag": False, "threads": 1, "presolve": "off"}
        for option, value in options.items():
            self._solver.setOptionValue(option, value)
        self._columns: dict[Any, int] = {}
        self._sizes: list[int] = []
        for j, column in enumerate(data.columns):
            self._column(j, column.lower, column.upper)
        self.empty = not self.push(data.global_rows)

    def push(self, rows: Iterable[int]) -> bool:
        """Add rows; whether a point is left."""
        size = 0
        for i in rows:
            row = self._data.rows[i]
            terms: dict[int, float] = {}
            for j, coefficient in row.terms:
                for column, value in self._times(coefficient, j):
                    terms[column] = terms.get(column, 0.0) + value
            for atom, multiplier in row.bound.atoms.items():
                column = self._column(atom, *interval(atom, self._ranges))
                terms[column] = terms.get(column, 0.0) - multiplier
            low = row.bound.number if row.equality else -np.inf
            columns = np.fromiter(terms, dtype=np.int32, count=len(terms))
            values = np.fromiter(terms.values(), dtype=float, count=len(terms))
            self._solver.addRow(low, row.bound.number, len(terms), columns, values)
            size += 1
        self._sizes.append(size)
        if size:
            self._solver.run()
        return bool(self._solver.getModelStatus() != self._infeasible)

    def pop(self) -> None:
        """Take the rows of the last push away."""
        size = self._sizes.pop()
        if size:
            last = self._solver.getNumRow()
            self._solver.deleteRows(size, np.arange(last - size, last, dtype=np.int32))

    def _times(self, coefficient: Coefficient, j: int) -> list[tuple[int, float]]:
        column = self._data.columns[j]
        found = [(self._columns[j], coefficient.number)]
        for atom, multiplier in coefficient.atoms.items():
            bounds = times(interval(atom, self._ranges), (column.lower, column.upper))
            found.append((self._column((atom, j), *bounds), multiplier))
        return found

    def _column(self, key: int | Tree | tuple[Tree, int], low: float, high: float) -> int:
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = len(self._columns)
            self._solver.addCol(0.0, low, high, 0, np.empty(0, np.int32), np.empty(0))
        return column
