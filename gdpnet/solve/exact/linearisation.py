"""The derivative of what the exact engine found, from its own final dictionaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gdpnet import core
from gdpnet.ir.instance import Instance
from gdpnet.ir.rules import Rules
from gdpnet.solve.base import Answer, Array, Gradients, Linearisation
from gdpnet.solve.exact.options import SearchOptions
from gdpnet.solve.status import Status

if TYPE_CHECKING:
    from gdpnet.solve.exact.engine import ExactEngine, Solved
    from gdpnet.solve.milp.jacobian import ActiveJacobian


class ExactLinearisation(Linearisation):
    """The derivative of a batch that the exact engine projected.

    Args:
        engine: the engine.
        yhat: predictions, (B, d).
        search: how it was searched.
        found: what the engine found in one call, and the points, (B, n); or
        solved: the rules of the batch and what was found.

    Attributes:
        instance: the rules of the batch.
        solved: what was found.
        unfinished: samples that were left to another solver, (B,) bool; None where there are none.
        others: the derivative of those.
    """

    instance: Instance
    solved: Solved

    def __init__(
        self,
        engine: ExactEngine,
        yhat: Array,
        search: SearchOptions,
        *,
        found: tuple[core.Found, Array] | None = None,
        solved: tuple[Instance, Solved] | None = None,
    ) -> None:
        self.engine, self.yhat, self.search, self.found = engine, yhat, search, found
        self.unfinished: Array | None = None
        self.others: ActiveJacobian | None = None
        if solved is not None:
            self.instance, self.solved = solved

    def __getattr__(self, name: str) -> Any:
        # Arrays are made of what was found when they are first asked for.
        if name not in ("instance", "solved") or self.found is None:
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        self.instance, self.solved = self.engine.shown(*self.found)
        return self.__dict__[name]

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"instance": self.instance, "solved": self.solved, "found": None}

    @property
    def complete(self) -> bool:  # type: ignore[override]
        """Whether dictionaries tell of all samples, since predictions passed before any search."""
        return self.engine.plain and self.unfinished is None

    @property
    def finished(self) -> Array | bool:
        """Samples that the engine finished, (B,) bool, or True for all of them."""
        return True if self.unfinished is None else ~self.unfinished

    @property
    def known(self) -> Array | bool:  # type: ignore[override]
        """Samples whose derivative it has, (B,) bool, or True for all of them."""
        if self.others is None or isinstance(self.finished, bool):
            return self.finished
        return self.finished | self.others.answered

    @property
    def capped(self) -> Array | None:  # type: ignore[override]
        """Samples of another solver that nothing determines, (B,) bool."""
        return None if self.others is None else self.others.capped

    def dictionaries(self) -> Solved:
        """What was found, with the final dictionaries; searched again where they were not kept."""
        if self.solved.detailed or self.search.norm == "l2":  # whose derivative needs none
            return self.solved
        return self.engine.project(self.instance, self.yhat, self.search, detailed=True)

    def vjp(self, gradient: Array) -> Gradients:
        """Gradients of a loss from its gradient with respect to y, (B, d)."""
        if self.found is not None and self.found[0].detailed and self.others is None:
            return self.engine.vjp(*self.found, gradient)
        jacobian = self.engine.jacobian(self.instance, self.dictionaries(), self.yhat, self.search)
        found = jacobian.vjp(gradient)
        if self.others is not None:
            self.others.replace(found, gradient)
        return found

    def vjp_yhat(self, gradient: Array) -> Array:
        """That of the predictions alone, (B, d)."""
        found = self.found
        if found is not None and found[0].detailed and self.others is None:
            return self.engine.vjp_yhat(*found, gradient)
        return super().vjp_yhat(gradient)

    def tight(self, rules: Rules, answer: Answer) -> tuple[Array, Array]:
        """Tight rows and their multipliers, each (B, 2 n); -1 and 0 where there are fewer.

        A row with a single variable acts as a bound in the engine; its multiplier is the reduced
        cost of that variable divided by its coefficient.

        Args:
            rules: the rules.
            answer: as it is returned.
        """
        size, d = answer.y.shape
        if not (self.solved.parts and rules.data.rows):
            return np.full((size, 0), -1, dtype=np.int64), np.zeros((size, 0))
        known = (answer.status == Status.PROJECTED) & answer.finished_by("exact")
        known &= (answer.y == self.solved.z[:, :d]).all(1)  # not moved since, by strict or a tie
        if self.search.norm == "l2" or rules.data.curved:
            from gdpnet.solve.exact.prices import prices  # which needs the core

            return prices(rules, self.instance, self.solved, self.yhat, self.search, known)
        shared = rules.table.shared.numpy()
        varying = {row: k for k, row in enumerate(rules.table.varying.tolist())}
        rows, multipliers = [], []
        for component, detail in self.dictionaries().parts:
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
        rates = np.where(found >= 0, np.concatenate(multipliers, 1), 0.0)
        order = np.argsort(found < 0, axis=1, kind="stable")
        return np.take_along_axis(found, order, 1), np.take_along_axis(rates, order, 1)
