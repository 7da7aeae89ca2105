"""The extended engine of one rule model: layouts compiled once, batches solved in threads."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gdpnet import core
from gdpnet.core import Array
from gdpnet.ir.instance import Instance
from gdpnet.ir.rules import Rules
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.relaxation.blocks import Layout
from gdpnet.solve.base import Gradients
from gdpnet.solve.extended.tables import Extent, TableWriter, extent, largest, sources
from gdpnet.threads import FEW, workers_of

# Above this many columns HiGHS, with its sparse factors, is ahead of a dense tableau, where it gets
# the compact form of the program: both take 30 ms a sample at 670 to 860 columns.
_MOST_COLUMNS = 700


class ExtendedProblem(NamedTuple):
    """What was solved.

    Attributes:
        layout: each sample's layout, its place in the tables, (B,).
        bound: right sides, (B, m).
        varying: coefficients that depend on x, (B, k, n).
        start: predictions within the bounds, (B, d).
        weights: (d,).
        price: of the products of the sample's layout, (B, products), or (B, 0) where none has one.
    """

    layout: Array
    bound: Array
    varying: Array
    start: Array
    weights: Array
    price: Array


class Basis(NamedTuple):
    """The final basis of each sample; arrays of length 0 where nobody asked for it.

    The bases of a sample's parts stand one behind the other.

    Attributes:
        state: what the products are in the final program, (B, products) int8.
        rank: places of the blocks in the final program, 0 for those it has not, (B, blocks) int32.
        size: columns that are not 0, by part, (B, parts).
        column: those columns of the program, (B, basis) int32.
        row: as many tight rows of the program, (B, basis) int32.
        value: values of those columns, (B, basis).
    """

    state: Array
    rank: Array
    size: Array
    column: Array
    row: Array
    value: Array


@dataclass(frozen=True)
class ExtendedSolved:
    """Results of a batch.

    Attributes:
        y: the vertex, NaN where there is none, (B, d).
        value: weighted l1 value of the program relative to the start, inf where there is no
            point, of what failed a lower bound, (B,).
        outcome: 0 solved, 1 infeasible, 2 failed, (B,) int8.
        weight: weights of the products of the sample's layout, in the layout's order and 0 beyond
            their number, (B, products).
        product: the first product of each block of the sample's layout that y satisfies (with the
            auxiliaries that were found), -1 where there is none, NO_BLOCK beyond the number of
            blocks, (B, blocks) int32.
        basis: the final bases (empty arrays where not asked for).
        problem: what was solved.
        native: who solved it.
        threads: in which it was solved, or None.
    """

    y: Array
    value: Array
    outcome: Array
    weight: Array
    product: Array
    basis: Basis
    problem: ExtendedProblem
    native: core.Extended
    threads: int | None

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
        self.native.vjp(
            *(*problem, workers_of(self.threads), self.threads is not None),
            *(self.outcome, *self.basis, np.array(gradient, dtype=np.float64)),
            *(found.yhat, found.bound, found.varying),
        )
        return found


class ExtendedEngine:
    """Solves CNF and partial DNF of one model.

    Args:
        rules: the rule model; all columns have finite bounds.
    """

    def __init__(self, rules: Rules) -> None:
        self.data = rules.data
        self._sources = core.ExtendedSources(**sources(rules.data)._asdict())
        self._places: dict[Layout, int] = {}
        # Of the layouts in `_places`: hashing one takes long.
        self._by_identity: dict[int, int] = {}
        self._counts: list[tuple[int, int]] = []  # blocks and products of each
        self._writer = TableWriter()
        self._compiled = self._compile_tables(largest([]))
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
        price: Array | None = None,
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
            price: of the products of the sample's layout, at least as many as there are, (B, ...);
                None where none has one.
        """
        number, compiled = self._compile(layouts)
        size = len(start)
        blocks = max((self._counts[k][0] for k in number), default=0)
        products = max((self._counts[k][1] for k in number), default=0)
        found = (
            np.empty((size, self.data.outputs)),
            np.empty(size),
            np.empty(size, dtype=np.int8),
            np.empty((size, products)),
            np.empty((size, blocks), dtype=np.int32),
        )
        basis = _new_basis(size, compiled.size) if detailed else _NO_BASIS
        problem = ExtendedProblem(
            np.array(number, dtype=np.int64)[layout_of_sample],
            np.ascontiguousarray(instance.bound),
            np.ascontiguousarray(instance.varying),
            np.ascontiguousarray(start),
            np.ascontiguousarray(weights),
            np.zeros((size, 0)) if price is None else np.ascontiguousarray(price[:, :products]),
        )
        compiled.native.solve(
            *(*problem, tolerance, 1 if size <= FEW else workers_of(threads), threads is not None),
            *(*found, *basis),
        )
        return ExtendedSolved(*found, basis, problem, compiled.native, threads)

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
                    self._compiled = self._compile_tables(size)
            return places, self._compiled

    def _compile_tables(self, size: Extent) -> _Compiled:
        tables = core.ExtendedTables(**self._writer.tables()._asdict())
        return _Compiled(core.Extended(self._sources, tables, *size[:5]), size)


class _Compiled(NamedTuple):
    """The layouts met so far, and what they need at most."""

    native: core.Extended
    size: Extent


def _new_basis(samples: int, size: Extent) -> Basis:
    return Basis(
        state=np.zeros((samples, size.products), dtype=np.int8),
        rank=np.zeros((samples, size.all_blocks), dtype=np.int32),
        size=np.zeros((samples, size.parts), dtype=np.int64),
        column=np.empty((samples, size.basis), dtype=np.int32),
        row=np.empty((samples, size.basis), dtype=np.int32),
        value=np.empty((samples, size.basis)),
    )


_NO_BASIS = _new_basis(0, largest([]))
