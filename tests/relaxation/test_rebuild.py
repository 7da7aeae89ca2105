"""Rules back to a Pyomo model."""

from __future__ import annotations

import os
from pathlib import Path

import pyomo.environ as pyo
import pytest
import torch

import gdpnet
from gdpnet.relaxation import convexify_rules, pyomo_model
from gdpnet.testing import BY_NAME, PROBLEMS, Problem
from models.cooling.model import build as cooling
from tests.relaxation._programs import value_at

# Logic was turned into clauses when it was read, so it is not told apart again, nor are the
# conditions of a Block from those of its rules.
REWRITTEN = {
    *("exactly", "atleast", "atmost_of_or", "exclusive", "boolean_vars", "fixed_boolean"),
    *("logic_inside_disjunct", "nested_in_logic", "children_of_an_unchosen_parent"),
    *("contradictory_logic", "binary_of_nested_indicator", "conditional_logic"),
    *("coefficients", "conditions"),
}


def read_again(rules: gdpnet.RuleModel) -> gdpnet.RuleModel:
    m = pyomo_model(rules)
    return gdpnet.RuleModel(
        m,
        [m.find_component(name) for name in rules.output_names],
        [m.find_component(name) for name in rules.input_names],
        rules.data.input_bounds,
    )


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_rules_read_again_say_the_same(problem: Problem) -> None:
    rules = problem.rules()
    again = read_again(rules)
    assert again.names == rules.names
    assert again.output_names == rules.output_names
    if problem.name not in REWRITTEN:
        assert again.fingerprint == rules.fingerprint
    one = gdpnet.project(rules, problem.yhat, problem.x)
    other = gdpnet.project(again, problem.yhat, problem.x)
    assert torch.allclose(one.distance, other.distance, atol=1e-9)
    if problem.x is not None:
        assert rules.active(problem.x).equal(again.active(problem.x))


def test_cooling() -> None:
    rules = cooling()
    assert read_again(rules).fingerprint == rules.fingerprint


def test_loaded_rules_are_convexified(tmp_path: Path) -> None:
    problem = BY_NAME["strictly_hot"]
    path = os.path.join(tmp_path, "rules.json")
    problem.rules().save(path)
    rules = gdpnet.load_rules(path)
    lp = convexify_rules(rules, relaxation="dnf", x=[30.0])
    assert lp.Ta.value == 30.0
    exact = gdpnet.project(rules, [[0.1, 0.2]], [[30.0]])
    assert value_at(lp, [0.1, 0.2]) == pytest.approx(float(exact.distance[0]), abs=1e-7)


def test_params_start_within_their_bounds() -> None:
    m = pyo.ConcreteModel()
    m.p = pyo.Param(range(2), mutable=True, initialize=5.0)
    m.y = pyo.Var(bounds=(0, 9))
    m.row = pyo.Constraint(expr=m.p[0] * m.y <= m.p[1])
    rules = gdpnet.RuleModel(m, [m.y], [m.p], input_bounds=[(2, 3), (-5, 5)])
    again = pyomo_model(rules)
    assert [pyo.value(again.p[i]) for i in range(2)] == [2.0, 0.0]
