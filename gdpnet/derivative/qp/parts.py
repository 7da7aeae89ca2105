"""The regularised programs of relaxations with several blocks, part by part.

See `core/include/gdpnet/blocks/path.hpp` for the program. Every block has copies of all columns of
its part; their sums are the same in all blocks, auxiliaries included, and the quadratic term stands
on every copy and on no sum. As in the hull, a copy's eta is at most its weight times the output's
range; without that, products without weight, even empty ones, would take up a share of eta. What a
product chooses may cost something: its price times its weight is part of the objective.

Outputs whose ranges differ by many orders of magnitude may not be solved; `solved` tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

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
        payers: which booleans with a price each product chooses, (priced, copies) of 0 and 1.
        native: columns, rows, blocks and copies, as the core reads them.
    """

    outputs: int
    payers: Array
    native: core.BlockPart


def block_part(
    rules: Rules,
    columns: Sequence[int],
    always: Sequence[int],
    blocks: Sequence[Sequence[Sequence[int]]],
    payers: Array | None = None,
) -> BlockPart:
    """A part of a layout.

    Args:
        rules: the rules.
        columns: of the part, outputs first.
        always: global rows, part of every product.
        blocks: rows of each product of each block.
        payers: which booleans with a price each of these products chooses, (priced, products) of 0
            and 1; None where none has one.
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
        np.zeros((0, len(copies))) if payers is None else payers,
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


class SolvedPart(NamedTuple):
    """A part of the layouts of some samples.

    Attributes:
        part: the part.
        samples: that have it, (size,).
        price: of its products, (size, copies); (size, 0) where nothing costs anything.
        path: where they left the central path.
    """

    part: BlockPart
    samples: Array
    price: Array
    path: Array


@dataclass(frozen=True)
class RelaxedSolved:
    """Solutions of a batch.

    Attributes:
        y: the regularised point, (B, d); the prediction where a part was not solved.
        solved: whether all parts of a sample were solved, (B,) bool.
        instance: the rules for the batch.
        yhat: predictions within the bounds, (B, d).
        weights: of the outputs, (d,).
        eps: the regularisation.
        parts: what was solved.
        threads: as asked for, or None to choose.
    """

    y: Array
    solved: Array
    instance: Instance
    yhat: Array
    weights: Array
    eps: float
    parts: tuple[SolvedPart, ...]
    threads: int | None

    def vjp(self, gradient: Array) -> Gradients:
        """Gradients of a loss from its gradient with respect to y, (B, d).

        What was not solved passes unchanged.
        """
        gradient = np.ascontiguousarray(gradient)
        bound, varying, price = self.instance.bound, self.instance.varying, self.instance.price
        found = Gradients(
            *(gradient.copy(), np.zeros(bound.shape), np.zeros(varying.shape)),
            np.zeros(price.shape) if price.shape[1] else None,
        )
        for part, samples, own, path in self.parts:
            to_price = np.zeros(own.shape)
            part.native.vjp(
                *(samples, bound, varying, self.yhat, self.weights, self.eps, own),
                path=path,
                gradient=gradient,
                to_yhat=found.yhat,
                to_bound=found.bound,
                to_varying=found.varying,
                to_price=to_price,
                threads=workers_of(self.threads),
                chosen=self.threads is not None,
            )
            if found.price is not None and own.shape[1]:
                found.price[samples] += to_price @ part.payers.T
        if not self.solved.all():
            found.yhat[~self.solved] = gradient[~self.solved]
            for other in found[1:]:
                if other is not None:
                    other[~self.solved] = 0.0
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
        instance: the rules for the batch, prices in units of what is minimised.
        yhat: predictions within the bounds, (B, d).
        weights: of the outputs, the largest 1, (d,).
        eps: the regularisation, positive.
        threads: how many, or None to choose.
    """
    yhat, weights = np.ascontiguousarray(yhat), np.ascontiguousarray(weights)
    instance = instance._replace(
        bound=np.ascontiguousarray(instance.bound), varying=np.ascontiguousarray(instance.varying)
    )
    y, solved = yhat.copy(), np.ones(len(yhat), dtype=np.bool_)
    found = []
    for part, samples in parts:
        if part.outputs == 0:
            continue
        price = np.zeros((len(samples), 0))
        if part.payers.any():
            price = np.ascontiguousarray(instance.price[samples] @ part.payers)
        path = np.empty((len(samples), part.native.path_width))
        part.native.solve(
            *(samples, instance.bound, instance.varying, yhat, weights, eps, price, path, y),
            *(solved, workers_of(threads), threads is not None),
        )
        found.append(SolvedPart(part, samples, price, path))
    y[~solved] = yhat[~solved]
    return RelaxedSolved(y, solved, instance, yhat, weights, eps, tuple(found), threads)
