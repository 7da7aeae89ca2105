"""Gurobi, where it is installed and licensed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from gdpnet.errors import SolverError
from gdpnet.lp import options
from gdpnet.lp.clock import UNLIMITED, Clock, run_beside
from gdpnet.lp.program import LinearProgram, Outcome, Solution, SparseLinearProgram


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


def licence() -> str:
    """What the licence allows, and until when where it ends.

    Raises:
        ImportError: gurobipy is not there, or broken.
        SolverError: there is no licence.
    """
    import gurobipy

    try:
        with gurobipy.Env(empty=True) as env:
            env.setParam("OutputFlag", 0)
            env.start()
            with gurobipy.Model(env=env) as small:
                small.addVar(ub=1.0, obj=-1.0)
                small.optimize()
                until = _expiry(small)
            # The licence in the wheel takes at most 2000 variables and 2000 constraints.
            with gurobipy.Model(env=env) as large:
                large.addVars(2001)
                try:
                    large.optimize()
                except gurobipy.GurobiError as error:
                    if error.errno != gurobipy.GRB.Error.SIZE_LIMIT_EXCEEDED:
                        raise
                    allowed = "size-limited licence: at most 2000 variables and 2000 constraints"
                else:
                    allowed = "full licence: models of any size"
    except gurobipy.GurobiError as error:
        raise SolverError(f"no usable licence: {error}") from None
    return allowed + until


def _expiry(model: Any) -> str:
    # YYYYMMDD as a number; 99999999 stands for a licence without end.
    digits = str(model.LicenseExpiration)
    if len(digits) != 8 or digits == "99999999":
        return ""
    return f", until {digits[:4]}-{digits[4:6]}-{digits[6:]}"


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


def new_model(chosen: options.Options) -> Any:
    """An empty model with one of the sets of options."""
    import gurobipy

    model = gurobipy.Model(env=environment())
    for option, value in chosen.items():
        setattr(model.Params, option, value)
    return model


def outcome_of(model: Any) -> Outcome:
    """How the last run ended."""
    from gurobipy import GRB

    outcomes = {
        GRB.Status.OPTIMAL: Outcome.OPTIMAL,
        GRB.Status.INFEASIBLE: Outcome.INFEASIBLE,
        GRB.Status.UNBOUNDED: Outcome.UNBOUNDED,
        GRB.Status.TIME_LIMIT: Outcome.LIMIT,
        GRB.Status.NODE_LIMIT: Outcome.LIMIT,
        GRB.Status.INTERRUPTED: Outcome.LIMIT,
    }
    return outcomes.get(model.Status, Outcome.FAILED)


def solve(program: LinearProgram | SparseLinearProgram, clock: Clock = UNLIMITED) -> Solution:
    """Solve a program at Gurobi's tightest tolerances, one thread."""
    from scipy.sparse import csr_array  # late: its import takes a while

    if clock.over:
        return Solution(Outcome.LIMIT)
    program = program.sparse()
    integer = program.integer is not None and bool(program.integer.any())
    size = len(program.row_lower), len(program.cost)
    with refusals(*size[::-1]):
        model = new_model(options.GUROBI_INTEGER)
        if clock.left is not None:
            model.Params.TimeLimit = clock.left
        if clock.nodes is not None:
            model.Params.NodeLimit = clock.nodes
        kinds = np.where(np.asarray(program.integer), "I", "C") if integer else "C"
        v = model.addMVar(
            len(program.cost), lb=program.lower, ub=program.upper, obj=program.cost, vtype=kinds
        )
        matrix = csr_array((program.value, program.column, program.start), shape=size)
        for side, bound in (("<", program.row_upper), (">", program.row_lower)):
            rows = np.isfinite(bound)
            if rows.any():
                model.addMConstr(matrix[rows], v, side, bound[rows])
        if integer and program.guess is not None:
            known = np.isfinite(program.guess) & np.asarray(program.integer)
            v[known].Start = program.guess[known]
        if not run_beside(model.optimize, model.terminate, clock):
            return Solution(Outcome.LIMIT)
    outcome = outcome_of(model)
    if model.SolCount == 0 or outcome not in (Outcome.OPTIMAL, Outcome.LIMIT):
        return Solution(outcome)
    proved = float(model.ObjBound if integer else model.ObjVal)
    return Solution(outcome, np.array(v.X), proved if math.isfinite(proved) else -np.inf)
