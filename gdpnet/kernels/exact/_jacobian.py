"""Derivatives of the projection, read off the final dictionary.

At the optimum some columns follow the prediction, some rest on a bound, and the others are
determined by as many tight rows:

    A[T, D] z_D = b_T - A[T, N] z_N

So the derivatives with respect to the prediction, the right sides and the coefficients need one
small linear system a sample, and nothing else of the search.

A whole number rests where it is when prediction and inputs move a little, whatever holds it: a
bound, a row of its own, or tight rows. In the last case more rows are tight than continuous columns
are left for them; the rest of the rows say the same of these columns (or x is on a kink), and as
many independent ones as there are columns are taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gdpnet.kernels._block import unpack
from gdpnet.kernels._jit import jit, source_stamp
from gdpnet.kernels.exact._arrays import PREPARED
from gdpnet.kernels.exact._kernel import AT_LOWER, AT_UPPER, DETERMINED, FOLLOWS


def _compile_vjp(stamp: int) -> Any:
    @jit
    def vjp_vertex(words, varying, detail, z, gradient, to_yhat, to_bound, to_varying):
        """See above; everything over the columns and rows of one component."""
        prepared = unpack(words, PREPARED)
        size, n = z.shape
        m = prepared.equality.size
        outputs = to_yhat.shape[1]
        place = np.full(m, -1, np.int64)  # of a row among the varying ones
        for v in range(prepared.varying.size):
            place[prepared.varying[v]] = v
        matrix = np.empty((n, n))
        right = np.empty(n)
        price = np.empty(n)
        unit = np.empty(n)
        row = np.empty(n)
        basic = np.empty(n, np.int64)
        for s in range(stamp * 0, size):
            count = 0  # continuous columns that the tight rows determine
            tight = 0
            for j in range(n):
                if prepared.integer[j]:
                    gradient[s, j] = 0.0
                if detail.column_state[s, j] == DETERMINED:
                    tight += 1
                    if not prepared.integer[j]:
                        basic[count] = j
                        right[count] = gradient[s, j]
                        count += 1
            for t in range(tight):  # the transposed system: one column of it a tight row
                read_row(prepared, varying, place, s, detail.tight_rows[s, t], row)
                largest = 0.0
                for k in range(count):
                    largest = max(largest, abs(row[basic[k]]))
                unit[t] = 1.0 / largest if largest > 0.0 else 1.0
                for k in range(count):
                    matrix[k, t] = row[basic[k]] * unit[t]
            if tight == count:
                solve_in_place(matrix, right, count)
                price[:count] = right[:count]
            else:
                solve_independent(matrix, right, count, tight, price)
            for k in range(count):
                gradient[s, basic[k]] = 0.0
            for t in range(tight):
                if price[t] == 0.0:
                    continue
                i = detail.tight_rows[s, t]
                read_row(prepared, varying, place, s, i, row)
                rate = price[t] * unit[t]
                to_bound[s, i] += rate
                for j in range(n):
                    if detail.column_state[s, j] != DETERMINED:
                        gradient[s, j] -= rate * row[j]
                if place[i] >= 0:
                    for j in range(n):
                        to_varying[s, place[i], j] -= rate * z[s, j]
            for j in range(n):
                state = detail.column_state[s, j]
                if prepared.integer[j]:
                    continue
                if state == FOLLOWS and j < outputs:
                    to_yhat[s, j] = gradient[s, j]
                elif state == AT_LOWER or state == AT_UPPER:
                    i = detail.column_source[s, j]
                    if i >= 0:  # a row with one entry: z = b / a
                        read_row(prepared, varying, place, s, i, row)
                        to_bound[s, i] += gradient[s, j] / row[j]
                        if place[i] >= 0:
                            to_varying[s, place[i], j] -= gradient[s, j] * z[s, j] / row[j]

    return vjp_vertex


vjp_vertex = _compile_vjp(
    source_stamp(
        "kernels/exact/_arrays",
        "kernels/_block",
        "kernels/exact/_kernel",
        "kernels/exact/_jacobian",
    )
)


@jit
def read_row(prepared, varying, place, s, i, row):
    """Coefficients of a row in the user's units, dense."""
    if place[i] >= 0:
        row[:] = varying[s, place[i]]
        return
    row[:] = 0.0
    for e in range(prepared.start[i], prepared.start[i + 1]):
        row[prepared.column[e]] = prepared.coefficient[e] / prepared.scale[i]


@jit
def solve_independent(matrix, right, size, width, solution):
    """Solves `size` independent equations in more unknowns, those beyond a basis of them at 0.

    Every pivot is the largest entry left, so the basis is found on the way. `matrix` and `right`
    are overwritten.
    """
    order = np.arange(width)
    for k in range(size):
        best, across = k, k
        for i in range(k, size):
            for c in range(k, width):
                if abs(matrix[i, c]) > abs(matrix[best, across]):
                    best, across = i, c
        for c in range(k, width):
            matrix[k, c], matrix[best, c] = matrix[best, c], matrix[k, c]
        right[k], right[best] = right[best], right[k]
        for i in range(size):
            matrix[i, k], matrix[i, across] = matrix[i, across], matrix[i, k]
        order[k], order[across] = order[across], order[k]
        for i in range(k + 1, size):
            factor = matrix[i, k] / matrix[k, k]
            if factor != 0.0:
                for c in range(k, width):
                    matrix[i, c] -= factor * matrix[k, c]
                right[i] -= factor * right[k]
    solution[:width] = 0.0
    for k in range(size - 1, -1, -1):
        total = right[k]
        for c in range(k + 1, size):
            total -= matrix[k, c] * solution[order[c]]
        solution[order[k]] = total / matrix[k, k]


@jit
def solve_in_place(matrix, right, size):
    """Gaussian elimination with row exchanges; the solution replaces `right`."""
    for k in range(size):
        best = k
        for c in range(k + 1, size):
            if abs(matrix[c, k]) > abs(matrix[best, k]):
                best = c
        if best != k:
            for c in range(k, size):
                matrix[k, c], matrix[best, c] = matrix[best, c], matrix[k, c]
            right[k], right[best] = right[best], right[k]
        for other in range(k + 1, size):
            factor = matrix[other, k] / matrix[k, k]
            if factor != 0.0:
                for c in range(k, size):
                    matrix[other, c] -= factor * matrix[k, c]
                right[other] -= factor * right[k]
    for k in range(size - 1, -1, -1):
        total = right[k]
        for c in range(k + 1, size):
            total -= matrix[k, c] * right[c]
        right[k] = total / matrix[k, k]
