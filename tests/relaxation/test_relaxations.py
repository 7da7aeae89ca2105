"""CNF, partial DNF and DNF as linear programs, against values that were proved."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet import Plan, Status
from gdpnet.testing import PROBLEMS, Problem, random_predictions, random_rules
from gdpnet.testing.problems import reference

SOLVERS = pytest.mark.parametrize("solver", ["extended", "highs"])
CASES = [c for c in reference.CASES if c["rules"] and c["dnf_terms"] <= 100]


def rules_of(case: dict[str, Any]) -> gdpnet.RuleModel:
    return next(p for p in reference.PROBLEMS if p.name == case["id"]).rules()


@SOLVERS
@pytest.mark.parametrize("case", CASES, ids=lambda c: c["id"])
def test_values_are_the_proved_ones(case: dict[str, Any], solver: str) -> None:
    rules = rules_of(case)
    yhat = torch.tensor([e["yhat"] for e in case["expected"]], dtype=torch.float64)
    plans = {"cnf_lp": "cnf", "dnf_lp": "dnf"}
    plans |= {f"pdnf{k}_lp": Plan.lexicographic(rules, k) for k in range(1, len(rules.names) + 1)}
    checked = 0
    for name, relaxation in plans.items():
        if not all(name in e for e in case["expected"]):
            continue
        p = gdpnet.project(rules, yhat, relaxation=relaxation, solver=solver)
        wanted = torch.tensor([e[name] for e in case["expected"]], dtype=torch.float64)
        assert torch.allclose(p.value, wanted, atol=1e-7, rtol=0.0), name
        # |sum of the copies' moves| <= sum of their sizes: y is never farther than the value says.
        assert (p.distance <= p.value + 1e-7).all()
        checked += 1
    assert checked >= 2


@SOLVERS
@pytest.mark.parametrize("case", CASES, ids=lambda c: c["id"])
def test_the_dnf_is_exact_and_satisfies_the_rules(case: dict[str, Any], solver: str) -> None:
    rules = rules_of(case)
    yhat = torch.tensor([e["yhat"] for e in case["expected"]], dtype=torch.float64)
    p = gdpnet.project(rules, yhat, relaxation="dnf", solver=solver)
    exact = gdpnet.project(rules, yhat)
    assert torch.allclose(p.distance, exact.distance, atol=1e-7)
    assert p.status.tolist() == exact.status.tolist()
    assert rules.satisfied(p.y, tol=1e-7).all()


def has_hull(rules: gdpnet.RuleModel) -> bool:
    """Whether every variable that a hull copies has bounds, those from inputs included."""
    if not rules.names:
        return True
    bounds = {r.name.partition(" bound of ")[2] for r in rules.data.rows}
    return all(math.isfinite(c.lower + c.upper) or c.name in bounds for c in rules.data.columns)


def few_products(rules: gdpnet.RuleModel, k: int) -> bool:
    first = rules.data.rules[:k]
    return math.prod(len(rules.data.clauses[r.clause].literals) for r in first) <= 200


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_relaxations_are_ordered(problem: Problem) -> None:
    rules, yhat, x = problem.rules(), problem.yhat, problem.x
    if not has_hull(rules):
        with pytest.raises(gdpnet.errors.RuleError, match="hull"):
            gdpnet.project(rules, yhat, x, relaxation="cnf")
        return
    exact = gdpnet.project(rules, yhat, x)
    last = torch.zeros(len(yhat), dtype=torch.float64)
    plans: list[Any] = [
        Plan.lexicographic(rules, k) for k in range(len(rules.names)) if few_products(rules, k)
    ]
    if few_products(rules, len(rules.names)):
        plans.append("dnf")
    for relaxation in plans:
        p = gdpnet.project(rules, yhat, x, relaxation=relaxation, solver="extended")
        assert (p.value >= last - 1e-7).all()
        assert (p.value <= exact.distance + 1e-7).all()
        highs = gdpnet.project(rules, yhat, x, relaxation=relaxation, solver="highs")
        assert torch.allclose(p.value, highs.value, atol=1e-7, rtol=1e-8)
        last = p.value
        broken = p.status == Status.RELAXED
        answered = torch.isfinite(p.distance)
        holds = rules.satisfied(p.y, x, tol=1e-6)
        assert (holds[answered] == ~broken[answered]).all()
    if plans[-1:] == ["dnf"]:
        assert torch.allclose(last, exact.distance, atol=1e-7)


def test_convex_rules_have_equal_cnf_and_dnf() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([1, 2], bounds=(0, 10))
    m.one = Disjunction(expr=[[m.y[1] + m.y[2] <= 6]])
    m.two = Disjunction(expr=[[m.y[1] - m.y[2] <= 1], [m.y[1] - m.y[2] <= 0]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    yhat = torch.from_numpy(np.random.default_rng(0).uniform(0, 10, (40, 2)))
    cnf = gdpnet.project(rules, yhat, relaxation="cnf")
    assert torch.allclose(cnf.value, gdpnet.project(rules, yhat).distance, atol=1e-9)
    assert (cnf.status != Status.RELAXED).all()


def test_figure1_cnf_leaves_rules_broken_that_the_dnf_keeps() -> None:
    rules = two_boxes()
    yhat = torch.tensor([[4.5, 9.5]], dtype=torch.float64)
    cnf = gdpnet.project(rules, yhat, relaxation="cnf")
    assert Status(int(cnf.status)) is Status.RELAXED
    assert -1 in cnf.disjunct.flatten().tolist()
    assert float(cnf.value) == pytest.approx(2.0625)
    assert float(gdpnet.project(rules, yhat).distance) == pytest.approx(6.0)


def two_boxes() -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([1, 2], bounds=(0, 10))

    def box(a: float, b: float, c: float, d: float) -> list[Any]:
        return [m.y[1] >= a, m.y[1] <= b, m.y[2] >= c, m.y[2] <= d]

    m.rule1 = Disjunction(expr=[box(1, 3, 1, 8), box(6, 9, 2, 9)])
    m.rule2 = Disjunction(expr=[box(2, 8, 3, 5), box(3.5, 5.5, 7, 9.5)])
    return gdpnet.RuleModel(m, outputs=[m.y])


@pytest.mark.parametrize("seed", range(30))
def test_random_rules_dense_equals_highs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rules = random_rules(rng)
    yhat = torch.from_numpy(random_predictions(rng, len(rules.output_names)))
    exact = gdpnet.project(rules, yhat)
    if not has_hull(rules):
        with pytest.raises(gdpnet.errors.RuleError, match="hull"):
            gdpnet.project(rules, yhat, relaxation="cnf")
        return
    plans = ["cnf", Plan.lexicographic(rules, min(2, len(rules.names)))]
    for relaxation in plans:
        dense = gdpnet.project(rules, yhat, relaxation=relaxation, solver="extended")
        highs = gdpnet.project(rules, yhat, relaxation=relaxation, solver="highs")
        assert torch.allclose(dense.value, highs.value, atol=1e-7, rtol=1e-8)
        assert (dense.value <= exact.distance + 1e-7).all()
    dnf = gdpnet.project(rules, yhat, relaxation="dnf", solver="extended")
    assert torch.allclose(dnf.value, exact.distance, atol=1e-7, rtol=1e-8)


def test_plans_and_combinations_without_meaning_are_refused() -> None:
    rules = two_boxes()
    yhat = torch.zeros(1, 2)
    for plan, message in (
        (Plan((("rule1", "nobody"),)), "'nobody' is no rule"),
        (Plan((("rule1",), ("hot",))), "'hot' is no rule"),
    ):
        with pytest.raises(gdpnet.errors.RuleError, match=message):
            gdpnet.project(rules, yhat, relaxation=plan)
    with pytest.raises(gdpnet.errors.RuleError, match="stands twice"):
        Plan((("rule1", "rule2"), ("rule1",)))
    with pytest.raises(gdpnet.errors.RuleError, match="empty"):
        Plan(((),))
    with pytest.raises(gdpnet.errors.RuleError, match="clusters of names"):
        Plan(("rule1", "rule2"))  # type: ignore[arg-type]
    with pytest.raises(gdpnet.errors.RuleError, match="from 0 to 2"):
        Plan.lexicographic(rules, 3)
    for keywords in (
        {"relaxation": "cnf", "solver": "exact"},
        {"relaxation": "cnf", "solver": gdpnet.solve.Exact(tie="least_norm")},
        {"relaxation": "cnf", "strict": True},
        {"relaxation": "hull"},
        {"solver": "cplex"},
    ):
        with pytest.raises(gdpnet.errors.InputError):
            gdpnet.project(rules, yhat, **keywords)


def test_too_many_products_name_the_way_out() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(20), bounds=(0, 1))
    m.r = Disjunction(range(20), rule=lambda m, i: [[m.y[i] <= 0.2], [m.y[i] >= 0.8]])
    yhat = torch.rand(4, 20, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    # Each by itself they are no trouble ...
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    p = gdpnet.project(rules, yhat, relaxation="dnf", solver="highs")
    assert torch.allclose(p.value, gdpnet.project(rules, yhat).distance, atol=1e-9)
    assert p.info.sizes.disjuncts == 40
    # ... but what hangs together is multiplied.
    m.budget = pyo.Constraint(expr=sum(m.y.values()) <= 12)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    message = r"r\[0\], r\[1\].*20,000 products \(up to 1,048,576\).*Plan.*solver='exact'"
    with pytest.raises(gdpnet.errors.RuleError, match=message):
        gdpnet.project(rules, yhat, relaxation="dnf", solver="highs")


@SOLVERS
def test_ties_of_unrelated_rules_end_on_their_disjuncts(solver: str) -> None:
    """Copies of y[1] in the block of y[0] would make a point between the disjuncts a vertex."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(3), bounds=(0, 10))
    m.gap = Disjunction(range(2), rule=lambda m, i: [[m.y[i] <= 3], [m.y[i] >= 7]])
    m.sum = pyo.Constraint(expr=m.y[2] <= 4)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    for yhat in ([5.0, 5.0, 5.0], [5.0, 4.0, 2.0], [5.0, 12.0, -1.0]):
        p = gdpnet.project(rules, torch.tensor([yhat]), relaxation="cnf", solver=solver)
        assert p.status.tolist() == [Status.PROJECTED]
        for j in range(2):
            assert min(abs(float(p.y[0, j]) - end) for end in (3, 7, 10)) < 1e-6
        assert float(p.value) == pytest.approx(float(gdpnet.project(rules, [yhat]).distance))


@SOLVERS
def test_outputs_in_no_rule_keep_their_globals_and_bounds(solver: str) -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(4), bounds=(0, 10))
    m.gap = Disjunction(expr=[[m.y[0] <= 3], [m.y[0] >= 7]])
    m.pair = pyo.Constraint(expr=m.y[1] + m.y[2] == 6)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    yhat = torch.tensor([[4.5, 2.0, 2.0, 11.0]], dtype=torch.float64)
    p = gdpnet.project(rules, yhat, relaxation="cnf", solver=solver)
    assert float(p.value) == pytest.approx(1.5 + 2.0 + 1.0)
    assert float(p.y[0, 1] + p.y[0, 2]) == pytest.approx(6.0)
    assert float(p.y[0, 3]) == 10.0


@pytest.mark.gurobi
def test_gurobi_agrees() -> None:
    rules = two_boxes()
    yhat = torch.from_numpy(np.random.default_rng(1).uniform(0, 10, (8, 2)))
    for relaxation in ("cnf", "dnf"):
        p = gdpnet.project(rules, yhat, relaxation=relaxation, solver="gurobi")
        q = gdpnet.project(rules, yhat, relaxation=relaxation, solver="extended")
        assert torch.allclose(p.value, q.value, atol=1e-7)
