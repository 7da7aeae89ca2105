"""What pages show of programs.py."""

from __future__ import annotations

from ._stored import Stored, fixed, ratio, span, table

SHAPES = [(kind, columns) for kind in ("LP", "QP") for columns in (2, 10)]


def programs(stored: Stored) -> list[str]:
    rows = stored["programs"]
    made = []
    for name in ("gdpnet", "cvxpylayers"):
        cells = []
        for kind, columns in SHAPES:
            found = rows.where(layer=name, kind=kind, columns=columns)
            cells.append(" / ".join(fixed(found.value(c), 0, 1e6) for c in ("forward_s", "both_s")))
        made.append([f"{name}" if name != "gdpnet" else "`gdpnet.nn.ProgramLayer`", *cells])
    shapes = {2: "2 Vars, 3 rows", 10: "10 Vars, 20 rows"}
    return table(["", *(f"{kind}, {shapes[columns]}" for kind, columns in SHAPES)], made)


def _ahead(stored: Stored) -> str:
    rows = stored["programs"]
    found = [
        ratio(
            rows.value("both_s", layer="cvxpylayers", kind=kind, columns=columns),
            rows.value("both_s", layer="gdpnet", kind=kind, columns=columns),
        )
        for kind, columns in SHAPES
    ]
    return span(found)


TABLES = {"programs": programs}
VALUES = {"programs.ahead": _ahead}
