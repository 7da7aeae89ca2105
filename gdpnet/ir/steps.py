"""What the numbers of a row tell before anything is solved: its unit, and the steps it moves in."""

from __future__ import annotations

import math

import numpy as np

from gdpnet.ir.data import Role, RuleData
from gdpnet.ir.rules import Rules
from gdpnet.ir.tolerances import TOLERANCES

# Beyond this, whole coefficients are not told from rounded ones.
_LARGEST = 2.0**40
_ROUNDING = 1e-15  # what division leaves of a count, relative


def power_of_two(largest: np.ndarray) -> np.ndarray:
    """The power of two that brings a row's largest coefficient into [1, 2); 1 for an empty row."""
    _, exponent = np.frexp(largest)
    return np.where(largest > 0, np.ldexp(1.0, 1 - exponent), 1.0)


def smallest_row(rules: Rules) -> float:
    """The least `max(|b|, max|a|)` of all rows, at most 1, as far as it does not depend on x.

    A prediction passes within a tolerance relative to that, or a rule in small units would always
    hold; times this it is relative to `max(1, |b|, max|a|)`.
    """
    sizes = [
        max(abs(a.number) for a in (row.bound, *(a for _, a in row.terms)))
        for row in rules.data.rows
        if row.role is not Role.ARGUMENT and all(a.is_number for _, a in row.terms)
    ]
    return min([1.0, *(size for size in sizes if size > 0.0)])


def steps(data: RuleData) -> list[tuple[int, float]]:
    """Rows over integers that move in steps: their index, and the step.

    `2 a - 4 b` moves in steps of 2: no whole numbers make it equal to 1, and where it is at most 1
    it is at most 0. Branching would have to look at all of them to find that out.
    """
    found = []
    for i, row in enumerate(data.rows):
        numbers = [a.number for _, a in row.terms]
        if (
            numbers
            and not row.curves
            and row.role is not Role.ARGUMENT
            and all(data.columns[j].integer for j, _ in row.terms)
            and all(a.is_number for _, a in row.terms)
            and all(a == round(a) and 0 < abs(a) < _LARGEST for a in numbers)
        ):
            found.append((i, float(math.gcd(*(int(abs(a)) for a in numbers)))))
    return found


def impossible(data: RuleData) -> set[int]:
    """Rows that no whole numbers satisfy, whatever the inputs."""
    rows = data.rows
    return {
        i
        for i, step in steps(data)
        if rows[i].equality and rows[i].bound.is_number and off_step(rows[i].bound.number, step)
    }


def stepping_inequalities(data: RuleData) -> list[tuple[int, float]]:
    """Inequalities over integers that move in steps: their index, and the step."""
    return [(i, step) for i, step in steps(data) if not data.rows[i].equality]


def round_to_steps(inequalities: list[tuple[int, float]], bound: np.ndarray) -> None:
    """Lower the right sides of inequalities over integers to values that they can take.

    Args:
        inequalities: as `stepping_inequalities` lists them.
        bound: right sides, `... x rows`, changed.
    """
    for i, step in inequalities:
        counted = bound[..., i] / step
        bound[..., i] = step * np.floor(counted + TOLERANCES.integer + _ROUNDING * np.abs(counted))


def off_step(bound: float, step: float) -> bool:
    """Whether a right side is none of the values that its row takes."""
    steps = bound / step
    return bool(abs(steps - round(steps)) > TOLERANCES.integer + _ROUNDING * abs(steps))
