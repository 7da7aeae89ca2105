"""docs/glossary.md: every name in it exists, every word stands once, where its alphabet has it."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pyomo.environ as pyo
import pyomo.gdp
import pytest

import gdpnet

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
ROWS = [
    tuple(cell.strip() for cell in row.split(" | "))
    for row in re.findall(r"^\| (?!word|---)(.*) \|$", PAGE, re.MULTILINE)
]
NAMES = sorted(set(re.findall(r"`([^`]+)`", PAGE)))


def look_up(name: str) -> Any:
    """A module, or what is in it, fields of a class included."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: Any = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            fields = getattr(found, "__annotations__", {})
            found = getattr(found, part) if hasattr(found, part) else fields[part]
        return found
    raise LookupError(name)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("gdpnet")])
def test_names_of_gdpnet_exist(name: str) -> None:
    assert look_up(name) is not None


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("gdpnet")])
def test_other_names_are_keywords_or_pyomos(name: str) -> None:
    if name.startswith("core/"):
        assert (ROOT / name).is_file()
    elif name.startswith("Exact("):
        eval(name, {"Exact": gdpnet.solve.Exact})
    elif "=" in name:
        keyword, _, value = name.partition("=")
        assert keyword in inspect.signature(gdpnet.project).parameters
        if value and value != "True":
            rules = gdpnet.testing.BY_NAME["figure1"].rules()
            gdpnet.ProjectionLayer(rules, **{keyword: value.strip('"')})
    else:
        assert hasattr(pyo, name) or hasattr(pyomo.gdp, name)


def test_every_word_says_what_it_means_and_where_it_lives() -> None:
    assert len(ROWS) > 60
    for row in ROWS:
        assert len(row) == 3, row
        assert row[1], row
        assert re.search(r"`(gdpnet\.[\w.]+|core/[\w./]+)`", row[2]), row


def test_words_stand_once_and_in_order() -> None:
    words = [row[0].lower() for row in ROWS]
    assert len(words) == len(set(words))
    for section in PAGE.split("\n## ")[1:]:
        own = [w.lower() for w in re.findall(r"^\| (?!word|---)([^|]*) \|", section, re.MULTILINE)]
        assert own == sorted(own)
