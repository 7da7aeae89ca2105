"""Adapters of the peers solve the problem they are measured on; missing ones are skipped."""

from __future__ import annotations

import importlib
import json
import pickle
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _results import PUBLISHED
from peers.cases import make, rules_of
from peers.cell import Budget, measure
from peers.columns import TABLES
from peers.judge import Judge
from peers.problem import Problem
from peers.program import Program
from peers.registry import ENTRIES
from peers.report import read
from quick import slower
from run_peers import Worker, _write
from scipy.optimize import linprog

import gdpnet
from gdpnet.study.stamp import stamp

COUNT = 8
EXACT = ("HiGHS in place", "HiGHS cold", "HiGHS in place, all products", "Gurobi in place",
         "Gurobi MILP", "scipy.milp", "gdpnet, vertex", "gdpnet, QP gradient")  # fmt: skip
INTERIOR = ("Clarabel", "PIQP", "cvxpylayers diffcp/Clarabel", "cvxpylayers MOREAU")
QUADRATIC = ("cvxpylayers diffcp/Clarabel QP", "cvxpylayers MOREAU QP", "OSQP layer",
             "qpth, tuned")  # fmt: skip
EUCLIDEAN = ("gdpnet, vertex", "DAQP", "PIQP, QPs", "Clarabel, QPs", "MOREAU, QPs", "DAQP, MIQP",
             "Gurobi, MIQP")  # fmt: skip


@pytest.fixture(scope="module", params=["cooling, 4 rules", "pbmc"])
def problem(request: pytest.FixtureRequest) -> Problem:
    return make(request.param, COUNT)


def answers(title: str, problem: Problem) -> dict[str, Any]:
    entry = ENTRIES[title]
    try:
        module = importlib.import_module(f"peers.adapters.{entry.module}")
        found = measure(getattr(module, entry.peer), problem, COUNT, Budget(0.02, 5.0))
    except ImportError as error:
        pytest.skip(str(error))
    return Judge(problem).look(found)


@pytest.mark.parametrize("title", EXACT)
def test_exact_peers_are_exact(title: str, problem: Problem) -> None:
    row = answers(title, problem)
    assert row["broken_1e-6"] == row["ties_broken_1e-6"] == 0.0
    assert -1e-7 < row["gap_least"] <= row["gap_most"] < 1e-7
    assert row["forward_us"] > 0.0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("title", INTERIOR)
def test_interior_points_are_near_but_not_at_ties(title: str, problem: Problem) -> None:
    row = answers(title, problem)
    assert abs(row["gap_most"]) < 1e-4
    assert row["broken_1e-4"] == 0.0
    assert row["ties_broken_1e-4"] == 1.0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("title", QUADRATIC)
def test_quadratic_peers_have_our_gradient(title: str, problem: Problem) -> None:
    row = answers(title, problem)
    assert row["cosine_median"] > 0.999


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", ["cooling, l2", "pbmc, l2"])
@pytest.mark.parametrize("title", EUCLIDEAN)
def test_euclidean_peers_are_exact(title: str, case: str) -> None:
    row = answers(title, make(case, COUNT))
    assert row["broken_1e-4"] == 0.0
    assert -1e-6 < row["gap_least"] <= row["gap_most"] < 1e-4
    assert row.get("same_gradient", 1.0) == 1.0


@pytest.mark.parametrize("case", list(TABLES))
def test_rules_of_tables_have_the_mixed_integer_program_s_distance(case: str) -> None:
    """And break nothing, where most predictions break something."""
    problem = make(case, COUNT)
    rules, yhat = rules_of(problem.source), problem.random.yhat
    assert not rules.satisfied(yhat).all()
    ours = gdpnet.project(rules, yhat, weights=problem.weights)
    program = gdpnet.project(rules, yhat, weights=problem.weights, solver="milp")
    assert rules.satisfied(ours.y).all()
    np.testing.assert_allclose(ours.distance, program.distance, atol=1e-6)
    np.testing.assert_allclose(problem.distance(ours.y.numpy(), problem.random), ours.distance)


def test_ties_are_ties(problem: Problem) -> None:
    """The middle of a tie's nearest points breaks a rule: what makes ties worth listing."""
    assert problem.ties is not None
    assert len(problem.ties) > 0
    rules = rules_of(problem.source)
    found = gdpnet.project(rules, problem.ties.yhat, problem.ties.x)
    assert (found.status == int(gdpnet.Status.PROJECTED)).all()


@pytest.mark.parametrize("form", ["dnf", "full", "qp"])
@pytest.mark.parametrize("shifted", [False, True])
def test_all_forms_have_the_exact_distance(form: str, shifted: bool, problem: Problem) -> None:
    forms, samples = problem.forms[form], problem.random
    assert forms is not None
    rules = rules_of(problem.source)
    exact = gdpnet.project(rules, samples.yhat, samples.x).distance.numpy()
    for s in range(3):
        program = Program(problem, forms[samples.pattern[s]], shifted)
        (theta,) = program.parameters(samples, np.array([s]))
        less, equal = program.less.matrix.copy(), program.equal.matrix.copy()
        less.data, equal.data = program.less.values(theta), program.equal.values(theta)
        bounds = [(None, None)] * program.size
        for weight in program.weights:
            bounds[weight] = (0, None)
        answer = linprog(program.cost, less, program.less.right, equal, program.equal.right, bounds)
        assert answer.fun == pytest.approx(exact[s], abs=1e-8)
        y = program.point(answer.x, problem.start(samples)[s])
        assert np.abs(y - samples.yhat[s]).sum() == pytest.approx(exact[s], abs=1e-8)


def test_a_worker_tells_of_failures(tmp_path: Path) -> None:
    nobody = Worker("nobody", sys.executable)
    nobody.close()
    assert nobody.hello["status"] == "not installed"
    (tmp_path / "problem").write_bytes(pickle.dumps(make("random 20", 4)))
    worker = Worker("milp", sys.executable)
    task = {"peer": "Scipy", "problem": str(tmp_path / "problem"), "out": str(tmp_path / "out")}
    task |= {"batch": 4, "budget": {"timing": 0.1, "building": 0.1}}
    assert worker.run(task | {"limit": 0.05})["status"] == "no answer"
    task["problem"] = "missing"
    assert worker.run(task | {"limit": 60.0})["status"] == "done"
    assert "FileNotFoundError" in pickle.loads((tmp_path / "out").read_bytes())["message"]
    worker.close()


def test_slower_is_told() -> None:
    assert slower({"a": 1.7, "b": 1.5, "new": 9.0}, {"a": 1.0, "b": 1.0}) == ["a"]


def test_a_family_is_stored_by_itself(tmp_path: Path) -> None:
    """So a run of one leaves the others, and where they come from, as they are."""
    for family in ("", ".many", ".tables"):
        for kind in ("csv", "json"):
            shutil.copy(PUBLISHED / f"peers{family}.{kind}", tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    cell = {"peer": "a", "program": "QP", "case": "pbmc, l2", "batch": 2, "family": "l2"}
    made = stamp()
    _write([cell | {"status": "error", "message": "no"}], None, made, [tmp_path])
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    assert json.loads((tmp_path / "peers.l2.json").read_text())["commit"] == made["commit"]
    cells = read(tmp_path)
    assert (cells.family == "l2").sum() == 1
    assert (cells.family == "tables").sum() == 8
    assert set(cells.family) == {"l1", "l2", "tables"}
