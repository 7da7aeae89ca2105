"""What a model's sample() gives, and predictions to try rules on."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gdpnet.rules.model import RuleModel


def inputs_and_targets(drawn: Any) -> tuple[Tensor, Tensor | None]:
    """What `sample` returned, as x and, where it gave them, targets."""
    if isinstance(drawn, (tuple, list)):
        x = torch.as_tensor(drawn[0])
        y = torch.as_tensor(drawn[1]) if len(drawn) > 1 and drawn[1] is not None else None
        return x, y
    return torch.as_tensor(drawn), None


def random_predictions(
    rules: RuleModel, x: Tensor, targets: Tensor | None, seed: int
) -> Tensor | None:
    """Uniform in the outputs' bounds (n, d); the targets' range stands in for missing bounds.

    Returns:
        The predictions, or None if an output has no bounds and there are no targets.
    """
    lower, upper = rules.lower.to(torch.float64), rules.upper.to(torch.float64)
    if targets is not None:
        lower = torch.where(lower.isfinite(), lower, targets.amin(0).to(lower))
        upper = torch.where(upper.isfinite(), upper, targets.amax(0).to(upper))
    if not bool((lower.isfinite() & upper.isfinite()).all()):
        return None
    generator = torch.Generator().manual_seed(seed)
    unit = torch.rand(len(x), len(lower), generator=generator, dtype=torch.float64)
    return (lower + unit * (upper - lower)).to(x.dtype if x.is_floating_point() else unit.dtype)
