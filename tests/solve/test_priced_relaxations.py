"""Rules with prices in relaxations: lower bounds that grow with every step, and the DNF exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.gdp import Disjunct, Disjunction

import gdpnet
from gdpnet import Status
from gdpnet.errors import GdpnetError
from gdpnet.solve.extended.cheapest import cheapest
from gdpnet.testing import PROBLEMS, Problem, random_predictions, random_rules, with_random_prices
from gdpnet.testing.problems import reference
from tests.solve.priced_oracle import disagreements, least_l1, least_l2, random_model

# Problems whose DNF takes Clarabel seconds a sample.
LARGE = {c["id"] for c in reference.CASES if c["dnf_terms"] > 100}


def values(rules: Any, yhat: Any, x: Any, **options: Any) -> list[gdpnet.Projection] | None:
    """One projection a relaxation; None where there is no hull, or none that can be written."""
    order = ("cnf", f"pdnf:{min(2, len(rules.names))}", "dnf")
    try:
        return [gdpnet.project(rules, yhat, x, relaxation=name, **options) for name in order]
    except GdpnetError:
        return None


def assert_ordered(found: list[Any], exact: np.ndarray, told: Any, tol: float) -> int:
    """CNF <= pDNF <= DNF = exact, and what is said to be exact is so; how often CNF is less."""
    bounds, there = [p.value.numpy() for p in found], np.isfinite(exact)
    assert (np.isfinite(bounds[-1]) == there).all(), told
    bounds, exact = [bound[there] for bound in bounds], exact[there]
    slack = tol * np.maximum(1.0, np.abs(exact))
    for below, above in zip(bounds, [*bounds[1:], exact], strict=True):
        assert (below <= above + slack).all(), told
    assert (np.abs(bounds[-1] - exact) <= slack).all(), told
    for p in found:
        status = p.status.numpy()[there]
        answered = np.isin(status, [Status.SATISFIED, Status.PROJECTED])
        away = p.distance.numpy()[there]
        away = away**2 if p.request.settings.norm == "l2" else away
        cost = away + p.price.numpy()[there]
        assert (np.abs(cost - exact)[answered] <= slack[answered]).all(), told
        assert (status[(cost == 0.0) & answered] == Status.SATISFIED).all(), told
    return int((bounds[0] < exact - 1e-4).sum())


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_the_bank(problem: Problem, norm: str) -> None:
    rules = with_random_prices(problem.rules(), np.random.default_rng(len(problem.name)))
    most = 1 if norm == "l2" and problem.name in LARGE else 12
    yhat, x = problem.yhat[:most], None if problem.x is None else problem.x[:most]
    solver = "extended" if norm == "l1" else "clarabel"
    found = values(rules, yhat, x, norm=norm, solver=solver)
    if found is None:
        pytest.skip("no hull")
    exact = gdpnet.project(rules, yhat, x, norm=norm)
    assert_ordered(found, exact.value.numpy(), problem.name, 1e-7 if norm == "l1" else 2e-6)
    status = found[-1].status.numpy()
    assert not np.isin(status, [Status.UNSOLVED, Status.RELAXED]).any()


@pytest.mark.parametrize("solver", ["extended", "highs"])
def test_random_models(solver: str) -> None:
    """Against a mixed-integer program of HiGHS with one binary more a rule."""
    less = 0
    for seed in range(60):
        model, yhat = random_model(seed)
        assert disagreements(seed, solver=solver) == []
        exact = np.array([least_l1(model, one) for one in yhat])
        found = values(model.rules_of(), yhat, None, solver=solver, weights=model.weights)
        assert found is not None
        less += assert_ordered(found, exact, seed, 1e-7)
    assert less > 5


def test_random_models_in_the_euclidean_norm() -> None:
    """Against a quadratic program of DAQP for every choice."""
    less = 0
    for seed in range(40):
        model, yhat = random_model(seed)
        exact = np.array([least_l2(model, one) for one in yhat])
        rules = model.rules_of()
        found = values(rules, yhat, None, norm="l2", solver="clarabel", weights=model.weights)
        assert found is not None
        less += assert_ordered(found, exact, seed, 2e-6)
    assert less > 3


def test_random_rules_with_logic_auxiliaries_and_whole_numbers() -> None:
    tried = 0
    for seed in range(120):
        rng = np.random.default_rng(seed)
        rules = with_random_prices(random_rules(rng), rng)
        yhat = random_predictions(rng, len(rules.output_names))
        found = values(rules, yhat, None, solver="extended")
        if found is None:
            continue
        exact = gdpnet.project(rules, yhat)
        assert_ordered(found, exact.value.numpy(), seed, 1e-6)
        tried += bool(np.isfinite(exact.value.numpy()).any())
    assert tried > 20


def test_adaptive_steps_end_where_nothing_is_left_to_gain() -> None:
    finished = 0
    for seed in range(30):
        model, yhat = random_model(seed)
        rules = model.rules_of()
        p = gdpnet.project(rules, yhat, relaxation="adaptive", weights=model.weights)
        for s in np.flatnonzero(p.status.numpy() != Status.CONFLICT):
            wanted = least_l1(model, yhat[s])
            assert float(p.value[s]) <= wanted + 1e-7 * max(1.0, wanted)
            if int(p.status[s]) in (Status.SATISFIED, Status.PROJECTED):
                finished += 1
                assert float(p.value[s]) == pytest.approx(wanted, rel=1e-7, abs=1e-7)
    assert finished > 60


def two() -> gdpnet.RuleModel:
    """In CNF (1, 1) and (9, 9) share the weight, at the price of each."""
    m = pyo.ConcreteModel()
    m.p = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var(bounds=(0, 10))
    m.gap = Disjunction(expr=[[m.y <= 2], [m.y >= 8]])
    m.hole = Disjunction(expr=[[m.y <= 4], [m.y >= 6]])
    m.rule_price = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.rule_price[m.gap] = m.p
    m.rule_price[m.hole.disjuncts[1]] = 0.25
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])


@pytest.mark.parametrize("solver", ["extended", "highs", "clarabel"])
def test_what_a_point_pays(solver: str) -> None:
    p = gdpnet.project(
        two(),
        [[3.0], [3.0], [7.0], [7.5], [1.0]],
        [[0.5], [2.0], [0.25], [3.0], [1.0]],
        relaxation="dnf",
        solver=solver,
    )
    expected = [0.5, 1.0, 0.5, 0.75, 0.0]
    assert p.value.tolist() == pytest.approx(expected, abs=1e-6)
    assert p.price.tolist() == [0.5, 0.0, 0.5, 0.25, 0.0]
    assert p.broken.tolist() == [[k in (0, 2), False] for k in range(5)]
    assert p.disjunct.tolist() == [[-1, 0], [0, 0], [-1, 1], [1, 1], [0, 0]]
    assert p.status.tolist() == [Status.PROJECTED] * 4 + [Status.SATISFIED]


def test_a_point_that_is_not_the_answer_is_relaxed_though_it_breaks_nothing() -> None:
    """Where prices are shared the value is less than what the point would have to pay."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 1))
    corners = [[m.y[0] == a, m.y[1] == b] for a, b in ((0, 0), (1, 1), (0, 1), (1, 0))]
    m.first = Disjunction(expr=[corners[0], corners[1]])
    m.second = Disjunction(expr=[corners[2], corners[3]])
    rules = gdpnet.RuleModel(m, outputs=[m.y], prices={"first": 0.8, "second": 0.8})
    p = gdpnet.project(rules, [[0.5, 0.5]], relaxation="cnf")
    assert rules.satisfied(p.y).all(), "no rule has to hold"
    assert p.status.item() == Status.RELAXED
    exact = gdpnet.project(rules, [[0.5, 0.5]])
    assert p.value.item() < exact.value.item() - 0.1
    assert p.price.item() == 0.0, "of an answer alone"
    assert not p.broken.any()


def test_prices_are_in_the_units_of_the_weights() -> None:
    rules = two()
    for solver in ("extended", "highs", "exact"):
        one = gdpnet.project(rules, [[3.0]], [[3.0]], weights=[4.0], solver=solver)
        assert one.value.item() == pytest.approx(3.0)
        other = gdpnet.project(rules, [[3.0]], [[3.0]], weights=[0.25], solver=solver)
        assert other.value.item() == pytest.approx(0.25)


def test_one_bad_price_does_not_spoil_the_batch() -> None:
    p = gdpnet.project(two(), [[3.0], [3.0]], [[-1.0], [0.5]], relaxation="cnf", on_invalid="mark")
    assert p.status.tolist() == [Status.ERROR, Status.PROJECTED]
    assert p.value[1].item() == pytest.approx(0.5)


def test_the_cheapest_of_what_holds() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.low, m.high = Disjunct(), Disjunct()
    m.low.row = pyo.Constraint(expr=m.y <= 8)
    m.low.inner = Disjunction(expr=[[m.y <= 1], [m.y <= 6]])
    m.high.row = pyo.Constraint(expr=m.y >= 2)
    m.rule = Disjunction(expr=[m.low, m.high])
    prices = {"low.inner": 3.0, "high": 1.0, "rule": 9.0}
    rules = gdpnet.RuleModel(m, outputs=[m.y], prices=prices)
    names = [boolean.name for boolean in rules.data.booleans]
    holds = np.ones((2, len(names)), dtype=bool)
    holds[1, [k for k, name in enumerate(names) if "inner_disjuncts" in name]] = False
    price = np.tile([rules.data.booleans[k].price.number for k in rules.data.priced], (2, 1))
    chosen = cheapest(rules, np.ones((2, len(rules.data.clauses)), dtype=bool), holds, price)
    told = [sorted(names[k] for k in np.flatnonzero(line)) for line in chosen]
    assert told == [["low", "low.inner_disjuncts[0]"], ["high"]]
