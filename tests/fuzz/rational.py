"""Linear programs in rational numbers: a dual simplex with Bland's rule, and branching.

    min c x   where   g x <= h for every row,  x >= 0,  c >= 0.

With c >= 0 the slack basis is dual feasible, so there is no first phase, rows may be added to a
solved program, and the value only grows: a search stops as soon as it passes what is known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

INF = float("inf")
ZERO = Fraction(0)

Row = tuple[Mapping[int, Fraction], Fraction]
"""Coefficients by variable, and the right side."""


class TooLargeError(Exception):
    """More pivots or nodes than a recheck may take."""


class Program:
    """A program and its dictionary `basic = right - table @ nonbasic`.

    Args:
        cost: c, none of it negative.
        pivots: pivots allowed before TooLargeError.
    """

    def __init__(self, cost: Sequence[Fraction], pivots: int = 5000) -> None:
        assert all(c >= 0 for c in cost)
        self.reduced = list(cost)
        self.nonbasic = list(range(len(cost)))
        self.variables = len(cost)
        self.basic: list[int] = []
        self.table: list[list[Fraction]] = []
        self.right: list[Fraction] = []
        self.value = ZERO
        self.pivots = pivots

    def copy(self) -> Program:
        other = Program((), self.pivots)
        other.reduced, other.nonbasic = list(self.reduced), list(self.nonbasic)
        other.variables, other.basic = self.variables, list(self.basic)
        other.table = [list(row) for row in self.table]
        other.right, other.value = list(self.right), self.value
        return other

    def add(self, row: Row) -> None:
        """One more row, its slack basic."""
        coefficients, right = row
        place = {variable: i for i, variable in enumerate(self.basic)}
        new = [coefficients.get(variable, ZERO) for variable in self.nonbasic]
        for variable, c in coefficients.items():
            i = place.get(variable)
            if i is not None and c:
                right -= c * self.right[i]
                new = [n - c * t if t else n for n, t in zip(new, self.table[i], strict=True)]
        self.basic.append(self.variables)
        self.variables += 1
        self.table.append(new)
        self.right.append(right)

    def solve(self, cutoff: Fraction | float = INF) -> bool:
        """Whether there is a solution of a value below `cutoff`."""
        while self.value < cutoff:
            broken = [i for i, right in enumerate(self.right) if right < 0]
            if not broken:
                return True
            leaving = min(broken, key=self.basic.__getitem__)
            row = self.table[leaving]
            candidates = [
                (self.reduced[j] / -t, self.nonbasic[j], j) for j, t in enumerate(row) if t < 0
            ]
            if not candidates:
                return False
            self._pivot(leaving, min(candidates)[2])
        return False

    def point(self, count: int) -> list[Fraction]:
        """Values of the first variables."""
        values = [ZERO] * count
        for variable, right in zip(self.basic, self.right, strict=True):
            if variable < count:
                values[variable] = right
        return values

    def _pivot(self, r: int, k: int) -> None:
        self.pivots -= 1
        if self.pivots < 0:
            raise TooLargeError
        pivot = self.table[r][k]
        row = [t / pivot if t else t for t in self.table[r]]
        row[k] = 1 / pivot
        right = self.right[r] / pivot
        columns = [j for j, t in enumerate(row) if t and j != k]
        for i, other in enumerate(self.table):
            c = other[k]
            if i == r or not c:
                continue
            for j in columns:
                other[j] -= c * row[j]
            other[k] = -c * row[k]
            self.right[i] -= c * right
        c = self.reduced[k]
        for j in columns:
            self.reduced[j] -= c * row[j]
        self.reduced[k] = -c * row[k]
        self.value += c * right
        self.table[r], self.right[r] = row, right
        self.basic[r], self.nonbasic[k] = self.nonbasic[k], self.basic[r]


class Whole:
    """A linear form `constant + sum(c x)` that has to be a whole number."""

    def __init__(self, coefficients: Mapping[int, Fraction], constant: Fraction) -> None:
        self.coefficients, self.constant = coefficients, constant

    def at(self, x: Sequence[Fraction]) -> Fraction:
        return self.constant + sum((c * x[j] for j, c in self.coefficients.items()), ZERO)

    def at_most(self, bound: int) -> Row:
        return self.coefficients, bound - self.constant

    def at_least(self, bound: int) -> Row:
        return {j: -c for j, c in self.coefficients.items()}, self.constant - bound


def minimum(
    cost: Sequence[Fraction],
    rows: Sequence[Row],
    lazy: Sequence[Row] = (),
    whole: Sequence[Whole] = (),
    cutoff: Fraction | float = INF,
    nodes: int = 300,
) -> tuple[Fraction, list[Fraction]] | None:
    """The least value below `cutoff` and a point there; None where there is none.

    Args:
        cost: c, none of it negative.
        rows: rows that always stand in the dictionary.
        lazy: rows that enter it once they are broken, such as bounds.
        whole: forms that have to be whole.
        cutoff: values from here on are of no interest.
        nodes: of the branching, before TooLargeError.
    """
    first = Program(cost)
    for row in rows:
        first.add(row)
    best: tuple[Fraction, list[Fraction]] | None = None
    stack = [first]
    while stack:
        nodes -= 1
        if nodes < 0:
            raise TooLargeError
        program = stack.pop()
        limit = cutoff if best is None else best[0]
        x = _solve(program, lazy, len(cost), limit)
        if x is None:
            continue
        broken = next((form for form in whole if form.at(x).denominator != 1), None)
        if broken is None:
            best = (program.value, x)
            continue
        below = math.floor(broken.at(x))
        up = program.copy()
        up.add(broken.at_least(below + 1))
        program.add(broken.at_most(below))
        nearer_is_up = broken.at(x) - below > Fraction(1, 2)
        stack += [program, up] if nearer_is_up else [up, program]
    return best


def _solve(
    program: Program, lazy: Sequence[Row], count: int, cutoff: Fraction | float
) -> list[Fraction] | None:
    while program.solve(cutoff):
        x = program.point(count)
        broken = [row for row in lazy if sum((c * x[j] for j, c in row[0].items()), ZERO) > row[1]]
        if not broken:
            return x
        for row in broken:
            program.add(row)
    return None
