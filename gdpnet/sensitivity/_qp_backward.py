"""The derivative of the regularised quadratic program, on the pieces that hold its solution.

With `z_k = lambda_k z'_k` the copies, s their signs, and H the quadratic term's diagonal (2 eps for
outputs, eps for auxiliaries), the solution satisfies, for every product with weight,

    H z_k + w s + A' nu = 0      on the free columns
    A z_k = lambda_k b'          with b' = b - A yhat; columns at a bound: z_k = lambda_k (u - yhat)

and the prices of the weights agree.  The adjoint of these equations has the same matrix, so one
small system a product gives p_k, q_k (the adjoints of z_k and nu) up to a multiple of the direction
z1 in which z_k grows with lambda_k, and one scalar m joins the products:

    p_k = p0_k + pi_k z1_k,   pi_k = (m - gradient . z1_k) / slope_k,   sum pi_k = 0

With as many rows as free columns p0 = 0 and z1 = z'.  A singular system (rows that depend on each
other) is solved with its dependent unknowns at 0.
"""

from __future__ import annotations

import numpy as np

from gdpnet.sensitivity._band import AT_BOUND, AT_KINK, FAILED, FREE_BELOW, PASSED
from gdpnet.solve.exact._jacobian import read_row
from gdpnet.solve.exact._jit import jit


@jit
def eliminate(matrix, right, size, sides):
    """Solves `matrix x = right` for some right sides in place, with full row exchanges."""
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
        if abs(matrix[k, k]) <= 1e-13:
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


@jit
def price_sign(kind, j, weights):
    """`w_j s_j` of a column that is not at its kink."""
    if j >= weights.size:
        return 0.0
    return -weights[j] if kind == FREE_BELOW else weights[j]


@jit
def vjp_pieces(
    prepared, varying, bound, yhat, weights, eps, band, gradient, to_yhat, to_bound, to_varying
):
    """Gradients of one component; `to_yhat` begins as `gradient`."""
    size, n = gradient.shape[0], prepared.lower.size
    outputs = yhat.shape[1]
    place = np.full(prepared.equality.size, -1, np.int64)  # of a row among the varying ones
    for v in range(prepared.varying.size):
        place[prepared.varying[v]] = v
    matrix = np.empty((2 * n, 2 * n))
    right = np.empty((2 * n, 3))
    dense = np.empty((n, n))
    free = np.empty(n, np.int64)
    sign = np.empty(n)
    unit = np.empty(n)  # rows are scaled to a largest coefficient of 1
    point, adjoint, grow = np.empty(n), np.empty(n), np.empty(n)
    most = 0
    for s in range(size):
        most = max(most, band.start[s + 1] - band.start[s])
    rate = np.empty(most)  # of the loss with each weight
    for s in range(size):
        if band.status[s] == PASSED or band.status[s] == FAILED:
            continue
        first, last = band.start[s], band.start[s + 1]
        # The scalar that joins the products, from how the loss changes with each weight.
        upper, lower = 0.0, 0.0
        if last - first > 1:
            for p in range(first, last):
                if band.weight[p] > 0.0:
                    solve_piece(
                        prepared, varying, place, bound, yhat, weights, eps, band, gradient, s, p,
                        matrix, right, dense, unit, free, sign, grow,
                    )  # fmt: skip
                    rate[p - first] = 0.0
                    for j in range(outputs):
                        rate[p - first] += gradient[s, j] * grow[j]
                    upper += rate[p - first] / band.slope[p]
                    lower += 1.0 / band.slope[p]
        for p in range(first, last):
            weight = band.weight[p]
            if weight <= 0.0:
                continue
            pi = 0.0
            if last - first > 1:
                pi = (upper / lower - rate[p - first]) / band.slope[p]
            rows, frees = solve_piece(
                prepared, varying, place, bound, yhat, weights, eps, band, gradient, s, p, matrix,
                right, dense, unit, free, sign, grow,
            )  # fmt: skip
            for j in range(n):
                point[j] = weight * band.point[p, j]
                adjoint[j] = pi * grow[j]
            for f in range(frees):
                adjoint[free[f]] += right[f, 0]
            for j in range(outputs):
                if band.kind[p, j] != AT_KINK:
                    to_yhat[s, j] -= pi * (2.0 * eps * point[j] + sign[j])
                    to_yhat[s, j] -= weight * (2.0 * eps * adjoint[j] + gradient[s, j])
            for r in range(rows):
                i = band.rows[p, r]
                multiplier = right[frees + r, 1] + weight * right[frees + r, 2]
                dual = right[frees + r, 0] + pi * right[frees + r, 2]
                multiplier *= unit[r]
                dual *= unit[r]
                total = multiplier * pi + dual * weight
                to_bound[s, i] -= total
                for j in range(outputs):
                    if band.kind[p, j] == AT_KINK:
                        to_yhat[s, j] += total * dense[r, j] / unit[r]
                if place[i] >= 0:
                    for j in range(n):
                        here, there = point[j], adjoint[j]
                        if j < outputs:
                            here += weight * yhat[s, j]
                            there += pi * yhat[s, j]
                        to_varying[s, place[i], j] += multiplier * there + dual * here


@jit
def solve_piece(
    prepared, varying, place, bound, yhat, weights, eps, band, gradient, s, p, matrix, right, dense,
    unit, free, sign, grow,
):  # fmt: skip
    """Solves the equations of product p for three right sides; returns (rows, free columns).

    Columns of `right`: the adjoint of the loss, the prices `w s`, and growth with the weight; free
    columns first, then rows.  `grow` is the direction of growth over all columns.
    """
    n, outputs = band.point.shape[1], yhat.shape[1]
    rows = 0
    while rows < n and band.rows[p, rows] >= 0:
        read_row(prepared, varying, place, s, band.rows[p, rows], dense[rows])
        largest = 0.0
        for j in range(n):
            largest = max(largest, abs(dense[rows, j]))
        unit[rows] = 1.0 / largest if largest > 0.0 else 1.0
        for j in range(n):
            dense[rows, j] *= unit[rows]
        rows += 1
    frees = 0
    for j in range(n):
        kind = band.kind[p, j]
        sign[j] = price_sign(kind, j, weights)
        grow[j] = 0.0
        if kind == AT_BOUND:
            grow[j] = band.point[p, j]
            if j < outputs and band.point[p, j] < 0.0:
                sign[j] = -weights[j]
        elif kind != AT_KINK:
            free[frees] = j
            frees += 1
    total = frees + rows
    for k in range(total):
        for c in range(total):
            matrix[k, c] = 0.0
        for c in range(3):
            right[k, c] = 0.0
    for f in range(frees):
        j = free[f]
        matrix[f, f] = 2.0 if j < outputs else 1.0  # of the quadratic term, without eps
        right[f, 0] = -gradient[s, j] if j < outputs else 0.0
        right[f, 1] = -sign[j]
    for r in range(rows):
        i = band.rows[p, r]
        rest = bound[s, i] * unit[r]
        for j in range(outputs):
            rest -= dense[r, j] * yhat[s, j]
        for j in range(n):
            rest -= dense[r, j] * grow[j]
        right[frees + r, 2] = rest
        for f in range(frees):
            matrix[f, frees + r] = dense[r, free[f]]
            matrix[frees + r, f] = dense[r, free[f]]
    eliminate(matrix, right, total, 3)
    for f in range(frees):
        right[f, 0] /= eps
        right[f, 1] /= eps
        grow[free[f]] = right[f, 2]
    for r in range(frees, total):
        right[r, 2] *= eps
    return rows, frees
