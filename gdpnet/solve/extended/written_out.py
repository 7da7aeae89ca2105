"""HiGHS and Gurobi on relaxations written out: the model is kept, and entries change in place."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gdpnet.ir.steps import power_of_two
from gdpnet.lp import gurobi, highs
from gdpnet.lp.program import Outcome
from gdpnet.relaxation.sparse import SparseProgram
from gdpnet.solve.extended.written_jacobian import WrittenJacobian, WrittenVertex

Array = np.ndarray

_SMALL = 1e-3  # rows whose largest entry is below this, or above its inverse, are scaled


class WrittenSolved(NamedTuple):
    """WrittenSolved programs of a batch.

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
        solver: "highs" or "gurobi".
    """

    def __init__(self, program: SparseProgram, solver: str) -> None:
        self.program = program
        self._new: Callable[[SparseProgram], _Model] = _MODELS[solver]
        self._idle: list[_Model] = []
        self._lock = threading.Lock()

    def solve(self, parameters: Array, weights: Array, detailed: bool = False) -> WrittenSolved:
        """Solve for a batch; several threads may call it, each works on a model of its own.

        Args:
            parameters: what samples differ in, `batch x parameters`.
            weights: of the outputs, `d`.
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
        model = model or self._new(self.program)
        model.price(cost)
        for s in range(len(moving)):
            point, outcome[s] = model.solve(moving[s])
            if detailed:
                vertices.append(None if point is None else WrittenVertex(point, *model.basis()))
            if point is not None:
                points[s] = point
                value[s] = point[self.program.distances] @ cost
                share[s, free] = point[columns[free]]
        with self._lock:
            self._idle.append(model)
        y = self.program.outputs_at(points, parameters)
        jacobian = WrittenJacobian(self.program, parameters, vertices) if detailed else None
        return WrittenSolved(y, value, outcome, share, jacobian)


class _Model(ABC):
    """A program in a solver, with the entries it has now."""

    def __init__(self, program: SparseProgram) -> None:
        self.program = program
        entries = len(program.value)
        inside = program.moving < entries
        row = np.where(inside, 0, program.moving - entries)
        row[inside] = program.row_of[program.moving[inside]]
        column = np.full(len(row), -1)
        column[inside] = program.column[program.moving[inside]]
        self._place = list(zip(row.tolist(), column.tolist(), strict=True))
        self.unit = _units(program)
        self._moving_unit = self.unit[row]
        self._now = np.full(len(row), np.nan)
        self._cost: Array | None = None

    def price(self, cost: Array) -> None:
        """Set the cost of the distances."""
        if self._cost is None or not np.array_equal(cost, self._cost):
            self._cost = cost
            self._price(cost)

    def solve(self, values: Array) -> tuple[Array | None, int]:
        """Change what differs from the last sample, and solve again from its basis."""
        changed = np.flatnonzero(values != self._now)
        scaled = values[changed] * self._moving_unit[changed]
        for k, value in zip(changed.tolist(), scaled.tolist(), strict=True):
            self._change(*self._place[k], value)
        self._now[changed] = values[changed]
        if not self.program.warm:
            self._forget()
        point, outcome = self._run(presolve=not self.program.warm)
        if outcome != Outcome.OPTIMAL:  # the old basis, or presolve, may have led it astray
            self._forget()
            point, outcome = self._run(presolve=False)
        return point, outcome

    @abstractmethod
    def _price(self, cost: Array) -> None: ...

    @abstractmethod
    def _change(self, row: int, column: int, value: float) -> None:
        """Set an entry, or a right side where the column is -1."""

    @abstractmethod
    def _run(self, presolve: bool) -> tuple[Array | None, int]: ...

    @abstractmethod
    def _forget(self) -> None: ...

    @abstractmethod
    def basis(self) -> tuple[Array, Array]:
        """Columns in the final basis, and rows that are not, as many."""


def _units(program: SparseProgram) -> Array:
    """What brings rows in very small or large units to a largest entry of about 1, by row.

    Solvers' tolerances are absolute, and entries of 1e-9 count as zero to HiGHS.
    """
    largest = np.zeros(len(program.bound))
    np.maximum.at(largest, program.row_of, np.abs(program.value))
    usual = (largest >= _SMALL) & (largest <= 1.0 / _SMALL)
    return np.where(usual, 1.0, power_of_two(largest))


class _HighsModel(_Model):
    def __init__(self, program: SparseProgram) -> None:
        super().__init__(program)
        from highspy import HighsModelStatus as Status

        self._codes = {Status.kOptimal: Outcome.OPTIMAL, Status.kInfeasible: Outcome.INFEASIBLE}
        self.solver = highs.new_solver()
        # Few pivots follow: weights that start at 1 cost less than exact ones.
        self.solver.setOptionValue("simplex_dual_edge_weight_strategy", 1)
        bound = program.bound * self.unit
        rows = np.where(program.equality, bound, -np.inf), bound
        cost = np.zeros(len(program.lower))
        self.solver.passModel(
            highs.sparse_model(
                *(cost, program.lower, program.upper, *rows),
                *(program.start, program.column, program.value * self.unit[program.row_of]),
            )
        )

    def _price(self, cost: Array) -> None:
        columns = self.program.distances.astype(np.int32)
        self.solver.changeColsCost(len(columns), columns, cost)

    def _change(self, row: int, column: int, value: float) -> None:
        if column >= 0:
            self.solver.changeCoeff(row, column, value)
        else:
            lower = value if self.program.equality[row] else -np.inf
            self.solver.changeRowBounds(row, lower, value)

    def _run(self, presolve: bool) -> tuple[Array | None, int]:
        self.solver.setOptionValue("presolve", "on" if presolve else "off")
        self.solver.run()
        outcome = self._codes.get(self.solver.getModelStatus(), Outcome.FAILED)
        if outcome != Outcome.OPTIMAL:
            return None, outcome
        return np.array(self.solver.getSolution().col_value), Outcome.OPTIMAL

    def _forget(self) -> None:
        self.solver.clearSolver()

    def basis(self) -> tuple[Array, Array]:
        from highspy import HighsBasisStatus

        solver: Any = self.solver  # its stubs do not know of this
        _, basic = solver.getBasicVariables()
        if len(basic) != len(self.program.bound):  # HiGHS had nothing to factorise
            found, inside = self.solver.getBasis(), HighsBasisStatus.kBasic
            columns = np.array([state == inside for state in found.col_status], dtype=bool)
            rows = np.array([state != inside for state in found.row_status], dtype=bool)
            return np.flatnonzero(columns), np.flatnonzero(rows)
        tight = np.ones(len(self.program.bound), dtype=bool)
        tight[-1 - basic[basic < 0]] = False
        return basic[basic >= 0], np.flatnonzero(tight)


class _GurobiModel(_Model):
    def __init__(self, program: SparseProgram) -> None:
        super().__init__(program)
        with gurobi.refusals(len(program.lower), len(program.bound)):
            self.model, self.columns, self.rows = gurobi.kept_model(program, self.unit)
        import gurobipy

        status = gurobipy.GRB.Status
        self._codes = {status.OPTIMAL: Outcome.OPTIMAL, status.INFEASIBLE: Outcome.INFEASIBLE}

    def _price(self, cost: Array) -> None:
        for column, price in zip(self.program.distances.tolist(), cost.tolist(), strict=True):
            self.columns[column].Obj = price

    def _change(self, row: int, column: int, value: float) -> None:
        if column >= 0:
            self.model.chgCoeff(self.rows[row], self.columns[column], value)
        else:
            self.rows[row].RHS = value

    def _run(self, presolve: bool) -> tuple[Array | None, int]:
        with gurobi.refusals(len(self.columns), len(self.rows)):
            self.model.optimize()
        outcome = self._codes.get(self.model.Status, Outcome.FAILED)
        if outcome != Outcome.OPTIMAL:
            return None, outcome
        return np.array(self.model.getAttr("X", self.columns)), Outcome.OPTIMAL

    def _forget(self) -> None:
        self.model.reset()

    def basis(self) -> tuple[Array, Array]:
        columns = np.array(self.model.getAttr("VBasis", self.columns))
        rows = np.array(self.model.getAttr("CBasis", self.rows))
        return np.flatnonzero(columns == 0), np.flatnonzero(rows != 0)


_MODELS: dict[str, Any] = {"highs": _HighsModel, "gurobi": _GurobiModel}
