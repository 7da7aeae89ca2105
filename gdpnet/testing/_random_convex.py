"""Random models with convex rows: ellipsoids, cones, and other curves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.gdp import Disjunction

KINDS = ("ellipsoids", "cones", "mixed")
"""What disjuncts are made of."""

_REACH = 4.0  # of the outputs


def random_convex_model(
    rng: np.random.Generator, d: int, kind: str = "mixed", thin: float = 0.1
) -> pyo.ConcreteModel:
    """A model of one to four rules over `y[0], ..., y[d - 1]`, whose disjuncts are convex sets.

    Some choice of disjuncts always leaves a point. Quadratic rows are written as squares or
    multiplied out, norms as roots of either.

    Args:
        rng: random numbers.
        d: number of outputs.
        kind: `"ellipsoids"`, `"cones"` (rows with norms), or `"mixed"`: both, linear rows,
            exponentials, logarithms and powers.
        thin: share of disjuncts without an interior: a point, a flat set, sets that touch.

    Example:
        >>> import numpy as np, gdpnet
        >>> from gdpnet.testing import random_convex_model
        >>> m = random_convex_model(np.random.default_rng(0), d=3, kind="cones")
        >>> rules = gdpnet.RuleModel(m, outputs=[m.y])
        >>> len(rules.output_names), bool(rules.data.curved)
        (3, True)
    """
    if kind not in KINDS:
        raise ValueError(f"kind: expected one of {', '.join(KINDS)}, got {kind!r}.")
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(d), bounds=(-_REACH, _REACH))
    sets = _Sets(rng, m, kind)
    # The k-th disjuncts of all rules share the k-th of these points.
    shared = rng.uniform(-0.6 * _REACH, 0.6 * _REACH, (3, d))
    for r in range(int(rng.integers(1, 5))):
        disjuncts = [
            sets.thin(point) if rng.random() < thin else sets.around(point)
            for point in shared[: int(rng.integers(2, 4))]
        ]
        m.add_component(f"rule{r}", Disjunction(expr=disjuncts, xor=False))
    if rng.random() < 0.3:
        centre = shared.mean(0)
        reach = float(np.linalg.norm(shared - centre, axis=1).max()) + 1.0
        ball = sum((m.y[j] - float(centre[j])) ** 2 for j in range(d))
        m.ball = pyo.Constraint(expr=ball <= reach**2)
    return m


class _Sets:
    """Convex sets over the outputs, as lists of relations."""

    def __init__(self, rng: np.random.Generator, m: Any, kind: str) -> None:
        self.rng, self.y, self.kind = rng, m.y, kind
        self.d = len(m.y)

    def around(self, point: np.ndarray) -> list[Any]:
        """A set with the point inside."""
        kinds = {
            "ellipsoids": [self._ellipsoid],
            "cones": [self._cone],
            "mixed": [self._ellipsoid, self._cone, self._curve, self._half_space],
        }[self.kind]
        count = 1 if self.rng.random() < 0.7 else 2
        return [kinds[int(self.rng.integers(len(kinds)))](point) for _ in range(count)]

    def thin(self, point: np.ndarray) -> list[Any]:
        """A set that holds the point and has no interior."""
        which = int(self.rng.integers(3))
        if which == 0:
            return [self._distance_from(point) <= 0]
        away = self.rng.normal(size=self.d)
        away /= np.linalg.norm(away)
        if which == 1:  # two balls that touch
            r, s = (float(v) for v in self.rng.uniform(0.5, 2.0, 2))
            first, second = point - r * away, point + s * away
            return [
                self._distance_from(first) <= float(((point - first) ** 2).sum()),
                self._distance_from(second) <= float(((point - second) ** 2).sum()),
            ]
        return [self._affine(away, point) ** 2 <= 0, self._distance_from(point) <= 1.0]

    def _distance_from(self, centre: np.ndarray) -> Any:
        return sum((self.y[j] - float(centre[j])) ** 2 for j in range(self.d))

    def _affine(self, slope: np.ndarray, zero: np.ndarray) -> Any:
        """A linear expression that is 0 at a point."""
        return sum(float(a) * self.y[j] for j, a in enumerate(slope)) - float(slope @ zero)

    def _ellipsoid(self, point: np.ndarray) -> Any:
        return self._squared(*self._quadratic(point)) <= 1.0

    def _quadratic(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A matrix and a centre; the point lies well within `|matrix (y - centre)| <= 1`."""
        basis = np.linalg.qr(self.rng.normal(size=(self.d, self.d)))[0]
        matrix = basis / self.rng.uniform(0.4, 2.5, self.d)[:, None]
        step = self.rng.normal(size=self.d)
        step *= self.rng.uniform(0.2, 0.9) / np.linalg.norm(matrix @ step)
        return matrix, point - step

    def _squared(self, matrix: np.ndarray, centre: np.ndarray) -> Any:
        """`|matrix (y - centre)|^2`, as squares or multiplied out."""
        if self.rng.random() < 0.5:
            return sum(self._affine(row, centre) ** 2 for row in matrix)
        full = matrix.T @ matrix
        linear = -2.0 * full @ centre
        total: Any = float(centre @ full @ centre)
        for i in range(self.d):
            total += float(full[i, i]) * self.y[i] ** 2 + float(linear[i]) * self.y[i]
            for j in range(i):
                total += 2.0 * float(full[i, j]) * self.y[i] * self.y[j]
        return total

    def _cone(self, point: np.ndarray) -> Any:
        """`|matrix (y - apex)| + slope y <= b`, with the point inside."""
        matrix, apex = self._quadratic(point)
        rows = matrix[: int(self.rng.integers(1, self.d + 1))]
        slope = self.rng.normal(size=self.d) * self.rng.uniform(0.0, 0.6) / math.sqrt(self.d)
        norm = pyo.sqrt(sum(self._affine(row, apex) ** 2 for row in rows))
        reach = float(np.linalg.norm(rows @ (point - apex)) + self.rng.uniform(0.1, 1.0))
        return norm + self._affine(slope, point) <= reach

    def _curve(self, point: np.ndarray) -> Any:
        rng = self.rng
        slope = rng.normal(size=self.d) / math.sqrt(self.d)
        inner, other = self._affine(slope, point), self._affine(rng.normal(size=self.d), point)
        room = float(rng.uniform(0.1, 1.0))
        return [
            lambda: pyo.exp(inner) + 0.3 * other <= 1.0 + room,
            lambda: pyo.log(inner + 1.5) >= math.log(1.5) - room + 0.3 * other,
            lambda: pyo.sqrt(inner + 2.0) >= math.sqrt(2.0) - room + 0.2 * other,
            lambda: (inner + 1.0) ** 1.5 + 0.2 * other <= 1.0 + room,
            lambda: inner**4 + 0.2 * other <= room,
        ][int(rng.integers(5))]()

    def _half_space(self, point: np.ndarray) -> Any:
        slope = self.rng.normal(size=self.d)
        return self._affine(slope, point) <= float(self.rng.uniform(0.05, 1.0))
