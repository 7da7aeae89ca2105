"""Derivatives of vertices that are known by their points alone, such as those of MILP.

Near a vertex what holds with equality goes on doing so: whole numbers and columns on a bound rest,
outputs on their prediction follow it, and the tight rows T determine the other columns F:

    A[T, F] z_F = b_T - A[T, N] z_N

More rows than columns may be tight; then they say the same of z_F. So with g the loss's gradient
with respect to z, any prices with `A[T, F]' p = g_F` do: the loss gets p_i from the right side of
row i, -p_i z_j from its entry in column j, and g_j - sum_i p_i a_ij from the prediction of j.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch

from gdpnet.ir.rules import Rules
from gdpnet.ir.semantics import enforced
from gdpnet.solve.base import Answer, Array, Gradients, Linearisation, Request
from gdpnet.solve.milp.sample import RulesAtSample
from gdpnet.solve.status import Status

# What counts as an equality, relative to max(1, size): MILP's points are checked to within it.
_TIGHT = 1e-8

_DETERMINED = 1e-7  # of a unit: how far an output may slide while all tight rows hold


class ActiveJacobian(Linearisation):
    """The Jacobian of a batch some of whose vertices are known by their points.

    Args:
        request: the batch.
        answer: as it was found.
        samples: those with a vertex.
    """

    def __init__(self, request: Request, answer: Answer, samples: Array) -> None:
        self._rules, self._x, self._yhat = request.rules, request.x, request.yhat
        self._samples = samples[answer.status[samples] == Status.PROJECTED]
        # Copies: what is returned may be moved later, by rounding for one.
        self._points = answer.columns()[self._samples]
        self._assignment = answer.assignment[self._samples]
        self._limited = answer.status == Status.LIMIT

    @cached_property
    def _vertices(self) -> dict[int, _Vertex]:
        found = {}
        evaluated = self._rules.evaluate(torch.from_numpy(self._x[self._samples]))
        for place, s in enumerate(self._samples.tolist()):
            sample = RulesAtSample.of(self._rules, evaluated, place)
            enforced = _enforced(self._rules, self._assignment[place])
            vertex = _Vertex(sample, self._points[place], self._yhat[s], enforced)
            if vertex.determined:
                found[s] = vertex
        return found

    @property
    def answered(self) -> Array:
        """Samples whose vertex tight rows, bounds and predictions determine, (B,) bool."""
        answered = np.zeros(len(self._yhat), dtype=bool)
        answered[list(self._vertices)] = True
        return answered

    @property
    def known(self) -> Array:  # type: ignore[override]
        """Samples whose derivative it has, or passes on (`capped`), (B,) bool."""
        return ~self._limited

    @property
    def capped(self) -> Array:  # type: ignore[override]
        """Samples with a vertex that nothing determines: they pass the gradient on, (B,) bool."""
        capped = np.zeros(len(self._yhat), dtype=bool)
        capped[self._samples] = True
        return capped & ~self.answered

    def vjp(self, gradient: Array) -> Gradients:
        """Gradients of a loss from its gradient with respect to y, (B, d)."""
        found = Gradients.passing(self._rules, gradient)
        self.replace(found, gradient)
        return found

    def replace(self, found: Gradients, gradient: Array) -> None:
        """Write the gradients of its samples over those of others.

        Args:
            found: of the whole batch.
            gradient: of the loss with respect to y, (B, d).
        """
        varying = self._rules.table.varying.numpy()
        for s, vertex in self._vertices.items():
            prices = np.zeros(len(self._rules.data.rows))
            found.yhat[s], prices[vertex.rows] = vertex.prices(gradient[s])
            found.bound[s] = prices
            found.varying[s] = -prices[varying, None] * vertex.point


class _Vertex:
    """A vertex of one sample: what holds with equality there."""

    def __init__(self, sample: RulesAtSample, point: Array, yhat: Array, enforced: Array) -> None:
        d = len(yhat)
        self.point = point
        self.follows = np.abs(point[:d] - yhat) <= _TIGHT * np.maximum(1.0, np.abs(yhat))
        resting = sample.integer.copy()
        for side in (sample.lower, sample.upper):
            near = np.abs(point - side) <= _TIGHT * np.maximum(1.0, np.abs(side))
            resting |= near & np.isfinite(side)
        self.follows &= ~resting[:d]
        free = ~resting
        free[:d] &= ~self.follows
        slack = np.abs(sample.rows.take(enforced).times(point) - sample.bound[enforced])
        self.rows = enforced[slack <= _TIGHT * sample.scale[enforced]]
        self.matrix = sample.rows.take(self.rows).dense()
        self._outputs = free[:d]
        own = self.matrix[:, free]
        size = np.abs(own).max(1, initial=0.0)
        self._unit = 1.0 / np.where(size > 0.0, size, 1.0)
        # Rows alike in size, so that what is left of dependent ones is rounding.
        self._inverse = np.linalg.pinv(own.T * self._unit, rcond=1e-9)
        outputs = np.flatnonzero(free) < d
        sliding = np.eye(len(outputs)) - (own.T * self._unit) @ self._inverse
        self.determined = bool((np.abs(sliding[:, outputs]) <= _DETERMINED).all())

    def prices(self, gradient: Array) -> tuple[Array, Array]:
        """Gradients with respect to the prediction, and to the right sides of the tight rows."""
        own = gradient[self._outputs]
        prices = self._unit * (self._inverse[:, : len(own)] @ own)
        d = len(gradient)
        through = gradient - prices @ self.matrix[:, :d]
        return np.where(self.follows, through, 0.0), prices


def _enforced(rules: Rules, assignment: Array) -> Array:
    """Rows that hold whatever happens, and those of the booleans as they are."""
    data = rules.data
    literals = [true * (k + 1) for k, true in enumerate(assignment.tolist()) if true]
    rows = dict.fromkeys([*data.global_rows, *enforced(data.booleans, literals)])
    return np.fromiter(rows, dtype=np.int64)
