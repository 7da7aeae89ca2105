"""The stack of open nodes: depth first, best child first, dictionaries kept for warm starts."""

from __future__ import annotations

import numpy as np

from gdpnet.kernels._jit import inner, outlined
from gdpnet.kernels.exact._clauses import choose, leave_out
from gdpnet.kernels.exact._dictionary import (
    FROM_SPLIT,
    N_BASIC,
    N_COUNT_SAVED,
    N_ENFORCED,
    N_INDEX_SAVED,
    N_REAL_SAVED,
    N_TRAIL,
    NONBASIC,
    VALUE,
    dual_objective,
    reset_basis,
    tighten,
)
from gdpnet.kernels.exact._simplex import refactor


@inner
def copy_lines(target, source, lines):
    """Copies the first lines of a matrix; a slice assignment would look for overlap first."""
    for k in range(lines):
        for j in range(source.shape[1]):
            target[k, j] = source[k, j]


@inner
def save(dic, tree, level):
    """Keeps the node's state on the stack."""
    copy_lines(tree.saved_real[level], dic.real, N_REAL_SAVED)
    copy_lines(tree.saved_index[level], dic.slots, N_INDEX_SAVED)
    for k in range(N_COUNT_SAVED):
        tree.saved_count[level, k] = dic.counts[k]
    if level < tree.saved_tableau.shape[0]:
        copy_lines(tree.saved_tableau[level], dic.tableau, dic.counts[N_BASIC])


@inner
def restore(dic, rows, tree, level):
    """Back to the state of the node saved at `level`."""
    n = dic.real.shape[1]
    for p in range(n):
        if dic.slots[NONBASIC, p] >= n:
            dic.flag[dic.slots[NONBASIC, p] - n] &= 1
    for e in range(tree.saved_count[level, N_ENFORCED], dic.counts[N_ENFORCED]):
        dic.flag[dic.enforced[e]] = 0
    for e in range(tree.saved_count[level, N_TRAIL], dic.counts[N_TRAIL]):
        tree.state[tree.trail[e]] = 0
    copy_lines(dic.real, tree.saved_real[level], N_REAL_SAVED)
    copy_lines(dic.slots, tree.saved_index[level], N_INDEX_SAVED)
    for k in range(N_COUNT_SAVED):
        dic.counts[k] = tree.saved_count[level, k]
    for p in range(n):
        if dic.slots[NONBASIC, p] >= n:
            dic.flag[dic.slots[NONBASIC, p] - n] |= 2
    if level < tree.saved_tableau.shape[0]:
        copy_lines(dic.tableau, tree.saved_tableau[level], dic.counts[N_BASIC])
        return True
    return refactor(dic, rows)


@outlined
def push_clause(dic, logic, tree, level, cutoff):
    """Opens the children of the chosen clause, best bound first (ties: in declaration order)."""
    c = np.int64(tree.number[1])
    count = 0
    for e in range(logic.clause_start[c], logic.clause_start[c + 1]):
        bound = tree.literal_bound[e]
        if bound >= cutoff:
            continue
        at = count
        while at > 0 and tree.child_bound[level, at - 1] > bound:
            tree.child_bound[level, at] = tree.child_bound[level, at - 1]
            tree.child_literal[level, at] = tree.child_literal[level, at - 1]
            at -= 1
        tree.child_bound[level, at] = bound
        tree.child_literal[level, at] = logic.clause_literal[e]
        count += 1
    tree.frame[level, 0] = count
    tree.frame[level, 1] = 0
    tree.frame[level, 2] = -1
    save(dic, tree, level)


@outlined
def push_integer(dic, rows, tree, level):
    """Opens the two sides of the most fractional integer column, the nearer side first."""
    z = dic.real[VALUE]
    worst = -1.0
    column = 0
    for j in range(z.size):
        if rows.integer[j]:
            distance = abs(z[j] - np.round(z[j]))
            if distance > worst:
                worst = distance
                column = j
    down = z[column] - np.floor(z[column]) < 0.5
    objective = dual_objective(dic)
    tree.child_literal[level, 0] = -1 if down else 1
    tree.child_literal[level, 1] = 1 if down else -1
    tree.child_bound[level, 0] = objective
    tree.child_bound[level, 1] = objective
    tree.frame[level, 0] = 2
    tree.frame[level, 1] = 0
    tree.frame[level, 2] = column
    save(dic, tree, level)


@inner
def open_child(dic, rows, logic, tree, level, child):
    """Restores the parent and applies its next child.  False if that is contradictory."""
    if not restore(dic, rows, tree, level):
        reset_basis(dic)
    column = tree.frame[level, 2]
    if column >= 0:
        x = dic.real[VALUE, column]
        if tree.child_literal[level, child] < 0:
            return tighten(dic, rows, column, np.floor(x), False, FROM_SPLIT)
        return tighten(dic, rows, column, np.ceil(x), True, FROM_SPLIT)
    for earlier in range(child):
        if not leave_out(dic, rows, logic, tree, tree.child_literal[level, earlier]):
            tree.frame[level, 1] = tree.frame[level, 0]  # nothing is left for later siblings
            return False
    return choose(dic, rows, logic, tree, tree.child_literal[level, child])
