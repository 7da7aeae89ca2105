"""The oracle: one mixed-integer program a sample, then checked. Slow and certain."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from gdpnet.rules.model import Evaluated, RuleModel
from gdpnet.solve import _disjunctive, _gurobi, _highs
from gdpnet.solve._disjunctive import DisjunctiveAnswer, DisjunctiveProgram
from gdpnet.solve._linear import Outcome, Solver
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
    """

    status: Status
    y: np.ndarray
    value: float
    literals: frozenset[int]
    nodes: int
    found: bool = True


def project(
    rules: RuleModel,
    evaluated: Evaluated,
    yhat: np.ndarray,
    weights: np.ndarray,
    samples: np.ndarray,
    solver: str,
    time_limit: float | None,
    threads: int | None,
    nearest: bool,
) -> list[Found]:
    """Project some samples of a batch.

    Args:
        rules: the rules.
        evaluated: rows and activation of the batch.
        yhat: predictions, `batch x d`.
        weights: `d`.
        samples: indices of the samples to project.
        solver: name in `SOLVERS`.
        time_limit: seconds for each sample.
        threads: samples solved at a time; None for one a core.
        nearest: where rules contradict, break them as little as possible.
    """

    def one(index: int) -> Found:
        sample = Sample.of(rules, evaluated, index)
        return _project(sample, yhat[index], weights, SOLVERS[solver], time_limit, nearest)

    workers = min(len(samples), threads or os.cpu_count() or 1)
    return _mapped(one, samples.tolist(), workers)


def _mapped(function: Callable[[int], Found], items: list[int], workers: int) -> list[Found]:
    if workers <= 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, items))


def _project(
    sample: Sample,
    yhat: np.ndarray,
    weights: np.ndarray,
    solver: Solver,
    time_limit: float | None,
    nearest: bool,
) -> Found:
    d = len(yhat)
    start = sample.clip(yhat)
    program = sample.projection(start, weights)
    if not (np.isfinite(sample.lower[:d]).all() and np.isfinite(sample.upper[:d]).all()):
        first = _disjunctive.solve_search(program, solver, time_limit, first=True)
        if first.outcome is Outcome.OPTIMAL:
            program = _bounded(program, start, weights, first.value)
        elif first.outcome is not Outcome.INFEASIBLE:
            return _failed(first, yhat)
    answer = _disjunctive.solve(program, solver, time_limit)
    nodes = answer.nodes
    if answer.outcome is Outcome.INFEASIBLE:
        if nearest:
            found = _nearest(sample, start, weights, solver, time_limit)
            if found is not None and found.point is not None:
                y = np.clip(found.point[:d], sample.lower[:d], sample.upper[:d])
                return Found(Status.CONFLICT, y, np.inf, found.literals, nodes)
        return Found(Status.CONFLICT, yhat, np.inf, frozenset(), nodes)
    if answer.point is None:
        return _failed(answer, yhat)
    answer = _disjunctive.polish(program, answer, solver)
    assert answer.point is not None
    y = np.clip(answer.point[:d], sample.lower[:d], sample.upper[:d])
    outside = float(weights @ np.abs(start - yhat))
    bound = answer.value if answer.outcome is Outcome.OPTIMAL else max(answer.bound, 0.0)
    status = Status.PROJECTED if answer.outcome is Outcome.OPTIMAL else Status.LIMIT
    if not _holds(sample, answer, y):
        status = Status.ERROR
    return Found(status, y, bound + outside, answer.literals, nodes)


def _failed(answer: DisjunctiveAnswer, yhat: np.ndarray) -> Found:
    """Nothing was found: the prediction passes, at an infinite distance."""
    status = Status.LIMIT if answer.outcome is Outcome.LIMIT else Status.ERROR
    return Found(status, yhat, 0.0, frozenset(), answer.nodes, found=False)


def _bounded(
    program: DisjunctiveProgram, start: np.ndarray, weights: np.ndarray, distance: float
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


def _holds(sample: Sample, answer: DisjunctiveAnswer, y: np.ndarray) -> bool:
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


# ---- contradictions -------------------------------------------------------------------------


def _nearest(
    sample: Sample,
    start: np.ndarray,
    weights: np.ndarray,
    solver: Solver,
    time_limit: float | None,
) -> DisjunctiveAnswer | None:
    """Bounds, globals and logic hard; least sum of scaled violations, then least distance.

    None where the hard part alone has no solution.
    """
    program, slack = _elastic(sample, start, weights)
    first = replace(program, cost=slack.astype(float))
    answer = _disjunctive.solve(first, solver, time_limit)
    answer = _disjunctive.polish(first, answer, solver)
    if answer.point is None:
        return None
    # Second stage: no more violation than that, then as near as possible.
    least = float(slack @ answer.point)
    matrix = np.vstack([program.matrix, slack[None].astype(float)])
    bound = np.concatenate([program.bound, [least * (1 + 1e-9) + 1e-9]])
    second = replace(
        program,
        matrix=matrix,
        bound=bound,
        equality=np.concatenate([program.equality, [False]]),
        global_rows=(*program.global_rows, len(bound) - 1),
    )
    nearer = _disjunctive.polish(second, _disjunctive.solve(second, solver, time_limit), solver)
    return answer if nearer.point is None else nearer


def _elastic(
    sample: Sample, start: np.ndarray, weights: np.ndarray
) -> tuple[DisjunctiveProgram, np.ndarray]:
    """The projection with a violation column for each active rule; which columns those are.

    Equalities of disjuncts become two inequalities, so that they can be broken by an amount.
    """
    program = sample.projection(start, weights)
    data = sample.rules.data
    active = set(sample.clauses)
    owners = [r for r, rule in enumerate(data.rules) if data.clauses[rule.clause] in active]
    columns = len(program.cost)
    matrix = np.hstack([program.matrix, np.zeros((len(program.matrix), len(owners)))])
    bound, equality = program.bound.copy(), program.equality.copy()
    booleans = list(data.booleans)
    extra: list[np.ndarray] = []
    extra_bound: list[float] = []
    for k, r in enumerate(owners):
        for clause in data.subtree(data.rules[r].clause):
            for literal in data.clauses[clause].literals:
                boolean = booleans[literal - 1]
                rows = list(boolean.true_rows)
                for i in boolean.true_rows:
                    matrix[i, columns + k] = -sample.scale[i]
                    if sample.equality[i]:
                        opposite = -matrix[i]
                        opposite[columns + k] = -sample.scale[i]
                        rows.append(len(matrix) + len(extra))
                        extra.append(opposite)
                        extra_bound.append(-bound[i])
                        equality[i] = False
                booleans[literal - 1] = replace(boolean, true_rows=tuple(rows))
    if extra:
        matrix = np.vstack([matrix, *[row[None] for row in extra]])
    slack = np.arange(columns + len(owners)) >= columns
    zeros = np.zeros(len(owners))
    return (
        replace(
            program,
            cost=np.concatenate([program.cost, zeros]),
            matrix=matrix,
            bound=np.concatenate([bound, extra_bound]),
            equality=np.concatenate([equality, np.zeros(len(extra), dtype=bool)]),
            lower=np.concatenate([program.lower, zeros]),
            upper=np.concatenate([program.upper, np.full(len(owners), np.inf)]),
            integer=np.concatenate([program.integer, zeros.astype(bool)]),
            booleans=tuple(booleans),
        ),
        slack,
    )
