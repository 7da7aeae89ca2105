"""The loop over samples: the nearest point of every block, and the program of those that disagree.

The optimum of a part is at least the least distance of any of its blocks, and that of one block is
attained on one of its products: a small program over the part's columns, as in the exact engine.
So the block that is farthest from the prediction is asked first. Where its nearest point lies in a
product of every other block, it is the optimum, and a vertex of the whole lifted program: weights
are 0 or 1, and the point is a vertex of its product. Otherwise the program of that block and of
those whose products all miss the point is written and solved, and the others are asked again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from gdpnet.solve.exact._dictionary import (
    AGE,
    BASIC,
    FEASIBILITY,
    KINK,
    LOWER,
    LOWER_SOURCE,
    N_BASIC,
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
from gdpnet.solve.exact._jit import KERNEL, Array, inner, outlined, source_stamp
from gdpnet.solve.exact._simplex import INFEASIBLE, OPTIMAL, TROUBLE, dual_simplex, refactor
from gdpnet.solve.lifted._program import (
    ABSENT,
    PRESENT,
    REFERENCE,
    bound_source,
    dictionary,
    load_part,
    write_program,
)

# What became of a sample.
SOLVED, CONTRADICTORY, FAILED = 0, 1, 2

# A tight row of the final basis may miss its right side by this, relative to the tolerance.
_DRIFT = 10.0


class Output(NamedTuple):
    """Results of a batch.

    Attributes:
        y: (B, d).
        value: (B,).
        outcome: SOLVED, CONTRADICTORY or FAILED, (B,) int8.
        weight: of the products of the sample's layout, (B, products).
    """

    y: Array
    value: Array
    outcome: Array
    weight: Array


class Basis(NamedTuple):
    """The final basis of each sample; arrays of length 0 where nobody asked for it.

    The bases of a sample's parts stand one behind the other.

    Attributes:
        state: which products the final program has, (B, products) int8.
        count: columns that are not 0, by part, (B, parts).
        column: those columns of the program, (B, basis) int32.
        row: as many tight rows of the program, (B, basis) int32.
        value: values of those columns, (B, basis).
    """

    state: Array
    count: Array
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
def solve_product(tab, part, work, n, d, product, cutoff):
    """The nearest point of a product, in the dictionary; an outcome of the dual simplex."""
    rows = work.local
    dic = dictionary(work, n)
    start_dictionary(dic, work.low[:n], work.high[:n], work.zeros[:d], work.weights[:d])
    g = tab.part_global[part]
    members = tab.product_row[product]
    for r in range(g + tab.product_row[product + 1] - members):
        i = r if r < g else tab.member[members + r - g]
        if not enforce(dic, rows, i):
            return INFEASIBLE
    return settled(dic, rows, cutoff)


@inner
def settled(dic, rows, cutoff):
    """The dual simplex, again where its basis does not give what its rows ask for."""
    outcome = TROUBLE
    for attempt in range(3):
        if attempt == 2:
            reset_basis(dic)
        outcome = dual_simplex(dic, rows, cutoff)
        if outcome == OPTIMAL:
            if dic.counts[AGE] == 0 or tight(dic, rows):
                break
            if refactor(dic, rows):
                outcome = dual_simplex(dic, rows, cutoff)
                if outcome != OPTIMAL or tight(dic, rows):
                    break
            outcome = TROUBLE
        elif outcome != TROUBLE:
            break
    return outcome


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
def nearest_of_blocks(tab, part, work, n, d, offset):
    """Nearest points and least distances of all blocks.

    Returns:
        (outcome, block that is farthest).
    """
    farthest = 0
    first = tab.part_block[part]
    for j in range(n):
        work.point[j] = 0.0
    for b in range(tab.part_block[part + 1] - first):
        begin, end = tab.block_product[first + b], tab.block_product[first + b + 1]
        best = np.inf
        nearest = -1
        for k in range(begin, end):
            work.state[k - offset] = PRESENT
            if nearest < 0 and product_holds(tab, part, work, k, work.point):
                best = 0.0
                nearest = k
                for j in range(n):
                    work.points[b, j] = 0.0
        if nearest < 0:
            for k in range(begin, end):
                outcome = solve_product(tab, part, work, n, d, k, best)
                if outcome == TROUBLE:
                    return FAILED, farthest
                if outcome == INFEASIBLE:
                    work.state[k - offset] = ABSENT
                elif outcome == OPTIMAL:
                    dic = dictionary(work, n)
                    found = distance_of(dic)
                    if found < best:
                        best = found
                        nearest = k
                        for j in range(n):
                            work.points[b, j] = dic.real[VALUE, j]
            if nearest < 0:
                return CONTRADICTORY, farthest
        work.state[nearest - offset] = REFERENCE
        work.value[b] = best
        work.nearest[b] = nearest
        work.included[b] = False
        if best > work.value[farthest]:
            farthest = b
    return SOLVED, farthest


@outlined
def include_missed(tab, part, work):
    """Includes the blocks whose products all miss the point.  False if there is none."""
    first = tab.part_block[part]
    missed = False
    for b in range(tab.part_block[part + 1] - first):
        if work.included[b]:
            continue
        holds = product_holds(tab, part, work, work.nearest[b], work.point)
        if not holds:
            for k in range(tab.block_product[first + b], tab.block_product[first + b + 1]):
                if product_holds(tab, part, work, k, work.point):
                    holds = True
                    work.nearest[b] = k
                    break
        if not holds:
            work.included[b] = True
            missed = True
    return missed


@outlined
def solve_program(tab, part, work, n, d, offset):
    """Solves the program of the included blocks.

    Returns:
        (outcome, columns, value).
    """
    rows = work.lifted
    first = tab.part_block[part]
    for b in range(tab.part_block[part + 1] - first):
        if not work.included[b]:
            for k in range(tab.block_product[first + b], tab.block_product[first + b + 1]):
                # Out of the program, but not forgotten: it may be included later.
                work.state[k - offset] = -1 - work.state[k - offset]
    columns, count = write_program(tab, part, work, n, d, offset)
    for b in range(tab.part_block[part + 1] - first):
        if not work.included[b]:
            for k in range(tab.block_product[first + b], tab.block_product[first + b + 1]):
                work.state[k - offset] = -1 - work.state[k - offset]
    dic = dictionary(work, columns)
    start_dictionary(
        dic, work.zeros[:columns], work.infinite[:columns], work.zeros[: 2 * d],
        work.weights[: 2 * d],
    )  # fmt: skip
    for i in range(count):
        if not enforce(dic, rows, i):
            return CONTRADICTORY, columns, np.inf
    outcome = settled(dic, rows, np.inf)
    if outcome == INFEASIBLE:
        return CONTRADICTORY, columns, np.inf
    if outcome != OPTIMAL:
        return FAILED, columns, np.inf
    for j in range(n):
        work.point[j] = dic.real[VALUE, d + j]
        if j < d:
            work.point[j] = dic.real[VALUE, j] - dic.real[VALUE, d + j]
    return SOLVED, columns, distance_of(dic)


@inner
def write_weights(tab, part, work, n, d, offset, columns, weight):
    """Writes the weights of a part's products; `columns` is 0 where no program was solved."""
    first = tab.part_block[part]
    dic = dictionary(work, max(columns, 1))
    for b in range(tab.part_block[part + 1] - first):
        begin, end = (
            tab.block_product[first + b] - offset,
            tab.block_product[first + b + 1] - offset,
        )
        rest = 1.0
        for k in range(begin, end):
            weight[k] = 0.0
            if columns > 0 and work.included[b] and work.state[k] == PRESENT:
                weight[k] = min(max(dic.real[VALUE, work.first[k] + d + n], 0.0), 1.0)
                rest -= weight[k]
        weight[work.nearest[b] - offset] = max(rest, 0.0)


@inner
def keep(basis, s, at, column, row, value):
    """Keeps one column of the final basis and a tight row."""
    if column >= 0:
        basis.column[s, at] = column
        basis.value[s, at] = value
    if row >= 0:
        basis.row[s, at] = row


@outlined
def keep_program_basis(work, columns, basis, s, at):
    """Keeps the final basis of a program.  Returns the number of its columns."""
    dic = dictionary(work, columns)
    count = 0
    tight_rows = 0
    for j in range(columns):
        if dic.slots[PLACE, j] >= 0:
            keep(basis, s, at + count, j, -1, dic.real[VALUE, j])
            count += 1
    for p in range(columns):
        j = dic.slots[NONBASIC, p]
        if j >= columns:
            keep(basis, s, at + tight_rows, -1, j - columns, 0.0)
            tight_rows += 1
    for j in range(columns):
        if dic.slots[PLACE, j] < 0 and dic.real[VALUE, j] != 0.0:
            up = dic.real[VALUE, j] == dic.real[UPPER, j]
            row = dic.slots[UPPER_SOURCE, j] if up else dic.slots[LOWER_SOURCE, j]
            keep(basis, s, at + count, j, row, dic.real[VALUE, j])
            count += 1
    return count


@inner
def row_from(work, count, source):
    """The row of the program that comes from a source; all of one product."""
    for row in range(count):
        if work.source[row] == source:
            return row
    return -1


@outlined
def keep_product_basis(work, n, d, rows, basis, s, at):
    """Keeps the final basis of a product as one of the program of that product alone."""
    dic = dictionary(work, n)
    count = 0
    tight_rows = 0
    for j in range(n):
        if dic.slots[PLACE, j] >= 0:
            column = j if j < d and dic.real[SLOPE, j] > 0.0 else d + j
            keep(basis, s, at + count, column, -1, abs(dic.real[VALUE, j]))
            count += 1
    for p in range(n):
        i = dic.slots[NONBASIC, p] - n
        if i >= 0:
            keep(basis, s, at + tight_rows, -1, row_from(work, rows, i), 0.0)
            tight_rows += 1
    for j in range(n):
        value = dic.real[VALUE, j]
        if dic.slots[PLACE, j] >= 0 or value == 0.0:
            continue
        up = value == dic.real[UPPER, j]
        source = dic.slots[UPPER_SOURCE, j] if up else dic.slots[LOWER_SOURCE, j]
        if source < 0:
            source = bound_source(n, j, up)
        column = j if j < d and value > 0.0 else d + j
        keep(basis, s, at + count, column, row_from(work, rows, source), abs(value))
        count += 1
    return count


@outlined
def solve_part(src, tab, part, work, n, d, offset, out, basis, s, slot, at):
    """Solves a part and writes its results.

    Args:
        offset: first product of the layout.
        slot: number of the part in the layout.
        at: where its basis begins.

    Returns:
        (outcome, value, end of its basis).
    """
    outcome, farthest = nearest_of_blocks(tab, part, work, n, d, offset)
    if outcome != SOLVED:
        return outcome, np.inf, at
    for j in range(n):
        work.point[j] = work.points[farthest, j]
    value = work.value[farthest]
    work.included[farthest] = True
    columns = 0
    while include_missed(tab, part, work):
        outcome, columns, value = solve_program(tab, part, work, n, d, offset)
        if outcome != SOLVED:
            return outcome, np.inf, at
    write_weights(tab, part, work, n, d, offset, columns, out.weight[s])
    for k in range(d):
        j = tab.column[tab.part_column[part] + k]
        out.y[s, j] = min(max(work.shift[k] + work.point[k], src.lower[j]), src.upper[j])
    if basis.state.shape[0] > 0:
        first = tab.part_block[part]
        for b in range(tab.part_block[part + 1] - first):
            for k in range(tab.block_product[first + b], tab.block_product[first + b + 1]):
                here = work.included[b]
                if columns == 0:
                    here = here and k == work.nearest[b]
                basis.state[s, k - offset] = work.state[k - offset] if here else ABSENT
        count = 0
        if columns > 0:
            count = keep_program_basis(work, columns, basis, s, at)
        elif value > 0.0:
            for k in range(tab.block_product[tab.part_block[part]] - offset,
                           tab.block_product[tab.part_block[part + 1]] - offset):  # fmt: skip
                work.state[k] = basis.state[s, k]
            _, rows = write_program(tab, part, work, n, d, offset)
            solve_product(tab, part, work, n, d, work.nearest[farthest], np.inf)
            count = keep_product_basis(work, n, d, rows, basis, s, at)
        basis.count[s, slot] = count
        at += count
    return SOLVED, value, at


def _compile(stamp: int) -> Any:
    @njit(cache=True, **KERNEL)
    def run(begin, end, src, tab, number, layout, bound, varying, start, weights, work, out, basis):
        """Solves the samples [begin, end).

        Args:
            src: rows of the rules.
            tab: layouts.
            number: a layout's place in the tables, by the caller's number, (layouts,).
            layout: the caller's number of each sample's layout, (B,).
            bound: right sides, (B, m).
            varying: coefficients that depend on x, (B, k, n).
            start: predictions within the bounds, (B, d).
            weights: (d,).
        """
        _ = stamp
        for s in range(begin, end):
            chosen = number[layout[s]]
            first = tab.layout_part[chosen]
            offset = tab.block_product[tab.part_block[first]]
            out.outcome[s] = SOLVED
            value = 0.0
            at = 0
            for j in range(out.y.shape[1]):
                out.y[s, j] = start[s, j]
            for k in range(out.weight.shape[1]):
                out.weight[s, k] = 0.0
            for part in range(first, tab.layout_part[chosen + 1]):
                n, d = load_part(
                    src, tab, part, work, start[s], weights, bound[s], varying[s]
                )  # fmt: skip
                outcome, least, at = solve_part(
                    src, tab, part, work, n, d, offset, out, basis, s, part - first, at
                )
                out.outcome[s] = max(out.outcome[s], outcome)
                value += least
            out.value[s] = value
            if out.outcome[s] != SOLVED:
                for j in range(out.y.shape[1]):
                    out.y[s, j] = np.nan

    return run


run = _compile(source_stamp("_dictionary", "_simplex", "../lifted/_program", "../lifted/_kernel"))
