"""Pages of studies show the numbers that are kept in studies/."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("folder", ["cooling", "cooling/merged", "pbmc"])
def test_a_study_says_where_its_numbers_come_from(folder: str) -> None:
    runs = json.loads((ROOT / "studies" / folder / "study.json").read_text())["runs"]
    assert runs
    for run in runs:
        assert {"commit", "date", "cpu", "torch"} <= set(run) or {"date", "source"} <= set(run)


@pytest.mark.parametrize("folder", ["cooling", "cooling/merged", "pbmc"])
def test_means_are_over_the_same_seeds_for_all_methods(folder: str) -> None:
    """Or methods that were trained for more seeds would not compare."""
    seeds: dict[tuple[str, str], dict[str, set[str]]] = {}
    with (ROOT / "studies" / folder / "results.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            cell = seeds.setdefault((row["protocol"], row["size"]), {})
            cell.setdefault(row["method"], set()).add(row["seed"])
    assert seeds
    for cell in seeds.values():
        assert len({frozenset(one) for one in cell.values()}) == 1


def test_scripts_and_results_do_not_live_in_docs() -> None:
    kept = {".md", ".png", ".svg", ".css", ".js"}
    found = [file for file in (ROOT / "docs").rglob("*") if file.is_file()]
    strays = [f for f in found if f.suffix not in kept and "tools" not in f.relative_to(ROOT).parts]
    assert not strays
