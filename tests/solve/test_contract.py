"""Every solver that ships passes the contract."""

from __future__ import annotations

import math
from functools import cache

import pytest

from gdpnet.errors import SolverError
from gdpnet.testing import BackendContract, Problem
from gdpnet.testing.contract import UNBOUNDED
from tests.solve.l2_oracle import Oracle


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


@cache
def euclidean(problem: Problem, sample: int) -> float:
    x = None if problem.x is None else problem.x[sample].numpy()
    return math.sqrt(Oracle(problem.rules(), problem.yhat[sample].numpy(), x).solve())


class InTheEuclideanNorm(BackendContract):
    norm = "l2"

    def wanted(self, problem: Problem, sample: int) -> float:
        return euclidean(problem, sample)


class TestExactL2(InTheEuclideanNorm):
    solver = "exact"


class TestClarabel(InTheEuclideanNorm):
    solver = "clarabel"
    limits = False
    refuses = UNBOUNDED


class TestClarabelCNF(TestClarabel):
    relaxation = "cnf"
