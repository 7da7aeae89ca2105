"""Products of disjuncts within a distance: the terms of the DNF that matter near the optimum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gdpnet.core import Array
from gdpnet.errors import SolverError
from gdpnet.ir.instance import Instance
from gdpnet.solve.exact.arrays import Component
from gdpnet.solve.exact.engine import ExactEngine, activity_of


@dataclass(frozen=True)
class Products:
    """Products of one component within a distance, for a batch.

    Attributes:
        component: whose products.
        count: how many there are, (B,); more than `cap` means that only the first `cap` met are
            listed, -1 that a linear program could not be solved.
        distance: of each, (B, cap); inf beyond the count.
        z: nearest point of each, (B, cap, n).
        assignment: chosen booleans of each, (B, cap, booleans) int8.
    """

    component: Component
    count: Array
    distance: Array
    z: Array
    assignment: Array


def products_within(
    engine: ExactEngine, instance: Instance, yhat: Array, weights: Array, reach: Array, cap: int
) -> list[Products]:
    """Products whose nearest point is at most `reach` away, component by component.

    Args:
        engine: of the rules.
        instance: the rules for the batch.
        yhat: predictions, (B, d) float64.
        weights: (d,).
        reach: distance for each component, (components, B): its optimum plus the band.
        cap: most products listed for a sample and component.
    """
    found = []
    for index, component in enumerate(engine.components):
        if component.prepared.integer.any():
            raise SolverError(
                "Products are listed for continuous variables only: an integer one makes a "
                "product of each of its values."
            )
        size, n = len(yhat), len(component.columns)
        listed = Products(
            component=component,
            count=np.zeros(size, dtype=np.int64),
            distance=np.full((size, cap), np.inf),
            z=np.full((size, cap, n), np.nan),
            assignment=np.zeros((size, cap, len(component.booleans)), dtype=np.int8),
        )
        engine.searches[index].products(
            activity_of(component, instance.active),
            np.ascontiguousarray(instance.varying[:, component.varying][:, :, component.columns]),
            np.ascontiguousarray(instance.bound[:, component.rows]),
            np.ascontiguousarray(yhat[:, component.outputs]),
            np.ascontiguousarray(weights[component.outputs]),
            np.ascontiguousarray(reach[index]),
            *(listed.count, listed.distance, listed.z, listed.assignment),
        )
        found.append(listed)
    return found
