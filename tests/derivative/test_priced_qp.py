"""The regularised program of rules with prices, against what is written down and by differences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import gdpnet
from gdpnet import Status
from gdpnet.ir.instance import Instance
from gdpnet.relaxation.products import products
from gdpnet.solve.exact.backend import engine_of
from tests.derivative import qp_oracle
from tests.derivative.test_priced_relaxations import rules_of

EPS = 0.5
ALONG = torch.tensor([1.0, -0.5], dtype=torch.float64)


def written_down(rules: Any, yhat: np.ndarray, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The regularised point of one sample; every product costs what it chooses."""
    data, instance = rules.data, Instance.of(rules, x[None])
    (component,) = engine_of(rules).components
    active = instance.active[0].tolist()
    eye, table = np.eye(len(yhat)), rules.table.shared.numpy()
    lower, upper = np.array([(c.lower, c.upper) for c in data.columns]).T
    polyhedra, costs = [], []
    for product in products(data, [*range(len(data.rules))], active):
        rows = list(dict.fromkeys(product.rows))
        polyhedron = qp_oracle.Polyhedron(
            np.vstack([table[rows], eye, -eye]),
            np.concatenate([instance.bound[0, rows], upper, -lower]),
            np.zeros((0, len(yhat))),
            np.zeros(0),
        )
        if polyhedron.empty():
            continue
        polyhedra.append(polyhedron)
        paid = [c for c, k in zip(instance.price[0], data.priced, strict=True)
                if k + 1 in product.literals]  # fmt: skip
        costs.append(sum(paid) / weights.max())
    program = qp_oracle.written(polyhedra, yhat, weights / weights.max(), EPS)
    width = len(program.cost) // len(polyhedra)
    cost = program.cost.copy()
    cost[width - 1 :: width] += costs
    assert len(component.columns) == len(yhat)
    return yhat + program.moves @ qp_oracle.solve(replace(program, cost=cost))


def test_the_point_is_that_of_the_program_written_down() -> None:
    compared = bought = 0
    for seed in range(8):
        rules, rng = rules_of(seed), np.random.default_rng(100 + seed)
        yhat, x = rng.uniform(-3, 3, (3, 2)), rng.uniform(0.3, 1.5, (3, 3))
        weights = np.array([1.0, 0.5]) if seed % 2 else np.array([2.0, 1.0])
        options: dict[str, Any] = {"weights": weights.tolist()}
        p = gdpnet.project(rules, yhat, x, forward="qp", gradient=gdpnet.QP(EPS), **options)
        exact = gdpnet.project(rules, yhat, x, **options)
        bought += int(exact.broken.any(1).sum())
        for s in np.flatnonzero(exact.status.numpy() == Status.PROJECTED).tolist():
            expected = written_down(rules, yhat[s], x[s], weights)
            assert p.y[s].tolist() == pytest.approx(expected.tolist(), abs=1e-9)
            compared += 1
    assert compared > 15
    assert bought > 5


@pytest.mark.parametrize(("norm", "gradient"), [("l1", "qp"), ("l2", "qp"), ("l1", "mixed")])
def test_gradients_of_predictions_and_prices(norm: str, gradient: str) -> None:
    regularised = gdpnet.QP(EPS)
    chosen: Any = regularised
    if gradient == "mixed":
        chosen = gdpnet.Mixed(regularised, gdpnet.StraightThrough(), 0.5)
    compared, h = 0, 1e-5
    for seed in range(6):
        rules, rng = rules_of(seed), np.random.default_rng(100 + seed)
        given = [
            torch.from_numpy(rng.uniform(-3, 3, (3, 2))).requires_grad_(),
            torch.from_numpy(rng.uniform(0.3, 1.5, (3, 3))).requires_grad_(),
        ]

        def loss(*at: torch.Tensor, sensitivity: Any = regularised, rules: Any = rules) -> Any:
            p = gdpnet.project(rules, *at, norm=norm, forward="qp", gradient=sensitivity)
            return (p.y * ALONG).sum(1)

        moved = gdpnet.project(rules, *given, norm=norm).status == Status.PROJECTED
        own = gdpnet.project(rules, *given, norm=norm, gradient=chosen).y @ ALONG
        found = torch.autograd.grad(own.sum(), given)
        for k, value in enumerate(given):
            for j in range(value.shape[1]):
                ends = []
                for sign in (h, 0.0, -h):
                    at = [v.detach().clone() for v in given]
                    at[k][:, j] += sign
                    ends.append(loss(*at))
                ahead, behind = (ends[0] - ends[1]) / h, (ends[1] - ends[2]) / h
                expected = (ahead + behind) / 2
                if gradient == "mixed":
                    expected = expected / 2 + (ALONG[j] / 2 if k == 0 else 0.0)
                smooth = moved & ((ahead - behind).abs() < 1e-3)
                compared += int(smooth.sum())
                there = found[k][:, j][smooth].tolist()
                assert there == pytest.approx(expected[smooth].tolist(), abs=1e-3)
    assert compared > 50


def test_a_rule_that_is_nearly_bought_off_is_felt_on_both_sides() -> None:
    # Holding costs 1.0, breaking 1.001: y is the projection, and the loss feels the price.
    import pyomo.environ as pyo

    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.p = pyo.Param(mutable=True)
    m.low = gdpnet.rule(m.y <= 3, price=m.p)
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    x = torch.tensor([[1.001]], dtype=torch.float64, requires_grad=True)
    p = gdpnet.project(rules, [[4.0]], x, gradient=gdpnet.QP(1e-2))
    assert p.y.tolist() == [[3.0]]
    p.y.sum().backward()
    assert x.grad is not None
    assert float(x.grad) < -10.0  # a higher price gives holding it more weight
