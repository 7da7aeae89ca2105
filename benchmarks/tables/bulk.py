"""What pages show of bulk.py."""

from __future__ import annotations

from ._stored import Rows, Stored, number, table, us

BILLION = 1e9
_NAMES = {"cheap": "cooling, 7 rules", "dear": "90 interacting rules, 50 outputs"}


def rate(row: dict) -> float | None:
    """Rows a second once everything has started; None where starting took all of the time."""
    after = row["seconds"] - row["start_s"]
    return row["rows"] / after if after > 0 else None


def core_hours(rows: Rows, rules: str) -> float:
    """Processor time of 10^9 rows."""
    return BILLION * rows.needed("row_cpu_s", rules=rules, mode="one process") / 3600


def bulk(stored: Stored) -> list[str]:
    return table(
        ["rules", "", "rows", "start, s", "then rows a second"],
        [
            [
                _NAMES[row["rules"]],
                row["mode"],
                f"{row['rows']:,}",
                number(row["start_s"], 2),
                number(rate(row), 2),
            ]
            for row in stored["bulk"]
        ],
    )


def billion(stored: Stored) -> list[str]:
    rows = stored["bulk"]
    return table(
        ["rules", "CPU us a row", "10^9 rows, core hours", "on 32 cores", "on 32 machines of 32"],
        [
            [
                _NAMES[name],
                us(rows.needed("row_cpu_s", rules=name, mode="one process"), 2),
                number(core_hours(rows, name), 2),
                _told(core_hours(rows, name) / 32),
                _told(core_hours(rows, name) / 32**2),
            ]
            for name in _NAMES
        ],
    )


def _told(hours: float) -> str:
    return f"{number(hours, 2)} h" if hours >= 1 else f"{number(60 * hours, 2)} min"


TABLES = {"bulk": bulk, "bulk.billion": billion}
VALUES = {
    "bulk.cheap.us": lambda stored: us(
        stored["bulk"].needed("row_cpu_s", rules="cheap", mode="one process"), 2
    ),
    "bulk.cheap.hours": lambda stored: number(core_hours(stored["bulk"], "cheap"), 2),
    "bulk.dear.hours": lambda stored: number(core_hours(stored["bulk"], "dear"), 2),
}
