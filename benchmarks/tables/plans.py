"""What pages show of plans.py."""

from __future__ import annotations

import statistics
from collections import defaultdict

from ._stored import Rows, Stored, percent, span, table

ORDERS = {
    "planner": "planner",
    "lexicographic": "lexicographic",
    "random, mean": "random, mean of 10",
    "random, worst": "random, worst",
}
NAMES = {"cooling iid": "cooling, in distribution", "cooling ood": "cooling, shifted"}


def _title(row: dict) -> str:
    name = NAMES.get(row["problem"], row["problem"]).replace("k=", "k = ")
    if name.startswith("random"):
        return f"{name}, d = {row['outputs']}, {row['rules']} rules"
    return name


def _choices(stored: Stored) -> dict[tuple[str, int], Rows]:
    """The orders of each case in which not all rules fit."""
    found: dict[tuple[str, int], Rows] = defaultdict(Rows)
    for row in stored["plans.cases"]:
        if row["order"] in ORDERS:
            found[row["problem"], row["budget"]].append(row)
    return found


def cases(stored: Stored) -> list[str]:
    made, last = [], None
    for (problem, budget), rows in _choices(stored).items():
        cells = []
        for order in ORDERS:
            closed, satisfied = (rows.value(c, order=order) for c in ("closed", "satisfied"))
            cells.append(f"{percent(closed)} / {percent(satisfied, 1)}")
        made.append(["" if problem == last else _title(rows[0]), str(budget), *cells])
        last = problem
    return table(["", "budget", *ORDERS.values()], made)


def summary(stored: Stored) -> list[str]:
    choices = _choices(stored).values()
    made = []
    for order, title in ORDERS.items():
        closed, satisfied = (
            statistics.fmean(rows.value(column, order=order) for rows in choices)
            for column in ("closed", "satisfied")
        )
        ahead = [
            rows.value("closed", order="planner") - rows.value("closed", order=order)
            for rows in choices
        ]
        won, lost = sum(a > 1e-6 for a in ahead), sum(a < -1e-6 for a in ahead)
        score = "" if order == "planner" else f"{won} / {len(ahead) - won - lost} / {lost}"
        made.append([title, percent(closed), percent(satisfied, 1), score])
    titles = [f"mean of {len(choices)} cases", "gap closed", "CSAT"]
    return table([*titles, "planner tighter / as tight / looser"], made)


def _mean_closed(stored: Stored, order: str) -> str:
    choices = _choices(stored).values()
    return percent(statistics.fmean(rows.value("closed", order=order) for rows in choices))


def _seconds(stored: Stored, random: bool) -> str:
    known = [row for row in stored["plans.cases"] if row["seconds"]]
    chosen = [row for row in known if row["problem"].startswith("random") == random]
    return f"{span(row['seconds'] for row in chosen)} s"


def _products(stored: Stored, problem: str) -> str:
    return str(stored["plans.cases"].needed("products", problem=problem))


TABLES = {"plans.cases": cases, "plans.summary": summary}
VALUES = {
    "plans.planner": lambda s: _mean_closed(s, "planner"),
    "plans.lexicographic": lambda s: _mean_closed(s, "lexicographic"),
    "plans.seconds": lambda s: _seconds(s, random=False),
    "plans.seconds random": lambda s: _seconds(s, random=True),
    "plans.products cooling": lambda s: _products(s, "cooling ood"),
    "plans.products stress 6": lambda s: _products(s, "stress k=6"),
    "plans.products stress 10": lambda s: _products(s, "stress k=10"),
}
