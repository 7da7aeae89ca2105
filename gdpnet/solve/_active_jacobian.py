"""Derivatives of vertices that are known by their points alone, such as those of MILP.

Near a vertex what holds with equality goes on doing so: whole numbers and columns on a bound rest,
outputs on their prediction follow it, and the tight rows T determine the other columns F:

    A[T, F] z_F = b_T - A[T, N] z_N

More rows than columns may be tight; then they say the same of z_F. So with g the loss's gradient
with respect to z, any prices with `A[T, F]' p = g_F` do: the loss gets p_i from the right side of
row i, -p_i z_j from its entry in column j, and g_j - sum_i p_i a_ij from the prediction of j.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch

from gdpnet.ir.semantics import enforced
from gdpnet.rules.model import RuleModel
from gdpnet.solve._gradients import Gradients
from gdpnet.solve._results import Array
from gdpnet.solve._sample import Sample

# What counts as an equality, relative to max(1, size): MILP's points are checked to within it.
_TIGHT = 1e-8

_DETERMINED = 1e-7  # of a unit: how far an output may slide while all tight rows hold


class _Jacobian(Protocol):
    def vjp(self, gradient: Array) -> Gradients:
        """Gradients of a loss from its gradient with respect to y, (B, d)."""


class ActiveJacobian:
    """The Jacobian of a batch some of whose vertices are known by their points.

    Args:
        rules: the rules.
        x: inputs, (B, p).
        yhat: predictions, (B, d).
        points: vertices, auxiliaries included, (B, n).
        assignment: of the booleans there: 1 true, -1 false, (B, booleans).
        samples: which of the batch.
        rest: derivative of the others; None where they have none, and pass the gradient on.

    Attributes:
        answered: samples whose vertex tight rows, bounds and predictions determine, (B,) bool.
        capped: the others of `samples`, which pass the gradient on, (B,) bool.
    """

    def __init__(
        self,
        rules: RuleModel,
        x: Array,
        yhat: Array,
        points: Array,
        assignment: Array,
        samples: Array,
        rest: _Jacobian | None,
    ) -> None:
        self._rules, self._rest = rules, rest
        self._vertices: dict[int, _Vertex] = {}
        self.capped = np.zeros(len(yhat), dtype=bool)
        self.capped[samples] = True
        evaluated = rules.evaluate(torch.from_numpy(x[samples]))
        for place, s in enumerate(samples.tolist()):
            sample = Sample.of(rules, evaluated, place)
            vertex = _Vertex(sample, points[s], yhat[s], _enforced(rules, assignment[s]))
            if vertex.determined:
                self._vertices[s] = vertex
                self.capped[s] = False
        self.answered = np.zeros(len(yhat), dtype=bool)
        self.answered[list(self._vertices)] = True

    def vjp(self, gradient: Array) -> Gradients:
        """Gradients of a loss from its gradient with respect to y.

        Args:
            gradient: (B, d).
        """
        data, varying = self._rules.data, self._rules.table.varying.numpy()
        if self._rest is None:
            found = Gradients(
                gradient.copy(),
                np.zeros((len(gradient), len(data.rows))),
                np.zeros((len(gradient), len(varying), len(data.columns))),
            )
        else:
            found = self._rest.vjp(gradient)
        for s, vertex in self._vertices.items():
            prices = np.zeros(len(data.rows))
            found.yhat[s], prices[vertex.rows] = vertex.prices(gradient[s])
            found.bound[s] = prices
            found.varying[s] = -prices[varying, None] * vertex.point
        return found


class _Vertex:
    """A vertex of one sample: what holds with equality there."""

    def __init__(self, sample: Sample, point: Array, yhat: Array, enforced: Array) -> None:
        d = len(yhat)
        self.point = point
        self.follows = np.abs(point[:d] - yhat) <= _TIGHT * np.maximum(1.0, np.abs(yhat))
        resting = sample.integer.copy()
        for side in (sample.lower, sample.upper):
            resting |= np.abs(point - side) <= _TIGHT * np.maximum(1.0, np.abs(side))
        self.follows &= ~resting[:d]
        free = ~resting
        free[:d] &= ~self.follows
        slack = np.abs(sample.matrix[enforced] @ point - sample.bound[enforced])
        self.rows = enforced[slack <= _TIGHT * sample.scale[enforced]]
        self.matrix = sample.matrix[self.rows]
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


def _enforced(rules: RuleModel, assignment: Array) -> Array:
    """Rows that hold whatever happens, and those of the booleans as they are."""
    data = rules.data
    literals = [true * (k + 1) for k, true in enumerate(assignment.tolist()) if true]
    rows = dict.fromkeys([*data.global_rows, *enforced(data.booleans, literals)])
    return np.fromiter(rows, dtype=np.int64)
