"""Many rules at once: k two-term rules in d outputs, all always active.

The rules are those of `gdpnet.testing.problems.stress`, which tells about them; the only input is
the load. They show how sizes and times grow with the number of rules.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import gdpnet
from gdpnet.testing.problems.stress import (
    PUMP_MIN,
    capacities,
    delivered,
    pyomo_model,
    rule_rows,
    witness,
)

if TYPE_CHECKING:
    import torch

Array = NDArray[np.float64]

LOADS = {"train": (0.3, 0.8), "iid": (0.3, 0.8), "ood": (0.7, 0.95)}
"""Range of the load, as a fraction of what the witness delivers."""


def build(k: int = 10, d: int = 3) -> gdpnet.RuleModel:
    """k two-term rules in d outputs.

    Args:
        k: number of rules.
        d: number of outputs, at least 2.

    Returns:
        The rule model with the load as its only input.
    """
    m = pyomo_model(k, d)
    low = min(a for a, _ in LOADS.values()) * delivered(d)
    high = max(b for _, b in LOADS.values()) * delivered(d)
    bounds = np.array([[low, high]])
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.need], input_bounds=bounds)


def feasible(x: Array, y: Array, k: int = 10, d: int = 3) -> NDArray[np.bool_]:
    """Which points (n, d) satisfy globals, bounds and rules at inputs (n, 1); (n,)."""
    good = np.all((y >= 0) & (y <= 1), axis=1) & (y[:, -1] >= PUMP_MIN)
    good &= y @ capacities(d) >= x[:, 0]
    for first, second in rule_rows(k, d):
        good &= first.holds(y) | second.holds(y)
    return good


def sample(
    n: int, split: str = "iid", seed: int = 0, k: int = 10, d: int = 3
) -> "tuple[torch.Tensor, torch.Tensor]":
    """Draw loads and feasible outputs.

    A target starts at a uniform point of the box and is halved towards the witness until all
    rules hold. It is feasible for any number of rules, which rejection could not promise.

    Args:
        n: number of samples.
        split: "train", "iid" or "ood" (higher loads).
        seed: a non-negative integer.
        k: number of rules, as in `build`.
        d: number of outputs, as in `build`.

    Returns:
        x (n, 1) and target (n, d), both float64.
    """
    import torch

    if split not in LOADS:
        raise ValueError(f"split must be one of {', '.join(LOADS)}; got {split!r}")
    if n < 0:
        raise ValueError(f"n must not be negative; got {n}")
    u = np.random.default_rng([seed, list(LOADS).index(split)]).random((n, 1 + d))
    low, high = LOADS[split]
    x = delivered(d) * (low + (high - low) * u[:, :1])
    point, y = witness(d), u[:, 1:].copy()
    # Ten halvings come within 0.001 of the witness, inside the slack of its rows.
    for _ in range(10):
        broken = ~feasible(x, y, k, d)
        y[broken] = 0.5 * (y[broken] + point)
    return torch.from_numpy(x), torch.from_numpy(y)
