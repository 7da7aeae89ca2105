"""How steep curves can be within the bounds of their columns and inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gdpnet.ir.data import Curve, Row, RuleData, Shape
from gdpnet.ir.intervals import Interval, interval, times


def steepest(data: RuleData, row: int) -> np.ndarray:
    """The largest slope of a row's curves within the bounds, by column, (n,)."""
    slope = np.zeros(len(data.columns))
    for curve in data.rows[row].curves:
        parts = [data.rows[i] for i in curve.arguments]
        reach = [_range(data, part) for part in parts]
        for part, steepest in zip(parts, _slopes(curve, reach), strict=True):
            for j, a in part.terms:
                low, high = interval(a.tree(), data.input_bounds)
                slope[j] += curve.weight * steepest * max(abs(low), abs(high))
    return slope


def _range(data: RuleData, argument: Row) -> Interval:
    """A range of `a z - b` within the bounds."""
    ends = [interval(argument.bound.scaled(-1.0).tree(), data.input_bounds)]
    for j, a in argument.terms:
        column = data.columns[j]
        ends.append(times(interval(a.tree(), data.input_bounds), (column.lower, column.upper)))
    return sum(low for low, _ in ends), sum(high for _, high in ends)


def _slopes(curve: Curve, ranges: Sequence[Interval]) -> list[float]:
    """The largest slope of a curve in each of its arguments, within their ranges."""
    if curve.shape is Shape.NORM:
        return [1.0] * len(ranges)
    largest = [max(abs(low), abs(high)) for low, high in ranges]
    if curve.shape is Shape.SQUARES:
        return [2.0 * t for t in largest]
    low, high = ranges[0]
    if curve.shape is Shape.EXP:
        return [math.exp(high) if high < 700.0 else math.inf]
    power = curve.exponent - 1.0 if curve.shape is Shape.POWER else -1.0
    if power >= 0.0:
        return [curve.exponent * largest[0] ** power]
    factor = abs(curve.exponent) if curve.shape is Shape.POWER else 1.0
    return [factor * low**power if low > 0.0 else math.inf]
