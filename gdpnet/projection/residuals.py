"""Residuals on the numbers that the caller will see, with twice the digits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import fsum
from typing import NamedTuple

import numpy as np
import torch

from gdpnet.ir.compressed import Compressed
from gdpnet.ir.curves import Curves
from gdpnet.ir.data import Row, Shape
from gdpnet.ir.instance import Instance
from gdpnet.ir.rules import Rules
from gdpnet.solve.base import Array


class Residuals(NamedTuple):
    """What a check says of rounded points.

    Attributes:
        holds: (B,) bool.
        margin: by how much each row has to be tightened, (B, m).
        size: largest scaled violation, (B,).
        unequal: largest one of an equality, (B,).
    """

    holds: Array
    margin: Array
    size: Array
    unequal: Array


class ReturnedCheck:
    """Residuals on the numbers that the caller will see.

    Args:
        rules: the rules.
        instance: the rules of the batch.
        dtype: type of the caller.
        tolerance: scaled, within which a row holds.
        strict: inequalities hold without it, equalities within a few units in the last place.
    """

    def __init__(
        self,
        rules: Rules,
        instance: Instance,
        dtype: torch.dtype,
        tolerance: float,
        strict: bool = False,
    ) -> None:
        self.rules, self.instance, self.dtype = rules, instance, dtype
        self.tolerance, self.strict = tolerance, strict
        self.eps = float(torch.finfo(dtype).eps)
        fixed = rules.cache[_Fixed]
        self.equality, self.integer, self.whole = fixed.equality, fixed.integer, fixed.whole
        self.discrete, self.rational, self.curves = fixed.discrete, fixed.rational, fixed.curves
        self.lower, self.upper = rules.lower.numpy(), rules.upper.numpy()
        self._fixed = fixed

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

    def __call__(self, samples: Array, z: Array, assignment: Array) -> Residuals:
        """What rounded points break."""
        d = len(self.lower)
        bound = self.instance.bound[samples]
        excess = self._excess(samples, z)
        size = np.abs(bound) + self._size(samples, z)
        if self.curves is not None:
            added, moved = self.curves.with_size(excess, size)
            excess, size = excess + added, size + moved
        enforced = self.enforced(assignment)
        beyond = np.where(self.equality, np.abs(excess), np.maximum(excess, 0.0))
        beyond = np.where(enforced, beyond, 0.0)
        scale = self.scale(samples)
        scaled = beyond / scale
        y = z[:, :d]
        outside = np.maximum(self.lower - y, y - self.upper)
        # Auxiliaries are as the search left them, unless an equality was put right by one.
        beside = np.maximum(self._fixed.floor - z[:, d:], z[:, d:] - self._fixed.ceiling)
        beside = beside > self.tolerance * np.maximum(1.0, np.abs(z[:, d:]))
        if not self.strict:
            broken = scaled > self.tolerance
            allowed = self.tolerance * np.maximum(1.0, np.abs(np.clip(y, self.lower, self.upper)))
            holds = ~(broken.any(1) | (outside > allowed).any(1) | beside.any(1))
        else:
            few = np.minimum(8.0 * self.eps * size, self.tolerance * scale)
            allowed = np.where(self.equality, few, 0.0)
            broken = beyond > allowed
            # Close calls depend on the order in which terms are added up: decide them exactly.
            close = np.abs(excess) <= 4.0 * np.finfo(float).eps * size
            close &= enforced & ~self.equality & self.rational
            for s, i in zip(*np.nonzero(close), strict=True):
                broken[s, i] = self._breaks(int(samples[s]), int(i), z[s])
            holds = ~(broken.any(1) | (outside > 0.0).any(1) | beside.any(1))
        holds &= self._decided(samples, assignment)
        wanted = np.maximum(excess, 0.0) + 0.5 * self.eps * size
        loose = broken & ~self.equality & ~self.discrete
        worst = np.maximum(scaled.max(1, initial=0.0), outside.max(1, initial=0.0))
        unequal = np.where(self.equality, scaled, 0.0).max(1, initial=0.0)
        return Residuals(holds, np.where(loose, wanted, 0.0), worst, unequal)

    def mended(self, samples: Array, z: Array, assignment: Array) -> tuple[Array, Residuals]:
        """Rounded points with equalities put right where that helps, and what they break."""
        found = self(samples, z, assignment)
        wrong = np.flatnonzero(~found.holds)
        if not len(wrong) or not self.equality.any():
            return z, found
        balanced = self._balanced(samples[wrong], z[wrong], assignment[wrong])
        again = self(samples[wrong], balanced, assignment[wrong])
        # Inequalities that it breaks can be tightened, equalities cannot.
        better = again.holds | (again.unequal < found.unequal[wrong])
        place = wrong[better]
        z = z.copy()
        z[place] = balanced[better]
        for before, after in zip(found, again, strict=True):
            before[place] = after[better]
        return z, found

    def _balanced(self, samples: Array, z: Array, assignment: Array) -> Array:
        """Points whose enforced equalities hold exactly, as far as the caller's type allows."""
        d = len(self.lower)
        enforced = self.enforced(assignment) & self.equality
        equalities = np.flatnonzero(enforced.any(0))
        matrix = self._coefficients(samples, equalities)  # (B, equalities, n)
        size = np.abs(self.instance.bound[samples][:, equalities])
        size = np.maximum(size, (np.abs(matrix) * np.abs(z)[:, None]).sum(2))
        largest = np.where(enforced[:, equalities], size, 0.0).max(1, initial=0.0)
        grid = np.where(largest > 0.0, np.ldexp(self.eps, np.frexp(largest)[1]), 1.0)[:, None]
        touched = (np.abs(matrix) * enforced[:, equalities, None]).any(1)
        touched[:, :d] &= ~self.integer
        touched[:, d:] = False
        z = np.where(touched, np.rint(z / grid) * grid + 0.0, z)
        used = np.zeros(z.shape, dtype=bool)
        for k, row in enumerate(equalities.tolist()):
            own = np.flatnonzero(enforced[:, row])
            pivot = self._pivots(matrix[own, k], used[own], matrix[own])
            known = pivot >= 0
            own, pivot = own[known], pivot[known]
            a = matrix[own, k]
            here = np.arange(len(own)), pivot
            rest = (a * z[own]).sum(1) - a[here] * z[own, pivot]
            value = (self.instance.bound[samples[own], row] - rest) / a[here]
            rounded = torch.from_numpy(value).to(self.dtype).double().numpy()
            z[own, pivot] = np.where(pivot < d, rounded, value) + 0.0  # no minus zero
            used[own, pivot] = True
        return z

    def _pivots(self, a: Array, used: Array, matrix: Array) -> Array:
        """The column of an equality that is computed from the others, (B,); -1 where none can be.

        One with a power of two in front of it that stands in few other equalities, else an
        auxiliary, which is not rounded.
        """
        d = len(self.lower)
        allowed = (a != 0.0) & ~used
        allowed[:, :d] &= ~self.integer
        allowed[:, d:] &= ~self.whole[d:]
        others = (matrix != 0.0).sum(1)
        exact = np.frexp(np.abs(a))[0] == 0.5
        cost = others + 100.0 * ~exact
        cost[:, d:] = 50.0
        cost = np.where(allowed, cost, np.inf)
        best = cost.argmin(1)
        return np.where(np.isfinite(cost.min(1)), best, -1)

    def _coefficients(self, samples: Array, rows: Array) -> Array:
        """Coefficients of some rows, (B, rows, n)."""
        shared = self.rules.table.entries.take(rows).dense()
        matrix = np.broadcast_to(shared, (len(samples), *shared.shape)).copy()
        varying = self.rules.table.varying.tolist()
        for k, row in enumerate(rows.tolist()):
            if row in varying:
                matrix[:, k] = self.instance.varying[samples, varying.index(row)]
        return matrix

    def scale(self, samples: Array) -> Array:
        """What tolerances of rows are relative to, (B, m)."""
        return self.instance.take(samples).scale(self.rules.table)

    def enforced(self, assignment: Array) -> Array:
        """Rows that must hold at points with these truth values, (B, m) bool."""
        fixed = self._fixed
        rows = fixed.globals | (fixed.true_rows.times((assignment == 1).astype(float)) > 0)
        return np.asarray(rows | (fixed.false_rows.times((assignment == -1).astype(float)) > 0))

    def _decided(self, samples: Array, assignment: Array) -> Array:
        """Whether every clause that applies has a true literal: else rows were not looked at."""
        fixed = self._fixed
        true = fixed.positive.times((assignment == 1).astype(float))
        true += fixed.negative.times((assignment == -1).astype(float))
        required = self.instance.active[samples].copy()
        nested = fixed.guard >= 0
        required[:, nested] &= assignment[:, fixed.guard[nested]] == 1
        return ~(required & (true == 0.0)).any(1)

    def _breaks(self, sample: int, row: int, z: Array) -> bool:
        """Whether a row is broken in exact arithmetic, or when added up in either order.

        Args:
            sample: index of the sample.
            row: one of the `rational` ones.
            z: values of all columns.
        """
        curves = self.rules.data.rows[row].curves
        if curves:
            linear, squares = self._exactly(sample, row, z)
            if curves[0].shape is Shape.NORM:
                return linear > 0 or Fraction(curves[0].weight) ** 2 * squares[0] > linear**2
            weighted = (Fraction(c.weight) * s for c, s in zip(curves, squares, strict=True))
            return linear + sum(weighted, Fraction(0)) > 0
        terms = [(j, self._coefficient(sample, row, j)) for j, _ in self.rules.data.rows[row].terms]
        bound = float(self.instance.bound[sample, row])
        exact = sum((Fraction(a) * Fraction(float(z[j])) for j, a in terms), Fraction(0))
        forward = sum(a * float(z[j]) for j, a in terms)
        backward = sum(a * float(z[j]) for j, a in reversed(terms))
        return exact > Fraction(bound) or max(forward, backward) > bound

    def _exactly(self, sample: int, row: int, z: Array) -> tuple[Fraction, list[Fraction]]:
        """`a z - b` of a row, and the squared arguments of each of its curves, without rounding."""
        source = self.rules.data.rows[row]
        total = -Fraction(float(self.instance.bound[sample, row]))
        for j, _ in source.terms:
            total += Fraction(self._coefficient(sample, row, j)) * Fraction(float(z[j]))
        squares = [
            sum((self._exactly(sample, i, z)[0] ** 2 for i in curve.arguments), Fraction(0))
            for curve in source.curves
        ]
        return total, squares

    def _coefficient(self, sample: int, row: int, column: int) -> float:
        varying = self.rules.table.varying.tolist()
        if row in varying:
            return float(self.instance.varying[sample, varying.index(row), column])
        return dict(self.rules.data.rows[row].terms)[column].number

    def _excess(self, samples: Array, z: Array) -> Array:
        """`a z - b` of each row as if it had been computed with twice the digits."""
        table = self.rules.table
        excess = np.empty((len(z), len(self.equality)))
        varying = table.varying.numpy()
        constant = np.ones(len(self.equality), dtype=bool)
        constant[varying] = False
        bound = self.instance.bound[samples]
        if table.coefficients.small:
            shared = table.shared.numpy()[constant]
            excess[:, constant] = _compensated(shared[None], z, bound[:, constant])
        else:
            rows = table.entries.take(np.flatnonzero(constant))
            for s, point in enumerate(z):
                excess[s, constant] = _exact_sums(rows, point, bound[s, constant])
        if len(varying):
            own = self.instance.varying[samples]
            excess[:, varying] = _compensated(own, z, bound[:, varying])
        return excess

    def _size(self, samples: Array, z: Array) -> Array:
        """`sum |a z|` of each row, (B, m)."""
        size = self._fixed.sizes.times(np.abs(z))
        varying = self.rules.table.varying.numpy()
        if len(varying):
            coefficients = np.abs(self.instance.varying[samples])
            size[:, varying] = np.einsum("bkn,bn->bk", coefficients, np.abs(z))
        return size


class _Fixed:
    """What a check needs of rules whatever the batch is."""

    def __init__(self, rules: Rules) -> None:
        data, entries = rules.data, rules.table.entries
        self.equality = np.array([row.equality for row in data.rows], dtype=bool)
        self.integer = np.array([c.integer for c in data.columns[: data.outputs]], dtype=bool)
        # A row of whole numbers either holds or does not; there is no rounding in it.
        self.whole = np.array([c.integer for c in data.columns], dtype=bool)
        self.discrete = np.array(
            [self.whole[data.columns_in(i)].all() for i in range(len(data.rows))], dtype=bool
        )
        self.curves = Curves(data.rows) if data.curved else None
        self.rational = np.array([_is_rational(row) for row in data.rows], dtype=bool)
        auxiliaries = data.columns[data.outputs :]
        self.floor = np.array([column.lower for column in auxiliaries])
        self.ceiling = np.array([column.upper for column in auxiliaries])
        self.sizes = replace(entries, value=np.abs(entries.value))
        rows, booleans = len(data.rows), len(data.booleans)
        self.true_rows = _naming([b.true_rows for b in data.booleans], rows)
        self.false_rows = _naming([b.false_rows for b in data.booleans], rows)
        self.globals = np.zeros(rows, dtype=bool)
        self.globals[list(data.global_rows)] = True
        literals = [clause.literals for clause in data.clauses]
        self.positive = _named([[k - 1 for k in c if k > 0] for c in literals], booleans)
        self.negative = _named([[-k - 1 for k in c if k < 0] for c in literals], booleans)
        self.guard = np.array([clause.guard for clause in data.clauses], dtype=np.int64)


def _is_rational(row: Row) -> bool:
    """Whether exact arithmetic tells if a row holds: with squares, or one norm; no exponential."""
    shapes = [curve.shape for curve in row.curves]
    return shapes == [Shape.NORM] or all(shape is Shape.SQUARES for shape in shapes)


def _compensated(matrix: Array, z: Array, bound: Array) -> Array:
    """`matrix z - bound` with the rounding errors of all products and sums added at the end.

    Args:
        matrix: (1 or B, m, n).
        z: (B, n).
        bound: (B, m).
    """
    total, lost = -bound, np.zeros(bound.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        for j in np.flatnonzero(matrix.any((0, 1))).tolist():
            product, missing = _two_parts(matrix[:, :, j], z[:, j, None])
            lost += missing
            after = total + product
            back = after - total
            lost += (total - (after - back)) + (product - back)
            total = after
        found = total + lost
    # Beyond what can be added up nothing holds.
    return np.where(np.isfinite(found), found, np.inf)


def _exact_sums(rows: Compressed, z: Array, bound: Array) -> Array:
    """The same for rows of a large table and one point, `m`: sums are rounded once."""
    with np.errstate(over="ignore", invalid="ignore"):
        parts = np.stack(_two_parts(rows.value, z[rows.column]), 1).ravel()
    if not np.isfinite(parts).all():
        return np.where(np.isfinite(rows.times(z)), rows.times(z) - bound, np.inf)
    numbers, start = parts.tolist(), (2 * rows.start).tolist()
    sums = [fsum((*numbers[start[i] : start[i + 1]], -b)) for i, b in enumerate(bound.tolist())]
    return np.array(sums)


def _two_parts(a: Array, x: Array) -> tuple[Array, Array]:
    """A product as it is rounded, and what rounding left out."""
    product = a * x
    a_high, x_high = _upper_half(a), _upper_half(x)
    a_low, x_low = a - a_high, x - x_high
    missing = a_low * x_low - (((product - a_high * x_high) - a_low * x_high) - a_high * x_low)
    return product, missing


def _upper_half(number: Array) -> Array:
    """A number with the upper half of its digits, so that products of two such are exact."""
    scaled = 134217729.0 * number
    return np.asarray(scaled - (scaled - number))


def _named(lists: Sequence[Sequence[int]], count: int) -> Compressed:
    """1 where a list (row) names one of some things (column)."""
    start = np.cumsum([0, *map(len, lists)])
    column = np.array([k for listed in lists for k in listed], dtype=np.int64)
    return Compressed(start, column, np.ones(len(column)), count)


def _naming(lists: Sequence[Sequence[int]], count: int) -> Compressed:
    """1 where one of some things (row) is named by a list (column)."""
    turned: list[list[int]] = [[] for _ in range(count)]
    for k, listed in enumerate(lists):
        for i in listed:
            turned[i].append(k)
    return _named(turned, len(lists))
