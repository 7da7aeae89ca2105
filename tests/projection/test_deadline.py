"""A deadline for a batch is kept, is shared out, and changes nothing where it is not hit."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

import gdpnet
from gdpnet.errors import InputError
from gdpnet.lp.clock import UNLIMITED, Clock
from gdpnet.solve import Exact
from gdpnet.solve.base import Request, Settings
from gdpnet.testing.problems import stress


def hard(k: int = 300, d: int = 120) -> gdpnet.RuleModel:
    """Rules whose search takes seconds for a sample."""
    m = stress.pyomo_model(k, d)
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.need])


def samples(rules: gdpnet.RuleModel, count: int) -> tuple[np.ndarray, np.ndarray]:
    rng, d = np.random.default_rng(0), len(rules.output_names)
    return rng.uniform(0, 1, (count, d)), np.full((count, 1), 0.9 * stress.delivered(d))


@pytest.fixture(scope="module")
def rules() -> gdpnet.RuleModel:
    return hard()


@pytest.fixture(scope="module")
def easy() -> gdpnet.RuleModel:
    return hard(10, 4)


@pytest.mark.parametrize("how", [{}, {"norm": "l2"}, {"solver": "milp"}, {"relaxation": "cnf"}])
def test_nothing_changes_where_it_is_not_hit(easy: gdpnet.RuleModel, how: dict[str, Any]) -> None:
    yhat, x = samples(easy, 40)
    without = gdpnet.project(easy, yhat, x, **how)
    within = gdpnet.project(easy, yhat, x, deadline=600.0, **how)
    assert np.array_equal(without.y.numpy(), within.y.numpy())
    assert without.status.tolist() == within.status.tolist()
    if "solver" not in how:  # MILP looks for any feasible point first where there is a limit
        assert without.info.nodes.tolist() == within.info.nodes.tolist()


@pytest.mark.parametrize("how", [{}, {"norm": "l2"}])
@pytest.mark.parametrize("count", [1, 24])
def test_it_is_kept(rules: gdpnet.RuleModel, count: int, how: dict[str, Any]) -> None:
    yhat, x = samples(rules, count)
    deadline = 5e-4  # even one of them takes milliseconds
    gdpnet.project(rules, yhat[:1], x[:1], deadline=deadline, **how)  # whatever is made once
    start = time.perf_counter()
    p = gdpnet.project(rules, yhat, x, deadline=deadline, **how)
    spent = time.perf_counter() - start
    # A solver looks at its clock now and then, and is given some time to stop.
    assert spent < deadline + 1.5
    open_ = np.isin(p.status.numpy(), [gdpnet.Status.LIMIT, gdpnet.Status.UNSOLVED])
    assert open_.any()
    found = p.status.numpy() == gdpnet.Status.LIMIT
    assert rules.satisfied(p.y[found], x[found]).all()
    unsolved = p.status.numpy() == gdpnet.Status.UNSOLVED
    assert np.array_equal(p.y.numpy()[unsolved], yhat[unsolved])


def test_what_was_not_reached_says_so(rules: gdpnet.RuleModel) -> None:
    yhat, x = samples(rules, 8)
    start = time.perf_counter()
    p = gdpnet.project(rules, yhat, x, deadline=1e-9, solver="milp", threads=1)
    assert time.perf_counter() - start < 2.0
    assert set(p.status.tolist()) == {int(gdpnet.Status.UNSOLVED)}
    assert np.isinf(p.distance.numpy()).all()


def test_shares_are_even(easy: gdpnet.RuleModel) -> None:
    clock = Clock(10.0)
    assert clock.share(4) == pytest.approx(2.5, abs=0.1)
    assert clock.share(4, 1.0) == 1.0
    assert UNLIMITED.share(4) is None
    assert UNLIMITED.share(4, 1.0) == 1.0
    yhat, x = samples(easy, 100)
    settings = Settings(np.ones(yhat.shape[1]), threads=2)
    request = Request(easy, x, yhat, np.zeros(100, bool), settings, clock=Clock(10.0))
    # Half of it for the search, by two at a time.
    assert Exact().options(request).time_limit == pytest.approx(0.1, rel=0.05)
    euclidean = request._replace(settings=settings._replace(norm="l2"))
    assert Exact().options(euclidean).time_limit == pytest.approx(0.1, rel=0.05)
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 1))
    m.round = pyo.Constraint(expr=m.y**2 <= 0.5)
    curved = gdpnet.RuleModel(m, outputs=[m.y])  # which nobody takes over
    own = settings._replace(weights=np.ones(1))
    alone = request._replace(rules=curved, x=x[:, :0], yhat=yhat[:, :1], settings=own)
    assert Exact().options(alone).time_limit == pytest.approx(0.2, rel=0.05)
    tight = request._replace(settings=settings._replace(time_limit=0.002))
    assert Exact().options(tight).time_limit == pytest.approx(0.001)


def test_a_layer_has_one_too(easy: gdpnet.RuleModel) -> None:
    layer = gdpnet.ProjectionLayer(easy, deadline=2.0)
    assert "deadline=2.0" in repr(layer)
    with pytest.raises(InputError, match="deadline"):
        gdpnet.project(easy, *samples(easy, 1), deadline=-1.0)
