"""Where rules contradict each other, in the Euclidean norm: broken as little as possible.

How little is found by a mixed-integer linear program, whatever the norm. The nearest point among
those that break them no more is then a projection as any other: onto rules that have a column for
how much each of them is broken.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from gdpnet import core
from gdpnet.ir.batch import Batch
from gdpnet.ir.data import Column
from gdpnet.ir.instance import Instance
from gdpnet.ir.linear import Coefficient
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.ir.written import rules_of
from gdpnet.lp.clock import Clock
from gdpnet.lp.solvers import SOLVERS
from gdpnet.solve import existence
from gdpnet.solve.base import Answer, Array, Request
from gdpnet.solve.exact.options import SearchOptions
from gdpnet.solve.milp import nearest
from gdpnet.solve.milp.disjunctive import DisjunctiveProgram
from gdpnet.solve.milp.sample import RulesAtSample


def break_rules(request: Request, answer: Answer, samples: Array, options: SearchOptions) -> None:
    """Move the predictions of contradictory samples, written into an answer.

    Args:
        request: the batch.
        answer: whose y and assignment are written into.
        samples: which ones.
        options: how they were searched.
    """
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


def _nearest(
    sample: RulesAtSample, yhat: Array, options: SearchOptions, clock: Clock
) -> Array | None:
    """Outputs, `d`; None where bounds, globals and logic have no solution by themselves."""
    program, slack = nearest.elastic(sample, sample.as_written())
    found = nearest.least_violation(program, slack, SOLVERS["highs"].solve, clock)
    if found.point is None:
        return None
    least = found.point[: len(yhat)]
    if clock.over:
        return least
    limited = nearest.no_more_than(program, slack, found.point)
    return _projected(limited, yhat, options._replace(time_limit=clock.left), least)


def _projected(
    program: DisjunctiveProgram, yhat: Array, options: SearchOptions, otherwise: Array
) -> Array:
    """The nearest outputs of a program by the exact engine; others where it fails."""
    from gdpnet.solve.exact.engine import ExactEngine

    parts = zip(program.lower, program.upper, program.integer, strict=True)
    rules = rules_of(
        *(program.matrix, program.bound, program.equality),
        [Column(f"z[{j}]", float(a), float(b), bool(i)) for j, (a, b, i) in enumerate(parts)],
        len(yhat),
        global_rows=program.global_rows,
        booleans=[
            replace(boolean, price=Coefficient(program.prices.get(k, 0.0)))
            for k, boolean in enumerate(program.booleans)
        ],
        clauses=program.clauses,
    )
    solved = ExactEngine(rules).project(
        Instance.of(rules, np.zeros((1, 0))), yhat[None], options._replace(tolerance=0.0)
    )
    known = solved.status[0] in (core.SOLVED, core.ACCEPTED_AS_IS) or np.isfinite(
        solved.distance[0]
    )
    return np.asarray(solved.z[0, : len(yhat)]) if known else otherwise
