"""Rows of a program while they are being written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gdpnet.lp.conic import Cone, ConeKind


@dataclass(frozen=True)
class Value:
    """`number + sum(factor * parameter)`, numbered as in `SparseProgram.parameters`."""

    number: float = 0.0
    moving: tuple[tuple[int, float], ...] = ()

    def __neg__(self) -> Value:
        return Value(-self.number, tuple((k, -factor) for k, factor in self.moving))

    def __sub__(self, other: Value) -> Value:
        return Value(self.number - other.number, (*self.moving, *(-other).moving))

    @property
    def is_zero(self) -> bool:
        """Whether it is 0 for every sample."""
        return self.number == 0.0 and not self.moving


ONE = Value(1.0)


@dataclass
class RowBuilder:
    """Rows `terms <= bound` (or `==`), and cones of rows, while they are being written."""

    names: list[str] = field(default_factory=list)
    terms: list[dict[int, Value]] = field(default_factory=list)
    bounds: list[Value] = field(default_factory=list)
    equality: list[bool] = field(default_factory=list)
    cones: list[Cone] = field(default_factory=list)

    def add(
        self,
        name: str,
        terms: Iterable[tuple[int, Value]],
        bound: Value | None = None,
        equality: bool = False,
    ) -> None:
        """Write one more row; entries that are zero for every sample are left out."""
        self.names.append(name)
        self.terms.append({column: value for column, value in terms if not value.is_zero})
        self.bounds.append(bound or Value())
        self.equality.append(equality)

    def add_cone(
        self,
        name: str,
        kind: ConeKind,
        members: Iterable[tuple[Iterable[tuple[int, Value]], Value | None]],
        exponent: float = 0.5,
    ) -> None:
        """Write one more cone: its members are `terms - bound`, each a row."""
        first = len(self.names)
        for terms, bound in members:
            self.add(name, terms, bound)
        self.cones.append(Cone(kind, first, len(self.names) - first, exponent))
