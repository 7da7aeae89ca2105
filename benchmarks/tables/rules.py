"""What pages show of rules.py."""

from __future__ import annotations

from ._stored import Stored, ms, ratio, table, us


def rules(stored: Stored) -> list[str]:
    return table(
        ["", "ms", "us a sample"],
        [
            [row["what"], ms(row["seconds"], 3), us(ratio(row["seconds"], row["samples"]), 2)]
            for row in stored["rules"]
        ],
    )


TABLES = {"rules": rules}
VALUES: dict = {}
