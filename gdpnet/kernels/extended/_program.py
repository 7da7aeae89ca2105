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

from gdpnet.kernels._jit import Array, inner, outlined
from gdpnet.kernels.exact._dictionary import (
    FEASIBILITY,
    FROM_BOX,
    KINK,
    LOWER_SOURCE,
    N_BASIC,
    N_COUNT,
    N_INDEX,
    N_REAL,
    NONBASIC,
    PLACE,
    UPPER,
    UPPER_SOURCE,
    Dictionary,
    Rows,
)
from gdpnet.kernels.extended._tables import Extent, Sources

# Lines of `work.columns`: of a part's columns, measured from `SHIFT`. That is the prediction,
# or the lower bound of an auxiliary. Weights are those of P and of Q.
LOW, HIGH, SHIFT, WEIGHTS, POINT, ZERO = range(6)
N_LINES = 6

# Lines of `work.rows`: the product of each row of the program, and where it comes from: a row
# of the part, or see `bound_source`.
OWNER, SOURCE = range(2)

# Lines of `work.products`: the first column of a product's copy, and what the product is.
FIRST, STATE = range(2)
ABSENT, PRESENT, REFERENCE = range(3)

# Lines of `work.blocks`: the nearest product, or the one that holds the point, and which place
# the block has in the program: from 1 on, 0 if it is left out.
NEAREST, RANK = range(2)

# In `work.implied`: bounds of a column that a row of the product makes redundant (bits).
UPPER_IMPLIED, LOWER_IMPLIED = 1, 2


class ExtendedWorkspace(NamedTuple):
    """Memory of one thread; nothing is allocated for a sample."""

    local: Rows  # rows of the part for one product, measured from the prediction
    lifted: Rows  # rows of the program
    scale: Array  # of the part's rows, (m,)
    size: Array  # max(1, |b|, max |a|) of the part's rows, scaled: what `tol` is relative to, (m,)
    place: Array  # a column of the rules in the part, (n,)
    implied: Array  # (n,)
    columns: Array  # (N_LINES, 2 n)
    rows: Array  # (2, rows of the program)
    products: Array  # (2, products of the layout)
    blocks: Array  # (2, blocks of the part)
    points: Array  # nearest point of each block, and behind it its distance, (blocks, n + 1)
    real: Array  # memory of the dictionaries, whose size is the program's
    slots: Array
    tableau: Array
    factor: Array
    counts: Array
    enforced: Array
    flag: Array


def new_extended_workspace(src: Sources, size: Extent) -> ExtendedWorkspace:
    """Memory for one thread."""
    n, c = src.lower.size, size.columns

    def rows() -> Rows:
        return Rows(
            start=np.zeros(size.rows + 1, np.int64),
            column=np.zeros(size.entries, np.int64),
            coefficient=np.zeros(size.entries),
            rhs=np.zeros(size.rows),
            tolerance=np.zeros(size.rows),
            equality=np.zeros(size.rows, np.bool_),
            integer=np.zeros(c, np.bool_),
        )

    return ExtendedWorkspace(
        local=rows(),
        lifted=rows(),
        scale=np.ones(size.rows),
        size=np.ones(size.rows),
        place=np.zeros(n, np.int64),
        implied=np.zeros(n, np.int8),
        columns=np.zeros((N_LINES, 2 * n)),
        rows=np.zeros((2, size.rows), np.int64),
        products=np.zeros((2, size.products), np.int64),
        blocks=np.zeros((2, size.blocks), np.int64),
        points=np.zeros((size.blocks, n + 1)),
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
def block_span(tab, block, offset):
    """The products of a block, counted from `offset`, the first product of the layout."""
    return tab.block_product[block] - offset, tab.block_product[block + 1] - offset


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
    lines = work.columns
    for k in range(n):
        j = tab.column[first + k]
        work.place[j] = k
        if k < d:
            lines[SHIFT, k] = start[j]
            lines[WEIGHTS, k] = weights[j]
            lines[WEIGHTS, d + k] = weights[j]
        else:
            lines[SHIFT, k] = src.lower[j]
        lines[LOW, k] = src.lower[j] - lines[SHIFT, k]
        lines[HIGH, k] = src.upper[j] - lines[SHIFT, k]
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
        work.size[r] = max(factor, abs(slack))
        for e in range(src.start[i], src.start[i + 1]):
            j = src.column[e]
            a = varying[v, j] * factor if v >= 0 else src.coefficient[e]
            rows.column[at] = work.place[j]
            rows.coefficient[at] = a
            work.size[r] = max(work.size[r], abs(a))
            at += 1
            slack -= a * lines[SHIFT, work.place[j]]
        work.scale[r] = factor
        rows.rhs[r] = slack
        rows.equality[r] = src.equality[i]
        rows.start[r + 1] = at
    return n, d


@inner
def bound_source(n, j, upper):
    """The source of a row that is a bound of column j."""
    return -1 - j if upper else -1 - n - j


@inner
def sign_source(n):
    """The source of a row that is the sign of a column."""
    return -1 - 2 * n


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
    if work.products[STATE, product] == PRESENT:
        f = work.products[FIRST, product]
        if j < d:
            at = put(rows, at, f + j, a)
        return put(rows, at, f + d + j, a if j >= d else -a)
    if j < d:
        at = put(rows, at, j, a)
    at = put(rows, at, d + j, a if j >= d else -a)
    for other in range(begin, end):
        if work.products[STATE, other] == PRESENT:
            f = work.products[FIRST, other]
            if j < d:
                at = put(rows, at, f + j, -a)
            at = put(rows, at, f + d + j, -a if j >= d else a)
    return at


@inner
def close_row(work, row, at, base, product, begin, end, slack, tolerance, equality, source):
    """Writes `- weight slack` and the right side of a row."""
    rows = work.lifted
    if work.products[STATE, product] == PRESENT:
        at = put(rows, at, work.products[FIRST, product] + base, -slack)
        rows.rhs[row] = 0.0
    else:
        rows.rhs[row] = slack
        for other in range(begin, end):
            if work.products[STATE, other] == PRESENT:
                at = put(rows, at, work.products[FIRST, other] + base, slack)
    rows.tolerance[row] = tolerance
    rows.equality[row] = equality
    work.rows[OWNER, row] = product
    work.rows[SOURCE, row] = source
    rows.start[row + 1] = at
    return at


@inner
def mark_implied(work, i):
    """Marks a bound that a row with one entry makes redundant."""
    local, lines = work.local, work.columns
    e = local.start[i]
    if local.start[i + 1] != e + 1 or local.coefficient[e] == 0.0:
        return
    j = local.column[e]
    bound = local.rhs[i] / local.coefficient[e]
    both = local.equality[i]
    if (both or local.coefficient[e] > 0.0) and bound < lines[HIGH, j]:
        work.implied[j] |= UPPER_IMPLIED
    if (both or local.coefficient[e] < 0.0) and bound > lines[LOW, j]:
        work.implied[j] |= LOWER_IMPLIED


@outlined
def write_block(tab, part, work, n, d, offset, block, columns, row):
    """Adds a block, its products that are not absent, to a program of some columns and rows.

    States of products are counted from `offset`, the first product of the layout.

    Returns:
        (columns, rows) of the program with the block.
    """
    local, rows, products = work.local, work.lifted, work.products
    base = d + n
    at = rows.start[row]
    g = tab.part_global[part]
    begin, end = block_span(tab, tab.part_block[part] + block, offset)
    others = 0
    for k in range(begin, end):
        if products[STATE, k] == PRESENT:
            products[FIRST, k] = columns
            columns += base + 1
            others += 1
    for k in range(begin, end):
        if products[STATE, k] == ABSENT:
            continue
        for j in range(n):
            work.implied[j] = 0
        members = tab.product_row[offset + k]
        for r in range(g + tab.product_row[offset + k + 1] - members):
            i = r if r < g else tab.member[members + r - g]
            mark_implied(work, i)
            for e in range(local.start[i], local.start[i + 1]):
                a, j = local.coefficient[e], local.column[e]
                at = put_copy(work, at, d, j, a, k, begin, end)
            at = close_row(
                work, row, at, base, k, begin, end,
                local.rhs[i], local.tolerance[i], local.equality[i], i,
            )  # fmt: skip
            row += 1
        for j in range(n):
            for side in range(2):
                upper = side == 0
                if work.implied[j] & (UPPER_IMPLIED if upper else LOWER_IMPLIED) != 0:
                    continue
                if not upper and j >= d:
                    continue
                bound = work.columns[HIGH, j] if upper else -work.columns[LOW, j]
                at = put_copy(work, at, d, j, 1.0 if upper else -1.0, k, begin, end)
                at = close_row(
                    work, row, at, base, k, begin, end,
                    bound, FEASIBILITY * max(1.0, bound), False, bound_source(n, j, upper),
                )  # fmt: skip
                row += 1
        if products[STATE, k] == PRESENT or others == 0:
            continue
        for c in range(base + 1):
            if c < base:
                at = put(rows, at, c, -1.0)
            for other in range(begin, end):
                if products[STATE, other] == PRESENT:
                    at = put(rows, at, products[FIRST, other] + c, 1.0)
            rows.rhs[row] = 1.0 if c == base else 0.0
            rows.tolerance[row] = FEASIBILITY
            rows.equality[row] = False
            work.rows[OWNER, row] = k
            work.rows[SOURCE, row] = sign_source(n)
            rows.start[row + 1] = at
            row += 1
    return columns, row


@inner
def write_program(tab, part, work, n, d, offset):
    """Writes the program of the blocks that have a rank.  Returns (columns, rows)."""
    columns, row = d + n, 0
    count = tab.part_block[part + 1] - tab.part_block[part]
    for rank in range(1, count + 1):
        for b in range(count):
            if work.blocks[RANK, b] == rank:
                columns, row = write_block(tab, part, work, n, d, offset, b, columns, row)
    return columns, row


@outlined
def widen(work, old, new):
    """Makes room in the dictionary for more columns, which rest at 0 and cost nothing."""
    before = dictionary(work, old)
    after = dictionary(work, new)
    # Lines grow apart, so the last ones have to be moved first.
    for k in range(work.counts[N_BASIC] - 1, -1, -1):
        for p in range(new - 1, -1, -1):
            after.tableau[k, p] = before.tableau[k, p] if p < old else 0.0
    for line in range(N_REAL - 1, -1, -1):
        for p in range(new - 1, -1, -1):
            after.real[line, p] = before.real[line, p] if p < old else 0.0
    for line in range(N_INDEX - 1, -1, -1):
        for p in range(new - 1, -1, -1):
            after.slots[line, p] = before.slots[line, p] if p < old else 0
    for p in range(old):
        if after.slots[NONBASIC, p] >= old:
            after.slots[NONBASIC, p] += new - old
    for j in range(old, new):
        after.real[UPPER, j] = np.inf
        after.real[KINK, j] = -np.inf
        after.slots[NONBASIC, j] = j
        after.slots[PLACE, j] = -1 - j
        after.slots[LOWER_SOURCE, j] = FROM_BOX
        after.slots[UPPER_SOURCE, j] = FROM_BOX
