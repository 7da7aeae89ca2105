"""strict=True: rows hold without any tolerance on the y that the caller gets.

A point on the boundary of a row, rounded to the caller's type, may lie a hair beyond it. Where that
happens the sample is projected again with every inequality tightened by a few units in the last
place of its terms,

    margin = 8 eps (|b| + sum |a_j y_j|),

so that the rounded point lies inside. The distance grows by at most the sum of the tight rows'
multipliers times their margins, unless the nearest set has no inside at all (`c <= 0.4` and
`c >= 0.4`, and no number of the caller's type is 0.4): then the nearest set that has one is taken.
Equalities cannot have room: they hold within a few units in the last place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from gdpnet.rules.model import RuleModel
from gdpnet.solve._exact import engine_of
from gdpnet.solve._results import SOLVER_NAMES, Array, Options, Results
from gdpnet.solve.status import Status

_UNITS = 8.0
_ROUNDS = 4


def enforce(rules: RuleModel, yhat: Array, results: Results, options: Options) -> Array:
    """Make the results of a batch hold without tolerance, where that can be had.

    Args:
        rules: the rules.
        yhat: predictions, (B, d).
        results: of the exact engine; y is replaced by numbers of the caller's type.
        options: how to solve, `options.dtype` being the caller's type.

    Returns:
        Which samples hold strictly, (B,) bool.
    """
    if results.instance is None or results.solved is None:
        return np.zeros(len(yhat), dtype=bool)
    check = _Check(rules, results, options.dtype)
    answered = np.isin(results.status, (Status.SATISFIED, Status.PROJECTED)) & ~results.missing
    answered &= results.solver == SOLVER_NAMES.index("exact")
    strict = np.zeros(len(yhat), dtype=bool)
    samples = np.flatnonzero(answered)
    z = results.solved.z.copy()
    z[:, : yhat.shape[1]] = results.y
    holds, excess = check(samples, z[samples], results.assignment[samples])
    good = samples[holds]
    inside = check.rounded(z[good, : yhat.shape[1]])
    # A prediction beyond a bound by rounding was satisfied; it no longer passes unchanged.
    moved = (inside != yhat[good]).any(1)
    results.status[good[moved]] = Status.PROJECTED
    results.y[good] = inside
    strict[good] = True
    rest, excess, units = samples[~holds], excess[~holds], _UNITS
    from gdpnet.solve.exact import SOLVED

    engine = engine_of(rules)
    for _ in range(_ROUNDS):
        if not len(rest):
            break
        margin = np.maximum(units * check.eps * check.size(rest, z[rest]), 4.0 * excess)
        instance = results.instance.take(rest)
        bound = instance.bound - np.where(check.equality, 0.0, margin)
        tightened = replace(instance, bound=bound)
        solved = engine.project(tightened, yhat[rest], replace(options, tolerance=0.0))
        found = solved.status == SOLVED
        holds, excess = check(rest, solved.z, solved.assignment)
        good = found & holds
        where = rest[good]
        results.y[where] = check.rounded(solved.z[good, : yhat.shape[1]])
        results.assignment[where] = solved.assignment[good]
        results.status[where] = Status.PROJECTED
        strict[where] = True
        rest, excess = rest[found & ~holds], excess[found & ~holds]
        units *= 8.0
    return strict


class _Check:
    """Residuals on the numbers that the caller will see."""

    def __init__(self, rules: RuleModel, results: Results, dtype: torch.dtype) -> None:
        assert results.instance is not None
        self.rules, self.instance, self.dtype = rules, results.instance, dtype
        self.eps = float(torch.finfo(dtype).eps)
        self.equality = np.array([row.equality for row in rules.data.rows], dtype=bool)
        self.lower, self.upper = rules.lower.numpy(), rules.upper.numpy()
        self.true_rows = _incidence([b.true_rows for b in rules.data.booleans], len(self.equality))
        self.false_rows = _incidence(
            [b.false_rows for b in rules.data.booleans], len(self.equality)
        )
        self.several = np.array([len(row.terms) > 1 for row in rules.data.rows], dtype=bool)
        self.globals = np.zeros(len(self.equality), dtype=bool)
        self.globals[list(rules.data.global_rows)] = True

    def rounded(self, y: Array) -> Array:
        """Outputs as the caller gets them, within their bounds also after rounding."""
        cast = torch.from_numpy(y).to(self.dtype)
        inwards = torch.full_like(cast, float("inf"))
        low, high = torch.from_numpy(self.lower), torch.from_numpy(self.upper)
        cast = torch.where(cast.double() < low, torch.nextafter(cast, inwards), cast)
        cast = torch.where(cast.double() > high, torch.nextafter(cast, -inwards), cast)
        return cast.double().numpy()

    def size(self, samples: Array, z: Array) -> Array:
        """`|b| + sum |a_j z_j|` of each row, (samples, m)."""
        return np.abs(self.instance.bound[samples]) + self._product(samples, np.abs(z), np.abs)

    def __call__(self, samples: Array, z: Array, assignment: Array) -> tuple[Array, Array]:
        """Whether the rounded points hold, and by how much inequalities are exceeded."""
        z = z.copy()
        z[:, : len(self.lower)] = self.rounded(z[:, : len(self.lower)])
        excess = self._product(samples, z, np.asarray) - self.instance.bound[samples]
        enforced = self.globals | ((assignment == 1).astype(np.float64) @ self.true_rows > 0)
        enforced |= (assignment == -1).astype(np.float64) @ self.false_rows > 0
        size = self.size(samples, z)
        # A sum of several terms has room for the rounding of whoever adds it up in another order.
        room = np.where(self.several, -4.0 * np.finfo(np.float64).eps * size, 0.0)
        allowed = np.where(self.equality, 8.0 * self.eps * size, room)
        excess = np.where(self.equality, np.abs(excess), excess)
        broken = enforced & ~(excess <= allowed)
        outside = (z[:, : len(self.lower)] < self.lower) | (z[:, : len(self.lower)] > self.upper)
        exceeded = np.where(enforced & ~self.equality, np.maximum(excess - room, 0.0), 0.0)
        return ~(broken.any(1) | outside.any(1)), exceeded

    def _product(self, samples: Array, z: Array, of: Callable[[Array], Array]) -> Array:
        product = z @ of(self.rules.table.shared.numpy()).T
        varying = self.rules.table.varying.numpy()
        if len(varying):
            coefficients = of(self.instance.varying[samples])
            product[:, varying] = np.einsum("bkn,bn->bk", coefficients, z)
        return product


def _incidence(lists: list[tuple[int, ...]], rows: int) -> Array:
    matrix = np.zeros((len(lists), rows))
    for k, listed in enumerate(lists):
        matrix[k, list(listed)] = 1.0
    return matrix
