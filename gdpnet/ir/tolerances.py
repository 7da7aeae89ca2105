"""What counts as equal: every tolerance that more than one room goes by.

The size of a row is `max(1, |b|, max|a|)`; its own size `max(|b|, max|a|)`.

| what | size | relative to | who goes by it |
|---|---|---|---|
| `satisfied` | 1e-6 | size | `satisfied`, statuses of relaxations, metrics, pictures, studies |
| | | own size | `certify`, `verify` |
| `of(dtype)` | 1e-9 in float64, ... | own size | `project`: which predictions pass unchanged |
| | | size | what `project` and `explain` return, values of auxiliaries |
| `holds` | 1e-9 | own size | points that a search found: branching, checked MILP answers, kernels |
| `integer` | 1e-9 | 1 | bounds of integer Vars, counts of steps, branching, rounded outputs |
| `equal` | 1e-9 | 1, or the level | distances and levels: plans, gaps, second stages |

A tolerance that one algorithm alone goes by stands beside it. Kernels keep theirs; tests say which
are the same. `of` is 1e-6 in float32, 2e-3 in float16 and 2e-2 in bfloat16.
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
    """Tolerances; the table above says what they are relative to.

    Attributes:
        satisfied: a point satisfies a rule within this.
        holds: a row holds within this at a point that was computed to satisfy it.
        integer: a number this near to a whole number is that number.
        equal: distances that differ by less are the same.
        by_type: a prediction of a type that satisfies everything within this passes unchanged, and
            what is returned in that type holds within it.
    """

    satisfied: float = 1e-6
    holds: float = 1e-9
    integer: float = 1e-9
    equal: float = 1e-9
    by_type: dict[torch.dtype, float] = field(default_factory=_by_type)

    def of(self, dtype: torch.dtype) -> float:
        """The tolerance of a type of predictions."""
        return self.by_type.get(dtype, self.satisfied)

    def above(self, level: float) -> float:
        """A level that is `equal` and not less: what was computed stays feasible under it."""
        return level * (1 + self.equal) + self.equal


TOLERANCES = Tolerances()
