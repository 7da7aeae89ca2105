"""Tangents of convex rows: linear rows that all points satisfy that satisfy the convex one.

A certificate names where a row was touched, as rational numbers, and nothing else: the tangent is
computed anew from the rules, without rounding.

- The sum of `t_i^2` is at least `sum p_i (2 t_i - p_i)`, whatever p is.
- The root of the sum of `t_i^2` is at least `sum u_i t_i`, if the sum of `u_i^2` is at most 1.

Tangents of the other shapes are not rational.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from gdpnet.errors import RuleError
from gdpnet.ir.data import Row, RuleData, Shape
from gdpnet.proof._tree import Touch, as_fraction

Terms = list[tuple[int, Fraction]]
"""Column and coefficient."""

# u of a norm is shortened by this factor as often as rounding made it longer than 1.
_SHORTER = 1.0 - 2.0**-52


def refuse_irrational(data: RuleData) -> None:
    """Raise where a row has a shape whose tangents are not rational, naming the first."""
    for i in data.curved:
        for curve in data.rows[i].curves:
            if curve.shape not in (Shape.SQUARES, Shape.NORM):
                raise RuleError(
                    f"certify: Constraint '{data.rows[i].name}' has a curve of shape "
                    f"'{curve.shape.value}', whose tangents are not rational numbers; a "
                    "certificate knows linear rows, sums of squares and norms. Check the answer "
                    "with rules.satisfied, or write linear rows that bound it."
                )


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
            raise ValueError(f"row {tangent.row} has no rational tangents")
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
        points.append(tuple(_shortened(t) if curve.shape is Shape.NORM else t.tolist()))
    return Touch(index, tuple(points))


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
