"""Rows of a mixed-integer program whose right side depends on the disjunct that is chosen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Envelopes:
    """Rows with an end for each disjunct of a choice.

    Attributes:
        choice: of each row.
        kind: where they stand among the rows of a choice.
        left: row, column and value of the entries on the left.
        end: the most that the left side can be, `rows`.
        pairs: row, disjunct and end, in order.
    """

    choice: Array
    kind: int
    left: tuple[Array, Array, Array]
    end: Array
    pairs: tuple[Array, Array, Array]

    def cutting(self, kept: Array) -> Array:
        """Which rows say something for a disjunct that is kept, bool."""
        pair, owner, ends = self.pairs
        least = np.full(len(self.end), np.inf)
        np.minimum.at(least, pair, np.where(kept[owner], ends, np.inf))
        return least < self.end
