"""docs/path.md tells the way that calls really go, its picture the rooms that imports keep to."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import gdpnet
from gdpnet.study import load_model
from tests.test_house import files_passed

pytest.importorskip("matplotlib")

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs/pictures/path.svg"


@pytest.fixture(scope="module")
def tool() -> Any:
    """docs/tools/path.py, which is no package."""
    source = ROOT / "docs/tools/path.py"
    names: dict[str, Any] = {"__name__": "path", "__file__": str(source)}
    exec(compile(source.read_text(encoding="utf-8"), str(source), "exec"), names)
    return names


@pytest.fixture(scope="module")
def calls() -> dict[str, Callable[[], Any]]:
    model = load_model(ROOT / "models/cooling")
    rules, x = model.build(), model.sample(4, split="iid", seed=0)[0]
    yhat = torch.linspace(0, 1, 4 * len(rules.output_names), dtype=torch.float64).reshape(4, -1)
    with_gradient = yhat.clone().requires_grad_(), x.clone().requires_grad_()
    total = gdpnet.ProjectionLayer(rules, gradient="vertex")(*with_gradient).sum()
    return {
        "project(rules, yhat, x)": lambda: gdpnet.project(rules, yhat, x),
        "The backward pass": lambda: total.backward(retain_graph=True),
        'relaxation="cnf"': lambda: gdpnet.project(rules, yhat, x, relaxation="cnf"),
    }


@pytest.mark.parametrize(
    "heading", ["project(rules, yhat, x)", "The backward pass", 'relaxation="cnf"']
)
def test_the_tables_have_the_files_that_are_passed(
    heading: str, calls: dict[str, Callable[[], Any]], tool: Any
) -> None:
    files = tool["files_of"](heading)
    compiled = [file for file in files if file.startswith("core/")]
    assert compiled
    assert all((ROOT / file).is_file() for file in compiled)
    python = [file for file in files if file not in compiled]
    assert python == list(dict.fromkeys(files_passed(calls[heading])))


def drawn(kind: str) -> list[tuple[str, float]]:
    """What the picture shows of a kind, with its height from the top, in the order drawn."""
    text = PICTURE.read_text(encoding="utf-8")
    found = re.findall(
        rf'<g id="{kind} ([^"]+)">.*?<g[^>]*transform="translate\([\d.]+ ([\d.]+)\)',
        text,
        re.DOTALL,
    )
    return [(name, float(y)) for name, y in found]


def test_the_picture_has_the_rooms_in_the_order_of_their_imports() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    rooms = [set(re.findall(r"gdpnet\.\w+", line)) for line in layers]

    first = drawn("room")[: sum(map(len, rooms))]
    by_height: dict[int, set[str]] = {}
    for name, y in sorted(first, key=lambda each: each[1]):
        # Letters with a tail hang a little lower than others of their line.
        line = next((k for k in by_height if abs(k - y) < 8), round(y))
        by_height.setdefault(line, set()).add(name)
    assert list(by_height.values()) == rooms


def test_the_picture_has_the_files_of_the_page(tool: Any) -> None:
    wanted = tool["files_of"]("project(rules, yhat, x)") + tool["files_of"]("The backward pass")
    assert [name for name, _ in drawn("file")] == wanted


def test_every_room_is_a_line_of_the_picture(tool: Any) -> None:
    package = Path(gdpnet.__file__).parent
    rooms = {path.stem for path in package.iterdir() if path.name[0] not in "_."} - {"py"}
    assert {f"gdpnet.{room}" for room in rooms} == {
        room for line in tool["layers"]() for room in line
    }


def test_it_is_drawn_anew_as_it_is(tool: Any, tmp_path: Path) -> None:
    tool["PICTURE"] = tmp_path / "path.svg"
    tool["main"]()
    ids = [
        re.findall(r'<g id="((?:room|file) [^"]+)"', path.read_text(encoding="utf-8"))
        for path in (tool["PICTURE"], PICTURE)
    ]
    assert ids[0] == ids[1] != []
