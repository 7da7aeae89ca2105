"""What docstrings say of files and modules is true: tables of contents, paths, dotted names."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import gdpnet
from tests.docs.test_glossary import look_up

PACKAGE = Path(gdpnet.__file__).parent
ROOT = PACKAGE.parent
TRANSFORMATIONS = {"gdpnet.hull", "gdpnet.basic_steps", "gdpnet.lift_projection"}  # of Pyomo
DOCSTRINGS = {
    str(path.relative_to(PACKAGE)): [
        text
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and (text := ast.get_docstring(node))
    ]
    for path in sorted(PACKAGE.rglob("*.py"))
}


def contents(package: Path) -> list[str]:
    """Modules that the docstring of a package lists, in the first column of its table."""
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text("utf-8"))) or ""
    if "| module |" not in text:
        return []
    cells = re.findall(r"^\| (`[^|]*`) \|", text, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


PACKAGES = [init.parent for init in sorted(PACKAGE.rglob("__init__.py")) if contents(init.parent)]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_a_package_lists_modules_that_exist(package: Path) -> None:
    folder = package
    for name in contents(package):  # `exact/_search`, `_stack`: the second is in the same folder
        found = [f for within in (package, folder) for f in _files(within, name)]
        assert found, name
        folder = found[-1].parent


def _files(folder: Path, name: str) -> list[Path]:
    return [*folder.glob(name), *folder.glob(f"{name}.py")]


@pytest.mark.parametrize("file", DOCSTRINGS)
def test_paths_and_dotted_names_exist(file: str) -> None:
    for text in DOCSTRINGS[file]:
        for path in re.findall(r"`([\w/]+/\w+\.(?:py|md))`", text):
            assert (ROOT / path).exists() or (PACKAGE / path).exists(), path
        for name in re.findall(r"`(gdpnet(?:\.\w+)+)`", text):
            if name not in TRANSFORMATIONS:
                assert look_up(name) is not None
