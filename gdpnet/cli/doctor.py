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

# Distribution names; without gurobipy all works.
_PACKAGES = (
    "gdpnet",
    "pyomo",
    "torch",
    "numpy",
    "scipy",
    "highspy",
    "gurobipy",
    "networkx",
)
# What stands in for a package that may be missing.
_INSTEAD = {
    "gurobipy": "; pip install 'gdpnet[gurobi]' brings it, HiGHS does without",
}


@dataclass(frozen=True)
class Check:
    """One line of `gdpnet doctor`.

    Attributes:
        name: What was looked at.
        ok: Whether it works.
        detail: The version, what a licence allows, or what is wrong and what to do.
        needed: Whether gdpnet is of no use without it.
    """

    name: str
    ok: bool
    detail: str
    needed: bool = True


def doctor() -> None:
    """Versions, the compiled core, solvers and what their licences allow, threads.

    Exit code 1 if something fails that gdpnet cannot do without.
    """
    console = make_console()
    console.print(f"Python {platform.python_version()}, {escape(platform.platform())}")
    solvers = [_check_core(), _check_highs(), _check_gurobi()]
    checks = [*_check_packages(), *solvers, _check_threads()]
    table = Table(box=None, show_header=False, pad_edge=False)
    for check in checks:
        mark = "[green]ok[/]" if check.ok else "[red]fails[/]" if check.needed else "[yellow]no[/]"
        table.add_row(mark, escape(check.name), escape(check.detail))
    console.print(table)
    broken = [check.name for check in checks if check.needed and not check.ok]
    if broken:
        console.print(f"gdpnet cannot work here: {escape(', '.join(broken))}.", style="red")
        raise typer.Exit(1)
    console.print("All that gdpnet needs works.")


def _check_packages() -> list[Check]:
    checks = []
    for name in _PACKAGES:
        needed = name not in _INSTEAD
        try:
            importlib.import_module("pyomo.environ" if name == "pyomo" else name)
        except Exception as error:  # a broken binary wheel raises more than ImportError
            reason = f"{type(error).__name__}: {error}"
            instead = _INSTEAD.get(name, "")
            checks.append(Check(name, False, f"cannot be imported ({reason}){instead}", needed))
        else:
            checks.append(Check(name, True, version_of(name) or "version unknown", needed))
    return checks


def _check_core() -> Check:
    """What the compiled core says of itself, and the nearest point to 4.5 outside of (3, 7)."""
    name = "compiled core"
    try:
        from gdpnet import core
    except Exception:  # told above already: it comes with the package
        return Check(name, False, "gdpnet cannot be imported", needed=False)
    if not core.AVAILABLE:
        instead = "HiGHS does the exact engine's work, slowly"
        wrong = core.WHY_MISSING.removeprefix("The compiled core ")
        return Check(name, False, f"{wrong}; {instead}", needed=False)
    variant = getattr(core, "VARIANT", None)
    told = f"{core.VERSION}, by {core.COMPILER}" + (f", for {variant}" if variant else "")
    try:
        found = _project_one()
    except Exception as error:
        return Check(name, False, f"{told}; {type(error).__name__}: {error}")
    if abs(found - 3) > 1e-9:
        return Check(name, False, f"{told}; 3 is the nearest point to 4.5, but it says {found}")
    old = core.out_of_date()
    return Check(name, old is None, f"{told}; {old}" if old else f"{told}; projects", needed=False)


def _project_one() -> float:
    import torch

    from gdpnet import RuleModel, project
    from gdpnet.ir.data import Boolean, Clause, Column, Row, Rule, RuleData
    from gdpnet.ir.linear import Coefficient

    y = ((0, Coefficient(1.0)),)
    minus_y = ((0, Coefficient(-1.0)),)
    data = RuleData(
        inputs=(),
        input_bounds=(),
        outputs=1,
        columns=(Column("y", 0.0, 10.0),),
        rows=(Row("low", y, Coefficient(3.0)), Row("high", minus_y, Coefficient(-7.0))),
        global_rows=(),
        booleans=(Boolean("low", (0,)), Boolean("high", (1,))),
        clauses=(Clause("gap", (1, 2)),),
        rules=(Rule("gap", 0, (0, 1)),),
        conditions=(),
    )
    yhat = torch.full((1, 1), 4.5, dtype=torch.float64)
    return float(project(RuleModel.from_data(data), yhat, solver="exact").y)


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

        return Check("Gurobi", True, f"solves; {gurobi.licence()}", needed=False)
    except SolverError as error:
        return Check("Gurobi", False, str(error), needed=False)
    except Exception as error:  # a broken binary wheel raises more than ImportError
        return Check("Gurobi", False, f"{type(error).__name__}: {error}", needed=False)


def _check_threads() -> Check:
    try:
        import torch

        from gdpnet.threads import cores, workers_of
    except Exception:  # told above already
        return Check("threads", True, f"{os.cpu_count() or 1} cores", needed=False)
    told = f"{cores()} cores, torch uses {torch.get_num_threads()}, gdpnet {workers_of(None)}"
    return Check("threads", True, told, needed=False)
