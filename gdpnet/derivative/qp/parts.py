"""The regularised programs of relaxations with several blocks, part by part.

See `core/include/gdpnet/blocks/path.hpp` for the program. Every block has copies of all columns of
its part; their sums are the same in all blocks, auxiliaries included, and the quadratic term stands
on every copy and on no sum. As in the hull, a copy's eta is at most its weight times the output's
range; without that, products without weight, even empty ones, would take up a share of eta.

Outputs whose ranges differ by many orders of magnitude may not be solved; `solved` tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gdpnet import core
from gdpnet.ir.data import RuleData
from gdpnet.ir.instance import Instance
from gdpnet.ir.rules import Rules
from gdpnet.solve.base import Gradients
from gdpnet.threads import workers_of

Array = np.ndarray


@dataclass(frozen=True)
class BlockPart:
    """A part of a layout.

    Attributes:
        outputs: their number.
        native: columns, rows, blocks and copies, as the core reads them.
    """

    outputs: int
    native: core.BlockPart


def block_part(
    rules: Rules,
    columns: Sequence[int],
    always: Sequence[int],
    blocks: Sequence[Sequence[Sequence[int]]],
) -> BlockPart:
    """A part of a layout.

    Args:
        rules: the rules.
        columns: of the part, outputs first.
        always: global rows, part of every product.
        blocks: rows of each product of each block.
    """
    data, table = rules.data, rules.table
    used = sorted({*always, *(i for block in blocks for product in block for i in product)})
    place = {i: k for k, i in enumerate(used)}
    lower = np.array([data.columns[j].lower for j in columns])
    upper = np.array([data.columns[j].upper for j in columns])
    bounds = [
        len(used) + 2 * j + side
        for j in range(len(columns))
        for side, end in enumerate((upper[j], lower[j]))
        if np.isfinite(end)
    ]
    d = sum(j < data.outputs for j in columns)
    first = len(used) + 2 * len(columns)
    bounds += [first + j for j in range(d) if np.isfinite(upper[j] - lower[j])]
    copies = [
        [*(place[i] for i in dict.fromkeys((*always, *product))), *bounds]
        for block in blocks
        for product in block
    ]
    equality = [data.rows[i].equality for i in used] + [False] * (2 * len(columns) + d)
    varying = {int(row): k for k, row in enumerate(table.varying)}
    entries = _entries(data, used, columns, d)
    return BlockPart(
        d,
        core.BlockPart(
            outputs=d,
            auxiliaries=len(columns) - d,
            columns=np.array(columns, dtype=np.int64),
            lower=lower,
            upper=upper,
            source=np.array(used, dtype=np.int64),
            varying=np.array([varying.get(i, -1) for i in used], dtype=np.int64),
            shared=np.ascontiguousarray(table.shared.numpy()[np.ix_(used, columns)]),
            first_copy=np.cumsum([0, *map(len, blocks)]).astype(np.int64),
            first_place=np.cumsum([0, *map(len, copies)]).astype(np.int64),
            row=np.array([r for copy in copies for r in copy], dtype=np.int64),
            equality=np.array(equality, dtype=np.bool_),
            start=np.cumsum([0, *map(len, entries)]).astype(np.int64),
            entry=np.array([j for row in entries for j in row], dtype=np.int64),
        ),
    )


def _entries(
    data: RuleData, rows: Sequence[int], columns: Sequence[int], d: int
) -> list[list[int]]:
    """Which of (p, q, lambda, a) stand in each row of a part's table."""
    place = {j: k for k, j in enumerate(columns)}
    named = [[place[j] for j, _ in data.rows[i].terms] for i in rows]
    named += [[k] for k in range(len(columns)) for _ in range(2)]
    named += [[k] for k in range(d)]
    found = []
    for own in named:
        copies = [(k, d + k) if k < d else (d + 1 + k,) for k in own]
        found.append(sorted({2 * d, *(j for copy in copies for j in copy)}))
    return found


@dataclass(frozen=True)
class RelaxedSolved:
    """Solutions of a batch.

    Attributes:
        y: the regularised point, (B, d); the prediction where a part was not solved.
        solved: where the end of the central path was reached, (B,) bool.
        bound: right sides, (B, m).
        varying: coefficients that depend on x, (B, k, n).
        yhat: predictions, (B, d).
        weights: of the outputs, (d,).
        eps: the regularisation.
        parts: each with the samples that have it, and where they left the central path.
        threads: as asked for, or None to choose.
    """

    y: Array
    solved: Array
    bound: Array
    varying: Array
    yhat: Array
    weights: Array
    eps: float
    parts: tuple[tuple[BlockPart, Array, Array], ...]
    threads: int | None

    def vjp(self, gradient: Array) -> Gradients:
        """Gradients of a loss from its gradient with respect to y, (B, d).

        What was not solved passes unchanged.
        """
        gradient = np.ascontiguousarray(gradient)
        zeros = np.zeros_like(self.bound), np.zeros_like(self.varying)
        found = Gradients(gradient.copy(), *zeros)
        for part, samples, path in self.parts:
            part.native.vjp(
                *(samples, self.bound, self.varying, self.yhat, self.weights, self.eps),
                path=path,
                gradient=gradient,
                to_yhat=found.yhat,
                to_bound=found.bound,
                to_varying=found.varying,
                threads=workers_of(self.threads),
                chosen=self.threads is not None,
            )
        if not self.solved.all():
            found.yhat[~self.solved] = gradient[~self.solved]
            found.bound[~self.solved] = 0.0
            found.varying[~self.solved] = 0.0
        return found


def solve_parts(
    parts: Sequence[tuple[BlockPart, Array]],
    instance: Instance,
    yhat: Array,
    weights: Array,
    eps: float,
    threads: int | None = None,
) -> RelaxedSolved:
    """Solves the regularised programs of a batch; outputs in no part stay where they are.

    Args:
        parts: each with the samples that have it.
        instance: the rules for the batch.
        yhat: predictions within the bounds, (B, d).
        weights: of the outputs, the largest 1, (d,).
        eps: the regularisation, positive.
        threads: how many, or None to choose.
    """
    bound, varying, yhat, weights = map(
        np.ascontiguousarray, (instance.bound, instance.varying, yhat, weights)
    )
    y, solved = yhat.copy(), np.ones(len(yhat), dtype=np.bool_)
    found = []
    for part, samples in parts:
        if part.outputs == 0:
            continue
        path = np.empty((len(samples), part.native.path_width))
        part.native.solve(
            *(samples, bound, varying, yhat, weights, eps, path, y, solved),
            *(workers_of(threads), threads is not None),
        )
        found.append((part, samples, path))
    y[~solved] = yhat[~solved]
    return RelaxedSolved(y, solved, bound, varying, yhat, weights, eps, tuple(found), threads)
