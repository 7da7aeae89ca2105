"""The dual simplex method on a `Dictionary`.

A step takes the most violated row or basic column out of the basis and lets a nonbasic quantity
in.  The ratio test passes kinks and bounds (long step), allows a small dual infeasibility for a
larger pivot (Harris) and falls back to Bland's rule when the objective stalls.
"""

from __future__ import annotations

import numpy as np

from gdpnet.kernels._jit import inner, outlined
from gdpnet.kernels.exact._dictionary import (
    ACCEPTED,
    AGE,
    ALPHA,
    BASIC,
    DUAL_SLACK,
    FURTHER,
    KINK,
    LOWER,
    N_BASIC,
    N_ENFORCED,
    N_PIVOTS,
    NO_PIVOT,
    NONBASIC,
    PASSED,
    PLACE,
    PRICE,
    REDUCED,
    REFACTOR_AGE,
    ROOM,
    SIZE,
    SLOPE,
    SMALL_PIVOT,
    UPPER,
    VALUE,
    WEIGHT,
    column_tolerance,
    dual_objective,
    move_nonbasic,
    reset_basis,
    row_excess,
)

OPTIMAL, INFEASIBLE, CUTOFF, TROUBLE = 0, 1, 2, 3  # outcomes of the linear program
ENTER, NO_CANDIDATE, SWITCH = 0, 1, 2  # outcomes of the ratio test


@inner
def slack_line(dic, rows, code):
    """Writes into ALPHA how the slack of row `code` changes with each nonbasic quantity."""
    real, index, n = dic.real, dic.slots, dic.real.shape[1]
    m = rows.rhs.size
    i = code if code < m else code - m
    for p in range(n):
        real[ALPHA, p] = 0.0
    for e in range(rows.start[i], rows.start[i + 1]):
        a = -rows.coefficient[e] if code < m else rows.coefficient[e]
        place = index[PLACE, rows.column[e]]
        if place < 0:
            real[ALPHA, -1 - place] += a
        else:
            for p in range(n):
                real[ALPHA, p] += a * dic.tableau[place, p]


@inner
def price_positions(dic, equality, direction):
    """Prepares the ratio test: what each nonbasic quantity charges for moving the right way.

    SIZE is the gain per unit move (0 if it cannot move), PRICE the cost per unit move, ROOM the
    way to the breakpoint where the cost changes, FURTHER the way from there to the next one.
    """
    real, index, n = dic.real, dic.slots, dic.real.shape[1]
    for p in range(n):
        index[PASSED, p] = 0
        gain = real[ALPHA, p] * direction
        size = abs(gain)
        real[SIZE, p] = 0.0
        if size <= NO_PIVOT:
            continue
        j = index[NONBASIC, p]
        real[FURTHER, p] = 0.0
        if j >= n:
            code = j - n
            if gain > 0.0 and not (code < equality.size and equality[code]):
                real[SIZE, p] = size
                real[PRICE, p] = max(real[REDUCED, p], 0.0)
                real[ROOM, p] = np.inf
            continue
        x, kink, weight = real[VALUE, j], real[KINK, j], real[WEIGHT, j]
        lo, up = real[LOWER, j], real[UPPER, j]
        if gain > 0.0:
            if x < up:
                real[SIZE, p] = size
                if x < kink:
                    real[PRICE, p] = max(real[REDUCED, p] - weight, 0.0)
                    real[ROOM, p] = min(kink, up) - x
                    if kink < up:
                        real[FURTHER, p] = up - kink
                else:
                    real[PRICE, p] = max(real[REDUCED, p] + weight, 0.0)
                    real[ROOM, p] = up - x
        elif x > lo:
            real[SIZE, p] = size
            if x > kink:
                real[PRICE, p] = max(-real[REDUCED, p] - weight, 0.0)
                real[ROOM, p] = x - max(kink, lo)
                if kink > lo:
                    real[FURTHER, p] = kink - lo
            else:
                real[PRICE, p] = max(-real[REDUCED, p] + weight, 0.0)
                real[ROOM, p] = x - lo


@inner
def ratio_test(dic, violation, forgiven, step_cap, lowest_id):
    """The dual step that closes `violation`: long step, Harris tolerance, largest pivot.

    Candidates are passed in order of price per gain.  One whose whole way to its next breakpoint
    does not close the violation is passed by (counted in PASSED); the first that does enters.

    Args:
        violation: how much the leaving quantity has to gain, >= 0.
        forgiven: what may be missing when all candidates have been passed.  Then the last one
            enters all the same and ends beyond its bound by a rounding error.
        step_cap: dual step at which the leaving column changes its cost piece instead (or inf).
        lowest_id: Bland's choice among ties instead of the largest pivot.

    Returns:
        (outcome, position, remaining violation, gain of the dual objective).
    """
    real, index, n = dic.real, dic.slots, dic.real.shape[1]
    slack = 0.0 if lowest_id else DUAL_SLACK
    step = 0.0
    gain = 0.0
    last = -1
    last_room = 0.0
    while True:
        limit = np.inf
        for p in range(n):
            size = real[SIZE, p]
            if size > 0.0 and real[PRICE, p] + slack < limit * size:
                limit = (real[PRICE, p] + slack) / size
        best = -1
        best_size = 0.0
        if limit < np.inf:
            for p in range(n):
                size = real[SIZE, p]
                if size > 0.0 and real[PRICE, p] <= limit * size:
                    if lowest_id:
                        if best < 0 or index[NONBASIC, p] < index[NONBASIC, best]:
                            best = p
                    elif size > best_size:
                        best = p
                        best_size = size
        if best < 0:
            if step_cap < np.inf:
                return SWITCH, -1, violation, gain + violation * (step_cap - step)
            if violation > forgiven:
                return NO_CANDIDATE, -1, violation, np.inf
            if last < 0:
                return NO_CANDIDATE, -1, violation, 0.0
            index[PASSED, last] -= 1
            return ENTER, last, violation + last_room, gain
        ratio = max(real[PRICE, best] / real[SIZE, best], step)
        if ratio >= step_cap:
            return SWITCH, -1, violation, gain + violation * (step_cap - step)
        gain += violation * (ratio - step)
        step = ratio
        room = real[SIZE, best] * real[ROOM, best]
        if room >= violation:
            return ENTER, best, violation, gain
        violation -= room
        last = best
        last_room = room
        index[PASSED, best] += 1
        further = real[FURTHER, best]
        if further > 0.0:  # on to its bound, at a price higher by twice its weight
            real[FURTHER, best] = 0.0
            real[ROOM, best] = further
            real[PRICE, best] += 2.0 * real[WEIGHT, index[NONBASIC, best]]
        else:
            real[SIZE, best] = 0.0


@inner
def move_passed(dic, direction):
    """Moves the columns that the ratio test passed by to the breakpoints they reached."""
    real, index = dic.real, dic.slots
    for p in range(real.shape[1]):
        if index[PASSED, p] == 0:
            continue
        j = index[NONBASIC, p]
        x, kink = real[VALUE, j], real[KINK, j]
        if real[ALPHA, p] * direction > 0.0:
            target = real[UPPER, j]
            if index[PASSED, p] == 1 and x < kink:
                target = min(kink, target)
        else:
            target = real[LOWER, j]
            if index[PASSED, p] == 1 and x > kink:
                target = max(kink, target)
        move_nonbasic(dic, p, j, target)


@inner
def pivot(dic, line, leaving_id, q, leaving_move, direction_up):
    """Exchanges the leaving quantity with the nonbasic one at position q.

    Args:
        line: line of the leaving basic column, or -1 if a row's slack leaves.
        leaving_id: its id as a nonbasic quantity.
        leaving_move: by how much it has to change (ALPHA is its derivative).
        direction_up: whether the entering quantity moves up.
    """
    real, index, tableau, count = dic.real, dic.slots, dic.tableau, dic.counts
    n = real.shape[1]
    r = count[N_BASIC]
    inverse = 1.0 / real[ALPHA, q]
    entering = index[NONBASIC, q]
    move = leaving_move * inverse
    entering_slope = 0.0
    if entering < n:
        x, kink, weight = real[VALUE, entering], real[KINK, entering], real[WEIGHT, entering]
        if direction_up:
            entering_slope = -weight if x < kink else weight
        else:
            entering_slope = weight if x > kink else -weight
    dual_step = (real[REDUCED, q] + entering_slope) * inverse
    for p in range(n):
        real[REDUCED, p] -= dual_step * real[ALPHA, p]
    leaving_slope = real[SLOPE, leaving_id] if leaving_id < n else 0.0
    real[REDUCED, q] = dual_step - leaving_slope

    for k in range(r):
        if k == line:
            continue
        factor = tableau[k, q]
        if factor != 0.0:
            real[VALUE, index[BASIC, k]] += factor * move
            factor *= inverse
            for p in range(n):
                tableau[k, p] -= factor * real[ALPHA, p]
            tableau[k, q] = factor

    new_line = line
    if entering < n:
        if line < 0:
            new_line = r
            count[N_BASIC] = r + 1
        for p in range(n):
            tableau[new_line, p] = -real[ALPHA, p] * inverse
        tableau[new_line, q] = inverse
        index[BASIC, new_line] = entering
        index[PLACE, entering] = new_line
        real[SLOPE, entering] = entering_slope
        real[VALUE, entering] += move
    else:
        dic.flag[entering - n] &= 1
        if line >= 0:  # a slack replaces a basic column: its line goes, the last one moves up
            last = r - 1
            if line != last:
                for p in range(n):
                    tableau[line, p] = tableau[last, p]
                moved = index[BASIC, last]
                index[BASIC, line] = moved
                index[PLACE, moved] = line
            count[N_BASIC] = last
    index[NONBASIC, q] = leaving_id
    if leaving_id < n:
        index[PLACE, leaving_id] = -1 - q
        real[SLOPE, leaving_id] = 0.0
    else:
        dic.flag[leaving_id - n] |= 2
    count[AGE] += 1
    count[N_PIVOTS] += 1


@outlined
def refactor(dic, rows):
    """Rebuilds tableau, values and reduced costs from the tight rows alone.  False if singular."""
    real, index, tableau, count, work = dic.real, dic.slots, dic.tableau, dic.counts, dic.factor
    n = real.shape[1]
    m = rows.rhs.size
    r = count[N_BASIC]
    count[AGE] = 0
    line = 0
    for q in range(n):
        if index[NONBASIC, q] < n:
            continue
        code = index[NONBASIC, q] - n
        i = code if code < m else code - m
        for c in range(r + n + 1):
            work[line, c] = 0.0
        rest = rows.rhs[i]
        for e in range(rows.start[i], rows.start[i + 1]):
            j = rows.column[e]
            a = rows.coefficient[e]
            place = index[PLACE, j]
            if place >= 0:
                work[line, place] += a
            else:
                work[line, r - 1 - place] -= a
                rest -= a * real[VALUE, j]
        work[line, r + q] = -1.0 if code < m else 1.0
        work[line, r + n] = rest
        line += 1
    for k in range(r):
        best = k
        for c in range(k + 1, r):
            if abs(work[c, k]) > abs(work[best, k]):
                best = c
        if abs(work[best, k]) < NO_PIVOT:
            return False
        if best != k:
            for c in range(r + n + 1):
                work[k, c], work[best, c] = work[best, c], work[k, c]
        inverse = 1.0 / work[k, k]
        for c in range(k, r + n + 1):
            work[k, c] *= inverse
        for other in range(r):
            factor = work[other, k]
            if other != k and factor != 0.0:
                for c in range(k, r + n + 1):
                    work[other, c] -= factor * work[k, c]
    for p in range(n):
        real[REDUCED, p] = 0.0
    for k in range(r):
        j = index[BASIC, k]
        real[VALUE, j] = work[k, r + n]
        slope = real[SLOPE, j]
        for p in range(n):
            tableau[k, p] = work[k, r + p]
            real[REDUCED, p] += slope * tableau[k, p]
    return True


@inner
def choose_leaving(dic, rows, bland):
    """The most violated basic column or enforced row (`bland`: the one of lowest id).

    A basic column is violated outside its box, or beyond the kink that ends its cost piece.

    Returns:
        (id or -1, move it needs, value it moves to if a column, cap of the dual step).
    """
    real, index, count = dic.real, dic.slots, dic.counts
    n = real.shape[1]
    m = rows.rhs.size
    worst = 0.0
    leaving = np.int64(-1)
    move = 0.0
    target = 0.0
    step_cap = np.inf
    for k in range(count[N_BASIC]):
        j = index[BASIC, k]
        x, lo, up = real[VALUE, j], real[LOWER, j], real[UPPER, j]
        tolerance = column_tolerance(rows, j, x)
        size = 0.0
        goal = 0.0
        cap = np.inf
        slope, kink = real[SLOPE, j], real[KINK, j]
        # On the way to a bound beyond the kink the column first has to change its piece there.
        if slope > 0.0 and kink > lo and x <= up + tolerance:
            if x < kink - tolerance:
                size, goal, cap = kink - x, min(kink, up), 2.0 * slope
        elif slope < 0.0 and kink < up and x >= lo - tolerance:
            if x > kink + tolerance:
                size, goal, cap = x - kink, max(kink, lo), -2.0 * slope
        elif x < lo - tolerance:
            size, goal = lo - x, lo
        elif x > up + tolerance:
            size, goal = x - up, up
        if size > worst or (bland and size > 0.0 and j < leaving):
            leaving, move, target, step_cap = j, goal - x, goal, cap
            worst = np.inf if bland else size
    if bland and leaving >= 0:
        return leaving, move, target, step_cap
    for e in range(count[N_ENFORCED]):
        code = dic.enforced[e]
        if dic.flag[code] & 2:
            continue
        i = code if code < m else code - m
        excess = row_excess(rows, i, real[VALUE])
        if code >= m:
            excess = -excess
        size = abs(excess) if rows.equality[i] else excess
        if size > rows.tolerance[i] and (size > worst or (bland and n + code < leaving)):
            leaving, move, step_cap = n + code, excess, np.inf
            worst = np.inf if bland else size
    return leaving, move, target, step_cap


@outlined
def dual_simplex(dic, rows, cutoff):
    """Restores feasibility of the enforced rows, raising the dual objective up to `cutoff`."""
    real, index, count = dic.real, dic.slots, dic.counts
    n = real.shape[1]
    m = rows.rhs.size
    stalled = 0
    last_objective = -np.inf
    patience = 20 + 4 * n
    for iteration in range(400 + 60 * n):
        if cutoff < np.inf or stalled > 0 or iteration > 10:
            objective = dual_objective(dic)
            if objective >= cutoff:
                return CUTOFF
            if objective > last_objective + 1e-13 * max(1.0, abs(objective)):
                last_objective = objective
                stalled = 0
            else:
                stalled += 1
        bland = stalled > patience
        if count[AGE] > REFACTOR_AGE and not refactor(dic, rows):
            return TROUBLE

        leaving, move, target, step_cap = choose_leaving(dic, rows, bland)
        if leaving < 0:
            return OPTIMAL
        line = np.int64(-1)
        if leaving < n:
            line = index[PLACE, leaving]
            for p in range(n):
                real[ALPHA, p] = dic.tableau[line, p]
        else:
            slack_line(dic, rows, leaving - n)
        direction = 1.0 if move >= 0.0 else -1.0
        if step_cap < np.inf:
            direction = 1.0 if real[SLOPE, leaving] > 0.0 else -1.0
        price_positions(dic, rows.equality, direction)
        magnitude = abs(target)
        if leaving >= n:
            i = leaving - n if leaving - n < m else leaving - n - m
            magnitude = abs(rows.rhs[i])
        forgiven = ACCEPTED * max(1.0, magnitude)
        outcome, q, violation, _ = ratio_test(dic, abs(move), forgiven, step_cap, bland)

        doubtful = outcome == NO_CANDIDATE
        if outcome == ENTER and abs(real[ALPHA, q]) < SMALL_PIVOT:
            doubtful = True
        if doubtful and count[AGE] > 0:
            if not refactor(dic, rows):
                return TROUBLE
            continue
        if outcome == NO_CANDIDATE:
            if violation > forgiven:
                return INFEASIBLE
            # A contradiction within rounding: let it pass.
            if leaving >= n:
                if rows.tolerance[i] >= forgiven:
                    return TROUBLE
                rows.tolerance[i] = forgiven
            elif move > 0.0:
                real[LOWER, leaving] = real[VALUE, leaving]
            else:
                real[UPPER, leaving] = real[VALUE, leaving]
            continue
        move_passed(dic, direction)
        if outcome == ENTER:
            pivot(dic, line, leaving, q, direction * violation, real[ALPHA, q] * direction > 0.0)
            if leaving < n:
                real[VALUE, leaving] = target
        else:
            change = -2.0 * real[SLOPE, leaving]
            real[SLOPE, leaving] += change
            for p in range(n):
                real[REDUCED, p] += change * real[ALPHA, p]
    return TROUBLE


@inner
def solve_node(dic, rows, cutoff):
    """The node's linear program, from scratch if the warm start runs into trouble."""
    outcome = TROUBLE
    for attempt in range(2):  # a loop, so that the simplex is inlined once
        if attempt > 0:
            reset_basis(dic)
        outcome = dual_simplex(dic, rows, cutoff)
        if outcome != TROUBLE:
            break
    return outcome
