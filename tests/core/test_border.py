"""The border to the compiled core: its names, its stub, what is said of one that will not do."""

from __future__ import annotations

import ast
import importlib.machinery
import os
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

import gdpnet
from gdpnet import core
from gdpnet.core import _load

ROOT = Path(__file__).parents[2]
BORDER = ROOT / "gdpnet" / "core" / "__init__.py"
STUB = ROOT / "gdpnet" / "core" / "_native.pyi"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

BUILD = "Build it: make core, or pip install -e ."

native = pytest.importorskip("gdpnet.core._native")


def test_the_border_lists_every_name_of_the_core() -> None:
    listed = {
        alias.asname
        for block in ast.parse(BORDER.read_text(encoding="utf-8")).body
        if isinstance(block, ast.If)
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    assert listed == set(_load.public_names(native)), "make stubs"
    for name in listed:
        assert getattr(core, name) is getattr(native, name)


def test_the_stub_is_that_of_this_core(tmp_path: Path) -> None:
    pytest.importorskip("nanobind.stubgen")
    fresh = tmp_path / "_native.pyi"
    command = [sys.executable, "-m", "nanobind.stubgen", "--quiet", "--exclude-values"]
    command += ["-i", str(Path(native.__file__).parent), "-m", "_native", "-o", str(fresh)]
    subprocess.run(command, check=True)
    assert fresh.read_text() == STUB.read_text(), "make stubs"


def test_the_core_is_of_this_version() -> None:
    assert native.VERSION == gdpnet.__version__ == PROJECT["project"]["version"]
    assert re.fullmatch(r"\w+ [\d.]+", native.COMPILER)
    assert core.out_of_date() is None


def test_what_builds_it_is_pinned_alike() -> None:
    pins = set((ROOT / "constraints.txt").read_text(encoding="utf-8").split())
    assert set(PROJECT["build-system"]["requires"]) <= pins


def source(folder: Path, changed: float) -> Path:
    """A repository whose newest source was changed then."""
    (folder / "core" / "src").mkdir(parents=True)
    for name in ("CMakeLists.txt", "src/search.cpp"):
        file = folder / "core" / name
        file.touch()
        os.utime(file, (changed, changed))
    return folder / "core"


def test_a_core_that_is_older_than_its_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = os.stat(native.__file__).st_mtime
    sources = source(tmp_path, built - 10)
    monkeypatch.setattr(_load, "_SOURCES", sources)
    assert _load.load()[0] is native
    os.utime(sources / "src" / "search.cpp", (built + 10, built + 10))
    with pytest.warns(gdpnet.errors.CoreWarning, match=r"older than core.src.search\.cpp\. Build"):
        assert _load.load()[0] is native
    assert core.out_of_date()


def test_an_installed_package_has_no_sources_to_look_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_load, "_SOURCES", tmp_path / "core")
    monkeypatch.setattr(_load, "_source_files", None)
    assert _load.stale(native) is None


def test_looking_at_times_takes_none() -> None:
    best = min(_seconds() for _ in range(20))
    assert best < 1e-3


def _seconds() -> float:
    start = time.perf_counter()
    _load.stale(native)
    return time.perf_counter() - start


def test_a_core_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gdpnet, "__version__", "9.9")
    with pytest.warns(gdpnet.errors.CoreWarning, match=r"is of gdpnet .*, the package is 9\.9\."):
        _load.load()


def test_a_core_that_cannot_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    (tmp_path / f"_native{suffix}").write_bytes(b"not a library")
    monkeypatch.delitem(sys.modules, "gdpnet.core._native")
    monkeypatch.setattr(core, "__path__", [str(tmp_path)])
    module, why = _load.load()
    assert module is None
    assert why.startswith("The compiled core cannot be loaded (")
    assert why.endswith(f"). {BUILD}")


def test_no_core(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "gdpnet.core._native", None)
    assert _load.load() == (None, f"The compiled core is not built. {BUILD}")
    monkeypatch.setattr(_load, "_SOURCES", tmp_path / "core")
    assert _load.load()[1].startswith("The compiled core is missing from this installation. Ins")


def test_names_of_a_missing_core() -> None:
    code = """
import sys
sys.modules["gdpnet.core._native"] = None
try:
    from gdpnet.core import Component
except ImportError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, cwd=ROOT
    )
    assert done.stdout.startswith("No gdpnet.core.Component. The compiled core is not built. Build")
