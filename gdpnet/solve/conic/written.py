"""Conic programs of relaxations, kept in Clarabel, for batches of samples."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gdpnet.ir.rules import Rules
from gdpnet.ir.steps import power_of_two
from gdpnet.lp.clarabel import KeptProgram
from gdpnet.lp.conic import ConicSolution, ConicStructure
from gdpnet.lp.program import Outcome
from gdpnet.lp.standard import StandardForm
from gdpnet.relaxation.layouts import layouts_of
from gdpnet.relaxation.program import RelaxationProgram
from gdpnet.solve.conic.careful import careful
from gdpnet.solve.conic.data import ConicData
from gdpnet.solve.conic.jacobian import ConicJacobian

Array = np.ndarray

_NUMBERS = 2_000_000  # entries of programs that are made together

# Of the largest cost, that squares count for at least where Clarabel ended without a point.
_SHARES = 1e-6, 1e-5, 1e-4, 1e-3


def structure_of(program: RelaxationProgram) -> ConicStructure:
    """What all samples of a program share."""
    lower, upper = program.needed_bounds()
    return ConicStructure(
        lower, upper, program.start, program.column, program.equality, program.cones
    )


class ConicSolved(NamedTuple):
    """Solved programs of a batch.

    Attributes:
        points: values of all columns, `batch x n`, NaN where there are none.
        value: lower bound on the squared distance in the program's outputs, `batch`.
        outcome: code of `Outcome`, `batch`, int8.
        weight: of the products, `batch x products`.
        unit: in which costs were given to the solver, `batch`.
        found: what it said of each sample.
    """

    points: Array
    value: Array
    outcome: Array
    weight: Array
    unit: Array
    found: list[ConicSolution]


class WrittenCone:
    """A relaxation's program kept in Clarabel, for any number of samples.

    Args:
        program: the program.
        eps: size of a quadratic term `eps / 2` on the weights of the products.
    """

    def __init__(self, program: RelaxationProgram, eps: float = 0.0) -> None:
        self.program, self.form = program, StandardForm(structure_of(program))
        self.square = np.zeros(len(program.lower))
        self.square[[column for column in program.weights if column >= 0]] = eps
        self._idle: list[KeptProgram] = []
        self._lock = threading.Lock()

    def solve(self, data: ConicData) -> ConicSolved:
        """Solve for a batch; several threads may call it, each works on a program of its own."""
        program, size = self.program, len(data.yhat)
        points = np.full((size, len(program.lower)), np.nan)
        value, outcome = np.full(size, -np.inf), np.empty(size, dtype=np.int8)
        unit, found = self._solutions(data)
        for s, solution in enumerate(found):
            outcome[s] = solution.outcome
            if solution.point is not None:
                points[s] = solution.point
                value[s] = solution.bound / unit[s]
        columns = np.array(program.weights, dtype=np.int64)
        share = np.where(columns >= 0, points[:, columns], 1.0)
        value += data.constant(program)
        return ConicSolved(points, value, outcome, share, unit, found)

    def jacobian(self, data: ConicData, solved: ConicSolved, samples: Array) -> ConicJacobian:
        """The derivative of some of the points, all of them found."""
        return ConicJacobian(
            *(self.program, self.form, data.take(samples), self.square),
            *(solved.unit[samples], [solved.found[s] for s in samples.tolist()]),
        )

    @property
    def differentiable(self) -> bool:
        """Whether the derivative of its points is known; linear programs have vertices instead."""
        return bool(self.form.cones)

    def _new(self) -> KeptProgram:
        """The program set up with numbers of no sample: what depends on samples is 0."""
        program = self.program
        entries, right = self.form.matrices(program.value[None], program.bound[None])
        cost = np.zeros(len(program.lower))
        cost[program.distances] = 1.0
        return KeptProgram(self.form, entries[0], right[0], cost, self.square)

    def _solutions(self, data: ConicData) -> tuple[Array, list[ConicSolution]]:
        """What Clarabel says of each sample, and in which units costs were given, `batch`."""
        program = self.program
        size = len(data.yhat)
        unit, found = np.empty(size), list[ConicSolution]()
        with self._lock:
            kept = self._idle.pop() if self._idle else None
        kept = kept or self._new()
        # Numbers of some samples are made together, of as many as memory likes.
        pieces = np.array_split(np.arange(size), -(-size * len(program.column) // _NUMBERS) or 1)
        for piece in pieces:
            part = data.take(piece)
            cost = part.cost(program)
            unit[piece] = power_of_two(np.abs(cost).max(1, initial=0.0))
            numbers = program.numbers(program.moving_values(part.parameters))
            entries, right = self.form.matrices(*numbers)
            for s, scale in enumerate(unit[piece].tolist()):
                given = entries[s], right[s], cost[s] * scale, self.square * scale
                solution = kept.solve(*given)
                if self.program.norm == "l2" and not solution.known:
                    solution = self._far_away(kept, given, part.largest_squares(program)[s])
                if self.square.any():  # its derivative is wanted
                    solution = careful(self.form, given, solution)
                found.append(solution)
        with self._lock:
            self._idle.append(kept)
        return unit, found

    def _far_away(
        self, kept: KeptProgram, given: tuple[Array, Array, Array, Array], largest: Array
    ) -> ConicSolution:
        """Solve with squares that count for more.

        Beside the way to a prediction far away they are lost in the solver's tolerances, and
        nothing holds their columns. What is minimised rises by this, by no more than squares can be
        within the outputs' bounds: less so much it is a lower bound on what it was.

        Args:
            kept: the program.
            given: numbers of the sample, as `KeptProgram.solve` takes them.
            largest: that the squares can be, `len(program.distances)`.
        """
        entries, right, cost, square = given
        squares, solution = self.program.distances, ConicSolution(Outcome.FAILED)
        for share in _SHARES if np.isfinite(largest).all() else ():
            more = cost.copy()
            more[squares] = np.maximum(cost[squares], share * np.abs(cost).max())
            added = float((more - cost)[squares] @ largest)
            solution = kept.solve(entries, right, more, square)
            if solution.known:
                return replace(solution, bound=solution.bound - added)
        return solution


class Programs:
    """Programs of one rule model, by layout and quadratic term, made when first met and kept.

    Args:
        rules: the rules.
    """

    def __init__(self, rules: Rules) -> None:
        self._layouts = layouts_of(rules)
        self._made: dict[tuple[int, str, float], WrittenCone] = {}

    def of(self, number: int, norm: str = "l2", eps: float = 0.0) -> WrittenCone:
        """The program of a layout.

        Args:
            number: of the layout.
            norm: of the distance.
            eps: of the quadratic term on the weights.
        """
        key = number, norm, eps
        if key not in self._made:
            self._made[key] = WrittenCone(self._layouts.program(number, norm), eps)
        return self._made[key]
