"""The dictionary: the state of a node's linear program, over the columns only.

The program at a node is

    minimise  sum_j w_j |z_j - kink_j|   subject to   lower <= z <= upper  and the enforced rows.

Neither the kinks nor the box become rows.  A column that is not basic rests on one of its
breakpoints (lower bound, kink, upper bound); a row takes part in the dictionary only while it is
tight.  So the dictionary has one line per *basic column* -- as many as there are tight rows -- and
one position per nonbasic quantity, of which there are always n:

    z[basic k] = value + sum_p tableau[k, p] * (move of the nonbasic quantity at position p)

The nonbasic quantities are columns (id < n) and slacks of tight rows (id = n + code).  A row has
two codes: code i < m stands for ``a z <= b`` (or ``a z == b``), code m + i for its closed negation
``a z >= b``, which the search enforces once it has explored the row itself.

Dual feasibility: `REDUCED[p]` is the rate of the basic columns' cost as the quantity at p moves
up, its own cost left out.  Resting on a breakpoint with one-sided slopes s- <= s+ it must satisfy
``-s+ <= reduced <= -s-``.  The start (no tight row, everything on its breakpoint nearest to the
kink) is dual feasible, and every step keeps that, so `dual_objective` is always a lower bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gdpnet.kernels._jit import Array, inner, outlined

# Lines of `Dictionary.real`; the first N_REAL_SAVED are the state that backtracking restores.
LOWER, UPPER, VALUE, REDUCED, SLOPE = 0, 1, 2, 3, 4  # REDUCED by position, the others by column
N_REAL_SAVED = 5
KINK, WEIGHT = 5, 6  # by column, constant for a sample; auxiliaries: kink -inf, weight 0
ALPHA, PRICE, SIZE, ROOM, FURTHER = 7, 8, 9, 10, 11  # scratch of the ratio test, by position
N_REAL = 12

# Lines of `Dictionary.slots`.
NONBASIC, BASIC, PLACE, LOWER_SOURCE, UPPER_SOURCE = 0, 1, 2, 3, 4
N_INDEX_SAVED = 5  # PLACE[j]: k >= 0 if column j is basic on line k, else -1 - position
PASSED = 5  # scratch of the ratio test: breakpoints passed by the quantity at a position
N_INDEX = 6

# Entries of `Dictionary.counts`.
N_BASIC, N_ENFORCED, N_TRAIL = 0, 1, 2
N_COUNT_SAVED = 3
AGE, N_PIVOTS = 3, 4  # pivots since the last refactorisation; pivots in all
N_COUNT = 5

# Where a bound comes from, when not from a row code.
FROM_BOX, FROM_SPLIT = -1, -2

FEASIBILITY = 1e-10  # a scaled row (largest coefficient about 1) is violated beyond this
ACCEPTED = 1e-9  # ... but no contradiction is concluded from less than this
ROUNDING = 1e-14  # what arithmetic leaves of a whole number that rows determine, relative
DUAL_SLACK = 1e-11  # Harris: how far a reduced cost may overshoot for a larger pivot
NO_PIVOT = 1e-11  # an entry below this counts as zero
SMALL_PIVOT = 1e-6  # refactorise before trusting a pivot below this
REFACTOR_AGE = 60


class Rows(NamedTuple):
    """The sample's rows, scaled to a largest coefficient in [1, 2), by nonzero entries."""

    start: Array  # (m + 1,) int64
    column: Array  # (entries,) int64
    coefficient: Array  # (entries,) float64
    rhs: Array  # (m,) float64
    tolerance: Array  # (m,) float64
    equality: Array  # (m,) bool
    integer: Array  # (n,) bool: columns, kept here because bounds are rounded on entry


class Dictionary(NamedTuple):
    """The working state of one node; see the module's text."""

    real: Array  # (N_REAL, n) float64
    slots: Array  # (N_INDEX, n) int64
    tableau: Array  # (n, n) float64, the first counts[N_BASIC] lines are in use
    counts: Array  # (N_COUNT,) int64
    enforced: Array  # (2 m,) int64: codes of the enforced rows with two entries or more
    flag: Array  # (2 m,) int8: 1 = listed in `enforced`, 2 = tight (bits)
    factor: Array  # (n, 2 n + 1) float64: scratch of `refactor`


def new_dictionary(n: int, m: int) -> Dictionary:
    """Allocates a dictionary for n columns and m rows."""
    return Dictionary(
        real=np.zeros((N_REAL, n)),
        slots=np.zeros((N_INDEX, n), np.int64),
        tableau=np.empty((n, n)),
        counts=np.zeros(N_COUNT, np.int64),
        enforced=np.zeros(2 * m, np.int64),
        flag=np.zeros(2 * m, np.int8),
        factor=np.empty((n, 2 * n + 1)),
    )


@inner
def start_dictionary(dic, lower, upper, yhat, weights):
    """Puts every column on the breakpoint nearest to its kink; no row is enforced."""
    real, index, count, n = dic.real, dic.slots, dic.counts, lower.size
    for e in range(count[N_ENFORCED]):
        dic.flag[dic.enforced[e]] = 0
    count[N_BASIC] = 0
    count[N_ENFORCED] = 0
    count[N_TRAIL] = 0
    count[AGE] = 0
    for j in range(n):
        lo = lower[j]
        up = upper[j]
        if j < yhat.size:
            kink = yhat[j]
            weight = weights[j]
            value = min(max(kink, lo), up)
        else:
            kink = -np.inf
            weight = 0.0
            value = min(max(0.0, lo), up)
            if lo > -np.inf and value != lo and value != up:
                value = lo if -lo < up else up
            elif up < np.inf and value != lo and value != up:
                value = up
        real[LOWER, j] = lo
        real[UPPER, j] = up
        real[VALUE, j] = value
        real[KINK, j] = kink
        real[WEIGHT, j] = weight
        real[REDUCED, j] = 0.0
        real[SLOPE, j] = 0.0
        index[NONBASIC, j] = j
        index[PLACE, j] = -1 - j
        index[LOWER_SOURCE, j] = FROM_BOX
        index[UPPER_SOURCE, j] = FROM_BOX


@outlined
def reset_basis(dic):
    """Back to a dictionary without tight rows, within the node's bounds."""
    real, index = dic.real, dic.slots
    n = real.shape[1]
    for e in range(dic.counts[N_ENFORCED]):
        dic.flag[dic.enforced[e]] &= 1
    dic.counts[N_BASIC] = 0
    dic.counts[AGE] = 0
    for j in range(n):
        lo, up = real[LOWER, j], real[UPPER, j]
        if real[WEIGHT, j] > 0.0:
            value = min(max(real[KINK, j], lo), up)
        elif lo > -np.inf:
            value = lo
        elif up < np.inf:
            value = up
        else:
            value = 0.0
        real[VALUE, j] = value
        real[REDUCED, j] = 0.0
        real[SLOPE, j] = 0.0
        index[NONBASIC, j] = j
        index[PLACE, j] = -1 - j


@inner
def row_excess(rows, i, z):
    """``a z - b`` of row i, scaled."""
    total = 0.0
    for e in range(rows.start[i], rows.start[i + 1]):
        total += rows.coefficient[e] * z[rows.column[e]]
    return total - rows.rhs[i]  # last, or it is lost beside large terms


@inner
def whole_slack(x):
    """How far a column that must be whole may be from it: absolute, whatever its size."""
    return ACCEPTED + ROUNDING * abs(x)


@inner
def column_tolerance(rows, j, x):
    """A basic column is violated beyond this."""
    if rows.integer[j]:
        return FEASIBILITY + ROUNDING * abs(x)
    return FEASIBILITY * max(1.0, abs(x))


@inner
def row_holds(rows, i, z):
    """Whether row i holds at z within its tolerance."""
    excess = row_excess(rows, i, z)
    if rows.equality[i]:
        excess = abs(excess)
    return excess <= rows.tolerance[i]


@inner
def move_nonbasic(dic, position, j, target):
    """Moves nonbasic column j to `target`; the basic columns follow."""
    step = target - dic.real[VALUE, j]
    dic.real[VALUE, j] = target
    for k in range(dic.counts[N_BASIC]):
        dic.real[VALUE, dic.slots[BASIC, k]] += dic.tableau[k, position] * step


@inner
def tighten(dic, rows, j, bound, is_lower, source):
    """Raises the lower bound (or drops the upper one) of column j.  False if the box empties.

    A bound that stems from a negated row (source >= n_rows) is strict in effect: its boundary
    belongs to a sibling that has been explored, so a box with no inside beyond it is empty.
    """
    real, index = dic.real, dic.slots
    if is_lower:
        if bound <= real[LOWER, j]:
            return True
        gap = real[UPPER, j] - bound
        other = index[UPPER_SOURCE, j]
    else:
        if bound >= real[UPPER, j]:
            return True
        gap = bound - real[LOWER, j]
        other = index[LOWER_SOURCE, j]
    magnitude = max(1.0, abs(bound))
    m = rows.rhs.size
    if (source >= m or other >= m) and gap <= NO_PIVOT * magnitude:
        return False
    if gap < 0.0:
        allowed = whole_slack(bound) if rows.integer[j] else ACCEPTED * magnitude
        if gap < -allowed:
            return False
        bound = real[UPPER, j] if is_lower else real[LOWER, j]  # contradiction within rounding
    if is_lower:
        real[LOWER, j] = bound
        index[LOWER_SOURCE, j] = source
    else:
        real[UPPER, j] = bound
        index[UPPER_SOURCE, j] = source
    place = index[PLACE, j]
    if place < 0:
        value = real[VALUE, j]
        if (is_lower and value < bound) or (not is_lower and value > bound):
            move_nonbasic(dic, -1 - place, j, bound)
    return True


@outlined
def enforce(dic, rows, code):
    """Adds a row to the node's program: as a bound if it has one entry.  False on contradiction."""
    m = rows.rhs.size
    negated = code >= m
    i = code - m if negated else code
    entries = rows.start[i + 1] - rows.start[i]
    if entries > 1:
        if dic.flag[code] & 1 == 0:
            dic.flag[code] |= 1
            dic.enforced[dic.counts[N_ENFORCED]] = code
            dic.counts[N_ENFORCED] += 1
        return True
    coefficient = 0.0
    if entries == 1:
        coefficient = rows.coefficient[rows.start[i]]
    if coefficient == 0.0:
        excess = -rows.rhs[i]
        if rows.equality[i]:
            excess = abs(excess)
        return negated or excess <= rows.tolerance[i]
    j = rows.column[rows.start[i]]
    bound = rows.rhs[i] / coefficient
    upper_side = (coefficient > 0.0) != negated
    low = bound
    high = bound
    source = code
    if rows.integer[j]:
        low = np.ceil(bound - whole_slack(bound))
        high = np.floor(bound + whole_slack(bound))
        if negated:  # the boundary itself has been explored: on to the next integer
            source = FROM_SPLIT
            low, high = high + 1.0, low - 1.0
    if (upper_side or rows.equality[i]) and not tighten(dic, rows, j, high, False, source):
        return False
    lower_side = not upper_side or rows.equality[i]
    return not lower_side or tighten(dic, rows, j, low, True, source)


@inner
def dual_objective(dic):
    """The lower bound: basic columns are priced on their current piece, even beyond its ends."""
    real, total = dic.real, 0.0
    for j in range(real.shape[1]):
        weight = real[WEIGHT, j]
        if weight > 0.0:
            away = real[VALUE, j] - real[KINK, j]
            total += real[SLOPE, j] * away if dic.slots[PLACE, j] >= 0 else weight * abs(away)
    return total


@inner
def distance_of(dic):
    """The weighted distance of the current point."""
    total = 0.0
    for j in range(dic.real.shape[1]):
        weight = dic.real[WEIGHT, j]
        if weight > 0.0:
            total += weight * abs(dic.real[VALUE, j] - dic.real[KINK, j])
    return total
