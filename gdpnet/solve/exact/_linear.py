"""The engine's dual simplex on a written-out linear program, for a batch."""

from __future__ import annotations

import numpy as np

from gdpnet.convexify._lifted import LiftedProgram
from gdpnet.solve.exact._arrays import Prepared, power_of_two
from gdpnet.solve.exact._clauses import NO_LOGIC
from gdpnet.solve.exact._engine import new_detail, new_output
from gdpnet.solve.exact._jit import Array
from gdpnet.solve.exact._kernel import new_program, run
from gdpnet.solve.exact._search import NO_SOLUTION, SOLVED


class DenseSolver:
    """Solves samples of one lifted program.

    Every column is an "output" predicted at 0 whose weight is its cost: the start with all columns
    at 0 is dual feasible because costs are not negative.

    Args:
        program: the program.
    """

    def __init__(self, program: LiftedProgram) -> None:
        self.program = program
        n, m = len(program.cost), len(program.bound)
        self.rows = np.unique(program.moving[:, 0])
        place = {int(row): k for k, row in enumerate(self.rows)}
        self._to = np.array([place[int(row)] for row in program.moving[:, 0]], dtype=np.int64)
        self._base = np.zeros((len(self.rows), n))
        for row, k in place.items():
            span = slice(program.start[row], program.start[row + 1])
            self._base[k, program.column[span]] = program.value[span]
        largest = np.maximum.reduceat(np.abs(program.value), program.start[:-1])
        scale = power_of_two(largest)
        self.prepared = Prepared(
            outputs=n,
            lower=program.lower,
            upper=np.full(n, np.inf),
            integer=np.zeros(n, dtype=np.bool_),
            start=program.start,
            column=program.column,
            coefficient=program.value * np.repeat(scale, np.diff(program.start)),
            largest=largest,
            scale=scale,
            equality=program.equality,
            varying=self.rows,
            global_rows=np.arange(m, dtype=np.int64),
            plain=False,
        )
        self.bytes_a_sample = 8 * (len(self.rows) * n + m + n)

    def solve(self, moving: Array) -> tuple[Array, Array]:
        """Points, (B, n), and outcomes: 0 solved, 1 infeasible, 2 failed, (B,).

        Args:
            moving: entries that depend on the sample, (B, entries).
        """
        size, n = len(moving), len(self.program.cost)
        varying = np.repeat(self._base[None], size, axis=0)
        varying[:, self._to, self.program.moving[:, 1]] = moving
        out = new_output(size, n, 0)
        program = new_program(self.prepared, NO_LOGIC)
        run(
            *(0, size, program.words),
            *(np.ones((size, 0), dtype=np.bool_), varying),
            *(np.repeat(self.program.bound[None], size, axis=0), np.zeros((size, n))),
            *(self.program.cost, 1, 0.0, np.array([-1, -1], dtype=np.int64), out, new_detail(0, n)),
        )
        outcome = np.where(out.status == SOLVED, 0, np.where(out.status == NO_SOLUTION, 1, 2))
        return out.z, outcome.astype(np.int8)
