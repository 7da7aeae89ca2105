"""Batches of parametric convex programs: solved by HiGHS or Clarabel, and differentiated.

A linear program is solved by HiGHS' simplex, so that its answer is a vertex; the others are conic,
for Clarabel. The derivative is that of the same program with a quadratic term, whose solution moves
continuously, and again Clarabel's.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
import torch

from gdpnet.ir.steps import power_of_two
from gdpnet.lp import clarabel, highs
from gdpnet.lp.clarabel import KeptProgram
from gdpnet.lp.conic import ConicSolution, ConicStructure, part_of_no_cone
from gdpnet.lp.options import CLARABEL_CLOSE
from gdpnet.lp.persistent import PersistentHighs
from gdpnet.lp.program import Outcome, SparseLinearProgram
from gdpnet.lp.standard import StandardForm
from gdpnet.relaxation.parametric import Numbers, ParametricProgram
from gdpnet.solve.conic.adjoint import adjoint
from gdpnet.solve.conic.careful import careful

Array = np.ndarray

_TOLERANCE = 1e-6  # of rows on what is returned, relative to max(1, |b|, max|a|)
_WEIGHT = 1e-6  # a copy with less is left out of derivatives


class SolvedPrograms(NamedTuple):
    """Solutions of a batch.

    Attributes:
        points: values of the columns, `batch x n`, NaN where there are none.
        value: what is minimised, without its constant, `batch`.
        outcome: code of `Outcome`, `batch`, int8.
        doubtful: whether digits of the point are open, `batch`, bool.
    """

    points: Array
    value: Array
    outcome: Array
    doubtful: Array


class ProgramSolver:
    """Solves a parametric program for batches; several threads may.

    Args:
        program: the program.
    """

    def __init__(self, program: ParametricProgram) -> None:
        self.program = program
        self._cones = None if program.is_linear else ConicPrograms(program)

    def __reduce__(self) -> tuple[Any, ...]:
        return ProgramSolver, (self.program,)

    def unavailable(self) -> str | None:
        """Why it cannot be used here, None where it can."""
        return highs.unavailable() if self._cones is None else clarabel.unavailable()

    def solve(self, numbers: Numbers) -> SolvedPrograms:
        """Solve for a batch; what breaks a row has failed, whatever the solver says.

        Args:
            numbers: of the program, finite.
        """
        entries, bound, cost = (part.detach().numpy() for part in numbers)
        program, size = self.program, len(cost)
        points, outcome = np.full(cost.shape, np.nan), np.empty(size, dtype=np.int8)
        doubtful = np.zeros(size, dtype=bool)
        if self._cones is None:
            self._simplex(entries, bound, cost, points, outcome)
        else:
            for s, found in enumerate(self._cones.solve(entries, bound, cost)[0]):
                outcome[s] = found.outcome
                if found.point is not None:
                    points[s], doubtful[s] = found.point, found.doubtful
        broken = (outcome == Outcome.OPTIMAL) & ~self._holds(entries, bound, points)
        points[broken], outcome[broken] = np.nan, Outcome.FAILED
        value = (cost * points + 0.5 * program.square * points**2).sum(1)
        return SolvedPrograms(points, value, outcome, doubtful)

    def _simplex(
        self, entries: Array, bound: Array, cost: Array, points: Array, outcome: Array
    ) -> None:
        program, structure = self.program, self.program.structure
        solver = PersistentHighs()
        scale, row = _scales(structure, entries)
        entries, bound = entries * scale[:, row], bound * scale
        for s in range(len(cost)):
            lower = np.where(structure.equality, bound[s], -np.inf)
            solver.load(
                SparseLinearProgram(
                    *(cost[s], lower, bound[s], program.lower, program.upper),
                    *(structure.start, structure.column, entries[s]),
                )
            )
            outcome[s] = found = solver.solve()
            if found is Outcome.OPTIMAL:
                points[s] = solver.point

    def _holds(self, entries: Array, bound: Array, points: Array) -> Array:
        """Whether linear rows and bounds hold, `batch`."""
        program, structure = self.program, self.program.structure
        start, linear = structure.start, part_of_no_cone(len(structure.start) - 1, structure.cones)
        with np.errstate(invalid="ignore"):
            row = np.repeat(np.arange(len(start) - 1), np.diff(start))
            activity, largest = np.zeros_like(bound), np.ones_like(bound)
            np.add.at(activity.T, row, (entries * points[:, structure.column]).T)
            np.maximum.at(largest.T, row, np.abs(entries).T)
            over = (activity - bound) / np.maximum(largest, np.abs(bound))
            over = np.where(structure.equality, np.abs(over), over)[:, linear]
            low, high = program.lower - points, points - program.upper
            scale = np.maximum(1.0, np.abs(points))
            beyond = np.maximum(low, high) / scale
        return np.asarray((over <= _TOLERANCE).all(1) & (beyond <= _TOLERANCE).all(1))


class ConicPrograms:
    """A parametric program in Clarabel.

    Args:
        program: the program.
    """

    def __init__(self, program: ParametricProgram) -> None:
        self.program = program
        self.form = StandardForm(program.structure)
        self._idle: list[KeptProgram] = []
        self._lock = threading.Lock()

    def solve(self, entries: Array, bound: Array, cost: Array) -> tuple[list[ConicSolution], Array]:
        """What is found for each sample, rows scaled by `_scales`, and the units of its costs."""
        scale, row = _scales(self.program.structure, entries)
        values, right = self.form.matrices(entries * scale[:, row], bound * scale)
        unit = power_of_two(np.abs(cost).max(1, initial=0.0))
        square = self.program.square
        with self._lock:
            kept = self._idle.pop() if self._idle else None
        kept = kept or self._new()
        found = []
        for s, times in enumerate(unit.tolist()):
            given = values[s], right[s], cost[s] * times, square * times
            found.append(careful(self.form, given, kept.solve(*given)))
        with self._lock:
            self._idle.append(kept)
        return found, unit

    def vjp(
        self, numbers: Numbers, outputs: Array, gradient: Array
    ) -> tuple[tuple[Array, ...], Array, Array]:
        """Gradients with respect to entries, right sides and costs; where known, where doubtful.

        Args:
            numbers: of the program.
            outputs: columns of which a loss depends.
            gradient: of the loss with respect to them, `batch x outputs`.
        """
        entries, bound, cost = (part.detach().numpy() for part in numbers)
        program, form = self.program, self.form
        scale, row = _scales(program.structure, entries)
        values, _ = form.matrices(entries * scale[:, row], bound * scale)
        to_values, to_right = np.zeros_like(values), np.zeros((len(cost), form.rows))
        to_cost, known = np.zeros_like(cost), np.zeros(len(cost), dtype=bool)
        doubtful = known.copy()
        solutions, unit = self.solve(entries, bound, cost)
        for s, found in enumerate(solutions):
            if found.outcome is not Outcome.OPTIMAL or found.point is None:
                continue
            along = np.zeros(len(program.lower))
            np.add.at(along, outputs, gradient[s])
            weight = found.point[program.weight_of]
            columns = np.flatnonzero((program.weight_of < 0) | (weight > _WEIGHT))
            to_cost[s], to_values[s], to_right[s] = adjoint(
                form, values[s], program.square * unit[s], found, along, columns
            )
            known[s], doubtful[s] = True, found.doubtful
        to_entries, to_bound = form.pull_back(to_values, to_right)
        parts = to_entries * scale[:, row], to_bound * scale, to_cost * unit[:, None]
        return parts, known, doubtful

    def _new(self) -> KeptProgram:
        """The program set up with numbers of no sample."""
        entries, bound, cost = (part.numpy() for part in self.program.constants())
        values, right = self.form.matrices(entries, bound)
        return KeptProgram(
            *(self.form, values[0], right[0], cost[0], self.program.square), options=CLARABEL_CLOSE
        )


def _scales(structure: ConicStructure, entries: Array) -> tuple[Array, Array]:
    """What linear rows are multiplied by, `batch x rows`, and the row of each entry.

    Small ones count like others then, and large ones do not drown them.
    """
    count = len(structure.start) - 1
    length = np.diff(structure.start)
    row, filled = np.repeat(np.arange(count), length), np.flatnonzero(length)
    largest = np.zeros((len(entries), count))
    if len(filled):
        largest[:, filled] = np.maximum.reduceat(np.abs(entries), structure.start[filled], axis=1)
    linear = part_of_no_cone(count, structure.cones)
    return np.where(linear, power_of_two(largest), 1.0), row


def as_tensors(parts: tuple[Array, ...]) -> list[torch.Tensor]:
    """Arrays as tensors, contiguous."""
    return [torch.from_numpy(np.ascontiguousarray(part)) for part in parts]
