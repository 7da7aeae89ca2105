"""What a projection remembers is its own: not the caller's arrays, not the keywords of before."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
import torch

import gdpnet
from gdpnet.errors import InputError
from gdpnet.solve import register
from gdpnet.solve.registry import BACKENDS

YHAT = torch.tensor([[4.0, 4.0]], dtype=torch.float64)


@pytest.fixture
def rules() -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 10))
    total = m.y[0] + m.y[1]
    m.gap = gdpnet.rule(gdpnet.any_of(total <= 3, total >= 17))
    return gdpnet.RuleModel(m, outputs=[m.y])


@pytest.mark.parametrize("make", [np.array, torch.tensor], ids=["array", "tensor"])
def test_weights_that_are_written_into(rules: gdpnet.RuleModel, make: Any) -> None:
    weights = make([1.0, 2.0])
    layer = gdpnet.ProjectionLayer(rules, weights=weights)
    before = gdpnet.project(rules, YHAT, weights=weights)
    weights[:] = make([2.0, 1.0])
    after = gdpnet.project(rules, YHAT, weights=weights)
    assert (before.y.tolist(), after.y.tolist()) == ([[0.0, 3.0]], [[3.0, 0.0]])
    for p in (before, after, layer.project(YHAT)):
        assert p.distance.tolist() == p.value.tolist() == [6.0]


def test_a_name_that_is_registered_anew(rules: gdpnet.RuleModel) -> None:
    class First(gdpnet.solve.MILP):
        name = "first"

    class Second(gdpnet.solve.MILP):
        name = "second"

    try:
        for backend in (First, Second):
            register("mine", backend)
            assert gdpnet.project(rules, YHAT, solver="mine").info.solver == backend.name
    finally:
        del BACKENDS["mine"]
    for name, make in (("auto", First), ("mine", First())):
        with pytest.raises(InputError, match="register: expected a name but 'auto'"):
            register(name, make)  # type: ignore[arg-type]


def test_equal_keywords_of_another_type_are_checked(rules: gdpnet.RuleModel) -> None:
    gdpnet.project(rules, YHAT, threads=1, time_limit=1)
    with pytest.raises(InputError, match="threads: expected a whole number"):
        gdpnet.project(rules, YHAT, threads=True, time_limit=1)


@pytest.mark.parametrize("make", [np.array, torch.tensor], ids=["array", "tensor"])
def test_predictions_that_are_written_into(rules: gdpnet.RuleModel, make: Any) -> None:
    yhat = make([[4.0, 4.0]], dtype=make([1.0]).dtype if make is np.array else torch.float64)
    p = gdpnet.project(rules, yhat)
    yhat[:] = 0.0
    assert p.distance.tolist() == p.value.tolist() == [5.0]


def test_inputs_that_are_written_into_before_the_backward_pass() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var(range(2), bounds=(0, 10))
    m.gap = gdpnet.rule(gdpnet.any_of(m.x * m.y[0] + m.y[1] <= 3, m.y[0] + m.y[1] >= 17))
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.x])
    found = []
    for written in (None, 1.0):
        x = np.array([[2.0]])
        yhat = torch.tensor([[4.0, 1.0]], dtype=torch.float64, requires_grad=True)
        p = gdpnet.project(rules, yhat, x, solver="milp", gradient="vertex")
        if written is not None:
            x[:] = written
        (p.y * torch.tensor([3.0, 1.0])).sum().backward()
        found.append(yhat.grad)
    assert torch.equal(*found)


def scaled() -> gdpnet.RuleModel:
    """Float32 has no two numbers of that size which differ by 0.1."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var([1, 2], bounds=(1e6, 2e6))
    m.apart = pyo.Constraint(expr=m.y[1] - m.y[2] == 0.1)
    m.gap = gdpnet.rule(gdpnet.any_of(m.y[1] <= 1.2e6, m.y[1] >= 1.8e6))
    return gdpnet.RuleModel(m, outputs=[m.y])


def test_a_sample_that_cannot_be_used_has_nothing() -> None:
    yhat = torch.tensor([[torch.nan, 1.5e6], [1.5e6, 1.5e6]], requires_grad=True)
    p = gdpnet.project(scaled(), yhat, on_invalid="mark", gradient="straight_through")
    assert p.status.tolist() == [gdpnet.Status.ERROR] * 2
    assert p.value[0].isnan()
    assert p.disjunct[0].tolist() == [-1]
    assert p.info.rounding[0] == 0.0 < p.info.rounding[1]
    p.y[1:].sum().backward()
    assert yhat.grad is not None
    assert yhat.grad[0].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("keywords", "note"),
    [
        ({"strict": True}, "strict"),
        ({"solver": gdpnet.solve.Exact(tie="least_norm")}, "least_norm"),
    ],
)
def test_nothing_is_claimed_of_it(
    rules: gdpnet.RuleModel, keywords: dict[str, Any], note: str
) -> None:
    yhat = torch.tensor([[torch.nan, 1.0], [4.0, 4.0]], dtype=torch.float64)
    p = gdpnet.project(rules, yhat, on_invalid="mark", **keywords)
    assert getattr(p.info, note).tolist() == [False, True]


@pytest.mark.parametrize("solver", ["exact", "milp", "extended", "highs"])
def test_what_rounding_prevents_is_an_error_of_every_solver(solver: str) -> None:
    p = gdpnet.project(scaled(), torch.tensor([[1.5e6, 1.5e6]]), solver=solver)
    assert p.status.tolist() == [gdpnet.Status.ERROR]
    assert p.info.rounding.item() > 0.0
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 1e6))
    m.gap = gdpnet.rule(gdpnet.any_of(m.y <= -1, m.y >= 1e5))
    high = gdpnet.RuleModel(m, outputs=[m.y])
    p = gdpnet.project(high, torch.tensor([[5e4]], dtype=torch.float16), solver=solver)
    assert p.status.tolist() == [gdpnet.Status.ERROR]
    assert p.y.isfinite().all()


@pytest.mark.parametrize("keywords", [{}, {"relaxation": "cnf"}, {"solver": "milp"}])
def test_copies_and_pickles(rules: gdpnet.RuleModel, keywords: dict[str, Any]) -> None:
    p = gdpnet.project(rules, YHAT, **keywords)
    for other in (copy.deepcopy(p), pickle.loads(pickle.dumps(p.answer.notes))):
        assert other is not p
    assert copy.deepcopy(p).y.tolist() == p.y.tolist()


class WithTable(gdpnet.solve.Exact):
    """A backend with options that cannot be compared."""

    def __init__(self, table: Any = None) -> None:
        super().__init__()
        self.table = np.arange(3) if table is None else table


def test_backends_may_hold_arrays(rules: gdpnet.RuleModel) -> None:
    for backend in (WithTable(), WithTable(), WithTable(np.ones(2))):
        assert gdpnet.project(rules, YHAT, solver=backend).distance.tolist() == [5.0]
        assert "WithTable(" in repr(gdpnet.ProjectionLayer(rules, solver=backend))


def test_statuses_are_the_caller_s_own(rules: gdpnet.RuleModel) -> None:
    p = gdpnet.project(rules, YHAT)
    p.status.fill_(0)
    p.info.bound.zero_()
    assert p.value.tolist() == [5.0]
    assert "1 PROJECTED" in repr(p)


def test_only_the_exact_engine_s_answers_come_with_multipliers(
    rules: gdpnet.RuleModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    p = gdpnet.project(rules, YHAT, solver="milp")
    assert p.answer.finished_by("milp").tolist() == [True]
    assert p.answer.finished_by("exact").tolist() == [False]
    assert rules.explain([4.0, 4.0]).rules[0].tight
    monkeypatch.setattr("gdpnet.core.AVAILABLE", False)
    told = gdpnet.RuleModel.from_data(rules.data).explain([[4.0, 4.0], [10.0, 12.0]])
    assert [(one.status, one.rules[0].tight, one.always) for one in told] == [
        ("PROJECTED", (), ()),
        ("PROJECTED", (), ()),
    ]
