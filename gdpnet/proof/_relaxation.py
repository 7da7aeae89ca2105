"""The linear programs of the search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from gdpnet.errors import SolverError
from gdpnet.ir.curves import Curves
from gdpnet.lp.persistent import PersistentHighs
from gdpnet.lp.program import LinearProgram, Outcome
from gdpnet.proof._instance import Branch, RationalInstance


@dataclass(frozen=True)
class NodeAnswer:
    """Optimum of a node.

    Attributes:
        value: what is minimised.
        point: z, `n`.
        multipliers: one a row, as in a leaf.
    """

    value: float
    point: np.ndarray
    multipliers: np.ndarray


class NodeRelaxation:
    """The rows of all disjuncts in one HiGHS model, switched on and off by their bounds.

    Columns are z - yhat, the outputs as the difference of a move up and a move down, so that the
    distance is linear: (up, auxiliaries, down).
    """

    def __init__(self, instance: RationalInstance) -> None:
        self.instance = instance
        sample = self.sample = instance.touched()
        self.d, self.n = len(instance.yhat), len(instance.lower)
        self.matrix = sample.matrix
        self.scale = sample.size if len(sample.bound) else np.ones(0)
        self.shift = np.zeros(self.n)
        self.shift[: self.d] = [float(v) for v in instance.yhat]
        self.moved = sample.bound - sample.matrix @ self.shift
        # HiGHS works in units of the lightest output: below its tolerances it would not be seen.
        self.unit = float(min(instance.weights))
        self.cost = np.zeros(self.n + self.d)
        self.cost[: self.d] = self.cost[self.n :] = [float(w) / self.unit for w in instance.weights]
        # Scaled rows; multipliers are scaled back.
        full = np.hstack([sample.matrix, -sample.matrix[:, : self.d]]) / self.scale[:, None]
        self.model = _new_model(full, self.cost)
        self.full = full
        self.row_lower = np.full(len(self.scale), -np.inf)
        self.row_upper = np.full(len(self.scale), np.inf)

    def solve(self, path: Branch) -> NodeAnswer | None:
        """Optimum of a node; None where there is none."""
        lower, upper = self._columns(path)
        if (lower > upper).any():
            return None
        row_lower, row_upper = self._rows(path)
        self.model.set_columns(lower, upper)
        # Few rows change from node to node, and each change is a call.
        changed = (row_lower != self.row_lower) | (row_upper != self.row_upper)
        for row in map(int, np.flatnonzero(changed)):
            self.model.set_row(row, row_lower[row], row_upper[row])
        self.row_lower, self.row_upper = row_lower, row_upper
        outcome = self.model.solve(trusted=(Outcome.OPTIMAL, Outcome.INFEASIBLE))
        if outcome is Outcome.INFEASIBLE:
            return None
        if outcome is not Outcome.OPTIMAL:
            raise SolverError(f"certify: HiGHS failed: {self.model.status}.")
        moves = self.model.point
        point = self.shift + moves[: self.n]
        point[: self.d] -= moves[self.n :]
        multipliers = -self.model.multipliers / self.scale * self.unit
        return NodeAnswer(float(self.cost @ moves) * self.unit, point, multipliers)

    def at(self, path: Branch, point: np.ndarray) -> NodeAnswer | None:
        """What a point would be an optimum by, where that can be told without solving."""
        return None

    def rays(self, path: Branch) -> Iterator[np.ndarray]:
        """Multipliers that may prove that a node has no point."""
        lower, upper = self._columns(path)
        if (lower > upper).any():
            yield np.zeros(len(self.scale))
            return
        row_lower, row_upper = self._rows(path)
        on = np.flatnonzero(np.isfinite(row_lower) | np.isfinite(row_upper))
        # Least sum of violations: its multipliers are a ray, and never larger than 1.
        identity = np.eye(len(on))
        matrix = np.hstack([self.full[on], identity, -identity])
        cost = np.concatenate([np.zeros(len(lower)), np.ones(2 * len(on))])
        slack = np.zeros(2 * len(on))
        for presolve in (False, True):
            model = _new_model(matrix, cost)
            model.set_columns(
                np.concatenate([lower, slack]), np.concatenate([upper, slack + np.inf])
            )
            for place, row in enumerate(on):
                model.set_row(place, row_lower[row], row_upper[row])
            model.run(presolve)
            ray = np.zeros(len(self.scale))
            ray[on] = -model.multipliers / self.scale[on]
            yield ray

    def residual(self, point: np.ndarray) -> np.ndarray:
        """Scaled violation of each row, `rows`; what it says of arguments means nothing."""
        excess = (self.values(point) + self._bent(point)) / self.scale
        equality = self.sample.equality
        return np.where(equality, np.abs(excess), np.maximum(excess, 0.0))

    def values(self, point: np.ndarray) -> np.ndarray:
        """`a z - b` of each row, `rows`."""
        found: np.ndarray = self.matrix @ point - self.sample.bound
        return found

    def _bent(self, point: np.ndarray) -> np.ndarray | float:
        """What curves add to each row."""
        if not self.instance.curved:
            return 0.0
        data, added = self.instance.data, np.zeros(len(self.scale))
        given = torch.from_numpy(self.values(point)[: len(data.rows)])
        added[: len(data.rows)] = Curves(data.rows).added(given[None])[0].numpy()
        return added

    def _rows(self, path: Branch) -> tuple[np.ndarray, np.ndarray]:
        lower, upper = np.full(len(self.scale), -np.inf), np.full(len(self.scale), np.inf)
        on, off = np.fromiter(self.instance.linear(path), int), np.fromiter(path.lower, int)
        bound = self.moved / self.scale
        upper[on] = bound[on]
        lower[off] = bound[off]
        equal = on[self.sample.equality[on]]
        lower[equal] = bound[equal]
        return lower, upper

    def _box(self, path: Branch) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of the columns on a path."""
        low, high = self.sample.lower.copy(), self.sample.upper.copy()
        for j, box in path.boxes.items():
            low[j], high[j] = map(float, box)
        return low, high

    def _columns(self, path: Branch) -> tuple[np.ndarray, np.ndarray]:
        low, high = self._box(path)
        low, high = low - self.shift, high - self.shift
        lower, upper = low.copy(), high.copy()
        d = self.d
        lower[:d], upper[:d] = np.maximum(low[:d], 0.0), np.maximum(high[:d], 0.0)
        down_lower, down_upper = np.maximum(-high[:d], 0.0), np.maximum(-low[:d], 0.0)
        empty = low[:d] > high[:d]
        lower[:d][empty], upper[:d][empty] = 1.0, 0.0
        return np.concatenate([lower, down_lower]), np.concatenate([upper, down_upper])


def _new_model(matrix: np.ndarray, cost: np.ndarray) -> PersistentHighs:
    """A model whose bounds are still to be set."""
    rows, columns = matrix.shape
    free = np.full(rows, np.inf)
    return PersistentHighs(
        LinearProgram(
            *(cost, matrix, -free, free, np.zeros(columns), np.zeros(columns)),
            integer=np.zeros(columns, dtype=bool),
        )
    )
