"""Values of a JSON file that know their place, so that a wrong one can be named."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, NoReturn


class Damage(Exception):  # noqa: N818
    """Something in a file that is not what it has to be."""


class Unknown(Damage):
    """Something in a file that this gdpnet does not know, in a place that is open to additions."""


class Record:
    """A value of a file.

    Args:
        value: what JSON made of it.
        place: where it stands, such as `rows[0].terms[1]`.
    """

    __slots__ = ("place", "value")

    def __init__(self, value: Any, place: str) -> None:
        self.value = value
        self.place = place

    def refuse(self, reason: str) -> NoReturn:
        """Raise, naming the place."""
        raise Damage(f"{self.place}: {reason}." if self.place else f"{reason}.")

    def _expected(self, what: str) -> NoReturn:
        if self.value.__class__ is int and abs(self.value) >= 10**20:
            self.refuse(f"expected {what}, got a number of too many digits")
        shown = repr(self.value)
        self.refuse(f"expected {what}, got {shown if len(shown) <= 60 else shown[:57] + '...'}")

    def record(self, *keys: str) -> dict[str, Record]:
        """Its entries, which are exactly these."""
        if self.value.__class__ is not dict:
            self._expected(f"a record of {', '.join(keys)}")
        for key in keys:
            if key not in self.value:
                self.refuse(f"'{key}' is missing")
        for key in self.value:
            if key not in keys:
                self.refuse(f"'{key}' is not known; expected {', '.join(keys)}")
        start = f"{self.place}." if self.place else ""
        return {key: Record(self.value[key], start + key) for key in keys}

    def kind(self, key: str, known: Collection[str]) -> str:
        """An entry that says which of the known things it is."""
        value = self.value.get(key) if self.value.__class__ is dict else None
        if value.__class__ is not str:
            self._expected(f"a record with '{key}', one of {', '.join(known)}")
        if value not in known:
            place = f"{self.place}.{key}"
            raise Unknown(f"{place}: {value[:40]!r} is not known (known: {', '.join(known)}).")
        return value

    def list(self, length: int | None = None) -> list[Record]:
        """Its members."""
        if self.value.__class__ is not list:
            self._expected("a list")
        if length is not None and len(self.value) != length:
            self._expected(f"a list of {length}")
        return [Record(value, f"{self.place}[{k}]") for k, value in enumerate(self.value)]

    def text(self) -> str:
        """It as text."""
        if self.value.__class__ is not str:
            self._expected("text")
        return self.value

    def flag(self) -> bool:
        """It as true or false."""
        if self.value.__class__ is not bool:
            self._expected("true or false")
        return self.value

    def whole(self) -> int:
        """It as a whole number."""
        if self.value.__class__ is not int:
            self._expected("a whole number")
        return self.value

    def index(self, count: int, what: str) -> int:
        """It as the index of one of `count` things."""
        index = self.whole()
        if not 0 <= index < count:
            self.refuse(f"there is no {what} {index if abs(index) < 10**20 else 'of that number'}")
        return index

    def indices(self, count: int, what: str) -> tuple[int, ...]:
        """It as indices of some of `count` things."""
        return tuple(member.index(count, what) for member in self.list())

    def number(self) -> float:
        """It as a finite number."""
        if self.value.__class__ not in (int, float):
            self._expected("a number")
        try:
            value = float(self.value)
        except OverflowError:
            value = math.inf
        if not math.isfinite(value):
            self._expected("a finite number")
        return value

    def bounds(self) -> tuple[float, float]:
        """It as a pair of bounds; null stands for no bound."""
        low, high = self.list(2)
        lower = -math.inf if low.value is None else low.number()
        upper = math.inf if high.value is None else high.number()
        if lower > upper:
            self.refuse(f"the lower bound {lower:g} is above the upper {upper:g}")
        return lower, upper
