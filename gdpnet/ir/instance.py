"""The rules for a batch of inputs, as numpy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from gdpnet import core

if TYPE_CHECKING:
    from gdpnet.ir.rules import Rules
    from gdpnet.ir.table import RowTable
    from gdpnet.ir.tape import Instructions


Array = np.ndarray


class Instance(NamedTuple):
    """The rules for a batch of inputs, as numpy arrays.

    Attributes:
        active: which clauses apply, (B, clauses) bool.
        bound: right sides, (B, m).
        varying: coefficients that depend on x, (B, k, n).
        price: of the booleans that have one, (B, priced); 0 where their rule does not apply.
        finite: whether all of them are known to be finite numbers, and no price negative.
    """

    active: Array
    bound: Array
    varying: Array
    price: Array
    finite: bool = False

    @staticmethod
    def of(rules: Rules, x: Array) -> Instance:
        """The rules at x: by the core where it can express them, else by torch.

        Args:
            rules: the rules.
            x: inputs, (B, p) float64, contiguous.
        """
        if core.AVAILABLE:
            tape = rules.cache[RuleTape.of]
            if tape is not None:
                size = len(x)
                active = np.empty((size, tape.clauses), dtype=np.bool_)
                bound = np.empty((size, tape.rows))
                varying = np.empty((size, tape.varying, tape.columns))
                price = np.empty((size, tape.priced))
                finite = tape.native.instantiate(x, active, bound, varying, price)
                return Instance(active, bound, varying, price, finite)
        evaluated = rules.evaluate(torch.from_numpy(x))
        return Instance(
            active=np.ascontiguousarray(evaluated.clauses.numpy()),
            # Copies: what does not depend on x is a view of the rules' own table.
            bound=evaluated.rows.bound.numpy().copy(),
            varying=evaluated.rows.coefficients.numpy().copy(),
            price=evaluated.prices.numpy().copy(),
        )

    def take(self, samples: Array) -> Instance:
        """The rules for some of the samples."""
        return Instance(
            self.active[samples], self.bound[samples], self.varying[samples], self.price[samples]
        )

    def scale(self, table: RowTable) -> Array:
        """`max(1, |b|, max|a|)` of each row, (B, m): what tolerances are relative to.

        Args:
            table: of the same rules.
        """
        scale = np.maximum(np.abs(self.bound), np.maximum(table.entries.largest, 1.0))
        varying = table.varying.numpy()
        if len(varying):
            own = np.abs(self.varying).max(2, initial=1.0)
            scale[:, varying] = np.maximum(np.abs(self.bound[:, varying]), own)
        return scale

    def unusable(self) -> Array:
        """Samples with a coefficient or a price that cannot be used, (B,) bool."""
        bad = ~np.isfinite(self.bound).all(1)
        bad |= ~(np.isfinite(self.price) & (self.price >= 0.0)).all(1)
        if self.varying.shape[1]:
            bad |= ~np.isfinite(self.varying).all(axis=(1, 2))
        return np.asarray(bad)


class RuleTape:
    """The instructions of rules, as the core takes them.

    Args:
        instructions: for columns, rows and clauses.
    """

    def __init__(self, instructions: Instructions) -> None:
        self.native = core.Tape(*instructions)
        self.clauses = len(instructions.clause_start) - 1
        self.rows = len(instructions.bound)
        self.priced = len(instructions.price)
        self.varying, self.columns = instructions.varying.shape

    @staticmethod
    def of(rules: Rules) -> RuleTape | None:
        """That of rules, or None where there are no instructions for them."""
        from gdpnet.ir.tape import compile_tape

        instructions = compile_tape(rules.data)
        return None if instructions is None else RuleTape(instructions)
