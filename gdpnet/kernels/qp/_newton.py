"""Newton's equations of the regularised program of several blocks, for eight samples at once.

A step needs one matrix M of the size of a copy for each copy, one for each block (W = sum of M^-1),
and one for sigma; nothing grows with the square of the program. See `_blocks` for the program.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gdpnet.kernels._jit import Array, inner
from gdpnet.kernels.qp._lanes import (
    LANES,
    at,
    at2,
    every,
    most,
    put,
    put2,
    where_less,
)

COMPLIANCE = 1e-8  # of an equality, against the quadratic term
NO_WEIGHT, LITTLE_WEIGHT = 1e-6, 1e-3
ENORMOUS = 1e3  # a multiplier, where the largest weight of an output is 1
# In the derivative, of multiplier / slack against eps: beyond this the row is tight, below the
# reciprocal it is not, and in between the end of the central path does not tell.
KINK = 30.0
TINY = 1e-300

# Lines of `Newton.numbers`: mean product of slacks and multipliers; what is left of the linear
# equations' residual at the start, of which each step closes its share; length of the step.
GAP, MISSING, LENGTH = range(3)


class Shape(NamedTuple):
    """What all samples of a part share.

    The table of a sample has the rows of the rules that stand in the part, then two rows for each
    column's upper and lower bound, then the ranges of the outputs' eta.

    Attributes:
        outputs: d.
        auxiliaries: their number.
        columns: of the rules, outputs first, (n,).
        lower: of the columns, (n,).
        upper: of the columns, (n,).
        source: rows of the rules, (m,).
        varying: their place among those whose coefficients depend on x, or -1, (m,).
        shared: their coefficients where these do not, (m, n).
        copies: copies of each block, (blocks + 1,).
        rows: rows of each copy, (copies + 1,).
        row: which, rows of the table.
        equality: of the table, (rows,) bool.
        start: entries of each row of the table, (rows + 1,).
        entry: which of (p, q, lambda, a) they are, in order; the others are 0.
    """

    outputs: int
    auxiliaries: int
    columns: Array
    lower: Array
    upper: Array
    source: Array
    varying: Array
    shared: Array
    copies: Array
    rows: Array
    row: Array
    equality: Array
    start: Array
    entry: Array

    @property
    def width(self) -> int:
        """Numbers of a copy, D."""
        return 2 * self.outputs + 1 + self.auxiliaries


class Newton(NamedTuple):
    """Memory of one thread: a point of each lane, and the step from there."""

    table: Array  # (rows, D, lanes)
    unit: Array  # (rows, lanes): by which the rows were scaled
    x: Array  # (copies, D, lanes)
    lower: Array  # (copies, D, lanes): multipliers of their signs
    slack: Array  # (row places, lanes)
    multiplier: Array  # (row places, lanes)
    shared: Array  # (D, lanes): sigma
    sums: Array  # (blocks, D, lanes): multipliers of `sum x = sigma`
    numbers: Array  # (3, lanes)
    sample: Array  # (lanes,) int64, -1 where a lane rests
    rounds: Array  # (lanes,) int64
    per_x: Array  # (copies, D, lanes): 1 / x
    per_lower: Array  # (copies, D, lanes)
    per_slack: Array  # (row places, lanes)
    per_multiplier: Array  # (row places, lanes)
    inverse: Array  # (copies, D, D, lanes): M^-1
    block: Array  # (blocks, D, D, lanes): W^-1
    joined: Array  # (D, D, lanes): the matrix of sigma, factored
    factor: Array  # (D, D, lanes)
    right: Array  # (copies, D, lanes)
    pull: Array  # (blocks, D, lanes)
    d_x: Array  # (copies, D, lanes)
    d_lower: Array  # (copies, D, lanes)
    d_slack: Array  # (row places, lanes)
    d_multiplier: Array  # (row places, lanes)
    d_shared: Array  # (D, lanes)
    d_sums: Array  # (blocks, D, lanes)
    activity: Array  # (row places, lanes): g.x
    aim: Array  # (row places, lanes): the step leads to `slack * multiplier = - aim`, linearised
    aim_lower: Array  # (copies, D, lanes)
    vector: Array  # (D, lanes)


def new_newton(shape: Shape) -> Newton:
    """Memory for one thread."""
    width, copies, blocks = shape.width, shape.rows.size - 1, shape.copies.size - 1
    rows, places = shape.equality.size, shape.row.size

    def vectors(*axes: int) -> Array:
        """Zeros that begin where a line of the cache does: reading across two takes longer."""
        size = math.prod(axes) * LANES
        memory = np.zeros(size + LANES)
        skipped = -memory.ctypes.data % 64 // 8
        return memory[skipped : skipped + size].reshape(*axes, LANES)

    return Newton(
        table=vectors(rows, width),
        unit=vectors(rows),
        x=vectors(copies, width),
        lower=vectors(copies, width),
        slack=vectors(places),
        multiplier=vectors(places),
        shared=vectors(width),
        sums=vectors(blocks, width),
        numbers=vectors(3),
        sample=np.zeros(LANES, dtype=np.int64),
        rounds=np.zeros(LANES, dtype=np.int64),
        per_x=vectors(copies, width),
        per_lower=vectors(copies, width),
        per_slack=vectors(places),
        per_multiplier=vectors(places),
        inverse=vectors(copies, width, width),
        block=vectors(blocks, width, width),
        joined=vectors(width, width),
        factor=vectors(width, width),
        right=vectors(copies, width),
        pull=vectors(blocks, width),
        d_x=vectors(copies, width),
        d_lower=vectors(copies, width),
        d_slack=vectors(places),
        d_multiplier=vectors(places),
        d_shared=vectors(width),
        d_sums=vectors(blocks, width),
        activity=vectors(places),
        aim=vectors(places),
        aim_lower=vectors(copies, width),
        vector=vectors(width),
    )


# ---------------------------------------------------------------- small dense matrices


@inner
def factorise(matrix, size, smallest):
    """L D L' of a symmetric matrix, whose lower triangle is given, without pivots below a number.

    L stands below the diagonal, 1 / D on it, and D L' above it.
    """
    for i in range(size):
        for k in range(i):
            total = at2(matrix, i, k)
            for e in range(k):
                total -= at2(matrix, i, e) * at2(matrix, e, k)
            put2(matrix, k, i, total)
            put2(matrix, i, k, total * at2(matrix, k, k))
        total = at2(matrix, i, i)
        for e in range(i):
            total -= at2(matrix, i, e) * at2(matrix, e, i)
        put2(matrix, i, i, 1.0 / most(every(smallest), total))


@inner
def invert(matrix, size, smallest, target):
    """Inverse of such a matrix, which is overwritten by its factors."""
    factorise(matrix, size, smallest)
    for i in range(size):  # K = L^-1: its transpose above the diagonal, D^-1 K on and below it
        pivot = at2(matrix, i, i)
        put2(target, i, i, pivot)
        for k in range(i):
            total = every(0.0) - at2(matrix, i, k)
            for e in range(k + 1, i):
                total -= at2(matrix, i, e) * at2(target, k, e)
            put2(target, k, i, total)
            put2(target, i, k, total * pivot)
    for i in range(size):
        for k in range(i, size):
            total = at2(target, k, k)
            if k > i:
                total = total * at2(target, i, k)
            for e in range(k + 1, size):
                total += at2(target, i, e) * at2(target, e, k)
            put2(target, i, k, total)
    for i in range(size):
        for k in range(i):
            put2(target, i, k, at2(target, k, i))


@inner
def back_solve(factors, size, vector):
    """Solves with the factors, in place."""
    for i in range(size):
        total = at(vector, i)
        for k in range(i):
            total -= at2(factors, i, k) * at(vector, k)
        put(vector, i, total)
    for i in range(size - 1, -1, -1):
        total = at(vector, i) * at2(factors, i, i)
        for k in range(i + 1, size):
            total -= at2(factors, k, i) * at(vector, k)
        put(vector, i, total)


# ---------------------------------------------------------------- the equations


@inner
def curvature(shape, j, eps):
    """Diagonal of the quadratic term."""
    return 2.0 * eps if j < 2 * shape.outputs else eps


@inner
def along(shape, work, r, vectors, copy):
    """`g.v` of a row with the vector of a copy."""
    total = every(0.0)
    for a in range(shape.start[r], shape.start[r + 1]):
        j = shape.entry[a]
        total += at2(work.table, r, j) * at2(vectors, copy, j)
    return total


@inner
def takes_part(shape, copy, work):
    """Whether a copy takes part in the derivative: 1, or 0.

    It does not if it has no weight; or if it is the copy of a product that is empty but for the
    room that rows are given, whose little weight is an artefact and whose multipliers are enormous.
    """
    weight = at2(work.x, copy, 2 * shape.outputs)
    largest = every(0.0)
    for e in range(shape.rows[copy], shape.rows[copy + 1]):
        largest = most(largest, at(work.multiplier, e))
    genuine = where_less(ENORMOUS, largest, 0.0, 1.0)
    genuine = where_less(LITTLE_WEIGHT, weight, 1.0, genuine)
    return where_less(weight, NO_WEIGHT, 0.0, genuine)


@inner
def held(ratio, eps):
    """1 for what is tight in the derivative, by its ratio of multiplier and slack; else 0."""
    return where_less(KINK * eps, ratio, 1.0, 0.0)


@inner
def stiffness(ratio, eps, stiffest):
    """By which a row or a sign holds a copy: the ratio itself on the central path."""
    if stiffest == np.inf:
        return ratio
    within = where_less(ratio, eps / KINK, 0.0, ratio)
    return where_less(KINK * eps, ratio, stiffest, within)


@inner
def write_matrix(shape, copy, eps, stiffest, work):
    """M of a copy, its lower triangle; and the reciprocals that belong to it."""
    width, fixed = work.vector.shape[0], 2 * shape.outputs
    matrix = work.factor
    for i in range(width * width):
        put(matrix, i, every(0.0))
    for i in range(width):
        diagonal = every(curvature(shape, i, eps))
        if i <= fixed:
            x, lower = at2(work.x, copy, i), at2(work.lower, copy, i)
            both = 1.0 / (x * lower)  # one division for two: they are slow
            put2(work.per_x, copy, i, lower * both)
            put2(work.per_lower, copy, i, x * both)
            diagonal += stiffness(lower * lower * both, eps, stiffest)
        put2(matrix, i, i, diagonal)
    for e in range(shape.rows[copy], shape.rows[copy + 1]):
        r = shape.row[e]
        stiff = every(min(1.0 / COMPLIANCE, stiffest))
        if not shape.equality[r]:
            slack, multiplier = at(work.slack, e), at(work.multiplier, e)
            both = 1.0 / (slack * multiplier)
            put(work.per_slack, e, multiplier * both)
            put(work.per_multiplier, e, slack * both)
            stiff = stiffness(multiplier * multiplier * both, eps, stiffest)
        for a in range(shape.start[r], shape.start[r + 1]):
            i = shape.entry[a]
            scaled = stiff * at2(work.table, r, i)
            for b in range(shape.start[r], a + 1):
                k = shape.entry[b]
                put2(matrix, i, k, at2(matrix, i, k) + scaled * at2(work.table, r, k))


@inner
def factor_all(shape, eps, stiffest, work):
    """M^-1 of every copy, W^-1 of every block, and the factors of the matrix of sigma.

    The coordinate of lambda, which sigma does not move, gets a unit row in the latter.
    """
    width, fixed = work.vector.shape[0], 2 * shape.outputs
    for c in range(shape.copies.size - 1):
        for copy in range(shape.copies[c], shape.copies[c + 1]):
            inverse = work.inverse[copy]
            write_matrix(shape, copy, eps, stiffest, work)
            invert(work.factor, width, eps, inverse)
            if stiffest < np.inf:
                part = takes_part(shape, copy, work)
                for i in range(width):
                    for k in range(width):
                        put2(inverse, i, k, where_less(0.0, part, at2(inverse, i, k), 0.0))
        for i in range(width):
            for k in range(i + 1):
                total = every(0.0)
                for copy in range(shape.copies[c], shape.copies[c + 1]):
                    total += at2(work.inverse[copy], i, k)
                put2(work.joined, i, k, total)
        invert(work.joined, width, TINY, work.block[c])
    for i in range(width):
        for k in range(i + 1):
            total = every(0.0)
            for c in range(shape.copies.size - 1):
                if i != fixed and k != fixed:
                    total += at2(work.block[c], i, k)
            put2(work.joined, i, k, total)
    put2(work.joined, fixed, fixed, every(1.0))
    factorise(work.joined, width, TINY)


@inner
def solve_all(shape, work):
    """Solves for d_x, d_sums and d_shared.

    Given are the right sides of the copies in `right`, `sum x - sigma` in `d_sums`, and what the
    multipliers of the sums must still add up to in `vector`.
    """
    width, fixed = work.vector.shape[0], 2 * shape.outputs
    for i in range(width):
        put(work.d_shared, i, every(0.0) - at(work.vector, i))
    for c in range(shape.copies.size - 1):
        for i in range(width):
            total = at2(work.d_sums, c, i)
            for copy in range(shape.copies[c], shape.copies[c + 1]):
                for k in range(width):
                    total += at2(work.inverse[copy], i, k) * at2(work.right, copy, k)
            put2(work.pull, c, i, total)
        for i in range(width):
            total = at(work.d_shared, i)
            for k in range(width):
                total += at2(work.block[c], i, k) * at2(work.pull, c, k)
            put(work.d_shared, i, total)
    put(work.d_shared, fixed, every(0.0))
    back_solve(work.joined, width, work.d_shared)
    for c in range(shape.copies.size - 1):
        for i in range(width):
            total = every(0.0)
            for k in range(width):
                rest = at2(work.pull, c, k) - at(work.d_shared, k)
                total += at2(work.block[c], i, k) * rest
            put2(work.d_sums, c, i, total)
        for copy in range(shape.copies[c], shape.copies[c + 1]):
            for i in range(width):
                total = every(0.0)
                for k in range(width):
                    rest = at2(work.right, copy, k) - at2(work.d_sums, c, k)
                    total += at2(work.inverse[copy], i, k) * rest
                put2(work.d_x, copy, i, total)
