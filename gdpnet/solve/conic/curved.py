r"""Derivatives of projections onto exponential and power cones.

Where the projection s of u lies on the boundary phi(s) = 0 of such a cone, phi convex with gradient
g and second derivatives H,

    s + mu g = u,  phi(s) = 0,

so that to first order `(1 + mu H) ds + g dmu = du` and `g ds = 0`. A solver of cones brings s and
the multiplier v = s - u = -mu g with it.
"""

from __future__ import annotations

import numpy as np

from gdpnet.lp.conic import ConeKind
from gdpnet.lp.standard import Span

Array = np.ndarray

_APEX = 1e-7  # of the larger one, relative: what slack and multipliers are good to


def of_curved_cone(span: Span, slack: Array, dual: Array) -> Array | None:
    """Derivative of the projection, 3 x 3; None inside of the cone, where it is the identity.

    Args:
        span: the cone, in the order of solvers: (r, q, p) if exponential, else (p, q, r).
        slack: what is in the cone, `3`.
        dual: its multiplier, `3`.
    """
    size, pressure = (float(np.linalg.norm(part)) for part in (slack, dual))
    if size <= _APEX * pressure:
        return np.zeros((3, 3))
    with np.errstate(all="ignore"):
        value, slope, curvature = _boundary(span, slack)
    steep = float(np.linalg.norm(slope))
    if not (np.isfinite(curvature).all() and 0.0 < steep < np.inf):
        return np.zeros((3, 3)) if pressure > _APEX * size else None  # an edge
    if -value / steep > pressure:
        return None
    system = np.zeros((4, 4))
    system[:3, :3] = np.eye(3) + pressure / steep * curvature
    system[:3, 3] = system[3, :3] = slope
    return np.asarray(np.linalg.solve(system, np.eye(4)[:, :3])[:3])


def _boundary(span: Span, s: Array) -> tuple[float, Array, Array]:
    """phi, which is 0 on the boundary and negative inside, its gradient and second derivatives."""
    if span.kind is ConeKind.EXPONENTIAL:
        r, q, p = s
        ratio = r / q
        grown = np.exp(ratio)
        along = np.array([1.0, -ratio, 0.0])
        slope = np.array([grown, grown * (1.0 - ratio), -1.0])
        return float(q * grown - p), slope, grown / q * np.outer(along, along)
    p, q, r = s
    a = span.exponent
    mean = p**a * q ** (1.0 - a)
    along = np.array([1.0 / p, -1.0 / q, 0.0])
    slope = np.array([-a * mean / p, -(1.0 - a) * mean / q, np.sign(r)])
    return float(abs(r) - mean), slope, a * (1.0 - a) * mean * np.outer(along, along)
