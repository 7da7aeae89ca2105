"""Pages of studies show the numbers that are kept in studies/."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from statistics import fmean

from gdpnet.study import StudyFolder
from gdpnet.study.report import Results
from studies.cooling import draw
from studies.pbmc import conflicts

ROOT = Path(__file__).parents[2]


def page(name: str) -> str:
    return (ROOT / "docs" / "studies" / f"{name}.md").read_text(encoding="utf-8")


def test_the_cooling_page_is_as_drawn_from_its_results() -> None:
    tables = draw.tables(Results(StudyFolder(ROOT / "studies" / "cooling").results()))
    assert page("cooling") == draw.filled_in(page("cooling"), tables)
    assert page("cooling").count("<!-- table") == len(re.findall("<!-- end", page("cooling"))) > 5


def test_the_pbmc_page_has_the_means_of_its_results() -> None:
    with (ROOT / "studies" / "pbmc" / "results.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for size in {row["size"] for row in rows}:
        mean = fmean(
            float(row["accuracy"]) for row in rows if (row["method"], row["size"]) == ("dnf", size)
        )
        section = page("pbmc").split(f"### n = {size} ")[1].split("###")[0]
        assert f"| DNF | {mean:.3f} ±" in section


def test_the_pbmc_page_tells_of_contradictory_cells_as_measured() -> None:
    rows = conflicts.results()
    assert {row.way for row in rows} == set(conflicts.WAYS)
    assert page("pbmc") == conflicts.filled_in(page("pbmc"), rows)


def test_scripts_and_results_do_not_live_in_docs() -> None:
    kept = {".md", ".png", ".svg", ".css", ".js"}
    found = [file for file in (ROOT / "docs").rglob("*") if file.is_file()]
    strays = [f for f in found if f.suffix not in kept and "tools" not in f.relative_to(ROOT).parts]
    assert not strays
