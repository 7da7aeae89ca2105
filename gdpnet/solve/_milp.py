"""The oracle: one mixed-integer program a sample, then checked. Slow and certain."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import torch

from gdpnet.rules._batch import Batch
from gdpnet.rules.model import RuleModel
from gdpnet.solve import _disjunctive, _existence, _gurobi, _highs
from gdpnet.solve._disjunctive import DisjunctiveAnswer, DisjunctiveProgram
from gdpnet.solve._linear import Outcome, Solver
from gdpnet.solve._nearest import nearest
from gdpnet.solve._results import SOLVER_NAMES, Array, Options, Results
from gdpnet.solve._sample import Sample
from gdpnet.solve.status import Status

SOLVERS: dict[str, Solver] = {"milp": _highs.solve, "milp:gurobi": _gurobi.solve}

# Scaled residual up to which the oracle's own point counts as feasible.
_CHECKED = 1e-8


@dataclass(frozen=True)
class Found:
    """What the oracle found for one sample.

    Attributes:
        status: what became of it.
        y: outputs, `d`.
        value: proved lower bound on the distance.
        literals: literals that are true at y.
        nodes: programs solved.
        found: whether y is an answer at all.
        point: y and the auxiliaries, where it is a vertex of the rows that were chosen.
    """

    status: Status
    y: Array
    value: float
    literals: frozenset[int]
    nodes: int
    found: bool = True
    point: Array | None = None


def solve(
    rules: RuleModel,
    x: Array,
    yhat: Array,
    invalid: Array,
    options: Options,
    mark: bool,
    solver: str,
) -> Results:
    """Project a flat batch; arguments as in `_exact.solve`."""
    evaluated = rules.evaluate(torch.from_numpy(x))
    unusable = evaluated.rows.unusable().numpy()
    if unusable.any():
        if not mark:
            rules.refuse_unusable(evaluated.rows)
        invalid |= unusable
    results = Results.start(rules, yhat, evaluated.rules.numpy())
    usable = np.flatnonzero(~invalid)
    if len(usable):
        batch = Batch.of_arrays(x[usable], yhat[usable])
        holds = rules.satisfied(batch.x, batch.y, options.tolerance).numpy()
        accepted, rest = usable[holds], usable[~holds]
        if len(accepted):
            part = Batch.of_arrays(x[accepted], yhat[accepted])
            true = _existence.holding(rules, part, options.tolerance)
            results.assignment[accepted] = true.astype(np.int8)
        results.solver[accepted] = SOLVER_NAMES.index(solver)
        if len(rest):
            finish(rules, x, yhat, rest, results, options, solver)
    return results


def finish(
    rules: RuleModel,
    x: Array,
    yhat: Array,
    samples: Array,
    results: Results,
    options: Options,
    solver: str = "milp",
    incumbents: Mapping[int, tuple[Array, float]] = MappingProxyType({}),
) -> None:
    """Project some samples of a batch into `results`.

    Args:
        rules: the rules.
        x: inputs, (B, p).
        yhat: predictions, (B, d).
        samples: which ones.
        results: updated.
        options: how to solve.
        solver: name in `SOLVERS`.
        incumbents: points already known to satisfy the rules, and their distances.
    """
    evaluated = rules.evaluate(torch.from_numpy(x[samples]))

    def one(place: int) -> Found:
        index = int(samples[place])
        sample = Sample.of(rules, evaluated, place)
        known = incumbents.get(index)
        return _project(sample, yhat[index], SOLVERS[solver], options, known)

    workers = min(len(samples), options.threads or os.cpu_count() or 1)
    code = SOLVER_NAMES.index(solver)
    for index, found in zip(samples, _mapped(one, len(samples), workers), strict=True):
        results.status[index] = found.status
        results.y[index] = found.y
        results.value[index] = found.value
        results.nodes[index] += found.nodes
        results.missing[index] = not found.found
        results.solver[index] = code
        results.assignment[index] = 0
        if found.point is not None:
            results.keep_point(index, found.point)
        if found.status is Status.CONFLICT and options.nearest:
            at = Batch.of_arrays(x[[index]], results.y[[index]])
            results.assignment[index] = _existence.each(rules, at, 1e-6)[0]
        elif found.literals:
            for literal in found.literals:
                results.assignment[index, abs(literal) - 1] = np.sign(literal)


def _mapped(function: Callable[[int], Found], count: int, workers: int) -> list[Found]:
    if workers <= 1:
        return [function(item) for item in range(count)]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, range(count)))


def _project(
    sample: Sample,
    yhat: Array,
    solver: Solver,
    options: Options,
    known: tuple[Array, float] | None,
) -> Found:
    weights, time_limit = options.weights, options.time_limit
    d = len(yhat)
    start = sample.clip(yhat)
    outside = float(weights @ np.abs(start - yhat))
    program = sample.projection(start, weights)
    if known is not None:
        program = _bounded(program, start, weights, known[1] - outside)
    elif not (np.isfinite(sample.lower[:d]).all() and np.isfinite(sample.upper[:d]).all()):
        first = _disjunctive.solve_search(program, solver, time_limit, first=True)
        if first.outcome is Outcome.OPTIMAL:
            program = _bounded(program, start, weights, first.value)
        elif first.outcome is not Outcome.INFEASIBLE:
            return _failed(first, yhat)
    answer = _disjunctive.solve(program, solver, time_limit)
    if answer.outcome is Outcome.INFEASIBLE:
        # HiGHS has called feasible big-M programs infeasible: believe it only if a search without
        # big-M agrees.
        answer = _disjunctive.solve_search(program, solver, time_limit)
    nodes = answer.nodes
    if answer.point is None and known is not None:
        # The known point satisfies the rules, so this is a limit, whatever the solver says.
        bound = max(answer.bound, 0.0) if answer.outcome is Outcome.LIMIT else 0.0
        return Found(Status.LIMIT, known[0], bound + outside, frozenset(), nodes)
    if answer.outcome is Outcome.INFEASIBLE:
        if options.nearest:
            found = nearest(sample, start, weights, solver, time_limit)
            if found is not None and found.point is not None:
                y = np.clip(found.point[:d], sample.lower[:d], sample.upper[:d])
                return Found(Status.CONFLICT, y, np.inf, found.literals, nodes)
        return Found(Status.CONFLICT, yhat, np.inf, frozenset(), nodes)
    if answer.point is None:
        return _failed(answer, yhat)
    answer = _disjunctive.polish(program, answer, solver)
    assert answer.point is not None
    y = np.clip(answer.point[:d], sample.lower[:d], sample.upper[:d])
    if not _holds(sample, answer, y):  # big-M let something through: again without it
        answer = _disjunctive.solve_search(program, solver, time_limit)
        if answer.point is None:
            return _failed(answer, yhat)
        y = np.clip(answer.point[:d], sample.lower[:d], sample.upper[:d])
    bound = answer.value if answer.outcome is Outcome.OPTIMAL else max(answer.bound, 0.0)
    status = Status.PROJECTED if answer.outcome is Outcome.OPTIMAL else Status.LIMIT
    if not _holds(sample, answer, y):
        status = Status.ERROR
    elif known is not None and status is Status.LIMIT and answer.value + outside > known[1]:
        return Found(Status.LIMIT, known[0], bound + outside, frozenset(), nodes)
    assert answer.point is not None  # or it would not hold
    point = np.concatenate([y, answer.point[d : len(sample.lower)]])
    return Found(status, y, bound + outside, answer.literals, nodes, point=point)


def _failed(answer: DisjunctiveAnswer, yhat: Array) -> Found:
    """Nothing was found: the prediction passes, at an infinite distance."""
    status = Status.LIMIT if answer.outcome is Outcome.LIMIT else Status.ERROR
    return Found(status, yhat, 0.0, frozenset(), answer.nodes, found=False)


def _bounded(
    program: DisjunctiveProgram, start: Array, weights: Array, distance: float
) -> DisjunctiveProgram:
    """Bounds from a feasible point: the nearest one is no further away in any output."""
    d = len(start)
    reach = distance * (1 + 1e-6) / weights + 1e-6
    lower, upper = program.lower.copy(), program.upper.copy()
    lower[:d] = np.maximum(lower[:d], start - reach)
    upper[:d] = np.minimum(upper[:d], start + reach)
    whole = program.integer[:d]
    lower[:d][whole], upper[:d][whole] = np.ceil(lower[:d][whole]), np.floor(upper[:d][whole])
    return replace(program, lower=lower, upper=upper)


def _holds(sample: Sample, answer: DisjunctiveAnswer, y: Array) -> bool:
    """Whether the point, auxiliaries included, satisfies the rows that were chosen."""
    assert answer.point is not None
    z = answer.point[: len(sample.lower)].copy()
    z[: len(y)] = y
    data = sample.rules.data
    rows = list(data.global_rows)
    for literal in answer.literals:
        boolean = data.booleans[abs(literal) - 1]
        rows += boolean.true_rows if literal > 0 else boolean.false_rows
    excess = sample.matrix[rows] @ z - sample.bound[rows]
    excess = np.where(sample.equality[rows], np.abs(excess), excess)
    return bool((excess <= _CHECKED * sample.scale[rows]).all())
