r"""Products of half-lines and second-order cones, as interior-point methods use them.

With the scaling W of Nesterov and Todd the slack s and the multiplier v of a cone are alike,
`W v = s / W`, and the arrow product u o v, `(u v, u_0 v_i + v_0 u_i)` in a second-order cone and
the usual one on a half-line, says how far they are from the boundary. Numbers are floats or
decimals: an array's own.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

Array = np.ndarray


class Cones:
    """Equations, half-lines and second-order cones, one behind the other.

    Args:
        equal: rows that are equations; what is done to them gives 0.
        less: rows that are half-lines.
        wide: rows of each second-order cone.

    Attributes:
        half: the half-lines.
        wide: rows of each second-order cone.
        degree: number of cones.
        one: the unit of the product, integers.
    """

    def __init__(self, equal: int, less: int, wide: list[int]) -> None:
        self.half = slice(equal, equal + less)
        ends = np.cumsum([equal + less, *wide]).tolist()
        self.wide = [slice(a, b) for a, b in pairwise(ends)]
        self.degree = less + len(wide)
        self.one = np.zeros(ends[-1], dtype=np.int64)
        self.one[[*range(equal, equal + less), *(at.start for at in self.wide)]] = 1

    def product(self, u: Array, v: Array) -> Array:
        """U o v."""
        found = u * 0
        found[self.half] = u[self.half] * v[self.half]
        for at in self.wide:
            found[at] = u[at.start] * v[at] + v[at.start] * u[at]
            found[at.start] = u[at] @ v[at]
        return found

    def divided(self, d: Array, u: Array) -> Array:
        """The v with u o v = d."""
        found = d * 0
        found[self.half] = d[self.half] / u[self.half]
        for at in self.wide:
            own, whole = u[at], d[at]
            head = _form(own, whole) / _form(own, own)
            found[at] = (whole - head * own) / own[0]
            found[at.start] = head
        return found

    def ends(self, u: Array) -> Array:
        """The least and the largest eigenvalue of each cone's part, `cones x 2`.

        Those of `(u_0, u_i)` are `u_0 - |u_i|` and `u_0 + |u_i|`; on a half-line they are the same.
        """
        ends = [(a, a) for a in u[self.half]]
        for at in self.wide:
            length = np.sqrt(u[at][1:] @ u[at][1:])
            ends.append((u[at.start] - length, u[at.start] + length))
        return np.array(ends).reshape(-1, 2)

    def reach(self, s: Array, step: Array) -> Any:
        """How far along a step one stays within, 1 at most."""
        far = 1
        for a, b in zip(s[self.half], step[self.half], strict=True):
            if b < 0:
                far = min(far, -a / b)
        for at in self.wide:
            own, by = s[at], step[at]
            # The first positive zero of square t^2 + 2 half t + now.
            now, half, square = _form(own, own), _form(own, by), _form(by, by)
            root = half * half - now * square
            if root >= 0 and (half < 0 or square < 0):
                far = min(far, now / (np.sqrt(root) - half))
        return far


class Scaling:
    """W at a point of the interior.

    Args:
        cones: the cones.
        s, v: slack and multiplier, both of them inside.
    """

    def __init__(self, cones: Cones, s: Array, v: Array) -> None:
        self._cones = cones
        self._half = np.sqrt(s[cones.half] / v[cones.half])
        self._wide = [_scaling(s[at], v[at]) for at in cones.wide]

    def times(self, u: Array) -> Array:
        """W u."""
        return self._applied(u, self._half, 0)

    def over(self, u: Array) -> Array:
        """U / W."""
        return self._applied(u, 1 / self._half, 1)

    def gram(self, matrix: Array) -> Array:
        """`B' B` with B the matrix over W."""
        found = np.zeros((matrix.shape[1],) * 2, dtype=matrix.dtype)
        half = self._cones.half
        for row, scale in zip(matrix[half], self._half, strict=True):
            _add_square(found, (row / scale)[None])
        for at, (_, inverse) in zip(self._cones.wide, self._wide, strict=True):
            _add_square(found, inverse @ matrix[at])
        return found

    def _applied(self, u: Array, half: Array, which: int) -> Array:
        found = u * 0
        found[self._cones.half] = u[self._cones.half] * half
        for at, both in zip(self._cones.wide, self._wide, strict=True):
            found[at] = both[which] @ u[at]
        return found


def _add_square(to: Array, rows: Array) -> None:
    """Add `rows' rows`, of which most columns are 0."""
    filled = np.flatnonzero((rows != 0).any(0))
    part = rows[:, filled]
    to[np.ix_(filled, filled)] += part.T @ part


def _form(u: Array, v: Array) -> Any:
    return u[0] * v[0] - u[1:] @ v[1:]


def _scaling(s: Array, v: Array) -> tuple[Array, Array]:
    """W of a second-order cone, and its inverse."""
    of_s, of_v = np.sqrt(_form(s, s)), np.sqrt(_form(v, v))
    s, v, size = s / of_s, v / of_v, np.sqrt(of_s / of_v)
    w = s - v
    w[0] = s[0] + v[0]
    w = w / (2 * np.sqrt((1 + s @ v) / 2))
    times = np.outer(w, w) / (1 + w[0]) + np.eye(len(w), dtype=np.int64)
    times[0], times[:, 0] = w, w
    inverse = times.copy()
    inverse[0, 1:], inverse[1:, 0] = -w[1:], -w[1:]
    return times * size, inverse / size
