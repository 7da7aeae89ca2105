"""What pages show of euclidean.py."""

from __future__ import annotations

from collections.abc import Callable

from _results import Row

from ._stored import Rows, Stored, ms, number, percent, ratio, span, table, us


def cases(stored: Stored) -> list[str]:
    def beside(row: Row, peer: str) -> str:
        taken = row[f"{peer}_seconds"]
        return f"{ms(taken)} ({number(ratio(taken, row['seconds']))})"

    def line(row: Row) -> list[str]:
        told = [row["case"], percent(row["broken"]), number(row["nodes"]), us(row["seconds"])]
        return [*told, beside(row, "daqp"), beside(row, "gurobi")]

    titles = ["rules x disjuncts x rows", "moved", "nodes", "gdpnet, µs"]
    titles += ["DAQP, ms (times gdpnet's)", "Gurobi, ms (times gdpnet's)"]
    return table(titles, [line(row) for row in stored["euclidean.cases"]], right=True)


def building(stored: Stored) -> list[str]:
    rows = stored["euclidean.cases"]
    names = ("build", "daqp_build", "gurobi_build")
    lines = [[row["case"], *(ms(row[name]) for name in names)] for row in rows]
    return table(["", "gdpnet, ms", "DAQP, ms", "Gurobi, ms"], lines, right=True)


def norms(stored: Stored) -> list[str]:
    def cell(value: float, spread: float) -> str:
        return f"{value:.4g} ({spread:.2g})"

    return table(
        ["task", "test", "method", "norm", "gradient", "loss", "satisfied", "us a sample"],
        [
            [
                *(row["task"], row["split"], row["method"], row["norm"], row["gradient"]),
                *(cell(row["loss"], row["spread"]), percent(row["satisfied"], 1)),
                us(row["seconds"]),
            ]
            for row in stored["norms"]
        ],
    )


def _times(peer: str) -> Callable[[Stored], str]:
    def found(stored: Stored) -> str:
        rows = stored["euclidean.cases"]
        return span(ratio(row[f"{peer}_seconds"], row["seconds"]) for row in rows)

    return found


def _agreement(stored: Stored) -> str:
    rows: Rows = stored["euclidean.cases"]
    ends = ("daqp_nearer", "daqp_farther", "gurobi_nearer", "gurobi_farther")
    return f"{max(row[end] for row in rows for end in ends):.0e}"


TABLES = {"euclidean.cases": cases, "euclidean.building": building, "norms": norms}
VALUES = {
    "euclidean.times DAQP": _times("daqp"),
    "euclidean.times Gurobi": _times("gurobi"),
    "euclidean.agreement": _agreement,
}
