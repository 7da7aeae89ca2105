"""Jacobians of a projection: by autograd, and by finite differences where they agree."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch

from gdpnet.errors import ZeroGradientWarning

Tensor = torch.Tensor

STEP = 1e-4
AGREE = 1e-2
"""Difference quotients of both sides and both steps differ by less than this where y is smooth: a
kink changes the Jacobian by more, curvature in x by less than this within two steps."""


@dataclass(frozen=True)
class Jacobians:
    """Of y with respect to the columns of (yhat, x).

    Attributes:
        autograd: What backward gives, `samples x d x columns`.
        differences: Central difference quotients, of the same shape.
        smooth: Samples without a kink within two steps, `samples`.
    """

    autograd: Tensor
    differences: Tensor
    smooth: Tensor


def jacobians(y: Callable[[Tensor], Tensor], at: Tensor) -> Jacobians:
    """Both Jacobians of a function of samples, which do not know of each other.

    Args:
        y: From `samples x columns` to `samples x d`, with a gradient.
        at: The samples.
    """
    given = at.clone().requires_grad_()
    made = y(given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ZeroGradientWarning)  # differences say so too
        slopes = [
            torch.autograd.grad(made[:, i].sum(), given, retain_graph=True)[0]
            for i in range(made.shape[1])
        ]
    here, quotients = made.detach(), []
    for j in range(at.shape[1]):
        sides = []
        for step in (STEP, -STEP, 2 * STEP, -2 * STEP):
            moved = at.clone()
            moved[:, j] += step
            sides.append((y(moved).detach() - here) / step)
        quotients.append(torch.stack(sides))
    every = torch.stack(quotients, -1)  # sides x samples x d x columns
    spread = every.amax(0) - every.amin(0)
    return Jacobians(torch.stack(slopes, 1), every[:2].mean(0), spread.amax((1, 2)) < AGREE)
