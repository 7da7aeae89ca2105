"""norm="l2" where the search hands over: tangents, exact points, and what is said of a limit."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet import Status
from gdpnet.errors import WorkLimitWarning
from gdpnet.lp import highs
from gdpnet.lp.clock import UNLIMITED, Clock
from gdpnet.lp.program import Outcome
from gdpnet.solve import Exact
from gdpnet.solve.base import Settings
from gdpnet.solve.milp import l2
from gdpnet.solve.milp.disjunctive import DisjunctiveProgram
from gdpnet.solve.milp.sample import RulesAtSample
from gdpnet.solve.milp.written import Written
from gdpnet.testing import (
    PROBLEMS,
    Problem,
    random_predictions,
    random_rules,
    with_random_prices,
)
from tests.derivative.random_models import random_model
from tests.solve.l2_oracle import Oracle
from tests.solve.priced_oracle import disagreements
from tests.solve.test_diving import coupled

EARLY = Exact(node_limit=1)  # hands over at once
UNWRITTEN = {"unbounded_auxiliary"}  # a row of a disjunct that nothing bounds: nobody takes over


def at(rules: gdpnet.RuleModel, x: torch.Tensor | None = None, k: int = 0) -> RulesAtSample:
    inputs = torch.zeros(1, 0, dtype=torch.float64) if x is None else x.double()
    return RulesAtSample.of(rules, rules.evaluate(inputs), k)


def same_as_search(rules: gdpnet.RuleModel, yhat: torch.Tensor, x: torch.Tensor | None) -> int:
    """Compare what is handed over with the search; how many samples that were."""
    whole = gdpnet.project(rules, yhat, x, norm="l2", solver=Exact(node_limit=10**7))
    early = gdpnet.project(rules, yhat, x, norm="l2", solver=EARLY)
    assert early.status.tolist() == whole.status.tolist()
    known = whole.status != Status.CONFLICT
    assert torch.allclose(early.distance[known], whole.distance[known], rtol=1e-7, atol=1e-7)
    assert torch.allclose(early.value[known], whole.value[known], rtol=1e-7, atol=1e-7)
    holds = rules.satisfied(early.y, x, tol=1e-8)
    assert holds[known].all()
    return int(early.answer.finished_by("milp").sum())


# ---- against the search, enumeration and others ---------------------------------------------


@pytest.mark.parametrize(
    "problem", [p for p in PROBLEMS if p.name not in UNWRITTEN], ids=lambda p: p.name
)
def test_the_bank(problem: Problem) -> None:
    same_as_search(problem.rules(), problem.yhat, problem.x)


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_models(first: int) -> None:
    taken = 0
    for seed in range(first, first + 20):
        model = random_model(seed, batch=4)
        taken += same_as_search(model.rules, model.yhat, model.x)
    assert taken > 20


@pytest.mark.parametrize("seed", range(0, 40, 4))
def test_enumeration(seed: int) -> None:
    model = random_model(seed, batch=2)
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, model.yhat.shape[1]).tolist()
    p = gdpnet.project(model.rules, model.yhat, model.x, norm="l2", solver=EARLY, weights=weights)
    for k in range(2):
        inputs = None if model.x is None else model.x[k].numpy()
        wanted = Oracle(model.rules, model.yhat[k].numpy(), inputs, weights).solve()
        if np.isinf(wanted):
            assert p.status[k] == Status.CONFLICT
        else:
            assert float(p.distance[k]) == pytest.approx(np.sqrt(wanted), rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("seed", range(12))
def test_prices(seed: int) -> None:
    assert disagreements(seed, "l2", EARLY) == []


def squared_by_gurobi(program: DisjunctiveProgram, yhat: np.ndarray) -> float:
    """The least squared distance in Gurobi: the same rows, and the squares themselves."""
    gurobipy = pytest.importorskip("gurobipy")
    linear = Written(program).linear
    d = len(yhat)
    with gurobipy.Env(params={"OutputFlag": 0}) as env, gurobipy.Model(env=env) as model:
        model.Params.MIPGap, model.Params.MIPGapAbs, model.Params.FeasibilityTol = 0.0, 0.0, 1e-9
        kind = ["B" if whole else "C" for whole in linear.integer]
        v = model.addMVar(len(linear.cost), lb=linear.lower, ub=linear.upper, vtype=kind)
        for i in range(len(linear.row_lower)):
            entries = slice(linear.start[i], linear.start[i + 1])
            left = linear.value[entries] @ v[linear.column[entries]]
            if np.isfinite(linear.row_lower[i]):
                model.addConstr(left >= linear.row_lower[i])
            if np.isfinite(linear.row_upper[i]):
                model.addConstr(left <= linear.row_upper[i])
        model.setObjective((v[:d] - yhat) @ (v[:d] - yhat))
        model.optimize()
        return float(model.ObjVal)


@pytest.mark.parametrize("seed", range(4))
def test_coupled_rules_in_gurobi(seed: int) -> None:
    rules, yhat = coupled(40, seed)
    p = gdpnet.project(rules, torch.from_numpy(yhat), norm="l2", solver=EARLY)
    assert p.info.solver == "milp"
    assert p.status.tolist() == [Status.PROJECTED]
    # Rows as the l1 program has them, without its distances.
    program = at(rules).squared(yhat[0], np.ones(40), unit=1.0)
    plain = DisjunctiveProgram(**{**vars(program), "squares": None})
    wanted = np.sqrt(squared_by_gurobi(plain, yhat[0]))
    assert p.distance.item() == pytest.approx(wanted, rel=1e-6)
    assert p.distance.item() <= wanted + 1e-9


@pytest.mark.parametrize("size", [1e2, 1e4])
def test_large_predictions_keep_the_digits_of_the_answer(size: float) -> None:
    rules, yhat = coupled(16, 5)
    far = torch.from_numpy(yhat).repeat(3, 1)
    far += size * torch.randn(far.shape, generator=torch.Generator().manual_seed(0)).double()
    far[2, 3:] = torch.from_numpy(yhat)[0, 3:]  # most of them near
    whole = gdpnet.project(rules, far, norm="l2", solver=Exact(node_limit=10**7))
    early = gdpnet.project(rules, far, norm="l2", solver=EARLY)
    assert early.answer.finished_by("milp").any()
    assert early.status.tolist() == whole.status.tolist()
    assert torch.allclose(early.y, whole.y, atol=1e-7)


def test_weights_far_apart_prove_nothing_too_early() -> None:
    # Outputs that cost little have all there is to decide: their unit is not that of the heaviest.
    rules, yhat = coupled(16, 5)
    given, weights = torch.from_numpy(yhat), [1e8, *[1.0] * 15]
    whole, early = (
        gdpnet.project(rules, given, norm="l2", solver=solver, weights=weights)
        for solver in (Exact(node_limit=10**7), EARLY)
    )
    assert early.info.solver == "milp"
    assert early.status.tolist() == [Status.PROJECTED]
    assert torch.allclose(early.distance, whole.distance, rtol=1e-7)


@pytest.mark.parametrize("d", [8, 12])
def test_rows_that_share_a_light_output_are_not_parallel(d: int) -> None:
    # In units of the distance they nearly are, and a far point was said to be the nearest.
    rules, yhat = coupled(d, 3205)
    rng = np.random.default_rng(3205)
    for size in (8, d):
        heavy, far = rng.choice([0.0, 1.0], size), rng.random(size) < 0.5
        if size == d:
            break
    given = torch.from_numpy(yhat * np.where(far, 10.0, 1.0))
    found = []
    for spread in (1e4, 1e6, 1e7):
        p = gdpnet.project(rules, given, norm="l2", weights=(spread**heavy).tolist())
        assert p.status.tolist() == [Status.PROJECTED]
        assert rules.satisfied(p.y, tol=1e-9).all()
        found.append(p.distance.item() / spread)  # what the light ones cost is lost beside it
    assert found == pytest.approx(found[:1] * 3, rel=1e-5)


# ---- tangents -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_tangents_cut_off_nothing(seed: int) -> None:
    """Points of all kinds satisfy every row of the program with their own squares."""
    rules, yhat = coupled(24, seed)
    sample, rng = at(rules), np.random.default_rng(seed)
    program = sample.squared(yhat[0], np.ones(24), unit=0.7)
    squares = program.squares
    assert squares is not None
    for _ in range(4):
        squares = squares.touching(rng.normal(size=24))
    written = Written(DisjunctiveProgram(**{**vars(program), "squares": squares}))
    assert written.possible
    linear = written.linear
    near, centre = torch.from_numpy(0.4 + 0.3 * rng.normal(size=(5, 24))), squares.origin
    for y in gdpnet.project(rules, near).y.numpy():
        u, t = y - centre, ((y - centre) / 0.7) ** 2
        lower, upper = linear.lower.copy(), linear.upper.copy()
        lower[:24] = upper[:24] = u
        lower[24:48] = upper[24:48] = t
        room = type(linear)(**{**vars(linear), "lower": lower - 1e-9, "upper": upper + 1e-9})
        assert highs.solve(room).outcome is Outcome.OPTIMAL


def test_a_disjunction_is_seen_before_it_is_decided() -> None:
    # y <= 0 or y >= 1 from 0.4: the relaxation alone says 0.16, what the nearer disjunct costs.
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(-5, 5))
    m.one = Disjunction(expr=[[m.y[0] <= 0], [m.y[0] >= 1]])
    m.two = Disjunction(expr=[[m.y[0] + m.y[1] <= 0], [m.y[0] + m.y[1] >= 2]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    program = at(rules).squared(np.array([0.4, 0.4]), np.ones(2), unit=1.0)
    linear = Written(program).linear
    relaxed = highs.solve(type(linear)(**{**vars(linear), "integer": None}))
    # Of two columns that must sum up to 0 from 0.8: 0.8^2 / 2.
    assert relaxed.bound == pytest.approx(0.32, abs=1e-9)


# ---- limits, starts, derivatives ------------------------------------------------------------


def test_a_limit_has_a_point_and_a_true_gap() -> None:
    rules, yhat = coupled(60, 1)
    given = torch.from_numpy(yhat)
    best = gdpnet.project(rules, given, norm="l2")
    assert best.status.tolist() == [Status.PROJECTED]
    solver = Exact(node_limit=1, milp_nodes=1)
    with pytest.warns(WorkLimitWarning, match="1 of 1 samples are not proved nearest"):
        p = gdpnet.project(rules, given, norm="l2", solver=solver)
    assert p.status.tolist() == [Status.LIMIT]
    assert rules.satisfied(p.y, tol=1e-8).all()
    assert p.distance.item() >= best.distance.item() - 1e-9
    assert p.value.item() <= best.value.item() + 1e-9
    assert 0.0 < p.info.gap.item() < 0.3  # what the relaxation proves, and not everything


def test_an_answer_depends_on_nothing_but_the_sample() -> None:
    rules, _ = coupled(24, 3)
    yhat = torch.from_numpy(0.4 + 0.3 * np.random.default_rng(7).normal(size=(4, 24)))
    solver = Exact(node_limit=1)
    p = gdpnet.project(rules, yhat, norm="l2", solver=solver)
    other = gdpnet.project(rules, yhat.flip(0), norm="l2", solver=solver, threads=2)
    assert torch.equal(other.y.flip(0), p.y)
    assert torch.equal(other.info.nodes.flip(0), p.info.nodes)
    for k in range(4):
        assert torch.equal(gdpnet.project(rules, yhat[k], norm="l2", solver=solver).y, p.y[k])


def test_a_search_that_does_not_keep_pace_hands_over() -> None:
    rules, yhat = coupled(120, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WorkLimitWarning)
        p = gdpnet.project(rules, torch.from_numpy(yhat), norm="l2", solver=Exact(milp_nodes=1))
    assert p.info.solver == "milp"
    assert p.status.item() in (Status.LIMIT, Status.PROJECTED)
    assert rules.satisfied(p.y, tol=1e-8).all()


@pytest.mark.parametrize("limit", [0.1, 0.5])
def test_a_time_limit_is_kept(limit: float) -> None:
    rules, yhat = coupled(300, 0, share=0.45)
    given = torch.from_numpy(yhat)
    gdpnet.project(rules, given, norm="l2", time_limit=1e-3)  # what is made once
    started = time.perf_counter()
    p = gdpnet.project(rules, given, norm="l2", time_limit=limit, solver=EARLY)
    assert time.perf_counter() - started < limit + max(0.1 * limit, 0.05) + 0.3  # a busy machine
    assert p.status.item() in (Status.LIMIT, Status.PROJECTED, Status.UNSOLVED)
    if p.status.item() != Status.UNSOLVED:
        assert rules.satisfied(p.y, tol=1e-8).all()


def test_a_start_gives_an_answer_where_a_limit_finds_none() -> None:
    rules, yhat = coupled(60, 2)
    given = torch.from_numpy(yhat)
    far = gdpnet.project(rules, given.roll(7, 1), norm="l2")
    hard = {"norm": "l2", "solver": EARLY, "time_limit": 1e-6}
    assert gdpnet.project(rules, given, **hard).status.item() == Status.UNSOLVED
    started = gdpnet.project(rules, given, start=far, **hard)
    assert started.status.item() == Status.LIMIT
    assert rules.satisfied(started.y, tol=1e-8).all()
    # The nearest point in its disjuncts, so at least as near as the start.
    assert started.distance.item() <= (far.y - given).norm().item() + 1e-9
    best = gdpnet.project(rules, given, norm="l2")
    again = gdpnet.project(rules, given, norm="l2", solver=EARLY, start=far)
    assert again.distance.item() == pytest.approx(best.distance.item(), abs=1e-8)


def test_a_tracker_starts_from_the_last_answer() -> None:
    rules, yhat = coupled(40, 4)
    track = gdpnet.Tracker(rules, shift=[*range(1, 40), 39], norm="l2", solver=EARLY)
    rng = np.random.default_rng(0)
    for _ in range(3):
        given = torch.from_numpy(yhat[0] + 0.05 * rng.normal(size=40))
        p = track(given)
        best = gdpnet.project(rules, given, norm="l2", solver=Exact(node_limit=10**7))
        assert p.distance.item() == pytest.approx(best.distance.item(), abs=1e-8)
    hurried = gdpnet.Tracker(rules, norm="l2", solver=EARLY, time_limit=1e-6)
    hurried.last = track.last
    p = hurried(torch.from_numpy(yhat[0]))
    assert p.status.item() == Status.LIMIT
    assert rules.satisfied(p.y, tol=1e-8).all()


@pytest.mark.parametrize("seed", range(3))
def test_derivatives_are_those_of_the_search(seed: int) -> None:
    rules, yhat = coupled(30, seed)
    gradients = []
    for solver in (Exact(node_limit=10**7), EARLY):
        given = torch.from_numpy(yhat).requires_grad_()
        p = gdpnet.project(rules, given, norm="l2", solver=solver, gradient="vertex")
        (p.y @ torch.linspace(-1.0, 1.0, 30, dtype=torch.float64)).sum().backward()
        assert given.grad is not None
        gradients.append(given.grad)
    assert p.info.solver == "milp"
    assert gradients[0].abs().max() > 0.1
    assert torch.allclose(*gradients, atol=1e-7)


def test_contradictions_that_are_handed_over() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(3), bounds=(0, 1))
    m.sum = pyo.Constraint(expr=sum(m.y.values()) == 2.5)
    m.gap = Disjunction(range(3), rule=lambda m, j: [[m.y[j] <= 0.1], [m.y[j] == 1.0]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    yhat = torch.tensor([[0.6, 0.5, 0.4]], dtype=torch.float64)
    p = gdpnet.project(rules, yhat, norm="l2", solver=EARLY)
    assert p.status.tolist() == [Status.CONFLICT]
    mended = gdpnet.project(rules, yhat, norm="l2", solver=EARLY, on_conflict="nearest")
    wanted = gdpnet.project(rules, yhat, norm="l2", on_conflict="nearest")
    assert mended.status.tolist() == [Status.CONFLICT]
    assert torch.allclose(mended.y, wanted.y, atol=1e-8)


@pytest.mark.parametrize("seed", [80026, 80038, 80065, 80089])
def test_contradictions_are_broken_near_the_prediction(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rules = random_rules(rng)
    given = torch.from_numpy(random_predictions(rng, len(rules.output_names)))
    whole, early = (
        gdpnet.project(rules, given, norm="l2", solver=solver, on_conflict="nearest")
        for solver in (Exact(node_limit=10**7), EARLY)
    )
    assert Status.CONFLICT in early.status
    assert early.status.tolist() == whole.status.tolist()
    moved, wanted = ((p.y - given).norm(dim=1) for p in (early, whole))
    assert torch.allclose(moved, wanted, atol=1e-6)


@pytest.mark.filterwarnings("ignore::gdpnet.errors.WorkLimitWarning")
def test_no_contradiction_beside_large_predictions() -> None:
    rng = np.random.default_rng(90073)
    rules = random_rules(rng)
    rng.random()
    rules = with_random_prices(rules, rng)
    given = torch.tensor(
        [[0.7165219199982293, -0.7848363520047474, 289825434.0825875, 2.0165067993862675]],
        dtype=torch.float64,
    )
    for norm in ("l1", "l2"):
        p = gdpnet.project(rules, given, norm=norm, solver=EARLY)
        assert p.status.item() != Status.CONFLICT
    assert gdpnet.project(rules, given, norm="l2").status.item() == Status.PROJECTED


def test_a_clock_that_is_over_leaves_what_is_known() -> None:
    rules, yhat = coupled(24, 0)
    sample, settings = at(rules), Settings(np.ones(24), norm="l2")
    found = l2.project(sample, yhat[0], highs.solve, settings, None, UNLIMITED)
    assert found.status is Status.PROJECTED
    known = l2.Incumbent(found.y, found.value * 1.0, found.literals, found.point)
    again = l2.project(sample, yhat[0], highs.solve, settings, known, Clock(0.0))
    assert again.status is Status.LIMIT
    assert np.array_equal(again.y, found.y)
    assert again.value == 0.0
