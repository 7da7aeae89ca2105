"""One mixed-integer program a sample, then checked. Slow and certain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import torch

from gdpnet.checks import check_choice
from gdpnet.ir.batch import Batch
from gdpnet.ir.prices import unbroken
from gdpnet.ir.rules import Rules
from gdpnet.ir.semantics import enforced
from gdpnet.ir.steps import smallest_row
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.lp.clock import Clock
from gdpnet.lp.program import Outcome, Solver
from gdpnet.lp.refined import refined
from gdpnet.lp.solvers import SOLVERS
from gdpnet.solve import existence
from gdpnet.solve.base import Answer, Array, Backend, Capabilities, Request, Settings
from gdpnet.solve.milp import disjunctive
from gdpnet.solve.milp.disjunctive import DisjunctiveAnswer, DisjunctiveProgram
from gdpnet.solve.milp.jacobian import ActiveJacobian
from gdpnet.solve.milp.nearest import nearest
from gdpnet.solve.milp.sample import RulesAtSample
from gdpnet.solve.milp.started import dived, nearest_in, nearest_literals
from gdpnet.solve.status import Status
from gdpnet.threads import map_in_threads, workers_of

_TRUSTED = 1e9  # with numbers beyond this, solvers' tolerances decide what they prove

MILP_NODES = 5_000
"""Nodes of a mixed-integer program that takes over from the engine, where time is not limited."""

_FEW_CLAUSES = 12  # that are searched without big-M where it slipped, and need no point first
_SLIPPED = 1e-6  # relative: a point that is further than what was proved, by more, is not proved

_DIVING = 0.75  # of the time at most, for a first point
_SEARCHING = 0.75  # of the time: the rest is for finding any point, where none was found by then

MARGIN = 1e-8
"""Rules contradict each other if they do even where every row gives way by this, scaled."""


@dataclass(frozen=True)
class Found:
    """What the oracle found for one sample.

    Attributes:
        status: what became of it.
        y: outputs, `d`.
        value: proved lower bound on the distance and what is paid.
        literals: literals that are true at y.
        nodes: programs solved.
        point: y and the auxiliaries, where it is a vertex of the rows that were chosen.
    """

    status: Status
    y: Array
    value: float
    literals: frozenset[int]
    nodes: int
    point: Array | None = None


class Incumbent(NamedTuple):
    """A point that is known to satisfy the rules.

    Attributes:
        y: outputs, `d`.
        distance: of y, and what is paid.
        literals: literals that are true at y.
    """

    y: Array
    distance: float
    literals: frozenset[int]


def literals_of(assignment: Array) -> frozenset[int]:
    """Literals of the booleans that are known to be true or false."""
    return frozenset(int(assignment[k]) * (int(k) + 1) for k in np.flatnonzero(assignment))


class Limits(NamedTuple):
    """What a sample may take.

    Attributes:
        seconds: or None.
        nodes: of each mixed-integer program, or None.
    """

    seconds: float | None = None
    nodes: int | None = None


NO_LIMITS = Limits()


class MILP(Backend):
    """A mixed-integer program for each sample.

    Without a `time_limit` it takes as long as it takes.

    Args:
        solver: `"highs"` or `"gurobi"`.

    Example:
        >>> import gdpnet
        >>> gdpnet.solve.MILP("gurobi").name
        'milp:gurobi'
    """

    capabilities = Capabilities(linearisation=True, nearest=True, prices=True)

    def __init__(self, solver: str = "highs") -> None:
        check_choice("MILP: solver", solver, tuple(SOLVERS))
        self.solver = solver

    @property
    def name(self) -> str:
        """What `info.solver` calls it."""
        return "milp" if self.solver == "highs" else f"milp:{self.solver}"

    @property
    def description(self) -> str:
        """How it solves."""
        return f"a mixed-integer program by {SOLVERS[self.solver].title}"

    def available(self) -> str | None:
        """Why it cannot be used here; None where it can."""
        return SOLVERS[self.solver].unavailable()

    def solve(self, request: Request) -> Answer:
        """Project a flat batch."""
        return self.within(request, Limits(request.settings.time_limit))

    def within(self, request: Request, limits: Limits) -> Answer:
        """Project a flat batch within limits for each sample."""
        rules = request.rules
        evaluated = rules.evaluate(torch.from_numpy(request.x))
        unusable = evaluated.unusable().numpy()
        if unusable.any():
            if not request.mark:
                rules.refuse_unusable(evaluated)
            request.invalid[unusable] = True
        answer = Answer.passed(request, evaluated.rules.numpy(), self.name)
        usable = np.flatnonzero(~request.invalid)
        rest = usable[~self._accept(request, usable, answer)] if len(usable) else usable
        vertices = finish(request, rest, answer, self, limits=limits)
        return answer.replace(linearisation=ActiveJacobian(request, answer, vertices))

    def _accept(self, request: Request, usable: Array, answer: Answer) -> Array:
        """Which samples pass unchanged, bool `usable`; notes which disjuncts hold there."""
        rules, settings = request.rules.cache[_without_prices], request.settings
        if rules is None:
            return np.zeros(len(usable), dtype=bool)
        batch = Batch.of_arrays(request.x[usable], request.yhat[usable])
        holds = existence.satisfied(
            rules, batch, settings.tolerance * rules.cache[smallest_row]
        ).numpy()
        holds &= (batch.y.numpy() == whole_outputs(rules, batch.y.numpy())).all(1)
        accepted = usable[holds]
        if len(accepted):
            part = Batch.of_arrays(request.x[accepted], request.yhat[accepted])
            true = existence.holding(rules, part, settings.tolerance)
            answer.assignment[accepted] = true.astype(np.int8)
        return np.asarray(holds)


def _without_prices(rules: Rules) -> Rules | None:
    """What a prediction has to satisfy to pass at once; None where that may cost something."""
    if rules.data.prices_disjuncts:
        return None
    return rules if all(c.breaking < 0 for c in rules.data.clauses) else Rules(unbroken(rules.data))


def integer_outputs(rules: Rules) -> Array | None:
    """Which outputs are integers, (d,) bool; None where none is."""
    integer = np.array([column.integer for column in rules.data.columns[: rules.data.outputs]])
    return integer if integer.any() else None


def whole_outputs(rules: Rules, y: Array, within: float = np.inf) -> Array:
    """Outputs, whole where they must be and are as near to it as `within`."""
    integer = rules.cache[integer_outputs]
    if integer is None:
        return y
    whole = np.rint(y)
    return np.where(integer & (np.abs(y - whole) <= within), whole, y)


def finish(
    request: Request,
    samples: Array,
    answer: Answer,
    backend: MILP,
    *,
    incumbents: Mapping[int, Incumbent] = MappingProxyType({}),
    limits: Limits = NO_LIMITS,
) -> Array:
    """Project some samples of a batch, written into an answer.

    Args:
        request: the batch.
        samples: which ones.
        answer: whose arrays are written into; its solvers include the backend's name.
        backend: which solver.
        incumbents: points already known to satisfy the rules.
        limits: for each sample.

    Returns:
        The samples that got a vertex of the rows that were chosen.
    """
    if not len(samples):
        return samples
    rules, settings = request.rules, request.settings
    evaluated = rules.evaluate(torch.from_numpy(request.x[samples]))
    clocks: list[Clock] = []
    workers = min(len(samples), workers_of(settings.threads))

    def one(place: int) -> Found:
        index = int(samples[place])
        yhat = request.yhat[index]
        solver, known = SOLVERS[backend.solver].solve, incumbents.get(index)
        if request.clock.over:
            return _limited(known, yhat)
        sample = RulesAtSample.of(rules, evaluated, place)
        # An even share of what is left, by those that work at once.
        parts = max(1.0, (len(samples) - len(clocks)) / workers)
        clock = Clock(request.clock.share(parts, limits.seconds), limits.nodes)
        clocks.append(clock)
        start = None if request.start is None else request.start[index]
        found = _project(sample, yhat, solver, settings, known, clock, start)
        if found.status is Status.PROJECTED and _unmoved(sample, found, yhat, settings):
            # Auxiliaries, or logic, were needed to see that it holds as it is.
            return replace(found, status=Status.SATISFIED, y=yhat.copy(), value=0.0)
        doubted = sample.largest(yhat, found.status is Status.CONFLICT) > _TRUSTED
        return _doubted(found) if doubted else found

    def cancel() -> None:
        for clock in clocks:
            clock.cancel()

    code = answer.solvers.index(backend.name)
    vertices = []
    each = map_in_threads(one, range(len(samples)), settings.threads, cancel)
    for index, found in zip(samples.tolist(), each, strict=True):
        answer.status[index] = found.status
        answer.y[index] = found.y
        answer.value[index] = found.value
        answer.nodes[index] += found.nodes
        answer.solver[index] = code
        answer.assignment[index] = 0
        answer.auxiliaries[index] = np.nan
        free = found.status is Status.PROJECTED and found.value == 0.0
        if free and (found.y == request.yhat[index]).all():
            # It was not seen at once: what it is bought off with costs nothing.
            answer.status[index] = Status.SATISFIED
        if found.point is not None:
            vertices.append(index)
            answer.auxiliaries[index] = found.point[len(found.y) :]
        if found.status is Status.CONFLICT and settings.nearest:
            at = Batch.of_arrays(request.x[[index]], answer.y[[index]])
            answer.assignment[index] = existence.each(rules, at, TOLERANCES.satisfied)[0]
        for literal in () if found.status is Status.CONFLICT else found.literals:
            answer.assignment[index, abs(literal) - 1] = np.sign(literal)
    return np.array(vertices, dtype=np.int64)


def _project(
    sample: RulesAtSample,
    yhat: Array,
    solver: Solver,
    settings: Settings,
    known: Incumbent | None,
    clock: Clock,
    given: Array | None = None,
) -> Found:
    weights, d = settings.weights, len(yhat)
    start = sample.clip(yhat)
    outside = float(weights @ np.abs(start - yhat))
    program = sample.projection(start, weights, price_unit=settings.price_unit)
    nodes = 0
    guess = None
    if given is not None and np.isfinite(given).all():
        guess = nearest_literals(sample, given)
        if guess is not None:
            nodes += 1
            started = nearest_in(program, guess, solver)
            known = _nearer(known, _at(sample, program, yhat, weights, started))
    dive = DisjunctiveAnswer(Outcome.LIMIT)
    if known is None and not clock.over and len(program.clauses) > _FEW_CLAUSES:
        # An answer before anything is searched.
        dive = dived(program, solver, clock.part(_DIVING))
        nodes += dive.nodes
        known = _at(sample, program, yhat, weights, dive)
        near = nearest_literals(sample, start) if known is None else None
        if near is not None:
            nodes += 1
            known = _at(sample, program, yhat, weights, nearest_in(program, near, solver))
    if known is not None:
        program = _bounded(program, start, weights, known.distance - outside)
    elif not (np.isfinite(sample.lower[:d]).all() and np.isfinite(sample.upper[:d]).all()):
        first = disjunctive.solve_search(program, solver, clock, first=True)
        nodes += first.nodes
        if first.outcome is Outcome.OPTIMAL:
            program = _bounded(program, start, weights, first.value)
        elif first.outcome is not Outcome.INFEASIBLE:
            return _nothing(yhat, nodes)
    guess = guess if known is None else known.literals
    part = clock if known is not None else clock.part(_SEARCHING)
    few = len(program.clauses) <= _FEW_CLAUSES
    if known is not None and dive.closed:
        answer = replace(dive, outcome=Outcome.OPTIMAL, nodes=0)
    elif few and disjunctive.nearly_parallel(program):
        solver = refined(solver)
        answer = disjunctive.solve_search(program, solver, part)
    else:
        answer = disjunctive.solve(program, solver, part, guess)
    if answer.outcome is Outcome.LIMIT and answer.point is None and known is None:
        # A feasible output that is not the nearest is worth more than none when the time is over.
        nodes += answer.nodes
        answer = replace(
            _any_point(program, solver, clock), outcome=Outcome.LIMIT, bound=answer.bound
        )
    if answer.outcome is Outcome.INFEASIBLE:
        # HiGHS has called feasible big-M programs infeasible: believe it only if a search without
        # big-M agrees.
        nodes += answer.nodes
        answer = disjunctive.solve_search(program, solver, clock)
    nodes += answer.nodes
    if answer.outcome is Outcome.INFEASIBLE and known is None:
        return _contradiction(sample, program, yhat, solver, settings, clock, nodes)
    answer = disjunctive.polish(program, answer, solver)
    if answer.point is not None and not _holds(sample, answer, _outputs(sample, answer)):
        # Big-M let something through: again without it.
        answer = disjunctive.solve_search(program, solver, clock)
        nodes += answer.nodes
    slipped = answer.value - answer.bound > _SLIPPED * max(1.0, abs(answer.value))
    if answer.outcome is Outcome.OPTIMAL and slipped:
        # What was proved is not the distance of what holds: a limit of the solver's arithmetic. Of
        # few rules a search knows better, whose nodes are what is polished.
        if few:
            answer = disjunctive.solve_search(program, solver, clock)
            nodes += answer.nodes
        else:
            answer = replace(answer, outcome=Outcome.LIMIT)
    proved = max(answer.bound, dive.bound, 0.0)
    bound = answer.value if answer.outcome is Outcome.OPTIMAL else proved
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


def _limited(known: Incumbent | None, yhat: Array) -> Found:
    """What there is when the time of the batch is over before a sample has begun."""
    if known is None:
        return _nothing(yhat, 0)
    return Found(Status.LIMIT, known.y, 0.0, known.literals, 0)


def _unmoved(sample: RulesAtSample, found: Found, yhat: Array, settings: Settings) -> bool:
    """Whether a prediction passes as it is and for nothing, as the engine sees it."""
    whole = sample.integer[: len(yhat)].any()
    paid = any(sample.prices.get(literal - 1, 0.0) for literal in found.literals if literal > 0)
    moved = np.abs(found.y - yhat).max(initial=0.0)
    return not paid and bool(moved <= (0.0 if whole else settings.tolerance))


def _at(
    sample: RulesAtSample,
    program: DisjunctiveProgram,
    yhat: Array,
    weights: Array,
    answer: DisjunctiveAnswer,
) -> Incumbent | None:
    """What was found as an incumbent, where it satisfies the rules."""
    if answer.point is None:
        return None
    y = _outputs(sample, answer)
    if not _holds(sample, answer, y):
        return None
    paid = program.value(np.zeros(len(program.cost)), answer.literals)
    return Incumbent(y, float(weights @ np.abs(y - yhat)) + paid, answer.literals)


def _nearer(one: Incumbent | None, other: Incumbent | None) -> Incumbent | None:
    """The nearer of two that may be missing."""
    if one is None or other is None:
        return one or other
    return one if one.distance <= other.distance else other


def _doubted(found: Found) -> Found:
    """The same, where numbers are too large for a solver's proofs."""
    doubts = {Status.PROJECTED: Status.LIMIT, Status.CONFLICT: Status.UNSOLVED}
    status = doubts.get(found.status, found.status)
    value = found.value if found.status is Status.LIMIT else 0.0
    return replace(found, status=status, value=value)


def _any_point(program: DisjunctiveProgram, solver: Solver, clock: Clock) -> DisjunctiveAnswer:
    """Any feasible point, made the nearest one of the disjuncts that it chose."""
    free = replace(program, cost=np.zeros_like(program.cost), prices={})
    answer = disjunctive.solve(free, solver, clock)
    return disjunctive.polish(program, answer, solver)


def _contradiction(
    sample: RulesAtSample,
    program: DisjunctiveProgram,
    yhat: Array,
    solver: Solver,
    settings: Settings,
    clock: Clock,
    nodes: int,
) -> Found:
    """Nothing is feasible: a conflict if that remains so with a margin, else not decided."""
    loose = disjunctive.solve_search(disjunctive.loosened(program, MARGIN), solver, clock, True)
    nodes += loose.nodes
    if loose.outcome is not Outcome.INFEASIBLE:
        return _nothing(yhat, nodes)
    d = len(yhat)
    if settings.nearest:
        start, unit = sample.clip(yhat), settings.price_unit
        found = nearest(sample, start, settings.weights, solver, clock, price_unit=unit)
        if found is not None and found.point is not None:
            y = np.clip(found.point[:d], sample.lower[:d], sample.upper[:d])
            return Found(Status.CONFLICT, y, np.inf, found.literals, nodes)
    return Found(Status.CONFLICT, yhat, np.inf, frozenset(), nodes)


def _nothing(yhat: Array, nodes: int) -> Found:
    """Nothing was found and nothing excluded: the prediction passes, at an infinite distance."""
    return Found(Status.UNSOLVED, yhat, 0.0, frozenset(), nodes)


def _outputs(sample: RulesAtSample, answer: DisjunctiveAnswer) -> Array:
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


def _holds(sample: RulesAtSample, answer: DisjunctiveAnswer, y: Array) -> bool:
    """Whether the point, auxiliaries included, satisfies the rows that were chosen."""
    assert answer.point is not None
    z = answer.point[: len(sample.lower)].copy()
    z[: len(y)] = y
    data = sample.rules.data
    rows = [*data.global_rows, *enforced(data.booleans, answer.literals)]
    excess = sample.rows.take(rows).times(z) - sample.bound[rows]
    excess = np.where(sample.equality[rows], np.abs(excess), excess)
    return bool((excess <= TOLERANCES.holds * sample.size[rows]).all())
