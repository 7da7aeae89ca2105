"""Rendered notebooks say what their sources say, and nothing went wrong when they were rendered.

The sources themselves are executed by `make tutorials`.
"""

import json
import re
from pathlib import Path

import pytest

TUTORIALS = Path(__file__).parents[2] / "tutorials"
SOURCES = sorted(TUTORIALS.glob("[0-9][0-9]_*.py"))
RENDERED = sorted(TUTORIALS.glob("*.ipynb"))

MOST_BYTES = 700_000
"""Of a notebook: pictures are the largest part of it."""

Cells = list[tuple[str, str]]


def cells_of_source(text: str) -> Cells:
    """Kind and text of each cell of a file in percent format."""
    _, *pieces = re.split(r"^# %%", text, flags=re.MULTILINE)
    cells = []
    for piece in pieces:
        title, _, body = piece.partition("\n")
        if title.strip() == "[markdown]":
            lines = [re.sub(r"^# ?", "", line) for line in body.strip().splitlines()]
            cells.append(("markdown", "\n".join(lines)))
        else:
            assert title.strip() == "", f"unknown cell {title!r}"
            cells.append(("code", body.strip()))
    return cells


def cells_of_notebook(notebook: dict) -> Cells:
    return [(cell["cell_type"], "".join(cell["source"]).strip()) for cell in notebook["cells"]]


def outputs_of(notebook: dict) -> list[dict]:
    return [output for cell in notebook["cells"] for output in cell.get("outputs", ())]


def test_cells_of_source() -> None:
    text = "# ---\n# %% [markdown]\n# # Title\n#\n# text\n\n# %%\na = 1\n\n\ndef f(): ...\n"
    assert cells_of_source(text) == [
        ("markdown", "# Title\n\ntext"),
        ("code", "a = 1\n\n\ndef f(): ..."),
    ]


def test_every_source_is_rendered() -> None:
    assert SOURCES
    assert [path.stem for path in SOURCES] == [path.stem for path in RENDERED]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_notebook_is_its_source(source: Path) -> None:
    notebook = json.loads(source.with_suffix(".ipynb").read_text(encoding="utf-8"))
    assert cells_of_notebook(notebook) == cells_of_source(source.read_text(encoding="utf-8")), (
        f"{source.stem}.ipynb is not what its source says; render it again: "
        f"python tutorials/tools/render.py {source.stem[:2]}"
    )


@pytest.mark.parametrize("path", RENDERED, ids=lambda path: path.stem)
def test_notebook_was_executed_without_error(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    notebook = json.loads(text)
    counts = [c["execution_count"] for c in notebook["cells"] if c["cell_type"] == "code"]
    assert counts == list(range(1, len(counts) + 1))
    outputs = outputs_of(notebook)
    assert outputs
    kinds = {output["output_type"] for output in outputs}
    assert "error" not in kinds
    # Warnings and logs are written to stderr.
    assert not [o for o in outputs if o["output_type"] == "stream" and o["name"] != "stdout"]
    assert len(text) < MOST_BYTES


@pytest.mark.parametrize("path", RENDERED, ids=lambda path: path.stem)
def test_notebook_tells_nothing_about_the_machine(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    told = "\n".join(
        "".join(text)
        for output in outputs_of(notebook)
        for text in (output.get("text", ""), output.get("data", {}).get("text/plain", ""))
    )
    files = re.findall(r"(?:^|[\s'\"(=])(?:/\w+){2,}|[A-Z]:\\", told, re.MULTILINE)
    addresses = re.findall(r"0x[0-9a-f]{6,}", told)
    assert not files + addresses
