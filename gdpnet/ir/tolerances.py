"""What counts as equal: every tolerance that more than one room goes by.

| what | size | relative to |
|---|---|---|
| `satisfied` | 1e-6 | max(1, abs(b), max abs(a)) of a row |
| `of(dtype)` | 1e-9 in float64, 1e-6 in float32, 2e-3 in float16, 2e-2 in bfloat16 | the same |
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch


def _by_type() -> dict[torch.dtype, float]:
    # What rounding in the caller's type leaves of an equality: a float32 softmax misses its sum
    # by 1e-7.
    return {
        torch.float64: 1e-9,
        torch.float32: 1e-6,
        torch.float16: 2e-3,
        torch.bfloat16: 2e-2,
    }


@dataclass(frozen=True)
class Tolerances:
    """Tolerances, scaled by the size of a row.

    Attributes:
        satisfied: a point satisfies a rule within this.
        by_type: a prediction of a type that satisfies everything within this passes unchanged, and
            what is returned in that type holds within it.
    """

    satisfied: float = 1e-6
    by_type: dict[torch.dtype, float] = field(default_factory=_by_type)

    def of(self, dtype: torch.dtype) -> float:
        """The tolerance of a type of predictions."""
        return self.by_type.get(dtype, self.satisfied)


TOLERANCES = Tolerances()
