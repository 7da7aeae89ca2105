"""docs/paper.md: complete, and every file and test it names exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/paper.md").read_text(encoding="utf-8")
FIRST_CELLS = " ".join(re.findall(r"^\| ([^|]*) \|", PAGE, re.MULTILINE))

# What the paper numbers, in the order of its text.
NUMBERED = [
    *(f"Eq. ({k})" for k in range(1, 20)),
    "Proposition 3.1",
    "Theorem 3.2",
    "Proposition 3.3",
    "Remark 3.4",
    "Corollary 3.5",
    "Theorem 3.6",
    "Remark 3.7",
    "Remark 3.8",
    "Remark 3.9",
    "Corollary 3.10",
    "Theorem B.1",
    "Theorem B.2",
    "Remark B.3",
    "Algorithm 1",
    *(f"Table {k}" for k in range(1, 13)),
    *(f"Figure {k}" for k in range(1, 6)),
]

FOLDERS = ("benchmarks", "docs", "gdpnet", "models", "studies", "tests", "tutorials")
NAMED = sorted(set(re.findall(rf"`((?:{'|'.join(FOLDERS)})/[^`]*)`", PAGE)))


@cache
def functions_of(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("item", NUMBERED)
def test_the_map_is_complete(item: str) -> None:
    assert re.search(re.escape(item) + r"(?!\d)", FIRST_CELLS)


@pytest.mark.parametrize("name", NAMED)
def test_what_it_names_exists(name: str) -> None:
    path, _, test = name.partition("::")
    assert (ROOT / path).exists()
    if test:
        assert test in functions_of(ROOT / path)


def test_every_row_says_where_or_what_shows_it() -> None:
    for row in re.findall(r"^\| (?!paper|---).*$", PAGE, re.MULTILINE):
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert any(cells[2:]), row
