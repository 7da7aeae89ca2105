"""Persistent models: programs kept in a solver and changed in place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container
from typing import Any

import numpy as np

from gdpnet.lp import gurobi, highs
from gdpnet.lp.clock import Clock, run_beside
from gdpnet.lp.options import GUROBI_PERSISTENT, LINEAR, Options
from gdpnet.lp.program import LinearProgram, Outcome, SparseLinearProgram

Array = np.ndarray


class PersistentModel(ABC):
    """A linear program in a solver; each run starts from the basis of the last."""

    def solve(
        self, presolve: bool = False, trusted: Container[Outcome] = (Outcome.OPTIMAL,)
    ) -> Outcome:
        """Run, and once more without basis and presolve where the outcome is not trusted.

        The old basis, or presolve, may have led the solver astray.
        """
        outcome = self.run(presolve)
        if outcome not in trusted:
            self.forget()
            outcome = self.run()
        return outcome

    @abstractmethod
    def run(self, presolve: bool = False) -> Outcome:
        """Run the solver."""

    @abstractmethod
    def forget(self) -> None:
        """Drop the basis."""

    @abstractmethod
    def set_cost(self, columns: Array, cost: Array) -> None:
        """Set the cost of some columns."""

    @abstractmethod
    def set_entry(self, row: int, column: int, value: float) -> None:
        """Set an entry of the matrix."""

    @abstractmethod
    def set_row(self, row: int, lower: float, upper: float) -> None:
        """Set both sides of a row."""

    @property
    @abstractmethod
    def point(self) -> Array:
        """Values of the columns after the last run."""

    @property
    @abstractmethod
    def multipliers(self) -> Array:
        """Dual values of the rows after the last run."""

    @abstractmethod
    def basis(self) -> tuple[Array, Array]:
        """Columns in the final basis, and rows that are not, as many."""


class PersistentHighs(PersistentModel):
    """A program in HiGHS.

    Args:
        program: what is in it at first; nothing where it is None.
        options: a set of `gdpnet.lp.options`.
    """

    def __init__(
        self,
        program: LinearProgram | SparseLinearProgram | None = None,
        options: Options = LINEAR,
    ) -> None:
        self._solver: Any = highs.new_solver(options)
        if program is not None:
            self.load(program)

    def load(self, program: LinearProgram | SparseLinearProgram) -> None:
        """Put another program in place of what is there; nothing is left of that."""
        self._solver.passModel(highs.model_of(program))

    def run(self, presolve: bool = False) -> Outcome:
        """Run HiGHS."""
        self._solver.setOptionValue("presolve", "on" if presolve else "off")
        self._solver.run()
        return self.outcome

    def run_within(self, clock: Clock) -> Outcome:
        """Run HiGHS without presolve until a clock is over; after LIMIT it is not to be used."""
        if clock.over:
            return Outcome.LIMIT
        left = clock.left
        self._solver.setOptionValue("presolve", "off")
        self._solver.setOptionValue(
            "time_limit", float("inf") if left is None else self._solver.getRunTime() + left
        )
        self._solver.HandleUserInterrupt = True
        if not run_beside(self._solver.run, self._solver.cancelSolve, clock):
            return Outcome.LIMIT
        return self.outcome

    def conflict(self) -> Array | None:
        """Multipliers of rows that prove what the last run found: that there is no point."""
        _, known, proof = self._solver.getDualRay()
        return np.array(proof, dtype=float) if known else None

    @property
    def outcome(self) -> Outcome:
        """How the last run ended; FAILED where something was changed since."""
        return highs.outcome_of(self._solver)

    @property
    def status(self) -> str:
        """What HiGHS says of the last run."""
        return self._solver.modelStatusToString(self._solver.getModelStatus())

    def forget(self) -> None:
        """Drop the basis."""
        self._solver.clearSolver()

    def set_cost(self, columns: Array, cost: Array) -> None:
        """Set the cost of some columns."""
        self._solver.changeColsCost(len(columns), columns.astype(np.int32), cost)

    def set_entry(self, row: int, column: int, value: float) -> None:
        """Set an entry of the matrix."""
        self._solver.changeCoeff(row, column, value)

    def set_row(self, row: int, lower: float, upper: float) -> None:
        """Set both sides of a row."""
        self._solver.changeRowBounds(row, lower, upper)

    def set_columns(self, lower: Array, upper: Array) -> None:
        """Set the bounds of all columns."""
        columns = np.arange(len(lower), dtype=np.int32)
        self._solver.changeColsBounds(len(columns), columns, lower, upper)

    def add_column(self, lower: float, upper: float) -> None:
        """Add a column that no row has yet."""
        self._solver.addCol(0.0, lower, upper, 0, np.empty(0, np.int32), np.empty(0))

    def add_row(self, lower: float, terms: dict[int, float], upper: float) -> None:
        """Add a row, its entries by column."""
        columns = np.fromiter(terms, dtype=np.int32, count=len(terms))
        values = np.fromiter(terms.values(), dtype=float, count=len(terms))
        self._solver.addRow(lower, upper, len(terms), columns, values)

    def delete_rows(self, count: int) -> None:
        """Take the last rows away."""
        last = self._solver.getNumRow()
        self._solver.deleteRows(count, np.arange(last - count, last, dtype=np.int32))

    @property
    def point(self) -> Array:
        """Values of the columns after the last run."""
        return np.array(self._solver.getSolution().col_value, dtype=float)

    @property
    def multipliers(self) -> Array:
        """Dual values of the rows after the last run."""
        return np.array(self._solver.getSolution().row_dual, dtype=float)

    def basis(self) -> tuple[Array, Array]:
        """Columns in the final basis, and rows that are not, as many."""
        _, basic = self._solver.getBasicVariables()
        rows = self._solver.getNumRow()
        if len(basic) != rows:  # HiGHS had nothing to factorise
            found, inside = self._solver.getBasis(), highs.package().HighsBasisStatus.kBasic
            columns = np.array([state == inside for state in found.col_status], dtype=bool)
            tight = np.array([state != inside for state in found.row_status], dtype=bool)
            return np.flatnonzero(columns), np.flatnonzero(tight)
        tight = np.ones(rows, dtype=bool)
        tight[-1 - basic[basic < 0]] = False
        return basic[basic >= 0], np.flatnonzero(tight)


class PersistentGurobi(PersistentModel):
    """A program of rows `<=` and `==` in Gurobi, which decides on presolve by itself.

    Args:
        program: what is in it at first.
    """

    def __init__(self, program: SparseLinearProgram) -> None:
        from scipy.sparse import csr_array  # late: its import takes a while

        shape = (len(program.row_upper), len(program.cost))
        with gurobi.refusals(shape[1], shape[0]):
            self._model = gurobi.new_model(GUROBI_PERSISTENT)
            columns = self._model.addMVar(shape[1], lb=program.lower, ub=program.upper)
            matrix = csr_array((program.value, program.column, program.start), shape=shape)
            sense = np.where(np.isfinite(program.row_lower), "=", "<")
            rows = self._model.addMConstr(matrix, columns, sense, program.row_upper)
            self._model.update()
            self._columns, self._rows = columns.tolist(), rows.tolist()

    def run(self, presolve: bool = False) -> Outcome:
        """Run Gurobi."""
        with gurobi.refusals(len(self._columns), len(self._rows)):
            self._model.optimize()
        return gurobi.outcome_of(self._model)

    def forget(self) -> None:
        """Drop the basis."""
        self._model.reset()

    def set_cost(self, columns: Array, cost: Array) -> None:
        """Set the cost of some columns."""
        for column, price in zip(columns.tolist(), cost.tolist(), strict=True):
            self._columns[column].Obj = price

    def set_entry(self, row: int, column: int, value: float) -> None:
        """Set an entry of the matrix."""
        self._model.chgCoeff(self._rows[row], self._columns[column], value)

    def set_row(self, row: int, lower: float, upper: float) -> None:
        """Set the right side of a row; whether it is an equality stays."""
        self._rows[row].RHS = upper

    @property
    def point(self) -> Array:
        """Values of the columns after the last run."""
        return np.array(self._model.getAttr("X", self._columns))

    @property
    def multipliers(self) -> Array:
        """Dual values of the rows after the last run."""
        return np.array(self._model.getAttr("Pi", self._rows))

    def basis(self) -> tuple[Array, Array]:
        """Columns in the final basis, and rows that are not, as many."""
        columns = np.array(self._model.getAttr("VBasis", self._columns))
        rows = np.array(self._model.getAttr("CBasis", self._rows))
        return np.flatnonzero(columns == 0), np.flatnonzero(rows != 0)
