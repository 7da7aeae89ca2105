"""The layouts of one rule model, made when first met and kept."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from gdpnet.ir.rules import Rules
from gdpnet.relaxation.blocks import (
    Layout,
    box,
    contradictory,
    hanging_together,
    layout,
    moving_bounds,
    payers,
)
from gdpnet.relaxation.compact import CompactProgram, is_compact
from gdpnet.relaxation.feasibility import FeasibilityCheck
from gdpnet.relaxation.plan import Plan
from gdpnet.relaxation.program import RelaxationProgram, Sizes, complete
from gdpnet.relaxation.relaxable import relaxable
from gdpnet.relaxation.sparse import SparseProgram

Array = np.ndarray
Clusters = tuple[tuple[int, ...], ...]


def distinct(values: Array) -> tuple[Array, Array]:
    """Where each different value stands first, and which of these every value is.

    Args:
        values: (n,), or rows (n, k).
    """
    if len(values) and (values == values[0]).all():  # sorting is the slow way to see that
        return np.zeros(1, dtype=np.int64), np.zeros(len(values), dtype=np.int64)
    rows = None if values.ndim == 1 else 0
    _, first, which = np.unique(values, axis=rows, return_index=True, return_inverse=True)
    return first, which.ravel()


class Layouts:
    """Layouts by pattern of active clauses and by clusters, numbered in the order they were met.

    Args:
        rules: the rules.

    Attributes:
        ready: the rules as the hull reads them.
        listed: all layouts so far.
        clusters: clusters of each.
        contradictory: whether propositions, or rows whatever the inputs, leave nothing of each.
        small: whether the dense engine takes each, as far as it was asked.
    """

    def __init__(self, rules: Rules) -> None:
        self.ready = relaxable(rules)
        self.listed: list[Layout] = []
        self.clusters: list[Clusters] = []
        self.contradictory: list[bool] = []
        self.small: dict[int, bool] = {}
        self._data = self.ready.rules.data
        self._number: dict[tuple[bytes, Clusters, bool], int] = {}
        self._planned: dict[tuple[bytes, Plan | None, bool], int] = {}
        self._programs: dict[tuple[int, str], RelaxationProgram] = {}
        self._payers: dict[int, Array] = {}
        self._fixed_box = None if moving_bounds(self._data) else box(self._data, np.empty((1, 0)))
        self._input_range = np.array(self._data.input_bounds, dtype=float).reshape(-1, 2).T
        self._conditional = np.array(
            [k for k, c in enumerate(self._data.clauses) if c.conditions], dtype=np.int64
        )
        self._feasibility: FeasibilityCheck | None = None
        self._lock = threading.Lock()

    def box(self, bound: Array) -> tuple[Array, Array]:
        """Bounds of the outputs for a batch, each `batch x d`, or `1 x d` where all have the same.

        Args:
            bound: right sides of the rows, `batch x rows`.
        """
        return box(self._data, bound) if self._fixed_box is None else self._fixed_box

    def within_input_bounds(self, x: Array) -> Array:
        """Samples whose inputs are within `input_bounds`, bool `batch`."""
        low, high = self._input_range
        return np.asarray(((x >= low) & (x <= high)).all(1))

    def patterns(self, active: Array, pruned: Array) -> tuple[Array, Array]:
        """First sample, and samples, of every pattern of active clauses.

        Args:
            active: which clauses apply, bool `batch x clauses`.
            pruned: whether empty products are left out, bool `batch`.

        Returns:
            Index of a sample with each pattern; number of the pattern of each sample, `batch`.
        """
        bits = np.column_stack([active[:, self._conditional], pruned])
        words = np.zeros((len(bits), -(-bits.shape[1] // 64) * 8), dtype=np.uint8)
        packed = np.packbits(bits, axis=1)
        words[:, : packed.shape[1]] = packed
        codes = words.view(np.uint64)
        return distinct(codes[:, 0] if codes.shape[1] == 1 else codes)

    def planned(self, plan: Plan | None, active: Array, pruned: bool) -> int:
        """Number of the layout of a plan, or of the DNF where there is none.

        Args:
            plan: clusters to merge, None to merge all that hangs together.
            active: which clauses apply, bool `clauses`.
            pruned: leave products out that are empty for all inputs within their ranges.
        """
        key = (active.tobytes(), plan, pruned)
        if key not in self._planned:
            on = active.tolist()
            chosen = [on[rule.clause] for rule in self._data.rules]
            if plan is None:
                every = [r for r, applies in enumerate(chosen) if applies]
                clusters = hanging_together(self._data, every, on, self.ready.logic)
            else:
                clusters = plan.active(self.ready.rules, chosen)
            self._planned[key] = self.number(clusters, active, pruned)
        return self._planned[key]

    def number(self, clusters: Sequence[Sequence[int]], active: Array, pruned: bool) -> int:
        """Number of the layout of clusters of active rules; arguments as in `planned`."""
        ordered = tuple(tuple(c) for c in clusters)
        key = (active.tobytes(), ordered, pruned)
        with self._lock:
            if key not in self._number:
                feasibility = self._emptiness() if pruned else None
                made = layout(self._data, ordered, active.tolist(), self.ready.logic, feasibility)
                self.listed.append(made)
                self.clusters.append(ordered)
                self.contradictory.append(contradictory(made))
                self._number[key] = len(self.listed) - 1
        return self._number[key]

    def program(self, number: int, norm: str = "l1") -> RelaxationProgram:
        """The program of a layout."""
        if (number, norm) not in self._programs:
            self._programs[number, norm] = RelaxationProgram(self._data, self.listed[number], norm)
        return self._programs[number, norm]

    def prices(self, number: int, price: Array) -> tuple[Array, Array]:
        """What the products of a layout cost, `batch x products`, and who pays (`payers`).

        Args:
            number: of the layout.
            price: of the booleans that have one, `batch x priced`.
        """
        if number not in self._payers:
            self._payers[number] = payers(self._data, self.listed[number])
        return np.asarray(price @ self._payers[number]), self._payers[number]

    def compact(self, number: int) -> SparseProgram:
        """A smaller program with the same optimal value, where there is one."""
        if not is_compact(self._data):
            return self.program(number)
        return CompactProgram(self._data, self.listed[number])

    def sizes(self, number: int, norm: str = "l1") -> Sizes:
        """How large the relaxation of a layout is, as the Pyomo chain writes it."""
        whole = complete(self._data, self.listed[number])
        return RelaxationProgram(self._data, whole, norm).sizes()

    def _emptiness(self) -> FeasibilityCheck | None:
        if self._feasibility is None:
            self._feasibility = FeasibilityCheck(self._data, self._data.input_bounds)
        # Globals that leave nothing are not the fault of the products.
        return None if self._feasibility.empty else self._feasibility


def layouts_of(rules: Rules) -> Layouts:
    """The layouts of a rule model, kept as long as the rules are."""
    return rules.cache[Layouts]
