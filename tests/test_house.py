"""The house: rooms that keep to themselves, names that mean one thing, a short way for a sample.

That imports go downwards is import-linter's contract (pyproject.toml, `make lint`).
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch

import gdpnet
from gdpnet.study import load_model

PACKAGE = Path(gdpnet.__file__).parent
MODELS = Path(__file__).parents[1] / "models"
TREES = {
    path.relative_to(PACKAGE): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(PACKAGE.rglob("*.py"))
}


def room_of(path: Path) -> str:
    return path.parts[0].removesuffix(".py")


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def test_no_room_imports_what_is_private_to_another() -> None:
    found = [
        f"{path}: {name}"
        for path, tree in TREES.items()
        for name in imported(tree)
        if name.startswith("gdpnet.")
        and name.split(".")[1] != room_of(path)
        and any(part.startswith("_") and part != "__version__" for part in name.split(".")[1:])
    ]
    assert found == []


def test_no_class_name_stands_twice() -> None:
    homes = defaultdict(list)
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(str(path))
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


def test_no_package_has_the_name_of_a_public_function() -> None:
    functions = {name for name in gdpnet.__all__ if callable(getattr(gdpnet, name))}
    rooms = {path.stem if path.is_file() else path.name for path in PACKAGE.iterdir()}
    assert functions & rooms == set()


def files_passed(call: Callable[[], Any]) -> list[str]:
    """Files of the package in the order in which a second call passes them."""
    call()
    passed: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(f"{PACKAGE}/"):
            relative = str(Path(name).relative_to(PACKAGE))
            if passed[-1:] != [relative]:
                passed.append(relative)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return passed


@pytest.fixture(scope="module")
def cooling() -> tuple[gdpnet.RuleModel, torch.Tensor, torch.Tensor]:
    model = load_model(MODELS / "cooling")
    rules, x = model.build(), model.sample(4, split="iid", seed=0)[0]
    yhat = torch.linspace(0, 1, 4 * len(rules.output_names), dtype=torch.float64)
    return rules, yhat.reshape(4, -1), x


def test_the_way_of_a_sample_is_short_and_never_turns_back(cooling: Any) -> None:
    rules, yhat, x = cooling
    passed = files_passed(lambda: gdpnet.project(rules, yhat, x))
    assert "solve/exact/backend.py" in passed
    assert len(passed) == len(set(passed)) <= 8, passed


def test_the_way_through_a_relaxation_is_short(cooling: Any) -> None:
    rules, yhat, x = cooling
    passed = set(files_passed(lambda: gdpnet.project(rules, yhat, x, relaxation="cnf")))
    assert "solve/extended/backend.py" in passed
    assert len(passed) <= 12, passed
