"""Every solver on the bank, against distances that were proved or computed without gdpnet."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import pytest
import torch
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet import Status
from gdpnet.errors import SolverError
from gdpnet.testing import PROBLEMS, Problem, oracles
from gdpnet.testing.problems import reference

SOLVERS = pytest.mark.parametrize("solver", ["exact", "milp"])
EVERY = pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
LARGE = 100  # reference cases with more products than this have their proved distance only


@cache
def projected(name: str, solver: str) -> tuple[Any, gdpnet.RuleModel, gdpnet.Projection]:
    problem = next(p for p in PROBLEMS if p.name == name)
    model = problem.build()
    rules = problem.rules(model)
    return model, rules, gdpnet.project(rules, problem.yhat, problem.x, solver=solver)


@cache
def wanted_distance(name: str, k: int) -> float:
    """Distance of a sample of the bank, by Pyomo alone."""
    problem = next(p for p in PROBLEMS if p.name == name)
    sample = problem.samples[k]
    if problem in reference.PROBLEMS:
        assert sample.distance is not None
        return sample.distance
    return oracles.distance(problem, sample)


@SOLVERS
@EVERY
def test_distance_is_the_oracles(problem: Problem, solver: str) -> None:
    _, _, p = projected(problem.name, solver)
    for k, sample in enumerate(problem.samples):
        wanted = wanted_distance(problem.name, k)
        if math.isinf(wanted):
            assert p.status[k] == Status.CONFLICT
            assert p.distance[k] == math.inf
            assert p.value[k] == math.inf
            continue
        assert float(p.distance[k]) == pytest.approx(wanted, abs=1e-7, rel=1e-10)
        assert float(p.value[k]) == pytest.approx(wanted, abs=1e-7, rel=1e-10)
        assert p.value[k] <= p.distance[k] + 1e-9
        expected = Status.SATISFIED if wanted == 0.0 else Status.PROJECTED
        assert p.status[k] == expected, sample
        if sample.distance is not None:
            assert wanted == pytest.approx(sample.distance, abs=1e-9)


@SOLVERS
@pytest.mark.parametrize(
    "case", [c for c in reference.CASES if c["dnf_terms"] <= LARGE], ids=lambda c: c["id"]
)
def test_reference_distances_are_those_of_brute_force(case: dict[str, Any], solver: str) -> None:
    _, _, p = projected(case["id"], solver)
    for distance, known in zip(p.distance.tolist(), case["expected"], strict=True):
        assert distance == pytest.approx(oracles.enumerate_distance(case, known["yhat"]), abs=1e-7)


@SOLVERS
@EVERY
def test_projection_satisfies_the_rules(problem: Problem, solver: str) -> None:
    _, rules, p = projected(problem.name, solver)
    conflict = p.status == Status.CONFLICT
    known = [s.distance == math.inf for s in problem.samples]
    assert conflict.tolist() == known
    assert (rules.satisfied(p.y, problem.x, tol=1e-8) ^ conflict).all()
    # Nothing to do the second time.
    x = None if problem.x is None else problem.x[~conflict]
    again = gdpnet.project(rules, p.y[~conflict], x, solver=solver)
    assert (again.distance <= 1e-8).all()


@SOLVERS
@EVERY
def test_satisfied_predictions_pass_bit_by_bit(problem: Problem, solver: str) -> None:
    _, rules, p = projected(problem.name, solver)
    unchanged = (p.status == Status.SATISFIED) | (p.status == Status.CONFLICT)
    assert torch.equal(p.y[unchanged], problem.yhat[unchanged])
    assert (
        rules.satisfied(problem.yhat, problem.x, tol=1e-9).tolist()
        == (p.status == Status.SATISFIED).tolist()
    )


@SOLVERS
@EVERY
def test_disjunct_holds_at_y(problem: Problem, solver: str) -> None:
    model, rules, p = projected(problem.name, solver)
    for k, sample in enumerate(problem.samples):
        params = problem.params(sample)
        off = problem.off(params)
        for name, value in params.items():
            model.find_component(name).set_value(value)
        oracles.set_values(oracles.outputs_of(model, problem.outputs), p.y[k].tolist())
        chosen = []
        for name, index in zip(rules.names, p.disjunct[k].tolist(), strict=True):
            source = model.find_component(name)
            inactive = oracles.is_off(source, off)
            assert (index == -1) == (inactive or p.status[k] == Status.CONFLICT), name
            if index == -1:
                continue
            if source.ctype is not Disjunction:
                assert index == 0
                assert oracles.residual(source) <= 1e-8
                continue
            disjunct = source.disjuncts[index]
            assert disjunct.active
            chosen.append(disjunct.name)
            if not problem.auxiliaries and not off:
                assert oracles.residual_of_block(disjunct) <= 1e-8, name
        # All of them together, for some value of auxiliaries and BooleanVars.
        if chosen and (problem.auxiliaries or not rules.is_plain):
            found = oracles.distance(problem, sample, model, yhat=p.y[k].tolist(), chosen=chosen)
            assert found <= 1e-7


@SOLVERS
@pytest.mark.parametrize("threads", [1, 2])
def test_threads_change_nothing(threads: int, solver: str) -> None:
    for name in ("jl_midsize", "uniform_softmax", "plain_milp", "conditions"):
        problem = next(p for p in PROBLEMS if p.name == name)
        _, rules, p = projected(name, solver)
        q = gdpnet.project(rules, problem.yhat, problem.x, solver=solver, threads=threads)
        assert torch.equal(p.y, q.y)
        assert torch.equal(p.disjunct, q.disjunct)
        assert torch.equal(p.value, q.value)


@pytest.fixture(scope="module")
def gurobi() -> None:
    from gdpnet.lp import gurobi

    try:
        gurobi.environment()
    except SolverError as error:
        pytest.skip(f"Gurobi cannot be used here: {error}")


@pytest.mark.gurobi
@EVERY
@pytest.mark.usefixtures("gurobi")
def test_gurobi_agrees(problem: Problem) -> None:
    _, rules, p = projected(problem.name, "milp")
    _, _, q = projected(problem.name, "milp:gurobi")
    assert q.info.solver == "milp:gurobi"
    assert torch.equal(p.status, q.status)
    same = p.status != Status.CONFLICT
    assert torch.allclose(p.distance[same], q.distance[same], rtol=1e-9, atol=1e-7)
    assert (rules.satisfied(q.y, problem.x, tol=1e-7) | ~same).all()
