"""The rules at x: by the core and by torch they are the same, and no search is prepared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import gdpnet
from gdpnet.ir.data import RuleData
from gdpnet.ir.instance import Instance
from gdpnet.ir.tape import Instructions, compile_tape
from gdpnet.plan._sampled import Sampled
from gdpnet.solve.exact.engine import ExactEngine
from gdpnet.testing import BY_NAME, PROBLEMS, Problem

WITH_INPUTS = [problem for problem in PROBLEMS if problem.inputs]


@pytest.mark.parametrize("problem", WITH_INPUTS, ids=lambda p: p.name)
def test_the_core_says_what_torch_says(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    rules, x = problem.rules(), problem.x
    assert x is not None
    found = Instance.of(rules, x.numpy())
    monkeypatch.setattr("gdpnet.core.AVAILABLE", False)
    wanted = Instance.of(rules, x.numpy())
    for one, other in zip(found[:3], wanted[:3], strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)


def test_some_of_these_rules_have_a_tape() -> None:
    assert len(WITH_INPUTS) > 3
    assert any(compile_tape(problem.rules().data) is not None for problem in WITH_INPUTS)


def test_evaluating_compiles_the_expressions_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def counted(data: RuleData) -> Instructions | None:
        made.append(data)
        return compile_tape(data)

    monkeypatch.setattr("gdpnet.ir.tape.compile_tape", counted)
    rules = WITH_INPUTS[0].rules()
    for _ in range(3):
        Instance.of(rules, np.ones((2, len(rules.input_names))))
    assert len(made) == 1


ASKED: dict[str, Callable[[gdpnet.RuleModel, torch.Tensor, torch.Tensor], Any]] = {
    "satisfied": lambda rules, yhat, x: rules.satisfied(y=yhat, x=x),
    "cnf by highs": lambda rules, yhat, x: gdpnet.project(
        rules, yhat, x, relaxation="cnf", solver="highs"
    ),
    "dnf by highs": lambda rules, yhat, x: gdpnet.project(rules, yhat, x, solver="highs"),
    "milp": lambda rules, yhat, x: gdpnet.project(rules, yhat, x, solver="milp"),
    "what a graph is measured at": lambda rules, yhat, x: Sampled(rules, x.numpy(), yhat.numpy()),
}


@pytest.mark.parametrize("what", ASKED)
def test_no_search_is_prepared_where_nothing_is_searched(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any) -> None:
        pytest.fail("an exact engine was made")

    monkeypatch.setattr(ExactEngine, "__init__", refuse)
    problem = BY_NAME["coefficients"]
    assert problem.x is not None
    assert ASKED[what](problem.rules(), problem.yhat, problem.x) is not None
