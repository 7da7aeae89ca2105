"""The dense simplex on the parts of a layout, behind one call for a whole batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gdpnet.convexify._blocks import Layout, Part
from gdpnet.convexify._lifted import LiftedProgram
from gdpnet.rules.model import RuleModel
from gdpnet.solve._written_out import SOLVED

if TYPE_CHECKING:
    from gdpnet.solve.exact import Instance
    from gdpnet.solve.exact._linear import DenseSolver

Array = np.ndarray

# Above this many columns HiGHS, with its sparse factors, is ahead of the dense simplex.
_MOST_COLUMNS = 300

# Bytes of per-sample coefficients that the dense solver holds at a time.
_PIECE = 64e6


@dataclass(frozen=True)
class Solved:
    """What was found for a batch.

    Attributes:
        y: outputs, (B, d).
        value: (B,).
        outcome: 0 solved, 1 infeasible, 2 failed, (B,) int8.
        weight: weights of the products of the sample's layout, in the layout's order and 0 beyond
            their number, (B, products).
    """

    y: Array
    value: Array
    outcome: Array
    weight: Array


class DenseEngine:
    """Solves the layouts of one rule model.

    Args:
        rules: the rules, as `relaxable` gives them.
    """

    def __init__(self, rules: RuleModel) -> None:
        self.rules = rules
        self._solvers: dict[tuple[Part, bytes], tuple[LiftedProgram, DenseSolver]] = {}

    @staticmethod
    def accepts(layout: Layout) -> bool:
        """Whether a layout is small enough."""
        return all(_columns(part) <= _MOST_COLUMNS for part in layout)

    def solve(
        self,
        instance: Instance,
        start: Array,
        weights: Array,
        layout_of_sample: Array,
        layouts: Sequence[Layout],
    ) -> Solved:
        """Solve a batch.

        Args:
            instance: the rules for the batch.
            start: predictions within the outputs' bounds, (B, d).
            weights: of the outputs, (d,).
            layout_of_sample: index into layouts, (B,) int64.
            layouts: all layouts of the batch.
        """
        y, value = start.copy(), np.zeros(len(start))
        outcome = np.zeros(len(start), dtype=np.int8)
        most = max(sum(len(b.products) for part in one for b in part.blocks) for one in layouts)
        weight = np.zeros((len(start), most))
        for k in np.unique(layout_of_sample).tolist():
            samples = np.flatnonzero(layout_of_sample == k)
            some, at = instance.take(samples), 0
            for part in layouts[k]:
                program, solver = self._solver(part, weights)
                moving = program.moving_values(some.bound, some.varying, start[samples])
                size = max(1, int(_PIECE / solver.bytes_a_sample))
                found = [solver.solve(moving[a : a + size]) for a in range(0, len(moving), size)]
                points = np.concatenate([p for p, _ in found])
                outcome[samples] = np.maximum(
                    outcome[samples], np.concatenate([o for _, o in found])
                )
                y[samples] = program.outputs(points, y[samples])
                value[samples] += program.value_of(points)
                columns = program.weights
                weight[samples, at : at + len(columns)] = points[:, columns]
                at += len(columns)
        solved = outcome == SOLVED
        y[~solved], value[~solved] = np.nan, np.nan
        return Solved(y, value, outcome, weight)

    def _solver(self, part: Part, weights: Array) -> tuple[LiftedProgram, DenseSolver]:
        from gdpnet.solve.exact._linear import DenseSolver

        key = (part, weights.tobytes())
        if key not in self._solvers:
            program = LiftedProgram(self.rules, (), (), weights, part=part)
            self._solvers[key] = program, DenseSolver(program)
        return self._solvers[key]


def _columns(part: Part) -> int:
    split = 1 if len(part.blocks) == 1 else 2
    return (split * len(part.columns) + 1) * sum(len(b.products) for b in part.blocks)
