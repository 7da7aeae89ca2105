"""What pages show of native.py."""

from __future__ import annotations

from ._stored import Row, Stored, fixed, number, ratio, table


def _time(seconds: float | None) -> str:
    """With the unit that suits it."""
    if seconds is None:
        return "-"
    factor, unit = (1e6, "us") if seconds < 1e-3 else (1e3, "ms") if seconds < 1 else (1.0, "s")
    return f"{number(factor * seconds, 3)} {unit}"


def _beside(row: Row) -> str:
    times, least = ratio(row["old_s"], row["new_s"]), ratio(row["old_least_s"], row["new_least_s"])
    return "" if times is None else f"{number(times, 3)} ({number(least, 3)})"


def _training(stored: Stored) -> list[str]:
    """What the layer makes of the time of training, for each engine."""
    rows = stored["native.warm"]
    times = [
        ratio(
            rows.value(side, case="with the layer, vertex"),
            rows.value(side, case="the network alone"),
        )
        for side in ("old_s", "new_s")
    ]
    return [f"{number(time, 3)} times" if time else "-" for time in times]


def warm(stored: Stored) -> list[str]:
    made, last = [], None
    for row in stored["native.warm"]:
        nodes = [row["old_nodes"], row["new_nodes"]]
        counted = "" if nodes[0] is None else " and ".join(dict.fromkeys(f"{n:.3g}" for n in nodes))
        group = row["group"] if row["group"] != last else ""
        cells = [
            group,
            row["case"],
            _time(row["old_s"]),
            _time(row["new_s"]),
            _beside(row),
            counted,
        ]
        made.append(cells)
        last = row["group"]
    made.append(["training", "with the layer over the network alone", *_training(stored), "", ""])
    return table(["", "a sample of", "numba", "compiled", "beside", "nodes"], made)


def cold(stored: Stored) -> list[str]:
    return table(
        ["in a fresh process", "numba", "compiled", "beside", "numba, MB", "compiled, MB"],
        [
            [
                row["what"],
                _time(row["old_s"]),
                _time(row["new_s"]),
                _beside(row),
                fixed(row["old_peak_bytes"], 0, 1e-6),
                fixed(row["new_peak_bytes"], 0, 1e-6),
            ]
            for row in stored["native.cold"]
        ],
    )


TABLES = {"native.warm": warm, "native.cold": cold}
VALUES: dict = {}
