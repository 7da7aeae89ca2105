"""What pages show of prices.py."""

from __future__ import annotations

from ._stored import Stored, number, percent, ratio, table, us


def cooling(stored: Stored) -> list[str]:
    return table(
        ["norm", "", "moved", "broken", "nodes", "us a sample"],
        [
            [
                row["norm"],
                row["what"],
                percent(row["moved"]),
                percent(row["broken"]),
                number(row["nodes"], 3),
                us(ratio(row["seconds"], row["samples"]), 2),
            ]
            for row in stored["prices.cooling"]
        ],
    )


def pbmc(stored: Stored) -> list[str]:
    return table(
        ["rules", "cells", "on_conflict", "calls", "rules left out", "us a cell"],
        [
            [
                row["rules"],
                row["cells"],
                row["on_conflict"],
                row["calls"],
                "" if row["dropped"] is None else number(row["dropped"], 2),
                us(ratio(row["seconds"], row["samples"]), 2),
            ]
            for row in stored["prices.pbmc"]
        ],
    )


def _times(stored: Stored, norm: str) -> str:
    found = {row["what"]: row["seconds"] for row in stored["prices.cooling"] if row["norm"] == norm}
    return number(ratio(found["with prices"], found["without prices"]), 3)


def _dropped(stored: Stored, rules: str, calls: str = "in a batch") -> str:
    found = {
        (row["cells"], row["on_conflict"]): ratio(row["seconds"], row["samples"])
        for row in stored["prices.pbmc"]
        if row["rules"] == rules and row["calls"] == calls
    }
    return number(ratio(found["contradictory", "drop"], found["usual", "pass"]), 2)


TABLES = {"prices.cooling": cooling, "prices.pbmc": pbmc}
VALUES = {
    "prices.times l1": lambda stored: _times(stored, "l1"),
    "prices.times l2": lambda stored: _times(stored, "l2"),
    "prices.dropped A": lambda stored: _dropped(stored, "A"),
    "prices.dropped C": lambda stored: _dropped(stored, "C"),
    "prices.dropped A alone": lambda stored: _dropped(stored, "A", "one by one"),
    "prices.dropped C alone": lambda stored: _dropped(stored, "C", "one by one"),
}
