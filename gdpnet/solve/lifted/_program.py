"""The lifted hull of a part as sparse rows, written for one sample.

The copy of a product is u = p - q with p, q >= 0, and p + q is its share of the epigraph, so that
all blocks agree on the point and on the distance exactly if the sums of p and of q over the
products of a block are the same P and Q for every block. One product of each block, the reference,
is what the others leave of P, Q and of the weight 1: its columns and all equations vanish.

    minimise  w (P + Q)
    columns   P, Q, auxiliaries;  p, q, auxiliaries, weight  of every product but the references
    rows      a_i u_k <= weight_k slack_i,  bounds of u_k,  and of the references also the signs

Auxiliaries are measured from their lower bounds, so they need no q. Without any row the point
is the prediction, with the references' weights 1; that is dual feasible.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gdpnet.solve.exact._dictionary import FEASIBILITY, N_COUNT, N_INDEX, N_REAL, Dictionary, Rows
from gdpnet.solve.exact._jit import Array, inner, outlined
from gdpnet.solve.lifted._tables import Extent, Sources

# What a product is in the program.
ABSENT, PRESENT, REFERENCE = 0, 1, 2


class Workspace(NamedTuple):
    """Memory of one thread; nothing is allocated for a sample."""

    local: Rows  # rows of the part for one product, measured from the prediction
    scale: Array  # of those rows, (m,)
    lifted: Rows  # rows of the program
    owner: Array  # product of each row of the program
    source: Array  # where it comes from: a row of the part, or see `bound_source`
    place: Array  # a column of the rules in the part, (n,)
    low: Array  # bounds measured from the prediction, (n,)
    high: Array
    shift: Array  # the prediction; lower bounds for auxiliaries, (n,)
    weights: Array  # of P and of Q, (2 n,)
    zeros: Array  # columns of the program
    infinite: Array
    first: Array  # first column of each product's copy
    state: Array  # ABSENT, PRESENT or REFERENCE, by product
    value: Array  # least distance of each block
    nearest: Array  # product that has it, then the one that holds the point
    included: Array  # whether the program has the block
    points: Array  # nearest point of each block, (blocks, n)
    point: Array  # (n,)
    real: Array  # memory of the dictionaries, whose size is the program's
    slots: Array
    tableau: Array
    factor: Array
    counts: Array
    enforced: Array
    flag: Array


def new_workspace(src: Sources, size: Extent) -> Workspace:
    """Memory for one thread."""
    n, c = src.lower.size, size.columns

    def rows(m: int, entries: int) -> Rows:
        return Rows(
            start=np.zeros(m + 1, np.int64),
            column=np.zeros(entries, np.int64),
            coefficient=np.zeros(entries),
            rhs=np.zeros(m),
            tolerance=np.zeros(m),
            equality=np.zeros(m, np.bool_),
            integer=np.zeros(c, np.bool_),
        )

    return Workspace(
        local=rows(size.rows, size.entries),
        scale=np.ones(size.rows),
        lifted=rows(size.rows, size.entries),
        owner=np.zeros(size.rows, np.int64),
        source=np.zeros(size.rows, np.int64),
        place=np.zeros(n, np.int64),
        low=np.zeros(n),
        high=np.zeros(n),
        shift=np.zeros(n),
        weights=np.zeros(2 * n),
        zeros=np.zeros(c),
        infinite=np.full(c, np.inf),
        first=np.zeros(size.products, np.int64),
        state=np.zeros(size.products, np.int8),
        value=np.zeros(size.blocks),
        nearest=np.zeros(size.blocks, np.int64),
        included=np.zeros(size.blocks, np.bool_),
        points=np.zeros((size.blocks, n)),
        point=np.zeros(n),
        real=np.zeros(N_REAL * c),
        slots=np.zeros(N_INDEX * c, np.int64),
        tableau=np.zeros(c * c),
        factor=np.zeros(c * (2 * c + 1)),
        counts=np.zeros(N_COUNT, np.int64),
        enforced=np.zeros(2 * size.rows, np.int64),
        flag=np.zeros(2 * size.rows, np.int8),
    )


@inner
def dictionary(work, n):
    """A dictionary of n columns in the workspace's memory."""
    return Dictionary(
        work.real[: N_REAL * n].reshape(N_REAL, n),
        work.slots[: N_INDEX * n].reshape(N_INDEX, n),
        work.tableau[: n * n].reshape(n, n),
        work.counts,
        work.enforced,
        work.flag,
        work.factor[: n * (2 * n + 1)].reshape(n, 2 * n + 1),
    )


@inner
def outputs_of(src, tab, part):
    """How many of a part's columns are outputs."""
    count = 0
    for e in range(tab.part_column[part], tab.part_column[part + 1]):
        if tab.column[e] < src.outputs:
            count += 1
    return count


@outlined
def load_part(src, tab, part, work, start, weights, bound, varying):
    """Writes a sample's rows of a part, scaled and measured from the prediction."""
    first = tab.part_column[part]
    n = tab.part_column[part + 1] - first
    d = outputs_of(src, tab, part)
    for k in range(n):
        j = tab.column[first + k]
        work.place[j] = k
        if k < d:
            work.shift[k] = start[j]
            work.weights[k] = weights[j]
            work.weights[d + k] = weights[j]
        else:
            work.shift[k] = src.lower[j]
        work.low[k] = src.lower[j] - work.shift[k]
        work.high[k] = src.upper[j] - work.shift[k]
    rows = work.local
    at = 0
    for r in range(tab.part_row[part + 1] - tab.part_row[part]):
        i = tab.row[tab.part_row[part] + r]
        v = src.varying[i]
        factor = src.scale[i]
        if v >= 0:
            largest = 0.0
            for e in range(src.start[i], src.start[i + 1]):
                largest = max(largest, abs(varying[v, src.column[e]]))
            if largest > 0.0:
                factor = 2.0 ** (-np.floor(np.log2(largest)))
        slack = bound[i] * factor
        rows.tolerance[r] = FEASIBILITY * max(1.0, abs(slack))
        for e in range(src.start[i], src.start[i + 1]):
            j = src.column[e]
            a = varying[v, j] * factor if v >= 0 else src.coefficient[e]
            rows.column[at] = work.place[j]
            rows.coefficient[at] = a
            at += 1
            slack -= a * work.shift[work.place[j]]
        work.scale[r] = factor
        rows.rhs[r] = slack
        rows.equality[r] = src.equality[i]
        rows.start[r + 1] = at
    return n, d


@inner
def bound_source(n, j, upper):
    """The source of a bound of column j; sources from -1 - 2 n on are signs."""
    return -1 - j if upper else -1 - n - j


@inner
def put(rows, at, column, coefficient):
    """Writes one entry."""
    rows.column[at] = column
    rows.coefficient[at] = coefficient
    return at + 1


@inner
def put_copy(work, at, d, j, a, product, begin, end):
    """Writes `a u_j` of a product of the block [begin, end)."""
    rows = work.lifted
    if work.state[product] == PRESENT:
        f = work.first[product]
        if j < d:
            at = put(rows, at, f + j, a)
        return put(rows, at, f + d + j, a if j >= d else -a)
    if j < d:
        at = put(rows, at, j, a)
    at = put(rows, at, d + j, a if j >= d else -a)
    for other in range(begin, end):
        if work.state[other] == PRESENT:
            f = work.first[other]
            if j < d:
                at = put(rows, at, f + j, -a)
            at = put(rows, at, f + d + j, -a if j >= d else a)
    return at


@inner
def close_row(work, row, at, base, product, begin, end, slack, tolerance, equality, source):
    """Writes `- weight slack` and the right side of a row."""
    rows = work.lifted
    if work.state[product] == PRESENT:
        at = put(rows, at, work.first[product] + base, -slack)
        rows.rhs[row] = 0.0
    else:
        rows.rhs[row] = slack
        for other in range(begin, end):
            if work.state[other] == PRESENT:
                at = put(rows, at, work.first[other] + base, slack)
    rows.tolerance[row] = tolerance
    rows.equality[row] = equality
    work.owner[row] = product
    work.source[row] = source
    rows.start[row + 1] = at
    return at


@outlined
def write_program(tab, part, work, n, d, offset):
    """Writes the program of the products that are not absent.

    Args:
        offset: first product of the layout; states are counted from it.

    Returns:
        (columns, rows).
    """
    local, rows = work.local, work.lifted
    base = d + n
    columns = base
    row = 0
    at = 0
    g = tab.part_global[part]
    for b in range(tab.part_block[part], tab.part_block[part + 1]):
        begin, end = tab.block_product[b] - offset, tab.block_product[b + 1] - offset
        others = 0
        for k in range(begin, end):
            if work.state[k] == PRESENT:
                work.first[k] = columns
                columns += base + 1
                others += 1
        for k in range(begin, end):
            if work.state[k] <= ABSENT:
                continue
            members = tab.product_row[offset + k]
            for r in range(g + tab.product_row[offset + k + 1] - members):
                i = r if r < g else tab.member[members + r - g]
                for e in range(local.start[i], local.start[i + 1]):
                    a, j = local.coefficient[e], local.column[e]
                    at = put_copy(work, at, d, j, a, k, begin, end)
                at = close_row(
                    work, row, at, base, k, begin, end,
                    local.rhs[i], local.tolerance[i], local.equality[i], i,
                )  # fmt: skip
                row += 1
            for j in range(n):
                for upper in range(1, -1, -1):
                    if upper == 0 and j >= d:
                        continue
                    bound = work.high[j] if upper == 1 else -work.low[j]
                    at = put_copy(work, at, d, j, 1.0 if upper == 1 else -1.0, k, begin, end)
                    at = close_row(
                        work, row, at, base, k, begin, end,
                        bound, FEASIBILITY * max(1.0, bound), False,
                        bound_source(n, j, upper == 1),
                    )  # fmt: skip
                    row += 1
            if work.state[k] == REFERENCE and others > 0:
                for c in range(base + 1):
                    if c < base:
                        at = put(rows, at, c, -1.0)
                    for other in range(begin, end):
                        if work.state[other] == PRESENT:
                            at = put(rows, at, work.first[other] + c, 1.0)
                    rows.rhs[row] = 1.0 if c == base else 0.0
                    rows.tolerance[row] = FEASIBILITY
                    rows.equality[row] = False
                    work.owner[row] = k
                    work.source[row] = -1 - 2 * n
                    rows.start[row + 1] = at
                    row += 1
    return columns, row
