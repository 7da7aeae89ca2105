"""Gurobi, where it is installed and licensed."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from gdpnet.errors import SolverError
from gdpnet.solve._linear import Answer, LinearProgram, Outcome


@cache
def environment() -> Any:
    """One silent environment for the process; says plainly why there is none."""
    try:
        import gurobipy
    except ImportError:
        raise SolverError(
            "Gurobi was asked for, but gurobipy is not installed. Install it, or use HiGHS."
        ) from None
    try:
        env = gurobipy.Env(params={"OutputFlag": 0})
    except gurobipy.GurobiError as error:
        raise SolverError(f"Gurobi's licence was refused: {error}. HiGHS needs none.") from None
    return env


def solve(program: LinearProgram, time_limit: float | None = None) -> Answer:
    """Solve a program at Gurobi's tightest tolerances, one thread."""
    import gurobipy

    status = gurobipy.GRB.Status
    outcomes = {
        status.OPTIMAL: Outcome.OPTIMAL,
        status.INFEASIBLE: Outcome.INFEASIBLE,
        status.UNBOUNDED: Outcome.UNBOUNDED,
        status.TIME_LIMIT: Outcome.LIMIT,
    }
    try:
        model = gurobipy.Model(env=environment())
        model.Params.Threads = 1
        model.Params.FeasibilityTol = model.Params.OptimalityTol = model.Params.IntFeasTol = 1e-9
        model.Params.MIPGap = model.Params.MIPGapAbs = 0.0
        model.Params.DualReductions = 0  # tells infeasible from unbounded
        if time_limit is not None:
            model.Params.TimeLimit = time_limit
        kinds = np.where(program.integer, "I", "C")
        v = model.addMVar(
            len(program.cost), lb=program.lower, ub=program.upper, obj=program.cost, vtype=kinds
        )
        for side, bound in (("<", program.row_upper), (">", program.row_lower)):
            rows = np.isfinite(bound)
            if rows.any():
                model.addMConstr(program.matrix[rows], v, side, bound[rows])
        model.optimize()
    except gurobipy.GurobiError as error:
        raise SolverError(
            f"Gurobi refused the problem ({len(program.cost)} variables, {len(program.matrix)} "
            f"rows): {error}. The licence inside its wheel allows 2000 of each; HiGHS has no limit."
        ) from None
    outcome = outcomes.get(model.Status, Outcome.FAILED)
    if model.SolCount == 0 or outcome not in (Outcome.OPTIMAL, Outcome.LIMIT):
        return Answer(outcome)
    proved = float(model.ObjBound if program.integer.any() else model.ObjVal)
    return Answer(outcome, np.array(v.X), proved if math.isfinite(proved) else -np.inf)
