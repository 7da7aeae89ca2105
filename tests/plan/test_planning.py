"""The rule graph, plans under a budget, and adaptive basic steps."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import networkx as nx
import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction
from scipy.optimize import linprog

import gdpnet
from gdpnet import Plan, Status
from gdpnet.study import load_model
from gdpnet.testing import PROBLEMS, Problem

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
    graph = gdpnet.plan.interaction_graph(rules, yhat, x)
    assert list(graph.nodes) == list(rules.names)
    active = rules.active(x).double().mean(0)
    for name, share in zip(rules.names, active.tolist(), strict=True):
        assert graph.nodes[name]["active"] == pytest.approx(share)
        assert graph.nodes[name]["disjuncts"] == 2
    hot, cold, humid = "R1_hot", "R2_cold", "R3_humid"
    assert graph.edges[hot, cold]["together"] == 0.0
    assert graph.edges[hot, humid]["shared"] == ["f", "c"]
    assert graph.edges[hot, humid]["gain"] > 0.0
    # f >= .75 and f <= .7 of the four pairs is empty.
    assert graph.edges[hot, humid]["empty"] == pytest.approx(0.25)


def test_a_graph_goes_through_json_unchanged(cooling: Cooling) -> None:
    rules, x, yhat = cooling
    graph = gdpnet.plan.interaction_graph(rules, yhat, x)
    text = json.dumps(nx.node_link_data(graph, edges="edges"), allow_nan=False)
    again = nx.node_link_graph(json.loads(text), edges="edges")
    assert again.graph == graph.graph == {"samples": 300}
    assert dict(again.nodes(data=True)) == dict(graph.nodes(data=True))
    assert list(again.edges(data=True)) == list(graph.edges(data=True))


def test_share_of_empty_pairs_counts_pairs_of_disjuncts() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 10))
    y = m.y[0]
    # Empty are y <= 1 with either of b, and y in [4, 5] with y >= 6: three of eight pairs. The last
    # disjunct of a is part of the one before it, and counts all the same.
    m.a = Disjunction(expr=[[y <= 1], [y >= 4, y <= 5], [y >= 9], [y >= 9, m.y[1] <= 5]])
    m.b = Disjunction(expr=[[y >= 2], [y >= 6]])
    graph = gdpnet.plan.interaction_graph(gdpnet.RuleModel(m, outputs=[m.y]))
    assert graph.edges["a", "b"]["empty"] == pytest.approx(3 / 8)
    assert graph.nodes["a"] == {
        "disjuncts": 4, "rows": 6, "outputs": ["y[0]", "y[1]"], "active": 1.0,
    }  # fmt: skip


def test_pairs_that_logic_forbids_are_empty() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 10))
    m.a = Disjunction(expr=[[m.y[0] <= 3], [m.y[0] >= 7]])
    m.b = Disjunction(expr=[[m.y[1] <= 3], [m.y[1] >= 7]])
    chosen = [d.indicator_var for rule in (m.a, m.b) for d in rule.disjuncts]
    m.logic = pyo.LogicalConstraint(expr=chosen[0].implies(chosen[2]))
    graph = gdpnet.plan.interaction_graph(gdpnet.RuleModel(m, outputs=[m.y]))
    assert graph.edges["a", "b"]["shared"] == []
    assert graph.edges["a", "b"]["empty"] == pytest.approx(0.25)


def test_rules_that_meet_through_a_third_have_no_edge() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(3), bounds=(0, 10))
    m.a = Disjunction(expr=[[m.y[0] <= 3], [m.y[0] >= 7]])
    m.b = Disjunction(expr=[[m.y[0] + m.y[1] <= 4], [m.y[0] + m.y[1] >= 9]])
    m.c = Disjunction(expr=[[m.y[1] + m.y[2] <= 3], [m.y[1] >= 7]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    graph = gdpnet.plan.interaction_graph(rules)
    assert sorted(graph.edges) == [("a", "b"), ("b", "c")]
    assert gdpnet.plan.choose(rules, 8).clusters == (("a", "b", "c"),)


def test_without_a_hull_there_is_a_graph_but_no_gain_and_no_plan() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2))
    m.a = Disjunction(expr=[[m.y[0] <= 3], [m.y[1] >= 7]])
    m.b = Disjunction(expr=[[m.y[0] >= 4], [m.y[1] >= 9]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    samples = torch.full((4, 2), 3.5).double()
    edge = gdpnet.plan.interaction_graph(rules, yhat=samples).edges["a", "b"]
    assert (edge["gain"], edge["weight"], edge["empty"]) == (None, 0.0, 0.25)
    with pytest.raises(gdpnet.errors.RuleError, match="finite bounds"):
        gdpnet.plan.choose(rules, 8, yhat=samples)
    for y in m.y.values():
        y.setlb(-1e12)
        y.setub(1e12)
    wide = gdpnet.RuleModel(m, outputs=[m.y])
    with pytest.raises(gdpnet.errors.RuleError, match=r"beyond 1e\+09, as for y\[0\], y\[1\]"):
        gdpnet.project(wide, samples, relaxation="cnf")
    m.y[0].domain = pyo.Integers
    m.y[0].setlb(0)
    m.y[0].setub(9)
    with pytest.raises(gdpnet.errors.RuleError, match=r"y\[0\] would still be whole numbers"):
        gdpnet.plan.choose(gdpnet.RuleModel(m, outputs=[m.y]), 8, yhat=samples)


def test_gain_of_an_edge_is_that_of_the_two_rules_alone(cooling: Cooling) -> None:
    rules, x, yhat = cooling
    pair = ["R1_hot", "R3_humid"]
    graph = gdpnet.plan.interaction_graph(rules, yhat, x)
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
    graph = gdpnet.plan.interaction_graph(gdpnet.RuleModel(m, outputs=[m.y]))
    assert sorted(graph.edges) == [("r[2]", "r[3]")]
    assert graph.edges["r[2]", "r[3]"]["shared"] == []


def worst_products(rules: gdpnet.RuleModel, x: torch.Tensor, plan: Plan) -> int:
    """Products of the merged clusters that some output satisfies, counted one by one."""
    worst = 0
    for row in x:
        active = rules.active(row[None])[0].tolist()
        clusters = [c for c in plan.active(rules, active) if len(c) > 1]
        worst = max(worst, sum(_satisfiable(rules, row, cluster) for cluster in clusters))
    return worst


def _satisfiable(rules: gdpnet.RuleModel, x: torch.Tensor, cluster: list[int]) -> int:
    values = rules.evaluate(x[None]).rows
    data, matrix, bound = rules.data, rules.table.shared.numpy(), values.bound[0].numpy()
    box = [(c.lower, c.upper) for c in data.columns]
    count = 0
    for chosen in product(*(data.clauses[data.rules[r].clause].literals for r in cluster)):
        rows = [*data.global_rows, *(i for k in chosen for i in data.booleans[k - 1].true_rows)]
        found = linprog(np.zeros(len(box)), matrix[rows], bound[rows], bounds=box)
        count += found.status == 0
    return count


@pytest.mark.parametrize("objective", ["tightness", "satisfaction"])
def test_a_plan_keeps_its_budget_and_beats_the_lexicographic_one(
    cooling: Cooling, objective: str
) -> None:
    rules, x, yhat = cooling
    exact = gdpnet.project(rules, yhat, x)
    last = gdpnet.project(rules, yhat, x, relaxation="cnf").value.mean() - 1e-9
    for budget in (3, 4, 6, 16):
        plan = gdpnet.plan.choose(rules, budget, yhat, x, objective)
        assert worst_products(rules, x[:60], plan) <= budget
        p = gdpnet.project(rules, yhat, x, relaxation=plan)
        if objective == "tightness":
            assert p.value.mean() >= last
            last = p.value.mean() - 1e-9
        assert p.value.mean() <= exact.distance.mean() + 1e-9
    assert plan.exact
    # Three rules chosen by the planner against the first three.
    three = gdpnet.plan.choose(rules, 4, yhat, x, objective)
    assert three.clusters == (("R1_hot", "R3_humid", "R5_demand_response"),)
    first = gdpnet.project(rules, yhat, x, relaxation=Plan.lexicographic(rules, 3))
    chosen = gdpnet.project(rules, yhat, x, relaxation=three)
    assert chosen.value.mean() > first.value.mean()
    assert (chosen.status <= Status.PROJECTED).sum() > (first.status <= Status.PROJECTED).sum()


def test_a_budget_of_nonzeros_is_kept(cooling: Cooling) -> None:
    rules, x, yhat = cooling

    def nonzeros(plan: Plan) -> int:
        sizes = gdpnet.project(rules, yhat, x, relaxation=plan).info.sizes
        assert sizes is not None
        return sizes.nonzeros

    least = nonzeros(Plan.cnf())
    for budget in (least, least + 100, least + 400):
        plan = gdpnet.plan.choose(rules, budget, yhat, x, unit="nonzeros")
        assert nonzeros(plan) <= budget
    assert plan.clusters
    with pytest.raises(gdpnet.errors.InputError, match=f"{least} nonzeros"):
        gdpnet.plan.choose(rules, least - 1, yhat, x, unit="nonzeros")


def test_a_plan_is_as_good_as_the_best_of_all_partitions() -> None:
    """Five rules of a model whose products do not fit: all 52 partitions are measured."""
    model = load_model(ROOT / "models" / "stress")
    rules = model.build(k=5)
    x = model.module.sample(120, split="iid", seed=0, k=5)[0]
    yhat = torch.rand(120, 3, generator=torch.Generator().manual_seed(0)).double()
    budget = 8
    best = 0.0
    for partition in partitions(list(rules.names)):
        plan = Plan(tuple(tuple(c) for c in partition))
        if worst_products(rules, x[:5], plan) <= budget:
            best = max(best, float(gdpnet.project(rules, yhat, x, relaxation=plan).value.mean()))
    plan = gdpnet.plan.choose(rules, budget, yhat, x)
    assert not plan.exact
    found = float(gdpnet.project(rules, yhat, x, relaxation=plan).value.mean())
    assert found >= 0.995 * best


def partitions(items: list[str]) -> Iterator[list[list[str]]]:
    if not items:
        yield []
        return
    first, *rest = items
    for partition in partitions(rest):
        yield [[first], *partition]
        for k, cluster in enumerate(partition):
            yield [*partition[:k], [first, *cluster], *partition[k + 1 :]]


def test_a_plan_is_exact_where_interacting_rules_fit(cooling: Cooling) -> None:
    rules, x, yhat = cooling
    plan = gdpnet.plan.choose(rules, 64, yhat, x)
    assert plan.exact
    p = gdpnet.project(rules, yhat, x, relaxation=plan)
    exact = gdpnet.project(rules, yhat, x)
    assert torch.allclose(p.distance, exact.distance, atol=1e-7)
    assert not gdpnet.plan.choose(rules, 6, yhat, x).exact


def test_bad_budgets_and_missing_samples_are_refused(cooling: Cooling) -> None:
    rules, _, _ = cooling
    for budget in (0, -1, 2.5, "64"):
        with pytest.raises(gdpnet.errors.InputError, match="budget"):
            gdpnet.plan.choose(rules, budget)  # type: ignore[arg-type]
    with pytest.raises(gdpnet.errors.InputError, match="objective"):
        gdpnet.plan.choose(rules, 8, objective="speed")
    with pytest.raises(gdpnet.errors.InputError, match="unit"):
        gdpnet.plan.choose(rules, 8, unit="rows")
    with pytest.raises(gdpnet.errors.RuleError, match="'R9' is no rule"):
        gdpnet.project(rules, torch.zeros(3), torch.zeros(7), relaxation=Plan((("R1_hot", "R9"),)))
    m = pyo.ConcreteModel()
    m.p = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var()
    m.r = gdpnet.rule(gdpnet.any_of(m.y <= m.p, m.y >= 3))
    open_ended = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    with pytest.raises(gdpnet.errors.InputError, match="input_bounds"):
        gdpnet.plan.interaction_graph(open_ended)
    with pytest.raises(gdpnet.errors.InputError, match="Pass predictions"):
        gdpnet.plan.interaction_graph(open_ended, x=torch.ones(3, 1))


@pytest.mark.parametrize("solver", ["extended", "highs"])
def test_adaptive_steps_end_at_the_exact_answer(cooling: Cooling, solver: str) -> None:
    rules, x, yhat = cooling
    p = gdpnet.project(rules, yhat, x, relaxation="adaptive", solver=solver)
    exact = gdpnet.project(rules, yhat, x)
    assert p.status.tolist() == exact.status.tolist()
    assert torch.allclose(p.distance, exact.distance, atol=1e-7)
    assert rules.satisfied(p.y, x).all()
    assert p.info.rounds is not None
    cnf = gdpnet.project(rules, yhat, x, relaxation="cnf", solver=solver)
    assert ((p.info.rounds > 0) == (cnf.status == Status.RELAXED)).all()


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_adaptive_steps_on_the_bank(problem: Problem) -> None:
    rules = problem.rules()
    columns = rules.data.columns
    if any(c.integer or not math.isfinite(c.lower + c.upper) for c in columns):
        return
    p = gdpnet.project(rules, problem.yhat, problem.x, relaxation="adaptive")
    exact = gdpnet.project(rules, problem.yhat, problem.x)
    finished = (p.status != Status.RELAXED).numpy()
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
        p = gdpnet.project(rules, yhat[busy], x[busy], relaxation=relaxation, solver="extended")
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
