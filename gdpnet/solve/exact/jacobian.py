"""Derivatives of a batch of projections, component by component."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gdpnet.core import Array, vjp_face, vjp_vertex
from gdpnet.ir.instance import Instance
from gdpnet.solve.base import Gradients
from gdpnet.solve.exact.arrays import Component

if TYPE_CHECKING:
    from gdpnet.solve.exact.engine import Solved


class Given(NamedTuple):
    """A component's share of a batch.

    Attributes:
        z: points, (B, n).
        varying: coefficients that depend on x, (B, k, n).
        gradient: with respect to its columns, (B, n).
    """

    z: Array
    varying: Array
    gradient: Array


def by_component(
    instance: Instance,
    solved: Solved,
    gradient: Array,
    one: Callable[[int, Component, Given, Gradients], None],
) -> Gradients:
    """Gradients of a batch, taken apart into components and put together again.

    Args:
        instance: the rules of the batch.
        solved: the projections.
        gradient: of the loss with respect to y, (B, d).
        one: adds a component's gradients to the zeros it is given.
    """
    # An output in no row follows its prediction, or rests on a bound and moves with nothing.
    follows = solved.follows
    yhat = np.zeros(gradient.shape) if follows is None else np.where(follows, gradient, 0.0)
    found = Gradients(yhat, np.zeros(instance.bound.shape), np.zeros(instance.varying.shape))
    for index, (component, _) in enumerate(solved.parts):
        size, n, outputs = len(gradient), len(component.columns), component.outputs
        if n == solved.z.shape[1]:  # nothing to take apart
            own = gradient.copy()
            if len(outputs) < n:
                own = np.zeros_like(solved.z)
                own[:, : len(outputs)] = gradient
            one(index, component, Given(solved.z, instance.varying, own), found)
            continue
        part = np.zeros((size, n))
        part[:, : len(outputs)] = gradient[:, outputs]
        place = np.ix_(np.arange(size), component.varying, component.columns)
        given = Given(
            np.ascontiguousarray(solved.z[:, component.columns]),
            np.ascontiguousarray(instance.varying[place]),
            part,
        )
        to = Gradients(
            np.zeros((size, len(outputs))),
            np.zeros((size, len(component.rows))),
            np.zeros_like(given.varying),
        )
        one(index, component, given, to)
        found.yhat[:, outputs] = to.yhat
        found.bound[:, component.rows] = to.bound
        found.varying[place] = to.varying
    return found


@dataclass(frozen=True)
class FactoredJacobian:
    """The Jacobian of a batch of projections, kept as tight rows and states of columns.

    Attributes:
        instance: the rules of the batch.
        solved: the projections, with their dictionaries.
        outputs: d.
        face: that of components with curved rows, whose points are no vertices; None without such.
    """

    instance: Instance
    solved: Solved
    outputs: int
    face: FaceJacobian | None = None

    def vjp(self, gradient: Array) -> Gradients:
        """Gradients of a loss from its gradient with respect to y.

        Args:
            gradient: (B, d).
        """
        parts = self.solved.parts

        def one(index: int, component: Component, given: Given, to: Gradients) -> None:
            if component.prepared.curves is not None:
                assert self.face is not None
                self.face.one(component, given, to)
                return
            vjp_vertex(
                component.native, given.varying, parts[index][1], given.z, given.gradient, *to[:3]
            )

        return by_component(self.instance, self.solved, gradient, one)

    def dense(self) -> Array:
        """dy/dyhat, (B, d, d)."""
        size = len(self.solved.z)
        rows = []
        for j in range(self.outputs):
            one = np.zeros((size, self.outputs))
            one[:, j] = 1.0
            rows.append(self.vjp(one).yhat)
        return np.stack(rows, 1)


@dataclass(frozen=True)
class FaceJacobian:
    """The Jacobian of a batch of Euclidean projections, or of least-norm ones.

    Attributes:
        instance: the rules of the batch.
        solved: the projections.
        yhat: predictions, (B, d).
        weights: (d,).
        kinks: whether outputs that are where their prediction is follow it, as in l1.
    """

    instance: Instance
    solved: Solved
    yhat: Array
    weights: Array
    kinks: bool

    def vjp(self, gradient: Array) -> Gradients:
        """Gradients of a loss from its gradient with respect to y.

        Args:
            gradient: (B, d).
        """

        def one(index: int, component: Component, given: Given, to: Gradients) -> None:
            self.one(component, given, to)

        return by_component(self.instance, self.solved, gradient, one)

    def one(self, component: Component, given: Given, to: Gradients) -> None:
        """Add the gradients of one component to zeros."""
        vjp_face(
            *(component.native, self.kinks, given.varying),
            np.ascontiguousarray(self.instance.bound[:, component.rows]),
            np.ascontiguousarray(self.yhat[:, component.outputs]),
            np.ascontiguousarray(self.weights[component.outputs]),
            np.ascontiguousarray(self.solved.assignment[:, component.booleans]),
            *(given.z, given.gradient, *to[:3]),
        )
