"""The rule graph, plans under a budget, and adaptive basic steps."""

from __future__ import annotations

import json
import math
from pathlib import Path

import networkx as nx
import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet import Plan, Status
from gdpnet.study import load_model
from tests.bank import PROBLEMS, Problem

ROOT = Path(__file__).parents[2]
Cooling = tuple[gdpnet.RuleModel, torch.Tensor, torch.Tensor]


@pytest.fixture(scope="module")
def cooling() -> Cooling:
    model = load_model(ROOT / "models" / "cooling")
    x, _ = model.sample(300, split="ood", seed=1)
    yhat = torch.rand(300, 3, generator=torch.Generator().manual_seed(1)).double()
    return model.build(), x, yhat


def test_graph_of_cooling_tells_what_meets(cooling: Cooling) -> None:
    rules, x, yhat = cooling
    graph = gdpnet.interaction_graph(rules, x, yhat)
    assert list(graph.nodes) == list(rules.names)
    active = rules.active(x).double().mean(0)
    for name, share in zip(rules.names, active.tolist(), strict=True):
        assert graph.nodes[name]["active"] == pytest.approx(share)
        assert graph.nodes[name]["disjuncts"] == 2
    hot, cold, humid = "R1_hot", "R2_cold", "R3_humid"
    assert graph.edges[hot, cold]["together"] == 0.0
    assert graph.edges[hot, humid]["shared"] == ("f", "c")
    assert graph.edges[hot, humid]["gain"] > 0.0
    # f >= .75 and f <= .7 of the four pairs is empty.
    assert graph.edges[hot, humid]["empty"] == pytest.approx(0.25)
    assert json.dumps(nx.node_link_data(graph, edges="edges"))


def test_gain_of_an_edge_is_that_of_the_two_rules_alone(cooling: Cooling) -> None:
    rules, x, yhat = cooling
    pair = ["R1_hot", "R3_humid"]
    graph = gdpnet.interaction_graph(rules, x, yhat)
    both = rules.active(x)[:, [rules.names.index(n) for n in pair]].all(1)
    model = load_model(ROOT / "models" / "cooling").module.pyomo_model()
    for disjunction in list(model.component_data_objects(Disjunction)):
        if disjunction.name not in pair:
            for disjunct in disjunction.disjuncts:
                disjunct.deactivate()
            disjunction.deactivate()
    inputs = [model.find_component(name) for name in rules.input_names]
    outputs = [model.find_component(name) for name in rules.output_names]
    alone = gdpnet.RuleModel(model, outputs=outputs, inputs=inputs)
    cnf = gdpnet.project(alone, yhat[both], x[both], relaxation="cnf", solver="highs")
    exact = gdpnet.project(alone, yhat[both], x[both], solver="exact")
    gain = (exact.distance - cnf.value).mean()
    assert graph.edges[pair[0], pair[1]]["gain"] == pytest.approx(float(gain), abs=1e-8)


def test_rules_that_share_nothing_have_no_edge() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(4), bounds=(0, 10))
    m.r = Disjunction(range(4), rule=lambda m, i: [[m.y[i] <= 3], [m.y[i] >= 7]])
    m.link = pyo.Constraint(expr=m.y[2] + m.y[3] <= 12)
    graph = gdpnet.interaction_graph(gdpnet.RuleModel(m, outputs=[m.y]))
    assert sorted(graph.edges) == [("r[2]", "r[3]")]
    assert graph.edges["r[2]", "r[3]"]["shared"] == ()


def worst_products(rules: gdpnet.RuleModel, x: torch.Tensor, plan: Plan) -> int:
    return max(
        sum(2 ** len(cluster) for cluster in plan.active(rules, active))
        for active in rules.active(x).tolist()
    )


@pytest.mark.parametrize("objective", ["tightness", "satisfaction"])
def test_a_plan_keeps_its_budget_and_beats_the_lexicographic_one(
    cooling: Cooling, objective: str
) -> None:
    rules, x, yhat = cooling
    exact = gdpnet.project(rules, yhat, x)
    last = -1.0
    for budget in (12, 16, 24):
        plan = gdpnet.plan_basic_steps(rules, budget, x, yhat, objective)
        assert worst_products(rules, x, plan) <= max(budget, worst_products(rules, x, Plan.cnf()))
        p = gdpnet.project(rules, yhat, x, relaxation=plan)
        value = float(p.value.mean())
        assert value >= last - 1e-9
        last = value
        assert value <= float(exact.distance.mean()) + 1e-9
    # Three rules chosen by the planner against the first three.
    three = gdpnet.plan_basic_steps(rules, 12, x, yhat, objective)
    first = gdpnet.project(rules, yhat, x, relaxation=Plan.lexicographic(rules, 3))
    chosen = gdpnet.project(rules, yhat, x, relaxation=three)
    if objective == "tightness":
        assert chosen.value.mean() > first.value.mean()
    else:
        assert (chosen.status <= Status.PROJECTED).sum() >= (first.status <= Status.PROJECTED).sum()


def test_a_plan_is_exact_where_interacting_rules_fit(cooling: Cooling) -> None:
    rules, x, yhat = cooling
    plan = gdpnet.plan_basic_steps(rules, 64, x, yhat)
    assert plan.exact
    p = gdpnet.project(rules, yhat, x, relaxation=plan)
    exact = gdpnet.project(rules, yhat, x)
    assert torch.allclose(p.distance, exact.distance, atol=1e-7)
    assert not gdpnet.plan_basic_steps(rules, 10, x, yhat).exact


def test_bad_budgets_and_missing_samples_are_refused(cooling: Cooling) -> None:
    rules, _, _ = cooling
    for budget in (0, -1, 2.5, "64"):
        with pytest.raises(gdpnet.InputError, match="budget"):
            gdpnet.plan_basic_steps(rules, budget)  # type: ignore[arg-type]
    with pytest.raises(gdpnet.InputError, match="objective"):
        gdpnet.plan_basic_steps(rules, 8, objective="speed")
    m = pyo.ConcreteModel()
    m.p = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var()
    m.r = gdpnet.rule(gdpnet.any_of(m.y <= m.p, m.y >= 3))
    open_ended = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    with pytest.raises(gdpnet.InputError, match="input_bounds"):
        gdpnet.interaction_graph(open_ended)
    with pytest.raises(gdpnet.InputError, match="Pass samples"):
        gdpnet.interaction_graph(open_ended, x=torch.ones(3, 1))


@pytest.mark.parametrize("solver", ["dense", "highs"])
def test_adaptive_steps_end_at_the_exact_answer(cooling: Cooling, solver: str) -> None:
    rules, x, yhat = cooling
    p = gdpnet.project(rules, yhat, x, relaxation="auto", solver=solver)
    exact = gdpnet.project(rules, yhat, x)
    assert p.status.tolist() == exact.status.tolist()
    assert torch.allclose(p.distance, exact.distance, atol=1e-7)
    assert rules.satisfied(x, p.y).all()
    assert p.info.rounds is not None
    cnf = gdpnet.project(rules, yhat, x, relaxation="cnf", solver=solver)
    assert ((p.info.rounds > 0) == (cnf.status == Status.RELAXED)).all()


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_adaptive_steps_on_the_bank(problem: Problem) -> None:
    rules = problem.rules()
    columns = rules.data.columns
    if any(c.integer or not math.isfinite(c.lower + c.upper) for c in columns):
        return
    p = gdpnet.project(rules, problem.yhat, problem.x, relaxation="auto")
    exact = gdpnet.project(rules, problem.yhat, problem.x)
    finished = (p.status != Status.LIMIT).numpy()
    assert finished.mean() > 0.5
    got, wanted = p.distance.numpy()[finished], exact.distance.numpy()[finished]
    assert np.allclose(got, wanted, atol=1e-7)
    assert p.status[finished].tolist() == exact.status[finished].tolist()


def test_the_programs_are_those_of_the_pyomo_chain(cooling: Cooling) -> None:
    rules, x, yhat = cooling
    plan = Plan((("R1_hot", "R3_humid", "R5_demand_response"),))
    relaxations: list[str | Plan] = ["cnf", plan, "dnf"]
    busy = rules.active(x).sum(1).argsort(descending=True)[:6]
    for relaxation in relaxations:
        p = gdpnet.project(rules, yhat[busy], x[busy], relaxation=relaxation, solver="dense")
        for k, i in enumerate(busy.tolist()):
            lp = gdpnet.convexify(
                rules, relaxation=relaxation, x=x[i].tolist(), yhat=yhat[i].tolist()
            )
            solver = pyo.SolverFactory("appsi_highs")
            solver.solve(lp)
            value = next(
                pyo.value(o) for o in lp.component_data_objects(pyo.Objective, active=True)
            )
            assert value == pytest.approx(float(p.value[k]), abs=1e-7)
