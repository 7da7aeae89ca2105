"""Gurobi, where it is installed and licensed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from gdpnet.errors import SolverError
from gdpnet.lp.clock import UNLIMITED, Clock, run_beside
from gdpnet.lp.program import LinearProgram, Outcome, Solution

if TYPE_CHECKING:
    from gdpnet.relaxation.sparse import SparseProgram


@cache
def environment() -> Any:
    """One silent environment for the process; says plainly why there is none."""
    try:
        import gurobipy
    except ImportError:
        raise SolverError(
            "Gurobi was asked for, but gurobipy is not installed. pip install 'gdpnet[gurobi]', or "
            "use HiGHS."
        ) from None
    try:
        env = gurobipy.Env(params={"OutputFlag": 0})
    except gurobipy.GurobiError as error:
        raise SolverError(f"Gurobi's licence was refused: {error}. HiGHS needs none.") from None
    return env


def unavailable() -> str | None:
    """Why it cannot be used here, None where it can."""
    try:
        environment()
    except SolverError as error:
        return str(error)
    return None


@contextmanager
def refusals(variables: int, rows: int) -> Iterator[None]:
    """Turn what Gurobi raises into one line that says what to do."""
    environment()  # first: it has lines of its own
    import gurobipy

    try:
        yield
    except gurobipy.GurobiError as error:
        raise SolverError(
            f"Gurobi refused the problem ({variables} variables, {rows} rows): {error}. The "
            "licence inside its wheel allows 2000 of each; HiGHS has no limit."
        ) from None


def _new_model() -> Any:
    import gurobipy

    model = gurobipy.Model(env=environment())
    model.Params.Threads = 1
    model.Params.FeasibilityTol = model.Params.OptimalityTol = model.Params.IntFeasTol = 1e-9
    model.Params.DualReductions = 0  # tells infeasible from unbounded
    return model


def kept_model(program: SparseProgram, unit: np.ndarray) -> tuple[Any, list[Any], list[Any]]:
    """A relaxation's program, to be changed and solved again: model, columns and rows.

    Args:
        program: the program.
        unit: factor of each row.
    """
    from scipy.sparse import csr_array  # late: its import takes a while

    model = _new_model()
    model.Params.Method = 1  # dual simplex: a vertex, and the old basis serves
    columns = model.addMVar(len(program.lower), lb=program.lower, ub=program.upper)
    shape = (len(program.bound), len(program.lower))
    value = program.value * unit[program.row_of]
    matrix = csr_array((value, program.column, program.start), shape=shape)
    sense = np.where(program.equality, "=", "<")
    rows = model.addMConstr(matrix, columns, sense, program.bound * unit)
    model.update()
    return model, columns.tolist(), rows.tolist()


def solve(program: LinearProgram, clock: Clock = UNLIMITED) -> Solution:
    """Solve a program at Gurobi's tightest tolerances, one thread."""
    if clock.over:
        return Solution(Outcome.LIMIT)
    with refusals(len(program.cost), len(program.matrix)):
        import gurobipy

        status = gurobipy.GRB.Status
        outcomes = {
            status.OPTIMAL: Outcome.OPTIMAL,
            status.INFEASIBLE: Outcome.INFEASIBLE,
            status.UNBOUNDED: Outcome.UNBOUNDED,
            status.TIME_LIMIT: Outcome.LIMIT,
            status.INTERRUPTED: Outcome.LIMIT,
        }
        model = _new_model()
        model.Params.MIPGap = model.Params.MIPGapAbs = 0.0
        if clock.left is not None:
            model.Params.TimeLimit = clock.left
        kinds = np.where(program.integer, "I", "C")
        v = model.addMVar(
            len(program.cost), lb=program.lower, ub=program.upper, obj=program.cost, vtype=kinds
        )
        for side, bound in (("<", program.row_upper), (">", program.row_lower)):
            rows = np.isfinite(bound)
            if rows.any():
                model.addMConstr(program.matrix[rows], v, side, bound[rows])
        if not run_beside(model.optimize, model.terminate, clock):
            return Solution(Outcome.LIMIT)
    outcome = outcomes.get(model.Status, Outcome.FAILED)
    if model.SolCount == 0 or outcome not in (Outcome.OPTIMAL, Outcome.LIMIT):
        return Solution(outcome)
    proved = float(model.ObjBound if program.integer.any() else model.ObjVal)
    return Solution(outcome, np.array(v.X), proved if math.isfinite(proved) else -np.inf)
