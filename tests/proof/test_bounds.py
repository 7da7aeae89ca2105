"""Bounds of logarithms, exponentials and tangents, against more digits than they have."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from gdpnet.ir.data import Curve, Shape
from gdpnet.proof._bounds import exp_bounds, log_bounds
from gdpnet.proof._tangents import _least_above_line, _slope

mpmath = pytest.importorskip("mpmath")

NARROW = Fraction(1, 10**30)


@pytest.fixture(autouse=True)
def _digits() -> None:
    mpmath.mp.dps = 80


def number(q: Fraction):
    return mpmath.mpf(q.numerator) / q.denominator


def test_logarithms_lie_between_their_bounds() -> None:
    rng = np.random.default_rng(0)
    drawn = [Fraction(float(10.0**e)) for e in rng.uniform(-30, 30, 300)]
    for q in [*drawn, *map(Fraction, (1, 2, 3, 0.5, 0.75, 1.5, 1e-300, 1e300)), Fraction(1, 3)]:
        low, high = log_bounds(q)
        assert number(low) <= mpmath.log(number(q)) <= number(high)
        assert high - low < NARROW
    with pytest.raises(ValueError, match="not positive"):
        log_bounds(Fraction(0))


def test_exponentials_lie_between_their_bounds() -> None:
    rng = np.random.default_rng(1)
    drawn = [Fraction(float(x)) for x in rng.uniform(-300, 300, 300)]
    for x in [*drawn, *map(Fraction, (0, 1, -1, 1e-20, -1e-20, 700)), Fraction(1, 3)]:
        low, high = exp_bounds((x, x))
        assert number(low) <= mpmath.exp(number(x)) <= number(high)
        assert high - low < NARROW * max(high, 1)


@pytest.mark.parametrize("exponent", [-2.0, -1.0, -0.3, 0.3, 0.5, 1.5, 2.7, 3.0, 4.0])
def test_powers_are_above_their_tangents(exponent: float) -> None:
    _check(Curve(Shape.POWER, 1.0, (0,), exponent), exponent in (4.0,))


@pytest.mark.parametrize("shape", [Shape.EXP, Shape.LOG])
def test_exponentials_and_logarithms_are_above_their_tangents(shape: Shape) -> None:
    _check(Curve(shape, 1.0, (0,)), shape is Shape.EXP)


def _check(curve: Curve, everywhere: bool) -> None:
    """Below the function on a grid, and as good as equal where it is touched."""
    rng = np.random.default_rng(2)
    ends = (-20.0, 20.0) if everywhere else (1e-6, 20.0)
    grid = [mpmath.mpf(float(t)) for t in np.linspace(*ends, 101)]
    for at in rng.uniform(*ends, 20).tolist():
        slope = Fraction(_slope(curve, at))
        least = number(_least_above_line(curve, slope))
        s = number(slope)
        assert all(_value(curve, t) >= least + s * t for t in grid)
        at = mpmath.mpf(at)
        assert abs(_value(curve, at) - least - s * at) <= 1e-14 * max(1, abs(_value(curve, at)))


def _value(curve: Curve, t):
    if curve.shape is Shape.EXP:
        return mpmath.exp(t)
    if curve.shape is Shape.LOG:
        return -mpmath.log(t)
    power = mpmath.mpf(curve.exponent)
    return (-1 if 0 < curve.exponent < 1 else 1) * abs(t) ** power


@pytest.mark.parametrize(
    ("curve", "slope"),
    [
        (Curve(Shape.EXP, 1.0, (0,)), -1),
        (Curve(Shape.LOG, 1.0, (0,)), 1),
        (Curve(Shape.LOG, 1.0, (0,)), 0),
        (Curve(Shape.POWER, 1.0, (0,), 0.5), 1),
        (Curve(Shape.POWER, 1.0, (0,), 0.5), 0),
        (Curve(Shape.POWER, 1.0, (0,), -1.0), 1),
    ],
)
def test_slopes_that_no_tangent_has_are_refused(curve: Curve, slope: int) -> None:
    with pytest.raises(ValueError, match="tangents"):
        _least_above_line(curve, Fraction(slope))
