"""The lifted hull of a part as the dense simplex wants it, for a whole batch.

With `u = y - lambda yhat` the shifted copy of a product, the l1 epigraph of the lift is |u|, and
the program of the clusters c with products k is

    minimise  sum_j w_j eta_j
    subject to  a_i u_ck <= lambda_ck (b_i - a_i yhat)         rows of the product, globals
                (l - yhat) lambda_ck <= u_ck <= (h - yhat) lambda_ck
                sum_k lambda_ck = 1                            for every cluster
                sum_k u_ck is the same for every cluster       y - yhat, and auxiliaries
                sum_k |u_ckj| <= eta_j                         for every cluster and output

It is `_program.Program` with y, eta and the aggregation rows substituted: the value is the same,
and so is y. Only the column of lambda depends on prediction and inputs (and coefficients that
depend on x), so a part is assembled once.

With one cluster eta is redundant, and |u| can be left to a simplex that knows kinks. With several,
u = p - q, and the cost is spread evenly over the clusters, so that the start without any row is
dual feasible and not degenerate.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gdpnet.convexify._blocks import ALWAYS, Block, Part
from gdpnet.convexify._products import Product, products
from gdpnet.rules.model import RuleModel

Array = np.ndarray


class LiftedProgram:
    """The program of one pattern of active rules.

    Args:
        rules: the rules.
        clusters: active rules, cluster by cluster, over all columns.
        active: which clauses apply.
        weights: of the outputs, `d`.
        part: a part of a layout, instead of clusters and active clauses.

    Attributes:
        products: products of each cluster.
        cost: `n`; columns with a cost are free with a kink at 0, or non-negative.
        lower: `n`.
        kinked: which columns are priced by their size and may be negative, bool `n`.
        start, column, value: rows, compressed, without what depends on the sample.
        bound: right sides, `m`.
        equality: bool `m`.
        moving: (row, column) of every entry that depends on the sample.
    """

    def __init__(
        self,
        rules: RuleModel,
        clusters: Sequence[Sequence[int]],
        active: Sequence[bool],
        weights: Array,
        part: Part | None = None,
    ) -> None:
        self.rules = rules
        data = rules.data
        if part is None:
            blocks = [Block(tuple(c), tuple(products(data, c, active))) for c in clusters]
            every = tuple(range(len(data.columns)))
            part = Part(every, data.global_rows, tuple(blocks) or (ALWAYS,))
        self.part = part
        self.columns = np.array(part.columns, dtype=np.int64)
        self.place = {j: k for k, j in enumerate(part.columns)}
        self.products: list[list[Product]] = [list(block.products) for block in part.blocks]
        self.kinks = len(self.products) == 1
        self.d = sum(j < data.outputs for j in part.columns)
        self.n = len(part.columns)
        self._assemble(weights[self.columns[: self.d]])

    # ---- columns ---------------------------------------------------------------------------

    def _copy(self, first: int, j: int, factor: float) -> list[tuple[int, float]]:
        """`factor * u_j` of the product whose columns begin at `first`."""
        if j >= self.d:  # an auxiliary: one column, not shifted
            return [(first + self._positive_parts + j - self.d, factor)]
        if self.kinks:
            return [(first + j, factor)]
        return [(first + j, factor), (first + self.d + j, -factor)]

    def _assemble(self, weights: Array) -> None:
        d, n, data = self.d, self.n, self.rules.data
        clusters = len(self.products)
        self._positive_parts = d if self.kinks else 2 * d
        width = self._positive_parts + (n - d) + 1
        self.first: list[list[int]] = []
        at = 0
        for cluster in self.products:
            self.first.append([at + width * k for k in range(len(cluster))])
            at += width * len(cluster)
        slack = at  # eta_j - sum_k |u_ckj| of every cluster and output
        columns = at + clusters * d if clusters > 1 else at
        self.cost = np.zeros(columns)
        self.lower = np.zeros(columns)
        self.kinked = np.zeros(columns, dtype=bool)
        rows = _Rows()
        moving: list[tuple[int, int, str, int, int, float]] = []
        for c, cluster in enumerate(self.products):
            for product, first in zip(cluster, self.first[c], strict=True):
                weight = first + width - 1
                for j in range(d):
                    for column, _ in self._copy(first, j, 1.0):
                        self.cost[column] = weights[j] / clusters
                        self.kinked[column] = self.kinks
                        if self.kinks:
                            self.lower[column] = -np.inf
                for j in range(d, n):
                    self.lower[self._copy(first, j, 1.0)[0][0]] = -np.inf
                for i in dict.fromkeys((*self.part.rows, *product.rows)):
                    row = data.rows[i]
                    terms = [
                        t for j, a in row.terms for t in self._copy(first, self.place[j], a.number)
                    ]
                    at_row = rows.add([*terms, (weight, 1.0)], 0.0, row.equality)
                    moving.append((at_row, weight, "row", i, 0, -1.0))
                    for j, a in row.terms:
                        if not a.is_number:
                            moving += [
                                (at_row, column, "coefficient", i, j, sign)
                                for column, sign in self._copy(first, self.place[j], 1.0)
                            ]
                for j, column in enumerate(self.part.columns):
                    bounds = data.columns[column]
                    if np.isfinite(bounds.upper):
                        above = rows.add([*self._copy(first, j, 1.0), (weight, 1.0)], 0.0)
                        moving.append((above, weight, "upper", column, 0, -1.0))
                    if np.isfinite(bounds.lower):
                        below = rows.add([*self._copy(first, j, -1.0), (weight, 1.0)], 0.0)
                        moving.append((below, weight, "lower", column, 0, 1.0))
            rows.add([(first + width - 1, 1.0) for first in self.first[c]], 1.0, True)
        for c in range(1, clusters):
            for j in range(n):
                moved = [t for f in self.first[c] for t in self._copy(f, j, 1.0)]
                moved += [t for f in self.first[0] for t in self._copy(f, j, -1.0)]
                rows.add(moved, 0.0, True)
            for j in range(d):
                size = [(column, 1.0) for f in self.first[c] for column, _ in self._copy(f, j, 1.0)]
                size += [
                    (column, -1.0) for f in self.first[0] for column, _ in self._copy(f, j, 1.0)
                ]
                rows.add([*size, (slack + c * d + j, 1.0), (slack + j, -1.0)], 0.0, True)
        if clusters > 1:
            self.cost[slack:] = np.tile(weights / clusters, clusters)
        self.start, self.column, self.value, self.bound, self.equality = rows.arrays()
        self._index_moving(moving)

    def _index_moving(self, moving: list[tuple[int, int, str, int, int, float]]) -> None:
        """Where the entries that depend on the sample stand, and where they come from."""
        place = {}
        for row in range(len(self.bound)):
            for e in range(self.start[row], self.start[row + 1]):
                place[row, int(self.column[e])] = e
        self.moving = np.array([(row, column) for row, column, *_ in moving], dtype=np.int64)
        self.entry = np.array([place[row, column] for row, column, *_ in moving], dtype=np.int64)
        kinds = np.array([kind for _, _, kind, *_ in moving])
        self._kind = {kind: np.flatnonzero(kinds == kind) for kind in ("row", "upper", "lower")}
        self._kind["coefficient"] = np.flatnonzero(kinds == "coefficient")
        self._from = np.array([source for *_, source, _, _ in moving], dtype=np.int64)
        self._column = np.array([column for *_, column, _ in moving], dtype=np.int64)
        self._sign = np.array([sign for *_, sign in moving])

    # ---- samples ---------------------------------------------------------------------------

    def moving_values(self, bound: Array, varying: Array, yhat: Array) -> Array:
        """Values of the entries that depend on the sample.

        Args:
            bound: right sides of the rules' rows, `batch x rows`.
            varying: coefficients that depend on x, `batch x k x n`.
            yhat: predictions within the bounds, `batch x d`.

        Returns:
            `batch x entries`, in the order of `moving`.
        """
        data = self.rules.data
        table = self.rules.table
        padded = np.zeros((len(yhat), len(data.columns)))
        padded[:, : data.outputs] = yhat
        activity = padded @ table.shared.numpy().T
        rows = table.varying.numpy()
        if len(rows):
            activity[:, rows] = np.einsum("bkn,bn->bk", varying, padded)
        lower = np.array([column.lower for column in data.columns])
        upper = np.array([column.upper for column in data.columns])
        values = np.empty((len(yhat), len(self._from)))
        for kind, source in (
            ("row", bound - activity),
            ("upper", upper - padded),
            ("lower", lower - padded),
        ):
            at = self._kind[kind]
            values[:, at] = self._sign[at] * source[:, self._from[at]]
        at = self._kind["coefficient"]
        if len(at):
            place = {int(row): k for k, row in enumerate(rows)}
            which = np.array([place[int(row)] for row in self._from[at]])
            values[:, at] = self._sign[at] * varying[:, which, self._column[at]]
        return values

    @property
    def weights(self) -> list[int]:
        """Columns of the products' weights."""
        return [f + self._positive_parts + self.n - self.d for c in self.first for f in c]

    def value_of(self, points: Array) -> Array:
        """Objective value of solutions, `batch`."""
        sized = np.where(self.kinked, np.abs(points), points)
        return sized @ self.cost

    def outputs(self, point: Array, yhat: Array) -> Array:
        """The outputs of solutions, `batch x d`, those of the part changed.

        Args:
            point: `batch x n`.
            yhat: predictions within the bounds, `batch x d`.
        """
        y = yhat.copy()
        own = self.columns[: self.d]
        for first in self.first[0]:
            y[:, own] += point[:, first : first + self.d]
            if not self.kinks:
                y[:, own] -= point[:, first + self.d : first + 2 * self.d]
        return y


class _Rows:
    """Rows while they are being written."""

    def __init__(self) -> None:
        self.terms: list[dict[int, float]] = []
        self.bounds: list[float] = []
        self.equality: list[bool] = []

    def add(self, terms: list[tuple[int, float]], bound: float, equality: bool = False) -> int:
        collected: dict[int, float] = {}
        for column, value in terms:
            collected[column] = collected.get(column, 0.0) + value
        self.terms.append(collected)
        self.bounds.append(bound)
        self.equality.append(equality)
        return len(self.terms) - 1

    def arrays(self) -> tuple[Array, Array, Array, Array, Array]:
        start = np.cumsum([0, *map(len, self.terms)]).astype(np.int64)
        column = np.array([c for terms in self.terms for c in sorted(terms)], dtype=np.int64)
        value = np.array([terms[c] for terms in self.terms for c in sorted(terms)])
        return start, column, value, np.array(self.bounds), np.array(self.equality)
