"""The loop over samples: load its rows, accept the prediction or search, report the result."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit, typeof

from gdpnet.kernels._block import Block, unpack
from gdpnet.kernels._jit import KERNEL, Array, inner, outlined, source_stamp
from gdpnet.kernels.exact._arrays import NO_ROWS, Prepared
from gdpnet.kernels.exact._clauses import NO_LOGIC, Logic, Tree, holds, new_tree
from gdpnet.kernels.exact._dictionary import (
    FEASIBILITY,
    KINK,
    LOWER,
    LOWER_SOURCE,
    NONBASIC,
    PLACE,
    REDUCED,
    UPPER,
    UPPER_SOURCE,
    VALUE,
    Dictionary,
    Rows,
    new_dictionary,
    row_excess,
    start_dictionary,
)
from gdpnet.kernels.exact._search import search

# What became of a sample, beyond the outcomes of the search.
ACCEPTED_AS_IS = 4

# How a column got its value, in `Detail.column_state`.
FOLLOWS, AT_LOWER, AT_UPPER, DETERMINED, RESTS = 0, 1, 2, 3, 4


class Workspace(NamedTuple):
    """Memory of one thread; nothing is allocated for a sample or a node."""

    dictionary: Dictionary
    rows: Rows
    scale: Array  # (m,)
    largest: Array  # (m,)
    tree: Tree


class Program(NamedTuple):
    """What a thread works with, whatever the batch."""

    prepared: Prepared
    logic: Logic
    work: Workspace


class Detail(NamedTuple):
    """The final dictionary of each sample; arrays of length 0 where nobody asked for it.

    Attributes:
        column_state: FOLLOWS the prediction, AT_LOWER or AT_UPPER bound, DETERMINED by the tight
            rows, or RESTS (an auxiliary that nothing moves), (B, n) int8.
        column_source: the row with one entry that is a column's bound; -1 for its own bound, -2
            for an integer split, (B, n).
        tight_rows: rows that determine the DETERMINED columns, -1 beyond their number, (B, n).
        multipliers: the distance falls by the multiplier per unit of b, (B, n).
        reduced_costs: rate of the distance in a column that is at a bound, (B, n).
    """

    column_state: Array
    column_source: Array
    tight_rows: Array
    multipliers: Array
    reduced_costs: Array


class Output(NamedTuple):
    """Results of a component for a batch.

    Attributes:
        z: the point, auxiliaries included; NaN where there is none, (B, n).
        distance: weighted l1 distance of its outputs, inf where there is none, (B,).
        bound: proved lower bound on the distance, (B,).
        status: outcome of the search, or ACCEPTED_AS_IS, (B,) int8.
        assignment: 1 true, -1 false, 0 not asked for, (B, booleans) int8.
        nodes: linear programs of the search, (B,).
    """

    z: Array
    distance: Array
    bound: Array
    status: Array
    assignment: Array
    nodes: Array


def new_workspace(prepared: Prepared, logic: Logic) -> Workspace:
    """Memory for one thread."""
    n, m = prepared.lower.size, prepared.equality.size
    rows = Rows(
        start=prepared.start,
        column=prepared.column,
        coefficient=prepared.coefficient.copy(),
        rhs=np.empty(m),
        tolerance=np.empty(m),
        equality=prepared.equality,
        integer=prepared.integer,
    )
    clauses = logic.clause_guard.size
    width = int(np.diff(logic.clause_start).max(initial=2))
    integers = int(np.count_nonzero(prepared.integer))
    tree = new_tree(n, clauses, logic.tied.size, logic.clause_literal.size, width, integers)
    return Workspace(
        new_dictionary(n, m), rows, prepared.scale.copy(), prepared.largest.copy(), tree
    )


_PROGRAM = typeof(Program(NO_ROWS, NO_LOGIC, new_workspace(NO_ROWS, NO_LOGIC)))


def new_program(prepared: Prepared, logic: Logic) -> Block:
    """A `Program` with a workspace of its own, as `run_exact` takes it."""
    return Block(Program(prepared, logic, new_workspace(prepared, logic)), _PROGRAM)


@inner
def load_rows(work, prepared, varying, bound):
    """Writes a sample's right sides and varying coefficients, scaled, into the workspace."""
    rows = work.rows
    for v in range(prepared.varying.size):
        i = prepared.varying[v]
        largest = 0.0
        for e in range(rows.start[i], rows.start[i + 1]):
            largest = max(largest, abs(varying[v, rows.column[e]]))
        factor = 1.0
        if largest > 0.0:
            factor = 2.0 ** (-np.floor(np.log2(largest)))
        work.scale[i] = factor
        work.largest[i] = largest
        for e in range(rows.start[i], rows.start[i + 1]):
            rows.coefficient[e] = varying[v, rows.column[e]] * factor
    for i in range(rows.rhs.size):
        rows.rhs[i] = bound[i] * work.scale[i]
        rows.tolerance[i] = FEASIBILITY * max(1.0, abs(rows.rhs[i]))


@outlined
def allow_rounding(rows, yhat, lost):
    """Tolerances of the search.

    `lost` is what adding up a row may lose of its terms, relative: beside large predictions
    rounding is no violation then, and whether the point is good enough is judged afterwards.
    """
    for i in range(rows.rhs.size):
        size = 0.0
        for e in range(rows.start[i], rows.start[i + 1]):
            j = rows.column[e]
            if j < yhat.size:
                size += abs(rows.coefficient[e] * yhat[j])
        rows.tolerance[i] = FEASIBILITY * max(1.0, abs(rows.rhs[i])) + lost * size


@outlined
def accepts(work, prepared, logic, active, yhat, tolerance):
    """Whether the prediction satisfies bounds, globals and active rules within a tolerance.

    The tolerance is relative to max(|b|, max|a|) of a row: not looser than in
    `RuleModel.satisfied`, and as strict for small units as for large ones.
    """
    rows = work.rows
    for j in range(yhat.size):
        x, lower, upper = yhat[j], prepared.lower[j], prepared.upper[j]
        if lower - x > tolerance * max(1.0, abs(lower)):
            return False
        if x - upper > tolerance * max(1.0, abs(upper)):
            return False
        if prepared.integer[j] and x != np.round(x):
            return False
    for e in range(prepared.global_rows.size):
        if not within(work, prepared.global_rows[e], yhat, tolerance):
            return False
    for i in range(rows.rhs.size):
        rows.tolerance[i] = tolerance * row_size(work, i) * work.scale[i]
    accepted = True
    for c in range(logic.clause_guard.size):
        if not active[c] or logic.clause_guard[c] >= 0:
            continue
        found = False
        for e in range(logic.clause_start[c], logic.clause_start[c + 1]):
            k = logic.clause_literal[e] - 1
            if holds(logic, rows, work.tree, active, k, yhat, False):
                found = True
                break
        if not found:
            accepted = False
            break
    return accepted


@inner
def row_size(work, i):
    """`max(|b|, max|a|)` of a row in the user's units; 1 for a row that says 0 <= 0."""
    size = max(work.largest[i], abs(work.rows.rhs[i]) / work.scale[i])
    return size if size > 0.0 else 1.0


@inner
def within(work, i, z, tolerance):
    """Whether a row holds within a tolerance relative to its size."""
    excess = row_excess(work.rows, i, z)
    if work.rows.equality[i]:
        excess = abs(excess)
    return excess <= tolerance * row_size(work, i) * work.scale[i]


@outlined
def mark_holding(work, logic, active, yhat, assignment):
    """Writes which disjuncts of the active rules hold at an accepted prediction."""
    tree = work.tree
    for k in range(tree.best_state.size):
        tree.best_state[k] = 0
    for c in range(logic.clause_guard.size):
        if not active[c] or logic.clause_guard[c] >= 0:
            continue
        for e in range(logic.clause_start[c], logic.clause_start[c + 1]):
            k = logic.clause_literal[e] - 1
            if holds(logic, work.rows, tree, active, k, yhat, True):
                break
    for k in range(tree.best_state.size):
        assignment[k] = tree.best_state[k]


@inner
def read_point(work, prepared, z):
    """Writes the incumbent's point, within the bounds."""
    real, index = work.tree.best_real, work.tree.best_index
    for j in range(z.size):
        z[j] = real[VALUE, j]
        if index[PLACE, j] >= 0:
            z[j] = min(max(z[j], prepared.lower[j]), prepared.upper[j])
        z[j] += 0.0  # minus zero becomes zero


@outlined
def read_dictionary(work, prepared, weights, state, source, tight, multiplier, reduced):
    """Writes the incumbent's dictionary in the user's units."""
    real, index, kinks = work.tree.best_real, work.tree.best_index, work.dictionary.real[KINK]
    n, m = real.shape[1], work.rows.rhs.size
    for j in range(n):
        source[j] = -1
        reduced[j] = 0.0
        if index[PLACE, j] >= 0:
            state[j] = DETERMINED
            continue
        x, lower, upper = real[VALUE, j], real[LOWER, j], real[UPPER, j]
        if x == kinks[j] and not (x == lower and lower == upper):
            # An integer stays where it is when the prediction moves a little.
            state[j] = RESTS if prepared.integer[j] else FOLLOWS
            continue
        if x == lower:
            state[j] = AT_LOWER
        elif x == upper:
            state[j] = AT_UPPER
        else:
            state[j] = RESTS
            continue
        reduced[j] = real[REDUCED, -1 - index[PLACE, j]]
        if j < weights.size and x != kinks[j]:
            reduced[j] += weights[j] if x > kinks[j] else -weights[j]
        source[j] = index[LOWER_SOURCE, j] if state[j] == AT_LOWER else index[UPPER_SOURCE, j]
        if state[j] == AT_LOWER and lower == upper and source[j] < 0:
            source[j] = index[UPPER_SOURCE, j]
        if source[j] >= m:
            source[j] -= m
    count = 0
    for p in range(n):
        code = index[NONBASIC, p] - n
        if code >= 0:
            i = code if code < m else code - m
            sign = 1.0 if code < m else -1.0
            tight[count] = i
            multiplier[count] = sign * real[REDUCED, p] * work.scale[i]
            count += 1
    for p in range(count, n):
        tight[p] = -1
        multiplier[p] = 0.0


@inner
def pass_through(detail, s, j):
    """The dictionary of a column that is where the prediction is."""
    detail.column_state[s, j] = FOLLOWS
    detail.column_source[s, j] = -1
    detail.tight_rows[s, j] = -1
    detail.multipliers[s, j] = 0.0
    detail.reduced_costs[s, j] = 0.0


def _compile(stamp: int) -> Any:
    @njit(cache=True, **KERNEL)
    def run_exact(
        first, last, words, active, varying, bound, yhat, weights, node_limit, tolerance, lost,
        progress, out, detail,
    ):  # fmt: skip
        """Projects samples first..last-1 with one workspace; samples do not influence each other.

        `words` are those of the block that `new_program` made.
        `progress[0]` is the sample at work; writing its number into `progress[1]` stops its search.
        """
        if first < 0:
            progress[0] = stamp  # never: it is here to be part of the cache's key
        program = unpack(words, _PROGRAM)
        prepared, logic, work = program.prepared, program.logic, program.work
        detailed = detail.column_state.shape[0] > 0
        for s in range(first, last):
            progress[0] = s
            load_rows(work, prepared, varying[s], bound[s])
            for k in range(work.tree.state.size):
                work.tree.state[k] = 0  # or nested rules would be judged by the last sample
            if prepared.plain and accepts(work, prepared, logic, active[s], yhat[s], tolerance):
                out.status[s] = ACCEPTED_AS_IS
                out.distance[s] = 0.0
                out.bound[s] = 0.0
                out.nodes[s] = 0
                for j in range(out.z.shape[1]):
                    out.z[s, j] = yhat[s, j]
                    if detailed:
                        pass_through(detail, s, j)
                mark_holding(work, logic, active[s], yhat[s], out.assignment[s])
                continue
            allow_rounding(work.rows, yhat[s], lost)
            start_dictionary(work.dictionary, prepared.lower, prepared.upper, yhat[s], weights)
            status, best, proved, nodes = search(
                work.dictionary, work.rows, logic, work.tree, active[s], prepared.global_rows,
                node_limit, progress,
            )  # fmt: skip
            out.status[s] = status
            out.distance[s] = best
            out.bound[s] = proved
            out.nodes[s] = nodes
            if best < np.inf:
                read_point(work, prepared, out.z[s])
                for k in range(work.tree.best_state.size):
                    out.assignment[s, k] = work.tree.best_state[k]
                if detailed:
                    read_dictionary(
                        work, prepared, weights, detail.column_state[s], detail.column_source[s],
                        detail.tight_rows[s], detail.multipliers[s], detail.reduced_costs[s],
                    )  # fmt: skip
            else:
                for j in range(out.z.shape[1]):
                    out.z[s, j] = np.nan
                    if detailed:
                        pass_through(detail, s, j)

    return run_exact


run_exact = _compile(
    source_stamp(
        "kernels/exact/_arrays",
        "kernels/exact/_dictionary",
        "kernels/exact/_simplex",
        "kernels/exact/_clauses",
        "kernels/exact/_stack",
        "kernels/exact/_search",
        "kernels/exact/_kernel",
        "kernels/_block",
    )
)
