"""The regularised programs of a batch of relaxed projections, layout by layout."""

from __future__ import annotations

import numpy as np

from gdpnet.sensitivity.qp._parts import BlockPart, block_part, solve_parts
from gdpnet.solve._gradients import Gradients
from gdpnet.solve._relaxed_jacobian import RelaxedJacobian
from gdpnet.solve._results import Array


class RelaxedQPs:
    """The regularised program of every sample, over the products of its own layout.

    Args:
        vertices: the relaxed projections.
        weights: of the outputs, the largest 1, (d,).
        eps: the regularisation.

    Attributes:
        y: the regularised point, (B, d); the prediction where there is none.
        capped: samples whose program could not be solved, whose gradient passes, (B,) bool.
    """

    def __init__(self, vertices: RelaxedJacobian, weights: Array, eps: float) -> None:
        start, instance = vertices.start, vertices.instance
        self.y, self.capped = start.copy(), np.zeros(len(start), dtype=bool)
        groups = []
        for number in np.unique(vertices.number[vertices.number >= 0]).tolist():
            if vertices.layouts.contradictory[number]:
                continue
            samples = np.flatnonzero(vertices.number == number)
            own = np.ascontiguousarray(start[samples])
            found = solve_parts(
                _parts(vertices, number), instance.take(samples), own, (own, own), weights, eps
            )
            self.y[samples], self.capped[samples] = found.y, ~found.solved
            groups.append((samples, found))
        self._jacobian = vertices.with_groups(groups)

    @property
    def missing(self) -> Array:
        """Samples without a regularised point, (B,) bool."""
        return self.capped

    def vjp(self, gradient: Array) -> Gradients:
        """Gradients of a loss from its gradient with respect to y, (B, d)."""
        return self._jacobian.vjp(gradient)


def _parts(vertices: RelaxedJacobian, number: int) -> tuple[BlockPart, ...]:
    """The parts of a layout, as the kernels read them; made once."""
    ready = vertices.layouts.ready.rules
    known: dict[int, tuple[BlockPart, ...]] = ready.kept("regularised layouts", lambda _: {})
    if number not in known:
        known[number] = tuple(
            block_part(
                *(ready, part.columns, part.rows),
                [[product.rows for product in block.products] for block in part.blocks],
            )
            for part in vertices.layouts.listed[number]
        )
    return known[number]
