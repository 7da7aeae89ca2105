"""CONTRIBUTING.md: rooms in the order of their imports, and files that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def table(first_cell: str) -> list[list[str]]:
    """Rows of the table whose head begins with a cell."""
    (text,) = re.findall(rf"^\| {first_cell} \|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in text.splitlines()]


def test_the_layout_has_the_rooms_in_the_order_of_their_imports() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    told = [re.findall(r"`(\w+)(?:\.py)?`", row[0]) for row in table("room")]
    assert told == [re.findall(r"gdpnet\.(\w+)", line) for line in layers]


def test_folders_beside_the_package_exist() -> None:
    for row in table("folder"):
        for folder in re.findall(r"`(\w+)`", row[0]):
            assert (ROOT / folder).is_dir(), folder


def test_fifteen_changes_name_files_that_exist() -> None:
    rows = table("change")
    assert len(rows) == 15
    for change, count, which in rows:
        assert count, change
        named = [name for name in re.findall(r"`([\w/]+\.py)`", which) if "NAME" not in name]
        for name in named:
            found = (ROOT / "gdpnet" / name).exists() or list((ROOT / "gdpnet").rglob(name))
            assert found, f"{change}: {name}"
