"""Every solver that ships passes the contract."""

from __future__ import annotations

import pytest

from gdpnet.errors import SolverError
from gdpnet.testing import BackendContract
from gdpnet.testing.contract import UNBOUNDED


@pytest.fixture(scope="module")
def gurobi() -> None:
    from gdpnet.lp import gurobi

    try:
        gurobi.environment()
    except SolverError as error:
        pytest.skip(f"Gurobi cannot be used here: {error}")


class TestExact(BackendContract):
    solver = "exact"


class TestMILP(BackendContract):
    solver = "milp"
    ties = False  # branching decides


@pytest.mark.gurobi
@pytest.mark.usefixtures("gurobi")
class TestMILPByGurobi(BackendContract):
    solver = "milp:gurobi"
    ties = False


class WrittenOut(BackendContract):
    """Linear programs of a relaxation: nothing is searched, and hulls need bounds."""

    limits = False
    refuses = UNBOUNDED


class TestDense(WrittenOut):
    solver = "extended"


class TestHiGHS(WrittenOut):
    solver = "highs"
    ties = False  # the basis it starts from decides


@pytest.mark.gurobi
@pytest.mark.usefixtures("gurobi")
class TestGurobi(WrittenOut):
    solver = "gurobi"
    ties = False


class TestDenseCNF(TestDense):
    relaxation = "cnf"


class TestHiGHSCNF(TestHiGHS):
    relaxation = "cnf"


class TestGurobiCNF(TestGurobi):
    relaxation = "cnf"
