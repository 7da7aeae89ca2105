r"""Conic programs of relaxations, kept in Clarabel, for batches of samples.

The lifted sets are measured from c, the prediction within the outputs' bounds, and what that leaves
of the squared distance is linear in y:

    (y - yhat)^2 = (y - c)^2 + 2 (c - yhat) y + yhat^2 - c^2

An affine map of (y, eta) takes one lifted set to the other, and with it the hulls and their
intersections, so the program is the same; its numbers are those of the box and not of predictions
far away.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from gdpnet.ir.steps import power_of_two
from gdpnet.lp.clarabel import KeptProgram
from gdpnet.lp.conic import ConicSolution, ConicStructure
from gdpnet.lp.program import Outcome
from gdpnet.relaxation.program import RelaxationProgram
from gdpnet.relaxation.sparse import SparseProgram

Array = np.ndarray


def structure_of(program: SparseProgram) -> ConicStructure:
    """What all samples of a program share."""
    return ConicStructure(
        *(program.lower, program.upper, program.start, program.column, program.equality),
        program.cones,
    )


class ConicData(NamedTuple):
    """The programs of a batch.

    Attributes:
        parameters: what samples differ in, `batch x parameters`.
        start: predictions within the bounds, `batch x d`.
        yhat: predictions, `batch x d`.
        weights: of the outputs, `d`.
    """

    parameters: Array
    start: Array
    yhat: Array
    weights: Array

    def cost(self, program: SparseProgram) -> Array:
        """Costs of the columns, `batch x n`."""
        cost = np.zeros((len(self.yhat), len(program.lower)))
        square = self.weights[program.which] ** 2
        cost[:, program.distances] = square
        cost[:, program.outputs] = 2.0 * square * (self.start - self.yhat)[:, program.which]
        return cost

    def constant(self, program: SparseProgram) -> Array:
        """What the costs leave of the squared distance in the program's outputs, `batch`."""
        square = self.weights[program.which] ** 2
        away = (self.yhat - self.start) * (self.yhat + self.start)
        return np.asarray(away[:, program.which] @ square)


class ConicSolved(NamedTuple):
    """Solved programs of a batch.

    Attributes:
        points: values of all columns, `batch x n`, NaN where there are none.
        value: lower bound on the squared distance in the program's outputs, `batch`.
        outcome: code of `Outcome`, `batch`, int8.
        weight: of the products, `batch x products`.
    """

    points: Array
    value: Array
    outcome: Array
    weight: Array


class WrittenCone:
    """A relaxation's program kept in Clarabel, for any number of samples.

    Args:
        program: the program, with norm="l2".
    """

    def __init__(self, program: RelaxationProgram) -> None:
        self.program = program
        self._structure = structure_of(program)
        self._idle: list[KeptProgram] = []
        self._lock = threading.Lock()

    def solve(self, data: ConicData) -> ConicSolved:
        """Solve for a batch; several threads may call it, each works on a program of its own."""
        program, size = self.program, len(data.yhat)
        points = np.full((size, len(program.lower)), np.nan)
        value, outcome = np.full(size, -np.inf), np.empty(size, dtype=np.int8)
        unit, found = self.solutions(data)
        for s, solution in enumerate(found):
            outcome[s] = solution.outcome
            if solution.point is not None:
                points[s] = solution.point
                value[s] = solution.bound / unit[s]
        columns = np.array(program.weights, dtype=np.int64)
        share = np.where(columns >= 0, points[:, columns], 1.0)
        return ConicSolved(points, value + data.constant(program), outcome, share)

    def solutions(
        self, data: ConicData, square: Array | None = None
    ) -> tuple[Array, list[ConicSolution]]:
        """What Clarabel says of each sample, and in which units costs were given, `batch`.

        Args:
            data: the samples.
            square: diagonal of a quadratic term, `n`; None for none.
        """
        program = self.program
        cost = data.cost(program)
        unit = power_of_two(np.abs(cost).max(1, initial=0.0))
        with self._lock:
            kept = self._idle.pop() if self._idle else None
        kept = kept or KeptProgram(self._structure)
        numbers = program.numbers(program.moving_values(data.parameters))
        entries, right = kept.form.matrices(*numbers)
        flat = np.zeros(len(program.lower)) if square is None else square
        found = [
            kept.solve(entries[s], right[s], cost[s] * unit[s], flat * unit[s])
            for s in range(len(cost))
        ]
        with self._lock:
            self._idle.append(kept)
        return unit, found


def solved(outcome: Array) -> Array:
    """Samples that have a point, bool."""
    return np.asarray(outcome == Outcome.OPTIMAL)
