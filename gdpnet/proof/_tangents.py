"""Tangents of convex rows: linear rows that all points satisfy that satisfy the convex one.

A certificate names where a row was touched, as rational numbers, and nothing else: the tangent is
computed anew from the rules, without rounding.

- The sum of `t_i^2` is at least `sum p_i (2 t_i - p_i)`, whatever p is.
- The root of the sum of `t_i^2` is at least `sum u_i t_i`, if the sum of `u_i^2` is at most 1.
- An exponential, a logarithm or a power f is at least `c + s t`, where s is its slope at some t and
  c is not above the least of `f(t) - s t` over the domain of f. That is irrational; a rational
  number a little below it is computed with bounds that are rounded outwards. What is touched is
  named by s.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from gdpnet.ir.data import Curve, Row, RuleData, Shape
from gdpnet.proof._bounds import exp_bounds, log_bounds
from gdpnet.proof._tree import Touch, as_fraction

Terms = list[tuple[int, Fraction]]
"""Column and coefficient."""

# u of a norm is shortened by this factor as often as rounding made it longer than 1.
_SHORTER = 1.0 - 2.0**-52
# Curves that are steep without end at 0 are touched no nearer to it.
_INNERMOST = 1e-9
_LARGEST_LOGARITHM = 1000


def tangent_row(
    data: RuleData, rows: Sequence[Terms], bounds: Sequence[Fraction], tangent: Touch
) -> tuple[Terms, Fraction, Fraction]:
    """Terms and right side of a tangent, and what both were multiplied with.

    That is a power of two, such that the largest coefficient is about 1: where a sum of squares
    is nearly 0 it is flat, and its tangents would be lost in the tolerances of solvers.

    Raises:
        ValueError: it is none.

    Args:
        data: the rules.
        rows: terms of each row at x.
        bounds: right side of each row at x.
        tangent: not to be trusted.
    """
    curves = data.rows[tangent.row].curves
    if not curves:
        raise ValueError(f"row {tangent.row} is linear and has no tangents")
    if len(tangent.points) != len(curves):
        raise ValueError(f"row {tangent.row} has {len(curves)} curves, not {len(tangent.points)}")
    slopes = dict(rows[tangent.row])
    right = bounds[tangent.row]
    for curve, given in zip(curves, tangent.points, strict=True):
        if len(given) != len(curve.arguments):
            raise ValueError(f"row {tangent.row} is touched at {len(given)} numbers")
        point = [as_fraction(v) for v in given]
        squares = sum((p * p for p in point), Fraction(0))
        weight = Fraction(curve.weight)
        if curve.shape is Shape.SQUARES:
            factors = [2 * weight * p for p in point]
            right += weight * squares
        elif curve.shape is Shape.NORM:
            if squares > 1:
                raise ValueError(f"the direction that touches row {tangent.row} is longer than 1")
            factors = [weight * p for p in point]
        else:
            factors = [weight * point[0]]
            right -= weight * _least_above_line(curve, point[0])
        for factor, argument in zip(factors, curve.arguments, strict=True):
            right += factor * bounds[argument]
            for j, a in rows[argument]:
                slopes[j] = slopes.get(j, Fraction(0)) + factor * a
    unit = _unit(max(map(abs, slopes.values()), default=Fraction(0)))
    return [(j, unit * a) for j, a in sorted(slopes.items()) if a], unit * right, unit


def _unit(size: Fraction) -> Fraction:
    """The power of two that brings a size between 1/2 and 2; 1 for 0."""
    power = size.numerator.bit_length() - size.denominator.bit_length() if size else 0
    return Fraction(1, 2**power) if power >= 0 else Fraction(2**-power)


def touching(row: Row, index: int, values: np.ndarray) -> Touch:
    """The tangent of a row at a point.

    Args:
        row: the row.
        index: its place.
        values: `a z - b` of all rows at the point, `rows`.
    """
    points = []
    for curve in row.curves:
        t = values[list(curve.arguments)]
        if curve.shape is Shape.NORM:
            points.append(tuple(_shortened(t)))
        elif curve.shape is Shape.SQUARES:
            points.append(tuple(t.tolist()))
        else:
            points.append((_slope(curve, float(t[0])),))
    return Touch(index, tuple(points))


def _least_above_line(curve: Curve, slope: Fraction) -> Fraction:
    """A number not above the least of `f(t) - slope t` over the domain of an unweighted curve.

    Raises:
        ValueError: there is none, or none that is known.
    """
    if curve.shape is Shape.EXP:
        if slope < 0:
            raise ValueError("an exponential has no falling tangents")
        return slope * (1 - log_bounds(slope)[1]) if slope else Fraction(0)
    if curve.shape is Shape.LOG:
        if slope >= 0:
            raise ValueError("minus a logarithm has no rising tangents")
        return 1 + log_bounds(-slope)[0]
    power, even = Fraction(curve.exponent), curve.exponent % 2.0 == 0.0 and curve.exponent > 0.0
    if even:
        slope = abs(slope)
    if power > 1 and slope <= 0:
        return Fraction(0)  # a power above 1 is not negative, nor is its base
    if power < 1 and slope >= 0:
        if slope > 0 or power > 0:
            raise ValueError("a power below 1 has no such tangents")
        return Fraction(0)
    # It is touched at t = (slope / factor)^(1 / (power - 1)), where f - slope t is as below.
    factor = -power if 0 < power < 1 else power
    low, high = log_bounds(slope / factor)
    ends = sorted((low / (power - 1), high / (power - 1)))
    if max(map(abs, ends)) > _LARGEST_LOGARITHM:
        raise ValueError("a power is touched too far away, or too near to 0")
    t = exp_bounds((ends[0], ends[1]))
    share = slope * (1 / power - 1)
    return share * (t[0] if share > 0 else t[1])


def _slope(curve: Curve, t: float) -> float:
    """Of a tangent at t, or near to it where there is none."""
    if curve.shape is Shape.EXP:
        return math.exp(min(t, 300.0))
    falls = curve.shape is Shape.LOG or curve.exponent < 1.0
    t = max(t, _INNERMOST) if falls else t
    if curve.shape is Shape.LOG:
        return -1.0 / t
    power = curve.exponent
    if not falls and power % 2.0 != 0.0:
        t = max(t, 0.0)
    return (-power if 0.0 < power < 1.0 else power) * t ** (power - 1.0)


def _shortened(t: np.ndarray) -> list[float]:
    """The direction of t, at most 1 long without rounding; 0 for 0."""
    size = float(np.abs(t).max())
    if size == 0.0:
        return [0.0] * len(t)
    unit = t / size
    u = unit / float(np.sqrt(unit @ unit))
    while sum(Fraction(v) ** 2 for v in u.tolist()) > 1:
        u = u * _SHORTER
    found: list[float] = u.tolist()
    return found
