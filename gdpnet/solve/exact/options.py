"""How the exact engine searches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from gdpnet.ir.tolerances import TOLERANCES

NODE_LIMIT = 100_000
"""Nodes of the search for a sample before MILP takes over."""

LOST = 1e-15
"""What adding up a row loses of its terms, relative."""


class SearchOptions(NamedTuple):
    """Limits are for each sample and connected component.

    Attributes:
        weights: of the outputs, (d,).
        tolerance: predictions that satisfy everything within it pass unchanged.
        node_limit: nodes.
        time_limit: seconds, or None.
        threads: or None to choose.
        tie: "first" or "least_norm".
        lost: what adding up a row may lose of its terms beside large predictions, relative.
    """

    weights: np.ndarray
    tolerance: float = TOLERANCES.of(torch.float64)
    node_limit: int = NODE_LIMIT
    time_limit: float | None = None
    threads: int | None = None
    tie: str = "first"
    lost: float = 0.0
