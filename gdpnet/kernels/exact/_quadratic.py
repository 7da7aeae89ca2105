"""The quadratic program at a node of the least-norm search: a dual active-set method.

    minimise    price * sum |x_j| + 1/2 sum curvature_j (x_j - centre_j)^2
    subject to  the enforced rows, lower <= x <= upper

The absolute values stand for the outputs only.  For a price that is large enough the minimiser is
the least-norm point among the points with the least l1 norm, exactly and not only in the limit:
both are polyhedral.  So nothing depends on a ball of a radius known up to rounding, which would
turn a unique nearest point into a sliver of points.

A column is free or fixed (at its kink 0, or at a bound); a row is active or not.  The point is the
minimiser for the active rows and fixed columns as equations, and no multiplier has the wrong sign.
That is so at the start, where every output is fixed, and is kept by every step: a violated
constraint is brought in by raising its multiplier; what would get a wrong multiplier on the way is
let go.  Every point on the way is a lower bound, and a node may go on from its parent's state.

Auxiliaries have no cost; a small curvature around a centre keeps the program strictly convex.  The
caller moves the centre to the solution until that does not matter any more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gdpnet.kernels._jit import Array, inner, outlined

# How a column is fixed.
FREE, AT_KINK, AT_LOWER, AT_UPPER = 0, 1, 2, 3

# Outcomes.
OPTIMAL, INFEASIBLE, CUTOFF, TROUBLE = 0, 1, 2, 3

# Places in `Quadratic.counts`.
N_ENFORCED, N_ACTIVE = 0, 1

# What may be brought in.
NOTHING, ROW, KINK, LOWER_BOUND, UPPER_BOUND = -1, 0, 1, 2, 3

AUXILIARY_CURVATURE = 1e-4
COLUMN_TOLERANCE = 1e-12
DEPENDENT = 1e-12  # squared sine of the angle between a row and the active ones
SMALL_RATE = 1e-10  # multipliers that change by less do not block a step

# Marks of a row, in `Quadratic.mark`.
IS_ENFORCED, IS_ACTIVE, IS_IGNORED = 1, 2, 4


class Quadratic(NamedTuple):
    """A program, the state of the method, and its scratch memory.

    Row i is `coefficient x <= rhs` (or ==), its largest coefficient 1.  Code i < m means row i,
    m + i its closed negation.
    """

    start: Array  # (m + 1,)
    column: Array  # (entries,)
    coefficient: Array  # (entries,)
    rhs: Array  # (m,)
    tolerance: Array  # (m,): a row is violated beyond it
    forgiven: Array  # (m,): an excess that a row dependent on the active ones may have
    equality: Array  # (m,) bool
    kinked: Array  # (n,) bool: outputs
    curvature: Array  # (n,)
    centre: Array  # (n,)
    lower: Array  # (n,)
    upper: Array  # (n,)
    price: Array  # (1,)
    x: Array  # (n,)
    state: Array  # (n,) int64
    side: Array  # (n,): sign of a free column's price
    enforced: Array  # (2 m,) int64: codes
    mark: Array  # (2 m,) int64
    active: Array  # (n + 1,) int64: codes
    orientation: Array  # (n + 1,): -1 for an equality brought in from below
    multiplier: Array  # (n + 1,)
    counts: Array  # (2,) int64
    dense: Array  # (n + 1, n): active rows, oriented
    right: Array  # (n + 1,): their right sides
    normal: Array  # (n,): of what is brought in
    schur: Array  # (n + 1, n + 1)
    rate: Array  # (n + 1,): of the multipliers
    step: Array  # (n,): of x
    room: Array  # (2 n + 1,): what is left to a multiplier
    speed: Array  # (2 n + 1,): how fast it is used up, 0 if it does not block
    kept: Array  # (n,): scratch of `refine`


def new_quadratic(start: Array, column: Array, equality: Array, outputs: int, n: int) -> Quadratic:
    """Memory for one thread."""
    m = equality.size
    kinked = np.arange(n) < outputs
    return Quadratic(
        start=start,
        column=column,
        coefficient=np.empty(column.size),
        rhs=np.empty(m),
        tolerance=np.empty(m),
        forgiven=np.empty(m),
        equality=equality,
        kinked=kinked,
        curvature=np.where(kinked, 1.0, AUXILIARY_CURVATURE),
        centre=np.zeros(n),
        lower=np.empty(n),
        upper=np.empty(n),
        price=np.ones(1),
        x=np.zeros(n),
        state=np.zeros(n, np.int64),
        side=np.zeros(n),
        enforced=np.zeros(2 * m, np.int64),
        mark=np.zeros(2 * m, np.int64),
        active=np.zeros(n + 1, np.int64),
        orientation=np.zeros(n + 1),
        multiplier=np.zeros(n + 1),
        counts=np.zeros(2, np.int64),
        dense=np.zeros((n + 1, n)),
        right=np.zeros(n + 1),
        normal=np.zeros(n),
        schur=np.zeros((n + 1, n + 1)),
        rate=np.zeros(n + 1),
        step=np.zeros(n),
        room=np.zeros(2 * n + 1),
        speed=np.zeros(2 * n + 1),
        kept=np.zeros(n),
    )


@outlined
def restart(q):
    """Back to the state without active rows; what is enforced stays."""
    for e in range(q.counts[N_ENFORCED]):
        q.mark[q.enforced[e]] = IS_ENFORCED
    q.counts[N_ACTIVE] = 0
    for j in range(q.x.size):
        q.side[j] = 0.0
        q.state[j] = FREE
        if not q.kinked[j]:
            q.x[j] = q.centre[j]
        elif q.lower[j] > 0.0:
            q.x[j], q.state[j] = q.lower[j], AT_LOWER
        elif q.upper[j] < 0.0:
            q.x[j], q.state[j] = q.upper[j], AT_UPPER
        else:
            q.x[j], q.state[j] = 0.0, AT_KINK


@inner
def excess(q, code):
    """How far a row is above its right side; negative or positive for an equality."""
    m = q.rhs.size
    i = code if code < m else code - m
    total = -q.rhs[i]
    for e in range(q.start[i], q.start[i + 1]):
        total += q.coefficient[e] * q.x[q.column[e]]
    return total if code < m else -total


@inner
def bound_value(q):
    """Price and norm of the outputs at the current point: a lower bound for this program."""
    total = 0.0
    for j in range(q.x.size):
        if q.kinked[j]:
            x = q.x[j]
            linear = q.side[j] * x if q.state[j] == FREE else abs(x)
            total += q.price[0] * linear + 0.5 * x * x
    return total


# ---------------------------------------------------------------- active rows


@inner
def write_row(q, code, orientation, target):
    """Writes a row as a dense vector and returns its right side."""
    m = q.rhs.size
    i = code if code < m else code - m
    sign = orientation if code < m else -orientation
    for j in range(target.size):
        target[j] = 0.0
    for e in range(q.start[i], q.start[i + 1]):
        target[q.column[e]] += sign * q.coefficient[e]
    return sign * q.rhs[i]


@inner
def activate(q, code, orientation, multiplier):
    """Appends an active row.  False if there is no room, which independent rows never need."""
    k = q.counts[N_ACTIVE]
    if k >= q.active.size:
        return False
    q.active[k] = code
    q.orientation[k] = orientation
    q.multiplier[k] = multiplier
    q.right[k] = write_row(q, code, orientation, q.dense[k])
    q.mark[code] |= IS_ACTIVE
    q.counts[N_ACTIVE] = k + 1
    return True


@inner
def deactivate(q, k):
    """Lets active row k go."""
    q.mark[q.active[k]] &= ~IS_ACTIVE
    last = q.counts[N_ACTIVE] - 1
    for i in range(k, last):
        q.active[i] = q.active[i + 1]
        q.orientation[i] = q.orientation[i + 1]
        q.multiplier[i] = q.multiplier[i + 1]
        q.right[i] = q.right[i + 1]
        for j in range(q.x.size):
            q.dense[i, j] = q.dense[i + 1, j]
    q.counts[N_ACTIVE] = last


@inner
def factor(q):
    """Cholesky factor of the active rows' products over the free columns.  False on failure."""
    rows, n = q.counts[N_ACTIVE], q.x.size
    for i in range(rows):
        for k in range(i + 1):
            total = 0.0
            for j in range(n):
                if q.state[j] == FREE:
                    total += q.dense[i, j] * q.dense[k, j] / q.curvature[j]
            q.schur[i, k] = total
    for i in range(rows):
        diagonal = q.schur[i, i]
        for k in range(i + 1):
            total = q.schur[i, k]
            for e in range(k):
                total -= q.schur[i, e] * q.schur[k, e]
            if k < i:
                q.schur[i, k] = total / q.schur[k, k]
            elif total <= 1e-15 * diagonal or not total > 0.0:
                return False
            else:
                q.schur[i, i] = np.sqrt(total)
    return True


@inner
def solve_factored(q):
    """Overwrites `rate` by the solution for it as right side."""
    rows = q.counts[N_ACTIVE]
    for i in range(rows):
        for k in range(i):
            q.rate[i] -= q.schur[i, k] * q.rate[k]
        q.rate[i] /= q.schur[i, i]
    for i in range(rows - 1, -1, -1):
        for k in range(i + 1, rows):
            q.rate[i] -= q.schur[k, i] * q.rate[k]
        q.rate[i] /= q.schur[i, i]


@inner
def find_direction(q):
    """Rates of x and of the multipliers as the multiplier of `normal` rises.

    Returns (whether it succeeded, rate at which the excess falls, 0 if `normal` depends on the
    active rows).
    """
    rows, n = q.counts[N_ACTIVE], q.x.size
    if not factor(q):
        return False, 0.0
    size = 0.0
    for j in range(n):
        if q.state[j] == FREE:
            size += q.normal[j] * q.normal[j] / q.curvature[j]
    for i in range(rows):
        total = 0.0
        for j in range(n):
            if q.state[j] == FREE and q.normal[j] != 0.0:
                total -= q.dense[i, j] * q.normal[j] / q.curvature[j]
        q.rate[i] = total
    solve_factored(q)
    fall = 0.0
    for j in range(n):
        q.step[j] = 0.0
        if q.state[j] == FREE:
            total = q.normal[j]
            for i in range(rows):
                total += q.rate[i] * q.dense[i, j]
            q.step[j] = -total / q.curvature[j]
            fall += total * total / q.curvature[j]
    if size == 0.0 or fall <= DEPENDENT * size:
        return True, 0.0
    return True, fall


# ---------------------------------------------------------------- the ratio test


@inner
def slope_range(q, j):
    """Within which the smooth part's derivative at a fixed column may lie."""
    price = q.price[0] if q.kinked[j] else 0.0
    x, low, high = q.x[j], -np.inf, np.inf
    state = q.state[j]
    if q.lower[j] == q.upper[j] and x == q.lower[j]:
        return low, high
    if state == AT_KINK:
        if not q.upper[j] <= 0.0:
            low = -price
        if not q.lower[j] >= 0.0:
            high = price
    elif state == AT_LOWER:
        low = -price if x >= 0.0 else price
    else:
        high = price if x <= 0.0 else -price
    return low, high


@inner
def slope_and_rate(q, j, pending):
    """Derivative of the smooth part, multipliers included, at a fixed column, and its rate."""
    slope = q.curvature[j] * (q.x[j] - q.centre[j]) + pending * q.normal[j]
    rate = q.normal[j]
    for i in range(q.counts[N_ACTIVE]):
        slope += q.multiplier[i] * q.dense[i, j]
        rate += q.rate[i] * q.dense[i, j]
    return slope, rate


@inner
def blocking(q, pending):
    """The first multiplier that would get a wrong sign, of nearly equal ones the steepest.

    Returns (length of the step, column or n + active row or -1).
    """
    n, rows = q.x.size, q.counts[N_ACTIVE]
    reach = np.inf
    slack = 1e-13 * q.price[0]
    for k in range(n + rows):
        q.speed[k] = 0.0
        if k < n:
            if q.state[k] == FREE:
                continue
            slope, rate = slope_and_rate(q, k, pending)
            low, high = slope_range(q, k)
            room = high - slope if rate > 0.0 else slope - low
        else:
            code, rate = q.active[k - n], q.rate[k - n]
            if rate >= 0.0 or (code < q.rhs.size and q.equality[code]):
                continue
            room = q.multiplier[k - n]
        if abs(rate) > SMALL_RATE and room < np.inf:
            q.speed[k] = abs(rate)
            q.room[k] = max(room, 0.0)
            reach = min(reach, (q.room[k] + slack) / q.speed[k])
    # The first pass, with some slack, found how far one may go; the steepest within that keeps
    # small rates, where rounding rules, out.
    found, steepest, length = -1, 0.0, np.inf
    for k in range(n + rows):
        if q.speed[k] > steepest and q.room[k] / q.speed[k] <= reach:
            found, steepest, length = k, q.speed[k], q.room[k] / q.speed[k]
    return length, found


@inner
def let_go(q, who, pending):
    """Frees a blocking column, or lets a blocking row go."""
    n = q.x.size
    if who >= n:
        deactivate(q, who - n)
        return
    x, state = q.x[who], q.state[who]
    if not q.kinked[who]:
        q.side[who] = 0.0
    elif state == AT_KINK:
        _, rate = slope_and_rate(q, who, pending)
        q.side[who] = -1.0 if rate > 0.0 else 1.0
    elif state == AT_LOWER:
        q.side[who] = 1.0 if x >= 0.0 else -1.0
    else:
        q.side[who] = -1.0 if x <= 0.0 else 1.0
    q.state[who] = FREE


# ---------------------------------------------------------------- the method


@inner
def most_violated(q):
    """Returns (kind, code or column, violation), the kind NOTHING if all hold."""
    kind, which, worst = NOTHING, -1, 0.0
    m = q.rhs.size
    for e in range(q.counts[N_ENFORCED]):
        code = q.enforced[e]
        if q.mark[code] & (IS_ACTIVE | IS_IGNORED):
            continue
        i = code if code < m else code - m
        over = excess(q, code)
        if q.equality[i]:
            over = abs(over)
        if over > q.tolerance[i] and over > worst:
            kind, which, worst = ROW, code, over
    for j in range(q.x.size):
        x = q.x[j]
        slack = COLUMN_TOLERANCE * max(1.0, abs(x))
        below, above = q.lower[j] - x, x - q.upper[j]
        if below > slack and below > worst:
            kind, which, worst = LOWER_BOUND, j, below
        if above > slack and above > worst:
            kind, which, worst = UPPER_BOUND, j, above
        if q.state[j] == FREE and q.kinked[j] and -q.side[j] * x > max(slack, worst):
            kind, which, worst = KINK, j, -q.side[j] * x
    return kind, which, worst


@inner
def write_normal(q, kind, which):
    """Writes the normal of what is brought in and returns its orientation."""
    if kind == ROW:
        orientation = 1.0
        if which < q.rhs.size and q.equality[which] and excess(q, which) < 0.0:
            orientation = -1.0
        write_row(q, which, orientation, q.normal)
        return orientation
    for j in range(q.x.size):
        q.normal[j] = 0.0
    if kind == KINK:
        q.normal[which] = -q.side[which]
    else:
        q.normal[which] = -1.0 if kind == LOWER_BOUND else 1.0
    return 1.0


@inner
def fix_column(q, kind, j):
    """Fixes a column at the kink or bound that has been reached."""
    if kind == KINK:
        q.state[j], q.x[j] = AT_KINK, 0.0
    elif kind == LOWER_BOUND:
        q.state[j], q.x[j] = AT_LOWER, q.lower[j]
    else:
        q.state[j], q.x[j] = AT_UPPER, q.upper[j]


@inner
def bring_in(q, kind, which, violation):
    """Raises the multiplier of a violated constraint until it holds."""
    n = q.x.size
    orientation = write_normal(q, kind, which)
    pending = 0.0
    for _ in range(4 * n + 4 * q.counts[N_ACTIVE] + 8):
        succeeded, fall = find_direction(q)
        if not succeeded:
            return TROUBLE
        full = violation / fall if fall > 0.0 else np.inf
        flip = 2.0 * q.price[0] - pending if kind == KINK else np.inf
        length, who = blocking(q, pending)
        if length == np.inf and full == np.inf and flip == np.inf:
            if kind == ROW:
                i = which if which < q.rhs.size else which - q.rhs.size
                if violation <= q.forgiven[i]:
                    q.mark[which] |= IS_IGNORED  # the same row once more, up to rounding
                    return OPTIMAL
            return INFEASIBLE
        t = min(length, full, flip)
        for i in range(q.counts[N_ACTIVE]):
            q.multiplier[i] += t * q.rate[i]
        if fall > 0.0:
            for j in range(n):
                q.x[j] += t * q.step[j]
            violation -= t * fall
        pending += t
        if full <= min(length, flip):
            if kind != ROW:
                fix_column(q, kind, which)
            elif not activate(q, which, orientation, pending):
                return TROUBLE
            return OPTIMAL
        if flip <= length:
            q.side[which] = -q.side[which]  # past the kink after all
            return OPTIMAL
        let_go(q, who, pending)
    return TROUBLE


@inner
def correct(q):
    """Moves x, by the least norm, to where the active rows hold; `factor` has been called."""
    rows, n = q.counts[N_ACTIVE], q.x.size
    for i in range(rows):
        total = q.right[i]
        for j in range(n):
            total -= q.dense[i, j] * q.x[j]
        q.rate[i] = total
    solve_factored(q)
    for j in range(n):
        if q.state[j] == FREE:
            total = 0.0
            for i in range(rows):
                total += q.rate[i] * q.dense[i, j]
            q.x[j] += total / q.curvature[j]


@outlined
def minimise(q, cutoff):
    """Goes on from the current state to the optimum, or until the bound reaches the cutoff.

    At an optimum `schur` holds the factor of its active rows.
    """
    for e in range(q.counts[N_ENFORCED]):
        q.mark[q.enforced[e]] &= ~IS_IGNORED
    corrected = False
    for _ in range(20 * (q.x.size + q.rhs.size) + 100):
        kind, which, violation = most_violated(q)
        if kind == NOTHING:
            if corrected:
                return OPTIMAL
            # Steps add up rounding errors; without them a row may turn out to be violated.
            if not factor(q):
                return TROUBLE
            correct(q)
            corrected = True
            continue
        outcome = bring_in(q, kind, which, violation)
        if outcome != OPTIMAL:
            return outcome
        corrected = False
        if cutoff < np.inf and bound_value(q) >= cutoff:
            return CUTOFF
    return TROUBLE


@outlined
def refine(q):
    """Computes an optimum afresh from its equations, without the price, where that agrees.

    On the face of the l1-nearest points the price is constant, so only the norm is left to
    minimise; its large multipliers, and their rounding errors, do not enter.
    """
    n = q.x.size
    for j in range(n):
        q.kept[j] = q.x[j]
        if q.state[j] == FREE:
            q.x[j] = q.centre[j]
    for _ in range(2):  # the second time on the residuals of the first
        correct(q)
    agrees = True
    before, after = 0.0, 0.0
    for j in range(n):
        if q.kinked[j]:
            before += abs(q.kept[j])
            after += abs(q.x[j])
        if not abs(q.x[j] - q.kept[j]) <= 1e-3 * max(1.0, abs(q.x[j])):
            agrees = False
    if not after <= before + 1e-11 * max(1.0, before):
        agrees = False  # off the face the price does matter
    if agrees:
        kind, _, _ = most_violated(q)
        agrees = kind == NOTHING
    if not agrees:
        for j in range(n):
            q.x[j] = q.kept[j]
