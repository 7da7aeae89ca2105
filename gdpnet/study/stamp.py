"""stamp: where a stored number comes from: which tree, which versions, which machine, when."""

from __future__ import annotations

import importlib
import os
import platform
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("gdpnet", "torch", "numpy", "pyomo", "highspy")

TREE = Path(__file__).resolve().parents[2]
"""Where gdpnet is imported from: a checkout, or a folder of packages."""


def stamp(packages: tuple[str, ...] = (), load: list[float] | None = None) -> dict[str, Any]:
    """Which tree, which versions, which machine, when.

    Args:
        packages: names of those whose version matters besides `PACKAGES`.
        load: of the machine when the run began; now if None.

    Example:
        >>> stamp()["cores"] >= 1
        True
    """
    versions: dict[str, str | None] = {"python": platform.python_version()}
    # Gurobi is told where it took part.
    used = ("gurobipy",) if "gurobipy" in sys.modules else ()
    for package in dict.fromkeys((*PACKAGES, *used, *packages)):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = _version_of_tree(package)
    return {
        "commit": commit(),
        "dirty": dirty(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        **versions,
        "cpu": cpu(),
        "cores": os.cpu_count(),
        "variant": core_variant(),
        "load": [round(x, 2) for x in load or _load()],
        # Where things lie on the machine is nobody's business.
        "command": shlex.join([Path(a).name if "/" in a else a for a in sys.argv]),
    }


def commit(tree: Path = TREE) -> str | None:
    """The commit of a tree; None where it is no checkout."""
    return _git("rev-parse", "HEAD", tree=tree)


def dirty() -> bool | None:
    """Whether something that is measured differs from the commit; None without git.

    Results and pages do not count: publishing one run changes them before the next begins.
    """
    stored = (":!benchmarks/results", ":!studies/*.csv", ":!studies/*.json", ":!docs", ":!*.md")
    told = _git("status", "--porcelain", "--", ".", *stored)
    return None if told is None else bool(told)


def cpu() -> str:
    """The processor's name."""
    known = Path("/proc/cpuinfo")
    lines = known.read_text(encoding="utf-8").splitlines() if known.exists() else []
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def core_variant() -> str | None:
    """Which of the compiled variants of the core runs here."""
    try:
        return getattr(importlib.import_module("gdpnet.core"), "VARIANT", None)
    except ImportError:
        return None


def _load() -> tuple[float, ...]:
    return os.getloadavg() if hasattr(os, "getloadavg") else ()


def _version_of_tree(package: str) -> str | None:
    """The version of a package that is not installed but found on the path, such as a checkout."""
    return getattr(sys.modules.get(package), "__version__", None)


def _git(*words: str, tree: Path = TREE) -> str | None:
    # Installed, gdpnet may lie within a checkout of something else.
    if not (tree / ".git").exists():
        return None
    try:
        told = subprocess.run(
            ["git", *words], cwd=tree, capture_output=True, text=True, check=False
        )  # fmt: skip
    except OSError:  # no git here
        return None
    return told.stdout.strip() if told.returncode == 0 else None
