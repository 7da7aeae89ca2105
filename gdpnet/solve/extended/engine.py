"""The extended engine of one rule model: layouts compiled once, batches solved in threads."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gdpnet.ir.instance import Instance
from gdpnet.ir.rules import Rules
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.kernels import (
    Array,
    Basis,
    ExtendedOutput,
    ExtendedWorkspace,
    Extent,
    Sources,
    Tables,
    new_extended_workspace,
    run_extended,
    vjp_extended,
)
from gdpnet.relaxation.blocks import Layout
from gdpnet.solve.base import Gradients
from gdpnet.solve.extended.tables import TableWriter, extent, largest, sources
from gdpnet.threads import FEW, in_threads

# Above this many columns HiGHS, with its sparse factors, is ahead of a dense tableau, where it gets
# the compact form of the program: both take 30 ms a sample at 670 to 860 columns.
_MOST_COLUMNS = 700


class ExtendedProblem(NamedTuple):
    """What was solved.

    Attributes:
        src: rows of the rules.
        tab: layouts.
        size: the most that a sample needs.
        layout: each sample's layout, its place in the tables, (B,).
        bound: right sides, (B, m).
        varying: coefficients that depend on x, (B, k, n).
        start: predictions within the bounds, (B, d).
        weights: (d,).
    """

    src: Sources
    tab: Tables
    size: Extent
    layout: Array
    bound: Array
    varying: Array
    start: Array
    weights: Array


@dataclass(frozen=True)
class ExtendedSolved:
    """Results of a batch.

    Attributes:
        y: the vertex, NaN where there is none, (B, d).
        value: weighted l1 value of the program relative to the start, inf where there is no
            point, (B,).
        outcome: 0 solved, 1 infeasible, 2 failed, (B,) int8.
        weight: weights of the products of the sample's layout, in the layout's order and 0 beyond
            their number, (B, products).
        product: the first product of each block of the sample's layout that y satisfies (with the
            auxiliaries that were found), -1 where there is none, NO_BLOCK beyond the number of
            blocks, (B, blocks) int32.
        basis: the final bases (empty arrays where not asked for).
        problem: what was solved.
        workspaces: memory that fits the problem, taken from here and given back.
    """

    y: Array
    value: Array
    outcome: Array
    weight: Array
    product: Array
    basis: Basis
    problem: ExtendedProblem
    workspaces: list[ExtendedWorkspace]

    def vjp(self, gradient: Array) -> Gradients:
        """Gradients of a loss from its gradient with respect to y.

        The gradient with respect to the prediction is that of the start: the caller sets it to 0
        where the prediction was clipped. Samples without a point pass the gradient on.

        Args:
            gradient: (B, d).
        """
        if len(self.basis.state) < len(gradient):
            raise ValueError("Solve with detailed=True to keep the bases that derivatives need.")
        problem = self.problem
        found = Gradients(
            yhat=np.array(gradient, dtype=np.float64),
            bound=np.zeros_like(problem.bound),
            varying=np.zeros_like(problem.varying),
        )
        work = _take(self.workspaces, problem.src, problem.size)
        vjp_extended(
            *(problem.src, problem.tab, *problem[3:], work),
            *(self.outcome, self.basis, np.array(gradient, dtype=np.float64)),
            *(found.yhat, found.bound, found.varying),
        )
        self.workspaces.append(work)
        return found


class ExtendedEngine:
    """Solves CNF and partial DNF of one model.

    Args:
        rules: the rule model; all columns have finite bounds.
    """

    def __init__(self, rules: Rules) -> None:
        self.data = rules.data
        self._sources = sources(rules.data)
        self._places: dict[Layout, int] = {}
        self._by_identity: dict[
            int, int
        ] = {}  # of the layouts in `_places`: hashing one takes long
        self._counts: list[tuple[int, int]] = []  # blocks and products of each
        self._writer = TableWriter()
        self._compiled = _Compiled(self._writer.tables(), largest([]), [])
        self._lock = threading.Lock()

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
        tolerance: float = TOLERANCES.satisfied,
    ) -> ExtendedSolved:
        """Optimal vertices of a batch.

        Args:
            instance: the rules for the batch.
            start: predictions clipped to the bounds, (B, d).
            weights: of the outputs, (d,).
            layout_of_sample: index into `layouts`, (B,).
            layouts: how the active rules are convexified.
            threads: or None to choose.
            detailed: report the final bases.
            tolerance: y satisfies a row if it does within this, as in `RuleModel.satisfied`.
        """
        number, compiled = self._compile(layouts)
        size = len(start)
        out = ExtendedOutput(
            y=np.empty((size, self.data.outputs)),
            value=np.empty(size),
            outcome=np.empty(size, dtype=np.int8),
            weight=np.empty((size, max((self._counts[k][1] for k in number), default=0))),
            product=np.empty(
                (size, max((self._counts[k][0] for k in number), default=0)), dtype=np.int32
            ),
        )
        basis = _new_basis(size if detailed else 0, compiled.size)
        problem = ExtendedProblem(
            *(self._sources, compiled.tables, compiled.size),
            np.array(number, dtype=np.int64)[layout_of_sample],
            *map(np.ascontiguousarray, (instance.bound, instance.varying, start, weights)),
        )
        arguments = (problem.src, problem.tab, *problem[3:])

        def work(span: tuple[int, int]) -> None:
            workspace = _take(compiled.workspaces, self._sources, compiled.size)
            run_extended(*span, *arguments, tolerance, workspace, out, basis)
            compiled.workspaces.append(workspace)

        if size <= FEW:
            work((0, size))
        else:
            in_threads(work, size, threads)
        return ExtendedSolved(*out, basis, problem, compiled.workspaces)

    def _compile(self, layouts: Sequence[Layout]) -> tuple[list[int], _Compiled]:
        """Places of layouts in the tables, which grow where one is new."""
        with self._lock:
            places = [self._by_identity.get(id(layout), -1) for layout in layouts]
            if -1 in places:
                before = len(self._places)
                extents = [self._compiled.size]
                for layout in layouts:
                    if layout not in self._places:
                        extents.append(extent(self.data, layout))
                        self._by_identity[id(layout)] = self._places[layout] = len(self._places)
                        self._counts.append((extents[-1].all_blocks, extents[-1].products))
                        self._writer.add(layout)
                places = [self._places[layout] for layout in layouts]
                if len(self._places) > before:
                    size = largest(extents)
                    # Memory that is in use goes back to where it came from, never to a larger size.
                    kept = self._compiled.workspaces if size == self._compiled.size else []
                    self._compiled = _Compiled(self._writer.tables(), size, kept)
            return places, self._compiled


class _Compiled(NamedTuple):
    """The layouts met so far, what they need at most, and memory of that size."""

    tables: Tables
    size: Extent
    workspaces: list[ExtendedWorkspace]


def _take(workspaces: list[ExtendedWorkspace], sources: Sources, size: Extent) -> ExtendedWorkspace:
    """Memory of the given size, used before or new; several threads may ask."""
    try:
        return workspaces.pop()
    except IndexError:
        return new_extended_workspace(sources, size)


def _new_basis(samples: int, size: Extent) -> Basis:
    return Basis(
        state=np.zeros((samples, size.products), dtype=np.int8),
        rank=np.zeros((samples, size.all_blocks), dtype=np.int32),
        size=np.zeros((samples, size.parts), dtype=np.int64),
        column=np.empty((samples, size.basis), dtype=np.int32),
        row=np.empty((samples, size.basis), dtype=np.int32),
        value=np.empty((samples, size.basis)),
    )
