"""Links between the files of the repository lead to what is there, headings included."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WRITTEN = ("*.md", "docs/**/*.md", "models/**/*.md", "tutorials/*.py", "*/README.md")
FILES = sorted({path for pattern in WRITTEN for path in ROOT.glob(pattern)})
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s#]*)(?:#([^)\s]*))?\)")
MARK = re.compile(r"`|\*|\[([^\]]*)\]\([^)]*\)")


@cache
def anchors(page: Path) -> set[str]:
    """What GitHub and the site call the headings of a page."""
    headings = re.findall(
        r"^#+ (.*)$", CODE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE
    )
    plain = (MARK.sub(lambda found: found[1] or "", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).strip().replace(" ", "-") for heading in plain}


def broken(page: Path) -> Iterator[str]:
    """Links of a page that lead nowhere."""
    for path, anchor in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (
            anchor and target.suffix == ".md" and anchor not in anchors(target)
        ):
            yield f"{path}#{anchor}" if anchor else path


@pytest.mark.parametrize("page", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert list(broken(page)) == []


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `b`, c\n[1](#a-b-c) [2](#none) [3](page.md#a-b-c) [4](other.md) [5](.)\n")
    assert list(broken(page)) == ["#none", "other.md"]
