"""The program of a layout in as few rows as possible: the same value, for solvers only.

Everything is measured from the prediction yhat (auxiliaries: from their lower bounds). The copy of
product k of block c is what it adds and what it takes away, p_ck and q_ck, so that its distance is
their sum and needs no row of its own, and blocks only have to stay below a common distance:

    minimise    sum_j w_j eta_j
    subject to  a_i (p_ck - q_ck) <= (b_i - a_i yhat) weight_ck       rows of the product, globals
                p_ck <= (h - yhat) weight_ck,  q_ck <= (yhat - l) weight_ck
                sum_k (p_ck - q_ck) = y - yhat,  sum_k (p_ck + q_ck) <= eta,  sum_k weight_ck = 1

HiGHS takes a quarter to a third of the time that the Pyomo chain's form takes it
(benchmarks/relaxations.py).
"""

from __future__ import annotations

import numpy as np

from gdpnet.ir.data import RuleData
from gdpnet.relaxation.blocks import Layout, Part
from gdpnet.relaxation.products import Product
from gdpnet.relaxation.rows import ONE, RowBuilder, Value
from gdpnet.relaxation.sparse import Array, SparseProgram

_MINUS = Value(-1.0)


def is_compact(data: RuleData) -> bool:
    """Whether the compact form knows the rows, which are linear, and the bounds, finite numbers."""
    finite = all(np.isfinite([c.lower, c.upper]).all() for c in data.columns)
    moving = any(data.rows[i].is_bound for i in data.global_rows)
    return finite and not moving and not data.curved


class CompactProgram(SparseProgram):
    """The program of a layout.

    Its parameters are right sides less the rows at the start, coefficients that depend on x, and
    the start.

    Args:
        data: the rules, as `relaxable` gives them; bounds as `is_compact` wants them.
        layout: parts to write.
    """

    # Few rows are tight that were tight before: presolve saves more pivots than the old basis.
    warm = False

    def __init__(self, data: RuleData, layout: Layout) -> None:
        super().__init__(data)
        m, n = len(data.rows), len(data.columns)
        self._low = np.array([c.lower for c in data.columns])
        self._high = np.array([c.upper for c in data.columns])
        self._matrix = np.zeros((m, n))
        for i, row in enumerate(data.rows):
            if i not in self._varying:
                self._matrix[i, [j for j, _ in row.terms]] = [a.number for _, a in row.terms]
        self._rows, self._free = RowBuilder(), list[bool]()
        for part in layout:
            self._write(part)
        lower = np.where(self._free, -np.inf, 0.0)
        self._compress(self._rows, lower.tolist(), [np.inf] * len(self._free))
        del self._rows, self._free

    def parameters(self, bound: Array, varying: Array, start: Array) -> Array:
        """What samples differ in, `batch x parameters`; see `SparseProgram`."""
        shift = self._shift(start)
        slack = bound - shift @ self._matrix.T
        rows = list(self._varying)
        slack[:, rows] -= (varying * shift[:, None]).sum(2)
        return np.concatenate([slack, varying.reshape(len(bound), -1), start], 1)

    def outputs_at(self, points: Array, parameters: Array) -> Array:
        """The outputs `which` at points of the program, `batch x len(which)`."""
        start = parameters[:, self._first_start :]
        return np.asarray(start[:, self.which] + points[:, self.outputs])

    def reach(self, start: Array) -> Array:
        """The most that distances are, farther than any copy goes; see `SparseProgram`."""
        at = start[self.which]
        return np.maximum(self._high[self.which] - at, at - self._low[self.which])

    def pull_back(
        self, to_moving: Array, to_y: Array, parameters: Array
    ) -> tuple[Array, Array, Array]:
        """Gradients with respect to right sides, coefficients and start; see `SparseProgram`."""
        slack, varying, start = self._split(to_moving)
        values = parameters[:, len(self.data.rows) : self._first_start].reshape(varying.shape)
        shift = self._shift(parameters[:, self._first_start :])
        own = slack[:, list(self._varying)]
        to_shift = slack @ self._matrix + (own[:, :, None] * values).sum(1)
        varying = varying - own[:, :, None] * shift[:, None]
        return slack, varying, start + to_y - to_shift[:, : self.data.outputs]

    def _shift(self, start: Array) -> Array:
        """Where columns are measured from, `batch x n`."""
        shift = np.tile(self._low, (len(start), 1))
        shift[:, : self.data.outputs] = start
        return shift

    # ---- writing -------------------------------------------------------------------------

    def _column(self, free: bool = False) -> int:
        self._free.append(free)
        return len(self._free) - 1

    def _write(self, part: Part) -> None:
        moves = {j: self._column(free=True) for j in part.columns}
        distances = {j: self._column() for j in part.columns if j < self.data.outputs}
        self._value_of |= moves
        self._distance_of |= distances
        for block in part.blocks:
            copies = [self._copy(part, product) for product in block.products]
            rules = " + ".join(self.data.rules[r].name for r in block.rules)
            weights = [(weight, ONE) for weight, _ in copies]
            self._rows.add(f"choice of {rules}", weights, ONE, equality=True)
            self.weights += [weight for weight, _ in copies]
            for j in part.columns:
                name = self.data.columns[j].name
                up = [copy[j][0] for _, copy in copies]
                down = [copy[j][1] for _, copy in copies if j in distances]
                both = [(c, ONE) for c in up]
                move = [*both, *((c, _MINUS) for c in down), (moves[j], _MINUS)]
                self._rows.add(f"sum of {name}", move, equality=True)
                if j in distances:
                    both += [(c, ONE) for c in down]
                    self._rows.add(f"distance of {name}", [*both, (distances[j], _MINUS)])

    def _copy(self, part: Part, product: Product) -> tuple[int, dict[int, tuple[int, ...]]]:
        """Column of a product's weight, and those that add to a variable and take from it."""
        weight = self._column()
        copy: dict[int, tuple[int, ...]] = {}
        for j in part.columns:
            column = self.data.columns[j]
            if j < self.data.outputs:
                copy[j] = self._column(), self._column()
                start = self._first_start + j
                sides = [
                    Value(-column.upper, ((start, 1.0),)),
                    Value(column.lower, ((start, -1.0),)),
                ]
            else:
                copy[j] = (self._column(),)
                sides = [Value(column.lower - column.upper)]
            for c, side in zip(copy[j], sides, strict=True):
                self._rows.add(f"bound of {column.name}", [(c, ONE), (weight, side)])
        for i in dict.fromkeys((*product.rows, *part.rows)):
            row = self.data.rows[i]
            terms = [(weight, Value(moving=((i, -1.0),)))]
            for j, a in row.terms:
                value = self._coefficient(i, j, a)
                terms += zip(copy[j], (value, -value), strict=False)
            self._rows.add(row.name, terms, equality=row.equality)
        return weight, copy
