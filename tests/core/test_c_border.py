"""The search as other languages call it: core/include/gdpnet.h, by ctypes."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet import core

HEADER = Path(__file__).parents[2] / "core" / "include" / "gdpnet.h"

Numbers, Indices = ctypes.POINTER(ctypes.c_double), ctypes.POINTER(ctypes.c_int64)
Bytes = ctypes.POINTER(ctypes.c_uint8)
COUNTS = ("columns", "outputs", "rows", "global_count", "disjunctions")


class Problem(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in COUNTS),
        *(("lower", Numbers), ("upper", Numbers), ("integer", Bytes)),
        *(("row_start", Indices), ("column", Indices), ("coefficient", Numbers)),
        *(("bound", Numbers), ("equality", Bytes), ("global_row", Indices)),
        *((name, Indices) for name in ("disjunction_start", "disjunct_start", "disjunct_row")),
    )


def pointer(values: np.ndarray) -> ctypes._Pointer:  # type: ignore[type-arg]
    kinds = {"d": ctypes.c_double, "l": ctypes.c_int64, "q": ctypes.c_int64, "B": ctypes.c_uint8}
    return values.ctypes.data_as(ctypes.POINTER(kinds[values.dtype.char]))


def listed(lists: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Compressed lists: where each begins, and all their entries."""
    start = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    return start, np.array([x for entries in lists for x in entries], dtype=np.int64)


def nearest(
    a: np.ndarray, b: np.ndarray, rules: list[list[list[int]]], yhat: np.ndarray
) -> tuple[int, np.ndarray, float]:
    """The nearest point in [-5, 5]^n; a rule is a list of disjuncts, a disjunct one of rows."""
    n = a.shape[1]
    rows = [[int(j) for j in np.flatnonzero(row)] for row in a]
    row_start, column = listed(rows)
    disjuncts = [disjunct for rule in rules for disjunct in rule]
    start = np.cumsum([0, *map(len, rules)]).astype(np.int64)
    disjunct_start, disjunct_row = listed(disjuncts)
    arrays = {
        "lower": np.full(n, -5.0),
        "upper": np.full(n, 5.0),
        "integer": np.zeros(n, np.uint8),
        "row_start": row_start,
        "column": column,
        "coefficient": np.array([a[i, j] for i, row in enumerate(rows) for j in row]),
        "bound": b.copy(),
        "equality": np.zeros(len(b), np.uint8),
        "global_row": np.zeros(0, np.int64),
        "disjunction_start": start,
        "disjunct_start": disjunct_start,
        "disjunct_row": disjunct_row,
    }
    problem = Problem(n, n, len(b), 0, len(rules), **{k: pointer(v) for k, v in arrays.items()})
    z, distance = np.empty(n), np.empty(1)
    library = ctypes.CDLL(core._native.__file__)
    limit = ctypes.c_int64(10_000)
    status = library.gdpnet_nearest(
        *(ctypes.byref(problem), pointer(yhat), None, limit, pointer(z), pointer(distance))
    )
    return status, z, float(distance[0])


def rules_of(a: np.ndarray, b: np.ndarray, rules: list[list[list[int]]]) -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(a.shape[1]), bounds=(-5, 5))

    def row(i: int) -> pyo.Expression:
        return sum(float(a[i, j]) * m.y[j] for j in range(a.shape[1])) <= float(b[i])

    for k, rule in enumerate(rules):
        disjuncts = [[row(i) for i in disjunct] for disjunct in rule]
        m.add_component(f"rule{k}", Disjunction(expr=disjuncts))
    return gdpnet.RuleModel(m, outputs=list(m.y.values()))


@pytest.mark.skipif(not core.AVAILABLE, reason="no compiled core")
def test_as_from_python() -> None:
    """The same points as `gdpnet.project`, from a library that knows nothing of Python."""
    rng = np.random.default_rng(3)
    seen = set()
    for _ in range(40):
        a, b = rng.normal(size=(8, 3)), rng.uniform(-3, 1, 8)
        rules = [[[0, 1], [2]], [[3], [4, 5], [6, 7]]]
        yhat = rng.uniform(-4, 4, 3)
        status, z, distance = nearest(a, b, rules, yhat)
        p = gdpnet.project(rules_of(a, b, rules), torch.from_numpy(yhat[None]))
        expected = gdpnet.Status(int(p.status[0]))
        assert status == {"PROJECTED": 0, "CONFLICT": 1, "SATISFIED": 4}[expected.name]
        seen.add(status)
        if status != 1:
            np.testing.assert_array_equal(z, p.y[0].numpy())
            assert distance == pytest.approx(float(p.distance[0]), abs=1e-12)
    assert {0, 4} <= seen


@pytest.mark.skipif(not core.AVAILABLE, reason="no compiled core")
def test_a_row_that_is_not_there() -> None:
    a, b = np.eye(2), np.ones(2)
    assert nearest(a, b, [[[0], [2]]], np.zeros(2))[0] == -1


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_the_header_is_c() -> None:
    command = ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"]
    subprocess.run([*command, "-x", "c", str(HEADER)], check=True)
