"""Derivatives of the vertex, read off the final basis.

The columns that are not 0 solve as many tight rows of the program. Its matrix and right sides
depend on the prediction, the right sides and the coefficients of the rules, so that the gradient
of a loss needs one transposed system a sample: with mu its solution, a tight row

    a_i u_k <= weight_k (b_i - a_i yhat)

adds mu weight_k to the gradient of b_i, and - mu (u_k + weight_k yhat) to that of a_i.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from gdpnet.kernels._jit import KERNEL, inner, source_stamp
from gdpnet.kernels.exact._jacobian import solve_in_place
from gdpnet.kernels.extended._kernel import SOLVED
from gdpnet.kernels.extended._program import (
    FIRST,
    OWNER,
    PRESENT,
    RANK,
    SHIFT,
    SOURCE,
    STATE,
    block_span,
    load_part,
    write_program,
)


@inner
def restore(tab, part, work, offset, state, rank):
    """Brings back which products the final program has."""
    first = tab.part_block[part]
    for b in range(tab.part_block[part + 1] - first):
        begin, end = block_span(tab, first + b, offset)
        work.blocks[RANK, b] = rank[b]
        for k in range(begin, end):
            work.products[STATE, k] = state[k]


@inner
def copy_of(tab, part, work, n, d, offset, product, x, copy):
    """Reads the copy of a product, measured from the prediction.  Returns its weight."""
    base = n + d
    if work.products[STATE, product] == PRESENT:
        first = work.products[FIRST, product]
        for j in range(n):
            copy[j] = x[first + d + j] if j >= d else x[first + j] - x[first + d + j]
        return x[first + base]
    for j in range(n):
        copy[j] = x[d + j] if j >= d else x[j] - x[d + j]
    rest = 1.0
    for b in range(tab.part_block[part], tab.part_block[part + 1]):
        begin, end = block_span(tab, b, offset)
        if not begin <= product < end:
            continue
        for other in range(begin, end):
            if work.products[STATE, other] == PRESENT:
                first = work.products[FIRST, other]
                rest -= x[first + base]
                for j in range(n):
                    copy[j] -= x[first + d + j] if j >= d else x[first + j] - x[first + d + j]
    return rest


def _compile(stamp: int) -> Any:
    @njit(cache=True, **KERNEL)
    def vjp_extended(
        src, tab, layout, bound, varying, start, weights, work,
        outcome, basis, gradient, to_start, to_bound, to_varying,
    ):  # fmt: skip
        """Adds to the gradients what the tight rows of every sample say."""
        _ = stamp
        for s in range(gradient.shape[0]):
            if outcome[s] != SOLVED:
                continue
            begin = tab.layout_part[layout[s]]
            offset = tab.block_product[tab.part_block[begin]]
            at = 0
            for part in range(begin, tab.layout_part[layout[s] + 1]):
                count = basis.size[s, part - begin]
                if count == 0:
                    continue
                n, d = load_part(src, tab, part, work, start[s], weights, bound[s], varying[s])
                block = tab.part_block[part] - tab.part_block[begin]
                restore(tab, part, work, offset, basis.state[s], basis.rank[s][block:])
                columns, _rows = write_program(tab, part, work, n, d, offset)
                x = work.real[:columns]
                right = work.real[columns : 2 * columns]
                copy = work.real[2 * columns : 3 * columns]
                line = work.slots[:columns]
                matrix = work.factor[: count * count].reshape(count, count)
                for j in range(columns):
                    x[j] = 0.0
                    line[j] = -1
                for k in range(count):
                    j = basis.column[s, at + k]
                    x[j] = basis.value[s, at + k]
                    line[j] = k
                    right[k] = 0.0
                    if j < 2 * d:
                        output = tab.column[tab.part_column[part] + (j if j < d else j - d)]
                        right[k] = gradient[s, output] if j < d else -gradient[s, output]
                    for t in range(count):
                        matrix[k, t] = 0.0
                rows = work.lifted
                for t in range(count):
                    row = basis.row[s, at + t]
                    for e in range(rows.start[row], rows.start[row + 1]):
                        if line[rows.column[e]] >= 0:
                            matrix[line[rows.column[e]], t] += rows.coefficient[e]
                solve_in_place(matrix, right, count)
                for t in range(count):
                    row = basis.row[s, at + t]
                    source = work.rows[SOURCE, row]
                    if right[t] == 0.0:
                        continue
                    share = copy_of(tab, part, work, n, d, offset, work.rows[OWNER, row], x, copy)
                    if source >= 0:
                        i = tab.row[tab.part_row[part] + source]
                        factor = right[t] * work.scale[source]
                        to_bound[s, i] += factor * share
                        for e in range(work.local.start[source], work.local.start[source + 1]):
                            k = work.local.column[e]
                            j = tab.column[tab.part_column[part] + k]
                            if k < d:
                                to_start[s, j] -= right[t] * share * work.local.coefficient[e]
                            if src.varying[i] >= 0:
                                moved = copy[k] + share * work.columns[SHIFT, k]
                                to_varying[s, src.varying[i], j] -= factor * moved
                    elif source >= -n:
                        k = -1 - source
                        if k < d:
                            j = tab.column[tab.part_column[part] + k]
                            to_start[s, j] -= right[t] * share
                    elif source >= -2 * n:
                        j = tab.column[tab.part_column[part] - 1 - n - source]
                        to_start[s, j] += right[t] * share
                at += count

    return vjp_extended


vjp_extended = _compile(
    source_stamp(
        "kernels/exact/_dictionary",
        "kernels/exact/_jacobian",
        "kernels/extended/_program",
        "kernels/extended/_kernel",
        "kernels/extended/_jacobian",
    )
)
