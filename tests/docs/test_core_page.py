"""core/README.md tells of every header, and of files that exist."""

from __future__ import annotations

import re
from pathlib import Path

CORE = Path(__file__).parents[2] / "core"
PAGE = (CORE / "README.md").read_text(encoding="utf-8")
HEADERS = CORE / "include" / "gdpnet"


def test_every_header_has_its_part() -> None:
    (table,) = re.findall(r"^\| part \|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    told = re.findall(r"`([\w.]+/?)`", "".join(row.split(" | ")[1] for row in table.splitlines()))
    there = [f"{path.name}/" if path.is_dir() else path.name for path in HEADERS.iterdir()]
    assert sorted(told) == sorted(there)


def test_files_that_it_names_exist() -> None:
    for name in re.findall(r"`([\w/]+\.(?:[ch]pp|py))`", PAGE):
        places = (
            CORE.parent,
            CORE,
            HEADERS,
            CORE / "src",
            CORE / "bind",
            CORE / "tests",
            CORE / "tools",
        )
        assert any((folder / name).is_file() for folder in places), name
