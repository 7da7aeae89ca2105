"""HiGHS, at its tightest tolerances, one thread, a vertex always."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from gdpnet.errors import SolverError
from gdpnet.lp.clock import UNLIMITED, Clock, run_beside
from gdpnet.lp.program import LinearProgram, Outcome, Solution

if TYPE_CHECKING:
    import highspy

# The smallest values HiGHS accepts. In mixed-integer programs its feasibility tolerances are ten
# times that: at the smallest, HiGHS 1.15 has called feasible programs infeasible and missed optima.
_TOLERANCES = {
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
    "mip_feasibility_tolerance": 1e-10,
    "mip_rel_gap": 0.0,
    "mip_abs_gap": 0.0,
}


# Entries of a linear program from which on it pays to run it where it can be called off.
_LARGE = 20_000


def unavailable() -> str | None:
    """Why it cannot be used here, None where it can."""
    try:
        package()
    except SolverError as error:
        return str(error)
    return None


def solve(program: LinearProgram, clock: Clock = UNLIMITED) -> Solution:
    """Solve a program; simplex, so that the answer is a vertex."""
    answer = _run(program, clock, presolve="choose")
    if answer.outcome in (Outcome.FAILED, Outcome.INFEASIBLE):
        # Presolve decides infeasibility with tolerances of its own, and may not tell it from
        # unboundedness; without it HiGHS gives a definite answer.
        answer = _run(program, clock, presolve="off")
    return answer


def package() -> Any:
    """highspy, imported late: importing gdpnet starts no solver."""
    try:
        import highspy
    except ImportError:
        raise SolverError(
            "HiGHS was asked for, but highspy is not installed. pip install highspy"
        ) from None
    return highspy


@cache
def _feasible() -> Any:
    from highspy import SolutionStatus

    return SolutionStatus.kSolutionStatusFeasible


@cache
def _outcomes() -> dict[Any, Outcome]:
    from highspy import HighsModelStatus as Status

    return {
        Status.kOptimal: Outcome.OPTIMAL,
        Status.kInfeasible: Outcome.INFEASIBLE,
        Status.kUnbounded: Outcome.UNBOUNDED,
        Status.kUnboundedOrInfeasible: Outcome.FAILED,
        Status.kTimeLimit: Outcome.LIMIT,
        Status.kInterrupt: Outcome.LIMIT,
        Status.kIterationLimit: Outcome.LIMIT,
        Status.kModelEmpty: Outcome.OPTIMAL,
    }


def new_solver(
    presolve: str = "choose", time_limit: float | None = None, whole: bool = False
) -> highspy.Highs:
    """A silent simplex on one thread, at the tightest tolerances that can be relied upon."""
    solver = package().Highs()
    options: dict[str, bool | int | float | str] = {
        "output_flag": False,
        "threads": 1,
        "solver": "simplex",
        "presolve": presolve,
        "time_limit": float("inf") if time_limit is None else time_limit,
        **_TOLERANCES,
    }
    if whole:
        options |= {"primal_feasibility_tolerance": 1e-9, "mip_feasibility_tolerance": 1e-9}
    for option, value in options.items():
        solver.setOptionValue(option, value)
    return solver


def _run(program: LinearProgram, clock: Clock, presolve: str) -> Solution:
    if clock.over:
        return Solution(Outcome.LIMIT)
    whole = bool(program.integer.any())
    solver = new_solver(presolve, clock.left, whole)
    solver.passModel(model_of(program))
    if whole or program.matrix.size > _LARGE:
        solver.HandleUserInterrupt = True
        if not run_beside(solver.run, solver.cancelSolve, clock):
            return Solution(Outcome.LIMIT)
    else:
        solver.run()
    outcome = _outcomes().get(solver.getModelStatus(), Outcome.FAILED)
    info = solver.getInfo()
    bound = info.mip_dual_bound if whole else info.objective_function_value
    found = info.primal_solution_status == _feasible()
    if outcome is Outcome.OPTIMAL or (outcome is Outcome.LIMIT and found):
        point = np.array(solver.getSolution().col_value, dtype=float)
        return Solution(outcome, point, bound)
    return Solution(outcome)


def model_of(program: LinearProgram) -> highspy.HighsLp:
    """A program as HiGHS wants it."""
    rows = len(program.matrix)
    row_of, column_of = np.nonzero(program.matrix)
    model = sparse_model(
        *(program.cost, program.lower, program.upper, program.row_lower, program.row_upper),
        np.searchsorted(row_of, np.arange(rows + 1)),
        *(column_of, program.matrix[row_of, column_of]),
    )
    if program.integer.any():
        kind = package().HighsVarType
        kinds = (kind.kContinuous, kind.kInteger)
        model.integrality_ = [kinds[int(whole)] for whole in program.integer]
    return model


def sparse_model(
    cost: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    row_lower: np.ndarray,
    row_upper: np.ndarray,
    start: np.ndarray,
    column: np.ndarray,
    value: np.ndarray,
) -> highspy.HighsLp:
    """A linear program given by compressed rows."""
    model: highspy.HighsLp = package().HighsLp()
    model.num_col_, model.num_row_ = len(cost), len(row_lower)
    model.col_cost_ = cost
    model.col_lower_, model.col_upper_ = lower, upper
    model.row_lower_, model.row_upper_ = row_lower, row_upper
    model.a_matrix_.format_ = package().MatrixFormat.kRowwise
    model.a_matrix_.start_ = start.astype(np.int32)
    model.a_matrix_.index_ = column.astype(np.int32)
    model.a_matrix_.value_ = value
    return model
