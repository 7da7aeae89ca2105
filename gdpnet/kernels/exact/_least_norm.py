"""`tie="least_norm"`: of all l1-nearest points of the feasible set the one nearest in l2.

Where several points are equally near, as always on a probability simplex, the vertex search
returns one that depends on the order of rules and rows.  The least-norm point does not.  It cannot
be had by moving the vertex afterwards, which breaks rules: it takes a search of its own, with both
criteria in every bound.

Units: X = w (z - yhat) / D for an output, D the least distance, so that every l1-nearest point has
l1 norm 1.  A node's quadratic program minimises `price * l1 + norm^2 / 2`.  Any point x of a
descendant with l1 norm 1 has `norm(x)^2 / 2 >= value of the node - price`, whatever the price: so
nodes are pruned soundly, and a leaf with l1 norm 1 is least in norm.  A leaf with a larger l1 norm
shows that the price is too small for this sample; the search is then repeated with a higher one.
Distances that differ by less than about 1e-9 of themselves count as equal.

Two least-norm points in different disjuncts may have equal norms.  Then the one whose first
differing output is larger is taken, as long as the search is small; with very many ties the first
one found.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from gdpnet.kernels._jit import KERNEL, Array, inner, outlined, source_stamp
from gdpnet.kernels.exact._arrays import Prepared
from gdpnet.kernels.exact._clauses import Logic
from gdpnet.kernels.exact._dictionary import whole_slack
from gdpnet.kernels.exact._quadratic import (
    AT_KINK,
    AT_LOWER,
    AT_UPPER,
    CUTOFF,
    INFEASIBLE,
    IS_ENFORCED,
    N_ACTIVE,
    N_ENFORCED,
    OPTIMAL,
    TROUBLE,
    Quadratic,
    activate,
    bound_value,
    excess,
    minimise,
    new_quadratic,
    refine,
    restart,
)

# What became of a sample.
DONE, LIMITED, DOUBTFUL = 0, 1, 2

# What a node turns out to be, beyond the outcomes of its program.
LEAF, BRANCH_CLAUSE, BRANCH_INTEGER = 10, 11, 12

# Places in `QuadraticTree.number`.
BEST, CLAUSE, COLUMN = 0, 1, 2

FEASIBILITY = 1e-10  # a scaled row (largest coefficient about 1) is violated beyond this
FIRST_PRICE, PRICE_FACTOR, LAST_PRICE = 1e4, 1e2, 1e8
SAME_NORM = 1e-9  # squared norms, in units of the distance, that count as equal
SAME_OUTPUT = 1e-6
IMPROVEMENT = 1e-12
TIE_NODES = 1000  # nodes after which equally good ones are not looked at any more
CENTRES = 60  # centres of the auxiliaries tried at a node
SETTLED = 1e-11
FAR = 1e5  # in units of the distance


class Units(NamedTuple):
    """A sample's rows and bounds before they are brought to the units of the search."""

    coefficient: Array  # (entries,): scaled by powers of two
    rhs: Array  # (m,)
    origin: Array  # (n,): X = 0
    unit: Array  # (n,): z = origin + unit * X
    lower: Array  # (n,): of z at the node
    upper: Array  # (n,)
    z: Array  # (n,)


class QuadraticTree(NamedTuple):
    """Assignment, the stack of open nodes and the incumbent of one sample."""

    state: Array  # (booleans,) int64: 1 chosen, -1 false or left out, 0 open
    trail: Array  # (booleans,) int64
    on_trail: Array  # (1,) int64
    child_literal: Array  # (levels, width) int64
    child_score: Array  # (levels, width)
    frame: Array  # (levels, 3) int64: children, next child, split column or -1
    split: Array  # (levels,): value of the split column
    bound: Array  # (levels,): value of the node
    real: Array  # (levels, 5, n): x, side, centre, lower, upper
    whole: Array  # (levels, n) int64: state of the columns
    active: Array  # (levels, n + 1) int64
    multiplier: Array  # (levels, 2, n + 1): with the orientation
    counts: Array  # (levels, 3) int64: enforced, active, trail
    score: Array  # (literals,)
    best_z: Array  # (n,)
    best_state: Array  # (booleans,) int64
    number: Array  # (3,): squared norm of the incumbent, clause and column to branch on


def new_tree(prepared: Prepared, logic: Logic) -> QuadraticTree:
    """Memory of the search for one thread."""
    n, booleans = prepared.lower.size, logic.tied.size
    levels = logic.clause_guard.size + 64 * int(np.count_nonzero(prepared.integer)) + 2
    width = int(np.diff(logic.clause_start).max(initial=2))
    return QuadraticTree(
        state=np.zeros(booleans, np.int64),
        trail=np.zeros(booleans, np.int64),
        on_trail=np.zeros(1, np.int64),
        child_literal=np.zeros((levels, width), np.int64),
        child_score=np.zeros((levels, width)),
        frame=np.zeros((levels, 3), np.int64),
        split=np.zeros(levels),
        bound=np.zeros(levels),
        real=np.zeros((levels, 5, n)),
        whole=np.zeros((levels, n), np.int64),
        active=np.zeros((levels, n + 1), np.int64),
        multiplier=np.zeros((levels, 2, n + 1)),
        counts=np.zeros((levels, 3), np.int64),
        score=np.zeros(logic.clause_literal.size),
        best_z=np.zeros(n),
        best_state=np.zeros(booleans, np.int64),
        number=np.zeros(3),
    )


def least_norm(
    prepared: Prepared,
    logic: Logic,
    active: Array,
    varying: Array,
    bound: Array,
    yhat: Array,
    weights: Array,
    samples: Array,
    z: Array,
    assignment: Array,
    distance: Array,
    node_limit: int,
    progress: Array | None = None,
) -> tuple[Array, Array]:
    """Moves points of one component to the l2-nearest of all l1-nearest points.

    A sample that is left as it is keeps its point bit by bit; so does one whose nearest point is
    unique.  Calls on disjoint samples may run in threads.

    Args:
        prepared: rows of the component.
        logic: clauses of the component.
        active: which clauses apply, (B, clauses) bool.
        varying: coefficients that depend on x, (B, k, n).
        bound: right sides, (B, m).
        yhat: predictions, (B, outputs).
        weights: (outputs,).
        samples: samples to treat; their points must be feasible and nearest.
        z: points, (B, n); overwritten.
        assignment: booleans, (B, booleans) int8; overwritten.
        distance: least weighted l1 distance, (B,).
        node_limit: quadratic programs for a sample.
        progress: `progress[0]` becomes the sample at work; writing its number into `progress[1]`
            stops its search, as in the vertex search.

    Returns:
        Quadratic programs of each sample treated, and what became of it: DONE, LIMITED (the best
        point found is kept), or DOUBTFUL (rounding prevented the proof; likewise).
    """
    samples = np.ascontiguousarray(samples, dtype=np.int64)
    nodes = np.zeros(samples.size, dtype=np.int64)
    flag = np.zeros(samples.size, dtype=np.int8)
    if progress is None:
        progress = np.array([-1, -1], dtype=np.int64)
    quadratic, units = new_quadratic_of(prepared)
    run(
        prepared, logic, active, varying, bound, yhat, weights, samples, z, assignment, distance,
        node_limit, quadratic, units, new_tree(prepared, logic), progress, nodes, flag,
    )  # fmt: skip
    return nodes, flag


def new_quadratic_of(prepared: Prepared) -> tuple[Quadratic, Units]:
    """Memory of one thread for the quadratic programs of a component."""
    n, m = prepared.lower.size, prepared.equality.size
    quadratic = new_quadratic(
        prepared.start, prepared.column, prepared.equality, prepared.outputs, n
    )
    units = Units(
        coefficient=prepared.coefficient.copy(),
        rhs=np.empty(m),
        origin=np.empty(n),
        unit=np.empty(n),
        lower=np.empty(n),
        upper=np.empty(n),
        z=np.empty(n),
    )
    return quadratic, units


# ---------------------------------------------------------------- a sample's program


@outlined
def load(q, units, prepared, varying, bound, yhat, weights, start, distance):
    """Writes a sample's rows and bounds, in both units."""
    n, m = start.size, bound.size
    for i in range(m):
        units.rhs[i] = bound[i] * prepared.scale[i]
    for v in range(prepared.varying.size):
        i = prepared.varying[v]
        largest = 0.0
        for e in range(q.start[i], q.start[i + 1]):
            largest = max(largest, abs(varying[v, q.column[e]]))
        factor = 2.0 ** (-np.floor(np.log2(largest))) if largest > 0.0 else 1.0
        for e in range(q.start[i], q.start[i + 1]):
            units.coefficient[e] = varying[v, q.column[e]] * factor
        units.rhs[i] = bound[i] * factor
    for j in range(n):
        output = j < prepared.outputs
        units.origin[j] = yhat[j] if output else start[j]
        units.unit[j] = distance / weights[j] if output else distance
    for i in range(m):
        largest, size, right = 0.0, max(1.0, abs(units.rhs[i])), units.rhs[i]
        for e in range(q.start[i], q.start[i + 1]):
            j = q.column[e]
            q.coefficient[e] = units.coefficient[e] * units.unit[j]
            shift = units.coefficient[e] * units.origin[j]
            largest = max(largest, abs(q.coefficient[e]))
            size = max(size, abs(shift))
            right -= shift
        factor = 1.0 / largest if largest > 0.0 else 1.0
        for e in range(q.start[i], q.start[i + 1]):
            q.coefficient[e] *= factor
        q.rhs[i] = right * factor
        q.tolerance[i] = max(1e-13, 1e-12 * size * factor)
        q.forgiven[i] = max(1e-11, FEASIBILITY * size * factor)


@inner
def convert_bounds(q, units):
    """Bounds of z in the units of the search; a bound at the prediction is exactly 0."""
    for j in range(q.x.size):
        q.lower[j] = (units.lower[j] - units.origin[j]) / units.unit[j]
        q.upper[j] = (units.upper[j] - units.origin[j]) / units.unit[j]


@inner
def read_point(q, units):
    """Writes z; what is fixed gets its value exactly."""
    for j in range(q.x.size):
        state = q.state[j]
        if state == AT_KINK:
            units.z[j] = units.origin[j]
        elif state == AT_LOWER:
            units.z[j] = units.lower[j]
        elif state == AT_UPPER:
            units.z[j] = units.upper[j]
        else:
            value = units.origin[j] + units.unit[j] * q.x[j]
            units.z[j] = min(max(value, units.lower[j]), units.upper[j])


@inner
def raw_excess(q, units, i):
    """How far row i is above its right side at z; absolute for an equality."""
    total = -units.rhs[i]
    for e in range(q.start[i], q.start[i + 1]):
        total += units.coefficient[e] * units.z[q.column[e]]
    return abs(total) if q.equality[i] else total


@inner
def enforced_rows_hold(q, units):
    """Whether all enforced rows hold at z."""
    m = q.rhs.size
    for e in range(q.counts[N_ENFORCED]):
        code = q.enforced[e]
        i = code if code < m else code - m
        over = raw_excess(q, units, i)
        if code >= m:
            over = -over
        if not over <= 2.0 * FEASIBILITY * max(1.0, abs(units.rhs[i])):
            return False
    return True


# ---------------------------------------------------------------- literals


@inner
def rows_hold(q, units, logic, k):
    """Whether all rows of boolean k's truth hold at z."""
    for e in range(logic.true_start[k], logic.true_start[k + 1]):
        i = logic.true_row[e]
        if not raw_excess(q, units, i) <= FEASIBILITY * max(1.0, abs(units.rhs[i])):
            return False
    return True


@inner
def nested_literal_holds(q, units, logic, tree, literal, mark):
    """Whether a literal of a nested clause holds; deeper nesting is left to the search."""
    k = abs(literal) - 1
    if logic.tied[k]:
        return tree.state[k] == (1 if literal > 0 else -1)
    if tree.state[k] == 1:
        return True
    if logic.guarded_start[k] < logic.guarded_start[k + 1] or not rows_hold(q, units, logic, k):
        return False
    if mark:
        tree.best_state[k] = 1
    return True


@inner
def disjunct_holds(q, units, logic, tree, active, k, mark):
    """Whether the untied disjunct k holds at z, the clauses nested in it included.

    With `mark` the disjuncts found to hold are written into `best_state`.
    """
    if not rows_hold(q, units, logic, k):
        return False
    for e in range(logic.guarded_start[k], logic.guarded_start[k + 1]):
        c = logic.guarded_clause[e]
        if not active[c]:
            continue
        found = False
        for f in range(logic.clause_start[c], logic.clause_start[c + 1]):
            if nested_literal_holds(q, units, logic, tree, logic.clause_literal[f], mark):
                found = True
                break
        if not found:
            return False
    if mark:
        tree.best_state[k] = 1
    return True


@inner
def literal_holds(q, units, logic, tree, active, literal):
    """Whether a literal is decided for, or a disjunct that holds at z."""
    k = abs(literal) - 1
    if tree.state[k] == (1 if literal > 0 else -1):
        return True
    return not logic.tied[k] and disjunct_holds(q, units, logic, tree, active, k, False)


@inner
def literal_score(q, logic, literal):
    """The largest violation among a literal's rows, in units of the distance."""
    k = abs(literal) - 1
    if literal > 0:
        first, last, listed = logic.true_start[k], logic.true_start[k + 1], logic.true_row
    else:
        first, last, listed = logic.false_start[k], logic.false_start[k + 1], logic.false_row
    worst = 0.0
    for e in range(first, last):
        over = excess(q, listed[e])
        worst = max(worst, abs(over) if q.equality[listed[e]] else over)
    return worst


@inner
def enforce(q, code):
    """Adds a row, or its closed negation, to the node."""
    if q.mark[code] == 0:
        q.mark[code] = IS_ENFORCED
        q.enforced[q.counts[N_ENFORCED]] = code
        q.counts[N_ENFORCED] += 1


@inner
def decide(tree, k, value):
    """Assigns a boolean."""
    tree.state[k] = value
    tree.trail[tree.on_trail[0]] = k
    tree.on_trail[0] += 1


@inner
def choose(q, logic, tree, literal):
    """Makes a literal true and enforces its rows.  False on contradiction."""
    k = abs(literal) - 1
    sign = 1 if literal > 0 else -1
    if tree.state[k] != 0:
        return tree.state[k] == sign
    decide(tree, k, sign)
    if sign > 0:
        for e in range(logic.true_start[k], logic.true_start[k + 1]):
            enforce(q, logic.true_row[e])
    else:
        for e in range(logic.false_start[k], logic.false_start[k + 1]):
            enforce(q, logic.false_row[e])
    return True


@inner
def leave_out(q, logic, tree, literal):
    """Excludes the solutions of a literal whose child is done.  False if nothing is left."""
    k = abs(literal) - 1
    if logic.tied[k]:
        return choose(q, logic, tree, -literal)
    if tree.state[k] != 0:
        return tree.state[k] == -1
    decide(tree, k, -1)
    if logic.guarded_start[k + 1] > logic.guarded_start[k]:
        return True
    first = logic.true_start[k]
    rows = logic.true_start[k + 1] - first
    if rows == 1 and not q.equality[logic.true_row[first]]:
        enforce(q, q.rhs.size + logic.true_row[first])
    return rows > 0


# ---------------------------------------------------------------- a node


@inner
def pull_of_centres(q):
    """The largest cost rate by which a centre holds its auxiliary back, beyond rounding."""
    pull, size = 0.0, q.price[0]
    for j in range(q.x.size):
        if not q.kinked[j]:
            pull = max(pull, q.curvature[j] * abs(q.x[j] - q.centre[j]))
    for k in range(q.counts[N_ACTIVE]):
        size = max(size, abs(q.multiplier[k]))
    return pull - 1e-15 * size


@inner
def cost_of_centres(q):
    """What the centres may add to the value of a node at most.

    Of an auxiliary without bounds it is supposed that it need not move by more than `FAR`.
    """
    total = 0.0
    for j in range(q.x.size):
        if not q.kinked[j]:
            reach = min(max(q.upper[j] - q.centre[j], q.centre[j] - q.lower[j]), FAR)
            total += 0.5 * q.curvature[j] * reach * reach
    return total


@outlined
def solve_node(q, auxiliaries, cutoff):
    """Solves the node's program; with auxiliaries until their centre does not matter."""
    restarted = False
    for _ in range(CENTRES):
        # Away from the final centre the value is a lower bound only up to the centres' cost.
        outcome = minimise(q, cutoff + cost_of_centres(q) if auxiliaries else cutoff)
        if outcome == TROUBLE and not restarted:
            restarted = True
            restart(q)
            continue
        if outcome != OPTIMAL or not auxiliaries or pull_of_centres(q) <= SETTLED:
            return outcome
        for j in range(q.x.size):
            if not q.kinked[j]:
                q.centre[j] = q.x[j]
        restart(q)
    return TROUBLE


@outlined
def look_at_clauses(q, units, logic, tree, active):
    """Decides what is forced at z and finds the clause to branch on.

    Returns INFEASIBLE, BRANCH_CLAUSE, LEAF (all clauses hold), or OPTIMAL if something was forced
    and the program has to be solved again.
    """
    forced = False
    worst = -1.0
    for c in range(logic.clause_guard.size):
        guard = logic.clause_guard[c]
        if not active[c] or (guard >= 0 and tree.state[guard] != 1):
            continue
        satisfied, n_open, last, least = False, 0, np.int64(0), np.inf
        for e in range(logic.clause_start[c], logic.clause_start[c + 1]):
            literal = logic.clause_literal[e]
            if literal_holds(q, units, logic, tree, active, literal):
                satisfied = True
                break
            if tree.state[abs(literal) - 1] == 0:
                n_open += 1
                last = literal
                least = min(least, literal_score(q, logic, literal))
        if satisfied:
            continue
        if n_open == 0:
            return INFEASIBLE
        if n_open == 1:
            if not choose(q, logic, tree, last):
                return INFEASIBLE
            forced = True
        elif least > worst:
            worst = least
            tree.number[CLAUSE] = c
    if forced:
        return OPTIMAL
    return LEAF if worst < 0.0 else BRANCH_CLAUSE


@inner
def split_column(units, integer):
    """The most fractional whole-number column, -1 if there is none."""
    worst, column = 0.0, -1
    for j in range(units.z.size):
        if integer[j]:
            away = abs(units.z[j] - np.round(units.z[j]))
            if away > whole_slack(units.z[j]) and away > worst:
                worst, column = away, j
    return column


@inner
def settle(q, units, logic, tree, active, integer, auxiliaries, cutoff):
    """Solves a node and decides what is forced.

    Returns INFEASIBLE, CUTOFF, TROUBLE, LEAF, BRANCH_INTEGER or BRANCH_CLAUSE.
    """
    while True:
        outcome = solve_node(q, auxiliaries, cutoff)
        if outcome != OPTIMAL:
            return outcome
        if bound_value(q) >= cutoff:
            return CUTOFF
        refine(q)
        read_point(q, units)
        outcome = look_at_clauses(q, units, logic, tree, active)
        if outcome == OPTIMAL:
            continue
        if outcome == LEAF:
            column = split_column(units, integer)
            if column >= 0:
                tree.number[COLUMN] = column
                return BRANCH_INTEGER
        return outcome


# ---------------------------------------------------------------- the stack


@inner
def save(q, units, tree, level):
    """Keeps the node's state on the stack."""
    for j in range(q.x.size):
        tree.real[level, 0, j] = q.x[j]
        tree.real[level, 1, j] = q.side[j]
        tree.real[level, 2, j] = q.centre[j]
        tree.real[level, 3, j] = units.lower[j]
        tree.real[level, 4, j] = units.upper[j]
        tree.whole[level, j] = q.state[j]
    for k in range(q.counts[N_ACTIVE]):
        tree.active[level, k] = q.active[k]
        tree.multiplier[level, 0, k] = q.multiplier[k]
        tree.multiplier[level, 1, k] = q.orientation[k]
    tree.counts[level, 0] = q.counts[N_ENFORCED]
    tree.counts[level, 1] = q.counts[N_ACTIVE]
    tree.counts[level, 2] = tree.on_trail[0]
    tree.bound[level] = bound_value(q)


@inner
def restore(q, units, tree, level):
    """Back to the state of the node saved at `level`."""
    for e in range(tree.counts[level, 0], q.counts[N_ENFORCED]):
        q.mark[q.enforced[e]] = 0
    q.counts[N_ENFORCED] = tree.counts[level, 0]
    for e in range(q.counts[N_ENFORCED]):
        q.mark[q.enforced[e]] = IS_ENFORCED
    for e in range(tree.counts[level, 2], tree.on_trail[0]):
        tree.state[tree.trail[e]] = 0
    tree.on_trail[0] = tree.counts[level, 2]
    for j in range(q.x.size):
        q.x[j] = tree.real[level, 0, j]
        q.side[j] = tree.real[level, 1, j]
        q.centre[j] = tree.real[level, 2, j]
        units.lower[j] = tree.real[level, 3, j]
        units.upper[j] = tree.real[level, 4, j]
        q.state[j] = tree.whole[level, j]
    convert_bounds(q, units)
    q.counts[N_ACTIVE] = 0
    for k in range(tree.counts[level, 1]):
        activate(q, tree.active[level, k], tree.multiplier[level, 1, k],
                 tree.multiplier[level, 0, k])  # fmt: skip


@outlined
def push_clause(q, units, logic, tree, level):
    """Opens the children of the chosen clause, the nearest first."""
    c = np.int64(tree.number[CLAUSE])
    count = 0
    for e in range(logic.clause_start[c], logic.clause_start[c + 1]):
        literal = logic.clause_literal[e]
        if tree.state[abs(literal) - 1] != 0:
            continue
        score = literal_score(q, logic, literal)
        at = count
        while at > 0 and tree.child_score[level, at - 1] > score:
            tree.child_score[level, at] = tree.child_score[level, at - 1]
            tree.child_literal[level, at] = tree.child_literal[level, at - 1]
            at -= 1
        tree.child_score[level, at] = score
        tree.child_literal[level, at] = literal
        count += 1
    tree.frame[level, 0] = count
    tree.frame[level, 1] = 0
    tree.frame[level, 2] = -1
    save(q, units, tree, level)


@inner
def push_integer(q, units, tree, level):
    """Opens the two sides of a fractional column, the nearer first."""
    column = np.int64(tree.number[COLUMN])
    value = units.z[column]
    near = -1 if value - np.floor(value) < 0.5 else 1
    tree.child_literal[level, 0] = near
    tree.child_literal[level, 1] = -near
    tree.frame[level, 0] = 2
    tree.frame[level, 1] = 0
    tree.frame[level, 2] = column
    tree.split[level] = value
    save(q, units, tree, level)


@outlined
def open_child(q, units, logic, tree, level, child):
    """Restores the parent and applies its next child.  False if that is contradictory."""
    restore(q, units, tree, level)
    column = tree.frame[level, 2]
    if column >= 0:
        if tree.child_literal[level, child] < 0:
            units.upper[column] = min(units.upper[column], np.floor(tree.split[level]))
        else:
            units.lower[column] = max(units.lower[column], np.ceil(tree.split[level]))
        convert_bounds(q, units)
        return units.lower[column] <= units.upper[column]
    for earlier in range(child):
        if not leave_out(q, logic, tree, tree.child_literal[level, earlier]):
            tree.frame[level, 1] = tree.frame[level, 0]  # nothing is left for later siblings
            return False
    return choose(q, logic, tree, tree.child_literal[level, child])


# ---------------------------------------------------------------- the incumbent


@inner
def norms(yhat, weights, z, distance):
    """The l1 norm and the squared l2 norm of a point, in units of the distance."""
    first, second = 0.0, 0.0
    for j in range(yhat.size):
        x = abs(weights[j] * (z[j] - yhat[j]))
        first += x
        second += (x / distance) * (x / distance)
    return first / distance, second


@inner
def is_better(units, tree, yhat, weights, distance, norm):
    """Whether z comes before the incumbent: smaller norm, or first differing output larger."""
    best = tree.number[BEST]
    if abs(norm - best) > SAME_NORM:
        return norm < best
    for j in range(yhat.size):
        ahead = (units.z[j] - tree.best_z[j]) * weights[j] / distance
        if abs(ahead) > SAME_OUTPUT:
            return ahead > 0.0
    return norm < best - IMPROVEMENT


@outlined
def keep_incumbent(q, units, logic, tree, active, norm):
    """Stores z as the best point, every required clause with a true literal."""
    tree.number[BEST] = norm
    for j in range(units.z.size):
        tree.best_z[j] = units.z[j]
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
            if not logic.tied[k] and disjunct_holds(q, units, logic, tree, active, k, True):
                break


# ---------------------------------------------------------------- a sample


@outlined
def begin(q, units, prepared, logic, tree, price):
    """Brings program and tree to the root."""
    for e in range(q.counts[N_ENFORCED]):
        q.mark[q.enforced[e]] = 0
    q.counts[N_ENFORCED] = 0
    for k in range(tree.state.size):
        tree.state[k] = 0
    tree.on_trail[0] = 0
    q.price[0] = price
    for j in range(q.x.size):
        units.lower[j] = prepared.lower[j]
        units.upper[j] = prepared.upper[j]
        q.centre[j] = 0.0
    convert_bounds(q, units)
    for e in range(prepared.global_rows.size):
        enforce(q, prepared.global_rows[e])
    restart(q)


@inner
def cutoff_of(tree, price, nodes):
    """The value from which on a node has nothing to offer.

    While the search is small, nodes that can only equal the incumbent are looked at, too: which
    of several equally near points is taken must not depend on the order of the rules.
    """
    if nodes < TIE_NODES:
        return price * (1.0 + 1e-12) + 0.5 * (tree.number[BEST] + SAME_NORM)
    return price * (1.0 + 4e-15) + 0.5 * tree.number[BEST] - 1e-10


@outlined
def search(
    q, units, prepared, logic, tree, active, yhat, weights, distance, price, node_limit, nodes,
    progress,
):  # fmt: skip
    """One search with a given price, from the incumbent in the tree.

    Returns (flag, whether the price was too small, nodes).
    """
    auxiliaries = prepared.outputs < prepared.lower.size
    flag = DONE
    allowance = 1e-10 + 1e-12 / distance
    if price >= LAST_PRICE:
        allowance = 1e-9 * max(1.0, 1.0 / distance)
    begin(q, units, prepared, logic, tree, price)
    level = 0
    alive = True
    while True:
        if alive:
            nodes += 1
            cutoff = cutoff_of(tree, price, nodes)
            verdict = settle(
                q, units, logic, tree, active, prepared.integer, auxiliaries, cutoff
            )  # fmt: skip
            if verdict == LEAF:
                first, second = norms(yhat, weights, units.z, distance)
                if not enforced_rows_hold(q, units):
                    flag = DOUBTFUL
                elif first < 1.0 - 1e-9 * max(1.0, 1.0 / distance):
                    flag = DOUBTFUL  # the distance was not the least one
                elif first > 1.0 + allowance:
                    if price < LAST_PRICE:
                        return flag, True, nodes
                    flag = DOUBTFUL
                elif is_better(units, tree, yhat, weights, distance, second):
                    keep_incumbent(q, units, logic, tree, active, second)
            elif verdict == BRANCH_CLAUSE or verdict == BRANCH_INTEGER:
                if level >= tree.frame.shape[0]:
                    flag = DOUBTFUL
                else:
                    if verdict == BRANCH_CLAUSE:
                        push_clause(q, units, logic, tree, level)
                    else:
                        push_integer(q, units, tree, level)
                    level += 1
            elif verdict == TROUBLE:
                flag = DOUBTFUL
        cutoff = cutoff_of(tree, price, nodes)
        while level > 0:
            open_children = tree.frame[level - 1, 1] < tree.frame[level - 1, 0]
            if open_children and tree.bound[level - 1] < cutoff:
                break
            level -= 1
        if level == 0:
            return flag, False, nodes
        if nodes >= node_limit or progress[0] == progress[1]:
            return max(flag, LIMITED), False, nodes
        child = tree.frame[level - 1, 1]
        tree.frame[level - 1, 1] = child + 1
        alive = open_child(q, units, logic, tree, level - 1, child)


def _compile(stamp: int) -> Any:
    @njit(cache=True, **KERNEL)
    def run(
        prepared, logic, active, varying, bound, yhat, weights, samples, z, assignment, distance,
        node_limit, q, units, tree, progress, nodes, flag,
    ):  # fmt: skip
        """Treats the samples one after the other with one workspace."""
        for at in range(samples.size):
            s = samples[at]
            progress[0] = s
            if s < 0:
                progress[0] = stamp  # never: it is here to be part of the cache's key
            length = distance[s]
            if not (length > 1e-13 and length < np.inf):
                continue  # the prediction itself, or no point at all
            load(q, units, prepared, varying[s], bound[s], yhat[s], weights, z[s], length)
            first, second = norms(yhat[s], weights, z[s], length)
            if not abs(first - 1.0) <= 1e-9 * max(1.0, 1.0 / length):
                flag[at] = DOUBTFUL
                continue
            for j in range(tree.best_z.size):
                tree.best_z[j] = z[s, j]
            for k in range(tree.best_state.size):
                tree.best_state[k] = assignment[s, k]
            tree.number[BEST] = second
            price = FIRST_PRICE
            while True:
                flag[at], short, nodes[at] = search(
                    q, units, prepared, logic, tree, active[s], yhat[s], weights, length, price,
                    node_limit, nodes[at], progress,
                )  # fmt: skip
                if not short:
                    break
                price *= PRICE_FACTOR
            for j in range(tree.best_z.size):
                z[s, j] = np.round(tree.best_z[j]) if prepared.integer[j] else tree.best_z[j]
            for k in range(tree.best_state.size):
                assignment[s, k] = tree.best_state[k]

    return run


run = _compile(
    source_stamp(
        "kernels/exact/_dictionary", "kernels/exact/_quadratic", "kernels/exact/_least_norm"
    )
)
