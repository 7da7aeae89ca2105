"""Derivatives of a relaxation's vertices, put together from the programs of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Protocol

import numpy as np

from gdpnet.ir.instance import Instance
from gdpnet.ir.rules import Rules
from gdpnet.relaxation.blocks import moving_bounds
from gdpnet.relaxation.layouts import Layouts
from gdpnet.solve.base import Array, Gradients, Linearisation


class Vjp(Protocol):
    """What knows the derivative of some samples."""

    def vjp(self, gradient: Array) -> Gradients:
        """Gradients of a loss from its gradient with respect to y, (samples, d)."""


class RelaxedJacobian(Linearisation):
    """The Jacobian of a batch of relaxed projections.

    Args:
        rules: the rules as the modeller wrote them; their columns and rows come first in those of
            the layouts.
        layouts: how rules are merged.
        number: layout of each sample, -1 where none was needed, (B,).
        instance: the layouts' rules for the batch.
        yhat: predictions as given, (B, d).
        start: predictions within the bounds, (B, d).

    Attributes:
        groups: samples that were solved together, and their derivatives; a later group replaces an
            earlier one.
    """

    def __init__(
        self,
        rules: Rules,
        layouts: Layouts,
        number: Array,
        instance: Instance,
        yhat: Array,
        start: Array,
    ) -> None:
        self.rules, self.layouts, self.number = rules, layouts, number
        self.instance, self.yhat, self.start = instance, yhat, start
        self.groups: list[tuple[Array, Vjp]] = []

    def with_groups(self, groups: Sequence[tuple[Array, Vjp]]) -> RelaxedJacobian:
        """The same batch with other derivatives."""
        other = copy(self)
        other.groups = list(groups)
        return other

    def vjp(self, gradient: Array) -> Gradients:
        """Gradients of a loss from its gradient with respect to y; unsolved samples pass it on.

        Args:
            gradient: (B, d).
        """
        found = Gradients.passing(self.rules, gradient)
        m, (_, k, n) = found.bound.shape[1], found.varying.shape
        price = None  # which vertices do not follow
        for samples, solved in self.groups:
            part = solved.vjp(np.ascontiguousarray(gradient[samples]))
            found.yhat[samples] = part.yhat
            found.bound[samples] = part.bound[:, :m]
            found.varying[samples] = part.varying[:, :k, :n]
            if part.price is not None:
                price = np.zeros((len(gradient), part.price.shape[1])) if price is None else price
                price[samples] = part.price
        self._through_bounds(found)
        fixed = self.rules.cache[_fixed]
        if fixed.size:
            found.yhat[np.ix_(self.number >= 0, fixed)] = 0.0
        return found._replace(price=price)

    def _through_bounds(self, found: Gradients) -> None:
        """A prediction outside of its bounds follows the bound, which may depend on x."""
        outside = self.start != self.yhat
        if not outside.any():
            return
        data = self.rules.data
        for i in moving_bounds(data):
            ((j, a),) = data.rows[i].terms
            at = outside[:, j] & (self.start[:, j] == self.instance.bound[:, i] / a.number)
            found.bound[at, i] += found.yhat[at, j] / a.number
        found.yhat[outside] = 0.0


def _fixed(rules: Rules) -> Array:
    """Outputs whose bounds leave them one value, which follows no prediction."""
    columns = rules.data.columns[: rules.data.outputs]
    return np.array([j for j, c in enumerate(columns) if c.lower == c.upper], dtype=np.int64)
