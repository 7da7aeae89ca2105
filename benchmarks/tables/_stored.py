"""Stored rows, and how numbers of them are written in a page."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from _results import Row, Value, read_rows

# What a stamp has besides versions.
ABOUT = (
    "commit", "dirty", "date", "cpu", "cores", "variant", "load", "command", "seconds", "source"
)  # fmt: skip


class NotMeasuredError(Exception):
    """Something that a page shows is not stored; the text says what."""


class Rows(list[Row]):
    """Rows of a table."""

    def where(self, **wanted: Value) -> Rows:
        """Those with these values."""
        return Rows(row for row in self if all(row.get(k) == v for k, v in wanted.items()))

    def value(self, column: str, /, **wanted: Value) -> Any:
        """The value of the first of those; None if there is none."""
        return next((row.get(column) for row in self.where(**wanted)), None)

    def needed(self, column: str, /, **wanted: Value) -> Any:
        """The same, where nothing can be said without it."""
        found = self.value(column, **wanted)
        if found is None:
            raise NotMeasuredError(f"{column} of {wanted}")
        return found

    def values(self, column: str, /, **wanted: Value) -> list[Any]:
        """The different values of a column, in their order, without what is absent."""
        found = (row.get(column) for row in self.where(**wanted))
        return [value for value in dict.fromkeys(found) if value is not None]


class Stored:
    """The tables and stamps of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._kept: dict[str, Rows] = {}

    def __getitem__(self, name: str) -> Rows:
        if name not in self._kept:
            path = self.folder / f"{name}.csv"
            if not path.exists():
                raise NotMeasuredError(f"benchmarks/results/{name}.csv")
            self._kept[name] = Rows(read_rows(path))
        return self._kept[name]

    def stamp(self, name: str) -> dict[str, Any]:
        """Where the rows of a table come from."""
        path = self.folder / f"{name}.json"
        if not path.exists():
            raise NotMeasuredError(f"benchmarks/results/{name}.csv")
        made: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return made


# ---- stamps -------------------------------------------------------------------------------------


def described(stamp: dict[str, Any]) -> str:
    """A stamp as sentences; what it does not know is left out."""
    told = []
    if "commit" in stamp:
        commit = f"commit {stamp['commit'][:12]}" if stamp["commit"] else "a tree without git"
        told.append(f"{commit}{' with changes' if stamp.get('dirty') else ''}, {stamp['date']}")
    else:
        told.append(f"{stamp['date']}: {stamp['source']}")
    if "cpu" in stamp:
        variant = f", variant {stamp['variant']}" if stamp.get("variant") else ""
        load = ", ".join(f"{x:.1f}" for x in stamp["load"])
        told.append(f"{stamp['cpu']}, {stamp['cores']} cores{variant}, load at the start {load}")
    versions = [f"{name} {value}" for name, value in stamp.items() if name not in ABOUT and value]
    if versions:
        told.append(", ".join(versions))
    if "command" in stamp:
        taken = f", {stamp['seconds'] / 60:.1f} minutes" if "seconds" in stamp else ""
        told.append(f"`{stamp['command']}`{taken}")
    return ". ".join(told) + "."


def stamps(stored: Stored, names: Sequence[str]) -> list[str]:
    """One line for each run that the tables of these names come from."""
    runs: dict[str, list[str]] = {}
    for name in names:
        runs.setdefault(described(stored.stamp(name)), []).append(f"`{name}.csv`")
    lines = [f"*{', '.join(tables)}: {told}*" for told, tables in runs.items()]
    return "\n\n".join(lines).split("\n")


# ---- cells --------------------------------------------------------------------------------------


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], right: bool = False) -> list[str]:
    """Lines of a table; with `right`, all columns but the first stand at the right."""
    rule = "|---|" + ("---:|" if right else "---|") * (len(titles) - 1)
    lines = [f"| {' | '.join(titles)} |".replace("|  |", "| |"), rule]
    return lines + [f"| {' | '.join(row)} |" for row in rows]


def number(value: float | None, digits: int = 2) -> str:
    """A number with so many digits that count, and all of those before the point."""
    if value is None or not math.isfinite(value):
        return ""
    if value == 0:
        return "0"
    # Once rounded it may have one digit more: 9.99 is 10.
    rounded = float(f"{value:.{digits - 1}e}")
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    return f"{value:,.{decimals}f}"


def fixed(value: float | None, decimals: int = 2, factor: float = 1.0) -> str:
    """A number with so many decimals."""
    return "" if value is None else f"{factor * value:,.{decimals}f}"


def us(seconds: float | None, digits: int = 2) -> str:
    """Seconds as microseconds, without the unit."""
    return number(None if seconds is None else 1e6 * seconds, digits)


def ms(seconds: float | None, digits: int = 2) -> str:
    """Seconds as milliseconds, without the unit."""
    return number(None if seconds is None else 1e3 * seconds, digits)


def ratio(above: float | None, below: float | None) -> float | None:
    """A quotient, None where one side is missing."""
    return None if above is None or below is None else above / below


def percent(share: float | None, decimals: int = 0) -> str:
    """A share; 100 has no decimals."""
    if share is None:
        return ""
    told = f"{round(100 * share, decimals) + 0.0:.{decimals}f}"  # no minus before nothing
    return "100 %" if float(told) == 100 else f"{told} %"


def span(values: Iterable[float | None], digits: int = 2) -> str:
    """The least and the most of what is there."""
    known = sorted(value for value in values if value is not None)
    if not known:
        raise NotMeasuredError("any of them")
    least, most = number(known[0], digits), number(known[-1], digits)
    return least if least == most else f"{least} to {most}"


def powers(value: float) -> str:
    """A large number such as 7e16."""
    mantissa, exponent = f"{value:.0e}".split("e")
    return f"{mantissa}e{int(exponent)}"
