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
from tests.derivative import qp_oracle
from tests.derivative.test_priced_relaxations import rules_of

EPS = 0.5
ALONG = torch.tensor([1.0, -0.5], dtype=torch.float64)


RELAXATIONS = {"dnf": [[0, 1, 2]], "cnf": [[0], [1], [2]], "pdnf:2": [[0, 1], [2]]}


def written_down(
    rules: Any, relaxation: str, yhat: np.ndarray, x: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """The regularised point of one sample; every product costs what it chooses."""
    data, instance = rules.data, Instance.of(rules, x[None])
    active, table = instance.active[0].tolist(), rules.table.shared.numpy()
    lower, upper = np.array([(c.lower, c.upper) for c in data.columns]).T
    eye, blocks, costs = np.eye(len(yhat)), [], []
    for cluster in RELAXATIONS[relaxation]:
        blocks.append([])
        for product in products(data, cluster, active):
            rows = list(dict.fromkeys(product.rows))
            polyhedron = qp_oracle.Polyhedron(
                np.vstack([table[rows], eye, -eye]),
                np.concatenate([instance.bound[0, rows], upper, -lower]),
                np.zeros((0, len(yhat))),
                np.zeros(0),
            )
            if polyhedron.empty():
                continue
            blocks[-1].append(polyhedron)
            paid = [c for c, k in zip(instance.price[0], data.priced, strict=True)
                    if k + 1 in product.literals]  # fmt: skip
            costs.append(sum(paid) / weights.max())
    own = yhat, weights / weights.max(), EPS
    if relaxation == "dnf":
        program = qp_oracle.written(blocks[0], *own)
    else:
        program = qp_oracle.written_blocks(blocks, upper - lower, *own)
    width = len(program.cost) // len(costs)
    cost = program.cost.copy()
    cost[width - 1 :: width] += costs
    return yhat + program.moves @ qp_oracle.solve(replace(program, cost=cost))


@pytest.mark.parametrize("relaxation", RELAXATIONS)
def test_the_point_is_that_of_the_program_written_down(relaxation: str) -> None:
    compared = bought = 0
    for seed in range(8):
        rules, rng = rules_of(seed), np.random.default_rng(100 + seed)
        yhat, x = rng.uniform(-3, 3, (3, 2)), rng.uniform(0.3, 1.5, (3, 3))
        weights = np.array([1.0, 0.5]) if seed % 2 else np.array([2.0, 1.0])
        options: dict[str, Any] = {"weights": weights.tolist(), "relaxation": relaxation}
        p = gdpnet.project(rules, yhat, x, forward="qp", gradient=gdpnet.QP(EPS), **options)
        found = gdpnet.project(rules, yhat, x, **options)
        bought += int(gdpnet.project(rules, yhat, x).broken.any(1).sum())
        moved = (found.status == Status.PROJECTED) | (found.status == Status.RELAXED)
        for s in np.flatnonzero(moved.numpy()).tolist():
            expected = written_down(rules, relaxation, yhat[s], x[s], weights)
            near = 1e-9 if relaxation == "dnf" else 1e-6  # the interior point's
            assert p.y[s].tolist() == pytest.approx(expected.tolist(), abs=near)
            compared += 1
    assert compared > 15
    assert bought > 5


@pytest.mark.parametrize(
    ("norm", "relaxation", "gradient"),
    [
        *(("l1", relaxation, "qp") for relaxation in RELAXATIONS),
        *(("l1", relaxation, "mixed") for relaxation in RELAXATIONS),
        ("l2", "dnf", "qp"),
    ],
)
def test_gradients_of_predictions_and_prices(norm: str, relaxation: str, gradient: str) -> None:
    regularised = gdpnet.QP(EPS)
    chosen: Any = regularised
    if gradient == "mixed":
        chosen = gdpnet.Mixed(regularised, gdpnet.StraightThrough(), 0.5)
    options: dict[str, Any] = {"norm": norm, "relaxation": relaxation, "weights": [2.0, 1.0]}
    compared, followed, h = 0, 0, 1e-5 if relaxation == "dnf" else 1e-4
    for seed in range(6):
        rules, rng = rules_of(seed), np.random.default_rng(100 + seed)
        given = [
            torch.from_numpy(rng.uniform(-3, 3, (3, 2))).requires_grad_(),
            torch.from_numpy(rng.uniform(0.3, 1.5, (3, 3))).requires_grad_(),
        ]

        def loss(*at: torch.Tensor, sensitivity: Any = regularised, rules: Any = rules) -> Any:
            p = gdpnet.project(rules, *at, forward="qp", gradient=sensitivity, **options)
            return (p.y * ALONG).sum(1)

        status = gdpnet.project(rules, *given, **options).status
        moved = (status == Status.PROJECTED) | (status == Status.RELAXED)
        own = gdpnet.project(rules, *given, gradient=chosen, **options).y @ ALONG
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
                followed += int((expected[smooth].abs() > 1e-2).sum()) if k == 1 else 0
                there = found[k][:, j][smooth].tolist()
                assert there == pytest.approx(expected[smooth].tolist(), abs=1e-3)
    assert compared > 50
    assert followed > 10, "y follows prices"


@pytest.mark.parametrize("relaxation", ["cnf", "pdnf:2"])
@pytest.mark.parametrize("price", [1e2, 1e6, 1e12])
def test_a_rule_that_costs_too_much_to_break_is_hard(relaxation: str, price: float) -> None:
    for seed in range(4):
        hard, rng = rules_of(seed, priced=False), np.random.default_rng(100 + seed)
        dear = rules_of(seed, priced=False, breaking=price)
        points, gradients = [], []
        yhat, x = torch.from_numpy(rng.uniform(-3, 3, (8, 2))).requires_grad_(), [[1.0] * 3] * 8
        for rules in (hard, dear):
            p = gdpnet.project(
                *(rules, yhat, x), relaxation=relaxation, forward="qp", gradient=gdpnet.QP(EPS)
            )
            assert not (p.status == Status.CONFLICT).any()
            assert not p.info.capped.any()
            points.append(p.y.detach())
            gradients.append(torch.autograd.grad((p.y @ ALONG).sum(), yhat)[0])
        assert points[1].numpy() == pytest.approx(points[0].numpy(), abs=2e-6)
        assert gradients[1].numpy() == pytest.approx(gradients[0].numpy(), abs=1e-4)


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
