"""How many threads projections take: the process's share of the machine."""

from __future__ import annotations

import os
import threading
from typing import Any

import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet import core, threads
from gdpnet.lp.clock import BESIDE


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch):
    def give(mask: int | None, torchs: int) -> None:
        if mask is None:
            monkeypatch.delattr(os, "sched_getaffinity", raising=False)
        else:
            monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(mask)), raising=False)
        monkeypatch.setattr(os, "cpu_count", lambda: 96)
        monkeypatch.setattr(torch, "get_num_threads", lambda: torchs)

    return give


@pytest.mark.parametrize(
    ("mask", "torchs", "expected"), [(4, 96, 4), (96, 2, 2), (None, 96, 96), (None, 1, 1)]
)
def test_neither_the_mask_nor_torchs_setting_is_exceeded(settings, mask, torchs, expected) -> None:
    settings(mask, torchs)
    assert threads.cores() == (mask or 96)
    assert threads.workers_of(None) == expected
    assert threads.workers_of(7) == 7  # as asked for


def test_the_mask_of_this_process() -> None:
    if not hasattr(os, "sched_getaffinity"):
        pytest.skip("this system has no affinity masks")
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert threads.cores() == 1
    finally:
        os.sched_setaffinity(0, before)
    assert threads.cores() == len(before)


def test_the_core_is_told(settings, monkeypatch) -> None:
    """How many threads a search may use, and whether somebody asked for that number."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.gap = Disjunction(expr=[[m.y <= 3], [m.y >= 7]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    told = []

    find = core.find_nearest

    def noted(*arguments: Any) -> Any:
        told.append(arguments[9:11])
        return find(*arguments)

    monkeypatch.setattr(core, "find_nearest", noted)
    yhat = torch.linspace(3.5, 6.5, 130, dtype=torch.float64).reshape(-1, 1)
    settings(1, 96)
    gdpnet.project(rules, yhat)
    gdpnet.project(rules, yhat, threads=2)
    settings(8, 3)
    gdpnet.project(rules, yhat)
    assert told == [(1, False), (2, True), (3, False)]


@pytest.mark.parametrize(("solver", "relaxation"), [("milp", "dnf"), ("highs", "cnf")])
def test_every_solver_asks(settings, monkeypatch, solver, relaxation) -> None:
    """With a mask of one core nobody starts a thread, however many cores there are."""
    settings(1, 96)
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.gap = Disjunction(expr=[[m.y <= 3], [m.y >= 7]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    monkeypatch.setattr(threads, "_WORTH_THREADS", 0.0)
    started: list[threading.Thread] = []
    start = threading.Thread.start
    monkeypatch.setattr(
        threading.Thread, "start", lambda self: (started.append(self), start(self))[1]
    )
    yhat = torch.linspace(3.5, 6.5, 130, dtype=torch.float64).reshape(-1, 1)
    gdpnet.project(rules, yhat, solver=solver, relaxation=relaxation)
    # HiGHS runs beside whoever waits for it, so that waiting can be interrupted.
    assert all(thread.name == BESIDE for thread in started)
    gdpnet.project(rules, yhat, solver=solver, relaxation=relaxation, threads=2)
    assert not all(thread.name == BESIDE for thread in started)
