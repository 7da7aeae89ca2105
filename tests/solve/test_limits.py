"""Limits, interruptions, and what is returned when nothing was found."""

from __future__ import annotations

import _thread
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet import Status
from gdpnet.lp.clock import UNLIMITED, Clock, run_beside

DOUBLE = torch.float64


def market_split(rows: int = 5, columns: int = 40) -> gdpnet.RuleModel:
    """Equalities over binaries that no branching finishes in this life."""
    numbers = np.random.default_rng(1).integers(0, 99, (rows, columns))
    m = pyo.ConcreteModel()
    m.n = pyo.Var(range(columns), domain=pyo.Integers, bounds=(0, 1))
    m.c = pyo.ConstraintList()
    for line in numbers.tolist():
        m.c.add(sum(a * m.n[j] for j, a in enumerate(line)) == sum(line) // 2)
    m.u = pyo.Var(bounds=(0, 1))
    m.r = Disjunction(expr=[[m.u <= 0.3], [m.u >= 0.7]])
    return gdpnet.RuleModel(m, outputs=[m.n, m.u])


@pytest.mark.parametrize("keywords", [{}, {"solver": "milp"}])
def test_one_limit_for_the_whole_of_a_sample(keywords: dict[str, Any]) -> None:
    rules = market_split()
    yhat = torch.full((1, 41), 0.5, dtype=DOUBLE)
    gdpnet.project(rules, yhat, time_limit=0.01, **keywords)  # imports, kernels
    started = time.monotonic()
    p = gdpnet.project(rules, yhat, time_limit=2.0, **keywords)
    assert 1.0 < time.monotonic() - started < 4.0  # generous: machines are shared
    assert Status(int(p.status)) is Status.UNSOLVED
    assert torch.equal(p.y, yhat)
    assert p.distance.isinf().all()
    assert "none was excluded" in Status.UNSOLVED.message


def test_a_limit_with_a_feasible_output_says_limit() -> None:
    rng = np.random.default_rng(0)
    count, height = 12, 10
    long, high = rng.integers(1, 6, count).tolist(), rng.integers(1, 5, count).tolist()
    end = int(np.ceil(np.dot(long, high) / height * 1.15))
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(count), bounds=lambda m, i: (0, end - long[i]))
    m.y = pyo.Var(range(count), bounds=lambda m, i: (high[i], height))
    pairs = [(i, j) for i in range(count) for j in range(i)]
    m.apart = Disjunction(
        pairs,
        rule=lambda m, i, j: [
            [m.x[i] + long[i] <= m.x[j]],
            [m.x[j] + long[j] <= m.x[i]],
            [m.y[i] - high[i] >= m.y[j]],
            [m.y[j] - high[j] >= m.y[i]],
        ],
    )
    rules = gdpnet.RuleModel(m, outputs=[m.x, m.y])
    yhat = torch.from_numpy(rng.uniform(0, 3 * end, (1, 2 * count)))
    p = gdpnet.project(rules, yhat, time_limit=3.0)
    assert Status(int(p.status)) is Status.LIMIT
    assert rules.satisfied(p.y).all()
    assert p.info.bound.item() <= p.distance.item() < np.inf
    assert (p.disjunct >= 0).all()


# ---- rows that move in steps -----------------------------------------------------------------


def parity(right: Any, inputs: bool = False) -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.x = pyo.Param(mutable=True, initialize=1.0)
    m.n = pyo.Var(range(2), domain=pyo.Integers, bounds=(-(10**6), 10**6))
    m.g = pyo.Constraint(expr=4 * m.n[0] - 2 * m.n[1] == (m.x if inputs else right))
    m.r = Disjunction(expr=[[m.n[0] <= 3], [m.n[0] >= 700]])
    return gdpnet.RuleModel(m, outputs=[m.n], inputs=[m.x] if inputs else [])


@pytest.mark.parametrize("solver", ["auto", "milp"])
def test_a_row_off_its_steps_is_a_contradiction_at_once(solver: str) -> None:
    yhat = torch.tensor([[4.5, 8.0]], dtype=DOUBLE)
    p = gdpnet.project(parity(1), yhat, solver=solver)
    assert Status(int(p.status)) is Status.CONFLICT
    assert p.info.nodes.item() < 100
    assert parity(1).explain_conflict() == ["g", "n[0] is whole", "n[1] is whole"]
    even = gdpnet.project(parity(2), yhat, solver=solver)
    assert Status(int(even.status)) is Status.PROJECTED
    assert even.y.tolist() == [[3.0, 5.0]]


@pytest.mark.parametrize("solver", ["auto", "milp"])
def test_steps_follow_the_inputs(solver: str) -> None:
    yhat = torch.tensor([[4.5, 8.0]] * 3, dtype=DOUBLE)
    x = torch.tensor([[1.0], [2.0], [3.5]], dtype=DOUBLE)
    p = gdpnet.project(parity(None, inputs=True), yhat, x, solver=solver)
    assert [Status(int(s)).name for s in p.status] == ["CONFLICT", "PROJECTED", "CONFLICT"]
    assert p.y[1].tolist() == [3.0, 5.0]


@pytest.mark.parametrize("solver", ["auto", "milp"])
def test_inequalities_between_integers_are_rounded_to_their_steps(solver: str) -> None:
    """`2 a + 2 b <= -454674.5` is `a + b <= -227338`, or branching would never end."""
    m = pyo.ConcreteModel()
    m.x = pyo.Param(mutable=True, initialize=-454674.5)
    m.n = pyo.Var(range(2), domain=pyo.Integers, bounds=(-(10**6), 10**6))
    m.r = Disjunction(expr=[[m.n[0] - 2 * m.n[1] >= 2 * 10**6], [2 * m.n[0] + 2 * m.n[1] <= m.x]])
    rules = gdpnet.RuleModel(m, outputs=[m.n], inputs=[m.x])
    x = torch.tensor([[-454674.5], [-454674.0]], dtype=DOUBLE)
    p = gdpnet.project(rules, torch.tensor([[704.0, 274.0]] * 2, dtype=DOUBLE), x, solver=solver)
    assert (p.status == Status.PROJECTED).all()
    assert p.y.sum(1).tolist() == [-227338.0, -227337.0]
    assert p.distance.tolist() == [704 + 274 + 227338, 704 + 274 + 227337]
    assert (p.info.nodes < 50).all()


def test_a_disjunct_off_its_steps_is_left_out() -> None:
    m = pyo.ConcreteModel()
    m.n = pyo.Var(range(2), domain=pyo.Integers, bounds=(-1000, 1000))
    m.r = Disjunction(expr=[[2 * m.n[0] - 2 * m.n[1] == 1], [m.n[0] >= 90]])
    rules = gdpnet.RuleModel(m, outputs=[m.n])
    for solver in ("auto", "milp"):
        p = gdpnet.project(rules, torch.tensor([[4.0, 4.0]], dtype=DOUBLE), solver=solver)
        assert p.y.tolist() == [[90.0, 4.0]]
        assert p.disjunct.tolist() == [[1]]


# ---- interruptions ---------------------------------------------------------------------------

_INTERRUPTED = """
import os, signal, sys, threading, time
import torch, gdpnet
from tests.solve.test_limits import market_split
signal.signal(signal.SIGINT, signal.default_int_handler)
solver = {"milp": "milp", "exact": gdpnet.solve.Exact(node_limit=10**9)}[sys.argv[1]]
rules = market_split()
yhat = torch.full((int(sys.argv[2]), 41), 0.5, dtype=torch.float64)
gdpnet.project(rules, yhat[:1], solver=solver, time_limit=0.01)
sent = []
def send():
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
threading.Timer(1.0, send).start()
try:
    gdpnet.project(rules, yhat, solver=solver, threads=int(sys.argv[3]))
except KeyboardInterrupt:
    print("interrupted after", time.monotonic() - sent[0])
p = gdpnet.project(rules, yhat[:1], solver=solver, time_limit=0.2)
print("usable", p.status.tolist())
"""


@pytest.mark.parametrize(
    ("solver", "samples", "threads"),
    [
        *(("milp", 3, 1), ("milp", 3, 2)),
        # A search on the main thread, and searches that it waits for.
        *(("exact", 1, 1), ("exact", 20, 2)),
    ],
)
def test_ctrl_c_ends_a_call(solver: str, samples: int, threads: int) -> None:
    found = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED, solver, str(samples), str(threads)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=os.getcwd(),
    )
    first, second = found.stdout.splitlines()
    assert first.startswith("interrupted after"), found.stderr
    assert float(first.split()[-1]) < (1.0 if solver == "milp" else 0.5)  # 0.1 with cores to spare
    assert second == f"usable [{int(Status.UNSOLVED)}]"


def test_a_solver_that_does_not_look_at_its_clock_is_left_behind_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    release = threading.Event()
    started = time.monotonic()
    assert not run_beside(release.wait, lambda: None, Clock(0.1))
    assert time.monotonic() - started < 2.0
    assert "goes on in the background" in caplog.text
    # No second one is started beside it before its time is over.
    begun = threading.Event()
    assert not run_beside(begun.set, lambda: None, Clock(0.1))
    assert not begun.is_set()
    # Nor one that has no limit left behind: it is waited for.
    threading.Timer(0.5, release.set).start()
    assert run_beside(release.wait, lambda: None, Clock())
    assert run_beside(begun.set, lambda: None, Clock(5.0))
    assert begun.is_set()


def test_an_interruption_leaves_the_clock_that_all_share_alone() -> None:
    release = threading.Event()
    # Started in the background, a process ignores Ctrl-C, and nothing would ever interrupt this.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        # Ctrl-C, as it reaches a thread that waits for a solver.
        threading.Timer(0.3, _thread.interrupt_main).start()
        with pytest.raises(KeyboardInterrupt):
            run_beside(release.wait, release.set, UNLIMITED)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not UNLIMITED.over
    assert run_beside(lambda: None, lambda: None, UNLIMITED)


def test_clocks() -> None:
    assert Clock().left is None
    assert not Clock().over
    clock = Clock(100.0)
    assert 99 < (clock.left or 0) <= 100
    half = clock.part(0.5)
    assert 49 < (half.left or 0) <= 50
    clock.cancel()
    assert clock.over
    assert half.over
    assert Clock(None, 7).part(0.5).nodes == 7
