"""The l1-nearest point of a sample: one mixed-integer program, checked and solved again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gdpnet.lp.clock import Clock
from gdpnet.lp.program import Outcome, Solver
from gdpnet.lp.refined import refined
from gdpnet.solve.base import Array, Settings
from gdpnet.solve.milp import disjunctive
from gdpnet.solve.milp.disjunctive import DisjunctiveAnswer, DisjunctiveProgram
from gdpnet.solve.milp.found import Found, Incumbent, holds, nearer, nothing, outputs_of
from gdpnet.solve.milp.nearest import nearest
from gdpnet.solve.milp.sample import RulesAtSample
from gdpnet.solve.milp.started import dived, nearest_in, nearest_literals
from gdpnet.solve.status import Status

_FEW_CLAUSES = 12  # that are searched without big-M where it slipped, and need no point first
_SLIPPED = 1e-6  # relative: a point that is further than what was proved, by more, is not proved

_DIVING = 0.75  # of the time at most, for a first point
_SEARCHING = 0.75  # of the time: the rest is for finding any point, where none was found by then

MARGIN = 1e-8
"""Rules contradict each other if they do even where every row gives way by this, scaled."""


def project(
    sample: RulesAtSample,
    yhat: Array,
    solver: Solver,
    settings: Settings,
    known: Incumbent | None,
    clock: Clock,
    given: Array | None = None,
) -> Found:
    """The nearest point of a sample, or what is found of it by a limit.

    Args:
        sample: the rules.
        yhat: prediction, `d`.
        solver: of all programs.
        settings: weights, what prices are in, and what is done about contradictions.
        known: a point that satisfies the rules.
        clock: when to stop.
        given: outputs to start from, `d`; they may break rules.
    """
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
            known = nearer(known, _at(sample, program, yhat, weights, started))
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
        program = bounded(program, start, weights, known.distance - outside)
    elif not (np.isfinite(sample.lower[:d]).all() and np.isfinite(sample.upper[:d]).all()):
        first = disjunctive.solve_search(program, solver, clock, first=True)
        nodes += first.nodes
        if first.outcome is Outcome.OPTIMAL:
            program = bounded(program, start, weights, first.value)
        elif first.outcome is not Outcome.INFEASIBLE:
            return nothing(yhat, nodes)
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
        return _contradiction(sample, yhat, solver, settings, clock, nodes)
    answer = disjunctive.polish(program, answer, solver)
    if answer.point is not None and not holds(sample, answer, outputs_of(sample, answer)):
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
        y = outputs_of(sample, answer)
        if holds(sample, answer, y):
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
    return nothing(yhat, nodes)


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
    y = outputs_of(sample, answer)
    if not holds(sample, answer, y):
        return None
    paid = program.value(np.zeros(len(program.cost)), answer.literals)
    return Incumbent(y, float(weights @ np.abs(y - yhat)) + paid, answer.literals)


def _any_point(program: DisjunctiveProgram, solver: Solver, clock: Clock) -> DisjunctiveAnswer:
    """Any feasible point, made the nearest one of the disjuncts that it chose."""
    free = replace(program, cost=np.zeros_like(program.cost), prices={})
    answer = disjunctive.solve(free, solver, clock)
    return disjunctive.polish(program, answer, solver)


def _contradiction(
    sample: RulesAtSample,
    yhat: Array,
    solver: Solver,
    settings: Settings,
    clock: Clock,
    nodes: int,
) -> Found:
    """Nothing is feasible: a conflict if that remains so with a margin, else not decided."""
    # It does not depend on the prediction, beside whose size rows may seem to hold nowhere.
    d = len(yhat)
    free = sample.projection(sample.clip(np.zeros(d)), settings.weights)
    free = replace(free, cost=np.zeros_like(free.cost), prices={})
    loose = disjunctive.solve_search(disjunctive.loosened(free, MARGIN), solver, clock, True)
    nodes += loose.nodes
    if loose.outcome is not Outcome.INFEASIBLE:
        return nothing(yhat, nodes)
    if settings.nearest:
        start, unit = sample.clip(yhat), settings.price_unit
        found = nearest(sample, start, settings.weights, solver, clock, price_unit=unit)
        if found is not None and found.point is not None:
            y = np.clip(found.point[:d], sample.lower[:d], sample.upper[:d])
            return Found(Status.CONFLICT, y, np.inf, found.literals, nodes)
    return Found(Status.CONFLICT, yhat, np.inf, frozenset(), nodes)


def bounded(
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
