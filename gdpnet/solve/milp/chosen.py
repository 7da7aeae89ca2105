"""The l2-nearest point where disjuncts are chosen: a quadratic program, solved by the core."""

from __future__ import annotations

import numpy as np

from gdpnet.ir.data import Column
from gdpnet.ir.instance import Instance
from gdpnet.ir.semantics import enforced
from gdpnet.ir.written import rules_of
from gdpnet.lp.clock import Clock
from gdpnet.lp.program import Outcome
from gdpnet.solve.base import Array, Settings
from gdpnet.solve.milp.disjunctive import DisjunctiveAnswer
from gdpnet.solve.milp.found import Incumbent, holds, outputs_of
from gdpnet.solve.milp.sample import RulesAtSample

_NODES = 1_000  # for whole numbers that are not given


def nearest_in_chosen(
    sample: RulesAtSample,
    yhat: Array,
    settings: Settings,
    literals: frozenset[int],
    clock: Clock,
    point: Array | None = None,
) -> Incumbent | None:
    """The nearest point where literals are true; None where none is found that holds.

    Args:
        sample: the rules.
        yhat: prediction, `d`.
        settings: weights, and what prices are in.
        literals: what is chosen.
        clock: when to stop.
        point: whole numbers are as they are here, `n` or more; None to look for them.
    """
    from gdpnet.solve.exact.engine import ExactEngine
    from gdpnet.solve.exact.options import SearchOptions

    data = sample.rules.data
    rows = sorted({*data.global_rows, *enforced(data.booleans, literals)})
    lower, upper, integer = sample.lower, sample.upper, sample.integer
    if point is not None:
        whole = np.rint(point[: len(lower)])
        lower, upper = np.where(integer, whole, lower), np.where(integer, whole, upper)
    parts = zip(data.columns, lower.tolist(), upper.tolist(), integer.tolist(), strict=True)
    rules = rules_of(
        *(sample.rows.take(rows).dense(), sample.bound[rows], sample.equality[rows]),
        [Column(column.name, a, b, whole) for column, a, b, whole in parts],
        len(yhat),
        global_rows=range(len(rows)),
    )
    left = clock.left
    options = SearchOptions(
        *(settings.weights, 0.0, _NODES, left, 1), norm="l2", price_unit=settings.price_unit
    )
    found = ExactEngine(rules).project(Instance.of(rules, np.zeros((1, 0))), yhat[None], options)
    if not np.isfinite(found.distance[0]):
        return None
    answer = DisjunctiveAnswer(Outcome.OPTIMAL, found.z[0], literals=literals)
    y = outputs_of(sample, answer)
    if not holds(sample, answer, y):
        return None
    paid = sample.paid(literals) / settings.price_unit
    square = float(((settings.weights * (y - yhat)) ** 2).sum())
    return Incumbent(y, square + paid, literals, np.concatenate([y, found.z[0, len(yhat) :]]))
