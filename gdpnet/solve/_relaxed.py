"""Projection onto CNF, partial DNF and written-out DNF: one linear program a sample.

Samples with the same active rules share a program, which is assembled once and kept; what differs
between them is a list of entries. The point is checked against the rules: a relaxation's optimum
may break them, and the status says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from gdpnet.convexify._lifted import LiftedProgram
from gdpnet.convexify._products import count_products
from gdpnet.convexify.graph import neighbours
from gdpnet.convexify.plan import Plan
from gdpnet.rules._batch import Batch
from gdpnet.rules.model import RuleModel
from gdpnet.solve import _existence, _gurobi
from gdpnet.solve._exact import engine_of, instantiate
from gdpnet.solve._linear import LinearProgram, Outcome
from gdpnet.solve._results import SOLVER_NAMES, Array, Options, Results
from gdpnet.solve.status import Status

if TYPE_CHECKING:
    from gdpnet.solve.exact import Instance

if TYPE_CHECKING:
    pass

# Bytes of per-sample coefficients that the dense solver holds at a time.
_PIECE = 64e6

# Above this many columns HiGHS, with its sparse factors, is ahead of the dense simplex.
_DENSE_MOST = 300

# Products that adaptive basic steps write down for a cluster.
_MOST_ADAPTIVE = 512

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
    adaptive: bool = False,
) -> Results:
    """Project a flat batch; arguments as in `_exact.solve`, and the plan of basic steps.

    With `adaptive` the plan is where it starts from.
    """
    plan.indices(rules)
    engine, instance = instantiate(rules, x, invalid, mark)
    results = Results.start(rules, yhat, instance.active[:, engine.rule_clauses])
    results.solver[:] = SOLVER_NAMES.index(solver)
    usable = np.flatnonzero(~invalid)
    accepted = np.zeros(len(yhat), dtype=bool)
    if len(usable):
        batch = Batch.of_arrays(x[usable], yhat[usable])
        accepted[usable] = rules.satisfied(batch.x, batch.y, options.tolerance).numpy()
    rest = np.flatnonzero(~accepted & ~invalid)
    groups = _Batch(rules, x, yhat, instance, options, solver, results)
    for pattern, samples in _groups(instance.active[rest], rest):
        clusters = plan.active(rules, pattern[engine.rule_clauses].tolist())
        groups.solve(pattern, clusters, samples)
    judge(rules, x, results, np.flatnonzero(accepted), options.tolerance)
    judge(rules, x, results, np.flatnonzero(results.status == Status.PROJECTED), _SATISFIED)
    if adaptive:
        _take_basic_steps(groups, plan)
    return results


class _Batch:
    """A batch whose samples are solved in groups that share a program."""

    def __init__(
        self,
        rules: RuleModel,
        x: Array,
        yhat: Array,
        instance: Instance,
        options: Options,
        solver: str,
        results: Results,
    ) -> None:
        self.rules, self.x, self.instance, self.options = rules, x, instance, options
        self.solver, self.results = solver, results
        self.lower, self.upper = rules.lower.numpy(), rules.upper.numpy()
        self.start = np.clip(yhat, self.lower, self.upper)
        self.outside = np.abs(self.start - yhat) @ options.weights

    def solve(self, pattern: Array, clusters: Sequence[Sequence[int]], samples: Array) -> None:
        """Solve samples with the same active clauses, merged in the same way."""
        results, solver = self.results, self.solver
        program = self._program(pattern, clusters, split=solver != "dense")
        if program.contradictory:
            results.status[samples] = Status.CONFLICT
            results.value[samples] = np.inf
            return
        if solver == "dense" and len(program.cost) > _DENSE_MOST:
            solver, program = "highs", self._program(pattern, clusters, split=True)
            results.solver[samples] = SOLVER_NAMES.index("highs")
        part = self.instance.take(samples)
        moving = program.moving_values(part.bound, part.varying, self.start[samples])
        points, outcome = _SOLVERS[solver](program, moving)
        solved, good = samples[outcome == _SOLVED], points[outcome == _SOLVED]
        y = program.outputs(good, self.start[solved])
        results.y[solved] = np.clip(y, self.lower, self.upper)
        results.value[solved] = program.value_of(good) + self.outside[solved]
        results.status[solved] = Status.PROJECTED
        results.status[samples[outcome == _INFEASIBLE]] = Status.CONFLICT
        results.value[samples[outcome == _INFEASIBLE]] = np.inf
        results.status[samples[outcome == _FAILED]] = Status.ERROR

    def _program(
        self, pattern: Array, clusters: Sequence[Sequence[int]], split: bool
    ) -> LiftedProgram:
        kept = _kept.setdefault(self.rules, {})
        weights = self.options.weights
        key = (pattern.tobytes(), tuple(map(tuple, clusters)), weights.tobytes(), split)
        if key not in kept:
            kept[key] = LiftedProgram(self.rules, clusters, pattern.tolist(), weights, split)
        return kept[key]


def _groups(rows: Array, samples: Array) -> Iterator[tuple[Array, Array]]:
    """Different rows, and the samples that have each."""
    different, which = np.unique(rows, axis=0, return_inverse=True)
    for k, row in enumerate(different):
        yield row, samples[which.ravel() == k]


def _take_basic_steps(batch: _Batch, plan: Plan) -> None:
    """Merge broken rules with rules they interact with, round by round, until all rules hold.

    A point of a relaxation that satisfies all rules is the nearest one: its distance is at most the
    relaxation's value, which is at most the distance of any point that satisfies them.
    """
    rules, results, engine = batch.rules, batch.results, engine_of(batch.rules)
    related = neighbours(rules)
    merged: dict[int, tuple[tuple[int, ...], ...]] = {}
    results.rounds = np.zeros(len(batch.x), dtype=np.int64)
    for _ in range(len(rules.names)):
        samples = np.flatnonzero(results.status == Status.RELAXED)
        if not len(samples):
            return
        flat = Batch.of_arrays(batch.x[samples], results.y[samples])
        broken = (rules.violation(flat.x, flat.y) > _SATISFIED).numpy()
        rows = np.concatenate([batch.instance.active[samples], broken], 1)
        todo: dict[tuple[bytes, tuple[tuple[int, ...], ...]], list[int]] = {}
        for row, group in _groups(rows, samples):
            pattern, bad = row[: -len(rules.names)], np.flatnonzero(row[-len(rules.names) :])
            active = pattern[engine.rule_clauses]
            for index in group.tolist():
                before = merged.get(index)
                if before is None:
                    before = tuple(map(tuple, plan.active(rules, active.tolist())))
                merged[index] = _enlarged(rules, before, bad.tolist(), related)
                todo.setdefault((pattern.tobytes(), merged[index]), []).append(index)
        for (key, clusters), members in todo.items():
            group = np.array(members)
            if any(count_products(rules.data, c) > _MOST_ADAPTIVE for c in clusters):
                results.status[group] = Status.LIMIT
                continue
            results.rounds[group] += 1
            batch.solve(np.frombuffer(key, dtype=bool), clusters, group)
            judge(rules, batch.x, results, group[results.status[group] == Status.PROJECTED],
                   _SATISFIED)  # fmt: skip


def _enlarged(
    rules: RuleModel,
    clusters: tuple[tuple[int, ...], ...],
    broken: Sequence[int],
    related: Array,
) -> tuple[tuple[int, ...], ...]:
    """Every broken rule's cluster joined with the smallest one that it interacts with."""
    current = [set(cluster) for cluster in clusters]
    # Where no single rule is broken, propositions or auxiliaries are: take any cluster.
    for rule in broken or [min(current[0])] if current else []:
        own = next(c for c in current if rule in c)
        others = [c for c in current if c is not own]
        # Rules without a common variable can be broken together on a tie; then any other will do.
        near = [c for c in others if any(related[r, s] for r in own for s in c)]
        others = near or others
        if not others:
            continue
        other = min(others, key=lambda c: (count_products(rules.data, sorted(c)), min(c)))
        own |= other
        current.remove(other)
    return tuple(sorted(tuple(sorted(c)) for c in current))


def judge(rules: RuleModel, x: Array, results: Results, samples: Array, tol: float) -> None:
    """Which disjuncts hold, and RELAXED where a rule is broken."""
    if not len(samples):
        return
    batch = Batch.of_arrays(x[samples], results.y[samples])
    holds = rules.satisfied(batch.x, batch.y, tol).numpy()
    results.status[samples[~holds]] = Status.RELAXED
    for group, judge in ((samples[holds], _existence.holding), (samples[~holds], _existence.each)):
        if len(group):
            part = Batch.of_arrays(x[group], results.y[group])
            results.assignment[group] = judge(rules, part, tol).astype(np.int8)


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
        rows = np.where(program.equality, program.bound, -np.inf), program.bound
        self.solver.passModel(
            _highs.sparse_model(
                *(program.cost, program.lower, np.full(len(program.cost), np.inf), *rows),
                *(program.start, program.column, program.value),
            )
        )

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
