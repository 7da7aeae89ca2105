"""The derivative of the vertex where there is none of the regularised program."""

from __future__ import annotations

import warnings

import numpy as np

from gdpnet.derivative.regularised import Regularised
from gdpnet.errors import WorkLimitWarning
from gdpnet.ir.rules import Rules
from gdpnet.solve.base import Array, Gradients, Linearisation


class VertexInstead(Regularised):
    """A regularised program, or the vertex where it was not solved.

    Args:
        rules: the rules.
        regularised: what was solved; None for nothing.
        vertex: the derivative of the projections.
        y: the projections, (B, d).
        finished: samples that the regularised program knows, (B,) bool.
    """

    def __init__(
        self,
        rules: Rules,
        regularised: Regularised | None,
        vertex: Linearisation,
        y: Array,
        finished: Array,
    ) -> None:
        self._regularised, self._vertex = regularised, vertex
        there = np.broadcast_to(vertex.known, len(y))
        open_ones = ~finished if regularised is None else finished & regularised.missing
        self._instead = np.asarray(open_ones & there)
        self.y = y if regularised is None else np.where(self.missing[:, None], y, regularised.y)
        self.known: Array = np.asarray(finished | self._instead)
        before = None if regularised is None else regularised.capped
        self.capped: Array = self._instead | (False if before is None else before)
        if self._instead.any():
            _tell(rules, int(self._instead.sum()), len(y))

    @property
    def missing(self) -> Array:
        """Samples without a regularised point, (B,) bool."""
        if self._regularised is None:
            return np.ones(len(self._instead), dtype=bool)
        return self._regularised.missing | self._instead

    def vjp(self, gradient: Array) -> Gradients:
        """Gradients of a loss from its gradient with respect to y, (B, d)."""
        vertex = self._vertex.vjp(gradient)
        if self._regularised is None:
            return vertex
        found = self._regularised.vjp(gradient)
        for own, other in zip(found[:3], vertex[:3], strict=True):
            own[self._instead] = other[self._instead]
        return found


def _tell(rules: Rules, count: int, size: int) -> None:
    told = rules.cache[_told]
    if not told:
        told.append(True)
        warnings.warn(
            f"gradient: the program of QP was not solved for {count} of {size} samples, whose "
            "gradient is that of 'vertex' (info.capped tells which): it takes more work than it is "
            "given, or the rules are too large for it. Use gradient='vertex' or 'auto' for rules "
            "of this size. This is told once for these rules.",
            WorkLimitWarning,
            stacklevel=2,
        )


def _told(_: Rules) -> list[bool]:
    """Whether somebody was told; empty where nobody was."""
    return []
