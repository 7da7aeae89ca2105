"""What pages show of coupled.py."""

from __future__ import annotations

from ._stored import Stored, fixed, number, percent, span, table


def coupled(stored: Stored) -> list[str]:
    rows = stored["coupled"]
    titles = ["problem", "big-M, s", "gdpnet, s", "worst", "ratio", "MILP form alone", "proved"]
    lines = []
    for problem in rows.values("problem"):

        def told(column: str, who: str, problem: str = problem) -> float:
            return rows.needed(column, problem=problem, who=who)

        samples = told("samples", "gdpnet")
        lines.append(
            [
                problem,
                fixed(told("mean_s", "big-M"), 3),
                fixed(told("mean_s", "gdpnet"), 4),
                fixed(told("worst_s", "gdpnet"), 3),
                fixed(told("ratio", "gdpnet"), 1),
                fixed(told("ratio", "our MILP"), 1),
                f"{told('proved', 'gdpnet')} of {samples}, big-M {told('proved', 'big-M')}",
            ]
        )
    return table(titles, lines)


def alone(stored: Stored) -> list[str]:
    """What gdpnet takes by itself."""
    titles = ["problem", "a sample, s", "mean, s", "limit, s", "proved", "largest gap"]
    return table(
        titles,
        [
            [
                str(row["problem"]),
                span((row["least_s"], row["worst_s"])),
                number(row["mean_s"]),
                number(row["limit_s"]),
                f"{row['proved']} of {row['samples']}",
                percent(row["worst_gap"], 1) if row["worst_gap"] else "",
            ]
            for row in stored["coupled.alone"]
        ],
    )


TABLES = {"coupled": coupled, "coupled.alone": alone}
VALUES: dict = {}
