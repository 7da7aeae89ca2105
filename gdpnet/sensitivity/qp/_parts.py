"""The regularised program of a relaxation with several blocks, for samples of one layout.

See `_blocks` for the program. Every block has copies of all columns of its part; their sums are
the same in all blocks, auxiliaries included, and the quadratic term stands on every copy and on no
sum. As in the hull, a copy's eta is at most its weight times the output's range; without that,
products without weight, even empty ones, would take up a share of eta.

Outputs whose ranges differ by many orders of magnitude may not be solved; `solved` tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gdpnet.rules._data import RuleData
from gdpnet.rules.model import RuleModel
from gdpnet.sensitivity.qp._blocks import Path, new_path, solve_blocks, vjp_blocks
from gdpnet.sensitivity.qp._newton import Shape, new_newton
from gdpnet.solve.exact import Gradients, Instance

Array = np.ndarray


@dataclass(frozen=True)
class BlockPart:
    """A part of a layout, as the kernels read it.

    Attributes:
        columns: of the rules, outputs first.
        rows: rows of the rules that stand in it.
        shape: blocks and copies.
        lower: of the columns.
        upper: of the columns.
        shared: coefficients that depend on no input, (rows, columns).
        moving: rows whose coefficients depend on x, as (place among `rows`, place among the
            varying rows of the rules).
    """

    columns: Array
    rows: Array
    shape: Shape
    lower: Array
    upper: Array
    shared: Array
    moving: Array


def block_part(
    rules: RuleModel,
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
    entries = _entries(data, used, columns, d)
    varying = {int(row): k for k, row in enumerate(table.varying)}
    moving = [(k, varying[i]) for i, k in place.items() if i in varying]
    return BlockPart(
        columns=np.array(columns, dtype=np.int64),
        rows=np.array(used, dtype=np.int64),
        shape=Shape(
            outputs=d,
            auxiliaries=len(columns) - d,
            copies=np.cumsum([0, *map(len, blocks)]).astype(np.int64),
            rows=np.cumsum([0, *map(len, copies)]).astype(np.int64),
            row=np.array([r for copy in copies for r in copy], dtype=np.int64),
            equality=np.array(equality, dtype=np.bool_),
            start=np.cumsum([0, *map(len, entries)]).astype(np.int64),
            column=np.array([j for row in entries for j in row], dtype=np.int64),
        ),
        lower=lower,
        upper=upper,
        shared=table.shared.numpy()[np.ix_(used, columns)],
        moving=np.array(moving, dtype=np.int64).reshape(-1, 2),
    )


def _entries(
    data: RuleData, rows: Sequence[int], columns: Sequence[int], d: int
) -> list[list[int]]:
    """Which of (p, q, lambda, a) stand in each row of a part's table."""
    place = {j: k for k, j in enumerate(columns)}
    named = [[place[j] for j, _ in data.rows[i].terms] for i in rows]
    named += [[k] for k in range(len(columns)) for _ in range(2)]
    named += [[k] for k in range(d)]
    return [
        sorted({2 * d, *(k + 1 + d for k in own if k >= d)}
               | {k + side for k in own if k < d for side in (0, d)})
        for own in named
    ]  # fmt: skip


@dataclass(frozen=True)
class RelaxedQP:
    """Solutions of a batch of one part.

    Attributes:
        y: outputs of the part, (B, its outputs).
        solved: where the end of the central path was reached, (B,) bool.
        part: the part.
        instance: the rules of the batch.
        yhat: predictions within the box, (B, its outputs).
        eps: the regularisation.
        path: where each sample ended.
    """

    y: Array
    solved: Array
    part: BlockPart
    instance: Instance
    yhat: Array
    eps: float
    path: Path

    def vjp(self, gradient: Array) -> Gradients:
        """Gradients of a loss from its gradient with respect to y, (B, its outputs).

        `bound` and `varying` are over all rows of the rules, `yhat` over the part's outputs. What
        was not solved passes unchanged.
        """
        part = self.part
        gradient = np.ascontiguousarray(gradient)
        matrix, own = _matrix(part, self.instance), _bound(part, self.instance)
        to_yhat, to_bound, to_matrix = gradient.copy(), np.zeros_like(own), np.zeros_like(matrix)
        vjp_blocks(
            *(part.shape, matrix, own, part.lower, part.upper, self.yhat, self.eps),
            *(self.path, new_newton(part.shape), gradient, to_yhat, to_bound, to_matrix),
        )
        to_yhat[~self.solved] = gradient[~self.solved]
        to_bound[~self.solved] = 0.0
        to_matrix[~self.solved] = 0.0
        bound = np.zeros_like(self.instance.bound)
        bound[:, part.rows] = to_bound
        varying = np.zeros_like(self.instance.varying)
        for k, v in part.moving:
            varying[:, v, part.columns] = to_matrix[:, k]
        return Gradients(to_yhat, bound, varying)


def solve_relaxed_qp(
    part: BlockPart, instance: Instance, yhat: Array, weights: Array, eps: float
) -> RelaxedQP:
    """Solves the regularised program of a part.

    Args:
        part: of the layout that all samples have.
        instance: the rules for the batch.
        yhat: predictions of the part's outputs, within the box, (B, d).
        weights: of the part's outputs, the largest of all outputs 1, (d,).
        eps: the regularisation, positive.
    """
    yhat = np.ascontiguousarray(yhat)
    matrix, bound = _matrix(part, instance), _bound(part, instance)
    path = new_path(part.shape, len(yhat))
    y, solved = yhat.copy(), np.zeros(len(yhat), dtype=np.bool_)
    cost = np.empty(path.x.shape[2])
    solve_blocks(
        *(part.shape, matrix, bound, part.lower, part.upper, yhat, np.ascontiguousarray(weights)),
        *(eps, cost, path, new_newton(part.shape), y, solved),
    )
    y[~solved] = yhat[~solved]
    return RelaxedQP(y, solved, part, instance, yhat, eps, path)


@dataclass(frozen=True)
class RelaxedSolved:
    """Solutions of a batch over all parts of a layout.

    Attributes:
        y: the regularised point, (B, d); the prediction where a part was not solved.
        solved: (B,) bool.
        inside: coordinates of the prediction that the gradient may reach, (B, d) bool.
        instance: the rules of the batch.
        parts: one for each part.
    """

    y: Array
    solved: Array
    inside: Array
    instance: Instance
    parts: tuple[RelaxedQP, ...]

    def vjp(self, gradient: Array) -> Gradients:
        """Gradients of a loss from its gradient with respect to y, (B, d)."""
        yhat = gradient.copy()
        bound = np.zeros_like(self.instance.bound)
        varying = np.zeros_like(self.instance.varying)
        for part in self.parts:
            outputs = part.part.columns[: part.part.shape.outputs]
            found = part.vjp(gradient[:, outputs])
            yhat[:, outputs] = found.yhat
            bound += found.bound  # a row stands in one part only
            varying += found.varying
        yhat = np.where(self.inside, yhat, 0.0)
        yhat[~self.solved] = gradient[~self.solved]
        bound[~self.solved] = 0.0
        varying[~self.solved] = 0.0
        return Gradients(yhat, bound, varying)


def solve_parts(
    parts: Sequence[BlockPart], instance: Instance, yhat: Array, box: tuple[Array, Array],
    weights: Array, eps: float,
) -> RelaxedSolved:  # fmt: skip
    """Solves the regularised programs of all parts of a layout; other outputs are clipped.

    Args:
        parts: of the layout that all samples have.
        instance: the rules for the batch.
        yhat: predictions, (B, d).
        box: lower and upper bounds of the outputs, each (d,) or (B, d).
        weights: of the outputs, the largest 1, (d,).
        eps: the regularisation, positive.
    """
    clipped = np.clip(yhat, *box)
    y, solved = clipped.copy(), np.ones(len(yhat), dtype=np.bool_)
    found = []
    for part in parts:
        outputs = part.columns[: part.shape.outputs]
        if len(outputs):
            one = solve_relaxed_qp(part, instance, clipped[:, outputs], weights[outputs], eps)
            y[:, outputs] = one.y
            solved &= one.solved
            found.append(one)
    y[~solved] = yhat[~solved]
    return RelaxedSolved(y, solved, clipped == yhat, instance, tuple(found))


def _matrix(part: BlockPart, instance: Instance) -> Array:
    matrix = np.repeat(part.shared[None], len(instance.bound), axis=0)
    for k, v in part.moving:
        matrix[:, k] = instance.varying[:, v, part.columns]
    return matrix


def _bound(part: BlockPart, instance: Instance) -> Array:
    return np.ascontiguousarray(instance.bound[:, part.rows])

