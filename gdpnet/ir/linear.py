"""Linear forms whose coefficients depend on the inputs.

A coefficient is `number + sum(multiplier * atom)`, an atom being a tree of `atoms` that is not
itself a sum or a multiple. That splits a matrix into a constant part and a fixed sparse map of
the atoms, so that a batch costs one evaluation of each atom.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gdpnet.ir import atoms
from gdpnet.ir.atoms import Tree


@dataclass(frozen=True)
class Coefficient:
    """`number + sum(multiplier * atom)`.

    Attributes:
        number: the part that does not depend on the inputs.
        atoms: multiplier of each atom.
    """

    number: float = 0.0
    atoms: Mapping[Tree, float] = field(default_factory=dict)

    @property
    def is_number(self) -> bool:
        """Whether it does not depend on the inputs."""
        return not self.atoms

    @property
    def is_zero(self) -> bool:
        """Whether it is 0 for every input."""
        return not self.atoms and self.number == 0.0

    @property
    def is_finite(self) -> bool:
        """Whether its number and multipliers are finite."""
        return math.isfinite(self.number) and all(map(math.isfinite, self.atoms.values()))

    def __add__(self, other: Coefficient) -> Coefficient:
        atoms = dict(self.atoms)
        for atom, multiplier in other.atoms.items():
            atoms[atom] = atoms.get(atom, 0.0) + multiplier
        return Coefficient(self.number + other.number, {a: c for a, c in atoms.items() if c != 0.0})

    def scaled(self, factor: float) -> Coefficient:
        """`factor` times this coefficient."""
        if factor == 0.0:
            return Coefficient()
        return Coefficient(self.number * factor, {a: c * factor for a, c in self.atoms.items()})

    def __mul__(self, other: Coefficient) -> Coefficient:
        if other.is_number:
            return self.scaled(other.number)
        if self.is_number:
            return other.scaled(self.number)
        return Coefficient.of(("product", self.tree(), other.tree()))

    @staticmethod
    def of(tree: Tree) -> Coefficient:
        """The coefficient that is one atom."""
        if tree[0] == "number":
            return Coefficient(tree[1])
        return Coefficient(0.0, {tree: 1.0})

    def tree(self) -> Tree:
        """The coefficient as one tree."""
        parts: list[Tree] = []
        for atom, multiplier in self.atoms.items():
            factor = atoms.number(multiplier)
            parts.append(atom if multiplier == 1.0 else ("product", factor, atom))
        if self.number != 0.0 or not parts:
            parts.append(atoms.number(self.number))
        return parts[0] if len(parts) == 1 else ("sum", *parts)


class LinearForm:
    """`constant + sum(coefficient * column)` while an expression is being read.

    Attributes:
        constant: the part without variables.
        columns: coefficient of each column of z = (outputs, auxiliaries).
    """

    __slots__ = ("columns", "constant")

    def __init__(
        self, constant: Coefficient | None = None, columns: dict[int, Coefficient] | None = None
    ) -> None:
        self.constant = constant or Coefficient()
        self.columns = columns or {}

    @property
    def is_constant(self) -> bool:
        """Whether no variable stands in it."""
        return not self.columns

    def __add__(self, other: LinearForm) -> LinearForm:
        columns = dict(self.columns)
        for column, coefficient in other.columns.items():
            total = columns.get(column, Coefficient()) + coefficient
            if total.is_zero:
                columns.pop(column, None)
            else:
                columns[column] = total
        return LinearForm(self.constant + other.constant, columns)

    def times(self, factor: Coefficient) -> LinearForm:
        """`factor` times this form."""
        if factor.is_zero:
            return LinearForm()
        return LinearForm(self.constant * factor, {c: a * factor for c, a in self.columns.items()})

    def __sub__(self, other: LinearForm) -> LinearForm:
        return self + other.times(Coefficient(-1.0))

    def __iter__(self) -> Iterator[tuple[int, Coefficient]]:
        return iter(self.columns.items())
