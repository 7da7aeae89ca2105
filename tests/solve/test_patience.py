"""A search that does not keep pace ends early: by counted work, whatever else happens."""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo
import torch
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet import Status, core
from gdpnet.ir.instance import Instance
from gdpnet.solve.exact.backend import engine_of
from gdpnet.solve.exact.options import MOST_NODES, SearchOptions


def problem(d: int = 40, samples: int = 12) -> tuple[gdpnet.RuleModel, np.ndarray]:
    """Gaps and alternatives under one sum; some samples are easy, some are not."""
    rng = np.random.default_rng(5)
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(d), bounds=(0, 1))
    m.total = pyo.Constraint(expr=sum(m.y.values()) == 0.4 * d)
    low = rng.uniform(0.2, 0.5, d)
    m.gap = Disjunction(
        range(d),
        rule=lambda m, j: [[m.y[j] <= float(low[j])], [m.y[j] >= float(low[j]) + 0.25]],
    )
    pairs = rng.integers(0, d, (d // 2, 3)).tolist()
    m.either = Disjunction(
        range(len(pairs)),
        rule=lambda m, k: [
            [m.y[pairs[k][0]] + m.y[pairs[k][1]] >= 0.9],
            [m.y[pairs[k][2]] <= 0.1],
        ],
    )
    scale = rng.uniform(0.05, 0.4, (samples, 1))
    return gdpnet.RuleModel(m, outputs=[m.y]), 0.4 + scale * rng.normal(size=(samples, d))


def test_patience_ends_searches_and_nothing_else_matters() -> None:
    rules, yhat = problem()
    engine = engine_of(rules)

    def run(order: np.ndarray, patience: float, threads: int = 1):
        options = SearchOptions(
            np.ones(yhat.shape[1]), node_limit=MOST_NODES, threads=threads, patience=patience
        )
        instance = Instance.of(rules, np.zeros((len(order), 0)))
        back = np.argsort(order)
        out = engine.project(instance, np.ascontiguousarray(yhat[order]), options)
        return out.status[back], out.nodes[back], out.bound[back], out.z[back]

    forward = np.arange(len(yhat))
    status, nodes, bound, _ = run(forward, 3e6)
    full, all_nodes, best, _ = run(forward, 1e11)
    assert (full == core.SOLVED).all()
    ended = status == core.NODE_LIMIT
    assert ended.any()
    assert (~ended).any()
    assert (nodes[ended] < all_nodes[ended]).all()
    assert (nodes[~ended] == all_nodes[~ended]).all()
    assert (bound <= best + 1e-9).all()
    for order, threads in ((forward[::-1].copy(), 1), (np.roll(forward, 5), 2)):
        again = run(order, 3e6, threads)
        for one, other in zip(again, run(forward, 3e6), strict=True):
            assert np.array_equal(one, other, equal_nan=True)


def test_what_is_handed_over_is_proved_all_the_same() -> None:
    rules, yhat = problem(samples=4)
    given = torch.from_numpy(yhat)
    whole = gdpnet.project(rules, given, solver=gdpnet.solve.Exact(node_limit=10**7))
    early = gdpnet.project(rules, given, solver=gdpnet.solve.Exact(node_limit=1), gradient="vertex")
    assert (early.status == Status.PROJECTED).all()
    assert torch.allclose(early.distance, whole.distance, atol=1e-8)
    assert early.info.gap.eq(0.0).all()
    assert "milp" in early.info.solver


def test_samples_of_milp_have_the_gradient_of_their_vertex() -> None:
    rules, yhat = problem(samples=2)
    outputs = []
    for solver in (gdpnet.solve.Exact(node_limit=10**7), gdpnet.solve.Exact(node_limit=1)):
        given = torch.from_numpy(yhat).requires_grad_()
        # Weights that differ leave no tie, and so one vertex.
        weights = 1.0 + torch.rand(yhat.shape[1], generator=torch.Generator().manual_seed(0))
        p = gdpnet.project(rules, given, solver=solver, gradient="vertex", weights=weights)
        weight = torch.linspace(-1.0, 1.0, yhat.shape[1], dtype=torch.float64)
        (p.y @ weight).sum().backward()
        outputs.append((p.y.detach(), given.grad))
    assert torch.allclose(outputs[0][0], outputs[1][0], atol=1e-7)
    assert torch.allclose(outputs[0][1], outputs[1][1], atol=1e-6)
