"""Polygons: the shadow of a convex set on two of its variables, hulls, the outline of a union."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

import numpy as np

from gdpnet.errors import SolverError
from gdpnet.lp.persistent import PersistentHighs
from gdpnet.lp.program import LinearProgram, Outcome, SparseLinearProgram

Array = np.ndarray

# Of the picture's width: points nearer to a line than this lie on it.
_FLAT = 1e-9
# The same for sets with curves, whose corners are points of the curve: too little to be seen.
_CURVED = 1e-3
_MOST_TANGENTS = 100  # for one point of a curve
# Of the picture's width: how far beside a line it is looked whether a set goes on there.
_ASIDE = 1e-6


Tangents = Callable[[Array], Iterable[tuple[Array, float]]]
"""Rows `a z <= b` of a convex set that a point `z` breaks; none where it lies in the set."""


def extremes(
    program: LinearProgram | SparseLinearProgram,
    columns: tuple[int, int],
    size: Array,
    tangents: Tangents,
) -> Array:
    """Outermost points of a convex set in eight directions, `8 x 2`; none where it is empty."""
    outermost = _Outermost(PersistentHighs(program), columns, size, tangents)
    angles = np.linspace(0.0, 2.0 * np.pi, 8, endpoint=False)
    found = [outermost(np.array([np.cos(a), np.sin(a)])) for a in angles]
    return np.array([point * size for point in found if point is not None]).reshape(-1, 2)


def shadow(
    program: LinearProgram | SparseLinearProgram,
    columns: tuple[int, int],
    size: Array,
    tangents: Tangents | None = None,
) -> Array:
    """Corners of the projection of a polyhedron, or of a convex set, onto two of its variables.

    A linear program finds the outermost point in a direction. Starting from four of them, the
    normal of each side found so far either finds a point further out or proves the side.

    Args:
        program: the polyhedron, bounded in the two variables, without costs.
        columns: the two variables.
        size: extent of the picture in both, `2`: what is small is judged by it.
        tangents: of a set that is no polyhedron, with rows that are not part of the program.

    Returns:
        `corners x 2`, counterclockwise; one or two of them where it is a point or a segment, none
        where the polyhedron is empty.
    """
    outermost = _Outermost(PersistentHighs(program), columns, size, tangents)
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
    return without_flat(around, outermost.flat) * size


def _between(outermost: _Outermost, one: Array, other: Array) -> list[Array]:
    """Corners between two points of the boundary, counterclockwise."""
    along = other - one
    length = np.linalg.norm(along)
    if length < outermost.flat:
        return []
    normal = np.array([along[1], -along[0]]) / length
    point = outermost(normal)
    if point is None or normal @ (point - one) < outermost.flat:
        return []
    return [*_between(outermost, one, point), point, *_between(outermost, point, other)]


class _Outermost:
    """The outermost point of a convex set in a direction, in units of the picture's size.

    Attributes:
        flat: points nearer to a line than this lie on it.
    """

    def __init__(
        self,
        model: PersistentHighs,
        columns: tuple[int, int],
        size: Array,
        tangents: Tangents | None,
    ) -> None:
        self._model, self._columns, self._size = model, np.array(columns), size
        self._tangents = tangents or (lambda _: ())
        self.flat = _FLAT if tangents is None else _CURVED

    def __call__(self, direction: Array) -> Array | None:
        self._model.set_cost(self._columns, -direction / self._size)
        outcome = self._model.solve()  # without presolve: the last basis is worth more
        for _ in range(_MOST_TANGENTS):
            if outcome is not Outcome.OPTIMAL:
                break
            broken = list(self._tangents(self._model.point))
            if not broken:
                break
            for slope, bound in broken:
                place = np.flatnonzero(slope).tolist()
                self._model.add_row(-np.inf, {j: float(slope[j]) for j in place}, bound)
            outcome = self._model.solve()
        if outcome is Outcome.OPTIMAL:
            return self._model.point[self._columns] / self._size
        if outcome is Outcome.INFEASIBLE:
            return None
        raise SolverError(f"HiGHS could not find the outline of a region ({self._model.status}).")


def without_flat(points: Sequence[Array], flat: float = _FLAT) -> Array:
    """The corners among points in order around a convex polygon: none lies between its neighbours.

    Args:
        points: each `2`, in units of the picture's size.
        flat: how near to the line of its neighbours a point lies on it.

    Returns:
        `corners x 2`.
    """
    kept = list(points)
    k = 0
    while len(kept) > 1 and k < len(kept):
        before, after = kept[k - 1], kept[(k + 1) % len(kept)]
        if _beside(kept[k], before, after) < flat:
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
    along = np.roll(corners, -1, axis=0) - corners
    along = along / np.linalg.norm(along, axis=1, keepdims=True)
    beside = points[:, None] - corners
    good = along[:, 0] * beside[..., 1] - along[:, 1] * beside[..., 0] >= -slack
    if len(corners) == 2:  # both sides of a segment; its ends bound it as well
        good &= (beside * along).sum(2) >= -slack
    return np.asarray(good.all(1))


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
    starts, ends = (np.array([side[k] for side in sides]).reshape(-1, 2) for k in (0, 1))
    for one, other in sides:
        along = other - one
        cuts = sorted({0.0, 1.0, *_crossings(one, along, starts, ends)})
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


def _crossings(one: Array, along: Array, starts: Array, ends: Array) -> list[float]:
    """Where the line of a side meets other sides, and where those end on it."""
    to = ends - starts
    cross = along[0] * to[:, 1] - along[1] * to[:, 0]
    length = np.linalg.norm(along)
    parallel = np.abs(cross) < _FLAT * length * np.linalg.norm(to, axis=1)
    on = np.concatenate([starts[parallel], ends[parallel]]) - one
    gap = (starts - one)[~parallel]
    crossing = (gap[:, 0] * to[~parallel, 1] - gap[:, 1] * to[~parallel, 0]) / cross[~parallel]
    found = np.concatenate([on @ along / (along @ along), crossing])
    return [float(t) for t in found[(found > 0) & (found < 1)]]


def hull(polygons: Sequence[Array]) -> Array:
    """The convex hull of polygons, counterclockwise, `corners x 2`."""
    points = sorted({tuple(p) for corners in polygons for p in corners.tolist()})
    if len(points) < 3:
        return np.array(points).reshape(-1, 2)

    def chain(ordered: Iterable[tuple[float, ...]]) -> list[tuple[float, ...]]:
        kept: list[tuple[float, ...]] = []
        for p in ordered:
            while len(kept) > 1 and _turn(kept[-2], kept[-1], p) <= 0.0:
                kept.pop()
            kept.append(p)
        return kept[:-1]

    return np.array(chain(points) + chain(reversed(points)))


def _turn(a: Sequence[float], b: Sequence[float], c: Sequence[float]) -> float:
    """Positive where a way from a over b to c turns left."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def common(one: Array, other: Array) -> Array:
    """The part that two convex polygons have in common, counterclockwise, `corners x 2`."""
    if len(other) < 3:
        return other if len(one) > 2 and inside(one, other, _CURVED).all() else np.zeros((0, 2))
    for a, b in zip(other, np.roll(other, -1, axis=0), strict=True):
        outward = np.array([b[1] - a[1], a[0] - b[0]])
        one = clip(one, outward, float(outward @ a))
    return one


def clip(corners: Array, slope: Array, bound: float) -> Array:
    """The part of a convex polygon where `slope y <= bound`, `corners x 2`."""
    beyond = corners @ slope - bound
    if not (beyond > 0.0).any():
        return corners
    kept = []
    for k in range(len(corners)):
        before, here = beyond[k - 1], beyond[k]
        if (before > 0.0) != (here > 0.0):
            share = before / (before - here)
            kept.append(corners[k - 1] + share * (corners[k] - corners[k - 1]))
        if here <= 0.0:
            kept.append(corners[k])
    return np.array(kept).reshape(-1, 2)
