"""What pages show of serving.py."""

from __future__ import annotations

import statistics

from ._stored import Stored, ms, number, table, us


def latency(stored: Stored) -> list[str]:
    return table(
        ["", "clients", "p50 ms", "p99 ms", "requests a second", "server's CPU, us a request"],
        [
            [
                row["route"],
                str(row["clients"]),
                ms(row["p50_s"]),
                ms(row["p99_s"]),
                number(1 / row["request_s"], 2),
                us(row["server_cpu_s"]),
            ]
            for row in stored["serving.latency"]
        ],
    )


def memory(stored: Stored) -> list[str]:
    rows = stored["serving.memory"]
    return table(
        ["requests", "resident MB"],
        [[f"{row['requests']:,}", number(row["resident_bytes"] / 1e6, 4)] for row in rows],
        right=True,
    )


def _grown(stored: Stored) -> str:
    rows = stored["serving.memory"]
    return number((rows[-1]["resident_bytes"] - rows[1]["resident_bytes"]) / 1e6, 2) or "0"


def _start(column: str):
    def told(stored: Stored) -> str:
        return number(statistics.median(stored["serving.start"].values(column)), 2)

    return told


TABLES = {"serving.latency": latency, "serving.memory": memory}
VALUES = {
    "serving.start.s": _start("first_answer_s"),
    "serving.start.cpu": _start("cpu_s"),
    "serving.grown.mb": _grown,
    "serving.requests": lambda stored: f"{stored['serving.memory'][-1]['requests']:,}",
}
