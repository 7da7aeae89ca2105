"""Linear programs of a layout as compressed rows, some of whose entries differ between samples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from gdpnet.extras import need
from gdpnet.ir.data import RuleData
from gdpnet.ir.linear import Coefficient
from gdpnet.lp.program import SparseLinearProgram
from gdpnet.relaxation.rows import RowBuilder, Value

Array = np.ndarray


class SparseProgram(ABC):
    """A program for all samples that have its layout: `matrix z <= bound`, or `==`.

    Args:
        data: the rules, as `relaxable` gives them.

    Attributes:
        outputs: columns from which the outputs `which` are read.
        distances: columns that hold their distances, in the same order.
        which: outputs of the program.
        weights: columns with the weights of the products, in the layout's order; -1 where there is
            no choice.
        lower, upper: bounds of the columns, `n`.
        names: constraint, or variable, that each row came from.
        start, column, value: rows, compressed; entries that move hold what does not depend on the
            sample.
        bound: right sides, `m`.
        equality: bool `m`.
        row_of: row of each entry.
        moving: entries that move; numbers beyond the last entry are right sides.
        cones: rows whose `matrix z - bound` together are in a cone; none of a linear program.
    """

    outputs: Array
    distances: Array
    which: Array
    weights: list[int]

    warm: ClassVar[bool] = True
    """Whether the basis of one sample is a good start for the next."""

    def __init__(self, data: RuleData) -> None:
        self.data = data
        varying = [i for i, row in enumerate(data.rows) if any(a.atoms for _, a in row.terms)]
        self._varying = {i: k for k, i in enumerate(varying)}
        # Parameters: one a row, then the coefficients that depend on x, then the start.
        self._first_start = len(data.rows) + len(varying) * len(data.columns)
        self._value_of: dict[int, int] = {}
        self._distance_of: dict[int, int] = {}
        self.weights = []

    # ---- parameters ----------------------------------------------------------------------

    @abstractmethod
    def parameters(self, bound: Array, varying: Array, start: Array) -> Array:
        """What samples differ in, `batch x parameters`.

        Args:
            bound: right sides of the rules' rows, `batch x rows`.
            varying: coefficients that depend on x, `batch x k x n`.
            start: predictions within the outputs' bounds, `batch x d`.
        """

    @abstractmethod
    def outputs_at(self, points: Array, parameters: Array) -> Array:
        """The outputs `which` at points of the program, `batch x len(which)`.

        Args:
            points: values of the columns, `batch x n`.
            parameters: of the samples, `batch x parameters`.
        """

    def start_of(self, parameters: Array) -> Array:
        """The prediction among the parameters of a sample, `d`."""
        return np.asarray(parameters[self._first_start :])

    def reach(self, start: Array) -> Array:
        """The most that each of `distances` is where the program has its least value, `n`.

        Args:
            start: prediction within the outputs' bounds, `d`.
        """
        return np.asarray(self.upper[self.distances])

    @abstractmethod
    def pull_back(
        self, to_moving: Array, to_y: Array, parameters: Array
    ) -> tuple[Array, Array, Array]:
        """Gradients with respect to what `parameters` puts together: bound, varying, start.

        Args:
            to_moving: gradient with respect to what moves, `batch x moving`.
            to_y: gradient with respect to the outputs, `batch x d`.
            parameters: of the samples, `batch x parameters`.
        """

    def moving_values(self, parameters: Array) -> Array:
        """Values of the entries that move, `batch x moving`."""
        return np.ascontiguousarray(self._base + parameters[:, self._used] @ self._factors)

    def numbers(self, moving: Array) -> tuple[Array, Array]:
        """Entries, `batch x entries`, and right sides, `batch x m`, from what moves."""
        every = np.tile(np.concatenate([self.value, self.bound]), (len(moving), 1))
        every[:, self.moving] = moving
        return every[:, : len(self.value)], every[:, len(self.value) :]

    def at(self, moving: Array) -> SparseLinearProgram:
        """The program of one sample, without costs."""
        every = np.concatenate([self.value, self.bound])
        every[self.moving] = moving
        return self.scaled(*np.split(every, [len(self.value)]))

    def scaled(self, value: Array, bound: Array) -> SparseLinearProgram:
        """The program with other entries and right sides, without costs."""
        return SparseLinearProgram(
            *(np.zeros(len(self.lower)), np.where(self.equality, bound, -np.inf), bound),
            *(self.lower, self.upper, self.start, self.column, value),
        )

    def through_rows(self, prices: Array, point: Array) -> Array:
        """Gradient with respect to what moves, from that with respect to right sides, `moving`.

        Args:
            prices: gradient of a loss with respect to the right sides, `m`.
            point: values of the columns, `n`.
        """
        inside = self.moving < len(self.value)
        found = np.empty(len(self.moving))
        entry = self.moving[inside]
        found[inside] = -prices[self.row_of[entry]] * point[self.column[entry]]
        found[~inside] = prices[self.moving[~inside] - len(self.value)]
        return found

    def _split(self, to_moving: Array) -> tuple[Array, Array, Array]:
        """Gradients with respect to the three spans of parameters: `m`, `k x n` and `d` of them."""
        data, size = self.data, len(to_moving)
        found = np.zeros((size, self._first_start + data.outputs))
        found[:, self._used] = to_moving @ self._factors.T
        rows, varying, start = np.split(found, [len(data.rows), self._first_start], axis=1)
        return rows, varying.reshape(size, len(self._varying), len(data.columns)), start

    # ---- entries -------------------------------------------------------------------------

    def _coefficient(self, i: int, j: int, a: Coefficient) -> Value:
        """The coefficient of column j in row i of the rules, a number or a parameter."""
        if a.is_number:
            return Value(a.number)
        place = len(self.data.rows) + self._varying[i] * len(self.data.columns) + j
        return Value(moving=((place, 1.0),))

    def _compress(self, rows: RowBuilder, lower: Sequence[float], upper: Sequence[float]) -> None:
        need("scipy", None, "Relaxations written out need")  # late: its import takes a while
        from scipy.sparse import coo_array

        self.which = np.array(sorted(self._distance_of), dtype=np.int64)
        self.outputs = np.array([self._value_of[j] for j in self.which], dtype=np.int64)
        self.distances = np.array([self._distance_of[j] for j in self.which], dtype=np.int64)
        self.names = rows.names
        self.lower, self.upper = np.array(lower, dtype=float), np.array(upper, dtype=float)
        values = [terms[c] for terms in rows.terms for c in sorted(terms)]
        self.start = np.cumsum([0, *map(len, rows.terms)]).astype(np.int64)
        self.column = np.array([c for t in rows.terms for c in sorted(t)], dtype=np.int64)
        self.row_of = np.repeat(np.arange(len(rows.terms)), np.diff(self.start))
        self.value = np.array([v.number for v in values], dtype=np.float64)
        self.bound = np.array([b.number for b in rows.bounds], dtype=np.float64)
        self.equality = np.array(rows.equality, dtype=bool)
        self.cones = tuple(rows.cones)
        every = [*values, *rows.bounds]
        self.moving = np.array([k for k, v in enumerate(every) if v.moving], dtype=np.int64)
        self._base = np.array([every[k].number for k in self.moving], dtype=np.float64)
        parts = [
            (parameter, place, factor)
            for place, k in enumerate(self.moving)
            for parameter, factor in every[k].moving
        ]
        self._used = np.array(sorted({p for p, _, _ in parts}), dtype=np.int64)
        at = np.searchsorted(self._used, [p for p, _, _ in parts]).astype(np.int64)
        shape = (len(self._used), len(self.moving))
        entries = ([f for *_, f in parts], (at, [place for _, place, _ in parts]))
        self._factors = coo_array(entries, shape=shape).tocsr() if parts else np.zeros(shape)
