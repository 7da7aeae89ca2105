"""Derivatives of the least-norm point of the nearest set.

Where many points are equally near, the least-norm one does not rest on as many rows as it has
columns. Its columns F that left their prediction, are on no bound and are no whole numbers share
what the tight rows A ask of them: it is the solution of

    minimise  1/2 sum_F w^2 (y - yhat)^2   subject to  A z = b,

so with D = w^2 and multipliers l, `D (y - yhat) + A' l = 0` on F, and to first order

    D dy + A' dl = D dyhat - dA' l         (on F)
    A dy = db - dA z

The adjoint of these equations has the same matrix: u and v with `D u + A' v = g`, `A u = 0` on F.
Rows that depend on others change nothing, and auxiliaries, which cost nothing, get a small D.

The equations hold nearby wherever the same rows stay tight. A row without an l1 price may tilt: the
point slides along it. One with a price may not, unless the prices can follow: tilted by any little
it leaves one of the equally near points the nearest, and the point jumps. There is no derivative at
such an x; what is reported keeps all tight rows satisfied, as everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gdpnet.kernels._jit import jit, source_stamp
from gdpnet.kernels.exact._jacobian import read_row

_TIGHT = 1e-9  # relative to max(1, |b|, max|a|) of a row
_DEPENDENT = 1e-10  # squared sine of the angle between a row and those before it
_AUXILIARY = 1e-6  # in place of a weight: auxiliaries cost nothing


def _compile_vjp(stamp: int) -> Any:
    @jit
    def vjp_face(
        prepared, logic, varying, bound, yhat, weights, assignment, z, gradient, to_yhat, to_bound,
        to_varying,
    ):  # fmt: skip
        """See above; everything over the columns and rows of one component."""
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
        right, multiplier = np.empty(n), np.empty(n)
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
            # v = (A D^-1 A')^-1 A D^-1 g, and -l the same of D (y - yhat), with A = triangle basis.
            for t in range(count):
                right[t] = multiplier[t] = 0.0
                for j in range(n):
                    if free[j]:
                        right[t] += basis[t, j] * inverse[j] * gradient[s, j]
                        if j < outputs:
                            multiplier[t] -= basis[t, j] * (z[s, j] - yhat[s, j])
            solve_transposed(triangle, count, right)
            solve_transposed(triangle, count, multiplier)
            for t in range(count):
                i = tight[t]
                to_bound[s, i] += right[t]
                for j in range(n):
                    gradient[s, j] -= right[t] * dense[t, j]
                    if place[i] >= 0:
                        to_varying[s, place[i], j] -= right[t] * z[s, j]
            for t in range(count):  # the gradient is D u by now
                if place[tight[t]] >= 0:
                    for j in range(n):
                        if free[j]:
                            along = inverse[j] * gradient[s, j]
                            to_varying[s, place[tight[t]], j] -= multiplier[t] * along
            for j in range(outputs):
                if free[j] or follows[j]:
                    to_yhat[s, j] = gradient[s, j]

    return vjp_face


vjp_face = _compile_vjp(source_stamp("kernels/exact/_jacobian", "kernels/exact/_face"))


@jit
def solve_transposed(triangle, size, right):
    """Solves `triangle' x = right` in place, for a lower triangle."""
    for t in range(size - 1, -1, -1):
        for c in range(t + 1, size):
            right[t] -= triangle[c, t] * right[c]
        right[t] /= triangle[t, t]


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
