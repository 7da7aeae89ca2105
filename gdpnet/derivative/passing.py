"""Linearisations that ask no solver: the identity, and what is mixed of others."""

from __future__ import annotations

from typing import Any

import numpy as np

from gdpnet.ir.rules import Rules
from gdpnet.solve.base import Array, Gradients, Linearisation


class Identity(Linearisation):
    """Gradients pass as they are, or inwards only.

    Args:
        rules: the rules.
        beyond: prediction less output, (B, d): a gradient that would drive the prediction further
            away is dropped; None where all of it passes.
    """

    complete = True

    def __init__(self, rules: Rules, beyond: Array | None) -> None:
        self._rules = rules
        self._beyond = beyond

    def vjp(self, gradient: Array) -> Gradients:
        """The gradient, or what of it leads inwards."""
        return Gradients.passing(self._rules, self.vjp_yhat(gradient))

    def vjp_yhat(self, gradient: Array) -> Array:
        """The same, of the predictions alone."""
        if self._beyond is None:
            return gradient.copy()
        return np.where(self._beyond * gradient < 0.0, 0.0, gradient)

    def decided(self, gradient: Array) -> Linearisation:
        """The same with the signs of another gradient."""
        if self._beyond is None:
            return self
        return _Masked(self._rules, self._beyond * gradient < 0.0)


class _Masked(Linearisation):
    complete = True

    def __init__(self, rules: Rules, dropped: Array) -> None:
        self._rules, self._dropped = rules, dropped

    def vjp(self, gradient: Array) -> Gradients:
        return Gradients.passing(self._rules, np.where(self._dropped, 0.0, gradient))


class WeightedSum(Linearisation):
    """`alpha` times one linearisation and `1 - alpha` times another."""

    def __init__(self, first: Linearisation, second: Linearisation, alpha: float) -> None:
        self._first, self._second, self._alpha = first, second, alpha
        self.complete = first.complete and second.complete

    @property
    def known(self) -> Array | bool:  # type: ignore[override]
        """Samples of which both know the derivative."""
        return self._first.known & self._second.known

    @property
    def capped(self) -> Array | None:  # type: ignore[override]
        """Samples of which one is not that of the whole program."""
        first = self._first.capped
        return self._second.capped if first is None else first

    def vjp(self, gradient: Array) -> Gradients:
        """The weighted mean."""
        pairs = zip(self._first.vjp(gradient), self._second.vjp(gradient), strict=True)
        return Gradients(*(self._mean(a, b) for a, b in pairs))

    def vjp_yhat(self, gradient: Array) -> Array:
        """The same, of the predictions alone."""
        first, second = self._first.vjp_yhat(gradient), self._second.vjp_yhat(gradient)
        return np.asarray(self._mean(first, second))

    def _mean(self, first: Any, second: Any) -> Any:
        """The weighted mean; what is None is 0."""
        if first is None:
            return None if second is None else (1 - self._alpha) * second
        return self._alpha * first + (0.0 if second is None else (1 - self._alpha) * second)

    def decided(self, gradient: Array) -> Linearisation:
        """The weighted mean of what they become."""
        first, second = self._first.decided(gradient), self._second.decided(gradient)
        return WeightedSum(first, second, self._alpha)
