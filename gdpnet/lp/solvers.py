"""Solvers of others by name: all that another room needs to know of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gdpnet.lp import gurobi, highs
from gdpnet.lp.options import PERSISTENT
from gdpnet.lp.persistent import PersistentGurobi, PersistentHighs, PersistentModel
from gdpnet.lp.program import Solver, SparseLinearProgram


class LinearSolver(NamedTuple):
    """A solver of linear and mixed-integer programs.

    Attributes:
        title: as its makers write it.
        solve: solves one program.
        persistent: keeps a program, to be changed in place.
        unavailable: why it cannot be used here, None where it can.
    """

    title: str
    solve: Solver
    persistent: Callable[[SparseLinearProgram], PersistentModel]
    unavailable: Callable[[], str | None]


SOLVERS = {
    "highs": LinearSolver(
        "HiGHS",
        highs.solve,
        lambda program: PersistentHighs(program, PERSISTENT),
        highs.unavailable,
    ),
    "gurobi": LinearSolver("Gurobi", gurobi.solve, PersistentGurobi, gurobi.unavailable),
}
