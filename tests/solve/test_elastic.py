"""Contradictory samples a batch at a time, against MILP, which takes them one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet import Status
from gdpnet.solve.exact.elastic import Elastic
from gdpnet.solve.milp import nearest as milp_nearest


def contradictory(seed: int) -> tuple[gdpnet.RuleModel, torch.Tensor, torch.Tensor]:
    """Rules of which several cannot hold together; an input switches one of them on."""
    rng = np.random.default_rng(seed)
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(3), bounds=(-10, 10))
    m.x = pyo.Param(initialize=0.0, mutable=True)
    m.always = pyo.Constraint(expr=m.y[0] + m.y[1] + m.y[2] <= float(rng.integers(0, 12)))
    for k in range(4):
        terms = []
        for _ in range(int(rng.integers(1, 4))):
            a, low = rng.integers(-2, 3, 3).astype(float), float(rng.integers(-8, 9))
            a[rng.integers(3)] = 1.0
            left = sum(float(c) * m.y[j] for j, c in enumerate(a))
            rows = [left >= low, left <= low + 0.5] if rng.random() < 0.7 else [left == low]
            terms.append(rows)
        m.add_component(f"rule{k}", Disjunction(expr=terms))
    m.active_when = pyo.Suffix()
    m.active_when[m.rule0] = m.x >= 0
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.x])
    yhat = torch.from_numpy(rng.uniform(-12, 12, (6, 3)))
    return rules, yhat, torch.from_numpy(rng.uniform(-1, 1, (6, 1)))


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_as_little_broken_and_as_near_as_by_milp(norm: str, monkeypatch: Any) -> None:
    seen = 0
    for seed in range(60):
        rules, yhat, x = contradictory(seed)
        with monkeypatch.context() as alone:  # nothing is left to the others
            alone.setattr(milp_nearest, "elastic", _not_asked)
            p = gdpnet.project(rules, yhat, x, norm=norm, on_conflict="nearest")
        with monkeypatch.context() as without:
            without.setattr(Elastic, "of", staticmethod(lambda rules: None))
            again = gdpnet.RuleModel.from_data(rules.data)  # nothing is kept of the first
            q = gdpnet.project(again, yhat, x, norm=norm, on_conflict="nearest")
        assert p.status.tolist() == q.status.tolist()
        conflict = p.status == Status.CONFLICT
        seen += int(conflict.sum())
        own, other = (rules.violation(each.y, x).sum(1)[conflict] for each in (p, q))
        torch.testing.assert_close(own, other, rtol=1e-8, atol=1e-8)
        order = 1 if norm == "l1" else 2
        near, far = ((each.y - yhat).norm(p=order, dim=1)[conflict] for each in (p, q))
        torch.testing.assert_close(near, far, rtol=1e-7, atol=1e-7)
    assert seen >= 50


def _not_asked(*_: Any) -> Any:
    raise AssertionError("a sample was not solved in its batch")
