"""One global row over most of the columns: left out, at a price.

Where a single row, such as a sum over all outputs, holds hundreds of rules together, a solver of
mixed-integer programs is slow at its root already: it looks for cuts in all that this row touches.
Without the row the rules fall apart. For any multiplier u of the row `a v <= b` (of an equation
any, else none above 0)

    least of  cost v - u (a v - b)   over everything but the row

is a bound (Lagrange), and the disjuncts that it chooses are nearly those of the nearest point: the
nearest point in them that satisfies the row is an incumbent. As a function of u the bound is
concave, and each program gives a line above it: the next multiplier is where two of them meet, one
that rises and one that falls.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gdpnet.lp.clock import Clock
from gdpnet.lp.program import Solver
from gdpnet.solve.milp import disjunctive
from gdpnet.solve.milp.disjunctive import DisjunctiveAnswer, DisjunctiveProgram
from gdpnet.solve.milp.moves import Moves

_LONG = 1_000  # entries
_PROGRAMS = 6  # mixed-integer ones
_NODES = 100  # of each
_STEP = 0.1  # from the first multiplier to the second, in that at which moves cost nothing; doubled


def long_row(program: DisjunctiveProgram) -> int | None:
    """The place among the global rows of the only one that is long; None where it is not one."""
    rows = list(dict.fromkeys(program.global_rows))
    entries = np.diff(program.rows.start)[rows]
    long = np.flatnonzero(entries >= _LONG)
    return int(long[0]) if len(long) == 1 else None


def by_multiplier(
    program: DisjunctiveProgram,
    place: int,
    first: float,
    known: DisjunctiveAnswer,
    solver: Solver,
    clock: Clock,
) -> DisjunctiveAnswer:
    """A nearer point than a known one, or it; with the best bound.

    Args:
        program: what to solve.
        place: of the row among the global ones.
        first: its multiplier in the relaxation.
        known: a point and a bound.
        solver: solves the programs.
        clock: when to stop.
    """
    row = _Row(program, place)
    limited = clock.part(1.0)
    limited.nodes = _NODES
    best, multiplier, step = known, first, _STEP * row.free
    rising: _BoundLine | None = None
    falling: _BoundLine | None = None
    for _ in range(_PROGRAMS):
        if clock.over:
            break
        found = disjunctive.solve_milp(row.without(multiplier), solver, limited)
        if found is None or found.point is None:
            break
        bound = found.bound + row.constant(multiplier)
        line = _BoundLine(multiplier, bound, -row.excess(found.point))
        found = disjunctive.polish(program, replace(found, value=np.inf), solver)
        nearer = found if found.value < best.value else best
        nodes = best.nodes + 1
        best = replace(nearer, outcome=known.outcome, bound=max(best.bound, bound), nodes=nodes)
        if line.slope == 0.0 or best.closed:
            break
        if line.slope > 0.0:
            rising = line
        else:
            falling = line
        if rising is not None and falling is not None:
            multiplier = rising.meets(falling)
            if not rising.at < multiplier < falling.at:
                break
            continue
        multiplier += step if line.slope > 0.0 else -step
        step *= 2.0
        if multiplier > 0.0 and not row.equality:
            break
    return best


class _BoundLine:
    """What the bound is at a multiplier, and how it rises there."""

    def __init__(self, at: float, bound: float, slope: float) -> None:
        self.at, self.bound, self.slope = at, bound, slope

    def meets(self, other: _BoundLine) -> float:
        """Where two of them meet."""
        own, others = self.bound - self.slope * self.at, other.bound - other.slope * other.at
        return (others - own) / (self.slope - other.slope)


class _Row:
    """The row, and the program without it."""

    def __init__(self, program: DisjunctiveProgram, place: int) -> None:
        rows = list(dict.fromkeys(program.global_rows))
        index = rows.pop(place)
        start, end = program.rows.start[index : index + 2]
        self._program, self._rest, self._moves = program, tuple(rows), Moves(program.moves)
        self._column = program.rows.column[start:end]
        self._value = program.rows.value[start:end]
        self._bound = float(program.bound[index])
        self.equality = bool(program.equality[index])
        # At this multiplier some column moves for nothing, in one direction.
        down, _ = self._moves.spread(len(program.cost))
        away = down[self._column]
        cost = np.where(away >= 0, program.cost[away], 0.0) / np.abs(self._value)
        self.free = float(cost[cost > 0.0].min(initial=np.inf))
        self.free = self.free if np.isfinite(self.free) else 1.0

    def _cost(self, multiplier: float) -> np.ndarray:
        cost = self._program.cost.copy()
        cost[self._column] -= multiplier * self._value
        return cost

    def without(self, multiplier: float) -> DisjunctiveProgram:
        """The program without the row, at a price."""
        return replace(self._program, cost=self._cost(multiplier), global_rows=self._rest)

    def constant(self, multiplier: float) -> float:
        """What a bound of it lacks: solvers see moves, not the columns that they start from."""
        centres = self._cost(multiplier)[self._moves.column] @ self._moves.centre
        return multiplier * self._bound + float(centres)

    def excess(self, point: np.ndarray) -> float:
        """By how much a point breaks the row; below 0 for what is to spare."""
        return float(self._value @ point[self._column]) - self._bound
