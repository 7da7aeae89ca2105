"""docs/own_backend.md: its backend passes the contract, and what it lacks is refused in time."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo
import pytest
import torch

import gdpnet
from gdpnet.errors import InputError, SolverError
from gdpnet.solve import names, register, registry
from gdpnet.testing import BY_NAME
from tests.test_readme import run_page

PAGE = run_page("docs/own_backend.md")
Enumeration: Any = PAGE["Enumeration"]
TestEnumeration = PAGE["TestEnumeration"]
TestEnumerationWithDerivative = PAGE["TestEnumerationWithDerivative"]


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> str:
    """A name that is gone afterwards."""
    monkeypatch.setattr(registry, "BACKENDS", dict(registry.BACKENDS))
    register("counted", lambda: Enumeration(most=7))
    return "counted"


@pytest.fixture
def rules() -> gdpnet.RuleModel:
    return gap()


def gap() -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.gap = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 7))
    return gdpnet.RuleModel(m, outputs=[m.y])


@pytest.mark.parametrize("gradient", ["vertex", "auto", gdpnet.Mixed("straight_through", "vertex")])
def test_a_layer_whose_gradient_needs_a_derivative_is_refused_when_it_is_built(
    rules: gdpnet.RuleModel, gradient: Any
) -> None:
    with pytest.raises(InputError, match=r"solver Enumeration\(\) has none"):
        gdpnet.ProjectionLayer(rules, solver=Enumeration(), gradient=gradient)


def test_it_trains_straight_through(rules: gdpnet.RuleModel) -> None:
    layer = gdpnet.ProjectionLayer(rules, solver=Enumeration(), gradient="straight_through")
    yhat = torch.tensor([[4.5], [8.0]], requires_grad=True)
    y, info = layer(yhat, return_info=True)
    (2 * y).sum().backward()
    assert yhat.grad is not None
    assert y.tolist() == [[3.0], [8.0]]
    assert yhat.grad.tolist() == [[2.0], [2.0]]
    assert info.solver == "enumeration"


def test_its_points_are_those_of_the_exact_engine() -> None:
    problem = BY_NAME["coefficients"]
    rules = problem.rules()
    found, exact = (
        gdpnet.project(rules, problem.yhat, problem.x, solver=solver, weights=[1.0, 1.37])
        for solver in (Enumeration(), "exact")
    )
    assert torch.allclose(found.y, exact.y, atol=1e-9)
    assert torch.equal(found.status, exact.status)


def test_it_is_found_by_the_name_it_was_registered_with(
    rules: gdpnet.RuleModel, registered: str
) -> None:
    layer = gdpnet.ProjectionLayer(rules, solver=registered, gradient="straight_through")
    assert registered in names()
    assert "solver=Enumeration(most=7)" in repr(layer)


def test_an_unknown_name_is_refused_with_all_that_are_known(
    rules: gdpnet.RuleModel, registered: str
) -> None:
    with pytest.raises(InputError, match="solver: expected one of 'auto', ") as refused:
        gdpnet.project(rules, [4.5], solver="enumerate")
    assert all(repr(name) in str(refused.value) for name in names())
    assert "'counted'" in str(refused.value)
    assert "got 'enumerate'" in str(refused.value)


def test_what_is_not_available_says_why(rules: gdpnet.RuleModel) -> None:
    class Elsewhere(Enumeration):
        def available(self) -> str:
            return (
                "Elsewhere needs the package nowhere, which is not installed. Use solver='exact'."
            )

    for build in (gdpnet.project, gdpnet.ProjectionLayer):
        with pytest.raises(SolverError, match=r"^Elsewhere needs the package nowhere"):
            build(rules, *([[4.5]] if build is gdpnet.project else []), solver=Elsewhere())


@pytest.mark.parametrize(
    ("keywords", "told"),
    [
        ({"relaxation": "cnf"}, "solves relaxation='dnf' only"),
        ({"norm": "l2"}, "norm: solver Enumeration.* knows 'l1', got 'l2'"),
        ({"strict": True}, "strict: only the exact engine"),
        (
            {"on_conflict": "nearest"},
            "on_conflict: solver Enumeration.* does not know",
        ),
    ],
)
def test_what_it_cannot_do_is_refused(
    rules: gdpnet.RuleModel, keywords: dict[str, Any], told: str
) -> None:
    with pytest.raises(InputError, match=told):
        gdpnet.project(rules, [4.5], solver=Enumeration(), **keywords)


def test_its_own_limit_is_told_by_the_status() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 10))
    m.first = gdpnet.rule(gdpnet.any_of(m.y[0] >= 9, m.y[0] <= 3))
    m.second = gdpnet.rule(gdpnet.any_of(m.y[1] >= 9, m.y[1] <= 3))
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    p = gdpnet.project(rules, [[4.0, 4.0]], solver=Enumeration(most=1))
    assert gdpnet.Status(int(p.status)) is gdpnet.Status.LIMIT
    assert p.y.tolist() == [[9.0, 9.0]]
    assert p.value.item() == 0.0


def test_options_are_checked_and_shown() -> None:
    with pytest.raises(InputError, match="Enumeration: most: expected a whole number >= 1, got 0"):
        Enumeration(most=0)
    assert repr(Enumeration(most=3)) == "Enumeration(most=3)"
    assert repr(Enumeration()) == "Enumeration()"
