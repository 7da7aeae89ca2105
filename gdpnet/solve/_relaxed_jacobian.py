"""Derivatives of a relaxation's vertices, put together from the programs of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gdpnet.convexify._blocks import is_bound
from gdpnet.rules.model import RuleModel
from gdpnet.solve._gradients import Gradients
from gdpnet.solve._results import Array

if TYPE_CHECKING:
    from gdpnet.solve.lifted import LiftedSolved


class RelaxedJacobian:
    """The Jacobian of a batch of relaxed projections.

    Args:
        rules: the rules as the modeller wrote them.
        ready: the same with what a hull needs; their columns and rows come first in it.
        yhat: predictions as given, (B, d).
        start: predictions within the bounds, (B, d).
        bound: right sides of the rows of `ready`, (B, m).

    Attributes:
        groups: samples that were solved together, and their bases; a later group replaces an
            earlier one.
    """

    def __init__(
        self, rules: RuleModel, ready: RuleModel, yhat: Array, start: Array, bound: Array
    ) -> None:
        self._rules, self._ready = rules, ready
        self._yhat, self._start, self._bound = yhat, start, bound
        self.groups: list[tuple[Array, LiftedSolved]] = []

    def vjp(self, gradient: Array) -> Gradients:
        """Gradients of a loss from its gradient with respect to y; unsolved samples pass it on.

        Args:
            gradient: (B, d).
        """
        size, data = len(gradient), self._rules.data
        m, n, k = len(data.rows), len(data.columns), len(self._rules.table.varying)
        found = Gradients(gradient.copy(), np.zeros((size, m)), np.zeros((size, k, n)))
        for samples, solved in self.groups:
            part = solved.vjp(np.ascontiguousarray(gradient[samples]))
            found.yhat[samples] = part.yhat
            found.bound[samples] = part.bound[:, :m]
            found.varying[samples] = part.varying[:, :k, :n]
        self._through_bounds(found)
        return found

    def _through_bounds(self, found: Gradients) -> None:
        """A prediction outside of its bounds follows the bound, which may depend on x."""
        outside = self._start != self._yhat
        if not outside.any():
            return
        data = self._rules.data
        for i in data.global_rows:
            if not is_bound(data, i):
                continue
            ((j, a),) = data.rows[i].terms
            if j < data.outputs:
                at = outside[:, j] & (self._start[:, j] == self._bound[:, i] / a.number)
                found.bound[at, i] += found.yhat[at, j] / a.number
        found.yhat[outside] = 0.0
