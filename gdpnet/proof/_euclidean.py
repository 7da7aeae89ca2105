"""The nodes of the search in the Euclidean norm: projections, and multipliers of their rows.

All nodes are one set of rules for the exact engine: every row of the sample, and the other side of
those that can be dealt with, is a rule of its own that applies or not, and the bounds of whole
numbers are rows whose right sides change. So nothing is set up at a node.
"""

from __future__ import annotations

import numpy as np

from gdpnet import core
from gdpnet.core import TIGHT
from gdpnet.errors import SolverError
from gdpnet.ir.data import Boolean, Clause, Column
from gdpnet.ir.instance import Instance
from gdpnet.ir.written import rules_of
from gdpnet.proof._instance import Branch, RationalInstance
from gdpnet.proof._relaxation import NodeAnswer, NodeRelaxation
from gdpnet.solve.exact.engine import ExactEngine
from gdpnet.solve.exact.options import SearchOptions
from gdpnet.solve.exact.prices import balance, bounds_met


class EuclideanRelaxation(NodeRelaxation):
    """Nodes whose optimum is a squared distance; what contradicts is proved as for l1."""

    def __init__(self, instance: RationalInstance) -> None:
        super().__init__(instance)
        sample, columns = self.sample, instance.data.columns
        rows = len(sample.bound)
        self.opposite = sorted(set(instance.opposite_row.values()))
        self.split = [j for j, column in enumerate(columns) if column.integer]
        unit = np.eye(self.n)[self.split]
        self.everything = np.vstack([sample.matrix, -sample.matrix[self.opposite], unit, -unit])
        self.ends = len(self.everything) - 2 * len(self.split)  # where the bounds begin
        self.equal = np.zeros(len(self.everything), dtype=bool)
        self.equal[:rows] = sample.equality
        self.right = np.concatenate(
            [sample.bound, -sample.bound[self.opposite], np.zeros(2 * len(self.split))]
        )
        own = [Column(c.name, c.lower, c.upper) for c in columns]
        self.written = rules_of(
            *(self.everything, self.right, self.equal, own, self.d),
            booleans=[Boolean("", (i,)) for i in range(len(self.right))],
            clauses=[Clause("", (i + 1,)) for i in range(len(self.right))],
        )
        self.engine = ExactEngine(self.written)
        weights = np.array([float(w) for w in instance.weights])
        self.heaviest = float(weights.max())
        self.options = SearchOptions(weights / self.heaviest, tolerance=0.0, threads=1, norm="l2")
        size = np.abs(sample.matrix).max(0, initial=0.0)
        self.units = np.where(size > 0.0, size, 1.0)
        self.units[: self.d] = weights / self.heaviest

    def solve(self, path: Branch) -> NodeAnswer | None:
        """Optimum of a node; None where there is none."""
        low, high = self._box(path)
        if (low > high).any():
            return None
        active, right = self._setting(path, low, high)
        node = Instance(active[None], right[None], np.zeros((1, 0, self.n)), np.zeros((1, 0)))
        solved = self.engine.project(node, self.shift[None, : self.d].copy(), self.options)
        if solved.status[0] == core.NO_SOLUTION:
            return None
        if solved.status[0] not in (core.SOLVED, core.ACCEPTED_AS_IS):
            raise SolverError("certify: the projection of a node was lost in rounding errors.")
        point = np.nan_to_num(solved.z[0])
        value = float(solved.distance[0]) * self.heaviest**2
        return NodeAnswer(value, point, self._multipliers(point, active, right, low, high))

    def at(self, path: Branch, point: np.ndarray) -> NodeAnswer | None:
        """What a point would be an optimum by; None where there is no room for one."""
        low, high = self._box(path)
        if (low > high).any():
            return None
        active, right = self._setting(path, low, high)
        value = float(self.instance.away(point[: self.d]))
        return NodeAnswer(value, point, self._multipliers(point, active, right, low, high))

    def _setting(
        self, path: Branch, low: np.ndarray, high: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows that apply, and all right sides."""
        right = self.right.copy()
        ends = np.concatenate([high[self.split], -low[self.split]])
        right[self.ends :] = np.where(np.isfinite(ends), ends, 0.0)
        active = np.zeros(len(right), dtype=bool)
        active[list(self.instance.linear(path))] = True
        active[len(self.scale) : self.ends] = np.isin(self.opposite, list(path.lower))
        active[self.ends :] = np.isfinite(ends)
        return active, right

    def _multipliers(
        self,
        point: np.ndarray,
        active: np.ndarray,
        right: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
    ) -> np.ndarray:
        """What balances the slope of the squared distance, one a row, as in a leaf."""
        size = np.maximum(1.0, np.maximum(np.abs(right), np.abs(self.everything).max(1)))
        off = np.abs(self.everything @ point - right)
        tight = np.flatnonzero(active & (off <= TIGHT * size))
        rows = np.vstack([self.everything[tight], bounds_met(point, low, high)])
        free = np.zeros(len(rows), dtype=bool)
        free[: len(tight)] = self.equal[tight]
        slope = np.zeros(self.n)
        slope[: self.d] = 2 * self.options.weights**2 * (point - self.shift)[: self.d]
        found = balance(rows, free, slope, self.units)[: len(tight)] * self.heaviest**2
        multipliers = np.zeros(len(right))
        multipliers[tight] = found
        rows_given = len(self.scale)
        multipliers[self.opposite] -= multipliers[rows_given : self.ends]
        return multipliers[:rows_given]
