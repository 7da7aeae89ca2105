"""The regularised programs of a batch of relaxed projections."""

from __future__ import annotations

import numpy as np

from gdpnet.derivative.qp.parts import BlockPart, block_part, solve_parts
from gdpnet.derivative.regularised import Regularised
from gdpnet.ir.rules import Rules
from gdpnet.relaxation.blocks import Part, payers
from gdpnet.solve.base import Array, Gradients, Settings
from gdpnet.solve.extended.jacobian import RelaxedJacobian


class RelaxedQPs(Regularised):
    """The regularised program of every sample, over the products of its own layout.

    Samples whose layouts have a part in common are solved together.

    Args:
        vertices: the relaxed projections.
        settings: of the batch.
        eps: the regularisation.

    Attributes:
        y: the regularised point, (B, d); the prediction where there is none.
        capped: samples whose program could not be solved, whose gradient passes, (B,) bool.
        known: the others.
    """

    def __init__(self, vertices: RelaxedJacobian, settings: Settings, eps: float) -> None:
        layouts, numbers = vertices.layouts, vertices.number
        known = layouts.ready.rules.cache[_Known]
        members: dict[int, tuple[BlockPart, list[Array]]] = {}
        for number in np.unique(numbers[numbers >= 0]).tolist():
            if layouts.contradictory[number]:
                continue
            samples = np.flatnonzero(numbers == number)
            for part in known.parts(number, layouts.listed[number]):
                members.setdefault(id(part), (part, []))[1].append(samples)
        found = solve_parts(
            [(part, np.concatenate(samples)) for part, samples in members.values()],
            *(vertices.instance, vertices.start, settings.weights, eps, settings.threads),
        )
        self.y = found.y
        self.capped = self._missing = ~found.solved
        self.known = found.solved
        self._price_unit = settings.price_unit
        self._jacobian = vertices.with_groups([(np.arange(len(numbers)), found)])

    @property
    def missing(self) -> Array:
        """Samples without a regularised point, (B,) bool."""
        return self._missing

    def vjp(self, gradient: Array) -> Gradients:
        """Gradients of a loss from its gradient with respect to y, (B, d)."""
        found = self._jacobian.vjp(gradient)
        if found.price is None:
            return found
        return found._replace(price=found.price / self._price_unit)


class _Known:
    """Parts as the core reads them, made once; layouts may have parts in common."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._made: dict[Part, BlockPart] = {}
        self._of_layout: dict[int, tuple[BlockPart, ...]] = {}

    def parts(self, number: int, layout: tuple[Part, ...]) -> tuple[BlockPart, ...]:
        """The parts of a layout."""
        if number not in self._of_layout:
            self._of_layout[number] = tuple(map(self._make, layout))
        return self._of_layout[number]

    def _make(self, part: Part) -> BlockPart:
        if part not in self._made:
            self._made[part] = block_part(
                *(self._rules, part.columns, part.rows),
                [[product.rows for product in block.products] for block in part.blocks],
                payers=payers(self._rules.data, (part,)),
            )
        return self._made[part]
