"""Tolerances: one place, a core that agrees with it, and no number written again."""

from __future__ import annotations

import ast
import importlib
from dataclasses import fields
from pathlib import Path

import pytest
import torch

import gdpnet
from gdpnet.ir import tolerances
from gdpnet.ir.tolerances import TOLERANCES

PACKAGE = Path(gdpnet.__file__).parent


def test_the_table_says_what_there_is() -> None:
    rows = [line.split("|")[1:3] for line in tolerances.__doc__.splitlines() if "`" in line[:5]]
    told = {name.strip(" `"): size.split()[0] for name, size in rows}
    sizes = {f.name: getattr(TOLERANCES, f.name) for f in fields(TOLERANCES) if f.name != "by_type"}
    sizes["of(dtype)"] = TOLERANCES.of(torch.float64)
    assert {name: float(size) for name, size in told.items()} == sizes


@pytest.mark.parametrize(
    ("module", "name", "shared"),
    [
        ("core", "ACCEPTED", TOLERANCES.holds),
        ("core", "TIGHT", TOLERANCES.holds),
        ("core", "ACCEPTED", TOLERANCES.integer),  # of `whole_slack`
    ],
)
def test_the_core_agrees(module: str, name: str, shared: float) -> None:
    assert getattr(importlib.import_module(f"gdpnet.{module}"), name) == shared


def test_no_default_tolerance_is_written_as_a_number() -> None:
    found = []
    for path in PACKAGE.rglob("*.py"):
        if "kernels" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                given = node.args.args[len(node.args.args) - len(node.args.defaults) :]
                pairs = [
                    *zip(given, node.args.defaults, strict=True),
                    *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True),
                ]
                found += [
                    f"{path.relative_to(PACKAGE)}: {node.name}"
                    for argument, default in pairs
                    if argument.arg in ("tol", "tolerance") and isinstance(default, ast.Constant)
                ]
    assert found == []
