"""The derivative of the regularised quadratic program, on the pieces that hold its solution.

With `z_k = lambda_k z'_k` the copies, s their signs, and H the quadratic term's diagonal (2 eps for
outputs, eps for auxiliaries), the solution satisfies, for every product with weight,

    H z_k + w s + A' nu = 0      on the free columns
    A z_k = lambda_k b'          with b' = b - A yhat; columns at a bound: z_k = lambda_k (u - yhat)

and the prices of the weights agree.  The adjoint of these equations has the same matrix, so one
small system a product gives p_k, q_k (the adjoints of z_k and nu) up to a multiple of the direction
z1 in which z_k grows with lambda_k, and one scalar m joins the products:

    p_k = p0_k + pi_k z1_k,   pi_k = (m - gradient . z1_k) / slope_k,   sum pi_k = 0

With as many rows as free columns p0 = 0 and z1 = z', and `tau = pi nu + lambda q`, all that is
needed then, comes from the rows alone.  A singular system (rows that depend on each other) is
solved with its dependent unknowns at 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from gdpnet.kernels._jit import KERNEL, Array, inner, outlined, source_stamp
from gdpnet.kernels.exact._arrays import Prepared
from gdpnet.kernels.qp._band import AT_BOUND, AT_KINK, FAILED, FREE_BELOW, PASSED

_SINGULAR = 1e-13  # of rows with a largest coefficient of about 1


class Adjoint(NamedTuple):
    """Memory of one thread."""

    matrix: Array  # (2 n, 2 n)
    right: Array  # (2 n, 3)
    dense: Array  # (n, n): tight rows, scaled
    unit: Array  # (n,): by which they were scaled
    free: Array  # (n,) int64: free columns
    sign: Array  # (n,): w s
    grow: Array  # (n,): z1
    point: Array  # (n,): z
    adjoint: Array  # (n,): p
    rate: Array  # (most products,): of the loss with each weight
    place: Array  # (m,) int64: of a row among the varying ones, or -1


def new_adjoint(prepared: Prepared, most: int) -> Adjoint:
    """Memory for samples of at most so many products."""
    n = prepared.lower.size
    place = np.full(prepared.equality.size, -1, dtype=np.int64)
    place[prepared.varying] = np.arange(len(prepared.varying))
    return Adjoint(
        matrix=np.empty((2 * n, 2 * n)),
        right=np.empty((2 * n, 3)),
        dense=np.empty((n, n)),
        unit=np.empty(n),
        free=np.empty(n, dtype=np.int64),
        sign=np.empty(n),
        grow=np.empty(n),
        point=np.empty(n),
        adjoint=np.empty(n),
        rate=np.empty(most),
        place=place,
    )


@inner
def eliminate(matrix, right, size, sides):
    """Solves `matrix x = right` in place, for some right sides, with row exchanges."""
    for k in range(size):
        best = k
        for i in range(k + 1, size):
            if abs(matrix[i, k]) > abs(matrix[best, k]):
                best = i
        if best != k:
            for c in range(k, size):
                matrix[k, c], matrix[best, c] = matrix[best, c], matrix[k, c]
            for c in range(sides):
                right[k, c], right[best, c] = right[best, c], right[k, c]
        if abs(matrix[k, k]) <= _SINGULAR:
            matrix[k, k] = 0.0
            continue
        for i in range(k + 1, size):
            factor = matrix[i, k] / matrix[k, k]
            if factor != 0.0:
                for c in range(k, size):
                    matrix[i, c] -= factor * matrix[k, c]
                for c in range(sides):
                    right[i, c] -= factor * right[k, c]
    for k in range(size - 1, -1, -1):
        for c in range(sides):
            total = right[k, c]
            for i in range(k + 1, size):
                total -= matrix[k, i] * right[i, c]
            right[k, c] = 0.0 if matrix[k, k] == 0.0 else total / matrix[k, k]


@inner
def read_rows(work, prepared, varying, band, p):
    """Writes the tight rows of a product, scaled; returns their number."""
    n = band.rows.shape[1]
    rows = 0
    while rows < n and band.rows[p, rows] >= 0:
        i = band.rows[p, rows]
        v = work.place[i]
        for j in range(n):
            work.dense[rows, j] = 0.0
        if v < 0:
            for e in range(prepared.start[i], prepared.start[i + 1]):
                work.dense[rows, prepared.column[e]] = prepared.coefficient[e]
            work.unit[rows] = prepared.scale[i]
        else:
            largest = 0.0
            for j in range(n):
                largest = max(largest, abs(varying[v, j]))
            work.unit[rows] = 1.0 / largest if largest > 0.0 else 1.0
            for j in range(n):
                work.dense[rows, j] = varying[v, j] * work.unit[rows]
        rows += 1
    return rows


@inner
def read_columns(work, weights, band, p):
    """Writes free columns and signs of a product; returns the number of free columns."""
    frees = 0
    for j in range(band.kind.shape[1]):
        kind = band.kind[p, j]
        work.sign[j] = 0.0
        if j < weights.size:
            below = kind == FREE_BELOW or (kind == AT_BOUND and band.point[p, j] < 0.0)
            work.sign[j] = -weights[j] if below else weights[j]
        if kind != AT_KINK and kind != AT_BOUND:
            work.free[frees] = j
            frees += 1
    return frees


@outlined
def solve_piece(work, bound, yhat, eps, band, p, gradient, rows, frees):
    """Solves the equations of a product for three right sides.

    Columns of `right`: the adjoint of the loss, the prices `w s`, and growth with the weight; free
    columns first, then rows.  `grow` is the direction of growth over all columns.
    """
    n, outputs = band.point.shape[1], yhat.size
    matrix, right = work.matrix, work.right
    for j in range(n):
        work.grow[j] = band.point[p, j] if band.kind[p, j] == AT_BOUND else 0.0
    total = frees + rows
    for k in range(total):
        for c in range(total):
            matrix[k, c] = 0.0
        for c in range(3):
            right[k, c] = 0.0
    for f in range(frees):
        j = work.free[f]
        matrix[f, f] = 2.0 if j < outputs else 1.0  # without eps, which scales the solutions
        right[f, 0] = -gradient[j] if j < outputs else 0.0
        right[f, 1] = -work.sign[j]
    for r in range(rows):
        rest = bound[band.rows[p, r]] * work.unit[r]
        for j in range(outputs):
            rest -= work.dense[r, j] * yhat[j]
        for j in range(n):
            rest -= work.dense[r, j] * work.grow[j]
        right[frees + r, 2] = rest
        for f in range(frees):
            matrix[f, frees + r] = work.dense[r, work.free[f]]
            matrix[frees + r, f] = work.dense[r, work.free[f]]
    eliminate(matrix, right, total, 3)
    for f in range(frees):
        right[f, 0] /= eps
        right[f, 1] /= eps
        work.grow[work.free[f]] = right[f, 2]
    for r in range(frees, total):
        right[r, 2] *= eps


@inner
def add_vertex(work, eps, band, p, pi, gradient, rows, to_yhat, to_bound, to_varying, yhat):
    """Adds what a product with as many rows as free columns contributes."""
    n, outputs = band.point.shape[1], yhat.size
    weight = band.weight[p]
    for j in range(n):  # minus the right side of the stationarity, for tau
        work.adjoint[j] = 2.0 * eps * weight * pi * band.point[p, j]
        if j < outputs:
            work.adjoint[j] = 2.0 * work.adjoint[j] + pi * work.sign[j] + weight * gradient[j]
            if band.kind[p, j] != AT_KINK:
                to_yhat[j] -= work.adjoint[j]
    for f in range(rows):
        j = work.free[f]
        work.right[f, 0] = -work.adjoint[j]
        for r in range(rows):
            work.matrix[f, r] = work.dense[r, j]
    eliminate(work.matrix, work.right, rows, 1)
    for r in range(rows):
        i = band.rows[p, r]
        tau = work.right[r, 0]
        to_bound[i] -= tau * work.unit[r]
        for j in range(outputs):
            if band.kind[p, j] == AT_KINK:
                to_yhat[j] += tau * work.dense[r, j]
        v = work.place[i]
        if v >= 0:
            for j in range(n):
                here = band.point[p, j] + (yhat[j] if j < outputs else 0.0)
                to_varying[v, j] += tau * work.unit[r] * here


@outlined
def add_piece(
    work, eps, band, p, pi, gradient, rows, frees, to_yhat, to_bound, to_varying, yhat
):  # fmt: skip
    """Adds what any product contributes; its equations have been solved."""
    n, outputs = band.point.shape[1], yhat.size
    weight, right = band.weight[p], work.right
    for j in range(n):
        work.point[j] = weight * band.point[p, j]
        work.adjoint[j] = pi * work.grow[j]
    for f in range(frees):
        work.adjoint[work.free[f]] += right[f, 0]
    for j in range(outputs):
        if band.kind[p, j] != AT_KINK:
            to_yhat[j] -= pi * (2.0 * eps * work.point[j] + work.sign[j])
            to_yhat[j] -= weight * (2.0 * eps * work.adjoint[j] + gradient[j])
    for r in range(rows):
        i = band.rows[p, r]
        nu = (right[frees + r, 1] + weight * right[frees + r, 2]) * work.unit[r]
        q = (right[frees + r, 0] + pi * right[frees + r, 2]) * work.unit[r]
        tau = pi * nu + weight * q
        to_bound[i] -= tau
        for j in range(outputs):
            if band.kind[p, j] == AT_KINK:
                to_yhat[j] += tau * work.dense[r, j] / work.unit[r]
        v = work.place[i]
        if v >= 0:
            for j in range(n):
                shift = yhat[j] if j < outputs else 0.0
                to_varying[v, j] += nu * (work.adjoint[j] + pi * shift)
                to_varying[v, j] += q * (work.point[j] + weight * shift)


def _compile(stamp: int) -> Any:
    @njit(cache=True, **KERNEL)
    def vjp_band(
        prepared, varying, bound, yhat, weights, eps, band, work, gradient, to_yhat, to_bound,
        to_varying,
    ):  # fmt: skip
        """Gradients of one component; `to_yhat` begins as `gradient`, the others as 0."""
        outputs = yhat.shape[1]
        for s in range(yhat.shape[0]):
            if band.status[s] == PASSED or band.status[s] == FAILED:
                continue
            first = band.start[s] + stamp * 0  # the stamp makes the sources part of the cache's key
            last = band.start[s + 1]
            # pi = (m - rate) / slope needs the rates of all products; with one it is 0.
            above, below = 0.0, 1.0
            if last - first > 1:
                below = 0.0
                for p in range(first, last):
                    if band.weight[p] <= 0.0:
                        continue
                    rows = 0
                    frees = read_columns(work, weights, band, p)
                    while rows < frees and band.rows[p, rows] >= 0:
                        rows += 1
                    if rows < frees:
                        read_rows(work, prepared, varying[s], band, p)
                        solve_piece(work, bound[s], yhat[s], eps, band, p, gradient[s], rows, frees)
                    total = 0.0
                    for j in range(outputs):
                        along = band.point[p, j] if rows == frees else work.grow[j]
                        total += gradient[s, j] * along
                    work.rate[p - first] = total
                    above += total / band.slope[p]
                    below += 1.0 / band.slope[p]
            for p in range(first, last):
                if band.weight[p] <= 0.0:
                    continue
                pi = 0.0
                if last - first > 1:
                    pi = (above / below - work.rate[p - first]) / band.slope[p]
                frees = read_columns(work, weights, band, p)
                rows = read_rows(work, prepared, varying[s], band, p)
                if rows == frees:
                    add_vertex(
                        work, eps, band, p, pi, gradient[s], rows, to_yhat[s],
                        to_bound[s], to_varying[s], yhat[s],
                    )  # fmt: skip
                else:
                    solve_piece(work, bound[s], yhat[s], eps, band, p, gradient[s], rows, frees)
                    add_piece(
                        work, eps, band, p, pi, gradient[s], rows, frees, to_yhat[s], to_bound[s],
                        to_varying[s], yhat[s],
                    )  # fmt: skip

    return vjp_band


vjp_band = _compile(source_stamp("kernels/qp/_band", "kernels/qp/_backward"))
