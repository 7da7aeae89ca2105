"""What pages show of convex.py."""

from __future__ import annotations

from ._stored import Stored, number, table


def convex(stored: Stored) -> list[str]:
    return table(
        ["rules", "d", "exact engine, us", "peer", "peer, ms", "times as long"],
        [
            [
                str(row["rules"]),
                str(row["d"]),
                number(row["us"], 3),
                row["peer"],
                number(row["peer_ms"], 3),
                f"{row['times']:,.0f}",
            ]
            for row in stored["convex"]
        ],
    )


TABLES = {"convex": convex}
VALUES: dict = {}
