"""The products of the DNF that the regularised quadratic program can give weight to.

A product is a choice of a disjunct (or of several, where logic names them and XOR does not forbid
it) for every active rule. The search of the exact engine stops as soon as a point satisfies every
rule; here every rule gets a choice, so that each product is met once. Those farther than the band
are pruned by the bound of their linear program, empty ones by its infeasibility.

Each product found leaves its nearest vertex and the rows and columns that hold it there: a *piece*,
along which `z_k` is proportional to `lambda_k`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from gdpnet.ir.data import Clause, RuleData
from gdpnet.ir.semantics import options as choices_of
from gdpnet.solve.exact._arrays import Component
from gdpnet.solve.exact._clauses import choose
from gdpnet.solve.exact._dictionary import (
    AGE,
    BASIC,
    DUAL_SLACK,
    KINK,
    LOWER,
    LOWER_SOURCE,
    N_BASIC,
    NONBASIC,
    PLACE,
    REDUCED,
    SLOPE,
    UPPER,
    UPPER_SOURCE,
    VALUE,
    WEIGHT,
    distance_of,
    enforce,
    reset_basis,
    start_dictionary,
)
from gdpnet.solve.exact._jit import KERNEL, Array, inner, outlined, source_stamp
from gdpnet.solve.exact._kernel import load_rows
from gdpnet.solve.exact._simplex import OPTIMAL, TROUBLE, refactor, solve_node
from gdpnet.solve.exact._stack import restore, save

# What holds a column of a piece: FREE ones are determined by the rows and, where there are fewer
# rows, by the quadratic term (the sign is that of their price); AT_KINK is at the prediction;
# AT_BOUND is at a bound of the box.
FREE_ABOVE, FREE_BELOW, AT_KINK, AT_BOUND = 0, 1, 2, 3

# How a sample is solved.
PASSED, VERTICES, PIECES, FAILED = 0, 1, 2, 3

_VISITS = 16  # products looked at beyond the cap, in multiples of it


class Choices(NamedTuple):
    """What may be chosen for each clause of a component, compressed.

    Attributes:
        clause_start: options of each clause, (clauses + 1,).
        option_start: literals of each option, (options + 1,).
        literal: all of an option hold together.
        proposition: clauses that only admit or refuse a choice, (clauses,) bool.
    """

    clause_start: Array
    option_start: Array
    literal: Array
    proposition: Array


class Band(NamedTuple):
    """Products of a batch, those of sample s from `start[s]` on; P places.

    Attributes:
        start: (B + 1,).
        intercept: price `g` of weight at 0, on the line `g = intercept + slope * weight`, (P,).
        slope: (P,).
        limit: weight up to which the vertex stays optimal, (P,).
        weight: lambda, (P,).
        point: `y_k - yhat`, then the auxiliaries, each for weight 1, (P, n).
        kind: what holds each column, (P, n) int8.
        rows: tight rows, -1 beyond their number, (P, n).
        state: booleans chosen, (P, booleans) int8.
        status: PASSED, VERTICES, PIECES (the program must still be solved) or FAILED, (B,) int8.
        capped: whether only some products were listed, (B,) bool.
    """

    start: Array
    intercept: Array
    slope: Array
    limit: Array
    weight: Array
    point: Array
    kind: Array
    rows: Array
    state: Array
    status: Array
    capped: Array


class Scratch(NamedTuple):
    """Memory of the listing."""

    lower: Array  # (n,)
    upper: Array  # (n,)
    done: Array  # (clauses,) int8: whether an option was chosen


def new_band(size: int, places: int, n: int, booleans: int) -> Band:
    """Room for `places` products of a batch."""
    return Band(
        start=np.zeros(size + 1, dtype=np.int64),
        intercept=np.empty(places),
        slope=np.empty(places),
        limit=np.empty(places),
        weight=np.empty(places),
        point=np.empty((places, n)),
        kind=np.empty((places, n), dtype=np.int8),
        rows=np.empty((places, n), dtype=np.int64),
        state=np.empty((places, booleans), dtype=np.int8),
        status=np.zeros(size, dtype=np.int8),
        capped=np.zeros(size, dtype=np.bool_),
    )


def enlarged(band: Band) -> Band:
    """The same with twice the room."""
    fields = {
        name: np.concatenate([value, np.empty_like(value)])
        for name, value in band._asdict().items()
        if name not in ("start", "status", "capped")
    }
    return band._replace(**fields)


def new_scratch(component: Component) -> Scratch:
    """Memory for one thread."""
    n, clauses = len(component.columns), component.logic.clause_guard.size
    return Scratch(np.empty(n), np.empty(n), np.zeros(clauses, dtype=np.int8))


# ---------------------------------------------------------------- choices


def choices(data: RuleData, component: Component) -> Choices:
    """The options of every clause, in the order of the component's logic."""
    place = {int(b): k for k, b in enumerate(component.booleans)}

    def own(literal: int) -> int:
        return (1 if literal > 0 else -1) * (place[abs(literal) - 1] + 1)

    options: list[list[list[int]]] = []
    for c in component.clauses:
        clause = data.clauses[c]
        found = [[k] for k in clause.literals] if clause.logic else _options(data, clause)
        options.append([[own(k) for k in option] for option in found])
    options += [[[k + 1], [-k - 1]] for k, _ in component.decided]
    proposition = [data.clauses[c].logic for c in component.clauses]
    flat = [option for some in options for option in some]
    return Choices(
        clause_start=_starts(options),
        option_start=_starts(flat),
        literal=np.array([k for option in flat for k in option], dtype=np.int64),
        proposition=np.array(proposition + [True] * len(component.decided), dtype=np.bool_),
    )


def _options(data: RuleData, clause: Clause) -> list[list[int]]:
    """Options of a Disjunction; booleans whose truth matters are false where not chosen."""
    literals = clause.literals
    options = []
    for some in choices_of(data, clause):
        others = [k for k in literals if k not in some]
        below = [
            k
            for other in others
            for nested in data.guarded.get(other - 1, ())
            for c in data.subtree(nested)
            for k in data.clauses[c].literals
        ]
        false = [-k for k in (*others, *below) if data.booleans[k - 1].tied]
        options.append([*some, *false])
    return options


def _starts(lists: Iterable[list[Any]]) -> Array:
    return np.cumsum([0, *map(len, lists)]).astype(np.int64)


# ---------------------------------------------------------------- the listing


@inner
def next_clause(logic, choices, tree, scratch, active):
    """The first required rule without a choice, then the first proposition not yet true; or -1."""
    for propositions in range(2):
        for c in range(logic.clause_guard.size):
            if choices.proposition[c] != (propositions == 1) or not active[c]:
                continue
            guard = logic.clause_guard[c]
            if scratch.done[c] or (guard >= 0 and tree.state[guard] != 1):
                continue
            if propositions == 0:
                return c
            true = False
            for o in range(choices.clause_start[c], choices.clause_start[c + 1]):
                literal = choices.literal[choices.option_start[o]]
                true = true or tree.state[abs(literal) - 1] == (1 if literal > 0 else -1)
            if not true:
                return c
    return np.int64(-1)


@inner
def first_option(choices, c, assignment):
    """The option that the projection has taken, so that its product is met first."""
    for o in range(choices.clause_start[c], choices.clause_start[c + 1]):
        literal = choices.literal[choices.option_start[o]]
        if literal > 0 and assignment[literal - 1] == 1:
            return o - choices.clause_start[c]
    return np.int64(0)


@inner
def apply_option(dic, rows, logic, tree, choices, o):
    """Makes all literals of an option true.  False on contradiction."""
    for e in range(choices.option_start[o], choices.option_start[o + 1]):
        if not choose(dic, rows, logic, tree, choices.literal[e]):
            return False
    return True


@outlined
def write_piece(dic, rows, tree, outputs, eps, band, p):
    """Writes the vertex of the dictionary and what holds it."""
    real, index = dic.real, dic.slots
    n, m = real.shape[1], rows.rhs.size
    size = 1.0
    count = 0
    for j in range(n):
        band.rows[p, j] = -1
    for j in range(n):
        x = real[VALUE, j]
        move = x
        if j < outputs:
            move = x - real[KINK, j]
            size += 2.0 * move * move
        else:
            size += move * move
        band.point[p, j] = move
        above = move > 0.0 or j >= outputs
        if index[PLACE, j] >= 0:
            above = real[SLOPE, j] >= 0.0
        elif j < outputs and move == 0.0 and real[LOWER, j] < real[UPPER, j]:
            band.kind[p, j] = AT_KINK
            continue
        else:
            source = np.int64(-1)
            if x == real[LOWER, j]:
                source = index[LOWER_SOURCE, j]
            if x == real[UPPER, j] and source < 0:
                source = index[UPPER_SOURCE, j]
            if source < 0:
                band.kind[p, j] = AT_BOUND
                continue
            band.rows[p, count] = source
            count += 1
        band.kind[p, j] = FREE_ABOVE if above else FREE_BELOW
    for q in range(n):
        if index[NONBASIC, q] >= n:
            band.rows[p, count] = index[NONBASIC, q] - n
            count += 1
    for k in range(tree.state.size):
        band.state[p, k] = tree.state[k]
    band.intercept[p] = distance_of(dic)
    band.slope[p] = eps * size
    band.limit[p] = steady_weight(dic, rows, outputs, eps, m)


@inner
def steady_weight(dic, rows, outputs, eps, m):
    """The weight up to which the quadratic term leaves the vertex optimal."""
    real, index = dic.real, dic.slots
    n, r = real.shape[1], dic.counts[N_BASIC]
    limit = np.inf
    for q in range(n):
        change = 0.0
        for k in range(r):
            j = index[BASIC, k]
            gradient = real[VALUE, j]
            if j < outputs:
                gradient = 2.0 * (gradient - real[KINK, j])
            change += dic.tableau[k, q] * eps * gradient
        reduced = real[REDUCED, q]
        j = index[NONBASIC, q]
        if j >= n:
            if not rows.equality[j - n]:
                limit = min(limit, keeps_sign(reduced, change, eps))
            continue
        x, kink, weight = real[VALUE, j], real[KINK, j], real[WEIGHT, j]
        change += eps * (2.0 * (x - kink) if j < outputs else x)
        if x < real[UPPER, j]:
            up = reduced + (-weight if x < kink else weight)
            limit = min(limit, keeps_sign(up, change, eps))
        if x > real[LOWER, j]:
            down = reduced + (weight if x > kink else -weight)
            limit = min(limit, keeps_sign(-down, -change, eps))
    return limit


@inner
def keeps_sign(margin, change, eps):
    """Up to which weight `margin + weight * change` is positive."""
    if margin <= DUAL_SLACK:
        return np.inf if change > 1e-8 * eps else 0.0
    return np.inf if change >= 0.0 else margin / -change


@inner
def same_point(band, p, q):
    """Whether two products have the same vertex."""
    for j in range(band.point.shape[1]):
        if abs(band.point[p, j] - band.point[q, j]) > 1e-9:
            return False
    return True


@inner
def copy_piece(band, to, source):
    """Overwrites a product by another."""
    band.intercept[to] = band.intercept[source]
    band.slope[to] = band.slope[source]
    band.limit[to] = band.limit[source]
    for j in range(band.point.shape[1]):
        band.point[to, j] = band.point[source, j]
        band.kind[to, j] = band.kind[source, j]
        band.rows[to, j] = band.rows[source, j]
    for k in range(band.state.shape[1]):
        band.state[to, k] = band.state[source, k]


@outlined
def keep_if_distinct(band, first, count, cap):
    """Keeps the product at place `first + count` unless its vertex is known; returns the count.

    Where there is no room it replaces the farthest one, if it is nearer.
    """
    p = first + count
    farthest = first
    for q in range(first, p):
        if same_point(band, p, q):
            return count
        if band.intercept[q] > band.intercept[farthest]:
            farthest = q
    if count < cap:
        return count + 1
    if band.intercept[p] < band.intercept[farthest]:
        copy_piece(band, farthest, p)
    return count


@outlined
def fill(band, first, last):
    """Weights that sum to 1 and have the same price, each on its line; returns that price."""
    for p in range(first, last):
        band.weight[p] = 1.0
    while True:
        total, conductance, kept = 1.0, 0.0, 0
        for p in range(first, last):
            if band.weight[p] > 0.0:
                total += band.intercept[p] / band.slope[p]
                conductance += 1.0 / band.slope[p]
                kept += 1
        price = total / conductance
        dropped = False
        for p in range(first, last):
            if band.weight[p] > 0.0 and band.intercept[p] >= price and kept > 1:
                band.weight[p] = 0.0
                dropped = True
        if not dropped:
            break
    for p in range(first, last):
        if band.weight[p] > 0.0 and kept > 1:
            band.weight[p] = (price - band.intercept[p]) / band.slope[p]
    return price


def _compile(stamp: int) -> Any:
    @njit(cache=True, **KERNEL)
    def list_band(
        begin, prepared, logic, choices, active, varying, bound, yhat, weights, nearest, assignment,
        eps, cap, work, scratch, band,
    ):  # fmt: skip
        """Lists the products of samples from `begin` on; returns where it ran out of room.

        Samples whose status is PASSED are left out.  `yhat` lies within the box.
        """
        dic, rows, tree = work.dictionary, work.rows, work.tree
        n, outputs = nearest.shape[1], yhat.shape[1]
        for s in range(begin, yhat.shape[0]):
            first = band.start[s] + stamp * 0  # the stamp makes the sources part of the cache's key
            band.start[s + 1] = first
            if band.status[s] == PASSED:
                continue
            if first + cap + 1 > band.weight.size:
                return s
            load_rows(work, prepared, varying[s], bound[s])
            reach, size = 0.0, 1.0
            for j in range(n):
                scratch.lower[j] = prepared.lower[j]
                scratch.upper[j] = prepared.upper[j]
                if prepared.integer[j]:
                    scratch.lower[j] = np.round(nearest[s, j])
                    scratch.upper[j] = scratch.lower[j]
                if j < outputs:
                    move = nearest[s, j] - yhat[s, j]
                    reach += weights[j] * abs(move)
                    size += 2.0 * move * move
                else:
                    size += nearest[s, j] * nearest[s, j]
            reach += eps * size + 1e-9 * max(1.0, reach)
            start_dictionary(dic, scratch.lower, scratch.upper, yhat[s], weights)
            for k in range(tree.state.size):
                tree.state[k] = 0
            for c in range(scratch.done.size):
                scratch.done[c] = 0
            alive = True
            for e in range(prepared.global_rows.size):
                alive = alive and enforce(dic, rows, prepared.global_rows[e])
            level = 0
            count = 0
            visits = 0
            failed = False
            while True:
                outcome = TROUBLE + 1
                if alive:
                    outcome = solve_node(dic, rows, np.inf)
                if outcome == TROUBLE:
                    failed = True
                    break
                if outcome == OPTIMAL and distance_of(dic) <= reach:
                    c = next_clause(logic, choices, tree, scratch, active[s])
                    if c >= 0:
                        save(dic, tree, level)
                        tree.frame[level, 0] = c
                        tree.frame[level, 1] = 0
                        tree.frame[level, 2] = first_option(choices, c, assignment[s])
                        scratch.done[c] = 1
                        level += 1
                    else:
                        if dic.counts[AGE] > 8 and not refactor(dic, rows):
                            failed = True
                            break
                        visits += 1
                        write_piece(dic, rows, tree, outputs, eps, band, first + count)
                        if count < cap and not band.capped[s]:
                            count += 1
                        elif not band.capped[s]:
                            band.capped[s] = True
                            listed, count = count + 1, 0
                            for p in range(listed):
                                if p > count:
                                    copy_piece(band, first + count, first + p)
                                count = keep_if_distinct(band, first, count, cap)
                        else:
                            count = keep_if_distinct(band, first, count, cap)
                        # Other ways to satisfy the propositions give the same product.
                        while level > 0 and choices.proposition[tree.frame[level - 1, 0]]:
                            scratch.done[tree.frame[level - 1, 0]] = 0
                            level -= 1
                while level > 0:
                    c = tree.frame[level - 1, 0]
                    options = choices.clause_start[c + 1] - choices.clause_start[c]
                    if tree.frame[level - 1, 1] < options and visits < _VISITS * cap:
                        break
                    scratch.done[c] = 0
                    level -= 1
                if level == 0:
                    break
                c = tree.frame[level - 1, 0]
                options = choices.clause_start[c + 1] - choices.clause_start[c]
                o = (tree.frame[level - 1, 1] + tree.frame[level - 1, 2]) % options
                tree.frame[level - 1, 1] += 1
                if not restore(dic, rows, tree, level - 1):
                    reset_basis(dic)
                alive = apply_option(dic, rows, logic, tree, choices, choices.clause_start[c] + o)
            if failed or count == 0:
                band.status[s] = FAILED
                continue
            band.start[s + 1] = first + count
            fill(band, first, first + count)
            band.status[s] = VERTICES
            for p in range(first, first + count):
                if band.weight[p] > band.limit[p] * (1.0 - 1e-9):
                    band.status[s] = PIECES
        return np.int64(yhat.shape[0])

    return list_band


list_band = _compile(
    source_stamp(
        *("solve/exact/_dictionary", "solve/exact/_simplex", "solve/exact/_clauses"),
        *("solve/exact/_stack", "solve/exact/_kernel", "sensitivity/qp/_band"),
    )
)
