"""The nearest point of the rules' hull in the space of the outputs: no lift.

minimise |y - yhat|^2 with y in the hull of what rules allow, as the paper's public package does:
the distance is no part of the disjuncts, so y is the nearest point of a convex set that contains
all of them, and need not lie in any. DNF: one hull, of the products of the active rules'
disjuncts, each with the global rows. CNF: the intersection of the hulls of single rules, each
disjunct with the global rows. By Clarabel, one small program a sample.
"""

from __future__ import annotations

from itertools import chain, product

import clarabel
import numpy as np
from scipy import sparse

from gdpnet.ir.instance import Instance
from gdpnet.model import RuleModel

Array = np.ndarray


class HullInY:
    """Projects predictions onto the hull in y.

    Args:
        rules: linear, coefficients the same for all inputs, no auxiliaries; outputs with bounds.
        form: `"dnf"` or `"cnf"`.
    """

    def __init__(self, rules: RuleModel, form: str) -> None:
        data = rules.data
        self._rules, self._form = rules, form
        self._matrix = rules.table.shared.numpy()
        if len(rules.table.varying) or self._matrix.shape[1] != data.outputs:
            raise ValueError("coefficients that depend on x, and auxiliaries, are not written")
        self._equality = np.array([row.equality for row in data.rows], dtype=bool)
        self._box = rules.lower.numpy(), rules.upper.numpy()

    def __call__(self, yhat: Array, x: Array) -> Array:
        """Points (n, d) for predictions (n, d) at inputs (n, p)."""
        instance = Instance.of(self._rules, np.ascontiguousarray(x))
        rules = self._rules.data.rules
        active = instance.active[:, [rule.clause for rule in rules]]
        found = [
            self._nearest(yhat[s], instance.bound[s], self._blocks(active[s]))
            for s in range(len(yhat))
        ]
        return np.array(found).reshape(yhat.shape)

    def _blocks(self, active: Array) -> list[list[list[int]]]:
        """Hulls, each a list of sets, each its rows."""
        data = self._rules.data
        always = list(data.global_rows)
        each = [
            [list(data.booleans[k - 1].true_rows) for k in data.clauses[rule.clause].literals]
            for rule, on in zip(data.rules, active, strict=True)
            if on
        ]
        if self._form == "cnf":
            return [[[*always, *rows] for rows in disjuncts] for disjuncts in each] or [[always]]
        return [[[*always, *chain.from_iterable(chosen)] for chosen in product(*each)]]

    def _nearest(self, yhat: Array, bound: Array, blocks: list[list[list[int]]]) -> Array:
        """Columns: y, then of each set its copy and its weight; rows `A v + s = b`, s in a cone."""
        d = len(yhat)
        low, high = self._box
        size = d + sum(len(sets) for sets in blocks) * (d + 1)
        equal, less = _Rows(size), _Rows(size)
        first = d
        for sets in blocks:
            # the copies sum up to y, the weights to 1
            at = first + (d + 1) * np.arange(len(sets))
            for j in range(d):
                equal.add([j, *(at + j)], [1.0, *(-np.ones(len(sets)))], 0.0)
            equal.add(at + d, np.ones(len(sets)), 1.0)
            for rows in sets:
                copy, weight = np.arange(first, first + d), first + d
                for i in rows:
                    to = equal if self._equality[i] else less
                    to.add([*copy, weight], [*self._matrix[i], -bound[i]], 0.0)
                for j in range(d):
                    less.add([copy[j], weight], [1.0, -high[j]], 0.0)
                    less.add([copy[j], weight], [-1.0, low[j]], 0.0)
                less.add([weight], [-1.0], 0.0)
                first += d + 1
        quadratic = sparse.diags_array(np.r_[np.full(d, 2.0), np.zeros(size - d)]).tocsc()
        linear = np.r_[-2.0 * yhat, np.zeros(size - d)]
        matrix = sparse.vstack([equal.matrix, less.matrix]).tocsc()
        right = np.r_[equal.right, less.right]
        cones = [clarabel.ZeroConeT(len(equal.right)), clarabel.NonnegativeConeT(len(less.right))]
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_threads = 1
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
        solution = clarabel.DefaultSolver(quadratic, linear, matrix, right, cones, settings).solve()
        if str(solution.status) not in ("Solved", "AlmostSolved"):
            raise RuntimeError(f"Clarabel: {solution.status}")
        return np.array(solution.x[:d])


class _Rows:
    """Rows of a sparse matrix, with their right sides."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._values: list[float] = []
        self._at: list[int] = []
        self._start = [0]
        self.right: list[float] = []

    def add(self, columns: list[int] | Array, values: list[float] | Array, right: float) -> None:
        self._at.extend(int(c) for c in columns)
        self._values.extend(float(v) for v in values)
        self._start.append(len(self._at))
        self.right.append(right)

    @property
    def matrix(self) -> sparse.csr_array:
        shape = len(self.right), self._columns
        return sparse.csr_array((self._values, self._at, self._start), shape)
