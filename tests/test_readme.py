"""The Python of README and docs is run as a reader would: block after block, in an empty folder."""

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python[^\n]*\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)


def python_blocks(text: str) -> list[str]:
    """The blocks, each moved down to its own line so that tracebacks point into the page."""
    return [
        "\n" * text.count("\n", 0, match.start(1)) + match.group(1)
        for match in BLOCK.finditer(text)
    ]


def run_page(page: str) -> dict[str, Any]:
    """Run the blocks of a page one after the other, and return the names they leave behind."""
    text = (ROOT / page).read_text(encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in python_blocks(text):
        exec(compile(block, str(ROOT / page), "exec"), namespace)
    return namespace


PAGES = [
    str(page.relative_to(ROOT))
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if python_blocks(page.read_text(encoding="utf-8"))
]


def test_blocks_are_found_with_their_line_numbers() -> None:
    text = "one\n```python\na = 1\n```\n```\nnot this\n```\n```python\nb = a\n```\n"
    assert python_blocks(text) == ["\n\na = 1\n", "\n" * 8 + "b = a\n"]


def test_pages_are_found() -> None:
    assert {"README.md", "docs/index.md", "docs/concepts.md", "docs/gradients.md"} <= set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_pages_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page)
