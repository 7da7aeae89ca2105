"""What pages show of instructions.py."""

from __future__ import annotations

from ._stored import Stored, number, table


def instructions(stored: Stored) -> list[str]:
    return table(
        ["problem", "samples", "nodes", "instructions a sample", "a node"],
        [
            [
                row["problem"],
                str(row["samples"]),
                str(row["nodes"]),
                f"{row['instructions'] / row['samples']:,.0f}",
                number(row["instructions"] / row["nodes"], 3),
            ]
            for row in stored["instructions"]
        ],
    )


TABLES = {"instructions": instructions}
VALUES: dict = {}
