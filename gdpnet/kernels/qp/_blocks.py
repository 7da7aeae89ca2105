"""The regularised program of several blocks: an interior-point method over small copies.

A block c is a disjunction with products k, and a copy of product k is

    x = (p, q, lambda, a),   z = p - q,   eta = p + q,   p, q, lambda >= 0.

With `|z|^2 + |eta|^2 = 2 (p^2 + q^2)` the program of a part is

    minimise    w.(P + Q) + eps sum_ck (p^2 + q^2 + 1/2 lambda^2 + 1/2 a^2)
    subject to  rows of each copy:  g.x <= 0  or  == 0,  homogeneous in (p, q, lambda, a),
                bounds, and eta <= (upper - lower) lambda among them
                sum_k x_ck = sigma = (P, Q, 1, A)  for every block

All blocks share sigma. Eight samples are on their way at a time, one in each lane of a vector; one
that is at the end of its central path makes room for the next.

The derivative is that of the equations that hold at the end of the central path: those of the rows
and signs whose multipliers are large beside their slacks.  They are held by a moderate stiffness
and by multipliers that are iterated until nothing gives way, as in an augmented Lagrangian: an
enormous stiffness in all copies of a block loses what they share in rounding, and dependent rows do
no harm this way.  The multipliers that the steps end with may be wrong for the same reason, though
the point is right: those of the point are found first, in the same way.  On a kink, where slack and
multiplier are equally small, the derivative is a mean of those beside it, and it is finite always.
Copies without weight take no part in it.  In the steps, equalities are rows with a small
compliance, whose multipliers are iterated as well.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from gdpnet.kernels._jit import KERNEL, Array, inner, outlined, source_stamp
from gdpnet.kernels.qp._lanes import LANES, at, at2, every, least, most, put, put2, where_less
from gdpnet.kernels.qp._newton import (
    COMPLIANCE,
    GAP,
    LENGTH,
    MISSING,
    TINY,
    Shape,
    along,
    curvature,
    factor_all,
    held,
    solve_all,
    stiffness,
)

ROOM = 1e-9  # that rows are given, so that copies of empty products have an inside
STIFFEST = 1e4  # in the derivative, in units of eps
HELD = 1e-10  # how far what is tight may give way there, relative to the largest change
HOLDS = 200  # iterations until then
END = 1e-11  # of the central path, relative to the weights
ROUNDS = 60


class Path(NamedTuple):
    """Where samples left the central path.

    Attributes:
        x: copies, (samples, copies, D).
        lower: multipliers of their signs, (samples, copies, D).
        slack: of the rows of the copies, (samples, row places).
        multiplier: (samples, row places).
        rounds: steps taken, (samples,).
    """

    x: Array
    lower: Array
    slack: Array
    multiplier: Array
    rounds: Array


def new_path(shape: Shape, size: int) -> Path:
    """Room for so many samples."""
    copies, width = shape.rows.size - 1, shape.width
    return Path(
        x=np.empty((size, copies, width)),
        lower=np.empty((size, copies, width)),
        slack=np.empty((size, shape.row.size)),
        multiplier=np.empty((size, shape.row.size)),
        rounds=np.empty(size, dtype=np.int64),
    )


# ---------------------------------------------------------------- one sample


@inner
def coefficient(shape, varying, r, j):
    """Of a row of the rules."""
    v = shape.varying[r]
    return shape.shared[r, j] if v < 0 else varying[v, shape.columns[j]]


@outlined
def write_table(shape, bound, varying, yhat, table, unit, lane):
    """Rows of a sample over (p, q, lambda, a), scaled: of the rules, bounds, ranges of eta."""
    d, n = shape.outputs, shape.outputs + shape.auxiliaries
    width, m = table.shape[1], shape.source.size
    for r in range(table.shape[0]):
        row = table[r]
        for j in range(width):
            row[j, lane] = 0.0
        if r < m:
            rest = bound[shape.source[r]]
            for j in range(n):
                a = coefficient(shape, varying, r, j)
                if j < d:
                    row[j, lane] = a
                    row[d + j, lane] = -a
                    rest -= a * yhat[shape.columns[j]]
                else:
                    row[d + 1 + j, lane] = a
            row[2 * d, lane] = -rest
        elif r >= m + 2 * n:
            j = r - m - 2 * n
            row[j, lane] = 1.0
            row[d + j, lane] = 1.0
            row[2 * d, lane] = shape.lower[j] - shape.upper[j]
        else:
            j = (r - m) // 2
            above = (r - m) % 2 == 0
            sign = 1.0 if above else -1.0
            side = shape.upper[j] if above else shape.lower[j]
            if j < d:
                row[j, lane] = sign
                row[d + j, lane] = -sign
                side -= yhat[shape.columns[j]]
            else:
                row[d + 1 + j, lane] = sign
            row[2 * d, lane] = -sign * side
        largest = 0.0
        for j in range(width):
            largest = max(largest, abs(row[j, lane]))
        unit[r, lane] = 1.0 / largest if largest > 0.0 and largest < np.inf else 1.0
        for j in range(width):
            row[j, lane] *= unit[r, lane]


@outlined
def begin(shape, cost, bound, varying, yhat, work, lane, sample):
    """The table of a sample, and a point inside."""
    write_table(shape, bound, varying, yhat, work.table, work.unit, lane)
    width, fixed = work.vector.shape[0], 2 * shape.outputs
    blocks = shape.copies.size - 1
    for j in range(width):
        work.shared[j, lane] = 0.1 if j < fixed else 0.0
    work.shared[fixed, lane] = 1.0
    for c in range(blocks):
        count = shape.copies[c + 1] - shape.copies[c]
        for j in range(width):
            work.sums[c, j, lane] = cost[j] / blocks
        for copy in range(shape.copies[c], shape.copies[c + 1]):
            for j in range(width):
                work.x[copy, j, lane] = work.shared[j, lane] / count
                work.lower[copy, j, lane] = max(0.1, cost[j] / blocks) if j <= fixed else 0.0
            for e in range(shape.rows[copy], shape.rows[copy + 1]):
                r = shape.row[e]
                activity = 0.0
                for a in range(shape.start[r], shape.start[r + 1]):
                    j = shape.entry[a]
                    activity += work.table[r, j, lane] * work.x[copy, j, lane]
                work.slack[e, lane] = max(-activity, 0.1)
                work.multiplier[e, lane] = 0.0 if shape.equality[r] else 0.1
    work.numbers[MISSING, lane] = 1.0
    work.sample[lane] = sample
    work.rounds[lane] = 0


@inner
def keep(path, work, lane, sample):
    """Writes the point of a lane, which stays."""
    for copy in range(work.x.shape[0]):
        for j in range(work.x.shape[1]):
            path.x[sample, copy, j] = work.x[copy, j, lane]
            path.lower[sample, copy, j] = work.lower[copy, j, lane]
    for e in range(work.slack.shape[0]):
        path.slack[sample, e] = work.slack[e, lane]
        path.multiplier[sample, e] = work.multiplier[e, lane]
    path.rounds[sample] = work.rounds[lane]


@inner
def restore(path, work, lane, sample):
    """Reads such a point back."""
    for copy in range(work.x.shape[0]):
        for j in range(work.x.shape[1]):
            work.x[copy, j, lane] = path.x[sample, copy, j]
            work.lower[copy, j, lane] = path.lower[sample, copy, j]
    for e in range(work.slack.shape[0]):
        work.slack[e, lane] = path.slack[sample, e]
        work.multiplier[e, lane] = path.multiplier[sample, e]


# ---------------------------------------------------------------- eight samples


@inner
def gap_after(shape, length, work):
    """Mean product of slacks and multipliers after a step of some length."""
    total, count = every(0.0), 0
    for copy in range(work.x.shape[0]):
        for j in range(2 * shape.outputs + 1):
            x = at2(work.x, copy, j) + length * at2(work.d_x, copy, j)
            total += x * (at2(work.lower, copy, j) + length * at2(work.d_lower, copy, j))
            count += 1
    for e in range(work.slack.shape[0]):
        if not shape.equality[shape.row[e]]:
            slack = at(work.slack, e) + length * at(work.d_slack, e)
            total += slack * (at(work.multiplier, e) + length * at(work.d_multiplier, e))
            count += 1
    return total / float(count)


@outlined
def measure_gap(shape, work):
    """Writes the mean product of slacks and multipliers."""
    total, count = every(0.0), 0
    for copy in range(work.x.shape[0]):
        for j in range(2 * shape.outputs + 1):
            total += at2(work.x, copy, j) * at2(work.lower, copy, j)
            count += 1
    for e in range(work.slack.shape[0]):
        if not shape.equality[shape.row[e]]:
            total += at(work.slack, e) * at(work.multiplier, e)
            count += 1
    put(work.numbers, GAP, total / float(count))


@inner
def write_residuals(shape, cost, work):
    """Writes `sum x - sigma` of every block, and what the multipliers of the sums are short of."""
    for j in range(work.vector.shape[0]):
        rest = every(cost[j])
        for c in range(shape.copies.size - 1):
            total = every(0.0) - at(work.shared, j)
            for copy in range(shape.copies[c], shape.copies[c + 1]):
                total += at2(work.x, copy, j)
            put2(work.d_sums, c, j, total)
            rest -= at2(work.sums, c, j)
        put(work.vector, j, rest)


@inner
def write_right_sides(shape, eps, work):
    """Writes the right sides of the copies, for a step towards `aim`."""
    fixed = 2 * shape.outputs
    for c in range(shape.copies.size - 1):
        for copy in range(shape.copies[c], shape.copies[c + 1]):
            for j in range(work.vector.shape[0]):
                total = curvature(shape, j, eps) * at2(work.x, copy, j) + at2(work.sums, c, j)
                if j <= fixed:
                    total += at2(work.aim_lower, copy, j) * at2(work.per_x, copy, j)
                put2(work.right, copy, j, every(0.0) - total)
            for e in range(shape.rows[copy], shape.rows[copy + 1]):
                r = shape.row[e]
                multiplier, missing = at(work.multiplier, e), at(work.activity, e)
                if shape.equality[r]:
                    pull = multiplier + missing / COMPLIANCE
                else:
                    wrong = multiplier * (missing - ROOM) - at(work.aim, e)
                    pull = multiplier + wrong * at(work.per_slack, e)
                for a in range(shape.start[r], shape.start[r + 1]):
                    j = shape.entry[a]
                    rest = at2(work.right, copy, j) - pull * at2(work.table, r, j)
                    put2(work.right, copy, j, rest)


@inner
def finish_step(shape, work):
    """Changes of slacks and multipliers from those of x; writes the longest step inside."""
    blocking = every(0.995)  # the reciprocal of the step to the boundary
    for copy in range(work.x.shape[0]):
        for j in range(2 * shape.outputs + 1):
            lower, d_x = at2(work.lower, copy, j), at2(work.d_x, copy, j)
            reciprocal = at2(work.per_x, copy, j)
            fall = lower + (at2(work.aim_lower, copy, j) + lower * d_x) * reciprocal
            put2(work.d_lower, copy, j, every(0.0) - fall)
            blocking = most(blocking, every(0.0) - d_x * reciprocal)
            blocking = most(blocking, fall * at2(work.per_lower, copy, j))
        for e in range(shape.rows[copy], shape.rows[copy + 1]):
            r = shape.row[e]
            activity = at(work.activity, e) + along(shape, work, r, work.d_x, copy)
            if shape.equality[r]:
                put(work.d_multiplier, e, activity / COMPLIANCE)
                continue
            multiplier, reciprocal = at(work.multiplier, e), at(work.per_slack, e)
            d_slack = ROOM - activity - at(work.slack, e)
            fall = multiplier + (at(work.aim, e) + multiplier * d_slack) * reciprocal
            put(work.d_slack, e, d_slack)
            put(work.d_multiplier, e, every(0.0) - fall)
            blocking = most(blocking, every(0.0) - d_slack * reciprocal)
            blocking = most(blocking, fall * at(work.per_multiplier, e))
    put(work.numbers, LENGTH, 0.995 / blocking)


@inner
def aim_at_boundary(work):
    """The aim of the predictor: all products 0."""
    for copy in range(work.x.shape[0]):
        for j in range(work.x.shape[1]):
            put2(work.aim_lower, copy, j, every(0.0))
    for e in range(work.slack.shape[0]):
        put(work.aim, e, every(0.0))


@inner
def aim_at_path(shape, work):
    """The aim of the corrector: products as far down as the predictor came, to second order."""
    gap, length = at(work.numbers, GAP), at(work.numbers, LENGTH)
    reached = gap_after(shape, length, work) / gap
    share = least(every(1.0), reached * reached * reached)
    # Below 0.1 the boundary is too near for a second-order step.
    share = where_less(length, 0.1, 0.3, share)
    second = where_less(length, 0.1, 0.0, 1.0)
    target = most(every(0.1 * END), gap * share)
    for copy in range(work.x.shape[0]):
        for j in range(2 * shape.outputs + 1):
            product = at2(work.d_x, copy, j) * at2(work.d_lower, copy, j)
            put2(work.aim_lower, copy, j, second * product - target)
    for e in range(work.slack.shape[0]):
        if not shape.equality[shape.row[e]]:
            product = at(work.d_slack, e) * at(work.d_multiplier, e)
            put(work.aim, e, second * product - target)


@inner
def move(shape, work):
    """Takes the step."""
    length = at(work.numbers, LENGTH)
    put(work.numbers, MISSING, at(work.numbers, MISSING) * (1.0 - length))
    for copy in range(work.x.shape[0]):
        for j in range(work.x.shape[1]):
            put2(work.x, copy, j, at2(work.x, copy, j) + length * at2(work.d_x, copy, j))
            if j <= 2 * shape.outputs:
                moved = at2(work.lower, copy, j) + length * at2(work.d_lower, copy, j)
                put2(work.lower, copy, j, moved)
    for e in range(work.slack.shape[0]):
        moved = at(work.multiplier, e) + length * at(work.d_multiplier, e)
        put(work.multiplier, e, moved)
        if not shape.equality[shape.row[e]]:
            put(work.slack, e, at(work.slack, e) + length * at(work.d_slack, e))
    for j in range(work.vector.shape[0]):
        put(work.shared, j, at(work.shared, j) + length * at(work.d_shared, j))
        for c in range(work.sums.shape[0]):
            put2(work.sums, c, j, at2(work.sums, c, j) + length * at2(work.d_sums, c, j))


@outlined
def step(shape, cost, eps, work):
    """A step along the central path in every lane: a predictor, and from it the corrector."""
    factor_all(shape, eps, np.inf, work)
    for copy in range(work.x.shape[0]):
        for e in range(shape.rows[copy], shape.rows[copy + 1]):
            put(work.activity, e, along(shape, work, shape.row[e], work.x, copy))
    aim_at_boundary(work)
    for corrected in range(2):
        if corrected == 1:
            aim_at_path(shape, work)
        write_residuals(shape, cost, work)
        write_right_sides(shape, eps, work)
        solve_all(shape, work)
        finish_step(shape, work)
    move(shape, work)
    for lane in range(LANES):
        work.rounds[lane] += 1


# ---------------------------------------------------------------- batches


def _compile_solve(stamp: int) -> Any:
    @njit(cache=True, **KERNEL)
    def solve_blocks(
        shape, samples, bound, varying, yhat, weights, eps, cost, path, work, y, solved
    ):  # fmt: skip
        """Solves the part of some samples; writes `y`, or marks them as not solved."""
        d, size = shape.outputs, samples.size
        for j in range(cost.size):
            cost[j] = weights[shape.columns[j % d]] if j < 2 * d else 0.0
        running = min(size, LANES)
        waiting = running + stamp * 0  # the stamp makes the sources part of the cache's key
        for lane in range(LANES if size > 0 else 0):
            s = samples[min(lane, size - 1)]
            own = lane if lane < size else -1
            begin(shape, cost, bound[s], varying[s], yhat[s], work, lane, own)
        while running > 0:
            measure_gap(shape, work)
            begun = False
            for lane in range(LANES):
                k, gap = work.sample[lane], work.numbers[GAP, lane]
                there = gap <= END and work.numbers[MISSING, lane] <= 1e-10
                if k < 0 or (gap < np.inf and not there and work.rounds[lane] < ROUNDS):
                    continue
                keep(path, work, lane, k)
                s = samples[k]
                if there:
                    for j in range(d):
                        moved = work.shared[j, lane] - work.shared[d + j, lane]
                        y[s, shape.columns[j]] = yhat[s, shape.columns[j]] + moved
                else:
                    solved[s] = False
                work.sample[lane] = -1
                if waiting < size:
                    s = samples[waiting]
                    begin(shape, cost, bound[s], varying[s], yhat[s], work, lane, waiting)
                    waiting += 1
                    begun = True
                else:
                    running -= 1
            if running > 0:
                if begun:
                    measure_gap(shape, work)
                step(shape, cost, eps, work)

    return solve_blocks


@inner
def write_holds(shape, eps, share, work):
    """Writes the right sides of the copies: what the multipliers hold so far.

    `share` of the quadratic term's slope is in them: 1 for the multipliers of the point, 0 for the
    derivative.
    """
    for c in range(work.d_sums.shape[0]):
        for j in range(work.x.shape[1]):
            put2(work.d_sums, c, j, every(0.0))
    for copy in range(work.x.shape[0]):
        for j in range(work.x.shape[1]):
            hold = share * curvature(shape, j, eps) * at2(work.x, copy, j)
            if j <= 2 * shape.outputs:
                ratio = at2(work.lower, copy, j) * at2(work.per_x, copy, j)
                hold += held(ratio, eps) * at2(work.d_lower, copy, j)
            put2(work.right, copy, j, every(0.0) - hold)
        for e in range(shape.rows[copy], shape.rows[copy + 1]):
            r = shape.row[e]
            hold = at(work.d_multiplier, e)
            if not shape.equality[r]:
                ratio = at(work.multiplier, e) * at(work.per_slack, e)
                hold = held(ratio, eps) * hold
            for a in range(shape.start[r], shape.start[r + 1]):
                j = shape.entry[a]
                rest = at2(work.right, copy, j) - hold * at2(work.table, r, j)
                put2(work.right, copy, j, rest)


@inner
def raise_holds(shape, eps, share, work):
    """Multipliers that go with `d_x`; writes how far what is tight gives way, and its measure.

    Lanes whose `MISSING` is 0 are done: what they have must not depend on those beside them.
    """
    stiffest, going = STIFFEST * eps, at(work.numbers, MISSING)
    given, largest = every(0.0), every(TINY + share)
    for copy in range(work.x.shape[0]):
        for j in range(work.x.shape[1]):
            change = at2(work.d_x, copy, j)
            largest = most(most(largest, change), every(0.0) - change)
            if j <= 2 * shape.outputs:
                ratio = at2(work.lower, copy, j) * at2(work.per_x, copy, j)
                tight = held(ratio, eps)
                before = at2(work.d_lower, copy, j)
                after = stiffness(ratio, eps, stiffest) * change + tight * before
                put2(work.d_lower, copy, j, where_less(0.0, going, after, before))
                given = most(most(given, tight * change), every(0.0) - tight * change)
        for e in range(shape.rows[copy], shape.rows[copy + 1]):
            r = shape.row[e]
            change = along(shape, work, r, work.d_x, copy)
            tight, stiff = every(1.0), every(stiffest)
            if not shape.equality[r]:
                ratio = at(work.multiplier, e) * at(work.per_slack, e)
                tight, stiff = held(ratio, eps), stiffness(ratio, eps, stiffest)
            before = at(work.d_multiplier, e)
            after = stiff * change + tight * before
            put(work.d_multiplier, e, where_less(0.0, going, after, before))
            given = most(most(given, tight * change), every(0.0) - tight * change)
    put(work.numbers, GAP, given)
    put(work.numbers, LENGTH, largest)


@outlined
def hold(shape, eps, share, work):
    """Solves with what is tight held in place; `d_multiplier` becomes the rows' part.

    Given are the matrices, and in `vector` what the multipliers of the sums must add up to.
    """
    for copy in range(work.x.shape[0]):
        for j in range(work.x.shape[1]):
            put2(work.d_lower, copy, j, every(0.0))
    for e in range(work.slack.shape[0]):
        put(work.d_multiplier, e, every(0.0))
    put(work.numbers, MISSING, every(1.0))
    for _ in range(HOLDS):
        write_holds(shape, eps, share, work)
        solve_all(shape, work)
        raise_holds(shape, eps, share, work)
        still = True
        for lane in range(LANES):
            if not work.numbers[GAP, lane] > HELD * work.numbers[LENGTH, lane]:
                work.numbers[MISSING, lane] = 0.0
            elif work.numbers[MISSING, lane] > 0.0:
                still = False
        if still:
            break
    write_holds(shape, eps, share, work)
    solve_all(shape, work)


@inner
def add_gradients(shape, work, lane, varying, yhat, to_yhat, to_bound, to_varying):
    """Adds what the rows of a sample contribute; their multipliers are in `aim`."""
    d, n, m = shape.outputs, shape.outputs + shape.auxiliaries, shape.source.size
    for copy in range(work.x.shape[0]):
        x, adjoint = work.x[copy], work.d_x[copy]
        for e in range(shape.rows[copy], shape.rows[copy + 1]):
            r = shape.row[e]
            dual = work.d_multiplier[e, lane] * work.unit[r, lane]
            multiplier = work.aim[e, lane] * work.unit[r, lane]
            weight = multiplier * adjoint[2 * d, lane] + dual * x[2 * d, lane]
            if r >= m:  # a bound: only the prediction moves
                j = (r - m) // 2
                if j < d and r < m + 2 * n:
                    to_yhat[shape.columns[j]] += weight if (r - m) % 2 == 0 else -weight
                continue
            to_bound[shape.source[r]] -= weight
            for j in range(d):
                to_yhat[shape.columns[j]] += coefficient(shape, varying, r, j) * weight
            v = shape.varying[r]
            for j in range(n if v >= 0 else 0):
                if j < d:
                    to_varying[v, shape.columns[j]] += (
                        multiplier * (adjoint[j, lane] - adjoint[d + j, lane])
                        + dual * (x[j, lane] - x[d + j, lane])
                        + weight * yhat[shape.columns[j]]
                    )
                else:
                    to_varying[v, shape.columns[j]] += (
                        multiplier * adjoint[d + 1 + j, lane] + dual * x[d + 1 + j, lane]
                    )


def _compile_vjp(stamp: int) -> Any:
    @njit(cache=True, **KERNEL)
    def vjp_blocks(
        shape, samples, bound, varying, yhat, weights, eps, path, work, gradient, to_yhat,
        to_bound, to_varying,
    ):  # fmt: skip
        """Gradients of the part of some samples; `to_yhat` begins as `gradient`, others as 0."""
        d, size = shape.outputs, samples.size
        for first in range(stamp * 0, size, LANES):
            for lane in range(LANES):
                k = min(first + lane, size - 1)
                s = samples[k]
                write_table(shape, bound[s], varying[s], yhat[s], work.table, work.unit, lane)
                restore(path, work, lane, k)
                for j in range(work.vector.shape[0]):
                    work.vector[j, lane] = weights[shape.columns[j % d]] if j < 2 * d else 0.0
            factor_all(shape, eps, STIFFEST * eps, work)
            hold(shape, eps, 1.0, work)
            for e in range(work.slack.shape[0]):
                put(work.aim, e, at(work.d_multiplier, e))
            for lane in range(LANES):
                s = samples[min(first + lane, size - 1)]
                for j in range(d):
                    work.vector[j, lane] = gradient[s, shape.columns[j]]
                    work.vector[d + j, lane] = -gradient[s, shape.columns[j]]
            hold(shape, eps, 0.0, work)
            for lane in range(min(LANES, size - first)):
                s = samples[first + lane]
                add_gradients(
                    shape, work, lane, varying[s], yhat[s], to_yhat[s], to_bound[s], to_varying[s]
                )

    return vjp_blocks


_STAMP = source_stamp("kernels/qp/_lanes", "kernels/qp/_newton", "kernels/qp/_blocks")
solve_blocks = _compile_solve(_STAMP)
vjp_blocks = _compile_vjp(_STAMP)
