"""Ranges of expressions in the inputs, by interval arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gdpnet.ir.atoms import Tree

Interval = tuple[float, float]

EVERYTHING: Interval = (-math.inf, math.inf)

# Functions that grow, with the domain they are defined on.
_GROWING = {
    "log": (math.log, 0.0),
    "log10": (math.log10, 0.0),
    "atan": (math.atan, -math.inf),
    "tanh": (math.tanh, -math.inf),
    "sinh": (math.sinh, -math.inf),
    "asinh": (math.asinh, -math.inf),
    "ceil": (math.ceil, -math.inf),
    "floor": (math.floor, -math.inf),
}


def interval(tree: Tree, ranges: Sequence[Interval]) -> Interval:
    """A range that contains every value of a tree; wide where nothing better is known.

    Args:
        tree: an expression of `gdpnet.ir.atoms`.
        ranges: range of each input.
    """
    low, high = _interval(tree, ranges)
    if math.isnan(low) or math.isnan(high):
        return EVERYTHING
    if tree[0] in ("input", "number"):
        return low, high
    # Outward, against rounding; an end at 0 comes of zeros and is exact.
    return low - _rounding(low), high + _rounding(high)


def _rounding(end: float) -> float:
    return 1e-9 * max(1.0, abs(end)) if end and math.isfinite(end) else 0.0


def _interval(tree: Tree, ranges: Sequence[Interval]) -> Interval:
    kind = tree[0]
    if kind == "number":
        return tree[1], tree[1]
    if kind == "input":
        return ranges[tree[1]]
    if kind == "if":  # either branch
        branches = [interval(part, ranges) for part in tree[2:]]
        return min(low for low, _ in branches), max(high for _, high in branches)
    parts = [interval(part, ranges) for part in tree[1:]]
    if kind == "sum":
        return math.fsum(p[0] for p in parts), math.fsum(p[1] for p in parts)
    if kind in ("max", "min"):
        pick = max if kind == "max" else min
        return pick(p[0] for p in parts), pick(p[1] for p in parts)
    if kind == "product":
        value = parts[0]
        for part in parts[1:]:
            value = times(value, part)
        return value
    if kind == "divide":
        (_, _), (low, high) = parts
        if low > 0.0 or high < 0.0:
            return times(parts[0], (1.0 / high, 1.0 / low))
        return EVERYTHING
    if kind == "power":
        return _power(parts[0], tree[2])
    if kind == "abs":
        (low, high) = parts[0]
        return (0.0 if low <= 0.0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))
    if kind == "exp":
        low, high = (math.exp(end) if end < 700.0 else math.inf for end in parts[0])
        return low, high
    if kind == "sqrt":
        (low, high) = parts[0]
        return (math.sqrt(low), math.sqrt(high)) if low >= 0.0 else EVERYTHING
    if kind in _GROWING:
        function, start = _GROWING[kind]
        (low, high) = parts[0]
        if low <= start or not math.isfinite(low + high):
            return EVERYTHING
        try:
            return function(low), function(high)
        except OverflowError:
            return EVERYTHING
    return EVERYTHING


def times(a: Interval, b: Interval) -> Interval:
    """The product of two ranges."""
    ends = [0.0 if 0.0 in (x, y) else x * y for x in a for y in b]
    return min(ends), max(ends)


def _power(base: Interval, exponent: Tree) -> Interval:
    if exponent[0] != "number":
        return EVERYTHING
    power, (low, high) = exponent[1], base
    if power < 0:
        if low <= 0.0:
            return EVERYTHING
        low, high = _power(base, ("number", -power))
        return (1.0 / high if math.isfinite(high) else 0.0), (1.0 / low if low else math.inf)
    if low < 0 and power % 1.0 != 0.0:
        return EVERYTHING
    if math.isfinite(low + high) and power <= 64:
        try:
            ends = [low**power, high**power]
        except OverflowError:
            pass
        else:
            if low < 0.0 < high and power % 2.0 == 0.0:
                ends.append(0.0)
            return min(ends), max(ends)
    return (0.0, math.inf) if low >= 0.0 or power % 2.0 == 0.0 else EVERYTHING
