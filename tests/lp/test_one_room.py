"""HiGHS and Gurobi are configured in one room."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import gdpnet
from gdpnet.lp import highs, options
from gdpnet.lp.persistent import PersistentHighs
from gdpnet.lp.program import LinearProgram, Outcome

PACKAGE = Path(gdpnet.__file__).parent
SOLVERS = {"highspy", "gurobipy"}
ORACLES = PACKAGE / "testing" / "oracles.py"  # an oracle shares nothing with what it judges


def imports(tree: ast.Module) -> set[str]:
    """Packages that are imported anywhere in a file, for type checkers included."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
        elif isinstance(node, ast.Import):
            found |= {name.name.split(".")[0] for name in node.names}
    return found


def test_no_other_room_imports_a_solver() -> None:
    who = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if path != ORACLES and imports(ast.parse(path.read_text(encoding="utf-8"))) & SOLVERS
    }
    assert who == {"lp/gurobi.py", "lp/highs.py"}


def test_no_other_file_sets_an_option() -> None:
    sets = {**options.INTEGER, **options.PERSISTENT, **options.GUROBI_INTEGER}
    names = sets.keys() - {"solver", "threads"}  # which are words of gdpnet as well
    who = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if path != ORACLES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in names
    }
    assert who == {"lp/options.py"}


@pytest.mark.parametrize(
    "chosen", [options.LINEAR, options.PERSISTENT, options.INTEGER, options.FEASIBILITY]
)
def test_highs_takes_every_option(chosen: options.Options) -> None:
    solver = highs.new_solver(chosen)
    for option, value in chosen.items():
        assert solver.getOptionValue(option)[1] == value, option


@pytest.mark.gurobi
@pytest.mark.parametrize("chosen", [options.GUROBI_PERSISTENT, options.GUROBI_INTEGER])
def test_gurobi_takes_every_option(chosen: options.Options) -> None:
    from gdpnet.lp import gurobi

    model = gurobi.new_model(chosen)
    for option, value in chosen.items():
        assert getattr(model.Params, option) == value, option


def test_an_outcome_that_is_not_trusted_is_tried_again_without_a_basis() -> None:
    class Astray(PersistentHighs):
        outcomes = [Outcome.FAILED, Outcome.OPTIMAL]  # noqa: RUF012
        calls: list[str] = []  # noqa: RUF012

        def run(self, presolve: bool = False) -> Outcome:
            self.calls.append(f"run {presolve}")
            return self.outcomes.pop(0)

        def forget(self) -> None:
            self.calls.append("forget")

    model = Astray()
    assert model.solve(presolve=True) is Outcome.OPTIMAL
    assert model.calls == ["run True", "forget", "run False"]


def test_a_model_is_changed_in_place() -> None:
    """min x + y, x + y >= 1 (as -x - y <= -1), x = 0.25 by a row, both within 0 and 3."""
    program = LinearProgram(
        cost=np.zeros(2),
        matrix=np.array([[-1.0, -1.0], [1.0, 0.0]]),
        row_lower=np.array([-np.inf, 0.25]),
        row_upper=np.array([-1.0, 0.25]),
        lower=np.zeros(2),
        upper=np.full(2, 3.0),
        integer=np.zeros(2, dtype=bool),
    )
    model = PersistentHighs(program)
    model.set_cost(np.arange(2), np.ones(2))
    assert model.solve() is Outcome.OPTIMAL
    assert model.point == pytest.approx([0.25, 0.75])
    model.set_row(1, 0.5, 0.5)
    model.set_entry(0, 1, -2.0)
    assert model.solve() is Outcome.OPTIMAL
    assert model.point == pytest.approx([0.5, 0.25])
    model.set_row(0, -np.inf, -10.0)
    assert model.solve() is Outcome.INFEASIBLE
    model.delete_rows(2)
    model.set_columns(np.full(2, 1.0), np.full(2, 2.0))
    assert model.solve() is Outcome.OPTIMAL
    assert model.point.tolist() == [1.0, 1.0]
