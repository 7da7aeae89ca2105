"""How the exact engine searches."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np
import torch

from gdpnet.ir.tolerances import TOLERANCES

NODE_LIMIT = 100_000
"""Nodes of the search for a sample, where nobody takes over what it leaves open."""

_PATIENCE = 4e9  # operations, some tenths of a second
_EUCLIDEAN_PATIENCE = 1.6e10  # what takes over is asked several times
_SMALL = 64  # columns; of more the programs of MILP gain on those of the search


def patience_of(columns: int, norm: str = "l1") -> float:
    """Operations that a search is worth before MILP takes over, as measured on coupled rules."""
    if norm == "l2":
        return _EUCLIDEAN_PATIENCE
    return float(_PATIENCE * min(1.0, _SMALL / max(columns, 1)) ** 1.5)


MOST_COLUMNS = 1_000
"""Columns of a component from which on MILP is asked at once: the search's programs are dense."""

MOST_NODES = 2**40
"""Nodes of a search that its patience ends."""

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
        fine: rows hold to the last digits, in l1; what cannot be had is numerical trouble.
        norm: "l1" or "l2".
        price_unit: what prices are divided by, so that they are in units of what is minimised.
        patience: operations that the search is worth, where somebody else takes over: it ends early
            where it does not keep pace.
    """

    weights: np.ndarray
    tolerance: float = TOLERANCES.of(torch.float64)
    node_limit: int = NODE_LIMIT
    time_limit: float | None = None
    threads: int | None = None
    tie: str = "first"
    lost: float = 0.0
    fine: bool = False
    norm: str = "l1"
    price_unit: float = 1.0
    patience: float = inf

    @property
    def usual(self) -> bool:
        """Whether the search for a nearest point is all there is to do."""
        return self.tie == "first" and self.lost == 0.0 and not self.fine

    def sum_of(self, moves: np.ndarray) -> np.ndarray:
        """What is minimised, of weighted moves of the outputs: their sum, or that of squares.

        Args:
            moves: none of them negative, (B, k).
        """
        return (moves * moves if self.norm == "l2" else moves).sum(1)
