"""Convex sets in the plane that are no polygons: cut out of a polygon by the tangents of curves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from gdpnet.plot._polygons import clip, without_flat

Array = np.ndarray
Excess = Callable[[torch.Tensor], torch.Tensor]
"""How far each curve is beyond its bound at points, `n x 2 -> n x curves`."""

_RAYS = 256  # the polygon is a part in 10,000 of the radius too wide
_HALVINGS = 60
_THIN = 1e-9


def within_curves(corners: Array, inner: Array, excess: Excess, size: Array) -> Array:
    """The part of a convex polygon where convex functions are at most 0.

    From an inner point rays go to the boundary; the tangents there cut the rest off.

    Args:
        corners: of the polygon, `corners x 2`, counterclockwise.
        inner: points of the set, of which it is the hull where it has no interior, `n x 2`.
        excess: the functions.
        size: extent of the picture, `2`.

    Returns:
        `corners x 2`, counterclockwise; one or two where the set is a point or a segment.
    """
    centre = inner.mean(0)
    if len(corners) < 3 or float(excess(torch.from_numpy(centre[None])).max()) > -_THIN:
        return without_flat(inner / size, 1e-4) * size
    angles = np.linspace(0.0, 2.0 * np.pi, _RAYS, endpoint=False)
    rays = torch.from_numpy(np.stack([np.cos(angles), np.sin(angles)], 1) * size)
    start = torch.from_numpy(centre)
    inside, outside = torch.zeros(_RAYS).double(), torch.full((_RAYS,), 2.0).double()
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        holds = excess(start + middle[:, None] * rays).amax(1) <= 0.0
        inside, outside = torch.where(holds, middle, inside), torch.where(holds, outside, middle)
    points = (start + inside[:, None] * rays).requires_grad_()
    (slopes,) = torch.autograd.grad(excess(points).amax(1).sum(), points)
    reached = (inside < 1.99) & (slopes.abs().sum(1) > 0.0)
    for point, slope in zip(points.detach()[reached].numpy(), slopes[reached].numpy(), strict=True):
        corners = clip(corners, slope, float(slope @ point))
        if len(corners) < 3:
            break
    return without_flat(corners / size, 1e-6) * size
