"""Figures and tables of docs/studies/cooling.md, drawn from results.csv beside this file.

    python studies/cooling/draw.py

Nothing is trained. Tables stand between `<!-- table NAME -->` and `<!-- end -->` in the page and
are replaced there; the text around them is not touched.
"""

import re
from pathlib import Path

from gdpnet.study import StudyFolder
from gdpnet.study.report import Results, convexification_figure, size_figure
from gdpnet.study.report.tables import (
    SATISFACTION,
    Table,
    convexification,
    each_rule,
    number,
    quality,
)

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "studies" / "cooling.md"
PICTURES = PAGE.with_suffix("")


def by_size(results: Results, protocol: str, metric: str, split: str) -> Table:
    """One metric of every method against the training size."""
    rows = tuple(
        (
            method,
            *(
                number(
                    metric,
                    results.at(metric, method=method, split=split, protocol=protocol, size=size),
                )
                for size in results.sizes
            ),
        )
        for method in results.methods
        if results.sizes_of(method, protocol)
    )
    name = SATISFACTION.get(metric, metric.upper())
    headers = (f"{name} {split.upper()}", *(f"n = {size}" for size in results.sizes))
    return Table(f"{protocol}: mean (standard deviation)", headers, rows)


def tables(results: Results) -> dict[str, Table | None]:
    """Every table by the name that the page gives it."""
    found: dict[str, Table | None] = {}
    for protocol in results.protocols:
        for split in results.splits:
            for metric in ("mse", "csat", "csat_rules"):
                found[f"{protocol} {metric} {split}"] = by_size(results, protocol, metric, split)
            found[f"{protocol} rules {split}"] = each_rule(results, protocol, 250, split)
        for size in results.sizes:
            found[f"{protocol} quality {size}"] = quality(results, protocol, size)
            found[f"{protocol} convexification {size}"] = convexification(results, protocol, size)
    return found


def filled_in(page: str, made: dict[str, Table | None]) -> str:
    """The page with its tables replaced."""

    def filled(block: re.Match[str]) -> str:
        table = made.get(block[1])
        text = "(not trained)" if table is None else table.markdown()
        return f"<!-- table {block[1]} -->\n{text}\n<!-- end -->"

    return re.sub(r"<!-- table (.+?) -->\n.*?<!-- end -->", filled, page, flags=re.DOTALL)


def main() -> None:
    results = Results(StudyFolder(HERE).results())
    made = tables(results)
    for protocol in results.protocols:
        size_figure(results, protocol).savefig(PICTURES / f"sizes_{protocol}.png", dpi=110)
        if any(made[f"{protocol} convexification {size}"] for size in results.sizes):
            figure = convexification_figure(results, protocol)
            figure.savefig(PICTURES / f"convexification_{protocol}.png", dpi=110)

    PAGE.write_text(filled_in(PAGE.read_text(encoding="utf-8"), made), encoding="utf-8")


if __name__ == "__main__":
    main()
