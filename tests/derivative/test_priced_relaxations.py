"""Derivatives of relaxations of rules with prices, by differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet import Status

STEP = 1e-3  # points of Clarabel are right to 1e-7 or so


def rules_of(seed: int, priced: bool = True, breaking: float | None = None) -> gdpnet.RuleModel:
    """Three rules over two outputs, what each costs being an input, or `breaking` to break it."""
    rng = np.random.default_rng(seed)
    m = pyo.ConcreteModel()
    m.p = pyo.Param(range(3), mutable=True, initialize=1.0)
    m.y = pyo.Var(range(2), bounds=(-4, 4))
    prices = {}
    for r in range(3):
        terms = []
        for _ in range(2):
            a, b = rng.normal(size=2), rng.normal() - 1.0
            terms.append([float(a[0]) * m.y[0] + float(a[1]) * m.y[1] <= float(b)])
        m.add_component(f"rule{r}", Disjunction(expr=terms))
        if breaking is not None:
            prices[m.component(f"rule{r}")] = breaking
        if not priced:
            continue
        prices[m.component(f"rule{r}")] = m.p[r] ** 2
        prices[m.component(f"rule{r}").disjuncts[0]] = 0.25 * m.p[(r + 1) % 3]
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p], prices=prices)


def differences(loss: Any, given: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Slopes ahead and behind, by entry."""
    here, ahead, behind = float(loss(given)), [], []
    for j in range(given.numel()):
        step = torch.zeros_like(given)
        step.view(-1)[j] = STEP
        ahead.append((float(loss(given + step)) - here) / STEP)
        behind.append((here - float(loss(given - step))) / STEP)
    return np.array(ahead), np.array(behind)


@pytest.mark.parametrize(
    ("norm", "relaxation"), [("l1", "cnf"), ("l1", "pdnf:2"), ("l2", "cnf"), ("l2", "pdnf:2")]
)
@pytest.mark.filterwarnings("ignore::gdpnet.errors.ZeroGradientWarning")
def test_points(norm: str, relaxation: str) -> None:
    compared = relaxed = moved = 0
    along = torch.tensor([1.0, -0.5], dtype=torch.float64)
    for seed in range(60):
        rules, rng = rules_of(seed), np.random.default_rng(100 + seed)
        options: dict[str, Any] = {"norm": norm, "relaxation": relaxation, "weights": [2.0, 1.0]}
        yhat = torch.from_numpy(rng.uniform(-3, 3, (1, 2))).requires_grad_()
        x = torch.from_numpy(rng.uniform(0.6, 2.0, (1, 3))).requires_grad_()
        p = gdpnet.project(rules, yhat, x, gradient="vertex", **options)
        (p.y @ along).sum().backward()
        found = np.concatenate([yhat.grad.numpy().ravel(), x.grad.numpy().ravel()])

        def loss(both: torch.Tensor, rules: Any = rules, options: Any = options) -> float:
            y = gdpnet.project(rules, both[None, :2], both[None, 2:], **options).y
            return float(y[0] @ along)

        ahead, behind = differences(loss, torch.cat([yhat[0], x[0]]).detach())
        smooth = np.abs(ahead - behind) < 2e-2
        slopes = (ahead + behind)[smooth] / 2
        # Near a kink Clarabel's multipliers are right to 1e-4 or so, and all slopes to 1 %.
        near = {"rel": 1e-2, "abs": 2e-3} if norm == "l2" else {"rel": 1e-6, "abs": 1e-6}
        assert found[smooth] == pytest.approx(slopes, **near), seed
        compared += int(smooth.sum())
        relaxed += int(p.status.item() == Status.RELAXED)
        moved += int((np.abs(found[2:]) > 1e-3).sum())
    assert compared > 90
    assert relaxed > 2
    if norm == "l2":
        assert moved > 2, "a point that shares weights follows prices"
    else:
        assert moved == 0, "a vertex does not"


def test_values_follow_the_prices_that_are_paid() -> None:
    rules = rules_of(0)
    rng = np.random.default_rng(1)
    followed = 0
    for _ in range(12):
        yhat = torch.from_numpy(rng.uniform(-3, 3, (1, 2)))
        x = torch.from_numpy(rng.uniform(0.3, 1.2, (1, 3))).requires_grad_()
        p = gdpnet.project(rules, yhat, x, relaxation="dnf", solver="extended")
        if not p.value.requires_grad:
            continue
        (slope,) = torch.autograd.grad(p.value.sum(), x)

        def value(x: torch.Tensor, yhat: Any = yhat) -> float:
            found = gdpnet.project(rules, yhat, x, relaxation="dnf", solver="extended")
            return float(found.value)

        ahead, behind = differences(value, x.detach())
        assert slope.numpy().ravel() == pytest.approx((ahead + behind) / 2, abs=1e-3)
        followed += bool(slope.any())
    assert followed > 5
