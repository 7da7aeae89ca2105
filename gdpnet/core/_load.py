"""Finding the compiled module: why there is none, and whether it is older than its sources."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

from gdpnet.errors import CoreWarning

_NAME = "gdpnet.core._native"
_PACKAGE = Path(__file__).parents[1]
# Beside the package in a clone of the repository, nowhere in an installed package.
_SOURCES = _PACKAGE.parent / "core"
_BUILD = "make core, or pip install -e ."
_INSTALL = "pip install --force-reinstall --no-deps gdpnet"


def load() -> tuple[ModuleType | None, str]:
    """The module, or None and why: a sentence that says what is wrong, and one what to do."""
    try:
        module = importlib.import_module(_NAME)
    except ImportError as error:
        return None, _why_missing(error)
    for wrong in (stale(module), _other_version(module)):
        if wrong:
            warnings.warn(wrong, CoreWarning, stacklevel=2)
    return module, _why_missing(None)


def public_names(module: ModuleType) -> dict[str, Any]:
    """What a compiled module offers."""
    return {name: value for name, value in vars(module).items() if not name.startswith("_")}


def stale(module: ModuleType) -> str | None:
    """That a module is older than the sources beside the package; None where it is not.

    In an installed package there are no sources, and nothing is looked at.
    """
    file = module.__file__
    if file is None or not _in_repository():
        return None
    built, newest, which = os.stat(file).st_mtime, 0.0, ""
    for path in _source_files():
        changed = os.stat(path).st_mtime
        if changed > newest:
            newest, which = changed, path
    if newest <= built:
        return None
    changed_file = os.path.relpath(which, _SOURCES.parent)
    return f"The compiled core is older than {changed_file}. Build it again: {_BUILD}"


def _in_repository() -> bool:
    return (_SOURCES / "CMakeLists.txt").is_file()


def _source_files() -> list[str]:
    found = [str(_SOURCES / "CMakeLists.txt")]
    waiting = [str(_SOURCES / name) for name in ("include", "src", "bind")]
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except FileNotFoundError:
            continue
        waiting += [entry.path for entry in entries if entry.is_dir()]
        found += [entry.path for entry in entries if entry.name.endswith((".cpp", ".hpp"))]
    return found


def _other_version(module: ModuleType) -> str | None:
    own = getattr(sys.modules["gdpnet"], "__version__", None)
    if own is None or own == module.VERSION:
        return None
    return f"The compiled core is of gdpnet {module.VERSION}, the package is {own}. {_remedy()}"


def _why_missing(error: ImportError | None) -> str:
    if error is None or (isinstance(error, ModuleNotFoundError) and error.name == _NAME):
        wrong = "is not built" if _in_repository() else "is missing from this installation"
    else:
        wrong = f"cannot be loaded ({str(error).strip().rstrip('.')})"
    return f"The compiled core {wrong}. {_remedy()}"


def _remedy() -> str:
    return f"Build it: {_BUILD}" if _in_repository() else f"Install it: {_INSTALL}"
