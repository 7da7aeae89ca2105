"""The lifted engine of one rule model: layouts compiled once, batches solved in threads."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gdpnet.convexify._blocks import Layout
from gdpnet.rules.model import RuleModel
from gdpnet.solve._gradients import Gradients
from gdpnet.solve.exact._engine import Instance
from gdpnet.solve.exact._jit import Array
from gdpnet.solve.lifted._jacobian import Problem, vjp
from gdpnet.solve.lifted._kernel import Basis, Output, run
from gdpnet.solve.lifted._program import Workspace, new_workspace
from gdpnet.solve.lifted._tables import Extent, extent, largest, sources, tables

# Above this many columns HiGHS, with its sparse factors, is ahead of a dense tableau.
_MOST_COLUMNS = 400

_PROBE = 16  # samples that are timed before threads are started
_WORTH_THREADS = 4e-3  # seconds of work that pay for starting them
_CORES = os.cpu_count() or 1


@dataclass(frozen=True)
class LiftedSolved:
    """Results of a batch.

    Attributes:
        y: the vertex, NaN where there is none, (B, d).
        value: weighted l1 value of the program relative to the start, inf where there is no
            point, (B,).
        outcome: 0 solved, 1 infeasible, 2 failed, (B,) int8.
        weight: weights of the products of the sample's layout, in the layout's order and 0 beyond
            their number, (B, products).
        basis: the final bases (empty arrays where not asked for).
        problem: what was solved.
    """

    y: Array
    value: Array
    outcome: Array
    weight: Array
    basis: Basis
    problem: Problem

    def vjp(self, gradient: Array) -> Gradients:
        """Gradients of a loss from its gradient with respect to y.

        The gradient with respect to the prediction is that of the start: the caller sets it to 0
        where the prediction was clipped. Samples without a point pass the gradient on.

        Args:
            gradient: (B, d).
        """
        if len(self.basis.state) < len(gradient):
            raise ValueError("Solve with detailed=True to keep the bases that derivatives need.")
        return vjp(self.problem, self.outcome, self.basis, gradient)


class LiftedEngine:
    """Solves CNF and partial DNF of one model.

    Args:
        rules: the rule model; all columns have finite bounds.
    """

    def __init__(self, rules: RuleModel) -> None:
        self.data = rules.data
        self._sources = sources(rules.data)
        self._layouts: list[Layout] = []
        self._by_identity: dict[int, int] = {}
        self._by_value: dict[Layout, int] = {}
        self._extents: list[Extent] = []
        self._tables = tables([])
        self._size = largest([])
        self._workspaces: list[Workspace] = []

    def accepts(self, layout: Layout) -> bool:
        """Whether a layout is small enough for dense arithmetic."""
        return extent(self.data, layout).columns <= _MOST_COLUMNS

    def solve(
        self,
        instance: Instance,
        start: Array,
        weights: Array,
        layout_of_sample: Array,
        layouts: Sequence[Layout],
        threads: int | None = None,
        detailed: bool = False,
    ) -> LiftedSolved:
        """Optimal vertices of a batch.

        Args:
            instance: the rules for the batch.
            start: predictions clipped to the bounds, (B, d).
            weights: of the outputs, (d,).
            layout_of_sample: index into `layouts`, (B,).
            layouts: how the active rules are convexified.
            threads: or None to choose.
            detailed: report the final bases.
        """
        number = self._numbers(layouts)
        size, outputs = len(start), self.data.outputs
        products = max((self._extents[k].products for k in number.tolist()), default=0)
        out = Output(
            y=np.empty((size, outputs)),
            value=np.empty(size),
            outcome=np.empty(size, dtype=np.int8),
            weight=np.empty((size, products)),
        )
        basis = _new_basis(size if detailed else 0, self._size)
        problem = Problem(
            *(self._sources, self._tables, self._size, number[layout_of_sample]),
            *(instance.bound, instance.varying, np.ascontiguousarray(start), weights),
        )
        arguments = (problem.src, problem.tab, *problem[3:])

        def work(span: tuple[int, int]) -> None:
            try:
                workspace = self._workspaces.pop()
            except IndexError:
                workspace = new_workspace(self._sources, self._size)
            run(*span, *arguments, workspace, out, basis)
            self._workspaces.append(workspace)

        first, workers = 0, threads or _CORES
        if threads is None and workers > 1:
            # Threads cost more than they bring where there is little to do: look at a few samples.
            first = min(_PROBE, size)
            began = time.perf_counter()
            work((0, first))
            expected = (time.perf_counter() - began) / max(first, 1) * (size - first)
            workers = 1 if expected < _WORTH_THREADS else workers
        if workers == 1 or size - first < 2:
            work((first, size))
        else:
            pieces = min(4 * workers, size - first)
            cuts = np.linspace(first, size, pieces + 1).astype(int).tolist()
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(work, pairwise(cuts)))
        return LiftedSolved(*out, basis, problem)

    def _numbers(self, layouts: Sequence[Layout]) -> Array:
        """Places of layouts in the tables, which grow where one is new."""
        known = self._by_identity
        numbers = [known.get(id(layout), -1) for layout in layouts]
        if -1 in numbers:
            for layout in layouts:
                if id(layout) in known:
                    continue
                place = self._by_value.setdefault(layout, len(self._extents))
                if place == len(self._extents):
                    self._extents.append(extent(self.data, layout))
                self._layouts.append(layout)  # so that its identity stays its own
                known[id(layout)] = place
            self._tables = tables(list(self._by_value))
            size = largest(self._extents)
            if size != self._size:
                self._size, self._workspaces = size, []
            numbers = [known[id(layout)] for layout in layouts]
        return np.array(numbers, dtype=np.int64)


def _new_basis(samples: int, size: Extent) -> Basis:
    return Basis(
        state=np.zeros((samples, size.products), dtype=np.int8),
        rank=np.zeros((samples, size.all_blocks), dtype=np.int32),
        size=np.zeros((samples, size.parts), dtype=np.int64),
        column=np.empty((samples, size.basis), dtype=np.int32),
        row=np.empty((samples, size.basis), dtype=np.int32),
        value=np.empty((samples, size.basis)),
    )
