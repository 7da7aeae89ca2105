"""`gdpnet doctor`: whether what gdpnet needs is there and works."""

from __future__ import annotations

import importlib
import os
import platform
from dataclasses import dataclass

import typer
from rich.markup import escape
from rich.table import Table

from gdpnet.cli._common import make_console, version_of
from gdpnet.errors import SolverError

# Distribution names; without gurobipy and numba the library's core works, without numba slowly.
_PACKAGES = (
    "gdpnet",
    "pyomo",
    "torch",
    "numpy",
    "scipy",
    "numba",
    "highspy",
    "gurobipy",
    "networkx",
)
# What stands in for a package that may be missing.
_INSTEAD = {
    "gurobipy": "; pip install 'gdpnet[gurobi]' brings it, HiGHS does without",
    "numba": "; HiGHS does the exact engine's work, slowly",
}


@dataclass(frozen=True)
class Check:
    """One line of `gdpnet doctor`.

    Attributes:
        name: What was looked at.
        ok: Whether it works.
        detail: The version, what a licence allows, or what is wrong and what to do.
        core: Whether gdpnet is of no use without it.
    """

    name: str
    ok: bool
    detail: str
    core: bool = True


def doctor() -> None:
    """Versions, solvers and what their licences allow, threads. Exit code 1 if the core fails."""
    console = make_console()
    console.print(f"Python {platform.python_version()}, {escape(platform.platform())}")
    checks = [*_check_packages(), _check_highs(), _check_gurobi(), _check_threads()]
    table = Table(box=None, show_header=False, pad_edge=False)
    for check in checks:
        mark = "[green]ok[/]" if check.ok else "[red]fails[/]" if check.core else "[yellow]no[/]"
        table.add_row(mark, escape(check.name), escape(check.detail))
    console.print(table)
    broken = [check.name for check in checks if check.core and not check.ok]
    if broken:
        console.print(f"gdpnet cannot work here: {escape(', '.join(broken))}.", style="red")
        raise typer.Exit(1)
    console.print("All that gdpnet needs works.")


def _check_packages() -> list[Check]:
    checks = []
    for name in _PACKAGES:
        core = name not in _INSTEAD
        try:
            importlib.import_module("pyomo.environ" if name == "pyomo" else name)
        except Exception as error:  # a broken binary wheel raises more than ImportError
            reason = f"{type(error).__name__}: {error}"
            instead = _INSTEAD.get(name, "")
            checks.append(Check(name, False, f"cannot be imported ({reason}){instead}", core))
        else:
            checks.append(Check(name, True, version_of(name) or "version unknown", core))
    return checks


def _check_highs() -> Check:
    """Solve max x + y, x + 2y <= 6, x <= 4, y <= 3: 5 at (4, 1)."""
    try:
        import numpy as np

        from gdpnet.lp import highs
        from gdpnet.lp.program import LinearProgram

        none = np.full(1, -np.inf)
        program = LinearProgram(
            *(-np.ones(2), np.array([[1.0, 2.0]]), none, np.array([6.0])),
            *(np.zeros(2), np.array([4.0, 3.0]), np.zeros(2, dtype=bool)),
        )
        value = -highs.solve(program).bound
    except Exception as error:
        return Check("HiGHS", False, f"{type(error).__name__}: {error}")
    if abs(value - 5) > 1e-9:
        return Check("HiGHS", False, f"a small LP has optimum 5, but it says {value}")
    return Check("HiGHS", True, "solves; LP and MILP of any size, no licence needed")


def _check_gurobi() -> Check:
    try:
        from gdpnet.lp import gurobi

        return Check("Gurobi", True, f"solves; {gurobi.licence()}", core=False)
    except SolverError as error:
        return Check("Gurobi", False, str(error), core=False)
    except Exception as error:  # a broken binary wheel raises more than ImportError
        return Check("Gurobi", False, f"{type(error).__name__}: {error}", core=False)


def _check_threads() -> Check:
    try:
        import torch

        from gdpnet.threads import cores, workers_of
    except Exception:  # told above already
        return Check("threads", True, f"{os.cpu_count() or 1} cores", core=False)
    told = f"{cores()} cores, torch uses {torch.get_num_threads()}, gdpnet {workers_of(None)}"
    return Check("threads", True, told, core=False)
