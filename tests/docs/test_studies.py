"""Pages of studies show the numbers that are kept in studies/."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from statistics import fmean, stdev

import pytest

from studies.pbmc import conflicts
from studies.pbmc._study import NAMES

ROOT = Path(__file__).parents[2]


def page(name: str) -> str:
    return (ROOT / "docs" / "studies" / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("folder", ["cooling", "cooling/merged", "pbmc"])
def test_a_study_says_where_its_numbers_come_from(folder: str) -> None:
    runs = json.loads((ROOT / "studies" / folder / "study.json").read_text())["runs"]
    assert runs
    for run in runs:
        assert {"commit", "date", "cpu", "torch"} <= set(run) or {"date", "source"} <= set(run)


def test_means_are_over_the_same_seeds_for_all_methods() -> None:
    """Or methods that were trained for more seeds would not compare."""
    seeds: dict[tuple[str, str], dict[str, set[str]]] = {}
    with (ROOT / "studies" / "cooling" / "results.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            cell = seeds.setdefault((row["protocol"], row["size"]), {})
            cell.setdefault(row["method"], set()).add(row["seed"])
    assert seeds
    for cell in seeds.values():
        assert len({frozenset(one) for one in cell.values()}) == 1


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


@pytest.mark.parametrize("name", ["right and wrong", "ties", "rule sets"])
def test_tables_of_the_pbmc_page_are_those_stored(name: str) -> None:
    block = page("pbmc").split(f"<!-- {name} -->\n")[1].split("<!-- end -->")[0]
    lines = [cells_of(line) for line in block.splitlines() if line and not line.startswith("|---")]
    with (ROOT / "studies" / "pbmc" / f"{name.replace(' ', '_')}.csv").open(newline="") as file:
        assert lines == list(csv.reader(file))


def test_all_methods_of_the_pbmc_page_are_those_of_its_results() -> None:
    columns = ("accuracy", "macro_f1", "macro_precision", "macro_recall", "csat")
    with (ROOT / "studies" / "pbmc" / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for size in {row["size"] for row in rows}:
        section = page("pbmc").split(f"### n = {size} ")[1].split("###")[0]
        shown = {cells_of(line)[0]: cells_of(line)[1:] for line in section.splitlines()}
        for method in {row["method"] for row in rows}:
            own = [row for row in rows if (row["method"], row["size"]) == (method, size)]
            for column, cell in zip(columns, shown[NAMES[method]], strict=False):
                values = [float(row[column]) for row in own]
                assert cell.startswith(f"{fmean(values):.3f} ± {stdev(values):.3f}")


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
