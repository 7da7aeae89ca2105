"""strict=True: rows hold without any tolerance on the y that the caller gets.

A point on the boundary of a row, rounded to the caller's type, may lie a hair beyond it. Where that
happens the sample is projected again with the rows that were broken tightened by what they were
broken, and half a unit in the last place of their terms,

    eps / 2 (|b| + sum |a_j y_j|),

until the rounded point holds. The distance grows by at most the sum of the tight rows' multipliers
times these margins, unless the nearest set has no inside at all (`c <= 0.4` and `c >= 0.4`, and no
number of the caller's type is 0.4): then the nearest set that has one is taken. Equalities cannot
have room: they hold within a few units in the last place. Rows of whole numbers are not tightened.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import torch

from gdpnet.rules.model import RuleModel
from gdpnet.solve._exact import engine_of
from gdpnet.solve._results import SOLVER_NAMES, Array, Options, Results
from gdpnet.solve.status import Status

_ROUNDS = 8


def enforce(rules: RuleModel, yhat: Array, results: Results, options: Options) -> Array:
    """Make the results of a batch hold without tolerance, where that can be had.

    Args:
        rules: the rules.
        yhat: predictions, (B, d).
        results: of the exact engine; y becomes numbers of the caller's type.
        options: how to solve, `options.dtype` being the caller's type.

    Returns:
        Which samples hold strictly, (B,) bool.
    """
    strict = np.zeros(len(yhat), dtype=bool)
    if results.instance is None or results.solved is None:
        return strict
    from gdpnet.solve.exact import ACCEPTED_AS_IS, SOLVED

    d = yhat.shape[1]
    check = _Check(rules, results, options.dtype)
    answered = np.isin(results.status, (Status.SATISFIED, Status.PROJECTED)) & ~results.missing
    answered &= results.solver == SOLVER_NAMES.index("exact")
    rest = np.flatnonzero(answered)
    z, assignment = results.solved.z[rest].copy(), results.assignment[rest]
    z[:, :d] = results.y[rest]
    value = results.value[rest]
    margin = np.zeros((len(rest), len(rules.data.rows)))
    engine = engine_of(rules)
    results.y = results.y.copy()
    for _ in range(_ROUNDS + 1):
        inside = check.rounded(z)
        holds, excess = check(rest, inside, assignment)
        good = rest[holds]
        results.y[good] = inside[holds, :d]
        results.assignment[good] = assignment[holds]
        results.value[good] = value[holds]
        moved = (inside[holds, :d] != yhat[good]).any(1)
        results.status[good[moved]] = Status.PROJECTED
        strict[good] = True
        rest, margin = rest[~holds], margin[~holds] + excess[~holds]
        if not len(rest):
            break
        instance = results.instance.take(rest)
        tightened = instance._replace(bound=instance.bound - margin)
        solved = engine.project(tightened, yhat[rest], options._replace(tolerance=0.0))
        found = (solved.status == SOLVED) | (solved.status == ACCEPTED_AS_IS)
        rest, margin = rest[found], margin[found]
        z, assignment, value = solved.z[found], solved.assignment[found], solved.distance[found]
    return strict


class _Check:
    """Residuals on the numbers that the caller will see."""

    def __init__(self, rules: RuleModel, results: Results, dtype: torch.dtype) -> None:
        assert results.instance is not None
        data = rules.data
        self.rules, self.instance, self.dtype = rules, results.instance, dtype
        self.eps = float(torch.finfo(dtype).eps)
        self.equality = np.array([row.equality for row in data.rows], dtype=bool)
        self.integer = np.array([c.integer for c in data.columns[: data.outputs]], dtype=bool)
        # A row of whole numbers either holds or does not; there is no rounding in it.
        whole = np.array([c.integer for c in data.columns], dtype=bool)
        self.discrete = np.array(
            [all(whole[j] for j, _ in row.terms) for row in data.rows], dtype=bool
        )
        self.lower, self.upper = rules.lower.numpy(), rules.upper.numpy()
        rows = len(self.equality)
        self.true_rows = _incidence([b.true_rows for b in data.booleans], rows)
        self.false_rows = _incidence([b.false_rows for b in data.booleans], rows)
        self.globals = np.zeros(rows, dtype=bool)
        self.globals[list(data.global_rows)] = True

    def rounded(self, z: Array) -> Array:
        """Points with the outputs as the caller gets them: whole where they must be, in bounds."""
        d = len(self.lower)
        y = np.where(self.integer, np.rint(z[:, :d]), z[:, :d])
        cast = torch.from_numpy(y).to(self.dtype)
        infinity = torch.full_like(cast, float("inf"))
        low, high = torch.from_numpy(self.lower), torch.from_numpy(self.upper)
        cast = torch.where(cast.double() < low, torch.nextafter(cast, infinity), cast)
        cast = torch.where(cast.double() > high, torch.nextafter(cast, -infinity), cast)
        return np.concatenate([cast.double().numpy(), z[:, d:]], 1)

    def __call__(self, samples: Array, z: Array, assignment: Array) -> tuple[Array, Array]:
        """Whether rounded points hold, and by how much each row has to be tightened."""
        d = len(self.lower)
        excess = self._product(samples, z, np.asarray) - self.instance.bound[samples]
        size = np.abs(self.instance.bound[samples]) + self._product(samples, np.abs(z), np.abs)
        enforced = self.globals | ((assignment == 1).astype(np.float64) @ self.true_rows > 0)
        enforced |= (assignment == -1).astype(np.float64) @ self.false_rows > 0
        broken = enforced & (
            np.where(self.equality, np.abs(excess) > 8.0 * self.eps * size, excess > 0.0)
        )
        # Close calls depend on the order in which terms are added up: decide them exactly.
        close = enforced & ~self.equality & (np.abs(excess) <= 4.0 * np.finfo(float).eps * size)
        for s, i in zip(*np.nonzero(close), strict=True):
            broken[s, i] = self._breaks(int(samples[s]), int(i), z[s])
        y = z[:, :d]
        outside = (y < self.lower) | (y > self.upper)
        holds = ~(broken.any(1) | outside.any(1))
        wanted = np.maximum(excess, 0.0) + 0.5 * self.eps * size
        loose = ~self.equality & ~self.discrete
        return holds, np.where(broken & loose, wanted, 0.0)

    def _breaks(self, sample: int, row: int, z: Array) -> bool:
        """Whether a row is broken in exact arithmetic, or when added up in either order."""
        terms = [(j, self._coefficient(sample, row, j)) for j, _ in self.rules.data.rows[row].terms]
        bound = float(self.instance.bound[sample, row])
        exact = sum((Fraction(a) * Fraction(float(z[j])) for j, a in terms), Fraction(0))
        forward = sum(a * float(z[j]) for j, a in terms)
        backward = sum(a * float(z[j]) for j, a in reversed(terms))
        return exact > Fraction(bound) or max(forward, backward) > bound

    def _coefficient(self, sample: int, row: int, column: int) -> float:
        varying = self.rules.table.varying.tolist()
        if row in varying:
            return float(self.instance.varying[sample, varying.index(row), column])
        return float(self.rules.table.shared[row, column])

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
