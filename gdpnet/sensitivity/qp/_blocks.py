"""The regularised program of several blocks: an interior-point method over small copies.

A block c is a disjunction with products k, and a copy of product k is

    x = (p, q, lambda, a),   z = p - q,   eta = p + q,   p, q, lambda >= 0.

With `|z|^2 + |eta|^2 = 2 (p^2 + q^2)` the program of a part is

    minimise    w.(P + Q) + eps sum_ck (p^2 + q^2 + 1/2 lambda^2 + 1/2 a^2)
    subject to  rows of each copy:  g.x <= 0  or  == 0,  homogeneous in (p, q, lambda, a),
                bounds, and eta <= (upper - lower) lambda among them
                sum_k x_ck = sigma = (P, Q, 1, A)  for every block

All blocks share sigma.  A Newton step needs one matrix M of the size of a copy for each copy, one
for each block (W = sum of M^-1), and one for sigma; nothing grows with the square of the program.

The derivative uses the same matrices at the end of the central path.  Where a row is tight with a
positive multiplier, or neither, that is the derivative of the solution; on a kink it is a mean of
the derivatives beside it, and it is finite always.  Copies without weight take no part in it.
Equalities are rows with a small compliance,
whose multipliers are iterated, so that dependent ones do no harm.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from gdpnet.solve.exact._jit import KERNEL, Array, inner, outlined, source_stamp

COMPLIANCE = 1e-8  # of an equality, against the quadratic term
ROOM = 1e-9  # that rows are given, so that copies of empty products have an inside
STIFFEST = 1e7  # in the derivative: more would lose the multipliers' adjoints in rounding
NO_WEIGHT, LITTLE_WEIGHT = 1e-6, 1e-3
ENORMOUS = 1e3  # a multiplier, where the largest weight of an output is 1
END = 1e-11  # of the central path, relative to the weights
ROUNDS = 60


class Shape(NamedTuple):
    """What all samples of a part share.

    Attributes:
        outputs: d.
        auxiliaries: their number.
        copies: copies of each block, (blocks + 1,).
        rows: rows of each copy, (copies + 1,).
        row: which, index into the table of a sample.
        equality: of the table, (rows,) bool.
    """

    outputs: int
    auxiliaries: int
    copies: Array
    rows: Array
    row: Array
    equality: Array


class Path(NamedTuple):
    """Points of a batch on the central path.

    Attributes:
        x: copies, (B, copies, D).
        lower: multipliers of their signs, (B, copies, D).
        slack: of the rows of the copies, (B, row places).
        multiplier: (B, row places).
        shared: sigma, (B, D).
        sums: multipliers of `sum x = sigma`, (B, blocks, D).
        rounds: steps taken, (B,).
    """

    x: Array
    lower: Array
    slack: Array
    multiplier: Array
    shared: Array
    sums: Array
    rounds: Array


class Newton(NamedTuple):
    """Memory of one thread."""

    inverse: Array  # (copies, D, D): M^-1
    block: Array  # (blocks, D, D): W^-1
    joined: Array  # (D, D): the matrix of sigma, factored
    factor: Array  # (D, D)
    right: Array  # (copies, D)
    pull: Array  # (blocks, D)
    d_x: Array  # (copies, D)
    d_lower: Array  # (copies, D)
    d_slack: Array  # (row places,)
    d_multiplier: Array  # (row places,)
    d_shared: Array  # (D,)
    d_sums: Array  # (blocks, D)
    activity: Array  # (row places,): g.x
    push: Array  # (row places,): complementarity of the corrector
    push_lower: Array  # (copies, D)
    vector: Array  # (D,)
    place: Array  # (rows, D) int64: entries of each row
    entries: Array  # (rows,) int64


def new_path(shape: Shape, size: int) -> Path:
    """Room for a batch."""
    width = 2 * shape.outputs + 1 + shape.auxiliaries
    copies, blocks = shape.rows.size - 1, shape.copies.size - 1
    return Path(
        x=np.empty((size, copies, width)),
        lower=np.empty((size, copies, width)),
        slack=np.empty((size, shape.row.size)),
        multiplier=np.empty((size, shape.row.size)),
        shared=np.empty((size, width)),
        sums=np.empty((size, blocks, width)),
        rounds=np.zeros(size, dtype=np.int64),
    )


def new_newton(shape: Shape) -> Newton:
    """Memory for one thread."""
    width = 2 * shape.outputs + 1 + shape.auxiliaries
    copies, blocks = shape.rows.size - 1, shape.copies.size - 1
    return Newton(
        inverse=np.empty((copies, width, width)),
        block=np.empty((blocks, width, width)),
        joined=np.empty((width, width)),
        factor=np.empty((width, width)),
        right=np.empty((copies, width)),
        pull=np.empty((blocks, width)),
        d_x=np.empty((copies, width)),
        d_lower=np.empty((copies, width)),
        d_slack=np.empty(shape.row.size),
        d_multiplier=np.empty(shape.row.size),
        d_shared=np.empty(width),
        d_sums=np.empty((blocks, width)),
        activity=np.empty(shape.row.size),
        push=np.empty(shape.row.size),
        push_lower=np.empty((copies, width)),
        vector=np.empty(width),
        place=np.empty((shape.equality.size, width), dtype=np.int64),
        entries=np.empty(shape.equality.size, dtype=np.int64),
    )


# ---------------------------------------------------------------- small dense matrices


@inner
def cholesky(matrix, size, least):
    """Factors a matrix without eigenvalues below `least` in place (lower triangle)."""
    for i in range(size):
        for k in range(i + 1):
            total = matrix[i, k]
            for e in range(k):
                total -= matrix[i, e] * matrix[k, e]
            if k < i:
                matrix[i, k] = total / matrix[k, k]
            else:
                matrix[i, i] = np.sqrt(max(total, least))


@inner
def invert(matrix, size, least, target):
    """Inverse of such a matrix, which is overwritten by its factor."""
    cholesky(matrix, size, least)
    for i in range(size):  # the inverse of the factor, into the upper triangle of the target
        target[i, i] = 1.0 / matrix[i, i]
        for k in range(i):
            total = 0.0
            for e in range(k, i):
                total -= matrix[i, e] * target[k, e]
            target[k, i] = total / matrix[i, i]
    for i in range(size):
        for k in range(i, size):
            total = 0.0
            for e in range(k, size):
                total += target[i, e] * target[k, e]
            target[i, k] = total
    for i in range(size):
        for k in range(i):
            target[i, k] = target[k, i]


@inner
def back_solve(factor, size, vector):
    """Solves with a Cholesky factor, in place."""
    for i in range(size):
        for k in range(i):
            vector[i] -= factor[i, k] * vector[k]
        vector[i] /= factor[i, i]
    for i in range(size - 1, -1, -1):
        for k in range(i + 1, size):
            vector[i] -= factor[k, i] * vector[k]
        vector[i] /= factor[i, i]


# ---------------------------------------------------------------- the Newton matrices


@inner
def curvature(shape, j, eps):
    """Diagonal of the quadratic term."""
    return 2.0 * eps if j < 2 * shape.outputs else eps


@inner
def without_weight(shape, copy, weight, multiplier):
    """Whether a copy takes no part in the derivative.

    It has no weight; or it is the copy of a product that is empty but for the room that rows are
    given, whose little weight is an artefact and whose multipliers are enormous.
    """
    if weight < NO_WEIGHT:
        return True
    if weight > LITTLE_WEIGHT:
        return False
    largest = 0.0
    for e in range(shape.rows[copy], shape.rows[copy + 1]):
        largest = max(largest, multiplier[e])
    return largest > ENORMOUS


@outlined
def factor_all(shape, table, eps, stiffest, x, lower, slack, multiplier, work):
    """M^-1 of every copy, W^-1 of every block, and the factor of the matrix of sigma.

    The coordinate of lambda, which sigma does not move, gets a unit row in the latter.
    """
    width = x.shape[1]
    fixed = 2 * shape.outputs
    for c in range(shape.copies.size - 1):
        for i in range(width):
            for k in range(width):
                work.joined[i, k] = 0.0
        for copy in range(shape.copies[c], shape.copies[c + 1]):
            if stiffest < np.inf and without_weight(shape, copy, x[copy, fixed], multiplier):
                for i in range(width):
                    for k in range(width):
                        work.inverse[copy, i, k] = 0.0
                continue
            matrix = work.factor
            for i in range(width):
                for k in range(i):
                    matrix[i, k] = 0.0
                matrix[i, i] = curvature(shape, i, eps)
                if i <= fixed:
                    matrix[i, i] += min(lower[copy, i] / x[copy, i], stiffest)
            for e in range(shape.rows[copy], shape.rows[copy + 1]):
                r = shape.row[e]
                stiff = 1.0 / COMPLIANCE if shape.equality[r] else multiplier[e] / slack[e]
                stiff = min(stiff, stiffest)
                for a in range(work.entries[r]):
                    i = work.place[r, a]
                    for b in range(a + 1):
                        matrix[i, work.place[r, b]] += (
                            stiff * table[r, i] * table[r, work.place[r, b]]
                        )
            invert(matrix, width, eps, work.inverse[copy])
            for i in range(width):
                for k in range(i + 1):
                    work.joined[i, k] += work.inverse[copy, i, k]
        invert(work.joined, width, 1e-300, work.block[c])
    for i in range(width):
        for k in range(i + 1):
            total = 0.0
            for c in range(shape.copies.size - 1):
                total += work.block[c, i, k]
            work.joined[i, k] = 0.0 if i == fixed or k == fixed else total
    work.joined[fixed, fixed] = 1.0
    cholesky(work.joined, width, 1e-300)


@outlined
def solve_all(shape, work):
    """Solves for d_x, d_sums and d_shared.

    Given are the right sides of the copies in `right`, `sum x - sigma` in `d_sums`, and what the
    multipliers of the sums must still add up to in `vector`.
    """
    width = work.vector.size
    fixed = 2 * shape.outputs
    for i in range(width):
        work.d_shared[i] = -work.vector[i]
    for c in range(shape.copies.size - 1):
        for i in range(width):
            total = work.d_sums[c, i]
            for copy in range(shape.copies[c], shape.copies[c + 1]):
                for k in range(width):
                    total += work.inverse[copy, i, k] * work.right[copy, k]
            work.pull[c, i] = total
        for i in range(width):
            for k in range(width):
                work.d_shared[i] += work.block[c, i, k] * work.pull[c, k]
    work.d_shared[fixed] = 0.0
    back_solve(work.joined, width, work.d_shared)
    for c in range(shape.copies.size - 1):
        for i in range(width):
            total = 0.0
            for k in range(width):
                total += work.block[c, i, k] * (work.pull[c, k] - work.d_shared[k])
            work.d_sums[c, i] = total
        for copy in range(shape.copies[c], shape.copies[c + 1]):
            for i in range(width):
                total = 0.0
                for k in range(width):
                    total += work.inverse[copy, i, k] * (work.right[copy, k] - work.d_sums[c, k])
                work.d_x[copy, i] = total


@inner
def along(table, work, r, vector):
    """`g.vector` of a row."""
    total = 0.0
    for a in range(work.entries[r]):
        j = work.place[r, a]
        total += table[r, j] * vector[j]
    return total


# ---------------------------------------------------------------- the method


@inner
def index_entries(table, work):
    """Notes which entries of the rows are not 0."""
    for r in range(table.shape[0]):
        count = 0
        for j in range(table.shape[1]):
            if table[r, j] != 0.0:
                work.place[r, count] = j
                count += 1
        work.entries[r] = count


@inner
def begin(shape, table, cost, x, lower, slack, multiplier, shared, sums, work):
    """A point inside."""
    width = x.shape[1]
    fixed = 2 * shape.outputs
    index_entries(table, work)
    for j in range(width):
        shared[j] = 0.1 if j < fixed else 0.0
    shared[fixed] = 1.0
    blocks = shape.copies.size - 1
    for c in range(blocks):
        count = shape.copies[c + 1] - shape.copies[c]
        for j in range(width):
            sums[c, j] = cost[j] / blocks
        for copy in range(shape.copies[c], shape.copies[c + 1]):
            for j in range(width):
                x[copy, j] = shared[j] / count
                lower[copy, j] = max(0.1, cost[j] / blocks) if j <= fixed else 0.0
            for e in range(shape.rows[copy], shape.rows[copy + 1]):
                r = shape.row[e]
                slack[e] = max(-along(table, work, r, x[copy]), 0.1)
                multiplier[e] = 0.0 if shape.equality[r] else 0.1


@outlined
def step_rows(shape, table, eps, target, corrected, x, lower, slack, multiplier, sums, work):
    """Writes the right sides of a Newton step towards `slack * multiplier = target`."""
    width = x.shape[1]
    fixed = 2 * shape.outputs
    for c in range(shape.copies.size - 1):
        for copy in range(shape.copies[c], shape.copies[c + 1]):
            for j in range(width):
                total = curvature(shape, j, eps) * x[copy, j] + sums[c, j]
                if j <= fixed:
                    wrong = x[copy, j] * lower[copy, j] - target
                    if corrected:
                        wrong += work.push_lower[copy, j]
                    total += wrong / x[copy, j] - lower[copy, j]
                work.right[copy, j] = -total
            for e in range(shape.rows[copy], shape.rows[copy + 1]):
                r = shape.row[e]
                missing = work.activity[e]
                if shape.equality[r]:
                    pull = multiplier[e] + missing / COMPLIANCE
                else:
                    missing += slack[e] - ROOM
                    wrong = slack[e] * multiplier[e] - target
                    if corrected:
                        wrong += work.push[e]
                    pull = multiplier[e] + (multiplier[e] * missing - wrong) / slack[e]
                for a in range(work.entries[r]):
                    j = work.place[r, a]
                    work.right[copy, j] -= pull * table[r, j]


@inner
def finish_step(shape, table, target, corrected, x, lower, slack, multiplier, work):
    """Changes of slacks and multipliers from those of x; returns the longest step inside."""
    fixed = 2 * shape.outputs
    length = 1.0 / 0.995
    for copy in range(x.shape[0]):
        for j in range(fixed + 1):
            wrong = x[copy, j] * lower[copy, j] - target
            if corrected:
                wrong += work.push_lower[copy, j]
            work.d_lower[copy, j] = -(wrong + lower[copy, j] * work.d_x[copy, j]) / x[copy, j]
            if work.d_x[copy, j] < 0.0:
                length = min(length, -x[copy, j] / work.d_x[copy, j])
            if work.d_lower[copy, j] < 0.0:
                length = min(length, -lower[copy, j] / work.d_lower[copy, j])
        for e in range(shape.rows[copy], shape.rows[copy + 1]):
            r = shape.row[e]
            missing = work.activity[e]
            change = along(table, work, r, work.d_x[copy])
            if shape.equality[r]:
                work.d_multiplier[e] = (missing + change) / COMPLIANCE
                continue
            work.d_slack[e] = ROOM - missing - slack[e] - change
            wrong = slack[e] * multiplier[e] - target
            if corrected:
                wrong += work.push[e]
            work.d_multiplier[e] = -(wrong + multiplier[e] * work.d_slack[e]) / slack[e]
            if work.d_slack[e] < 0.0:
                length = min(length, -slack[e] / work.d_slack[e])
            if work.d_multiplier[e] < 0.0:
                length = min(length, -multiplier[e] / work.d_multiplier[e])
    return min(1.0, 0.995 * length)


@inner
def gap_after(shape, length, x, lower, slack, multiplier, work):
    """Mean product of slacks and multipliers after a step."""
    total, count = 0.0, 0
    for copy in range(x.shape[0]):
        for j in range(2 * shape.outputs + 1):
            total += (x[copy, j] + length * work.d_x[copy, j]) * (
                lower[copy, j] + length * work.d_lower[copy, j]
            )
            count += 1
    for e in range(slack.size):
        if not shape.equality[shape.row[e]]:
            total += (slack[e] + length * work.d_slack[e]) * (
                multiplier[e] + length * work.d_multiplier[e]
            )
            count += 1
    return total / count


@inner
def sums_missing(shape, x, shared, work):
    """Writes `sum x - sigma` of every block into `d_sums`."""
    for c in range(shape.copies.size - 1):
        for j in range(x.shape[1]):
            total = -shared[j]
            for copy in range(shape.copies[c], shape.copies[c + 1]):
                total += x[copy, j]
            work.d_sums[c, j] = total


@outlined
def follow_path(shape, table, cost, eps, x, lower, slack, multiplier, shared, sums, work):
    """Follows the central path to its end; returns (steps, whether it got there)."""
    begin(shape, table, cost, x, lower, slack, multiplier, shared, sums, work)
    width, blocks = x.shape[1], shape.copies.size - 1
    for i in range(x.shape[0]):
        for j in range(width):
            work.d_x[i, j] = 0.0
            work.d_lower[i, j] = 0.0
    for e in range(slack.size):
        work.d_slack[e] = 0.0
        work.d_multiplier[e] = 0.0
    missing = 1.0  # of the linear equations, relative to the start: each step closes its share
    for step in range(ROUNDS):
        gap = gap_after(shape, 0.0, x, lower, slack, multiplier, work)
        if not gap < np.inf:
            return step, False
        if gap <= END and missing <= 1e-10:
            return step, True
        factor_all(shape, table, eps, np.inf, x, lower, slack, multiplier, work)
        for copy in range(x.shape[0]):
            for e in range(shape.rows[copy], shape.rows[copy + 1]):
                work.activity[e] = along(table, work, shape.row[e], x[copy])
        target = 0.0
        for corrected in range(2):
            sums_missing(shape, x, shared, work)
            for j in range(width):
                work.vector[j] = cost[j]
                for c in range(blocks):
                    work.vector[j] -= sums[c, j]
            step_rows(
                shape, table, eps, target, corrected == 1, x, lower, slack, multiplier, sums, work
            )
            solve_all(shape, work)
            length = finish_step(
                shape, table, target, corrected == 1, x, lower, slack, multiplier, work
            )
            if corrected == 0:
                reached = gap_after(shape, length, x, lower, slack, multiplier, work)
                share = min(1.0, (reached / gap) ** 3)
                second = 1.0
                if length < 0.1:  # the boundary is too near for a second-order step
                    share, second = 0.3, 0.0
                target = max(gap * share, 0.1 * END)
                for copy in range(x.shape[0]):
                    for j in range(2 * shape.outputs + 1):
                        work.push_lower[copy, j] = (
                            second * work.d_x[copy, j] * work.d_lower[copy, j]
                        )
                for e in range(slack.size):
                    work.push[e] = second * work.d_slack[e] * work.d_multiplier[e]
        missing *= 1.0 - length
        for copy in range(x.shape[0]):
            for j in range(width):
                x[copy, j] += length * work.d_x[copy, j]
                if j <= 2 * shape.outputs:
                    lower[copy, j] += length * work.d_lower[copy, j]
        for e in range(slack.size):
            multiplier[e] += length * work.d_multiplier[e]
            if not shape.equality[shape.row[e]]:
                slack[e] += length * work.d_slack[e]
        for j in range(width):
            shared[j] += length * work.d_shared[j]
            for c in range(blocks):
                sums[c, j] += length * work.d_sums[c, j]
    return ROUNDS, False


# ---------------------------------------------------------------- samples


@outlined
def write_table(shape, matrix, bound, lower, upper, yhat, table, unit):
    """Rows of a sample over (p, q, lambda, a), scaled: of the rules, bounds, ranges of eta."""
    d, n = shape.outputs, shape.outputs + shape.auxiliaries
    width, m = table.shape[1], bound.size
    for r in range(table.shape[0]):
        for j in range(width):
            table[r, j] = 0.0
        if r < m:
            rest = bound[r]
            for j in range(d):
                table[r, j] = matrix[r, j]
                table[r, d + j] = -matrix[r, j]
                rest -= matrix[r, j] * yhat[j]
            for j in range(d, n):
                table[r, d + 1 + j] = matrix[r, j]
            table[r, 2 * d] = -rest
        elif r >= m + 2 * n:
            j = r - m - 2 * n
            table[r, j] = 1.0
            table[r, d + j] = 1.0
            table[r, 2 * d] = lower[j] - upper[j]
        else:
            j = (r - m) // 2
            above = (r - m) % 2 == 0
            sign = 1.0 if above else -1.0
            side = upper[j] if above else lower[j]
            if j < d:
                table[r, j] = sign
                table[r, d + j] = -sign
                side -= yhat[j]
            else:
                table[r, d + 1 + j] = sign
            table[r, 2 * d] = -sign * side
        largest = 0.0
        for j in range(width):
            largest = max(largest, abs(table[r, j]))
        unit[r] = 1.0 / largest if largest > 0.0 and largest < np.inf else 1.0
        for j in range(width):
            table[r, j] *= unit[r]


def _compile_solve(stamp: int) -> Any:
    @njit(cache=True, **KERNEL)
    def solve_blocks(
        shape, matrix, bound, lower, upper, yhat, weights, eps, table, unit, cost, path, work, y,
        solved,
    ):  # fmt: skip
        """Solves a batch of one part; `y` is written where it succeeded."""
        d = shape.outputs
        for j in range(cost.size):
            cost[j] = weights[j % d] if j < 2 * d else 0.0
        for s in range(yhat.shape[0]):
            write_table(shape, matrix[s], bound[s], lower, upper, yhat[s], table, unit)
            path.rounds[s], solved[s] = follow_path(
                shape, table, cost, eps, path.x[s], path.lower[s], path.slack[s],
                path.multiplier[s], path.shared[s], path.sums[s], work,
            )  # fmt: skip
            for j in range(d):
                y[s, j] = yhat[s, j] + path.shared[s, j] - path.shared[s, d + j] + stamp * 0

    return solve_blocks


def _compile_vjp(stamp: int) -> Any:
    @njit(cache=True, **KERNEL)
    def vjp_blocks(
        shape, matrix, bound, lower, upper, yhat, eps, table, unit, path, work, gradient, to_yhat,
        to_bound, to_matrix,
    ):  # fmt: skip
        """Gradients of one part; `to_yhat` begins as `gradient`, the others as 0."""
        d, n, m = shape.outputs, shape.outputs + shape.auxiliaries, bound.shape[1]
        width = path.x.shape[2]
        for s in range(yhat.shape[0]):
            write_table(shape, matrix[s], bound[s], lower, upper, yhat[s], table, unit)
            index_entries(table, work)
            factor_all(
                shape, table, eps, STIFFEST, path.x[s], path.lower[s], path.slack[s],
                path.multiplier[s], work,
            )  # fmt: skip
            for copy in range(work.right.shape[0]):
                for j in range(width):
                    work.right[copy, j] = 0.0
            for c in range(work.d_sums.shape[0]):
                for j in range(width):
                    work.d_sums[c, j] = 0.0
            for j in range(width):
                work.vector[j] = stamp * 0.0
            for j in range(d):
                work.vector[j] = gradient[s, j]
                work.vector[d + j] = -gradient[s, j]
            solve_all(shape, work)
            for copy in range(work.right.shape[0]):
                x, adjoint = path.x[s, copy], work.d_x[copy]
                for e in range(shape.rows[copy], shape.rows[copy + 1]):
                    r = shape.row[e]
                    stiff = path.multiplier[s, e] / path.slack[s, e]
                    if shape.equality[r]:
                        stiff = 1.0 / COMPLIANCE
                    dual = min(stiff, STIFFEST) * along(table, work, r, adjoint) * unit[r]
                    multiplier = path.multiplier[s, e] * unit[r]
                    weight = multiplier * adjoint[2 * d] + dual * x[2 * d]
                    if r >= m:  # a bound: only the prediction moves
                        j = (r - m) // 2
                        if j < d and r < m + 2 * n:
                            to_yhat[s, j] += weight if (r - m) % 2 == 0 else -weight
                        continue
                    to_bound[s, r] -= weight
                    for j in range(d):
                        to_yhat[s, j] += matrix[s, r, j] * weight
                        to_matrix[s, r, j] += (
                            multiplier * (adjoint[j] - adjoint[d + j])
                            + dual * (x[j] - x[d + j])
                            + weight * yhat[s, j]
                        )
                    for j in range(d, n):
                        to_matrix[s, r, j] += multiplier * adjoint[d + 1 + j] + dual * x[d + 1 + j]

    return vjp_blocks


_STAMP = source_stamp("sensitivity/qp/_blocks")
solve_blocks = _compile_solve(_STAMP)
vjp_blocks = _compile_vjp(_STAMP)
