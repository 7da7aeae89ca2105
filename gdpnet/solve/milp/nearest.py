"""Where rules contradict each other: break them as little as possible."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gdpnet.ir.compressed import Compressed
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.lp.clock import Clock
from gdpnet.lp.program import Solver
from gdpnet.solve.milp import disjunctive
from gdpnet.solve.milp.disjunctive import DisjunctiveAnswer, DisjunctiveProgram
from gdpnet.solve.milp.sample import RulesAtSample


def nearest(
    sample: RulesAtSample,
    start: np.ndarray,
    weights: np.ndarray,
    solver: Solver,
    clock: Clock,
    *,
    price_unit: float = 1.0,
) -> DisjunctiveAnswer | None:
    """Bounds, globals and logic hard; least sum of scaled violations, then least distance.

    What rules with a price are broken costs that instead. None where the hard part alone has no
    solution.
    """
    written = sample.projection(start, weights, price_unit=price_unit, as_written=True)
    program, slack = elastic(sample, written)
    answer = least_violation(program, slack, solver, clock)
    if answer.point is None:
        return None
    # Second stage: no more violation than that, then as near as possible.
    second = no_more_than(program, slack, answer.point)
    nearer = disjunctive.polish(second, disjunctive.solve(second, solver, clock), solver)
    return answer if nearer.point is None else nearer


def least_violation(
    program: DisjunctiveProgram, slack: np.ndarray, solver: Solver, clock: Clock
) -> DisjunctiveAnswer:
    """A point of an elastic program that breaks rules as little as possible."""
    first = replace(program, cost=slack.astype(float), prices={})
    return disjunctive.polish(first, disjunctive.solve(first, solver, clock), solver)


def no_more_than(
    program: DisjunctiveProgram, slack: np.ndarray, point: np.ndarray
) -> DisjunctiveProgram:
    """An elastic program whose rules are broken no more than at a point."""
    bound = np.concatenate([program.bound, [TOLERANCES.above(float(slack @ point))]])
    return replace(
        program,
        rows=program.rows.above(Compressed.of(slack[None].astype(float))),
        bound=bound,
        equality=np.concatenate([program.equality, [False]]),
        global_rows=(*program.global_rows, len(bound) - 1),
    )


def elastic(
    sample: RulesAtSample, program: DisjunctiveProgram
) -> tuple[DisjunctiveProgram, np.ndarray]:
    """A program with a violation column for each active rule; which columns those are.

    Equalities of disjuncts become two inequalities, so that they can be broken by an amount.

    Args:
        sample: the rules.
        program: over them, with rows as they are written.
    """
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
                    matrix[i, columns + k] = -sample.scale[i] * sample.unit[i]
                    if sample.equality[i]:
                        opposite = -matrix[i]
                        opposite[columns + k] = -sample.scale[i] * sample.unit[i]
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
            rows=Compressed.of(matrix),
            bound=np.concatenate([bound, extra_bound]),
            equality=np.concatenate([equality, np.zeros(len(extra), dtype=bool)]),
            lower=np.concatenate([program.lower, zeros]),
            upper=np.concatenate([program.upper, np.full(len(owners), np.inf)]),
            integer=np.concatenate([program.integer, zeros.astype(bool)]),
            booleans=tuple(booleans),
        ),
        slack,
    )
