"""What solvers hand to `project`: plain arrays over a flat batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from gdpnet.rules.model import RuleModel
from gdpnet.solve.status import Status

if TYPE_CHECKING:
    from gdpnet.solve.exact._engine import Instance, Solved

Array = np.ndarray

NODE_LIMIT = 100_000
"""Nodes of the exact engine for a sample before MILP takes over."""

ANSWERED = (Status.SATISFIED, Status.PROJECTED, Status.LIMIT)
"""Statuses of outputs that satisfy the rules."""

SOLVER_NAMES = ("none", "exact", "milp", "milp:gurobi", "extended", "highs", "gurobi")
"""Solvers by the code they have in `Results.solver`."""


class Options(NamedTuple):
    """How to solve.

    Attributes:
        weights: (d,).
        tolerance: predictions that satisfy everything within it pass unchanged.
        node_limit: nodes of the exact engine for a sample.
        time_limit: seconds for a sample, or None.
        threads: or None to choose.
        nearest: where rules contradict, break them as little as possible.
        tie: "first" or "least_norm".
        lost: what adding up a row may lose of its terms beside large predictions, relative.
        detailed: keep the exact engine's final dictionaries, for derivatives.
        dtype: type of the caller's predictions.
    """

    weights: Array
    tolerance: float = 1e-9
    node_limit: int = NODE_LIMIT
    time_limit: float | None = None
    threads: int | None = None
    nearest: bool = False
    tie: str = "first"
    lost: float = 0.0
    detailed: bool = False
    dtype: torch.dtype = torch.float64


@dataclass(slots=True)
class Results:
    """Results of a flat batch.

    Attributes:
        y: (B, d).
        status: (B,) int8.
        value: proved lower bound on the distance, (B,).
        nodes: (B,).
        assignment: of the booleans: 1 true, -1 false, 0 not asked for, (B, booleans) int8.
        active: which rules apply, (B, rules) bool.
        solver: index into `SOLVER_NAMES`, (B,) int8.
        missing: no point was found, (B,) bool.
        unit: the heaviest weight, which solvers count distances in.
        rounds: basic steps taken for each sample, (B,), where they were adaptive.
        layout: number of the relaxation that was written out for each sample, (B,); -1 where none
            was needed, None where the solver writes none.
        unpruned: samples outside input_bounds, whose products were all kept, (B,) bool.
        least_norm: where the tie is settled for certain, (B,) bool, where that was asked for.
        strict: which samples hold without tolerance, (B,) bool, where that was asked for.
        rounding: scaled violation of what no number of the caller's type satisfies, else 0, (B,);
            None where there is none.
        unmendable: where nothing can be had by breaking rules, (B,) bool, where that was asked for.
        instance: the rules of the batch, where they were evaluated; behind them may stand rows and
            columns that relaxations need.
        solved: the exact engine's own results.
        replay: the same with final dictionaries, by solving again.
        plain: the exact engine finished all samples, and accepted predictions before any search,
            so that its dictionaries tell of all of them.
        unfinished: samples that the exact engine left to another solver, (B,) bool.
        derivative: of a relaxation's vertices, where that was asked for.
        points: vertices that MILP found, auxiliaries included, (B, n), NaN elsewhere; None where
            it found none.
    """

    y: Array
    status: Array
    value: Array
    nodes: Array
    assignment: Array
    active: Array
    solver: Array
    missing: Array
    unit: float = 1.0
    rounds: Array | None = None
    layout: Array | None = None
    unpruned: Array | None = None
    least_norm: Array | None = None
    strict: Array | None = None
    rounding: Array | None = None
    unmendable: Array | None = None
    instance: Instance | None = None
    solved: Solved | None = field(default=None, repr=False)
    replay: Callable[[], Solved] | None = field(default=None, repr=False)
    plain: bool = False
    unfinished: Array | bool = False
    derivative: Any = field(default=None, repr=False)
    points: Array | None = field(default=None, repr=False)

    @property
    def unusable(self) -> Array:
        """Samples that could not be used at all, (B,) bool."""
        error = self.status == Status.ERROR
        return error if self.rounding is None else error & (self.rounding == 0.0)

    @property
    def answered(self) -> Array:
        """Samples whose y satisfies the rules, (B,) bool."""
        return np.isin(self.status, ANSWERED) & ~self.missing

    def columns(self) -> Array | None:
        """Outputs and auxiliaries that solvers found, (B, n), NaN where they found none."""
        if self.solved is None or self.points is None:
            return self.points if self.solved is None else self.solved.z
        return np.where(np.isnan(self.points), self.solved.z, self.points)

    @staticmethod
    def start(rules: RuleModel, yhat: Array, active: Array) -> Results:
        """Every prediction passed unchanged."""
        size = len(yhat)
        return Results(
            y=yhat.copy(),
            status=np.full(size, Status.SATISFIED, dtype=np.int8),
            value=np.zeros(size),
            nodes=np.zeros(size, dtype=np.int64),
            assignment=np.zeros((size, len(rules.data.booleans)), dtype=np.int8),
            active=active,
            solver=np.zeros(size, dtype=np.int8),
            missing=np.zeros(size, dtype=bool),
        )

    def keep_point(self, index: int, point: Array) -> None:
        """Remember a vertex that MILP found, (n,)."""
        if self.points is None:
            self.points = np.full((len(self.y), len(point)), np.nan)
        self.points[index] = point

    def dictionaries(self) -> Solved | None:
        """The exact engine's results with its final dictionaries; None where it did not run."""
        if self.solved is None or self.solved.detailed or self.replay is None:
            return self.solved
        return self.replay()

    def tight(self, rules: RuleModel) -> tuple[Array, Array]:
        """Tight rows and their multipliers, each (B, 2 n); -1 and 0 where there are fewer.

        A row with a single variable acts as a bound in the engine; its multiplier is the reduced
        cost of that variable divided by its coefficient.
        """
        size = len(self.y)
        if not self.solved or not self.solved.parts or not self.instance:
            return np.full((size, 0), -1, dtype=np.int64), np.zeros((size, 0))
        d = self.y.shape[1]
        known = (self.status == Status.PROJECTED) & (self.solver == SOLVER_NAMES.index("exact"))
        known &= (self.y == self.solved.z[:, :d]).all(1)  # not moved since, by strict or a tie
        shared = rules.table.shared.numpy()
        varying = {row: k for k, row in enumerate(rules.table.varying.tolist())}
        rows, multipliers = [], []
        solved = self.dictionaries() or self.solved
        for component, detail in solved.parts:
            rows.append(np.where(detail.tight_rows >= 0, component.rows[detail.tight_rows], -1))
            multipliers.append(detail.multipliers)
            moved = (detail.column_source >= 0) & (detail.reduced_costs != 0.0)
            source = np.where(moved, component.rows[detail.column_source], -1)
            a = shared[source, component.columns]
            for s, j in zip(*np.nonzero(np.isin(source, list(varying)) & moved), strict=True):
                a[s, j] = self.instance.varying[s, varying[int(source[s, j])], component.columns[j]]
            rows.append(source)
            multipliers.append(
                np.divide(-detail.reduced_costs, a, where=moved, out=np.zeros(a.shape))
            )
        found = np.where(known[:, None], np.concatenate(rows, 1), -1)
        rates = np.where(found >= 0, np.concatenate(multipliers, 1), 0.0) * self.unit
        order = np.argsort(found < 0, axis=1, kind="stable")
        return np.take_along_axis(found, order, 1), np.take_along_axis(rates, order, 1)

    def disjunct(self, rules: RuleModel) -> Array:
        """Index in the source Disjunction of the disjunct that holds, (B, rules); else -1."""
        chosen = np.full((len(self.y), len(rules.names)), -1, dtype=np.int64)
        answered = ~(self.missing | self.unusable)
        for r, rule in enumerate(rules.data.rules):
            columns = [k - 1 for k in rules.data.clauses[rule.clause].literals]
            true = self.assignment[:, columns] == 1
            first = np.asarray(rule.positions)[true.argmax(1)]
            known = answered & self.active[:, r] & true.any(1)
            chosen[:, r] = np.where(known, first, -1)
        return chosen
