"""Multipliers made exact where a column without bounds allows no rounding error."""

from __future__ import annotations

from fractions import Fraction

from gdpnet.proof._instance import Branch, RationalInstance

_ROUNDS = 4


def vanish(
    instance: RationalInstance, path: Branch, multipliers: list[tuple[int, Fraction]], costs: bool
) -> list[tuple[int, Fraction]]:
    """Changes multipliers a little, such that no column can run away.

    Over a column without a bound, a slope that is wrong by a rounding error makes the least value
    infinite. The slopes there are brought, exactly, to where they should be.

    Args:
        instance: the problem.
        path: what is assumed.
        multipliers: row and multiplier.
        costs: whether distances count.

    Returns:
        New multipliers, or the given ones where that cannot be done.
    """
    pinned: dict[int, Fraction] = {}
    current = dict(multipliers)
    for _ in range(_ROUNDS):
        fresh = _runaways(instance, path, current, costs)
        if not fresh.keys() - pinned.keys():
            break
        pinned.update({j: v for j, v in fresh.items() if j not in pinned})
        changed = _solved(instance, current, pinned)
        if changed is None:
            break
        current = changed
    return [(row, value) for row, value in current.items() if value]


def _slopes(instance: RationalInstance, multipliers: dict[int, Fraction]) -> dict[int, Fraction]:
    slopes: dict[int, Fraction] = {}
    for row, value in multipliers.items():
        for j, a in instance.rows[row]:
            slopes[j] = slopes.get(j, Fraction(0)) + value * a
    return slopes


def _runaways(
    instance: RationalInstance, path: Branch, multipliers: dict[int, Fraction], costs: bool
) -> dict[int, Fraction]:
    """Columns without a least value, and the nearest slope at which they have one.

    Columns without bounds and costs are always among them: they must stay as they are.
    """
    found = {}
    for j, slope in _slopes(instance, multipliers).items():
        weight = instance.weights[j] if costs and j < len(instance.weights) else Fraction(0)
        if weight and instance.norm == "l2":
            continue  # a square outgrows every slope
        low, high = instance.box(j, path)
        free = isinstance(low, float) and isinstance(high, float)
        if (slope > weight or (free and not weight)) and isinstance(low, float):
            found[j] = weight
        elif slope < -weight and isinstance(high, float):
            found[j] = -weight
    return found


def _solved(
    instance: RationalInstance, multipliers: dict[int, Fraction], pinned: dict[int, Fraction]
) -> dict[int, Fraction] | None:
    """Multipliers of the same rows whose slopes are exactly the pinned ones."""
    slopes = _slopes(instance, multipliers)
    # One equation a column: sum a_ij change_i = what is missing.
    left: list[dict[int, Fraction]] = []
    right: list[Fraction] = []
    for j, wanted in pinned.items():
        left.append({row: a for row in multipliers for k, a in instance.rows[row] if k == j})
        right.append(wanted - slopes.get(j, Fraction(0)))
    pivots: list[tuple[int, int]] = []
    for i, equation in enumerate(left):
        if not equation:
            if right[i]:
                return None
            continue
        # A large multiplier can give a little without changing its sign.
        pivot = max(equation, key=lambda row: abs(equation[row] * multipliers[row]))
        pivots.append((i, pivot))
        for k, other in enumerate(left):
            if k != i and pivot in other:
                factor = other[pivot] / equation[pivot]
                for row, a in equation.items():
                    reduced = other.get(row, Fraction(0)) - factor * a
                    if reduced:
                        other[row] = reduced
                    else:
                        other.pop(row, None)
                right[k] -= factor * right[i]
    changed = dict(multipliers)
    for i, pivot in pivots:
        changed[pivot] += right[i] / left[i][pivot]
    return changed
