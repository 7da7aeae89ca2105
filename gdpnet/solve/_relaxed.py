"""Projection onto CNF, partial DNF and written-out DNF: one linear program a sample.

Samples with the same active rules share a program, which is assembled once and kept; what differs
between them is a list of entries. The point is checked against the rules: a relaxation's optimum
may break them, and the status says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import torch

from gdpnet.convexify._lifted import LiftedProgram
from gdpnet.convexify.plan import Plan
from gdpnet.rules._batch import Batch
from gdpnet.rules.model import RuleModel
from gdpnet.solve import _existence, _gurobi
from gdpnet.solve._exact import engine_of
from gdpnet.solve._linear import LinearProgram, Outcome
from gdpnet.solve._results import SOLVER_NAMES, Array, Options, Results
from gdpnet.solve.status import Status

if TYPE_CHECKING:
    pass

# Bytes of per-sample coefficients that the dense solver holds at a time.
_PIECE = 64e6

# A point satisfies the rules if it does within this.
_SATISFIED = 1e-6

Solver = Callable[[LiftedProgram, Array], tuple[Array, Array]]
"""`(program, moving values (B, entries)) -> (points (B, n), outcomes (B,))`."""

_SOLVED, _INFEASIBLE, _FAILED = 0, 1, 2

_kept: WeakKeyDictionary[RuleModel, dict[Any, Any]] = WeakKeyDictionary()


def solve(
    rules: RuleModel,
    x: Array,
    yhat: Array,
    invalid: Array,
    options: Options,
    mark: bool,
    plan: Plan,
    solver: str,
) -> Results:
    """Project a flat batch; arguments as in `_exact.solve`, and the plan of basic steps."""
    plan.indices(rules)
    engine = engine_of(rules)
    instance = engine.instantiate(x)
    unusable = instance.unusable()
    if unusable.any():
        if not mark:
            rules.refuse_unusable(rules.evaluate(torch.from_numpy(x)).rows)
        invalid |= unusable
    results = Results.start(rules, yhat, instance.active[:, engine.rule_clauses])
    results.solver[:] = SOLVER_NAMES.index(solver)
    usable = np.flatnonzero(~invalid)
    accepted = np.zeros(len(yhat), dtype=bool)
    if len(usable):
        batch = _flat(x[usable], yhat[usable])
        accepted[usable] = rules.satisfied(batch.x, batch.y, options.tolerance).numpy()
    lower, upper = rules.lower.numpy(), rules.upper.numpy()
    start = np.clip(yhat, lower, upper)
    outside = np.abs(start - yhat) @ options.weights
    rest = np.flatnonzero(~accepted & ~invalid)
    patterns, which = np.unique(instance.active[rest], axis=0, return_inverse=True)
    for p, pattern in enumerate(patterns):
        samples = rest[which.ravel() == p]
        program = _program(rules, plan, pattern, engine.rule_clauses, options, solver)
        if program.contradictory:
            results.status[samples] = Status.CONFLICT
            results.value[samples] = np.inf
            continue
        part = instance.take(samples)
        moving = program.moving_values(part.bound, part.varying, start[samples])
        points, outcome = _SOLVERS[solver](program, moving)
        solved = samples[outcome == _SOLVED]
        good = points[outcome == _SOLVED]
        y = program.outputs(good, start[solved])
        results.y[solved] = np.clip(y, lower, upper)
        results.value[solved] = program.value_of(good) + outside[solved]
        results.status[solved] = Status.PROJECTED
        infeasible = samples[outcome == _INFEASIBLE]
        results.status[infeasible] = Status.CONFLICT
        results.value[infeasible] = np.inf
        results.status[samples[outcome == _FAILED]] = Status.ERROR
    _judge(rules, x, results, np.flatnonzero(accepted), options.tolerance)
    _judge(rules, x, results, np.flatnonzero(results.status == Status.PROJECTED), _SATISFIED)
    return results


def _judge(rules: RuleModel, x: Array, results: Results, samples: Array, tol: float) -> None:
    """Which disjuncts hold, and RELAXED where a rule is broken."""
    if not len(samples):
        return
    batch = _flat(x[samples], results.y[samples])
    holds = rules.satisfied(batch.x, batch.y, tol).numpy()
    results.status[samples[~holds]] = Status.RELAXED
    for group, judge in ((samples[holds], _existence.holding), (samples[~holds], _existence.each)):
        if len(group):
            part = _flat(x[group], results.y[group])
            results.assignment[group] = judge(rules, part, tol).astype(np.int8)


def _flat(x: Array, y: Array) -> Batch:
    return Batch(torch.from_numpy(x), torch.from_numpy(y), torch.Size([len(y)]), torch.float64)


def _program(
    rules: RuleModel,
    plan: Plan,
    pattern: Array,
    rule_clauses: Array,
    options: Options,
    solver: str,
) -> LiftedProgram:
    kept = _kept.setdefault(rules, {})
    key = (plan, pattern.tobytes(), options.weights.tobytes(), solver == "dense")
    if key not in kept:
        active = pattern[rule_clauses].tolist()
        clusters = plan.active(rules, active)
        kept[key] = LiftedProgram(
            rules, clusters, pattern.tolist(), options.weights, split=solver != "dense"
        )
    return kept[key]


# ---- solvers ----------------------------------------------------------------------------------


def _dense(program: LiftedProgram, moving: Array) -> tuple[Array, Array]:
    """The engine's own dual simplex, rows entered when violated."""
    from gdpnet.solve.exact._linear import DenseSolver

    solver = program.__dict__.get("dense")
    if solver is None:
        solver = program.__dict__["dense"] = DenseSolver(program)
    size = max(1, int(_PIECE / solver.bytes_a_sample))
    found = [solver.solve(moving[k : k + size]) for k in range(0, len(moving), size)]
    return np.concatenate([p for p, _ in found]), np.concatenate([o for _, o in found])


def _highs_in_place(program: LiftedProgram, moving: Array) -> tuple[Array, Array]:
    """HiGHS, the model kept and its coefficients changed, from the last basis."""
    solver = program.__dict__.get("highs")
    if solver is None:
        solver = program.__dict__["highs"] = _HighsModel(program)
    points = np.full((len(moving), len(program.cost)), np.nan)
    outcome = np.empty(len(moving), dtype=np.int8)
    for s, values in enumerate(moving):
        point, outcome[s] = solver.solve(values)
        if point is not None:
            points[s] = point
    return points, outcome


class _HighsModel:
    """A program kept in HiGHS."""

    def __init__(self, program: LiftedProgram) -> None:
        from gdpnet.solve import _highs

        self.program = program
        self.solver = _highs.new_solver()
        self.solver.passModel(_highs.model_of(_linear(program)))

    def solve(self, values: Array) -> tuple[Array | None, int]:
        """Change the coefficients and solve again."""
        from highspy import HighsModelStatus as ModelStatus

        for (row, column), value in zip(self.program.moving.tolist(), values.tolist(), strict=True):
            self.solver.changeCoeff(row, column, value)
        self.solver.run()
        status = self.solver.getModelStatus()
        if status not in (ModelStatus.kOptimal, ModelStatus.kInfeasible):
            self.solver.clearSolver()  # the old basis may have led it astray
            self.solver.run()
            status = self.solver.getModelStatus()
        if status == ModelStatus.kOptimal:
            return np.array(self.solver.getSolution().col_value), _SOLVED
        return None, _INFEASIBLE if status == ModelStatus.kInfeasible else _FAILED


def _gurobi_each(program: LiftedProgram, moving: Array) -> tuple[Array, Array]:
    linear = _linear(program)
    points = np.full((len(moving), len(program.cost)), np.nan)
    outcome = np.empty(len(moving), dtype=np.int8)
    codes = {Outcome.OPTIMAL: _SOLVED, Outcome.INFEASIBLE: _INFEASIBLE}
    for s, values in enumerate(moving):
        linear.matrix[program.moving[:, 0], program.moving[:, 1]] = values
        answer = _gurobi.solve(linear)
        outcome[s] = codes.get(answer.outcome, _FAILED)
        if answer.point is not None:
            points[s] = answer.point
    return points, outcome


def _linear(program: LiftedProgram) -> LinearProgram:
    rows, columns = len(program.bound), len(program.cost)
    matrix = np.zeros((rows, columns))
    matrix[np.repeat(np.arange(rows), np.diff(program.start)), program.column] = program.value
    return LinearProgram(
        cost=program.cost,
        matrix=matrix,
        row_lower=np.where(program.equality, program.bound, -np.inf),
        row_upper=program.bound,
        lower=program.lower,
        upper=np.full(columns, np.inf),
        integer=np.zeros(columns, dtype=bool),
    )


_SOLVERS: dict[str, Solver] = {
    "dense": _dense,
    "highs": _highs_in_place,
    "gurobi": _gurobi_each,
}


def names() -> Sequence[str]:
    """Solvers for written-out relaxations."""
    return tuple(_SOLVERS)
