"""Weights of products whose vertices move: a quadratic program each, joined by one price.

Given lambda_k = t, the copy of product k is t times the minimiser z' over the product of

    sum_j w_j |z'_j| + t eps (sum_j z'_j^2 + 1/2 |a'|^2)

and what product k adds to the objective has the derivative

    g_k(t) = w |z'| + 2 t eps (|z'|^2 + 1/2 |a'|^2) + eps t,

continuous, increasing and piecewise linear, with g_k(0) the product's distance v_k.  The weights
have the same price: g_k(lambda_k) = mu where lambda_k > 0, and v_k >= mu elsewhere.  Newton's
method on these lines, with a line search on the objective, ends on the right pieces.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from gdpnet.kernels._jit import KERNEL, Array, inner, outlined, source_stamp
from gdpnet.kernels.exact._arrays import Prepared
from gdpnet.kernels.exact._least_norm import Units, load, new_quadratic_of
from gdpnet.kernels.exact._quadratic import (
    AT_KINK,
    AT_LOWER,
    FREE,
    IS_ENFORCED,
    N_ACTIVE,
    N_ENFORCED,
    OPTIMAL,
    Quadratic,
    correct,
    minimise,
    restart,
)
from gdpnet.kernels.qp._band import AT_BOUND, FREE_ABOVE, FREE_BELOW, PIECES, fill
from gdpnet.kernels.qp._band import AT_KINK as HELD_AT_KINK

_LEAST_WEIGHT = 1e-6  # pieces are computed for no less; a breakpoint below is not seen
_ROUNDS = 60


class Pieces(NamedTuple):
    """Memory of one thread."""

    quadratic: Quadratic
    units: Units
    zero: Array  # (n,)
    lower_source: Array  # (n,): row with one entry that is a column's bound, or -1
    upper_source: Array  # (n,)
    before: Array  # (cap,): weights before a step
    target: Array  # (cap,)


def new_pieces(prepared: Prepared, cap: int) -> Pieces:
    """Memory for one thread."""
    n = prepared.lower.size
    quadratic, units = new_quadratic_of(prepared)
    return Pieces(
        quadratic=quadratic,
        units=units,
        zero=np.zeros(n),
        lower_source=np.empty(n, dtype=np.int64),
        upper_source=np.empty(n, dtype=np.int64),
        before=np.empty(cap),
        target=np.empty(cap),
    )


@inner
def add_row(q, work, i):
    """Enforces a row, as a bound if it has one entry."""
    start = q.start[i]
    entries = q.start[i + 1] - start
    if entries > 1:
        if q.mark[i] == 0:
            q.mark[i] = IS_ENFORCED
            q.enforced[q.counts[N_ENFORCED]] = i
            q.counts[N_ENFORCED] += 1
        return
    if entries == 0 or q.coefficient[start] == 0.0:
        return
    j = q.column[start]
    bound = q.rhs[i] / q.coefficient[start]
    if (q.coefficient[start] > 0.0 or q.equality[i]) and bound < q.upper[j]:
        q.upper[j] = bound
        work.upper_source[j] = i
    if (q.coefficient[start] < 0.0 or q.equality[i]) and bound > q.lower[j]:
        q.lower[j] = bound
        work.lower_source[j] = i


@outlined
def enforce_product(work, prepared, logic, nearest, state):
    """Bounds and rows of a product."""
    q, units = work.quadratic, work.units
    for e in range(q.counts[N_ENFORCED]):
        q.mark[q.enforced[e]] = 0
    q.counts[N_ENFORCED] = 0
    for j in range(q.x.size):
        lower, upper = prepared.lower[j], prepared.upper[j]
        if prepared.integer[j]:
            lower = np.round(nearest[j])
            upper = lower
        q.lower[j] = (lower - units.origin[j]) / units.unit[j]
        q.upper[j] = (upper - units.origin[j]) / units.unit[j]
        work.lower_source[j] = -1
        work.upper_source[j] = -1
    for e in range(prepared.global_rows.size):
        add_row(q, work, prepared.global_rows[e])
    for k in range(state.size):
        if state[k] > 0:
            for e in range(logic.true_start[k], logic.true_start[k + 1]):
                add_row(q, work, logic.true_row[e])
        elif state[k] < 0:
            for e in range(logic.false_start[k], logic.false_start[k + 1]):
                add_row(q, work, logic.false_row[e])
    for j in range(q.x.size):
        if q.lower[j] > q.upper[j]:  # the product is not empty: a rounding error
            q.lower[j] = q.upper[j]


@inner
def read_piece(work, band, p):
    """Writes the point of the quadratic program and what holds it."""
    q, units = work.quadratic, work.units
    n = q.x.size
    for j in range(n):
        band.rows[p, j] = -1
    count = 0
    for j in range(n):
        x = q.x[j]
        band.point[p, j] = x * units.unit[j]
        above = x > 0.0 or not q.kinked[j]
        if q.state[j] == FREE:
            above = q.side[j] >= 0.0
        elif q.state[j] == AT_KINK:
            band.kind[p, j] = HELD_AT_KINK
            continue
        else:
            at_lower = q.state[j] == AT_LOWER
            source = work.lower_source[j] if at_lower else work.upper_source[j]
            if source < 0:
                band.kind[p, j] = AT_BOUND
                continue
            if x == 0.0:
                above = at_lower
            band.rows[p, count] = source
            count += 1
        band.kind[p, j] = FREE_ABOVE if above else FREE_BELOW
    for k in range(q.counts[N_ACTIVE]):
        if count >= n:
            return False
        band.rows[p, count] = q.active[k]
        count += 1
    return True


@outlined
def compute_piece(work, prepared, logic, weights, nearest, eps, band, p, weight):
    """The piece of product p at a weight.  Returns (success, its share of the objective)."""
    q = work.quadratic
    n = q.x.size
    t = max(weight, _LEAST_WEIGHT)
    enforce_product(work, prepared, logic, nearest, band.state[p])
    for j in range(n):
        if j < weights.size:
            q.curvature[j] = 2.0 * t * eps / (weights[j] * weights[j])
        else:
            q.curvature[j] = t * eps
    restart(q)
    if minimise(q, np.inf) != OPTIMAL or not read_piece(work, band, p):
        return False, 0.0
    distance, square = 0.0, 0.0
    for j in range(n):
        distance += abs(q.x[j]) if q.kinked[j] else 0.0
        square += q.curvature[j] * q.x[j] * q.x[j]
    price = distance + square + eps * t
    # The direction in which the copy grows is the least that meets what holds it.
    for j in range(n):
        if q.state[j] == FREE:
            q.x[j] = 0.0
    for _ in range(2):
        correct(q)
    band.slope[p] = eps
    for j in range(n):
        band.slope[p] += q.curvature[j] / t * q.x[j] * q.x[j]
    band.intercept[p] = price - band.slope[p] * t
    return True, weight * (distance + 0.5 * square * weight / t + 0.5 * eps * weight)


@inner
def settle(work, prepared, logic, weights, nearest, eps, band, first, last):
    """Finds the weights of a sample.  False where a quadratic program failed."""
    for p in range(first, last):
        work.before[p - first] = 0.0
    best = np.inf
    for _ in range(_ROUNDS):
        fill(band, first, last)
        change = 0.0
        for p in range(first, last):
            work.target[p - first] = band.weight[p]
            change = max(change, abs(band.weight[p] - work.before[p - first]))
        if change <= 1e-12 and best < np.inf:
            return True
        step = 1.0
        while True:
            value = 0.0
            for p in range(first, last):
                k = p - first
                weight = work.target[k]
                if step < 1.0:
                    weight = work.before[k] + step * (weight - work.before[k])
                band.weight[p] = weight
                succeeded, share = compute_piece(
                    work, prepared, logic, weights, nearest, eps, band, p, weight
                )
                if not succeeded:
                    return False
                value += share
            if value <= best + 1e-14 * max(1.0, abs(best)) or step < 1e-4:
                break
            step *= 0.5
        best = value
        for p in range(first, last):
            work.before[p - first] = band.weight[p]
    return True


def _compile(stamp: int) -> Any:
    @njit(cache=True, **KERNEL)
    def settle_pieces(
        prepared, logic, varying, bound, yhat, weights, nearest, eps, work, band, failed
    ):  # fmt: skip
        """Solves the samples whose status is PIECES; `failed` marks those that could not be."""
        for s in range(yhat.shape[0]):
            if band.status[s] != PIECES:
                continue
            load(
                work.quadratic, work.units, prepared, varying[s], bound[s], yhat[s], weights,
                work.zero, 1.0,
            )  # fmt: skip
            first = band.start[s] + stamp * 0  # the stamp makes the sources part of the cache's key
            failed[s] = not settle(
                work, prepared, logic, weights, nearest[s], eps, band, first, band.start[s + 1]
            )

    return settle_pieces


settle_pieces = _compile(
    source_stamp(
        *("kernels/exact/_quadratic", "kernels/exact/_least_norm"),
        *("kernels/qp/_band", "kernels/qp/_pieces"),
    )
)
