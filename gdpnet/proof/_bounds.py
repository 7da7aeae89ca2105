"""Bounds of logarithms and exponentials in rational numbers, rounded outwards.

Sums of series in whole multiples of 2^-128, every step rounded down for the lower bound and up for
the upper one; what is left of a series is bounded by its next term.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil, floor

Bounds = tuple[Fraction, Fraction]
"""Not above, and not below."""

_BITS = 128
_ONE = 1 << _BITS


def log_bounds(q: Fraction) -> Bounds:
    """Bounds of the logarithm of a positive number.

    Example:
        >>> from fractions import Fraction
        >>> from gdpnet.proof._bounds import log_bounds
        >>> low, high = log_bounds(Fraction(10))
        >>> float(low), high - low < Fraction(1, 10**30)
        (2.302585092994046, True)
    """
    if q <= 0:
        raise ValueError("a logarithm of what is not positive")
    power = q.numerator.bit_length() - q.denominator.bit_length()
    rest = q / Fraction(2) ** power  # between 1/2 and 2
    low, high = _twice_artanh((rest - 1) / (rest + 1))
    two = _log_two()
    ends = sorted((power * two[0], power * two[1]))
    return ends[0] + low, ends[1] + high


@lru_cache(maxsize=1)
def _log_two() -> Bounds:
    return _twice_artanh(Fraction(1, 3))


def _twice_artanh(u: Fraction) -> Bounds:
    """Bounds of `2 artanh(u)`, the sum of `2 u^(2i + 1) / (2i + 1)`, for |u| <= 1/3."""
    if u < 0:
        low, high = _twice_artanh(-u)
        return -high, -low
    down, up = floor(u * _ONE), ceil(u * _ONE)
    below, above, term, last, i = 0, 0, down, up, 1
    while last > 1:
        below += term // i
        above -= -last // i
        term = term * down * down >> 2 * _BITS
        last = -(-last * up * up >> 2 * _BITS)
        i += 2
    return Fraction(2 * below, _ONE), Fraction(2 * (above + 2), _ONE)


def exp_bounds(x: Bounds) -> Bounds:
    """Bounds of e to the power of what lies between two numbers.

    Example:
        >>> from fractions import Fraction
        >>> from gdpnet.proof._bounds import exp_bounds
        >>> low, high = exp_bounds((Fraction(1), Fraction(1)))
        >>> float(low), high - low < Fraction(1, 10**30)
        (2.718281828459045, True)
    """
    low, high = x
    return _exp_end(low, 0), _exp_end(high, 1)


def _exp_end(x: Fraction, side: int) -> Fraction:
    """A bound of e^x: not above it (0) or not below it (1)."""
    two = _log_two()
    power = floor(x / two[0])
    # What is left of the exponent is not negative, or as good as 0.
    rest = x - power * two[1 - side if power >= 0 else side]
    part = max(floor(rest * _ONE), 0) if side == 0 else max(ceil(rest * _ONE), 0)
    total, term, i = 0, _ONE, 0
    while term > 1:
        total += term
        i += 1
        term = term * part // (i * _ONE) if side == 0 else -(-term * part // (i * _ONE))
    total += 4 * side  # more than the rest of the series
    return Fraction(total, _ONE) * Fraction(2) ** power
