"""The lifted hull of a pattern of active rules as matrices, in the form each peer likes best.

Every product k has a copy u_k of the outputs, distances eta_k and a weight lambda_k:

    minimise  sum eta_k + eps/2 sum (|u_k|^2 + |eta_k|^2 + lambda_k^2)
    with      A u_k <= lambda_k s,  -eta_k <= u_k <= eta_k,  lambda_k l <= u_k <= lambda_k r,
              sum lambda_k = 1,  lambda_k >= 0,  y = yhat + sum u_k.

Shifted, u_k is the copy less lambda_k yhat, as the quadratic program wants it: s = b - A yhat.
Unshifted it is the copy itself: fewer numbers change with the sample, which suits a solver that
keeps its program. What changes stands in the columns of the weights only. Several disjunctions
over the same outputs (CNF) have the same sums of u and of eta, and the first carries the cost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array

from .problem import Array, Part, Problem, Samples


@dataclass(frozen=True)
class Rows:
    """Rows `matrix v <= right` or `== right`, with entries that depend on the sample.

    Attributes:
        matrix: (rows, variables), the moving entries stored, as 0.
        right: (rows,).
        place: where the moving entries stand in `matrix.data`.
        row: their rows.
        column: their columns.
        source: the parameter that each is a multiple of.
        sign: the multiple.
    """

    matrix: csr_array
    right: Array
    place: Array
    row: Array
    column: Array
    source: Array
    sign: Array

    def values(self, theta: Array) -> Array:
        """Entries of the matrix for parameters (..., parameters): (..., entries)."""
        data = np.broadcast_to(self.matrix.data, (*theta.shape[:-1], len(self.matrix.data))).copy()
        data[..., self.place] = self.sign * theta[..., self.source]
        return data


class Program:
    """minimise `cost v + 1/2 curvature v^2` subject to `less`, `equal`, and weights >= 0.

    Args:
        problem: the rules.
        parts: of one pattern.
        shifted: which copies are used.

    Attributes:
        size: number of variables.
        cost: (size,).
        weights: columns of the weights.
        less: inequalities.
        equal: equalities.
        output: y = output v, plus the prediction where copies are shifted; (d, size).
        fixed: outputs that stand in no row: they stay at the prediction.
    """

    def __init__(self, problem: Problem, parts: tuple[Part, ...], shifted: bool) -> None:
        self.problem, self.shifted = problem, shifted
        d, rows = problem.outputs, len(problem.matrix)
        # Parameters: right sides, then lower and upper bounds less the prediction; or right
        # sides and predictions.
        self._less, self._equal = _Builder(), _Builder()
        cost: list[float] = []
        weights: list[int] = []
        output: list[tuple[int, int]] = []
        size = 0
        for part in parts:
            own = np.array(part.columns, dtype=int)
            width = 2 * len(own) + 1
            sums: list[list[int]] = []
            for number, block in enumerate(part.blocks):
                firsts = [size + width * k for k in range(len(block))]
                sums.append(firsts)
                size += width * len(block)
                for first, product in zip(firsts, block, strict=True):
                    weight = first + width - 1
                    weights.append(weight)
                    cost += [0.0] * len(own) + [1.0 - bool(number)] * len(own) + [0.0]
                    for i in dict.fromkeys((*part.rows, *product)):
                        to = self._equal if problem.equality[i] else self._less
                        terms = [
                            (first + place, problem.matrix[i, j])
                            for place, j in enumerate(own)
                            if problem.matrix[i, j]
                        ]
                        if shifted or problem.moving[i]:
                            to.add(terms, 0.0, [(weight, i, -1.0)])
                        else:
                            to.add([*terms, (weight, -problem.random.bound[0, i])], 0.0)
                    for place, j in enumerate(own):
                        u, eta = first + place, first + len(own) + place
                        if not number:
                            output.append((j, u))
                        if shifted:
                            self._less.add([(u, 1.0), (eta, -1.0)], 0.0)
                            self._less.add([(u, -1.0), (eta, -1.0)], 0.0)
                            self._less.add([(u, -1.0)], 0.0, [(weight, rows + j, 1.0)])
                            self._less.add([(u, 1.0)], 0.0, [(weight, rows + d + j, -1.0)])
                        else:
                            to_yhat = [(weight, rows + j, -1.0)]
                            self._less.add([(u, 1.0), (eta, -1.0)], 0.0, to_yhat)
                            from_yhat = [(weight, rows + j, 1.0)]
                            self._less.add([(u, -1.0), (eta, -1.0)], 0.0, from_yhat)
                            self._less.add([(u, -1.0), (weight, problem.lower[j])], 0.0)
                            self._less.add([(u, 1.0), (weight, -problem.upper[j])], 0.0)
                self._equal.add([(first + width - 1, 1.0) for first in firsts], 1.0)
            for other in sums[1:]:
                for place in range(2 * len(own)):
                    same = [(first + place, 1.0) for first in sums[0]]
                    self._equal.add([*same, *((first + place, -1.0) for first in other)], 0.0)
        self.size, self.cost, self.weights = size, np.array(cost), np.array(weights, dtype=int)
        self.less, self.equal = self._less.rows(size), self._equal.rows(size)
        j, u = np.array(output, dtype=int).reshape(-1, 2).T
        self.output = coo_array((np.ones(len(j)), (j, u)), shape=(d, size)).tocsr()
        self.fixed = np.setdiff1d(np.arange(d), j)
        del self._less, self._equal

    def parameters(self, samples: Samples, index: Array) -> Array:
        """Parameters of samples, (n, parameters)."""
        start = self.problem.start(samples)[index]
        bound = samples.bound[index]
        if not self.shifted:
            return np.hstack([bound, start])
        slack = bound - start @ self.problem.matrix.T
        return np.hstack([slack, self.problem.lower - start, self.problem.upper - start])

    def point(self, v: Array, start: Array) -> Array:
        """Outputs (d,) of a solution."""
        y = self.output @ v
        if self.shifted:
            return start + y
        if len(self.fixed):
            y[self.fixed] = start[self.fixed]
        return y


class _Builder:
    """Collects rows."""

    def __init__(self) -> None:
        self._entries: list[tuple[int, int, float]] = []
        self._moving: list[tuple[int, int, int, float]] = []
        self._right: list[float] = []

    def add(
        self,
        terms: list[tuple[int, float]],
        right: float,
        moving: list[tuple[int, int, float]] | None = None,
    ) -> None:
        row = len(self._right)
        self._right.append(right)
        self._entries.extend((row, column, value) for column, value in terms)
        self._moving.extend((row, *entry) for entry in moving or [])

    def rows(self, size: int) -> Rows:
        moved = np.array([m[:3] for m in self._moving], dtype=int).reshape(-1, 3)
        fixed = np.array([e[:2] for e in self._entries], dtype=int).reshape(-1, 2)
        row = np.concatenate([fixed[:, 0], moved[:, 0]])
        column = np.concatenate([fixed[:, 1], moved[:, 1]])
        order = np.lexsort((column, row))
        values = np.array([e[2] for e in self._entries] + [0.0] * len(moved))
        start = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(self._right)))])
        matrix = csr_array((values[order], column[order], start), (len(self._right), size))
        where = np.empty(len(order), dtype=int)
        where[order] = np.arange(len(order))
        return Rows(
            matrix,
            np.array(self._right),
            where[len(fixed) :],
            moved[:, 0],
            moved[:, 1],
            moved[:, 2],
            np.array([m[3] for m in self._moving]),
        )
