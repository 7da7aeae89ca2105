"""Whether rows leave a point: rows that come and go, each time a linear program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from gdpnet.lp.options import FEASIBILITY
from gdpnet.lp.persistent import PersistentHighs
from gdpnet.lp.program import Outcome

Row = tuple[float, dict[int, float], float]
"""Lower side, entries by column, upper side."""

Item = TypeVar("Item")


class RowStack(ABC, Generic[Item]):
    """A linear program to which items, each some rows, come and go as on a stack."""

    def __init__(self) -> None:
        self._model = PersistentHighs(options=FEASIBILITY)
        self._columns: dict[Hashable, int] = {}
        self._sizes: list[int] = []

    def push(self, items: Iterable[Item]) -> bool:
        """Add items; whether a point is left."""
        size = 0
        for item in items:
            for row in self._rows_of(item):
                self._model.add_row(*row)
                size += 1
        self._sizes.append(size)
        if size:
            self._model.run()
        return self._model.outcome is not Outcome.INFEASIBLE

    def pop(self) -> None:
        """Take the items of the last push away."""
        if size := self._sizes.pop():
            self._model.delete_rows(size)

    @abstractmethod
    def _rows_of(self, item: Item) -> Iterable[Row]:
        """Rows of an item, over columns that `_column` gave."""

    def _column(self, key: Hashable, low: float, high: float) -> int:
        """Number of a variable, which is added where it is new."""
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = len(self._columns)
            self._model.add_column(low, high)
        return column
