"""Derivatives of the least-norm point of the nearest set.

Where many points are equally near, the least-norm one does not rest on as many rows as it has
columns. Its columns that left their prediction and are on no bound share what the tight rows ask of
them: with their prices constant on the nearest set, the point is

    y_F = yhat_F + D^-1 A' (A D^-1 A')^-1 (b - A yhat_F - rest),   D = w^2,

A the tight rows on these columns F. Rows that depend on others change nothing. With respect to the
coefficients the point is not even continuous (a row that is tilted by any little makes the nearest
point unique), so of their derivative only the part that keeps the rows satisfied is reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gdpnet.solve._gradients import Gradients
from gdpnet.solve.exact._arrays import Component
from gdpnet.solve.exact._jacobian import Given, by_component, read_row
from gdpnet.solve.exact._jit import Array, jit, source_stamp

if TYPE_CHECKING:
    from gdpnet.solve.exact._engine import Instance, Solved

_TIGHT = 1e-9  # relative to max(1, |b|, max|a|) of a row
_DEPENDENT = 1e-10  # squared sine of the angle between a row and those before it
_AUXILIARY = 1e-6  # in place of a weight: auxiliaries cost nothing


@dataclass(frozen=True)
class FaceJacobian:
    """The Jacobian of a batch of least-norm projections.

    Attributes:
        instance: the rules of the batch.
        solved: the projections.
        yhat: predictions, (B, d).
        weights: (d,).
    """

    instance: Instance
    solved: Solved
    yhat: Array
    weights: Array

    def vjp(self, gradient: Array) -> Gradients:
        """Gradients of a loss from its gradient with respect to y.

        Args:
            gradient: (B, d).
        """

        def one(index: int, component: Component, given: Given, to: Gradients) -> None:
            _vjp(
                *(component.prepared, component.logic, given.varying),
                np.ascontiguousarray(self.instance.bound[:, component.rows]),
                np.ascontiguousarray(self.yhat[:, component.outputs]),
                np.ascontiguousarray(self.weights[component.outputs]),
                np.ascontiguousarray(self.solved.assignment[:, component.booleans]),
                *(given.z, given.gradient, *to),
            )

        return by_component(self.instance, self.solved, gradient, one)


def _compile_vjp(stamp: int) -> Any:
    @jit
    def _vjp(
        prepared, logic, varying, bound, yhat, weights, assignment, z, gradient, to_yhat, to_bound,
        to_varying,
    ):  # fmt: skip
        """See `FaceJacobian`; everything over the columns and rows of one component."""
        size, n = z.shape
        m, outputs = prepared.equality.size, yhat.shape[1]
        place = np.full(m, -1, np.int64)  # of a row among the varying ones
        for v in range(prepared.varying.size):
            place[prepared.varying[v]] = v
        enforced = np.zeros(m, np.bool_)
        free, follows = np.empty(n, np.bool_), np.empty(n, np.bool_)
        inverse = np.empty(n)
        row = np.empty(n)
        dense = np.empty((n, n))  # independent tight rows
        basis = np.empty((n, n))  # the same, orthonormal in the metric of `inverse`
        tight = np.empty(n, np.int64)
        triangle = np.empty((n, n))  # dense = triangle basis
        right = np.empty(n)
        for s in range(stamp * 0, size):
            for j in range(n):
                at_bound = z[s, j] <= prepared.lower[j] or z[s, j] >= prepared.upper[j]
                follows[j] = j < outputs and z[s, j] == yhat[s, j]
                free[j] = not (follows[j] or at_bound or prepared.integer[j])
                inverse[j] = 1.0 / (weights[j] ** 2 if j < outputs else _AUXILIARY)
            mark_enforced(prepared, logic, assignment[s], enforced)
            count = 0
            for i in range(m):
                if not enforced[i] or count == n:
                    continue
                read_row(prepared, varying, place, s, i, row)
                activity, largest = 0.0, max(1.0, abs(bound[s, i]))
                for j in range(n):
                    activity += row[j] * z[s, j]
                    largest = max(largest, abs(row[j]))
                if abs(activity - bound[s, i]) > _TIGHT * largest:
                    continue
                before = after = 0.0
                for j in range(n):
                    dense[count, j] = row[j]
                    basis[count, j] = row[j] if free[j] else 0.0
                    before += basis[count, j] ** 2 * inverse[j]
                for t in range(count):
                    share = 0.0
                    for j in range(n):
                        share += basis[count, j] * basis[t, j] * inverse[j]
                    triangle[count, t] = share
                    for j in range(n):
                        basis[count, j] -= share * basis[t, j]
                for j in range(n):
                    after += basis[count, j] ** 2 * inverse[j]
                if after <= _DEPENDENT * before or before == 0.0:
                    continue
                length = np.sqrt(after)
                triangle[count, count] = length
                for j in range(n):
                    basis[count, j] /= length
                tight[count] = i
                count += 1
            # The multipliers of the adjoint: (A D^-1 A')^-1 A D^-1 g with A = triangle basis.
            for t in range(count):
                right[t] = 0.0
                for j in range(n):
                    if free[j]:
                        right[t] += basis[t, j] * inverse[j] * gradient[s, j]
            for t in range(count - 1, -1, -1):
                for c in range(t + 1, count):
                    right[t] -= triangle[c, t] * right[c]
                right[t] /= triangle[t, t]
            for t in range(count):
                i = tight[t]
                to_bound[s, i] += right[t]
                for j in range(n):
                    gradient[s, j] -= right[t] * dense[t, j]
                    if place[i] >= 0:
                        to_varying[s, place[i], j] -= right[t] * z[s, j]
            for j in range(outputs):
                if free[j] or follows[j]:
                    to_yhat[s, j] = gradient[s, j]

    return _vjp


_vjp = _compile_vjp(source_stamp("solve/exact/_jacobian", "solve/exact/_face"))


@jit
def mark_enforced(prepared, logic, assignment, enforced):
    """Which rows the chosen disjuncts and the globals ask for."""
    enforced[:] = False
    for e in range(prepared.global_rows.size):
        enforced[prepared.global_rows[e]] = True
    for k in range(logic.tied.size):
        if assignment[k] == 1:
            for e in range(logic.true_start[k], logic.true_start[k + 1]):
                enforced[logic.true_row[e]] = True
        elif assignment[k] == -1 and logic.tied[k]:
            for e in range(logic.false_start[k], logic.false_start[k + 1]):
                enforced[logic.false_row[e]] = True
