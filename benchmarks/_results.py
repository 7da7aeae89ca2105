"""What a benchmark measured: rows of plain values, one csv a table, and a stamp.

A script gives its rows to a `Results`, which prints them as they come. `write` leaves each table as
`SCRIPT.TABLE.csv` (`SCRIPT.csv` for a table without a name) and beside it a stamp of the same name,
a json: which tree, which versions, which machine, when. Each table has its own because a run may
leave others of the script as they are, such as those of a peer that is not installed. With
`--publish` they go to `benchmarks/results`, from where `fill.py` makes the tables of the pages;
without it to `build/benchmarks`, where they are looked at and forgotten.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import math
import os
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PUBLISHED = ROOT / "benchmarks" / "results"
UNPUBLISHED = ROOT / "build" / "benchmarks"

Value = str | int | float | bool | None
Row = dict[str, Value]


class Results:
    """The tables of one run of a script.

    Args:
        name: of the script, and so of its files.
        arguments: the script's, as `parsed` gives them.
        packages: names of those whose version matters besides those of every stamp.
        about: what else the stamp has to tell.
    """

    def __init__(
        self,
        name: str,
        arguments: argparse.Namespace,
        packages: tuple[str, ...] = (),
        about: dict[str, str | None] | None = None,
    ) -> None:
        self.name = name
        self.folder = PUBLISHED if arguments.publish else UNPUBLISHED
        self.tables: dict[str, list[Row]] = {}
        self._packages = packages
        self._about = about or {}
        self._load = list(os.getloadavg())
        self._began = time.perf_counter()

    def add(self, table: str = "", /, **row: Any) -> None:
        """Keep a row and print it.

        Args:
            table: its name within the script.
            **row: plain values; numpy's and torch's scalars become such. Text that would be read
                back as something else (a number, a truth value, nothing) is refused.
        """
        plain = {key: _plain(value) for key, value in row.items()}
        rows = self.tables.setdefault(table, [])
        if not rows or list(rows[-1]) != list(plain):
            if not rows:
                print(f"\n{self._stem(table)}")
            print("  " + "  ".join(f"{key:>{_width(key)}}" for key in plain))
        rows.append(plain)
        shown = (f"{_shown(value):>{_width(key)}}" for key, value in plain.items())
        print("  " + "  ".join(shown), flush=True)

    def write(self) -> None:
        """Write the tables and their stamps, and print what the pages would show of them."""
        # Not sooner: some scripts run trees that have none.
        from gdpnet.study.stamp import stamp

        self.folder.mkdir(parents=True, exist_ok=True)
        taken = time.perf_counter() - self._began
        made = stamp(self._packages, self._load) | self._about | {"seconds": round(taken, 1)}
        for table, rows in self.tables.items():
            write_rows(self.folder / f"{self._stem(table)}.csv", rows)
            write_stamp(self.folder / f"{self._stem(table)}.json", made)
        from fill import show

        show(self.name, self.folder)
        print(f"\n{taken:.0f} s, written to {os.path.relpath(self.folder)}")

    def _stem(self, table: str) -> str:
        return f"{self.name}.{table}" if table else self.name


def parser(description: str | None, quick: str = "fewer samples") -> argparse.ArgumentParser:
    """The options that all scripts have."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--quick", action="store_true", help=quick)
    made.add_argument(
        "--publish", action="store_true", help="write to benchmarks/results: data of the pages"
    )
    return made


def parsed(options: argparse.ArgumentParser) -> argparse.Namespace:
    """The arguments; a short run is not published, nor one of another tree than this."""
    arguments = options.parse_args()
    if arguments.publish and arguments.quick:
        options.error("--quick is for a look: what is published is measured in full")
    if arguments.publish:
        spec = importlib.util.find_spec("gdpnet")
        if spec is None or not Path(str(spec.origin)).is_relative_to(ROOT):
            options.error(f"gdpnet is not imported from {ROOT}, whose commit would be told")
    return arguments


# ---- files --------------------------------------------------------------------------------------


def write_rows(path: Path, rows: list[Row]) -> None:
    """Write rows with all digits; columns in the order in which they are first met."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for row in rows:
            writer.writerow([_written(row.get(key)) for key in columns])


def read_rows(path: Path) -> list[Row]:
    """Rows as they were given, an absent value as None."""
    with path.open(newline="", encoding="utf-8") as file:
        return [{key: _read(text) for key, text in row.items()} for row in csv.DictReader(file)]


def write_stamp(path: Path, made: dict[str, Any]) -> None:
    """Write a stamp, one line a fact."""
    path.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")


def _plain(value: Any) -> Value:
    if hasattr(value, "item"):
        value = value.item()
    if not (value is None or isinstance(value, str | int | float | bool)):
        raise TypeError(f"{value!r} is not a plain value")
    if isinstance(value, str) and _read(value) != value:
        raise ValueError(f"the text {value!r} would be read back as {_read(value)!r}")
    return value


def _written(value: Value) -> str:
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


def _read(text: str) -> Value:
    if text in ("", "True", "False"):
        return {"": None, "True": True, "False": False}[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _shown(value: Value) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if math.isfinite(value) else str(value)
    return "" if value is None else str(value)


def _width(key: str) -> int:
    return max(10, len(key))
