"""The search: branch on one broken clause at a time, warm from the parent's dictionary.

At a node some literals have been chosen and their rows are enforced.  The node's linear program is
solved; clauses that hold at its optimum need no decision.  If a required clause is broken, its
literals become the children: child i enforces literal i and *leaves out* literals 1..i-1, whose
children have covered every solution in which they hold.  Leaving out a disjunct of one inequality
row enforces that row's closed negation, which is what makes long clauses cheap.

Bounds used for pruning, all valid by weak duality:
- the dual objective after every pivot;
- the look-ahead of a literal: the dual objective after one long dual step on one of its rows;
- the packing bound: look-aheads of clauses whose dual steps press no reduced cost the same way
  add up.
"""

from __future__ import annotations

import numpy as np

from gdpnet.kernels._jit import inner, outlined
from gdpnet.kernels.exact._clauses import (
    choose,
    holds,
    literal_gain,
    packing_bound,
)
from gdpnet.kernels.exact._dictionary import (
    BASIC,
    LOWER,
    N_BASIC,
    N_ENFORCED,
    N_INDEX_SAVED,
    N_REAL_SAVED,
    PLACE,
    UPPER,
    VALUE,
    column_tolerance,
    distance_of,
    dual_objective,
    enforce,
    reset_basis,
    row_excess,
    whole_slack,
)
from gdpnet.kernels.exact._simplex import (
    CUTOFF,
    INFEASIBLE,
    OPTIMAL,
    TROUBLE,
    refactor,
    solve_node,
)
from gdpnet.kernels.exact._stack import (
    copy_lines,
    open_child,
    push_clause,
    push_integer,
)

# What `settle` finds at a node, beyond the outcomes of the linear program.
LEAF, BRANCH_CLAUSE, BRANCH_INTEGER = 10, 11, 12

# Status of a sample.
SOLVED, NO_SOLUTION, NODE_LIMIT, NUMERICAL = 0, 1, 2, 3

IMPROVEMENT = 1e-11  # an incumbent must be beaten by this, relative to max(1, distance)


@inner
def settle(dic, rows, logic, tree, active, cutoff):
    """Solves a node and decides what is forced; ends with a verdict.

    Returns INFEASIBLE, CUTOFF, TROUBLE, LEAF, BRANCH_INTEGER or BRANCH_CLAUSE; for the latter
    `tree.number[1]` holds the clause and `tree.literal_bound` its literals' bounds.
    """
    z = dic.real[VALUE]
    clauses = logic.clause_guard.size
    while True:
        outcome = solve_node(dic, rows, cutoff)
        if outcome != OPTIMAL:
            return outcome
        forced = False
        n_broken = 0
        for c in range(clauses):
            if not active[c]:
                continue
            guard = logic.clause_guard[c]
            if guard >= 0 and tree.state[guard] != 1:
                continue
            satisfied = False
            n_open = 0
            last = np.int64(0)
            for e in range(logic.clause_start[c], logic.clause_start[c + 1]):
                literal = logic.clause_literal[e]
                k = abs(literal) - 1
                state = tree.state[k] if literal > 0 else -tree.state[k]
                if state == 1:
                    satisfied = True
                    break
                if not logic.tied[k] and holds(logic, rows, tree, active, k, z, False):
                    satisfied = True
                    break
                if state == 0:
                    n_open += 1
                    last = literal
            if satisfied:
                continue
            if n_open == 0:
                return INFEASIBLE
            if n_open == 1:
                if not choose(dic, rows, logic, tree, last):
                    return INFEASIBLE
                forced = True
            else:
                tree.broken[n_broken] = c
                n_broken += 1
        if forced:
            continue
        if n_broken == 0:
            for j in range(z.size):
                if rows.integer[j]:
                    # A column on one of its breakpoints is that number to the last digit.
                    basic = dic.slots[PLACE, j] >= 0
                    allowed = whole_slack(z[j]) if basic else 0.0
                    if abs(z[j] - np.round(z[j])) > allowed:
                        return BRANCH_INTEGER
            return LEAF

        objective = dual_objective(dic)
        best_clause = np.int64(-1)
        best_score = -1.0
        best_width = 0
        for b in range(n_broken):
            c = tree.broken[b]
            least = np.inf
            second = np.inf
            n_viable = 0
            last = np.int64(0)
            up_mask = np.uint64(0)
            down_mask = np.uint64(0)
            for e in range(logic.clause_start[c], logic.clause_start[c + 1]):
                literal = logic.clause_literal[e]
                state = tree.state[abs(literal) - 1]
                if state != 0:
                    tree.literal_bound[e] = np.inf
                    continue
                gain, up, down = literal_gain(dic, rows, logic, literal)
                bound = objective + gain
                tree.literal_bound[e] = bound
                if bound < cutoff:
                    n_viable += 1
                    last = literal
                    up_mask |= up
                    down_mask |= down
                    if gain < least:
                        least, second = gain, least
                    elif gain < second:
                        second = gain
            if n_viable == 0:
                return CUTOFF
            if n_viable == 1:
                if not choose(dic, rows, logic, tree, last):
                    return CUTOFF
                forced = True
                break
            tree.broken_bound[b] = least
            tree.mask[b, 0] = up_mask
            tree.mask[b, 1] = down_mask
            # Mostly what the cheapest literal costs, a little what leaving it out would.
            score = least + 0.25 * min(second, cutoff - objective, 1e6)
            if score > best_score or (score == best_score and n_viable < best_width):
                best_score, best_width, best_clause = score, n_viable, c
        if forced:
            continue
        if cutoff < np.inf and packing_bound(tree, n_broken) + objective >= cutoff:
            return CUTOFF
        tree.number[1] = best_clause
        return BRANCH_CLAUSE


@outlined
def check_leaf(dic, rows):
    """Whether bounds and enforced rows hold at the freshly computed point, whole where it must."""
    real = dic.real
    m = rows.rhs.size
    for k in range(dic.counts[N_BASIC]):
        j = dic.slots[BASIC, k]
        if rows.integer[j]:
            real[VALUE, j] = np.round(real[VALUE, j])
        x = real[VALUE, j]
        tolerance = 2.0 * column_tolerance(rows, j, x)
        if not (x >= real[LOWER, j] - tolerance and x <= real[UPPER, j] + tolerance):
            return False
    for e in range(dic.counts[N_ENFORCED]):
        code = dic.enforced[e]
        i = code if code < m else code - m
        excess = row_excess(rows, i, real[VALUE])
        if code >= m:
            excess = -excess
        if rows.equality[i]:
            excess = abs(excess)
        if not excess <= 2.0 * rows.tolerance[i]:
            return False
    return True


@outlined
def keep_incumbent(dic, rows, logic, tree, active):
    """Stores the current leaf as the best solution, every required clause with a true literal."""
    tree.number[0] = distance_of(dic)
    copy_lines(tree.best_real, dic.real, N_REAL_SAVED)
    copy_lines(tree.best_index, dic.slots, N_INDEX_SAVED)
    tree.best_count[0] = dic.counts[N_BASIC]
    z = dic.real[VALUE]
    for k in range(tree.state.size):
        state = tree.state[k]
        if not logic.tied[k] and state < 0:
            state = 0
        if logic.tied[k] and state == 0:
            # Nothing asks for it any more; take the value that enforces nothing.
            idle = (
                logic.true_start[k] == logic.true_start[k + 1]
                and logic.guarded_start[k] == logic.guarded_start[k + 1]
                and logic.false_start[k] < logic.false_start[k + 1]
            )
            state = 1 if idle else -1
        tree.best_state[k] = state
    for c in range(logic.clause_guard.size):
        guard = logic.clause_guard[c]
        if not active[c] or (guard >= 0 and tree.state[guard] != 1):
            continue
        satisfied = False
        for e in range(logic.clause_start[c], logic.clause_start[c + 1]):
            literal = logic.clause_literal[e]
            if tree.best_state[abs(literal) - 1] == (1 if literal > 0 else -1):
                satisfied = True
                break
        if satisfied:
            continue
        for e in range(logic.clause_start[c], logic.clause_start[c + 1]):
            k = abs(logic.clause_literal[e]) - 1
            if not logic.tied[k] and holds(logic, rows, tree, active, k, z, True):
                break


@inner
def search(dic, rows, logic, tree, active, global_rows, node_limit, progress):
    """Finds the nearest point of a sample whose dictionary has just been started.

    Stops where the two numbers in `progress` are the same.

    Returns (status, distance, lower bound, nodes).
    """
    tree.number[0] = np.inf
    for k in range(tree.state.size):
        tree.state[k] = 0
    for e in range(global_rows.size):
        if not enforce(dic, rows, global_rows[e]):
            return NO_SOLUTION, np.inf, np.inf, 0
    nodes = 1
    level = 0
    trouble = False
    cutoff = np.inf
    alive = True  # whether the dictionary holds a node still to be settled
    while True:
        if alive:
            verdict = LEAF
            for attempt in range(4):
                verdict = settle(dic, rows, logic, tree, active, cutoff)
                if verdict != LEAF:
                    break
                verdict = TROUBLE
                if refactor(dic, rows) and check_leaf(dic, rows):
                    verdict = LEAF
                    if distance_of(dic) < cutoff:
                        keep_incumbent(dic, rows, logic, tree, active)
                        best = tree.number[0]
                        cutoff = best - IMPROVEMENT * max(1.0, best)
                    break
                if attempt > 0:
                    reset_basis(dic)
            if verdict == TROUBLE:
                trouble = True
            elif verdict == BRANCH_CLAUSE or verdict == BRANCH_INTEGER:
                if level >= tree.frame.shape[0]:
                    trouble = True
                else:
                    if verdict == BRANCH_CLAUSE:
                        push_clause(dic, logic, tree, level, cutoff)
                    else:
                        push_integer(dic, rows, tree, level)
                    level += 1
        alive = False
        while level > 0:
            child = tree.frame[level - 1, 1]
            if child < tree.frame[level - 1, 0] and tree.child_bound[level - 1, child] < cutoff:
                break
            level -= 1
        if level == 0:
            break
        if nodes >= node_limit or progress[0] == progress[1]:
            lower = tree.number[0]
            for at in range(level):
                child = tree.frame[at, 1]
                if child < tree.frame[at, 0]:
                    lower = min(lower, tree.child_bound[at, child])
            status = NUMERICAL if trouble else NODE_LIMIT
            return status, tree.number[0], 0.0 if trouble else lower, nodes
        tree.frame[level - 1, 1] = child + 1
        nodes += 1
        alive = open_child(dic, rows, logic, tree, level - 1, child)
    best = tree.number[0]
    if trouble:
        return NUMERICAL, best, 0.0, nodes
    if best == np.inf:
        return NO_SOLUTION, np.inf, np.inf, nodes
    return SOLVED, best, best, nodes
