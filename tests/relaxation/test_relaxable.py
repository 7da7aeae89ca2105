"""Logic, whole numbers, bounds from inputs, and pruning in relaxations that are written out."""

from __future__ import annotations

import logging
import math
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet import Plan, Status
from gdpnet.relaxation import convexify
from gdpnet.relaxation.layouts import layouts_of
from gdpnet.relaxation.relaxable import MOST_VALUES, relaxable
from gdpnet.study._models import load_model
from gdpnet.testing import BY_NAME, PROBLEMS, Problem
from gdpnet.testing.oracles import outputs_of
from gdpnet.testing.problems import logic
from tests.relaxation._programs import value_at

SOLVERS = pytest.mark.parametrize("solver", ["extended", "highs"])
CHAIN = [*logic.PROBLEMS, *(p for p in PROBLEMS if p.name.startswith(("binary_of", "bounds_from")))]


@SOLVERS
@pytest.mark.parametrize("problem", CHAIN, ids=lambda p: p.name)
def test_values_are_the_chains(problem: Problem, solver: str) -> None:
    """Logic across clusters is written as the same rows, so the CNF is as tight."""
    rules, m = problem.rules(), problem.build()
    inputs = [m.find_component(name) for name in problem.inputs]
    plans: list[Any] = ["cnf", *([Plan((rules.names[:2],))] if len(rules.names) > 2 else [])]
    for relaxation in plans:
        p = gdpnet.project(rules, problem.yhat, problem.x, relaxation=relaxation, solver=solver)
        for sample, value in zip(problem.samples, p.value.tolist(), strict=True):
            try:
                outputs, x = outputs_of(m, problem.outputs), sample.x or None
                lp = convexify(m, outputs, inputs=inputs, x=x, clusters=relaxation)
                expected = value_at(lp, sample.yhat)
            except gdpnet.errors.ConflictError:
                expected = math.inf
            assert value == pytest.approx(expected, abs=1e-7)


def test_logic_across_clusters_makes_the_cnf_tighter() -> None:
    """Exactly one of three is high: without its rows the CNF would take each rule by itself."""
    rules = BY_NAME["exactly"].rules()
    yhat = torch.tensor([[0.9, 0.9, 0.9]], dtype=torch.float64)
    p = gdpnet.project(rules, yhat, relaxation="cnf")
    assert float(p.value) > 0.1
    assert float(p.value) <= float(gdpnet.project(rules, yhat).distance) + 1e-9


def test_an_or_may_choose_several_named_disjuncts_beside_one_that_is_not() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 1))
    m.rule = Disjunction(expr=[[m.y[0] >= 0.6], [m.y[1] >= 0.7], [m.y[0] <= 0.1]], xor=False)
    a, b, _ = (d.indicator_var for d in m.rule.disjuncts)
    m.both = pyo.LogicalConstraint(expr=pyo.land(a, b))
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    yhat = torch.tensor([[0.2, 0.2]], dtype=torch.float64)
    p = gdpnet.project(rules, yhat, relaxation="dnf", solver="highs")
    assert float(p.value) == pytest.approx(0.9)
    assert float(gdpnet.project(rules, yhat).distance) == pytest.approx(0.9)


# ---- whole numbers ------------------------------------------------------------------------------


@SOLVERS
def test_whole_numbers_are_disjunctions_over_their_values(solver: str) -> None:
    m = pyo.ConcreteModel()
    m.n = pyo.Var(domain=pyo.Integers, bounds=(-1, 3))
    m.y = pyo.Var(bounds=(0, 10))
    m.link = pyo.Constraint(expr=m.y == 2.5 * m.n + 2.5)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    yhat = torch.tensor([[3.9], [0.4], [9.0], [3.75]], dtype=torch.float64)
    for relaxation in ("cnf", "dnf"):
        p = gdpnet.project(rules, yhat, relaxation=relaxation, solver=solver)
        assert torch.allclose(p.value, torch.tensor([1.1, 0.4, 1.0, 1.25]).double(), atol=1e-9)
        assert (p.status == Status.PROJECTED).all()
        assert p.info.sizes.disjuncts == 5
    assert p.disjunct.shape == (4, 0)  # it is no rule of the modeller's


def test_too_many_values_are_refused_by_name() -> None:
    m = pyo.ConcreteModel()
    m.few = pyo.Var(domain=pyo.Integers, bounds=(0, MOST_VALUES - 1))
    m.many = pyo.Var(domain=pyo.Integers, bounds=(0, MOST_VALUES))
    m.y = pyo.Var(bounds=(0, 10))
    m.link = pyo.Constraint(expr=m.y == m.few + m.many)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    message = r"16 values; more have many \(0 to 16\).*solver='exact'"
    with pytest.raises(gdpnet.errors.RuleError, match=message):
        gdpnet.project(rules, [[3.3]], relaxation="cnf")
    m.many.setub(MOST_VALUES - 1)
    again = relaxable(gdpnet.RuleModel(m, outputs=[m.y])).rules
    assert [len(again.data.clauses[r.clause].literals) for r in again.data.rules] == [16, 16]


# ---- pruning ------------------------------------------------------------------------------------


def gap_from_input() -> gdpnet.RuleModel:
    """Two rules whose first and last products meet only for a large p."""
    m = pyo.ConcreteModel()
    m.p = pyo.Param(mutable=True, initialize=0.0)
    m.y = pyo.Var(bounds=(0, 10))
    m.one = Disjunction(expr=[[m.y <= 2 + m.p], [m.y >= 8]])
    m.two = Disjunction(expr=[[m.y <= 1], [m.y >= 5]])
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p], input_bounds={"p": (0, 2)})


@SOLVERS
def test_samples_outside_input_bounds_keep_all_products_and_say_so(
    solver: str, caplog: pytest.LogCaptureFixture
) -> None:
    rules = gap_from_input()
    x = torch.tensor([[0.0], [2.0], [4.0], [-1.0]], dtype=torch.float64)
    yhat = torch.full((4, 1), 5.5, dtype=torch.float64)
    options: dict[str, Any] = {"relaxation": "dnf", "solver": solver}
    inside = gdpnet.project(rules, yhat[:2], x[:2], **options)
    assert inside.info.unpruned is None
    assert inside.info.sizes.disjuncts == 2
    with caplog.at_level(logging.WARNING, logger="gdpnet"):
        p = gdpnet.project(rules, yhat, x, **options)
        gdpnet.project(rules, yhat, x, **options)
    assert caplog.text.count("outside input_bounds") == 1
    assert p.info.unpruned.tolist() == [False, False, True, True]
    assert p.info.sizes.disjuncts == 4
    exact = gdpnet.project(rules, yhat, x)
    assert torch.allclose(p.value, exact.distance, atol=1e-9)
    # Only the product that pruning leaves out within the bounds is this near.
    assert float(p.value[2]) == 0.0
    assert float(p.value[1]) == 2.5


def test_what_contradicts_whatever_the_inputs_is_left_out_without_bounds() -> None:
    m = pyo.ConcreteModel()
    m.p = pyo.Param(mutable=True, initialize=0.0)
    m.y = pyo.Var(bounds=(0, 10))
    m.one = Disjunction(expr=[[m.y <= 3], [m.y >= 6, m.y <= m.p]])
    m.two = Disjunction(expr=[[m.y <= 2], [m.y >= 5]])
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    p = gdpnet.project(rules, [[4.5]], [[7.0]], relaxation="dnf", solver="highs")
    assert p.info.sizes.disjuncts == 2
    assert float(p.value) == pytest.approx(1.5)


# ---- conflicts and errors -----------------------------------------------------------------------


@SOLVERS
@pytest.mark.parametrize("relaxation", ["cnf", "dnf", "adaptive"])
def test_contradictory_rules_are_a_conflict(relaxation: str, solver: str) -> None:
    problem = BY_NAME["conflict_at_some_inputs"]
    if relaxation != "cnf":  # which may be feasible although the rules are not
        p = gdpnet.project(
            problem.rules(), problem.yhat, problem.x, relaxation=relaxation, solver=solver
        )
        assert p.status.tolist() == [Status.PROJECTED, Status.CONFLICT]
        assert p.value.tolist() == pytest.approx([0.1, math.inf])
    rules = BY_NAME["contradictory_logic"].rules()
    p = gdpnet.project(rules, [[0.5, 0.5, 0.5]], relaxation=relaxation, solver=solver)
    assert Status(int(p.status)) is Status.CONFLICT
    assert float(p.value) == math.inf
    assert p.y.tolist() == [[0.5, 0.5, 0.5]]
    with pytest.raises(gdpnet.errors.ConflictError, match="contradict each other"):
        gdpnet.project(
            *(rules, [[0.5, 0.5, 0.5]]), relaxation=relaxation, solver=solver, on_conflict="raise"
        )


def test_rows_that_are_not_linear_are_refused_by_name() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 1))
    m.rule = Disjunction(expr=[[m.y**2 >= 0.5], [m.y <= 0.2]])
    with pytest.raises(gdpnet.errors.RuleError, match=r"rule_disjuncts\[0\]"):
        gdpnet.RuleModel(m, outputs=[m.y])


def test_unbounded_variables_are_refused_only_where_a_hull_copies_them() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(3))
    m.y[0].setlb(0)
    m.y[0].setub(10)
    m.gap = Disjunction(expr=[[m.y[0] <= 3], [m.y[0] >= 7]])
    m.other = pyo.Constraint(expr=m.y[1] + m.y[2] == 4)
    yhat = [[4.5, 3.0, 3.0]]
    for solver in ("extended", "highs"):
        p = gdpnet.project(
            gdpnet.RuleModel(m, outputs=[m.y]), yhat, relaxation="cnf", solver=solver
        )
        assert float(p.value) == pytest.approx(3.5)
    m.tie = pyo.Constraint(expr=m.y[0] + m.y[1] <= 9)
    with pytest.raises(gdpnet.errors.RuleError, match=r"y\[1\], y\[2\] have none.*solver='exact'"):
        gdpnet.project(gdpnet.RuleModel(m, outputs=[m.y]), yhat, relaxation="cnf")


# ---- batches ------------------------------------------------------------------------------------


def test_the_chain_does_not_run_for_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many patterns, no Pyomo: what is written directly is tested equal to the chain elsewhere."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the chain was run")

    for name in ("gdpnet.hull", "gdpnet.basic_steps", "gdpnet.lift_projection"):
        monkeypatch.setattr(type(pyo.TransformationFactory(name)), "_apply_to", refuse)
    module = load_model("models/cooling")
    rules = module.build()
    x, y = module.sample(600, "ood")
    yhat = y + torch.from_numpy(np.random.default_rng(0).normal(0.0, 0.2, y.shape))
    p = gdpnet.project(rules, yhat, x, relaxation="cnf")
    exact = gdpnet.project(rules, yhat, x)
    assert len(layouts_of(rules).listed) > 20
    assert (p.value <= exact.distance + 1e-7).all()
    again = gdpnet.project(rules, yhat, x, relaxation="cnf", solver="highs", threads=2)
    assert torch.allclose(p.value, again.value, atol=1e-7)


@SOLVERS
def test_adaptive_steps_report_rounds_and_sizes(solver: str) -> None:
    rules = load_model("models/stress").build(6)
    x = torch.full((40, 1), 0.5, dtype=torch.float64)
    yhat = torch.from_numpy(np.random.default_rng(3).uniform(0, 1, (40, 3)))
    cnf = gdpnet.project(rules, yhat, x, relaxation="cnf", solver=solver)
    p = gdpnet.project(rules, yhat, x, relaxation="adaptive", solver=solver)
    exact = gdpnet.project(rules, yhat, x)
    assert torch.allclose(p.distance, exact.distance, atol=1e-7)
    assert ((p.info.rounds > 0) == (cnf.status == Status.RELAXED)).all()
    assert p.info.rounds.max() >= 1
    assert cnf.info.sizes.clusters == 6 > p.info.sizes.clusters


@pytest.mark.gurobi
def test_gurobis_licence_ends_in_one_line() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(8), bounds=(0, 1))
    m.sum = pyo.Constraint(expr=sum(m.y.values()) <= 7)
    m.rule = Disjunction(range(8), rule=lambda m, i: [[m.y[i] <= 0.6], [m.y[i] >= 0.4]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    yhat = np.full((2, 8), 0.95)
    with pytest.raises(gdpnet.errors.SolverError, match=r"refused.*HiGHS has no limit") as info:
        gdpnet.project(rules, yhat, relaxation="dnf", solver="gurobi")
    assert "\n" not in str(info.value)


@pytest.mark.gurobi
def test_gurobi_keeps_its_model_over_inputs_and_weights() -> None:
    problem = BY_NAME["coefficients"]
    rules = problem.rules()
    for weights in (None, [1.0, 5.0], [3.0, 1.0]):
        for relaxation in ("cnf", "dnf"):
            options: dict[str, Any] = {"relaxation": relaxation, "weights": weights}
            values = [
                gdpnet.project(rules, problem.yhat, problem.x, solver=solver, **options).value
                for solver in ("gurobi", "highs", "extended")
            ]
            assert torch.allclose(values[0], values[1], atol=1e-7)
            assert torch.allclose(values[0], values[2], atol=1e-7)
