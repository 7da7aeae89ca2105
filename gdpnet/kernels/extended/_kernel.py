"""The loop over samples: the nearest point of every block, and the program of those that disagree.

The optimum of a part is at least the least distance of any of its blocks, and that of one block is
attained on one of its products: a small program over the part's columns, as in the exact engine.
So the block that is farthest from the prediction is asked first. Where its nearest point lies in a
product of every other block, it is the optimum, and a vertex of the whole lifted program: weights
are 0 or 1, and the point is a vertex of its product. Otherwise the program of that block is
written, and of the blocks whose products all miss the point the farthest is added, until none is
left: new columns cost nothing and new rows are at most violated, so the dual simplex goes on from
its last basis.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from gdpnet.kernels._jit import KERNEL, Array, inner, outlined, source_stamp
from gdpnet.kernels.exact._dictionary import (
    AGE,
    LOWER,
    LOWER_SOURCE,
    NONBASIC,
    PLACE,
    SLOPE,
    UPPER,
    UPPER_SOURCE,
    VALUE,
    distance_of,
    enforce,
    reset_basis,
    row_excess,
    row_holds,
    start_dictionary,
)
from gdpnet.kernels.exact._simplex import INFEASIBLE, OPTIMAL, TROUBLE, dual_simplex, refactor
from gdpnet.kernels.extended._program import (
    ABSENT,
    FIRST,
    HIGH,
    LOW,
    NEAREST,
    POINT,
    PRESENT,
    RANK,
    REFERENCE,
    SHIFT,
    SOURCE,
    STATE,
    WEIGHTS,
    ZERO,
    block_span,
    bound_source,
    dictionary,
    load_part,
    widen,
    write_block,
    write_program,
)

# What became of a sample.
SOLVED, CONTRADICTORY, FAILED = 0, 1, 2

NO_BLOCK = -2

# A tight row of the final basis may miss its right side by this many tolerances.
_DRIFT = 10.0


class ExtendedOutput(NamedTuple):
    """Results of a batch.

    Attributes:
        y: (B, d).
        value: (B,).
        outcome: SOLVED, CONTRADICTORY or FAILED, (B,) int8.
        weight: of the products of the sample's layout, (B, products).
        product: the first product of each block that y satisfies, -1 if none, NO_BLOCK beyond the
            number of blocks, (B, blocks) int32.
    """

    y: Array
    value: Array
    outcome: Array
    weight: Array
    product: Array


class Basis(NamedTuple):
    """The final basis of each sample; arrays of length 0 where nobody asked for it.

    The bases of a sample's parts stand one behind the other.

    Attributes:
        state: what the products are in the final program, (B, products) int8.
        rank: places of the blocks in the final program, 0 for those it has not, (B, blocks) int32.
        size: columns that are not 0, by part, (B, parts).
        column: those columns of the program, (B, basis) int32.
        row: as many tight rows of the program, (B, basis) int32.
        value: values of those columns, (B, basis).
    """

    state: Array
    rank: Array
    size: Array
    column: Array
    row: Array
    value: Array


@inner
def product_holds(tab, part, work, product, z):
    """Whether the rows of a product hold at z, measured from the prediction."""
    for i in range(tab.part_global[part]):
        if not row_holds(work.local, i, z):
            return False
    for e in range(tab.product_row[product], tab.product_row[product + 1]):
        if not row_holds(work.local, tab.member[e], z):
            return False
    return True


@outlined
def settle(dic, rows, cutoff):
    """The dual simplex, again where its basis does not give what its rows ask for."""
    for attempt in range(4):
        if attempt == 2:
            reset_basis(dic)
        outcome = dual_simplex(dic, rows, cutoff)
        if outcome == OPTIMAL:
            if dic.counts[AGE] == 0 or tight(dic, rows):
                return OPTIMAL
            if not refactor(dic, rows):
                reset_basis(dic)
        elif outcome != TROUBLE:
            return outcome
    return TROUBLE


@inner
def tight(dic, rows):
    """Whether the rows of the basis hold with equality."""
    n = dic.real.shape[1]
    for p in range(n):
        i = dic.slots[NONBASIC, p] - n
        if i >= 0 and abs(row_excess(rows, i, dic.real[VALUE])) > _DRIFT * rows.tolerance[i]:
            return False
    return True


@outlined
def solve_product(tab, part, work, n, d, product, cutoff):
    """The nearest point of a product, in the dictionary; an outcome of the dual simplex."""
    rows, lines = work.local, work.columns
    dic = dictionary(work, n)
    start_dictionary(dic, lines[LOW][:n], lines[HIGH][:n], lines[ZERO][:d], lines[WEIGHTS][:d])
    g = tab.part_global[part]
    members = tab.product_row[product]
    for r in range(g + tab.product_row[product + 1] - members):
        if not enforce(dic, rows, r if r < g else tab.member[members + r - g]):
            return INFEASIBLE
    return settle(dic, rows, cutoff)


@outlined
def nearest_of_blocks(tab, part, work, n, d, offset):
    """Nearest points and least distances of all blocks.

    Returns:
        (outcome, block that is farthest).
    """
    blocks, products, points = work.blocks, work.products, work.points
    farthest = 0
    first = tab.part_block[part]
    for b in range(tab.part_block[part + 1] - first):
        begin, end = block_span(tab, first + b, offset)
        best = np.inf
        nearest = -1
        for k in range(begin, end):
            products[STATE, k] = PRESENT
            if nearest < 0 and product_holds(tab, part, work, offset + k, work.columns[ZERO]):
                best = 0.0
                nearest = k
                for j in range(n):
                    points[b, j] = 0.0
        if nearest < 0:
            for k in range(begin, end):
                outcome = solve_product(tab, part, work, n, d, offset + k, best)
                if outcome == TROUBLE:
                    return FAILED, farthest
                if outcome == INFEASIBLE:
                    products[STATE, k] = ABSENT
                elif outcome == OPTIMAL:
                    dic = dictionary(work, n)
                    found = distance_of(dic)
                    if found < best:
                        best = found
                        nearest = k
                        for j in range(n):
                            points[b, j] = dic.real[VALUE, j]
            if nearest < 0:
                return CONTRADICTORY, farthest
        products[STATE, nearest] = REFERENCE
        blocks[NEAREST, b] = nearest
        blocks[RANK, b] = 0
        points[b, n] = best
        if best > points[farthest, n]:
            farthest = b
    return SOLVED, farthest


@outlined
def farthest_missed(tab, part, work, n, offset):
    """Of the blocks whose products all miss the point the one with the largest distance, or -1."""
    blocks, point = work.blocks, work.columns[POINT]
    first = tab.part_block[part]
    found = -1
    for b in range(tab.part_block[part + 1] - first):
        if blocks[RANK, b] != 0:
            continue
        holds = product_holds(tab, part, work, offset + blocks[NEAREST, b], point)
        if not holds:
            begin, end = block_span(tab, first + b, offset)
            for k in range(begin, end):
                if product_holds(tab, part, work, offset + k, point):
                    holds = True
                    blocks[NEAREST, b] = k
                    break
        if not holds and (found < 0 or work.points[b, n] > work.points[found, n]):
            found = b
    return found


@outlined
def start_program(work, n, d):
    """A dictionary of the columns that all blocks share, at the prediction."""
    lines = work.columns
    dic = dictionary(work, d + n)
    for j in range(d + n):
        dic.real[LOWER, j] = 0.0
        dic.real[UPPER, j] = np.inf
    start_dictionary(
        dic, dic.real[LOWER], dic.real[UPPER], lines[ZERO][: 2 * d], lines[WEIGHTS][: 2 * d]
    )


@outlined
def add_block(tab, part, work, n, d, offset, block, columns, rows):
    """Adds a block to the program and to its dictionary, which stays dual feasible.

    Returns:
        (columns, rows), columns 0 on contradiction.
    """
    more, count = write_block(tab, part, work, n, d, offset, block, columns, rows)
    if more > columns:
        widen(work, columns, more)
    dic = dictionary(work, more)
    for i in range(rows, count):
        if not enforce(dic, work.lifted, i):
            return 0, count
    return more, count


@outlined
def solve_program(tab, part, work, n, d, offset, farthest):
    """Solves the program of the farthest block and of those that miss its point, one by one.

    Returns:
        (outcome, columns, value); columns 0 where no program is needed.
    """
    blocks, lines = work.blocks, work.columns
    columns, rows, rank = 0, 0, 1
    value = work.points[farthest, n]
    blocks[RANK, farthest] = rank
    for j in range(n):
        lines[POINT, j] = work.points[farthest, j]
    while True:
        missed = farthest_missed(tab, part, work, n, offset)
        if missed < 0:
            return SOLVED, columns, value
        rank += 1
        blocks[RANK, missed] = rank
        if rank == 2:
            start_program(work, n, d)
            columns, rows = add_block(tab, part, work, n, d, offset, farthest, d + n, 0)
        if columns > 0:
            columns, rows = add_block(tab, part, work, n, d, offset, missed, columns, rows)
        if columns == 0:
            return CONTRADICTORY, columns, np.inf
        dic = dictionary(work, columns)
        outcome = settle(dic, work.lifted, np.inf)
        if outcome == INFEASIBLE:
            return CONTRADICTORY, columns, np.inf
        if outcome != OPTIMAL:
            return FAILED, columns, np.inf
        for j in range(n):
            lines[POINT, j] = dic.real[VALUE, d + j]
            if j < d:
                lines[POINT, j] = dic.real[VALUE, j] - dic.real[VALUE, d + j]
        value = distance_of(dic)


@inner
def write_weights(tab, part, work, n, d, offset, columns, weight):
    """Writes the weights of a part's products; `columns` is 0 where no program was solved."""
    blocks, products = work.blocks, work.products
    first = tab.part_block[part]
    for b in range(tab.part_block[part + 1] - first):
        begin, end = block_span(tab, first + b, offset)
        reference = blocks[NEAREST, b]
        rest = 1.0
        if columns > 0 and blocks[RANK, b] != 0:
            dic = dictionary(work, columns)
            for k in range(begin, end):
                if products[STATE, k] == PRESENT:
                    weight[k] = min(max(dic.real[VALUE, products[FIRST, k] + d + n], 0.0), 1.0)
                    rest -= weight[k]
                elif products[STATE, k] == REFERENCE:
                    reference = k
        weight[reference] = max(rest, 0.0)


@inner
def row_within(work, i, z, tolerance):
    """Whether a row holds at z within a tolerance relative to its size."""
    excess = row_excess(work.local, i, z)
    if work.local.equality[i]:
        excess = abs(excess)
    return excess <= tolerance * work.size[i]


@outlined
def write_satisfied(tab, part, work, tolerance, product):
    """Writes the first product of each block that the point satisfies within a tolerance."""
    first, z = tab.part_block[part], work.columns[POINT]
    shared = True
    for i in range(tab.part_global[part]):
        shared = shared and row_within(work, i, z, tolerance)
    for b in range(tab.part_block[part + 1] - first):
        begin, end = block_span(tab, first + b, 0)
        product[b] = -1
        for k in range(begin, end if shared else begin):
            holds = True
            for e in range(tab.product_row[k], tab.product_row[k + 1]):
                if not row_within(work, tab.member[e], z, tolerance):
                    holds = False
                    break
            if holds:
                product[b] = k - begin
                break


@inner
def active_source(dic, j):
    """Whether a column that is not basic rests on its upper bound, and where the bound is from."""
    if dic.real[VALUE, j] == dic.real[UPPER, j]:
        return True, dic.slots[UPPER_SOURCE, j]
    return False, dic.slots[LOWER_SOURCE, j]


@outlined
def keep_program_basis(work, columns, column, row, value):
    """Keeps the final basis of a program.  Returns the number of its columns."""
    dic = dictionary(work, columns)
    count = 0
    tight_rows = 0
    for j in range(columns):
        if dic.slots[PLACE, j] >= 0:
            column[count] = j
            value[count] = dic.real[VALUE, j]
            count += 1
    for p in range(columns):
        if dic.slots[NONBASIC, p] >= columns:
            row[tight_rows] = dic.slots[NONBASIC, p] - columns
            tight_rows += 1
    for j in range(columns):
        if dic.slots[PLACE, j] < 0 and dic.real[VALUE, j] != 0.0:
            column[count] = j
            value[count] = dic.real[VALUE, j]
            _, row[count] = active_source(dic, j)
            count += 1
    return count


@inner
def row_from(work, count, source):
    """The row of the program of a single product that comes from a source."""
    for row in range(count):
        if work.rows[SOURCE, row] == source:
            return row
    return -1


@outlined
def keep_product_basis(work, n, d, rows, column, row, value):
    """Keeps the final basis of a product as one of the program of that product alone."""
    dic = dictionary(work, n)
    count = 0
    tight_rows = 0
    for j in range(n):
        if dic.slots[PLACE, j] >= 0:
            column[count] = j if j < d and dic.real[SLOPE, j] > 0.0 else d + j
            value[count] = abs(dic.real[VALUE, j])
            count += 1
    for p in range(n):
        if dic.slots[NONBASIC, p] >= n:
            row[tight_rows] = row_from(work, rows, dic.slots[NONBASIC, p] - n)
            tight_rows += 1
    for j in range(n):
        if dic.slots[PLACE, j] < 0 and dic.real[VALUE, j] != 0.0:
            upper, source = active_source(dic, j)
            if source < 0:
                source = bound_source(n, j, upper)
            column[count] = j if j < d and dic.real[VALUE, j] > 0.0 else d + j
            value[count] = abs(dic.real[VALUE, j])
            row[count] = row_from(work, rows, source)
            count += 1
    return count


@outlined
def keep_basis(tab, part, work, n, d, offset, columns, state, rank, column, row, value):
    """Keeps the final basis of a part.  Returns the number of its columns."""
    blocks, products = work.blocks, work.products
    first = tab.part_block[part]
    single = -1
    for b in range(tab.part_block[part + 1] - first):
        begin, end = block_span(tab, first + b, offset)
        rank[b] = blocks[RANK, b]
        for k in range(begin, end):
            if blocks[RANK, b] == 0:
                products[STATE, k] = ABSENT
            elif columns == 0:
                single = blocks[NEAREST, b]
                products[STATE, k] = REFERENCE if k == single else ABSENT
            state[k] = products[STATE, k]
    if columns > 0:
        return keep_program_basis(work, columns, column, row, value)
    _, rows = write_program(tab, part, work, n, d, offset)
    solve_product(tab, part, work, n, d, offset + single, np.inf)
    return keep_product_basis(work, n, d, rows, column, row, value)


@outlined
def solve_part(src, tab, part, work, n, d, offset, y, weight):
    """Solves a part and writes its outputs and weights.

    Returns:
        (outcome, value, columns of the last program, 0 where none was needed).
    """
    outcome, farthest = nearest_of_blocks(tab, part, work, n, d, offset)
    if outcome != SOLVED:
        return outcome, np.inf, 0
    outcome, columns, value = solve_program(tab, part, work, n, d, offset, farthest)
    if outcome != SOLVED:
        return outcome, np.inf, 0
    lines = work.columns
    write_weights(tab, part, work, n, d, offset, columns, weight)
    for k in range(d):
        j = tab.column[tab.part_column[part] + k]
        y[j] = min(max(lines[SHIFT, k] + lines[POINT, k], src.lower[j]), src.upper[j])
    return SOLVED, value, columns


def _compile(stamp: int) -> Any:
    @njit(cache=True, **KERNEL)
    def run_extended(
        begin, end, src, tab, layout, bound, varying, start, weights, tolerance, work, out, basis
    ):
        """Solves the samples [begin, end); `layout` is their place in the tables."""
        _ = stamp
        detailed = basis.state.shape[0] > 0
        for s in range(begin, end):
            first = tab.layout_part[layout[s]]
            offset = tab.block_product[tab.part_block[first]]
            out.outcome[s] = SOLVED
            out.value[s] = 0.0
            at = 0
            for j in range(out.y.shape[1]):
                out.y[s, j] = start[s, j]
            for k in range(out.weight.shape[1]):
                out.weight[s, k] = 0.0
            for b in range(out.product.shape[1]):
                out.product[s, b] = NO_BLOCK
            for part in range(first, tab.layout_part[layout[s] + 1]):
                n, d = load_part(src, tab, part, work, start[s], weights, bound[s], varying[s])
                outcome, value, columns = solve_part(
                    src, tab, part, work, n, d, offset, out.y[s], out.weight[s]
                )
                out.value[s] += value
                if outcome != SOLVED:
                    out.outcome[s] = outcome
                    for j in range(out.y.shape[1]):
                        out.y[s, j] = np.nan
                    break
                block = tab.part_block[part] - tab.part_block[first]
                write_satisfied(tab, part, work, tolerance, out.product[s][block:])
                if detailed:
                    size = keep_basis(
                        tab, part, work, n, d, offset, columns,
                        basis.state[s], basis.rank[s][block:],
                        basis.column[s][at:], basis.row[s][at:], basis.value[s][at:],
                    )  # fmt: skip
                    basis.size[s, part - first] = size
                    at += size

    return run_extended


run_extended = _compile(
    source_stamp(
        "kernels/exact/_dictionary",
        "kernels/exact/_simplex",
        "kernels/extended/_program",
        "kernels/extended/_kernel",
    )
)
