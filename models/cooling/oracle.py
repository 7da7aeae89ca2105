"""Exact minimiser of a separable convex quadratic over a union of polyhedra, for a whole batch.

The problem of one sample, with d outputs, positive weights q and a centre z, is

    min  sum_j q_j (y_j - z_j)^2   over  y with  a_i y <= b_i  for every row i that always holds,
                                   and, for each active rule, all rows of one of its disjuncts.

Choosing one disjunct per active rule leaves a polyhedron, and the problem's optimum is the least
of the optima over these selections. The selections need not be visited one by one:

* The optimum of a selection is the q-scaled projection of z onto the affine set in which some of
  its rows hold with equality. These rows can be taken linearly independent (otherwise a
  multiplier can be moved to zero without losing a sign), hence at most d of them.
* Every candidate of this form that satisfies all rows and active rules is a point of the union,
  so its value is never below the optimum.

The best feasible candidate over all independent sets of at most d rows is therefore the optimum.
The normals do not depend on the sample, so each set is one affine map applied to the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FEASIBILITY = 1e-11
"""Absolute residual up to which a row counts as satisfied; candidates are exact to about 1e-15."""

_DEPENDENT = 1e-8
"""Smallest singular value (of unit normals) below which a set of rows is taken as dependent."""

_CHUNK = 1 << 22
"""Numbers held at once while residuals are checked (32 MB), whatever the size of the batch."""


@dataclass(frozen=True)
class Problem:
    """Rows and rules shared by all samples.

    Attributes:
        normals: (rows, d), the a_i.
        always: indices of the rows that hold in every sample.
        rules: for each rule, for each disjunct, the indices of its rows.
        weights: (d,), the positive weights q of the squared deviations.
    """

    normals: Array
    always: tuple[int, ...]
    rules: tuple[tuple[tuple[int, ...], ...], ...]
    weights: Array


@dataclass(frozen=True)
class Solution:
    """Optimum of each sample.

    Attributes:
        y: (n, d) minimisers; NaN where the sample has no feasible point.
        value: (n,) optimal values; infinite where the sample has no feasible point.
        disjunct: (n, rules) first disjunct of each rule that holds at y, -1 if inactive.
    """

    y: Array
    value: Array
    disjunct: NDArray[np.int64]


def solve(problem: Problem, centre: Array, rhs: Array, active: NDArray[np.bool_]) -> Solution:
    """Minimise over the union of polyhedra, sample by sample but vectorised.

    Args:
        problem: what all samples share.
        centre: (n, d), the unconstrained minimisers z.
        rhs: (n, rows), the right sides b.
        active: (n, rules), which rules apply.

    Returns:
        The exact optimum of every sample.
    """
    n, d = centre.shape
    y = np.full((n, d), np.nan)
    value = np.full(n, np.inf)
    disjunct = np.full(active.shape, -1, dtype=np.int64)
    if n == 0:
        return Solution(y, value, disjunct)
    # One activation pattern at a time: rows of inactive rules would only add useless candidates.
    patterns, member = np.unique(active, axis=0, return_inverse=True)
    for index, pattern in enumerate(patterns):
        rules = np.flatnonzero(pattern)
        rows = sorted({*problem.always, *(i for r in rules for t in problem.rules[r] for i in t)})
        candidates = _AffineProjections(problem.normals[rows], problem.weights)
        samples = np.flatnonzero(member.reshape(-1) == index)
        step = max(1, _CHUNK // (len(candidates) * problem.normals.shape[0]))
        for start in range(0, len(samples), step):
            part = samples[start : start + step]
            points = candidates(centre[part], rhs[part][:, rows])
            cost = ((points - centre[part, None]) ** 2 * problem.weights).sum(-1)
            holds = points @ problem.normals.T <= rhs[part, None] + FEASIBILITY
            cost[~_feasible(problem, holds, rules)] = np.inf
            best = cost.argmin(1)
            pick = np.arange(len(part)), best
            value[part] = cost[pick]
            y[part] = np.where(np.isfinite(cost[pick])[:, None], points[pick], np.nan)
            for r in rules:
                held = np.stack([holds[pick][:, list(t)].all(-1) for t in problem.rules[r]], -1)
                disjunct[part, r] = np.where(held.any(-1), held.argmax(-1), -1)
    return Solution(y, value, disjunct)


def _feasible(
    problem: Problem, holds: NDArray[np.bool_], rules: Sequence[int] | NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Which points satisfy the rows that always hold and one disjunct of each of the rules."""
    good = holds[..., list(problem.always)].all(-1)
    for r in rules:
        good &= np.any([holds[..., list(term)].all(-1) for term in problem.rules[r]], axis=0)
    return good


class _AffineProjections:
    """Scaled projections onto all affine sets given by at most d independent rows.

    For rows A of a set, the projection of z in the norm of the weights q is
    z + S (b - A z) with S = Q^-1 A' (A Q^-1 A')^-1; S is stored once per set.
    """

    def __init__(self, normals: Array, weights: Array) -> None:
        r, d = normals.shape
        self._normals = normals
        unit = normals / np.linalg.norm(normals, axis=1, keepdims=True)
        self._sets: list[tuple[NDArray[np.int64], Array]] = []
        for size in range(1, min(r, d) + 1):
            sets = np.array(list(combinations(range(r), size)), dtype=np.int64)
            smallest = np.linalg.svd(unit[sets], compute_uv=False)[:, -1]
            sets = sets[smallest > _DEPENDENT]
            a = normals[sets]
            scaled = np.swapaxes(a, 1, 2) / weights[:, None]
            self._sets.append((sets, scaled @ np.linalg.inv(a @ scaled)))

    def __len__(self) -> int:
        return 1 + sum(len(sets) for sets, _ in self._sets)

    def __call__(self, centre: Array, rhs: Array) -> Array:
        """Candidates (n, sets, d) of centres (n, d) and right sides (n, rows)."""
        gap = rhs - centre @ self._normals.T
        moves = [np.zeros((len(centre), 1, centre.shape[1]))]
        moves += [np.einsum("sdk,nsk->nsd", s, gap[:, sets]) for sets, s in self._sets]
        return centre[:, None] + np.concatenate(moves, axis=1)
