"""Lower bounds of linear programs that multipliers prove, whoever found these.

Whatever the multipliers of rows are, the rows times them bound the cost from below over the
columns' bounds, column by column (weak duality). A solver that lost its digits between nearly
parallel rows may call a point optimal that is far from it: its multipliers do not prove its value
then. The sums are exact but for their last digit, and what that may be is left out of the bound.
"""

from __future__ import annotations

from itertools import pairwise
from math import fsum, inf, nextafter

import numpy as np

from gdpnet.lp.program import SparseLinearProgram

Array = np.ndarray

LOST = 1e-9
"""Of a value: less that is not proved is rounding, relative to max(1, value)."""

LARGE = 1e3
"""Multipliers below this lose no more than solvers' tolerances times it."""

_EPS = float(np.finfo(float).eps)
_SWEEPS = 8
_HALF = 2.0**27 + 1.0


def is_proved(bound: float, value: float) -> bool:
    """Whether a value is no more than what a bound proves."""
    return bound >= value - LOST * max(1.0, abs(value))


def proved(program: SparseLinearProgram, multipliers: Array) -> float:
    """The lower bound of a program's value that multipliers of its rows prove, maybe -inf.

    Args:
        program: the program; bounds that columns lack are taken from its rows.
        multipliers: change of the value with the right side of each row, `rows`.
    """
    lower, upper = implied(program)
    side = np.where(multipliers > 0.0, program.row_lower, program.row_upper)
    used = np.where(np.isfinite(side), multipliers, 0.0)  # of a sign that its row cannot have
    side = np.where(used != 0.0, side, 0.0)
    product, lost = _product(-used[program.row], program.value)
    order = np.argsort(program.column, kind="stable")
    ends = np.searchsorted(program.column[order], np.arange(len(program.cost) + 1))
    rate = program.cost.copy()
    for j, (first, last) in enumerate(pairwise(ends.tolist())):
        own = order[first:last]
        rate[j] = fsum([rate[j], *product[own].tolist(), *lost[own].tolist()])
    at = np.where(rate > 0.0, lower, upper)
    if not np.isfinite(at[rate != 0.0]).all():
        return -np.inf
    at = np.where(rate != 0.0, at, 0.0)
    terms = [*_product(used, side), *_product(rate, at)]
    bound = fsum(np.concatenate(terms).tolist()) - _EPS * fsum(np.abs(rate * at).tolist())
    return nextafter(nextafter(bound, -inf), -inf)


def implied(program: SparseLinearProgram) -> tuple[Array, Array]:
    """Bounds of the columns, where there are none those that rows and other bounds imply."""
    lower, upper = program.lower.copy(), program.upper.copy()
    owner, column, a = program.row, program.column, program.value
    rows = len(program.row_lower)
    for _ in range(_SWEEPS):
        missing = ~(np.isfinite(lower) & np.isfinite(upper))
        if not (missing[column] & (a != 0.0)).any():
            break
        found = False
        for sign, side in ((1.0, program.row_upper), (-1.0, program.row_lower)):
            # sign a z <= sign side: what the least of all other terms leaves of it.
            b = sign * a
            least = np.where(b > 0.0, b * _finite(lower, column), b * _finite(upper, column))
            open_ = np.where(b > 0.0, np.isinf(lower[column]), np.isinf(upper[column])) & (b != 0.0)
            count = np.bincount(owner, open_, rows)
            total = np.bincount(owner, least, rows)
            terms = np.bincount(owner, np.abs(least), rows)
            usable = missing[column] & (b != 0.0) & np.isfinite(side[owner])
            usable &= count[owner] - open_ == 0.0
            e = np.flatnonzero(usable)
            i, j = owner[e], column[e]
            room = sign * side[i] - (total[i] - least[e])
            room += len(a) * _EPS * (terms[i] + np.abs(side[i]))
            bound = room / b[e]
            wide = np.where(b[e] > 0.0, 1.0, -1.0) * _EPS * np.abs(bound) + bound
            for up, into in ((True, upper), (False, lower)):
                own = (b[e] > 0.0) == up
                new = np.full(len(into), np.inf if up else -np.inf)
                (np.minimum if up else np.maximum).at(new, j[own], wide[own])
                better = np.isinf(into) & np.isfinite(new)
                into[better] = new[better]
                found |= bool(better.any())
        if not found:
            break
    return lower, upper


def _finite(bound: Array, column: Array) -> Array:
    return np.where(np.isfinite(bound), bound, 0.0)[column]


def _product(x: Array, y: Array) -> tuple[Array, Array]:
    """Products and what they lose by rounding (Dekker's, by halves)."""
    product = x * y
    a, c = _upper_half(x), _upper_half(y)
    b, d = x - a, y - c
    return product, ((a * c - product) + a * d + b * c) + b * d


def _upper_half(x: Array) -> Array:
    wide = _HALF * x
    return wide - (wide - x)
