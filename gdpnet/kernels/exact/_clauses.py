"""Booleans and clauses: what holds, what is chosen, what a choice would cost at least."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gdpnet.kernels._jit import Array, inner, outlined
from gdpnet.kernels.exact._dictionary import (
    ACCEPTED,
    ALPHA,
    KINK,
    LOWER,
    N_COUNT_SAVED,
    N_INDEX_SAVED,
    N_REAL_SAVED,
    N_TRAIL,
    PLACE,
    REDUCED,
    SIZE,
    UPPER,
    VALUE,
    WEIGHT,
    enforce,
    row_excess,
    row_holds,
)
from gdpnet.kernels.exact._simplex import (
    price_positions,
    ratio_test,
    slack_line,
)


class Logic(NamedTuple):
    """Booleans and clauses, shared by the batch (compressed rows, see `Program`)."""

    clause_start: Array
    clause_literal: Array
    clause_guard: Array
    true_start: Array
    true_row: Array
    false_start: Array
    false_row: Array
    guarded_start: Array  # (nb + 1,): clauses guarded by a boolean
    guarded_clause: Array
    tied: Array


_NONE = np.zeros(0, dtype=np.int64)
_START = np.zeros(1, dtype=np.int64)

NO_LOGIC = Logic(
    *(_START, _NONE, _NONE, _START, _NONE, _START, _NONE, _START, _NONE),
    tied=np.zeros(0, dtype=np.bool_),
)


class Tree(NamedTuple):
    """Assignment, the stack of open nodes and the incumbent of one sample."""

    state: Array  # (nb,) int8: 1 chosen, -1 false or left out, 0 open
    trail: Array  # (nb,) int64: booleans in the order of assignment
    child_literal: Array  # (levels, width) int64
    child_bound: Array  # (levels, width) float64
    frame: Array  # (levels, 3) int64: children, next child, split column or -1
    saved_real: Array  # (levels, N_REAL_SAVED, n)
    saved_index: Array  # (levels, N_INDEX_SAVED, n)
    saved_tableau: Array  # (some levels, n, n)
    saved_count: Array  # (levels, N_COUNT_SAVED)
    broken: Array  # (clauses,) int64: scratch
    broken_bound: Array  # (clauses,) float64: scratch
    mask: Array  # (clauses, 2) uint64: scratch of the packing bound
    literal_bound: Array  # (literals,) float64: scratch
    best_real: Array  # (N_REAL_SAVED, n)
    best_index: Array  # (N_INDEX_SAVED, n)
    best_state: Array  # (nb,) int8
    best_count: Array  # (1,) int64: basic columns of the incumbent
    number: Array  # (2,) float64: incumbent distance, chosen branching clause


def new_tree(n: int, clauses: int, booleans: int, literals: int, width: int, integers: int) -> Tree:
    """Allocates the search's workspace."""
    levels = clauses + 64 * integers + 2
    with_tableau = min(levels, max(2, int(256e6 / (8 * max(n, 1) ** 2))))
    return Tree(
        state=np.zeros(booleans, np.int8),
        trail=np.zeros(booleans, np.int64),
        child_literal=np.zeros((levels, max(width, 2)), np.int64),
        child_bound=np.zeros((levels, max(width, 2))),
        frame=np.zeros((levels, 3), np.int64),
        saved_real=np.empty((levels, N_REAL_SAVED, n)),
        saved_index=np.empty((levels, N_INDEX_SAVED, n), np.int64),
        saved_tableau=np.empty((with_tableau, n, n)),
        saved_count=np.zeros((levels, N_COUNT_SAVED), np.int64),
        broken=np.zeros(clauses, np.int64),
        broken_bound=np.zeros(clauses),
        mask=np.zeros((clauses, 2), np.uint64),
        literal_bound=np.zeros(literals),
        best_real=np.zeros((N_REAL_SAVED, n)),
        best_index=np.zeros((N_INDEX_SAVED, n), np.int64),
        best_state=np.zeros(booleans, np.int8),
        best_count=np.zeros(1, np.int64),
        number=np.zeros(2),
    )


@inner
def rows_hold(logic, rows, k, z):
    """Whether all rows of boolean k's truth hold at z."""
    for e in range(logic.true_start[k], logic.true_start[k + 1]):
        if not row_holds(rows, logic.true_row[e], z):
            return False
    return True


@inner
def holds(logic, rows, tree, active, k, z, mark):
    """Whether the untied disjunct k holds at z, the clauses nested in it included.

    Deeper nesting than one level is not recognised, which is safe: the search then branches.
    With `mark` the disjuncts found to hold are written into `best_state`.
    """
    if not rows_hold(logic, rows, k, z):
        return False
    for e in range(logic.guarded_start[k], logic.guarded_start[k + 1]):
        c = logic.guarded_clause[e]
        if not active[c]:
            continue
        found = False
        for f in range(logic.clause_start[c], logic.clause_start[c + 1]):
            literal = logic.clause_literal[f]
            inner = abs(literal) - 1
            if logic.tied[inner]:
                found = tree.state[inner] == (1 if literal > 0 else -1)
            elif tree.state[inner] == 1:
                found = True
            elif logic.guarded_start[inner] == logic.guarded_start[inner + 1]:
                found = rows_hold(logic, rows, inner, z)
                if found and mark:
                    tree.best_state[inner] = 1
            if found:
                break
        if not found:
            return False
    if mark:
        tree.best_state[k] = 1
    return True


@inner
def choose(dic, rows, logic, tree, literal):
    """Makes a literal true and enforces its rows.  False on contradiction."""
    k = abs(literal) - 1
    sign = 1 if literal > 0 else -1
    if tree.state[k] == sign:
        return True
    if tree.state[k] != 0:
        return False
    tree.state[k] = sign
    tree.trail[dic.counts[N_TRAIL]] = k
    dic.counts[N_TRAIL] += 1
    if sign > 0:
        for e in range(logic.true_start[k], logic.true_start[k + 1]):
            if not enforce(dic, rows, logic.true_row[e]):
                return False
    else:
        for e in range(logic.false_start[k], logic.false_start[k + 1]):
            if not enforce(dic, rows, logic.false_row[e]):
                return False
    return True


@inner
def leave_out(dic, rows, logic, tree, literal):
    """Excludes the solutions of an explored literal.  False if nothing is left."""
    k = abs(literal) - 1
    if logic.tied[k]:
        return choose(dic, rows, logic, tree, -literal)
    if tree.state[k] != 0:
        return tree.state[k] == -1
    tree.state[k] = -1
    tree.trail[dic.counts[N_TRAIL]] = k
    dic.counts[N_TRAIL] += 1
    if logic.guarded_start[k + 1] > logic.guarded_start[k]:
        return True
    start = logic.true_start[k]
    if logic.true_start[k + 1] == start:
        return False
    if logic.true_start[k + 1] == start + 1:
        i = logic.true_row[start]
        if not rows.equality[i]:
            return enforce(dic, rows, rows.rhs.size + i)
    return True


@inner
def single_entry_gain(dic, rows, i):
    """Look-ahead of a one-entry row on a nonbasic column: the cost of moving it to the bound."""
    real = dic.real
    e = rows.start[i]
    j = rows.column[e]
    bound = rows.rhs[i] / rows.coefficient[e]
    slackness = ACCEPTED * max(1.0, abs(bound))
    if bound < real[LOWER, j] - slackness or bound > real[UPPER, j] + slackness:
        return np.inf
    x = real[VALUE, j]
    gain = real[REDUCED, -1 - dic.slots[PLACE, j]] * (bound - x)
    weight = real[WEIGHT, j]
    if weight > 0.0:
        gain += weight * (abs(bound - real[KINK, j]) - abs(x - real[KINK, j]))
    return max(gain, 0.0)


@outlined
def row_gain(dic, rows, i, excess):
    """Rise of the dual objective by one dual step on violated row i (inf: it cannot hold).

    Returns (gain, positions pressed up, positions pressed down), the last two as bit masks.
    """
    real, index, n = dic.real, dic.slots, dic.real.shape[1]
    up_mask = np.uint64(0)
    down_mask = np.uint64(0)
    one = np.uint64(1)
    entries = rows.start[i + 1] - rows.start[i]
    if entries == 1 and rows.coefficient[rows.start[i]] != 0.0:
        j = rows.column[rows.start[i]]
        place = index[PLACE, j]
        if place < 0:
            gain = single_entry_gain(dic, rows, i)
            bit = one << np.uint64((-1 - place) & 63)
            return gain, bit, bit
    if entries == 0:
        return np.inf, up_mask, down_mask
    slack_line(dic, rows, i)
    direction = 1.0 if excess > 0.0 else -1.0
    price_positions(dic, rows.equality, direction)
    for p in range(n):
        if real[SIZE, p] > 0.0:
            bit = one << np.uint64(p & 63)
            if real[ALPHA, p] * direction > 0.0:
                up_mask |= bit
            else:
                down_mask |= bit
    forgiven = ACCEPTED * max(1.0, abs(rows.rhs[i]))
    _, _, _, gain = ratio_test(dic, abs(excess), forgiven, np.inf, False)
    return gain, up_mask, down_mask


@inner
def literal_gain(dic, rows, logic, literal):
    """Look-ahead of a literal: the best of its rows.  Returns (gain, up mask, down mask)."""
    k = abs(literal) - 1
    if literal > 0:
        start, stop, listed = logic.true_start[k], logic.true_start[k + 1], logic.true_row
    else:
        start, stop, listed = logic.false_start[k], logic.false_start[k + 1], logic.false_row
    best = 0.0
    up_mask = np.uint64(0)
    down_mask = np.uint64(0)
    for e in range(start, stop):
        i = listed[e]
        excess = row_excess(rows, i, dic.real[VALUE])
        size = abs(excess) if rows.equality[i] else excess
        if size > rows.tolerance[i]:
            gain, up, down = row_gain(dic, rows, i, excess)
            if gain > best:
                best, up_mask, down_mask = gain, up, down
    return best, up_mask, down_mask


@inner
def packing_bound(tree, n_broken):
    """Sum of the look-aheads of clauses that press no reduced cost in the same direction."""
    total = 0.0
    used_up = np.uint64(0)
    used_down = np.uint64(0)
    zero = np.uint64(0)
    while True:
        best = -1
        gain = 0.0
        for b in range(n_broken):
            if (
                tree.broken_bound[b] > gain
                and (tree.mask[b, 0] & used_up) == zero
                and (tree.mask[b, 1] & used_down) == zero
            ):
                gain = tree.broken_bound[b]
                best = b
        if best < 0:
            return total
        total += gain
        tree.broken_bound[best] = 0.0
        used_up |= tree.mask[best, 0]
        used_down |= tree.mask[best, 1]
