"""Exact polygons: the shadow of a polyhedron on two of its variables, the outline of a union."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from gdpnet.errors import SolverError
from gdpnet.lp.persistent import PersistentHighs
from gdpnet.lp.program import LinearProgram, Outcome, SparseLinearProgram

Array = np.ndarray

# Of the picture's width: points nearer to a line than this lie on it.
_FLAT = 1e-9
# Of the picture's width: how far beside a line it is looked whether a set goes on there.
_ASIDE = 1e-6


def shadow(
    program: LinearProgram | SparseLinearProgram, columns: tuple[int, int], size: Array
) -> Array:
    """Corners of the projection of a polyhedron onto two of its variables.

    A linear program finds the outermost point in a direction. Starting from four of them, the
    normal of each side found so far either finds a point further out or proves the side.

    Args:
        program: the polyhedron, bounded in the two variables, without costs.
        columns: the two variables.
        size: extent of the picture in both, `2`: what is small is judged by it.

    Returns:
        `corners x 2`, counterclockwise; one or two of them where it is a point or a segment, none
        where the polyhedron is empty.
    """
    outermost = _Outermost(PersistentHighs(program), columns, size)
    found = outermost(np.array([1.0, 0.0]))
    if found is None:
        return np.zeros((0, 2))
    points = [found]
    for direction in ((0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)):
        point = outermost(np.array(direction))
        assert point is not None  # it was feasible before
        points.append(point)
    around: list[Array] = []
    for one, other in zip(points, [*points[1:], points[0]], strict=True):
        around += [one, *_between(outermost, one, other)]
    return without_flat(around) * size


def _between(outermost: _Outermost, one: Array, other: Array) -> list[Array]:
    """Corners between two points of the boundary, counterclockwise."""
    along = other - one
    length = np.linalg.norm(along)
    if length < _FLAT:
        return []
    normal = np.array([along[1], -along[0]]) / length
    point = outermost(normal)
    if point is None or normal @ (point - one) < _FLAT:
        return []
    return [*_between(outermost, one, point), point, *_between(outermost, point, other)]


class _Outermost:
    """The outermost point of a polyhedron in a direction, in units of the picture's size."""

    def __init__(self, model: PersistentHighs, columns: tuple[int, int], size: Array) -> None:
        self._model, self._columns, self._size = model, np.array(columns), size

    def __call__(self, direction: Array) -> Array | None:
        self._model.set_cost(self._columns, -direction / self._size)
        outcome = self._model.solve()  # without presolve: the last basis is worth more
        if outcome is Outcome.OPTIMAL:
            return self._model.point[self._columns] / self._size
        if outcome is Outcome.INFEASIBLE:
            return None
        raise SolverError(f"HiGHS could not find the outline of a region ({self._model.status}).")


def without_flat(points: Sequence[Array]) -> Array:
    """The corners among points in order around a convex polygon: none lies between its neighbours.

    Args:
        points: each `2`, in units of the picture's size.

    Returns:
        `corners x 2`.
    """
    kept = list(points)
    k = 0
    while len(kept) > 1 and k < len(kept):
        before, after = kept[k - 1], kept[(k + 1) % len(kept)]
        if _beside(kept[k], before, after) < _FLAT:
            del kept[k]
            k = max(0, k - 1)
        else:
            k += 1
    return np.array(kept)


def _beside(point: Array, one: Array, other: Array) -> float:
    """Distance of a point from a segment."""
    along = other - one
    length = along @ along
    share = np.clip((point - one) @ along / length, 0.0, 1.0) if length else 0.0
    return float(np.linalg.norm(point - one - share * along))


def inside(corners: Array, points: Array, slack: float = 0.0) -> Array:
    """Which points lie in a convex polygon, a segment or a point.

    Args:
        corners: counterclockwise, as `shadow` gives them.
        points: `n x 2`.
        slack: distance that points may be outside.

    Returns:
        bool `n`.
    """
    if len(corners) == 1:
        return np.linalg.norm(points - corners[0], axis=1) <= slack
    good = np.ones(len(points), dtype=bool)
    for one, other in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        along = (other - one) / np.linalg.norm(other - one)
        beside = points - one
        good &= along[0] * beside[:, 1] - along[1] * beside[:, 0] >= -slack
        if len(corners) == 2:  # both sides of a segment; its ends bound it as well
            good &= beside @ along >= -slack
    return good


def without_covered(polygons: Sequence[Array], size: Array) -> list[Array]:
    """Polygons that are no part of another one."""
    kept: list[Array] = []
    for corners in sorted(polygons, key=lambda c: -area(c)):
        if not any(inside(k / size, corners / size, _FLAT).all() for k in kept):
            kept.append(corners)
    return kept


def area(corners: Array) -> float:
    """Area of a polygon."""
    x, y = corners.T
    return float(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2


def outline(polygons: Sequence[Array], size: Array) -> list[Array]:
    """The sides of a union of convex polygons, without what lies inside of it.

    Args:
        polygons: each `corners x 2`, counterclockwise.
        size: extent of the picture, `2`.

    Returns:
        Segments, each `2 x 2`.
    """
    scaled = [corners / size for corners in polygons]
    sides = [
        (one, other)
        for corners in scaled
        if len(corners) > 1
        for one, other in zip(corners, np.roll(corners, -1, axis=0), strict=True)
    ]
    found = []
    for one, other in sides:
        along = other - one
        cuts = sorted({0.0, 1.0, *(t for a, b in sides for t in _crossing(one, along, a, b))})
        normal = np.array([along[1], -along[0]]) / np.linalg.norm(along)
        for start, end in pairwise(cuts):
            middle = one + (start + end) / 2 * along
            beside = np.array([middle + _ASIDE * normal, middle - _ASIDE * normal])
            if (end - start) * np.linalg.norm(along) < _ASIDE:
                continue
            covered = [inside(c, beside) for c in scaled if len(c) > 2]
            if not (covered and np.any(covered, axis=0).all()):
                found.append(np.array([one + start * along, one + end * along]) * size)
    return found


def _crossing(one: Array, along: Array, a: Array, b: Array) -> list[float]:
    """Where the line of a side meets another side, and where that ends on it."""
    to = b - a
    cross = along[0] * to[1] - along[1] * to[0]
    if abs(cross) < _FLAT * np.linalg.norm(along) * np.linalg.norm(to):
        ends = [float((p - one) @ along / (along @ along)) for p in (a, b)]
        return [t for t in ends if 0 < t < 1]
    gap = a - one
    t = float((gap[0] * to[1] - gap[1] * to[0]) / cross)
    return [t] if 0 < t < 1 else []
