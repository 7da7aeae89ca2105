"""Explanations of contradictions name a contradiction, and nothing that can be left out."""

from __future__ import annotations

import math
from typing import Any

import pyomo.environ as pyo
import pytest
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet.testing import BY_NAME, PROBLEMS, Problem, oracles

CONTRADICTORY = [
    (problem, k)
    for problem in PROBLEMS
    for k, sample in enumerate(problem.samples)
    if sample.distance == math.inf
]


def feasible(problem: Problem, k: int, kept: list[str]) -> bool:
    """Whether Pyomo finds a point when only `kept` is left of the model."""
    model = problem.build()
    params = problem.params(problem.samples[k])
    for var in oracles.outputs_of(model, problem.outputs):
        if f"bounds of {var.name}" not in kept:
            var.setlb(None)
            var.setub(None)
    off = set(problem.off(params))
    for kind in (Disjunction, pyo.Constraint, pyo.LogicalConstraint):
        for data in model.component_data_objects(kind, active=True, descend_into=pyo.Block):
            if data.name not in kept:
                off.add(data.name)
    named = {name for name in off if not model.find_component(name).is_indexed()}
    yhat = problem.samples[k].yhat
    distance = oracles.pyomo_distance(
        model, problem.outputs, yhat, params=params, inactive=sorted(named), reach=100.0
    )
    return distance < math.inf


@pytest.mark.parametrize(
    ("problem", "k"), CONTRADICTORY, ids=[f"{p.name}-{k}" for p, k in CONTRADICTORY]
)
def test_named_set_is_a_smallest_contradiction(problem: Problem, k: int) -> None:
    x = None if problem.x is None else problem.x[k]
    names = problem.rules().explain_conflict(x)
    assert names
    assert all(isinstance(name, str) for name in names)
    assert len(set(map(str, names))) == len(names)
    # Logic names indicators of its rules: leave those in, they are told by the propositions.
    rules = {name for name in problem.rules().names if problem.name == "contradictory_logic"}
    assert not feasible(problem, k, [*map(str, names), *rules])
    for left_out in names:
        kept = [str(name) for name in names if name != left_out]
        assert feasible(problem, k, [*kept, *(rules - {str(left_out)})]), left_out


def names_of(m: Any, **options: Any) -> set[str]:
    names = gdpnet.RuleModel(m, outputs=[m.y], **options).explain_conflict()
    return set(map(str, names))


def test_globals_that_contradict_alone() -> None:
    assert set(BY_NAME["contradictory_globals"].rules().explain_conflict()) == {"low", "high"}


def test_rules_are_not_blamed_for_what_globals_do() -> None:
    """Each rule with `cover` contradicts too: both disjuncts of `low` leave less than it needs."""
    m = pyo.ConcreteModel()
    m.need = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var(range(2), bounds=(0, 10))
    m.cover = pyo.Constraint(expr=m.y[0] + m.y[1] >= m.need)
    m.low = Disjunction(expr=[[m.y[0] <= 3], [m.y[0] <= 4, m.y[1] <= 4]])
    m.even = Disjunction(expr=[[m.y[1] <= m.y[0]], [m.y[1] <= 5]])
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.need])
    assert rules.explain_conflict([8.0]) == []
    assert rules.explain_conflict([14.0]) == ["low", "cover", "bounds of y[1]"]
    assert rules.explain_conflict([30.0]) == ["cover", "bounds of y[0]", "bounds of y[1]"]


def test_whole_numbers_and_globals_without_rules() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(domain=pyo.Integers, bounds=(0, 5))
    m.between = pyo.Constraint(expr=(1.2, m.y, 1.8))
    m.rule = Disjunction(expr=[[m.y >= 3], [m.y >= 4]])  # contradicts `between` as well
    assert names_of(m) == {"between", "y is whole"}


def test_two_rules_and_a_global() -> None:
    names = BY_NAME["contradictory_rules"].rules().explain_conflict()
    assert set(names) == {"first", "second"}


def test_bounds_are_named_where_they_are_needed() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 1))
    m.rule = Disjunction(expr=[[m.y[0] >= 2], [m.y[0] + m.y[1] <= -1]])
    m.other = Disjunction(expr=[[m.y[0] >= 0.1], [m.y[1] >= 0.1]])
    # The first disjunct breaks the bounds of y[0] alone, the second needs those of both.
    assert names_of(m) == {"rule", "bounds of y[0]", "bounds of y[1]"}


def test_whole_numbers_contradict_a_gap() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(domain=pyo.Integers, bounds=(0, 5))
    m.free = pyo.Constraint(expr=m.y <= 4)
    m.gap = Disjunction(expr=[[m.y >= 1.2, m.y <= 1.8], [m.y >= 2.3, m.y <= 2.9]])
    assert names_of(m) == {"gap", "y is whole"}


def test_auxiliaries_contradict() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.a = pyo.Var()
    m.define = pyo.Constraint(expr=m.a == 2 * m.y)
    m.low = Disjunction(expr=[[m.a <= 3], [m.a <= 4]])
    m.high = pyo.Constraint(expr=m.y >= 5)
    m.other = pyo.Constraint(expr=m.y <= 9)
    assert names_of(m) == {"define", "low", "high"}


def test_nothing_to_explain() -> None:
    assert BY_NAME["midway"].rules().explain_conflict() == []


def test_several_samples() -> None:
    problem = BY_NAME["conflict_at_some_inputs"]
    rules = problem.rules()
    assert problem.x is not None
    found = rules.explain_conflict(problem.x)
    assert found[0] == []
    assert set(found[1]) == {"gap", "never"}
    assert set(rules.explain_conflict(problem.x[1])) == {"gap", "never"}
