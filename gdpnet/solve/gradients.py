"""Gradients of a loss with respect to what a projection depends on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Gradients(NamedTuple):
    """Gradients of a scalar loss.

    Attributes:
        yhat: (B, d).
        bound: with respect to the right sides of the rows, (B, m).
        varying: with respect to the coefficients that depend on x, (B, k, n).
    """

    yhat: np.ndarray
    bound: np.ndarray
    varying: np.ndarray
