r"""What conic programs of relaxations differ in between samples.

The lifted sets are measured from c, the prediction within the outputs' bounds, and what that leaves
of the squared distance is linear in y:

    (y - yhat)^2 = (y - c)^2 + 2 (c - yhat) y + yhat^2 - c^2

An affine map of (y, eta) takes one lifted set to the other, and with it the hulls and their
intersections, so the program is the same; its numbers are those of the box and not of predictions
far away. With norm="l1" what that leaves is a constant.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gdpnet.relaxation.sparse import SparseProgram

Array = np.ndarray


class ConicData(NamedTuple):
    """The programs of a batch.

    Attributes:
        parameters: what samples differ in, `batch x parameters`.
        start: predictions within the bounds, `batch x d`.
        yhat: predictions, `batch x d`.
        weights: of the outputs, `d`.
        norm: of the distance.
        price: of the products, `batch x products`; None where none has one.
        payers: what they are made of, `priced x products`; None likewise.
    """

    parameters: Array
    start: Array
    yhat: Array
    weights: Array
    norm: str = "l2"
    price: Array | None = None
    payers: Array | None = None

    def take(self, samples: Array) -> ConicData:
        """The programs of some samples."""
        return self._replace(
            parameters=self.parameters[samples],
            start=self.start[samples],
            yhat=self.yhat[samples],
            price=None if self.price is None else self.price[samples],
        )

    def cost(self, program: SparseProgram) -> Array:
        """Costs of the columns, `batch x n`."""
        cost = np.zeros((len(self.yhat), len(program.lower)))
        if self.price is not None:
            columns = np.array(program.weights, dtype=np.int64)
            cost[:, columns[columns >= 0]] = self.price[:, columns >= 0]
        if self.norm == "l1":
            cost[:, program.distances] = self.weights[program.which]
            return cost
        square = self.weights[program.which] ** 2
        cost[:, program.distances] = square
        cost[:, program.outputs] = 2.0 * square * (self.start - self.yhat)[:, program.which]
        return cost

    def constant(self, program: SparseProgram) -> Array:
        """What the costs leave of what is minimised in the program's outputs, `batch`."""
        if self.norm == "l1":
            away = np.abs(self.yhat - self.start)[:, program.which]
            return np.asarray(away @ self.weights[program.which])
        square = self.weights[program.which] ** 2
        away = (self.yhat - self.start) * (self.yhat + self.start)
        return np.asarray(away[:, program.which] @ square)

    def largest_squares(self, program: SparseProgram) -> Array:
        """What `(y - c)^2` can be within the outputs' bounds, `batch x len(program.which)`."""
        start = self.start[:, program.which]
        low, high = program.lower[program.outputs], program.upper[program.outputs]
        return np.maximum(start - low, high - start) ** 2

    def elsewhere(self, program: SparseProgram) -> Array:
        """What is minimised in outputs of no part, which stay at their bounds, `batch`."""
        away = np.abs(self.start - self.yhat) * self.weights
        away[:, program.which] = 0.0
        return np.asarray((away if self.norm == "l1" else away**2).sum(1))
