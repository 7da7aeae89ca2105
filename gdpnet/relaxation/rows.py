"""Rows of a program while they are being written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


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
    """Rows `terms <= bound` (or `==`) while they are being written."""

    names: list[str] = field(default_factory=list)
    terms: list[dict[int, Value]] = field(default_factory=list)
    bounds: list[Value] = field(default_factory=list)
    equality: list[bool] = field(default_factory=list)

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
