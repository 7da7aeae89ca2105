"""Small rule models that fit on a page: the paper's worked examples and its Figure 1.

They are those of `gdpnet.testing.problems.toy`, which tells about them.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import gdpnet
from gdpnet.testing.problems.toy import FIGURE1, NAMES, pyomo_model

if TYPE_CHECKING:
    import torch

SPLITS = ("train", "iid", "ood")


def build(name: str = "two_rules") -> gdpnet.RuleModel:
    """One of the examples as a rule model.

    Args:
        name: "one_rule", "two_rules" or "figure1".

    Returns:
        The rule model; it has no inputs.
    """
    m = pyomo_model(name)
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[])


def feasible(y: NDArray[np.float64], name: str = "two_rules") -> NDArray[np.bool_]:
    """Which of the points (n, d) satisfy all rules, written out by hand; (n,)."""
    if name == "figure1":
        good = np.ones(len(y), dtype=bool)
        for boxes in FIGURE1.values():
            low, high = np.swapaxes(np.array(boxes), 0, 2).swapaxes(1, 2)
            good &= np.any(np.all((y[:, None] >= low) & (y[:, None] <= high), axis=2), axis=1)
        return good
    return (y[:, 0] <= 3) | (y[:, 0] >= 7)


def sample(
    n: int, split: str = "iid", seed: int = 0, name: str = "two_rules"
) -> "tuple[torch.Tensor, torch.Tensor]":
    """Draw points uniformly from the feasible set.

    Without inputs there is nothing to shift: the splits differ in their random streams only.

    Args:
        n: number of samples.
        split: "train", "iid" or "ood".
        seed: a non-negative integer.
        name: "one_rule", "two_rules" or "figure1".

    Returns:
        x (n, 0) and target (n, d), both float64.
    """
    import torch

    if split not in SPLITS:
        raise ValueError(f"split must be one of {', '.join(SPLITS)}; got {split!r}")
    if name not in NAMES:
        raise ValueError(f"name must be one of {', '.join(NAMES)}; got {name!r}")
    if n < 0:
        raise ValueError(f"n must not be negative; got {n}")
    rng = np.random.default_rng([seed, SPLITS.index(split), NAMES.index(name)])
    d = 2 if name == "figure1" else 1
    kept = np.empty((0, d))
    while len(kept) < n:  # at least 6 % of the box is feasible, so a few rounds are enough
        y = 10.0 * rng.random((1024, d))
        kept = np.concatenate([kept, y[feasible(y, name)]])
    return torch.empty((n, 0), dtype=torch.float64), torch.from_numpy(kept[:n].copy())
