"""Where rules contradict each other, in l2 or with convex rows: broken as little as possible.

How little is found by a mixed-integer linear program, or where rows are convex by a projection in
l1: onto rules with a column for how much each of them is broken, which is predicted to be 0 and has
all the weight. The nearest point of those that break them no more is a projection onto the same.
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np
import torch

from gdpnet.ir.batch import Batch
from gdpnet.ir.data import Column
from gdpnet.ir.instance import Instance
from gdpnet.ir.linear import Coefficient
from gdpnet.ir.rules import Rules
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.ir.written import rules_of
from gdpnet.lp.clock import Clock
from gdpnet.lp.solvers import SOLVERS
from gdpnet.solve import existence
from gdpnet.solve.base import Answer, Array, Request, Settings
from gdpnet.solve.exact.elastic import Elastic
from gdpnet.solve.exact.options import SearchOptions
from gdpnet.solve.milp import cuts, l2, nearest
from gdpnet.solve.milp.backend import MILP_NODES
from gdpnet.solve.milp.disjunctive import DisjunctiveAnswer, DisjunctiveProgram
from gdpnet.solve.milp.found import Incumbent, literals_of
from gdpnet.solve.milp.sample import RulesAtSample
from gdpnet.solve.status import Status

_SEARCHING = 0.5  # of the time, for the search; the rest is for what takes over


def break_rules(request: Request, answer: Answer, samples: Array, options: SearchOptions) -> None:
    """Move the predictions of contradictory samples, written into an answer.

    Args:
        request: the batch.
        answer: whose y and assignment are written into.
        samples: which ones.
        options: how they were searched.
    """
    samples = break_batch(request, answer, samples, options)
    if not len(samples):
        return
    rules, d = request.rules, request.yhat.shape[1]
    evaluated = rules.evaluate(torch.from_numpy(request.x[samples]))
    for place, index in enumerate(samples.tolist()):
        sample = RulesAtSample.of(rules, evaluated, place)
        clock = Clock(request.settings.time_limit)
        y = _nearest(sample, request.yhat[index], options, clock)
        if y is None:
            continue  # no rule is to blame: the prediction passes
        answer.y[index] = np.clip(y, sample.lower[:d], sample.upper[:d])
        at = Batch.of_arrays(request.x[[index]], answer.y[[index]])
        answer.assignment[index] = existence.each(rules, at, TOLERANCES.satisfied)[0]


def break_batch(request: Request, answer: Answer, samples: Array, options: SearchOptions) -> Array:
    """As `break_rules`, for all samples at once where the core's search can.

    Not under a limit of time, which is for a sample and for all that is tried with it.

    Returns:
        The samples that are left to others.
    """
    rules = request.rules
    if not len(samples) or request.settings.time_limit is not None:
        return samples
    elastic = rules.cache[Elastic.of]
    if elastic is None:
        return samples
    instance = request.take(samples).evaluate()
    found = elastic.least_broken(instance, request.yhat[samples], options)
    known = samples[found.proved]
    if len(known):
        answer.y[known] = found.y[found.proved]
        at = Batch.of_arrays(request.x[known], answer.y[known])
        answer.assignment[known] = existence.each(rules, at, TOLERANCES.satisfied)
    return samples[~found.proved]


def _nearest(
    sample: RulesAtSample, yhat: Array, options: SearchOptions, clock: Clock
) -> Array | None:
    """Outputs, `d`; None where bounds, globals and logic have no solution by themselves."""
    program, slack = nearest.elastic(sample, sample.as_written())
    point = _least_broken(sample, program, slack, clock)
    if point is None or clock.over:
        return None if point is None else point[: len(yhat)]
    limited = nearest.no_more_than(program, slack, point)
    share = 1.0 if program.curved else _SEARCHING
    own = options._replace(time_limit=clock.part(share).left, tolerance=0.0)
    found = _projected(sample, limited, yhat, own, clock)
    return point[: len(yhat)] if found is None else found[: len(yhat)]


def _least_broken(
    sample: RulesAtSample, program: DisjunctiveProgram, slack: Array, clock: Clock
) -> Array | None:
    """A point that breaks rules as little as possible; None where that does not help."""

    def by_milp(linear: DisjunctiveProgram) -> DisjunctiveAnswer:
        return nearest.least_violation(linear, slack, SOLVERS["highs"].solve, clock)

    if program.curved:
        start = np.where(slack, 0.0, np.clip(0.0, program.lower, program.upper))
        own = SearchOptions(slack.astype(float), tolerance=0.0, time_limit=clock.left)
        found = _projected(sample, program, start, own, clock)
        if found is not None:
            return found
    return cuts.solve(program, sample, by_milp).point


def _projected(
    sample: RulesAtSample,
    program: DisjunctiveProgram,
    yhat: Array,
    options: SearchOptions,
    clock: Clock,
) -> Array | None:
    """The nearest point of a program, by the exact engine or what takes over; None for none."""
    from gdpnet.solve.exact.engine import ExactEngine

    matrix, bound, n = program.matrix.copy(), program.bound.copy(), sample.matrix.shape[1]
    curves = {}
    for i, (source, unit) in program.curved.items():
        several = sample.rules.data.rows[source].curves
        curves[i] = tuple(replace(curve, weight=unit * curve.weight) for curve in several)
        for k in (k for curve in several for k in curve.arguments):  # those have no units
            matrix[k], bound[k] = 0.0, sample.bound[k]
            matrix[k, :n] = sample.matrix[k]
    parts = zip(program.lower, program.upper, program.integer, strict=True)
    rules = rules_of(
        *(matrix, bound, program.equality),
        [Column(f"z[{j}]", float(a), float(b), bool(i)) for j, (a, b, i) in enumerate(parts)],
        len(yhat),
        global_rows=program.global_rows,
        booleans=[
            replace(boolean, price=Coefficient(program.prices.get(k, 0.0)))
            for k, boolean in enumerate(program.booleans)
        ],
        clauses=program.clauses,
        curves=curves,
    )
    solved = ExactEngine(rules).project(Instance.of(rules, np.zeros((1, 0))), yhat[None], options)
    found = np.asarray(solved.z[0]) if np.isfinite(solved.distance[0]) else None
    if solved.proved or program.curved or options.norm != "l2":
        return found
    known = None
    if found is not None:
        y, literals = found[: len(yhat)].copy(), literals_of(solved.assignment[0])
        known = Incumbent(y, float(solved.distance[0]), literals, found)
    return _taken_over(rules, yhat, options, known, clock)


def _taken_over(
    rules: Rules, yhat: Array, options: SearchOptions, known: Incumbent | None, clock: Clock
) -> Array | None:
    """The same by mixed-integer programs, where the search is not finished."""
    settings = Settings(options.weights, norm="l2", unit=sqrt(options.price_unit))
    sample = RulesAtSample.of(rules, rules.evaluate(torch.zeros(1, 0, dtype=torch.float64)), 0)
    limited = Clock(clock.left, MILP_NODES if clock.left is None else None)
    found = l2.project(sample, yhat, SOLVERS["highs"].solve, settings, known, limited)
    return found.y if found.status in (Status.PROJECTED, Status.LIMIT) else None
