"""Tables: results as cells of text, for the screen and for a page alike."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gdpnet.study.report._results import Results, Statistic

SATISFACTION = {
    "csat": "CSAT",
    "csat_conflict_free": "CSAT, conflict-free",
    "csat_rules": "CSAT, rules only",
}


@dataclass(frozen=True)
class Table:
    """Cells of text.

    Attributes:
        caption: what it shows.
        headers: one for each column; the first names the rows.
        rows: cells, as many as headers.

    Example:
        >>> Table("Sizes", ("form", "rows"), (("CNF", "13"),)).markdown().splitlines()[0]
        '| form | rows |'
    """

    caption: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        """The table in Markdown, without its caption."""
        lines = [self.headers, ("---", *("---:" for _ in self.headers[1:])), *self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def quality(results: Results, protocol: str, size: int) -> Table:
    """Every method at one size: the task's metrics and rule satisfaction on each test split.

    Conflict-free samples have a column of their own where some samples are not.
    """
    where = {"protocol": protocol, "size": size}
    conflicts = any(row.get("conflict_free", 0) < row.get("samples", 0) for row in results.rows)
    shares = [name for name in SATISFACTION if conflicts or name != "csat_conflict_free"]
    columns = [
        (metric, split) for metric in (*results.metrics, *shares) for split in results.splits
    ]
    methods = [m for m in results.methods if size in results.sizes_of(m, protocol)]
    rows = tuple(
        (
            method,
            *(
                number(metric, results.at(metric, method=method, split=split, **where))
                for metric, split in columns
            ),
        )
        for method in methods
    )
    headers = ("method", *(f"{SATISFACTION.get(m, m.upper())} {split}" for m, split in columns))
    return Table(
        f"{protocol}, n = {size}, {seeds_told(results)}: mean (standard deviation)", headers, rows
    )


def overhead(results: Results, protocol: str) -> Table:
    """What every method costs: training and inference, at the protocol's largest size."""
    size = max(row["size"] for row in results.rows if row["protocol"] == protocol)
    split = results.splits[0]
    columns = {
        "epoch_seconds": ("training, s an epoch", 1.0),
        "train_seconds": ("training, s", 1.0),
        "train_steps": ("steps", 1.0),
        "inference_us": ("inference, us a sample", 1.0),
        "single_us": ("one by one, us", 1.0),
    }
    methods = [m for m in results.methods if size in results.sizes_of(m, protocol)]
    rows = tuple(
        (
            method,
            *(
                _short(
                    results.at(key, method=method, split=split, protocol=protocol, size=size).mean
                )
                for key in columns
            ),
        )
        for method in methods
    )
    headers = ("method", *(title for title, _ in columns.values()))
    caption = (
        f"{protocol}, n = {size}, {split}: mean. An epoch is one of the method's last stage; "
        "training counts all stages."
    )
    return Table(caption, headers, rows)


def each_rule(results: Results, protocol: str, size: int, split: str) -> Table:
    """Share of the samples where a rule is active that satisfy it, for every method."""
    where = {"protocol": protocol, "size": size, "split": split}
    methods = [m for m in results.methods if size in results.sizes_of(m, protocol)]
    rows = tuple(
        (
            method,
            *(
                number("csat", results.at(f"csat/{rule}", method=method, **where))
                for rule in results.rules
            ),
        )
        for method in methods
    )
    return Table(
        f"{protocol}, n = {size}, {split}: samples with the rule active that satisfy it",
        ("method", *results.rules),
        rows,
    )


def convexification(results: Results, protocol: str, size: int) -> Table | None:
    """Metrics against the number of merged rules, for both orders; None where not trained."""
    columns = [(metric, split) for metric in (*results.metrics, "csat") for split in results.splits]
    rows = []
    for kind, order in ORDERS.items():
        for k, method in results.merged(kind).items():
            where = {"method": method, "protocol": protocol, "size": size}
            cells = [
                number(metric, results.at(metric, split=split, **where))
                for metric, split in columns
            ]
            if any(cells):
                rows.append((f"{order}, {k}", *cells))
    if all(row[0].endswith((", 0", ", 1")) for row in rows):
        return None
    headers = (
        "order, k",
        *(f"{SATISFACTION.get(m, m.upper())} {split}" for m, split in columns),
    )
    return Table(
        f"{protocol}, n = {size}, {seeds_told(results)}: mean (standard deviation)",
        headers,
        tuple(rows),
    )


ORDERS = {"pdnf": "lexicographic", "steps": "planner"}
"""Kinds of methods that merge a number of rules, and the order in which they do."""


def number(metric: str, statistic: Statistic) -> str:
    """Mean and standard deviation; shares in per cent, 100 only where every sample counts."""
    if not statistic.count:
        return ""
    if metric.startswith("csat"):
        mean, spread = 100 * statistic.mean, 100 * statistic.deviation
        # 99.97 must not read as 100.
        told = "100" if statistic.mean == 1.0 else f"{math.floor(100 * mean) / 100:.2f}"
        return f"{told} ({spread:.1f}) %" if statistic.count > 1 else f"{told} %"
    told = _short(statistic.mean)
    return f"{told} ({_short(statistic.deviation)})" if statistic.count > 1 else told


def seeds_told(results: Results) -> str:
    """How many seeds there are, in words."""
    count = len(results.seeds)
    return f"{count} seed{'' if count == 1 else 's'}"


def _short(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3g}"
