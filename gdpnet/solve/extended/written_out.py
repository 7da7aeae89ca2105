"""HiGHS and Gurobi on relaxations written out: the model is kept, and entries change in place."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gdpnet.ir.steps import power_of_two
from gdpnet.lp import proof
from gdpnet.lp.clock import UNLIMITED
from gdpnet.lp.persistent import PersistentModel
from gdpnet.lp.program import Outcome, SparseLinearProgram
from gdpnet.lp.refined import refined
from gdpnet.lp.solvers import SOLVERS
from gdpnet.relaxation.sparse import SparseProgram
from gdpnet.solve.extended.written_jacobian import WrittenJacobian, WrittenVertex

Array = np.ndarray

_SMALL = 1e-3  # rows whose largest entry is below this, or above its inverse, are scaled


class WrittenSolved(NamedTuple):
    """Solved programs of a batch.

    Attributes:
        y: outputs of the program, `batch x len(program.which)`.
        value: `batch`.
        outcome: code of `Outcome`, `batch`, int8.
        weight: of the products, `batch x products`.
        jacobian: where it was asked for.
    """

    y: Array
    value: Array
    outcome: Array
    weight: Array
    jacobian: WrittenJacobian | None


class WrittenOut:
    """A program kept in a solver, for any number of samples.

    Args:
        program: the program.
        solver: name in `gdpnet.lp.solvers.SOLVERS`.
    """

    def __init__(self, program: SparseProgram, solver: str) -> None:
        self.program = program
        self.solver = solver
        self._idle: list[_InPlace] = []
        self._lock = threading.Lock()

    def solve(
        self,
        parameters: Array,
        weights: Array,
        price: Array | None = None,
        detailed: bool = False,
    ) -> WrittenSolved:
        """Solve for a batch; several threads may call it, each works on a model of its own.

        Args:
            parameters: what samples differ in, `batch x parameters`.
            weights: of the outputs, `d`.
            price: of the products, `batch x products`; None where none has one.
            detailed: keep the final bases, for derivatives.
        """
        moving = self.program.moving_values(parameters)
        points = np.full((len(moving), len(self.program.lower)), np.nan)
        value = np.empty(len(moving))
        outcome = np.empty(len(moving), dtype=np.int8)
        cost = weights[self.program.which]
        columns = np.array(self.program.weights, dtype=np.int64)
        share = np.ones((len(moving), len(columns)))
        free = np.flatnonzero(columns >= 0)
        vertices: list[WrittenVertex | None] = []

        with self._lock:
            model = self._idle.pop() if self._idle else None
        model = model or _InPlace(self.program, self.solver)
        model.weigh(cost)
        for s in range(len(moving)):
            if price is not None:
                model.price(columns[free], price[s, free])
            point, outcome[s] = model.solve(moving[s])
            if detailed:
                found = None if point is None else WrittenVertex(point, *model.kept.basis())
                vertices.append(found)
            if point is not None:
                points[s] = point
                share[s, free] = point[columns[free]]
                value[s] = point[self.program.distances] @ cost
                if price is not None:
                    value[s] += share[s] @ price[s]
                multipliers = model.multipliers
                if np.abs(multipliers).max(initial=0.0) > proof.LARGE:
                    own = None if price is None else price[s]
                    program = self._program(moving[s], parameters[s], cost, own)
                    value[s] = self._proved(
                        program, multipliers, value[s], value[s] - program.cost @ point
                    )
        with self._lock:
            self._idle.append(model)
        y = self.program.outputs_at(points, parameters)
        jacobian = WrittenJacobian(self.program, parameters, vertices) if detailed else None
        return WrittenSolved(y, value, outcome, share, jacobian)

    def _program(
        self, moving: Array, parameters: Array, cost: Array, price: Array | None
    ) -> SparseLinearProgram:
        """The program of a sample with its costs, and with bounds where distances have none."""
        program, own = self.program, self.program.at(moving)
        every, upper = np.zeros(len(own.cost)), own.upper.copy()
        every[program.distances] = cost
        upper[program.distances] = program.reach(program.start_of(parameters))
        if price is not None:
            columns = np.array(program.weights, dtype=np.int64)
            every[columns[columns >= 0]] = price[columns >= 0]
        return replace(own, cost=every, upper=upper)

    def _proved(
        self, program: SparseLinearProgram, multipliers: Array, value: float, more: float
    ) -> float:
        """The value of an optimum, or the most that is proved of it.

        Args:
            program: with its costs.
            multipliers: of its rows.
            value: what the solver says.
            more: what of that is no cost of the program.
        """
        bound = proof.proved(program, multipliers) + more
        if not proof.is_proved(bound, value):
            again = refined(SOLVERS[self.solver].solve)(program, UNLIMITED)
            if again.multipliers is not None:
                bound = max(bound, proof.proved(program, again.multipliers) + more)
        if proof.is_proved(bound, value):
            return value
        return max(bound, proof.proved(program, np.zeros_like(multipliers)) + more)


class _InPlace:
    """A program in a solver, with the entries it has now."""

    def __init__(self, program: SparseProgram, solver: str) -> None:
        self.program = program
        entries = len(program.value)
        inside = program.moving < entries
        row = np.where(inside, 0, program.moving - entries)
        row[inside] = program.row_of[program.moving[inside]]
        column = np.full(len(row), -1)
        column[inside] = program.column[program.moving[inside]]
        self._place = list(zip(row.tolist(), column.tolist(), strict=True))
        self._unit = unit = _units(program)
        self.kept = _persistent(program, unit, solver)
        self._moving_unit = unit[row]
        self._now = np.full(len(row), np.nan)
        self._cost: Array | None = None
        self._price: Array | None = None

    def weigh(self, cost: Array) -> None:
        """Set the cost of the distances."""
        if self._cost is None or not np.array_equal(cost, self._cost):
            self._cost = cost
            self.kept.set_cost(self.program.distances, cost)

    def price(self, columns: Array, price: Array) -> None:
        """Set what the weights of the products cost."""
        if self._price is None or not np.array_equal(price, self._price):
            self._price = price
            self.kept.set_cost(columns, price)

    def solve(self, values: Array) -> tuple[Array | None, int]:
        """Change what differs from the last sample, and solve again from its basis."""
        changed = np.flatnonzero(values != self._now)
        scaled = values[changed] * self._moving_unit[changed]
        for k, value in zip(changed.tolist(), scaled.tolist(), strict=True):
            row, column = self._place[k]
            if column >= 0:
                self.kept.set_entry(row, column, value)
            else:
                lower = value if self.program.equality[row] else -np.inf
                self.kept.set_row(row, lower, value)
        self._now[changed] = values[changed]
        if not self.program.warm:
            self.kept.forget()
        outcome = self.kept.solve(presolve=not self.program.warm)
        return self.kept.point if outcome is Outcome.OPTIMAL else None, outcome

    @property
    def multipliers(self) -> Array:
        """Of the program's rows."""
        return self.kept.multipliers * self._unit


def _persistent(program: SparseProgram, unit: Array, solver: str) -> PersistentModel:
    scaled = program.scaled(program.value * unit[program.row_of], program.bound * unit)
    return SOLVERS[solver].persistent(scaled)


def _units(program: SparseProgram) -> Array:
    """What brings rows in very small or large units to a largest entry of about 1, by row.

    Solvers' tolerances are absolute, and entries of 1e-9 count as zero to HiGHS.
    """
    largest = np.zeros(len(program.bound))
    np.maximum.at(largest, program.row_of, np.abs(program.value))
    usual = (largest >= _SMALL) & (largest <= 1.0 / _SMALL)
    return np.where(usual, 1.0, power_of_two(largest))
