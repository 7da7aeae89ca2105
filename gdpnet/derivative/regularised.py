"""What a regularised program leaves behind."""

from __future__ import annotations

from gdpnet.solve.base import Array, Linearisation


class Regularised(Linearisation):
    """The derivative of a regularised program, and its point.

    Attributes:
        y: the regularised point, (B, d); the prediction where there is none.
        missing: samples without a regularised point, (B,) bool.
    """

    y: Array

    @property
    def missing(self) -> Array:
        """Samples without a regularised point, (B,) bool."""
        raise NotImplementedError
