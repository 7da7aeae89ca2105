"""The oracle: one mixed-integer program a sample, then checked. Slow and certain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import torch

from gdpnet.ir.batch import Batch
from gdpnet.ir.steps import smallest_row
from gdpnet.lp import gurobi, highs
from gdpnet.lp.clock import Clock
from gdpnet.lp.program import Outcome, Solver
from gdpnet.rules.model import RuleModel
from gdpnet.solve import _disjunctive, _existence
from gdpnet.solve._disjunctive import DisjunctiveAnswer, DisjunctiveProgram
from gdpnet.solve._nearest import nearest
from gdpnet.solve._results import SOLVER_NAMES, Array, Options, Results
from gdpnet.solve._sample import Sample
from gdpnet.solve.status import Status
from gdpnet.threads import workers_of

SOLVERS: dict[str, Solver] = {"milp": highs.solve, "milp:gurobi": gurobi.solve}

# Residual, relative to max(|b|, max|a|), up to which the oracle's own point counts as feasible.
_CHECKED = 1e-9

_TRUSTED = 1e9  # with numbers beyond this, solvers' tolerances decide what they prove

MARGIN = 1e-8
"""Rules contradict each other if they do even where every row gives way by this, scaled."""


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


class Incumbent(NamedTuple):
    """A point that is known to satisfy the rules.

    Attributes:
        y: outputs, `d`.
        distance: of y.
        literals: literals that are true at y.
    """

    y: Array
    distance: float
    literals: frozenset[int]


def literals_of(assignment: Array) -> frozenset[int]:
    """Literals of the booleans that are known to be true or false."""
    return frozenset(int(assignment[k]) * (int(k) + 1) for k in np.flatnonzero(assignment))


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
        holds = rules.satisfied(batch.y, batch.x, acceptance(rules, options)).numpy()
        holds &= (batch.y.numpy() == whole_outputs(rules, batch.y.numpy())).all(1)
        accepted, rest = usable[holds], usable[~holds]
        if len(accepted):
            part = Batch.of_arrays(x[accepted], yhat[accepted])
            true = _existence.holding(rules, part, options.tolerance)
            results.assignment[accepted] = true.astype(np.int8)
        results.solver[accepted] = SOLVER_NAMES.index(solver)
        if len(rest):
            limit = options.time_limit
            finish(rules, x, yhat, rest, results, options, solver, seconds=limit)
    return results


def acceptance(rules: RuleModel, options: Options) -> float:
    """The tolerance of a prediction that passes, in terms of `max(1, |b|, max|a|)` of a row.

    It is meant relative to `max(|b|, max|a|)`, or a rule in small units would always hold.
    """
    return options.tolerance * float(rules.kept("smallest row", _smallest_row))


def _smallest_row(rules: RuleModel) -> float:
    return smallest_row(rules.data)


def whole_outputs(rules: RuleModel, y: Array, within: float = np.inf) -> Array:
    """Outputs, whole where they must be and are as near to it as `within`."""
    integer = [column.integer for column in rules.data.columns[: rules.data.outputs]]
    if not any(integer):
        return y
    whole = np.rint(y)
    return np.where(integer & (np.abs(y - whole) <= within), whole, y)


def finish(
    rules: RuleModel,
    x: Array,
    yhat: Array,
    samples: Array,
    results: Results,
    options: Options,
    solver: str = "milp",
    incumbents: Mapping[int, Incumbent] = MappingProxyType({}),
    seconds: float | None = None,
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
        incumbents: points already known to satisfy the rules.
        seconds: for each sample, or None.
    """
    evaluated = rules.evaluate(torch.from_numpy(x[samples]))
    clocks: list[Clock] = []

    def one(place: int) -> Found:
        index = int(samples[place])
        sample = Sample.of(rules, evaluated, place)
        clock = Clock(seconds)
        clocks.append(clock)
        found = _project(
            sample, yhat[index], SOLVERS[solver], options, incumbents.get(index), clock
        )
        doubted = sample.largest(yhat[index], found.status is Status.CONFLICT) > _TRUSTED
        return _doubted(found) if doubted else found

    workers = min(len(samples), workers_of(options.threads))
    code = SOLVER_NAMES.index(solver)
    for index, found in zip(samples, _mapped(one, len(samples), workers, clocks), strict=True):
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


def _mapped(
    function: Callable[[int], Found], count: int, workers: int, clocks: list[Clock]
) -> list[Found]:
    """Samples in threads; an interruption calls off those at work."""
    if workers <= 1:
        return [function(item) for item in range(count)]
    pool = ThreadPoolExecutor(workers)
    try:
        return list(pool.map(function, range(count)))
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for clock in clocks:
            clock.cancel()
        raise
    finally:
        pool.shutdown()


def _project(
    sample: Sample,
    yhat: Array,
    solver: Solver,
    options: Options,
    known: Incumbent | None,
    clock: Clock,
) -> Found:
    weights, d = options.weights, len(yhat)
    start = sample.clip(yhat)
    outside = float(weights @ np.abs(start - yhat))
    program = sample.projection(start, weights)
    nodes = 0
    if known is None and clock.left is not None:
        # A feasible output that is not the nearest is worth more than none when the time is over.
        first = _dive(program, solver, clock.half())
        nodes += first.nodes
        y = None if first.point is None else _outputs(sample, first)
        if y is not None and _holds(sample, first, y):
            known = Incumbent(y, float(weights @ np.abs(y - yhat)), first.literals)
    if known is not None:
        program = _bounded(program, start, weights, known.distance - outside)
    elif not (np.isfinite(sample.lower[:d]).all() and np.isfinite(sample.upper[:d]).all()):
        first = _disjunctive.solve_search(program, solver, clock, first=True)
        nodes += first.nodes
        if first.outcome is Outcome.OPTIMAL:
            program = _bounded(program, start, weights, first.value)
        elif first.outcome is not Outcome.INFEASIBLE:
            return _nothing(yhat, nodes)
    answer = _disjunctive.solve(program, solver, clock)
    if answer.outcome is Outcome.INFEASIBLE:
        # HiGHS has called feasible big-M programs infeasible: believe it only if a search without
        # big-M agrees.
        nodes += answer.nodes
        answer = _disjunctive.solve_search(program, solver, clock)
    nodes += answer.nodes
    if answer.outcome is Outcome.INFEASIBLE and known is None:
        return _contradiction(sample, program, yhat, solver, options, clock, nodes)
    answer = _disjunctive.polish(program, answer, solver)
    if answer.point is not None and not _holds(sample, answer, _outputs(sample, answer)):
        # Big-M let something through: again without it.
        answer = _disjunctive.solve_search(program, solver, clock)
        nodes += answer.nodes
    bound = answer.value if answer.outcome is Outcome.OPTIMAL else max(answer.bound, 0.0)
    if answer.point is not None:
        y = _outputs(sample, answer)
        if _holds(sample, answer, y):
            point = np.concatenate([y, answer.point[d : len(sample.lower)]])
            if answer.outcome is Outcome.OPTIMAL:
                return Found(
                    Status.PROJECTED, y, bound + outside, answer.literals, nodes, point=point
                )
            if known is None or answer.value + outside <= known.distance:
                return Found(Status.LIMIT, y, bound + outside, answer.literals, nodes, point=point)
    if known is not None:
        # The known point satisfies the rules, so this is a limit, whatever the solver says.
        proved = bound if answer.outcome is Outcome.LIMIT else 0.0
        return Found(Status.LIMIT, known.y, proved + outside, known.literals, nodes)
    return _nothing(yhat, nodes)


def _doubted(found: Found) -> Found:
    """The same, where numbers are too large for a solver's proofs."""
    doubts = {Status.PROJECTED: Status.LIMIT, Status.CONFLICT: Status.UNSOLVED}
    status = doubts.get(found.status, found.status)
    value = found.value if found.status is Status.LIMIT else 0.0
    missing = status is Status.UNSOLVED
    return replace(found, status=status, value=value, found=found.found and not missing)


def _dive(program: DisjunctiveProgram, solver: Solver, clock: Clock) -> DisjunctiveAnswer:
    """Any feasible point, made the nearest one of the disjuncts that it chose."""
    free = replace(program, cost=np.zeros_like(program.cost))
    answer = _disjunctive.solve(free, solver, clock)
    return _disjunctive.polish(program, answer, solver)


def _contradiction(
    sample: Sample,
    program: DisjunctiveProgram,
    yhat: Array,
    solver: Solver,
    options: Options,
    clock: Clock,
    nodes: int,
) -> Found:
    """Nothing is feasible: a conflict if that remains so with a margin, else not decided."""
    loose = _disjunctive.solve_search(_disjunctive.loosened(program, MARGIN), solver, clock, True)
    nodes += loose.nodes
    if loose.outcome is not Outcome.INFEASIBLE:
        return _nothing(yhat, nodes)
    d = len(yhat)
    if options.nearest:
        found = nearest(sample, sample.clip(yhat), options.weights, solver, clock)
        if found is not None and found.point is not None:
            y = np.clip(found.point[:d], sample.lower[:d], sample.upper[:d])
            return Found(Status.CONFLICT, y, np.inf, found.literals, nodes)
    return Found(Status.CONFLICT, yhat, np.inf, frozenset(), nodes)


def _nothing(yhat: Array, nodes: int) -> Found:
    """Nothing was found and nothing excluded: the prediction passes, at an infinite distance."""
    return Found(Status.UNSOLVED, yhat, 0.0, frozenset(), nodes, found=False)


def _outputs(sample: Sample, answer: DisjunctiveAnswer) -> Array:
    """The outputs of an answer, within their bounds and whole where they must be."""
    assert answer.point is not None
    d = sample.rules.data.outputs
    y = np.clip(answer.point[:d], sample.lower[:d], sample.upper[:d])
    return np.where(sample.integer[:d], np.rint(y), y) + 0.0


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
    return bool((excess <= _CHECKED * sample.size[rows]).all())
