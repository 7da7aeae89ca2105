"""The compact program of large relaxations: the same values and derivatives as the others'."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet import Plan
from gdpnet.relaxation.compact import CompactProgram, is_compact
from gdpnet.relaxation.layouts import layouts_of
from gdpnet.solve.extended import engine
from gdpnet.study._models import load_model
from gdpnet.testing import PROBLEMS, Problem, random_predictions, random_rules
from tests.relaxation.test_relaxations import few_products, has_hull


@pytest.fixture
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_MOST_COLUMNS", -1)


def compared(rules: gdpnet.RuleModel, yhat: Any, x: Any, relaxation: Any) -> None:
    """Values are those of the form that the Pyomo chain writes."""
    large = gdpnet.project(rules, yhat, x, relaxation=relaxation)
    highs = gdpnet.project(rules, yhat, x, relaxation=relaxation, solver="highs")
    assert torch.allclose(large.value, highs.value, atol=1e-7, rtol=1e-8)
    assert (large.distance <= large.value + 1e-7).all()
    assert torch.isfinite(large.value).equal(torch.isfinite(highs.value))


@pytest.mark.usefixtures("everything_is_large")
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_the_bank(problem: Problem) -> None:
    rules = problem.rules()
    if not has_hull(rules):
        pytest.skip("no hull")
    plans: list[Any] = [Plan.lexicographic(rules, k) for k in {0, 2} if k <= len(rules.names)]
    if few_products(rules, len(rules.names)):
        plans.append(Plan.lexicographic(rules, len(rules.names)))
    for plan in plans:
        compared(rules, problem.yhat, problem.x, plan)


@pytest.mark.usefixtures("everything_is_large")
@pytest.mark.parametrize("seed", range(40))
def test_random_rules(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rules = random_rules(rng)
    if not has_hull(rules):
        pytest.skip("no hull")
    yhat = torch.from_numpy(random_predictions(rng, len(rules.output_names)))
    compared(rules, yhat, None, "cnf")


def parametric() -> gdpnet.RuleModel:
    """Inputs in right sides and coefficients, an auxiliary that two rules share, a free output."""
    m = pyo.ConcreteModel()
    m.a = pyo.Param(mutable=True, initialize=1.0)
    m.b = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var([1, 2, 3, 4], bounds=(-2, 2))
    m.z = pyo.Var(bounds=(-1, 3))
    m.all = pyo.Constraint(expr=m.y[1] + m.a * m.y[2] + 0.5 * m.z <= 1 + m.b)
    m.one = Disjunction(expr=[[m.a * m.y[1] + m.y[3] >= m.b**2], [m.y[2] - m.b * m.y[3] >= 1]])
    m.two = Disjunction(expr=[[m.z >= m.y[1] + m.a], [m.y[2] + m.a * m.z <= -m.b]])
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.a, m.b])


def gradients(
    rules: gdpnet.RuleModel, yhat: torch.Tensor, x: torch.Tensor, solver: str = "auto"
) -> list[torch.Tensor]:
    yhat, x = yhat.clone().requires_grad_(), x.clone().requires_grad_()
    y = gdpnet.project(rules, yhat, x, relaxation="cnf", solver=solver, gradient="vertex").y
    direction = torch.linspace(-1.0, 1.0, y.shape[1], dtype=y.dtype)
    return [y.detach(), *torch.autograd.grad((y @ direction).sum(), (yhat, x))]


@pytest.mark.filterwarnings("ignore::gdpnet.errors.ZeroGradientWarning")
@pytest.mark.parametrize("name", ["parametric", "cooling"])
def test_derivatives_are_those_of_the_dense_engine(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = torch.Generator().manual_seed(4)
    if name == "cooling":
        model = load_model("models/cooling")
        build, x = model.build, model.sample(60, split="ood", seed=7)[0].double()
        yhat = 1.4 * torch.rand(60, 3, dtype=torch.float64, generator=generator) - 0.2
    else:
        build, x = parametric, 0.5 + torch.rand(60, 2, dtype=torch.float64, generator=generator)
        yhat = 5 * torch.rand(60, 4, dtype=torch.float64, generator=generator) - 2.5
    assert is_compact(layouts_of(build()).ready.rules.data)
    dense = gradients(build(), yhat, x)
    written = gradients(build(), yhat, x, "highs")
    monkeypatch.setattr(engine, "_MOST_COLUMNS", -1)
    for large in (gradients(build(), yhat, x), written):
        # Where several points are nearest they differ.
        same = (dense[0] - large[0]).abs().amax(1) < 1e-9
        assert same.double().mean() > 0.9
        for one, other in zip(dense[1:], large[1:], strict=True):
            assert one.abs().sum() > 1
            torch.testing.assert_close(other[same], one[same], atol=1e-7, rtol=1e-7)


@pytest.mark.parametrize("moving", [False, True])
@pytest.mark.parametrize("relaxation", ["cnf", "dnf"])
def test_outputs_in_no_rule_follow_their_predictions(
    relaxation: str, moving: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build() -> gdpnet.RuleModel:
        m = pyo.ConcreteModel()
        m.a = pyo.Param(mutable=True, initialize=1.0)
        m.y = pyo.Var(range(4), bounds=(0, 4))
        m.y[3].setub(2)
        if moving:
            m.y[1].setub(m.a + 3)
        m.rule = Disjunction(expr=[[m.y[0] >= 3], [m.y[0] <= 1]])
        return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.a])

    x = torch.full((1, 1), 0.5, dtype=torch.float64)
    # The rule holds the first in place, the last is beyond its bound.
    for solver, most in (("auto", 700), ("extended", 700), ("highs", 700), ("extended", -1)):
        monkeypatch.setattr(engine, "_MOST_COLUMNS", most)
        yhat = torch.tensor([[1.7, 2.0, 3.0, 2.5]], dtype=torch.float64, requires_grad=True)
        y = gdpnet.project(
            build(), yhat, x, relaxation=relaxation, solver=solver, gradient="vertex"
        ).y
        assert y.flatten().tolist() == pytest.approx([1.0, 2.0, 3.0, 2.0], abs=1e-9)
        y.sum().backward()
        assert yhat.grad is not None
        assert yhat.grad.flatten().tolist() == pytest.approx([0, 1, 1, 0], abs=1e-9), solver


def test_large_relaxations_take_it_and_say_highs(monkeypatch: pytest.MonkeyPatch) -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(40), bounds=(0, 1))
    m.simplex = pyo.Constraint(expr=sum(m.y.values()) == 1)
    m.rule = Disjunction(
        range(10),
        rule=lambda m, r: [
            [sum(m.y[j] for j in range(3 * r, 3 * r + 9)) >= 0.9],
            [sum(m.y[j] for j in range(3 * r, 3 * r + 9)) <= 0.1],
        ],
    )
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    written = []
    init = CompactProgram.__init__
    monkeypatch.setattr(
        CompactProgram, "__init__", lambda self, *a: written.append(self) or init(self, *a)
    )
    generator = torch.Generator().manual_seed(1)
    yhat = torch.rand(3, 40, dtype=torch.float64, generator=generator).softmax(1)
    p = gdpnet.project(rules, yhat, relaxation="cnf")
    assert p.info.solver == "highs"
    (program,) = written
    assert len(program.bound) < 0.7 * p.info.sizes.rows
    compared(rules, yhat, None, "cnf")
