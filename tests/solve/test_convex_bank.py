"""The bank of convex rows, projected: distances by hand, rows that hold, strict answers."""

from __future__ import annotations

import math

import pytest

import gdpnet
from gdpnet import Status
from gdpnet.testing import CONVEX, Problem

THIN = {"touching_discs"}  # a set without an interior: right to 1e-6, and never strict


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("problem", CONVEX, ids=lambda p: p.name)
def test_distances(problem: Problem, norm: str) -> None:
    rules = problem.rules()
    p = gdpnet.project(rules, problem.yhat, problem.x, norm=norm)
    holds = rules.satisfied(p.y, problem.x, tol=1e-6 if problem.name in THIN else 1e-8)
    for k, sample in enumerate(problem.samples):
        wanted = sample.distance if norm == "l1" else sample.euclidean
        if wanted is not None and math.isinf(wanted):
            assert p.status[k] == Status.CONFLICT
            continue
        assert holds[k]
        if wanted is not None:
            near = 2e-6 if problem.name in THIN else 1e-7
            assert float(p.distance[k]) == pytest.approx(wanted, abs=near)
        assert p.status[k] == (Status.SATISFIED if p.distance[k] == 0.0 else Status.PROJECTED)


@pytest.mark.parametrize("problem", CONVEX, ids=lambda p: p.name)
def test_strict(problem: Problem) -> None:
    rules = problem.rules()
    p = gdpnet.project(rules, problem.yhat, problem.x, strict=True)
    holds = rules.satisfied(p.y, problem.x, tol=0.0)
    assert (holds | ~p.info.strict).all()  # never said of what does not hold
    if problem.name not in THIN:
        assert (p.info.strict | (p.status == Status.CONFLICT)).all()
