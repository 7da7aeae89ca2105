"""Starting from a point that is known: an answer in any case, and never another one."""

from __future__ import annotations

import warnings

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunct, Disjunction

import gdpnet
from gdpnet import Status
from gdpnet.errors import InputError, WorkLimitWarning
from gdpnet.ir.rules import Rules
from gdpnet.solve import MILP, Exact
from gdpnet.solve.milp.sample import RulesAtSample
from gdpnet.solve.milp.started import nearest_literals


def packing(rectangles: int = 8) -> tuple[gdpnet.RuleModel, torch.Tensor]:
    rng = np.random.default_rng(3)
    size = rng.uniform(2, 4, (rectangles, 2))
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(rectangles), bounds=(0, 30))
    m.y = pyo.Var(range(rectangles), bounds=(0, 8))
    m.apart = Disjunction(
        [(i, j) for i in range(rectangles) for j in range(i)],
        rule=lambda m, i, j: [
            [m.x[i] + size[i, 0] <= m.x[j]],
            [m.x[j] + size[j, 0] <= m.x[i]],
            [m.y[i] + size[i, 1] <= m.y[j]],
            [m.y[j] + size[j, 1] <= m.y[i]],
        ],
    )
    yhat = torch.from_numpy(rng.uniform(0, 8, (2, 2 * rectangles)))
    return gdpnet.RuleModel(m, outputs=[m.x, m.y]), yhat


def schedule(hours: int = 6) -> gdpnet.RuleModel:
    """A unit that is off or between 3 and 10, that stays on for two hours, with a stock."""
    m = pyo.ConcreteModel()
    m.p = pyo.Var(range(hours), bounds=(0, 10))
    m.v = pyo.Var(range(hours + 1), bounds=(0, 20))
    m.use = pyo.Param(range(hours), mutable=True, initialize=4.0)
    m.first = pyo.Constraint(expr=m.v[0] == 5.0)
    m.stock = pyo.Constraint(
        range(hours), rule=lambda m, t: m.v[t + 1] == m.v[t] + m.p[t] - m.use[t]
    )
    m.on, m.off = Disjunct(range(hours)), Disjunct(range(hours))
    for t in range(hours):
        m.on[t].row = pyo.Constraint(expr=m.p[t] >= 3)
        m.off[t].row = pyo.Constraint(expr=m.p[t] <= 0)
    m.state = Disjunction(range(hours), rule=lambda m, t: [m.on[t], m.off[t]])
    m.stay = pyo.LogicalConstraint(
        range(1, hours - 1),
        rule=lambda m, t: pyo.lor(
            pyo.lnot(m.on[t].indicator_var),
            m.on[t - 1].indicator_var,
            m.on[t + 1].indicator_var,
        ),
    )
    return gdpnet.RuleModel(m, outputs=[m.p], inputs=[m.use])


def at(rules: Rules, x: torch.Tensor) -> RulesAtSample:
    return RulesAtSample.of(rules, rules.evaluate(x[None]), 0)


def test_a_start_gives_an_answer_where_a_limit_finds_none() -> None:
    rules, yhat = packing()
    far = gdpnet.project(rules, yhat * 0.0 + torch.arange(16) * 2.0)  # some point that holds
    assert rules.satisfied(far.y).all()
    hard = {"solver": MILP(), "time_limit": 1e-9}
    nothing = gdpnet.project(rules, yhat, **hard)
    assert (nothing.status == Status.UNSOLVED).all()
    started = gdpnet.project(rules, yhat, start=far, **hard)
    assert (started.status == Status.LIMIT).all()
    assert rules.satisfied(started.y, tol=1e-8).all()
    # The nearest point in its disjuncts, so at least as near as the start.
    assert (started.distance <= (far.y - yhat).abs().sum(1) + 1e-9).all()
    assert (started.info.gap > 0.0).all()
    assert nothing.info.gap.isinf().all()


@pytest.mark.parametrize("solver", [MILP(), Exact(node_limit=1), Exact()], ids=repr)
def test_a_start_changes_no_distance(solver: gdpnet.solve.Backend) -> None:
    rules = schedule()
    rng = np.random.default_rng(0)
    yhat = torch.from_numpy(rng.uniform(-2, 12, (6, 6)))
    x = torch.from_numpy(rng.uniform(3, 5, (6, 6)))
    without = gdpnet.project(rules, yhat, x, solver=solver)
    for start in (without.y, torch.from_numpy(rng.uniform(0, 10, (6, 6))), yhat * torch.nan):
        p = gdpnet.project(rules, yhat, x, solver=solver, start=start)
        assert p.status.tolist() == without.status.tolist()
        assert torch.allclose(p.distance, without.distance, atol=1e-8)
        assert rules.satisfied(p.y, x, tol=1e-8).all()


def test_disjuncts_of_a_point_are_those_it_is_nearest_to() -> None:
    rules = schedule(4)
    sample = at(rules, torch.full((4,), 4.0, dtype=torch.float64))
    literals = nearest_literals(sample, np.array([0.1, 6.0, 2.9, 0.0]))
    assert literals is not None
    on = [k for k, b in enumerate(rules.data.booleans) if b.name.startswith("on")]
    assert [k + 1 in literals for k in on] == [False, True, True, False]
    # On for one hour in the middle: logic does not allow it.
    assert nearest_literals(sample, np.array([0.0, 6.0, 0.0, 0.0])) is None


def test_a_tracker_starts_from_the_shifted_answer() -> None:
    rules = schedule()
    later = [1, 2, 3, 4, 5, 5]
    track = gdpnet.Tracker(rules, shift=later, solver="milp")
    rng = np.random.default_rng(1)
    x = torch.full((6,), 4.0, dtype=torch.float64)
    for step in range(4):
        yhat = torch.from_numpy(rng.uniform(0, 8, 6))
        start = track.start(yhat)
        last = track.last
        p = track(yhat, x)
        assert p.distance.item() == pytest.approx(
            gdpnet.project(rules, yhat, x).distance.item(), abs=1e-8
        )
        if step == 0:
            assert start is None
        else:
            assert last is not None
            assert torch.equal(start, last.y[later])
    assert track.start(torch.zeros(2, 6)) is None  # another batch
    track.reset()
    assert track.start(torch.zeros(6)) is None


def test_a_tracker_takes_any_function() -> None:
    track = gdpnet.Tracker(schedule(), shift=lambda y: y.roll(-1, -1))
    x = torch.full((6,), 4.0, dtype=torch.float64)
    first = track(torch.full((6,), 4.0, dtype=torch.float64), x).y
    assert torch.equal(track.start(torch.zeros(6)), first.roll(-1, -1))


@pytest.mark.parametrize("shift", [[0, 1], [0, 1, 2, 3, 4, 6], [0.5] * 6, [-1] * 6])
def test_shifts_that_are_none_are_refused(shift: list[int]) -> None:
    with pytest.raises(InputError, match="shift: expected 6 indices from 0 to 5"):
        gdpnet.Tracker(schedule(), shift=shift)


def test_one_start_is_that_of_every_sample() -> None:
    rules, yhat = packing()
    hard = {"solver": MILP(), "time_limit": 1e-9}  # so the start alone decides
    found = gdpnet.project(rules, torch.arange(16) * 2.0)
    point = found.y
    each = gdpnet.project(rules, yhat, start=point.expand(len(yhat), -1), **hard)
    for one in (found, point, point.tolist()):
        p = gdpnet.project(rules, yhat, start=one, **hard)
        assert (p.status == Status.LIMIT).all()
        assert torch.equal(p.y, each.y)
    deep = gdpnet.project(rules, yhat[:, None], start=point, **hard)
    assert torch.equal(deep.y, each.y[:, None])
    single = gdpnet.project(rules, yhat[0], start=point, **hard)
    assert torch.equal(single.y, each.y[0])


@pytest.mark.parametrize("shape", [(1,), (15,), (3, 16), (1, 1, 16)])
def test_a_start_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    rules, yhat = packing()
    with pytest.raises(InputError, match=r"start: expected outputs of the shape of yhat.* got"):
        gdpnet.project(rules, yhat, start=torch.zeros(shape))


def test_the_limit_of_work_is_told_once_and_counts_work() -> None:
    rules, yhat = packing(11)
    solver = Exact(node_limit=50, milp_nodes=1)
    with pytest.warns(WorkLimitWarning, match="2 of 2 samples are not proved nearest") as told:
        p = gdpnet.project(rules, yhat, solver=solver)
    assert len(told) == 1
    assert (p.status == Status.LIMIT).all()
    assert rules.satisfied(p.y, tol=1e-8).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = gdpnet.project(rules, yhat, solver=solver)
        assert torch.equal(again.y, p.y)
        # Neither threads nor the order of the batch matter.
        other = gdpnet.project(rules, yhat.flip(0), solver=solver, threads=2)
        assert torch.equal(other.y.flip(0), p.y)
        assert torch.equal(other.info.nodes.flip(0), p.info.nodes)
