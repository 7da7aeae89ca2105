"""The lifted hull of a set of clusters as one linear program, for a whole batch.

With `u = y - lambda yhat` the shifted copy of a product, the l1 epigraph of the lift is |u|, and
the program of the clusters c with products k is

    minimise  sum_j w_j eta_j
    subject to  a_i u_ck <= lambda_ck (b_i - a_i yhat)         rows of the product, globals
                (l - yhat) lambda_ck <= u_ck <= (h - yhat) lambda_ck
                sum_k lambda_ck = 1                            for every cluster
                sum_k u_ck is the same for every cluster       y - yhat
                sum_k |u_ckj| <= eta_j                         for every cluster and output

It is the program of the transformation chain with y, eta and the aggregation rows substituted: the
value is the same, and so is y. Only the column of lambda depends on prediction and inputs (and
coefficients that depend on x), so a pattern of active rules is assembled once.

With one cluster eta is redundant, and |u| can be left to a simplex that knows kinks. With several,
u = p - q, and the cost is spread evenly over the clusters, so that the start without any row is
dual feasible and not degenerate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gdpnet.convexify._products import Product, products
from gdpnet.errors import RuleError
from gdpnet.rules.model import RuleModel

Array = np.ndarray


@dataclass(frozen=True)
class Sizes:
    """How large a relaxation is.

    Attributes:
        clusters: disjunctions after the basic steps.
        disjuncts: their terms in all.
        variables: columns of the program.
        rows: rows of the program.
        nonzeros: entries of its matrix.
    """

    clusters: int
    disjuncts: int
    variables: int
    rows: int
    nonzeros: int


class LiftedProgram:
    """The program of one pattern of active rules.

    Args:
        rules: the rules.
        clusters: active rules, cluster by cluster; none is a single product of the global rows.
        active: which clauses apply.
        weights: of the outputs, `d`.
        split: write u = p - q even for one cluster, for solvers that know no kinks.

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
        split: bool = False,
    ) -> None:
        self.rules = rules
        data = rules.data
        refuse_unbounded(rules)
        self.products: list[list[Product]] = [products(data, c, active) for c in clusters]
        if not self.products:
            self.products = [[Product(frozenset(), ())]]
        self.kinks = len(self.products) == 1 and not split
        self.d, self.n = data.outputs, len(data.columns)
        self._assemble(weights)

    @property
    def contradictory(self) -> bool:
        """Whether propositions leave a cluster without any product."""
        return any(not cluster for cluster in self.products)

    def sizes(self) -> Sizes:
        """How large it is."""
        return Sizes(
            clusters=len(self.products),
            disjuncts=sum(map(len, self.products)),
            variables=len(self.cost),
            rows=len(self.bound),
            nonzeros=len(self.column),
        )

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
                for i in dict.fromkeys((*data.global_rows, *product.rows)):
                    row = data.rows[i]
                    terms = [t for j, a in row.terms for t in self._copy(first, j, a.number)]
                    at_row = rows.add([*terms, (weight, 1.0)], 0.0, row.equality)
                    moving.append((at_row, weight, "row", i, 0, -1.0))
                    for j, a in row.terms:
                        if not a.is_number:
                            moving += [
                                (at_row, column, "coefficient", i, j, sign)
                                for column, sign in self._copy(first, j, 1.0)
                            ]
                for j in range(n):
                    above = rows.add([*self._copy(first, j, 1.0), (weight, 1.0)], 0.0)
                    moving.append((above, weight, "upper", j, 0, -1.0))
                    below = rows.add([*self._copy(first, j, -1.0), (weight, 1.0)], 0.0)
                    moving.append((below, weight, "lower", j, 0, 1.0))
            rows.add([(first + width - 1, 1.0) for first in self.first[c]], 1.0, True)
        for c in range(1, clusters):
            for j in range(d):
                moved = [t for f in self.first[c] for t in self._copy(f, j, 1.0)]
                moved += [t for f in self.first[0] for t in self._copy(f, j, -1.0)]
                rows.add(moved, 0.0, True)
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
        padded = np.zeros((len(yhat), self.n))
        padded[:, : self.d] = yhat
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

    def value_of(self, points: Array) -> Array:
        """Objective value of solutions, `batch`."""
        sized = np.where(self.kinked, np.abs(points), points)
        return sized @ self.cost

    def outputs(self, point: Array, yhat: Array) -> Array:
        """The outputs of solutions, `batch x d`.

        Args:
            point: `batch x n`.
            yhat: predictions within the bounds, `batch x d`.
        """
        y = yhat.copy()
        for first in self.first[0]:
            y += point[:, first : first + self.d]
            if not self.kinks:
                y -= point[:, first + self.d : first + 2 * self.d]
        return y


def refuse_unbounded(rules: RuleModel) -> None:
    """The hull needs finite bounds: name all variables that lack one."""
    data = rules.data
    open_ended = [c.name for c in data.columns if not np.isfinite([c.lower, c.upper]).all()]
    if open_ended:
        raise RuleError(
            f"The hull needs finite bounds, but {', '.join(open_ended[:8])} "
            f"{'has' if len(open_ended) == 1 else 'have'} none. Give "
            f"{'it' if len(open_ended) == 1 else 'them'} bounds in the Pyomo model, or use "
            "relaxation='dnf' with solver='exact', which needs none."
        )
    whole = [c.name for c in data.columns if c.integer]
    if whole:
        raise RuleError(
            f"The hull of integer variables ({', '.join(whole[:8])}) is not written down. Use "
            "relaxation='dnf' with solver='exact'."
        )


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
