"""What a sample's gradient is does not depend on the samples beside it."""

from __future__ import annotations

import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction

import gdpnet
from tests.derivative.random_models import random_model

# That of one sample is often zero, which is told of.
pytestmark = pytest.mark.filterwarnings("ignore::gdpnet.errors.ZeroGradientWarning")

GRADIENTS = ["vertex", "qp", "mixed:0.25", "auto"]


def derivative_of_some_sum(
    rules: gdpnet.RuleModel, yhat: torch.Tensor, x: torch.Tensor | None, norm: str, gradient: str
) -> torch.Tensor:
    """Gradients with respect to prediction and input, `batch x (d + p)`."""
    given = [yhat.clone().requires_grad_()]
    if x is not None:
        given.append(x.clone().requires_grad_())
    p = gdpnet.project(rules, *given, norm=norm, gradient=gradient)
    (p.y * torch.arange(1, yhat.shape[1] + 1)).sum().backward()
    found = [torch.zeros_like(one) if one.grad is None else one.grad for one in given]
    return torch.cat(found, 1)


def balance_in_an_auxiliary() -> gdpnet.RuleModel:
    """Products of disjuncts leave no point at some inputs."""
    m = pyo.ConcreteModel()
    m.w = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var([1, 2, 3], bounds=(0, 10))
    m.s = pyo.Var(bounds=(0, 20))
    m.balance = pyo.Constraint(expr=m.s == m.y[1] + m.w * m.y[2])
    m.first = Disjunction(expr=[[m.y[1] >= 4, m.y[2] <= 0.5], [m.s <= 2]])
    m.second = Disjunction(expr=[[m.y[1] + m.y[3] <= 4], [m.y[2] >= 6]])
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.w])


@pytest.mark.parametrize("gradient", GRADIENTS)
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_products_that_contradict_the_input_of_one_sample(norm: str, gradient: str) -> None:
    rules = balance_in_an_auxiliary()
    drawn = torch.Generator().manual_seed(0)
    yhat = 6 * torch.rand(24, 3, generator=drawn).double()
    x = 1.5 * torch.rand(24, 1, generator=drawn).double()
    together = derivative_of_some_sum(rules, yhat, x, norm, gradient)
    alone = [
        derivative_of_some_sum(rules, yhat[k : k + 1], x[k : k + 1], norm, gradient)
        for k in range(24)
    ]
    assert together.isfinite().all()
    torch.testing.assert_close(together, torch.cat(alone), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("gradient", GRADIENTS)
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_random_rules(norm: str, gradient: str) -> None:
    for seed in range(12):
        model = random_model(seed)
        together = derivative_of_some_sum(model.rules, model.yhat, model.x, norm, gradient)
        assert together.isfinite().all()
        for k in range(len(model.yhat)):
            x = None if model.x is None else model.x[k : k + 1]
            alone = derivative_of_some_sum(model.rules, model.yhat[k : k + 1], x, norm, gradient)
            torch.testing.assert_close(together[k : k + 1], alone, rtol=1e-9, atol=1e-9)
