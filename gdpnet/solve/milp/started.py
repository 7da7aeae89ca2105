"""A point to start from: some disjuncts, and the nearest point in those.

They are what a dive finds, which sees all rules together, or, where nothing can be written down to
dive in, those that a point is nearest to.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gdpnet.ir.logic import find_assignment
from gdpnet.lp.clock import Clock
from gdpnet.lp.program import Outcome, Solver
from gdpnet.solve.milp import disjunctive
from gdpnet.solve.milp.disjunctive import DisjunctiveAnswer, DisjunctiveProgram
from gdpnet.solve.milp.diving import dive
from gdpnet.solve.milp.long_row import by_multiplier, long_row
from gdpnet.solve.milp.sample import RulesAtSample
from gdpnet.solve.milp.written import Written


def dived(program: DisjunctiveProgram, solver: Solver, clock: Clock) -> DisjunctiveAnswer:
    """The nearest point in the disjuncts that a dive finds, and what is proved by then.

    Where one row holds all rules together, also in those that are chosen without it, at a price.
    """
    written = Written(program)
    if not written.possible:
        return DisjunctiveAnswer(Outcome.LIMIT)
    found = dive(written.linear, written.choice, clock)
    answer = DisjunctiveAnswer(Outcome.LIMIT, bound=found.bound, nodes=found.programs)
    if found.point is None:
        return answer
    point, literals = written.point(found.point), written.literals(found.point)
    answer = disjunctive.polish(program, replace(answer, point=point, literals=literals), solver)
    place = long_row(program)
    if place is None or not np.isfinite(answer.value):
        return answer
    # Global rows are the first of the program as it is written.
    multiplier = float(found.multipliers[place])
    return by_multiplier(program, place, multiplier, answer, solver, clock)


def nearest_literals(sample: RulesAtSample, start: np.ndarray) -> frozenset[int] | None:
    """Of each required clause the disjunct that a point breaks least, and what logic makes of them.

    Rows with auxiliaries are broken by what no value within their bounds mends. None where logic
    does not allow the disjuncts together.

    Args:
        sample: the rules.
        start: outputs, `d`; they may break rules.
    """
    booleans = sample.rules.data.booleans
    broken = _violations(sample, start)
    cost = [float(sum(broken[i] for i in boolean.true_rows)) for boolean in booleans]
    chosen: dict[int, bool] = {}
    for clause in sample.clauses:  # a nested one stands behind the one that holds its guard
        if clause.logic or (clause.guard >= 0 and not chosen.get(clause.guard, False)):
            continue
        taken = [k for k in clause.literals if chosen.get(abs(k) - 1) == (k > 0)]
        if not taken:
            open_ones = [k for k in clause.literals if abs(k) - 1 not in chosen]
            if not open_ones:
                return None
            best = min(open_ones, key=lambda k: cost[abs(k) - 1] if k > 0 else 0.0)
            chosen[abs(best) - 1] = best > 0
    # Nested ones too: logic may make a guard true that nobody chose.
    said = [
        clause.literals if clause.guard < 0 else (-(clause.guard + 1), *clause.literals)
        for clause in sample.clauses
    ]
    found = find_assignment(said, chosen)
    if found is None:
        return None
    return frozenset(k + 1 if true else -(k + 1) for k, true in found.items())


def nearest_in(
    program: DisjunctiveProgram, literals: frozenset[int], solver: Solver
) -> DisjunctiveAnswer:
    """The nearest point where these literals are true; none where they leave no point."""
    nowhere = DisjunctiveAnswer(Outcome.LIMIT, point=program.lower, literals=literals)
    if program.integer.any():  # whole numbers are not given: any that fit
        return DisjunctiveAnswer(Outcome.LIMIT, literals=literals)
    found = disjunctive.polish(program, nowhere, solver)
    return found if found is not nowhere else DisjunctiveAnswer(Outcome.LIMIT, literals=literals)


def _violations(sample: RulesAtSample, start: np.ndarray) -> np.ndarray:
    """By how much rows are broken at least, scaled, `rows`."""
    rows, value = sample.rows, sample.rows.value
    ends = [sample.lower.copy(), sample.upper.copy()]
    for end in ends:
        end[: len(start)] = start
    lower, upper = (value * end[rows.column] for end in ends)
    below, above = (
        np.bincount(rows.row, terms, len(rows)) - sample.bound
        for terms in (np.minimum(lower, upper), np.maximum(lower, upper))
    )
    broken = np.maximum(below, 0.0)
    broken = np.where(sample.equality, np.maximum(broken, -above), broken)
    return np.nan_to_num(np.maximum(broken, 0.0), posinf=0.0) / sample.size
