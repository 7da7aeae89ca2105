"""Quadratic programs to 90 digits: the method of Goldfarb and Idnani in decimal numbers.

Differences of its solutions over steps of 1e-20 are derivatives to all digits of a float.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext

ZERO, ONE = Decimal(0), Decimal(1)
DIGITS = 90
_NOTHING = Decimal("1e-45")

Vector = list[Decimal]


def dot(a: Sequence[Decimal], b: Sequence[Decimal]) -> Decimal:
    return sum((x * y for x, y in zip(a, b, strict=True)), ZERO)


def solved(matrix: list[Vector], right: Vector) -> Vector:
    """The solution of linear equations, by elimination."""
    rows = [[*row, b] for row, b in zip(matrix, right, strict=True)]
    for k in range(len(rows)):
        best = max(range(k, len(rows)), key=lambda i: abs(rows[i][k]))
        rows[k], rows[best] = rows[best], rows[k]
        rows[k] = [v / rows[k][k] for v in rows[k]]
        for i in range(len(rows)):
            if i != k and rows[i][k]:
                factor = rows[i][k]
                rows[i] = [v - factor * w for v, w in zip(rows[i], rows[k], strict=True)]
    return [row[-1] for row in rows]


def minimised(
    cost: Vector, curvature: Vector, rows: list[Vector], limit: Vector, equal: int
) -> Vector:
    """The x of least `cost x + sum(curvature x^2) / 2`; the first rows are equations, others <=."""
    with localcontext() as context:
        context.prec = DIGITS
        x = [-c / p for c, p in zip(cost, curvature, strict=True)]
        rows = [list(row) for row in rows]
        limit = list(limit)
        tight: list[int] = []
        multiplier: Vector = []
        waiting = list(range(equal))
        while True:
            over = [dot(row, x) - b for row, b in zip(rows, limit, strict=True)]
            if waiting:
                new = waiting.pop(0)
                if over[new] < 0:  # an equation, from the side on which it is broken
                    rows[new], limit[new] = [-v for v in rows[new]], -limit[new]
            else:
                free = [i for i in range(equal, len(rows)) if i not in tight]
                new = max(free, key=lambda i: over[i])
                if over[new] <= _NOTHING:
                    return x
            own = ZERO
            while True:
                normal = rows[new]
                held = [rows[i] for i in tight]
                pulled = [[v / p for v, p in zip(row, curvature, strict=True)] for row in held]
                share = solved(
                    [[dot(a, b) for b in held] for a in pulled], [dot(a, normal) for a in pulled]
                )
                rest = [
                    n - sum((s * row[j] for s, row in zip(share, held, strict=True)), ZERO)
                    for j, n in enumerate(normal)
                ]
                step = [v / p for v, p in zip(rest, curvature, strict=True)]
                length = dot(step, normal)
                ratios = [
                    (multiplier[k] / share[k], k)
                    for k, i in enumerate(tight)
                    if i >= equal and share[k] > _NOTHING
                ]
                until, leaving = min(ratios, default=(Decimal("Infinity"), -1))
                whole = (dot(normal, x) - limit[new]) / length if length > _NOTHING else None
                assert whole is not None or leaving >= 0, "infeasible"
                by = until if whole is None else min(until, whole)
                if whole is not None:
                    x = [v - by * s for v, s in zip(x, step, strict=True)]
                multiplier = [u - by * s for u, s in zip(multiplier, share, strict=True)]
                own += by
                if whole is not None and whole <= until:
                    tight.append(new)
                    multiplier.append(own)
                    break
                del tight[leaving], multiplier[leaving]
