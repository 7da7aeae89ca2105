"""Linear programs solved again around their answers, magnified.

A solver's tolerances are absolute. Between rows that are nearly parallel a row that is left by
1e-11 is 1e-4 of the objective, so the point becomes the origin, what is left of rows and bounds is
magnified, and the same tolerances count for as much less. Costs and coefficients stay as they are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gdpnet.lp.clock import Clock
from gdpnet.lp.program import LinearProgram, Outcome, Solution, Solver, SparseLinearProgram

_MAGNIFIED = 2.0**20
_ROUNDS = 3
_SAME = 1e-12  # a change of the objective that is none, relative


def refined(solver: Solver) -> Solver:
    """A solver whose points are looked at again; programs with whole numbers are as before."""

    def solve(program: LinearProgram | SparseLinearProgram, clock: Clock) -> Solution:
        program = program.sparse()
        found = solver(program, clock)
        if program.integer is not None and program.integer.any():
            return found
        for _ in range(_ROUNDS):
            if found.outcome is not Outcome.OPTIMAL or found.point is None:
                return found
            step = solver(_around(program, found.point), clock)
            # What rounding makes of a magnified program is no contradiction.
            if step.outcome is not Outcome.OPTIMAL or step.point is None:
                return found
            point = np.clip(found.point + step.point / _MAGNIFIED, program.lower, program.upper)
            value = float(program.cost @ point)
            changed = abs(value - found.bound) > _SAME * max(1.0, abs(value))
            found = replace(found, point=point, bound=value, multipliers=step.multipliers)
            if not changed:
                return found
        return found

    return solve


def _around(program: SparseLinearProgram, point: np.ndarray) -> SparseLinearProgram:
    """The program in magnified moves away from a point."""
    terms = program.value * point[program.column]
    at = np.bincount(program.row, terms, len(program.row_lower))
    return replace(
        program,
        row_lower=_MAGNIFIED * (program.row_lower - at),
        row_upper=_MAGNIFIED * (program.row_upper - at),
        lower=_MAGNIFIED * (program.lower - point),
        upper=_MAGNIFIED * (program.upper - point),
    )
