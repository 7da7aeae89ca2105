"""HiGHS: one thread, and a vertex always."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from gdpnet.errors import SolverError
from gdpnet.lp import options
from gdpnet.lp.clock import UNLIMITED, Clock, run_beside
from gdpnet.lp.program import LinearProgram, Outcome, Solution, SparseLinearProgram

if TYPE_CHECKING:
    import highspy

# Entries of a linear program from which on it pays to run it where it can be called off.
_LARGE = 20_000


def unavailable() -> str | None:
    """Why it cannot be used here, None where it can."""
    try:
        package()
    except SolverError as error:
        return str(error)
    return None


def solve(program: LinearProgram | SparseLinearProgram, clock: Clock = UNLIMITED) -> Solution:
    """Solve a program; simplex, so that the answer is a vertex."""
    return _solve(program.sparse(), clock, options.INTEGER)


def prove(program: SparseLinearProgram, clock: Clock = UNLIMITED) -> Solution:
    """Solve a mixed-integer program whose guess is good: bounds matter more than points."""
    return _solve(program, clock, options.INTEGER_KNOWN)


def _solve(program: SparseLinearProgram, clock: Clock, chosen: options.Options) -> Solution:
    answer = _run(program, clock, chosen, presolve="choose")
    if answer.outcome in (Outcome.FAILED, Outcome.INFEASIBLE):
        # Presolve decides infeasibility with tolerances of its own, and may not tell it from
        # unboundedness; without it HiGHS gives a definite answer.
        answer = _run(program, clock, chosen, presolve="off")
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
    return package().SolutionStatus.kSolutionStatusFeasible


@cache
def _outcomes() -> dict[Any, Outcome]:
    status = package().HighsModelStatus
    return {
        status.kOptimal: Outcome.OPTIMAL,
        status.kInfeasible: Outcome.INFEASIBLE,
        status.kUnbounded: Outcome.UNBOUNDED,
        status.kUnboundedOrInfeasible: Outcome.FAILED,
        status.kTimeLimit: Outcome.LIMIT,
        status.kInterrupt: Outcome.LIMIT,
        status.kIterationLimit: Outcome.LIMIT,
        status.kSolutionLimit: Outcome.LIMIT,  # of nodes
        status.kModelEmpty: Outcome.OPTIMAL,
    }


def outcome_of(solver: highspy.Highs) -> Outcome:
    """How the last run ended; FAILED before the first."""
    return _outcomes().get(solver.getModelStatus(), Outcome.FAILED)


def new_solver(
    chosen: options.Options = options.LINEAR,
    presolve: str = "choose",
    time_limit: float | None = None,
) -> highspy.Highs:
    """HiGHS with one of the sets of options."""
    solver = package().Highs()
    limit = float("inf") if time_limit is None else time_limit
    for option, value in {**chosen, "presolve": presolve, "time_limit": limit}.items():
        solver.setOptionValue(option, value)
    return solver


def _run(
    program: SparseLinearProgram, clock: Clock, chosen: options.Options, presolve: str
) -> Solution:
    if clock.over:
        return Solution(Outcome.LIMIT)
    integer = program.integer is not None and bool(program.integer.any())
    solver = new_solver(chosen if integer else options.LINEAR, presolve, clock.left)
    if integer and clock.nodes is not None:
        solver.setOptionValue("mip_max_nodes", clock.nodes)
    solver.passModel(model_of(program))
    if integer and program.guess is not None:
        known = np.flatnonzero(np.isfinite(program.guess) & np.asarray(program.integer))
        solver.setSolution(len(known), known.astype(np.int32), program.guess[known])
    if integer or len(program.row_lower) * len(program.cost) > _LARGE:
        solver.HandleUserInterrupt = True
        if not run_beside(solver.run, solver.cancelSolve, clock):
            return Solution(Outcome.LIMIT)
    else:
        solver.run()
    outcome = outcome_of(solver)
    info = solver.getInfo()
    bound = info.mip_dual_bound if integer else info.objective_function_value
    found = info.primal_solution_status == _feasible()
    nodes = max(0, int(info.mip_node_count)) if integer else 0
    if outcome is Outcome.OPTIMAL or (outcome is Outcome.LIMIT and found):
        solution = solver.getSolution()
        multipliers = None if integer else np.array(solution.row_dual, dtype=float)
        return Solution(
            outcome, np.array(solution.col_value, dtype=float), bound, multipliers, nodes
        )
    if integer and outcome is Outcome.LIMIT:
        return Solution(outcome, bound=bound, nodes=nodes)
    return Solution(outcome)


def model_of(program: LinearProgram | SparseLinearProgram) -> highspy.HighsLp:
    """A program as HiGHS wants it."""
    sparse = program.sparse()
    model: highspy.HighsLp = package().HighsLp()
    model.num_col_, model.num_row_ = len(sparse.cost), len(sparse.row_lower)
    model.col_cost_ = sparse.cost
    model.col_lower_, model.col_upper_ = sparse.lower, sparse.upper
    model.row_lower_, model.row_upper_ = sparse.row_lower, sparse.row_upper
    model.a_matrix_.format_ = package().MatrixFormat.kRowwise
    model.a_matrix_.start_ = sparse.start.astype(np.int32)
    model.a_matrix_.index_ = sparse.column.astype(np.int32)
    model.a_matrix_.value_ = sparse.value
    if sparse.integer is not None and sparse.integer.any():
        kind = package().HighsVarType
        kinds = (kind.kContinuous, kind.kInteger)
        model.integrality_ = [kinds[int(integer)] for integer in sparse.integer]
    return model
