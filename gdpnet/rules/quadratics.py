"""Quadratic forms as sums of squares: where that can be done, they are convex.

    Q(x) = Q_0 + sum_k atom_k(x) Q_k

A matrix of numbers is factored as L D L'. One that depends on the inputs is a sum of squares where
Q_0 is, and every Q_k with the sign of its atom; else by elimination with expressions in place of
numbers, each pivot proved positive; else with every atom measured from an end of its range.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from gdpnet.ir.atoms import Tree, number
from gdpnet.ir.intervals import Interval, interval
from gdpnet.ir.linear import Coefficient, LinearForm
from gdpnet.rules.curved import Curved

CONSTANT = -1
"""The column that is 1: with it a linear term and a constant are part of a quadratic form."""

# What rounding may leave of a pivot that is zero, relative to the diagonal of the matrix.
_ROUNDING = 1e-12
_SMALLEST = number(1e-300)
# Expressions double with every elimination.
_MOST_ELIMINATED = 6

Entries = dict[tuple[int, int], Coefficient]


class Square(NamedTuple):
    """`weight * form ** 2`, with a positive weight."""

    weight: float
    form: LinearForm


class Indefinite(Exception):  # noqa: N818
    """No sum of squares was found.

    Args:
        least: the least eigenvalue of the matrix, where it does not depend on the inputs.
    """

    def __init__(self, least: float | None) -> None:
        super().__init__(least)
        self.least = least


def expanded(form: Curved, with_constant: bool = False) -> tuple[Entries, LinearForm]:
    """The products of a sum multiplied out: entries above the diagonal, and the linear rest.

    Args:
        form: a sum of products and linear terms.
        with_constant: count the linear rest to the entries, in the column `CONSTANT`.

    Returns:
        Entries `(i, j)` with i <= j of the symmetric matrix, and what is left.
    """
    entries: Entries = {}
    rest = form.linear

    def put(i: int, j: int, value: Coefficient) -> None:
        key = (min(i, j), max(i, j))
        share = value if i == j else value.scaled(0.5)
        entries[key] = entries[key] + share if key in entries else share

    for product in form.products:
        left, right = product.left.times(product.weight), product.right
        for i, a in left:
            for j, b in right:
                put(i, j, a * b)
        rest = rest + LinearForm(columns=right.columns).times(left.constant)
        rest = rest + LinearForm(columns=left.columns).times(right.constant)
        rest = rest + LinearForm(left.constant * right.constant)
    if with_constant:
        put(CONSTANT, CONSTANT, rest.constant)
        for j, a in rest:
            put(CONSTANT, j, a)
        rest = LinearForm()
    return {key: value for key, value in entries.items() if not value.is_zero}, rest


def squares(entries: Entries, ranges: Sequence[Interval]) -> list[Square]:
    """A quadratic form as a sum of squares.

    Args:
        entries: of the symmetric matrix, as `expanded` gives them.
        ranges: range of each input.

    Raises:
        Indefinite: none was found.
    """
    columns = sorted({column for pair in entries for column in pair})
    if all(value.is_number for value in entries.values()):
        matrix = _matrix(entries, columns, None)
        found = _factored(matrix)
        if found is None:
            raise Indefinite(float(np.linalg.eigvalsh(matrix)[0]))
        return _forms(found, columns)
    for attempt in (_by_atoms, _eliminated, _by_shifted_atoms):
        written = attempt(entries, columns, ranges)
        if written is not None:
            return written
    raise Indefinite(None)


def root_of(coefficient: Coefficient, ranges: Sequence[Interval]) -> Coefficient:
    """The square root of a coefficient that is known not to be negative."""
    if coefficient.is_number:
        return Coefficient(coefficient.number**0.5)
    tree = coefficient.tree()
    if interval(tree, ranges)[0] <= 0.0:
        # Its derivative is infinite at 0, and rounding may make it negative there.
        tree = ("max", tree, _SMALLEST)
    return Coefficient.of(("sqrt", tree))


def inverse(coefficient: Coefficient) -> Coefficient:
    """1 over a coefficient that is known not to be 0."""
    if coefficient.is_number:
        return Coefficient(1.0 / coefficient.number)
    return Coefficient.of(("divide", number(1.0), coefficient.tree()))


def _matrix(entries: Entries, columns: Sequence[int], atom: Tree | None) -> np.ndarray:
    """The part of a matrix that is multiplied by an atom, or by none."""
    place = {column: k for k, column in enumerate(columns)}
    matrix = np.zeros((len(columns), len(columns)))
    for (i, j), value in entries.items():
        part = value.number if atom is None else value.atoms.get(atom, 0.0)
        matrix[place[i], place[j]] = matrix[place[j], place[i]] = part
    return matrix


def _factored(matrix: np.ndarray) -> list[tuple[float, np.ndarray]] | None:
    """Weights and vectors with `matrix = sum(weight * outer(vector, vector))`, weights positive.

    None where it has a negative eigenvalue, beyond rounding.
    """
    diagonal = np.diag(matrix).copy()
    size = np.sqrt(np.maximum(diagonal, 0.0))
    left = matrix.copy()
    found = []
    while True:
        share = np.divide(np.diag(left), diagonal, out=np.zeros(len(size)), where=size > 0.0)
        pivot = int(share.argmax()) if len(share) else 0
        if not len(share) or share[pivot] <= _ROUNDING:
            break
        weight = float(left[pivot, pivot])
        vector = left[pivot] / weight
        found.append((weight, vector))
        left -= weight * np.outer(vector, vector)
        left[pivot] = left[:, pivot] = 0.0
    zero = np.abs(left) <= 10.0 * _ROUNDING * np.outer(size, size)
    return found if zero.all() else None


def _forms(factors: Iterable[tuple[float, np.ndarray]], columns: Sequence[int]) -> list[Square]:
    return [
        Square(weight, _form((j, Coefficient(float(a))) for j, a in zip(columns, vector) if a))  # noqa: B905
        for weight, vector in factors
    ]


def _form(terms: Iterable[tuple[int, Coefficient]]) -> LinearForm:
    found = dict(terms)
    return LinearForm(found.pop(CONSTANT, None), found)


def _by_atoms(
    entries: Entries, columns: Sequence[int], ranges: Sequence[Interval], shifted: bool = False
) -> list[Square] | None:
    constant = _matrix(entries, columns, None)
    found: list[Square] = []
    for atom in dict.fromkeys(atom for value in entries.values() for atom in value.atoms):
        matrix = _matrix(entries, columns, atom)
        for sign in (1.0, -1.0):
            factors = _factored(sign * matrix)
            if factors is not None:
                break
        else:
            return None
        low, high = interval(atom, ranges)
        least = low if sign > 0 else -high
        if not (np.isfinite(least) and (shifted or least >= 0.0)):
            return None
        share = Coefficient.of(atom).scaled(sign)
        if shifted:
            share = share + Coefficient(-least)
            constant = constant + least * sign * matrix
        root = root_of(share, ranges)
        found += [Square(s.weight, s.form.times(root)) for s in _forms(factors, columns)]
    factors = _factored(constant)
    return None if factors is None else _forms(factors, columns) + found


def _by_shifted_atoms(
    entries: Entries, columns: Sequence[int], ranges: Sequence[Interval]
) -> list[Square] | None:
    return _by_atoms(entries, columns, ranges, shifted=True)


def _eliminated(
    entries: Entries, columns: Sequence[int], ranges: Sequence[Interval]
) -> list[Square] | None:
    """Elimination with expressions; a pivot is proved positive, or its row is zero beside it."""
    if len(columns) > _MOST_ELIMINATED:
        return None
    left = dict(entries)
    waiting = list(columns)
    found: list[Square] = []
    while waiting:
        rows = [{j: left.get((min(i, j), max(i, j))) for j in waiting} for i in waiting]
        ready = None
        for place, (i, row) in enumerate(zip(waiting, rows, strict=True)):
            beside = {j: a for j, a in row.items() if j != i and a is not None and not a.is_zero}
            pivot = row[i] or Coefficient()
            least = interval(pivot.tree(), ranges)[0]
            if least > 0.0 or (least >= 0.0 and not beside):
                ready = place, pivot, beside
                break
        if ready is None:
            return None
        place, pivot, beside = ready
        i = waiting.pop(place)
        if pivot.is_zero:
            continue
        below = inverse(pivot) if beside else Coefficient(1.0)
        share = {j: a * below for j, a in beside.items()}
        form = _form({i: Coefficient(1.0), **share}.items())
        if pivot.is_number:
            found.append(Square(pivot.number, form))
        else:
            found.append(Square(1.0, form.times(root_of(pivot, ranges))))
        for j, a in beside.items():
            for k in beside:
                if j <= k:
                    value = left.get((j, k), Coefficient()) + (a * share[k]).scaled(-1.0)
                    left[j, k] = value
    return found
