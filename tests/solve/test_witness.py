"""Auxiliaries that the engine finds decide what a program for each sample decides."""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet.ir.batch import Batch
from gdpnet.solve import existence
from gdpnet.solve.existence import State
from gdpnet.testing import CONVEX, PROBLEMS
from tests.derivative.random_models import random_model

BANK = [problem for problem in (*PROBLEMS, *CONVEX) if problem.auxiliaries]


def batch_of(
    rules: gdpnet.RuleModel, seed: int, yhat: torch.Tensor, x: torch.Tensor | None
) -> Batch:
    """Outputs that hold, nearly hold, and break rules."""
    rng = np.random.default_rng(seed)
    y = gdpnet.project(rules, yhat, x).y.numpy()
    y = np.where(np.isfinite(y), y, 0.0)
    near = [y + size * rng.normal(size=y.shape) for size in (1e-8, 1e-3)]
    every = np.concatenate([y, y.astype(np.float32), *near, yhat.numpy()])
    inputs = np.zeros((len(y), 0)) if x is None else x.numpy()
    return Batch.of_arrays(np.tile(inputs, (5, 1)), every)


def agrees(rules: gdpnet.RuleModel, batch: Batch, monkeypatch: pytest.MonkeyPatch) -> int:
    """Compare with a program for each sample; how many satisfied samples there were."""
    found = existence.satisfied(rules, batch, 1e-6), existence.satisfied(rules, batch, 1e-6, True)
    measured = existence.measure(rules, batch)
    with monkeypatch.context() as patch:
        patch.setattr(State, "possible", lambda self, tol: existence._apart(self)[0] <= tol)
        patch.setattr(State, "with_auxiliaries", lambda self, samples: None)
        expected = (
            existence.satisfied(rules, batch, 1e-6),
            existence.satisfied(rules, batch, 1e-6, True),
        )
        programs = existence.measure(rules, batch)
    for one, other in zip(found, expected, strict=True):
        assert one.tolist() == other.tolist()
    for one, other in zip(measured, programs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=2e-8)
    return int(found[0].sum())


@pytest.mark.parametrize("problem", BANK, ids=lambda problem: problem.name)
def test_bank(problem, monkeypatch) -> None:
    rules = problem.rules()
    assert rules.auxiliary_names
    agrees(rules, batch_of(rules, 0, problem.yhat, problem.x), monkeypatch)


def test_random_rules(monkeypatch) -> None:
    satisfied = samples = 0
    for seed in range(30):
        model = random_model(seed)
        if not model.rules.auxiliary_names:
            continue
        batch = batch_of(model.rules, seed, model.yhat, model.x)
        satisfied += agrees(model.rules, batch, monkeypatch)
        samples += len(batch.y)
    assert samples / 4 < satisfied < samples * 3 / 4


def test_usual_samples_need_no_program(monkeypatch) -> None:
    m = pyo.ConcreteModel()
    m.w = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var([1, 2], bounds=(0, 10))
    m.s = pyo.Var(bounds=(0, 40))
    m.sum = pyo.Constraint(expr=m.s == m.y[1] + m.w * m.y[2])
    m.rule = Disjunction(expr=[[m.s <= 2], [m.y[2] >= 6]])
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.w])
    drawn = torch.Generator().manual_seed(0)
    yhat, x = 10 * torch.rand(500, 2, generator=drawn), torch.rand(500, 1, generator=drawn)
    p = gdpnet.project(rules, yhat, x)

    def none(*_: object) -> float:
        raise AssertionError("a program was solved")

    monkeypatch.setattr(existence, "_least", none)
    assert rules.satisfied(p.y, x).all()
    expected = (yhat[:, 0] + x[:, 0] * yhat[:, 1] <= 2) | (yhat[:, 1] >= 6)
    assert rules.satisfied(yhat, x).tolist() == expected.tolist()
    assert not rules.violation(gdpnet.project(rules, yhat.double(), x.double()).y, x.double()).any()
