"""One peer on one case at one batch: times, answers, gradients."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from .adapters._base import Peer
from .problem import Array, Problem, Samples

MOST_REPEATS = 15
LEAST_REPEATS = 3
LEAST_SAMPLES = 4
SLOW = 2.0  # seconds a sample, above which one has to do


@dataclass(frozen=True)
class Budget:
    """Seconds of processor time that a cell may take.

    Attributes:
        timing: for the repeats forward, and again for those forward and backward.
        building: for the programs of the sets of active rules.
    """

    timing: float = 1.5
    building: float = 8.0


def measure(peer_type: type[Peer], problem: Problem, batch: int, budget: Budget) -> dict[str, Any]:
    """Everything about a cell that needs the peer.

    A slow peer gets fewer samples than the batch has, so that a call takes a sixth of the time for
    repeats at most; times are per sample.

    Returns:
        `count` samples; `building`, `forward` and `both` in seconds of processor time, the latter
        two a sample and one a repeat; `y`, `gradient`, `tied` (answers to ties); `memory` (MB,
        before and at most); `cores` (processor time over time while timing: 1 is one thread).
    """
    torch.set_num_threads(1)
    before = _memory()
    start = time.process_time()
    peer = peer_type(problem)
    samples, index = problem.random, np.arange(1)
    peer.prepare(samples, index)
    most = 64 if batch == 1 else min(batch, len(samples))
    if peer.whole and batch > 1:
        index = np.arange(most)
        peer.prepare(samples, index)
    building = time.process_time() - start
    while True:
        count = len(index)
        y, once = _quickest(peer, samples, index, budget)
        wanted = min(4 * count, int(budget.timing / 6 * count / once))
        if batch == 1:
            wanted = most
        elif once < SLOW:  # a warm start from the answer to the same sample would be no work
            wanted = max(wanted, LEAST_SAMPLES)
        if min(wanted, most) <= count or building > budget.building:
            break
        start = time.process_time()
        while count < min(wanted, most):
            peer.prepare(samples, np.array([count]))
            count += 1
            if building + time.process_time() - start > budget.building:
                break
        building += time.process_time() - start
        index = np.arange(count)
        if batch == 1:
            break
    found: dict[str, Any] = {"count": count, "building": building}
    used = time.process_time(), time.perf_counter()
    if batch == 1:
        _one_by_one(peer, samples, count, budget, found)
    else:
        found["forward"] = _repeat(lambda: _call(peer, samples, index), budget.timing) / count
        if peer.differentiable:
            found["gradient"] = _gradient(peer, samples, index)
            both = _repeat(lambda: _gradient(peer, samples, index), budget.timing)
            found["both"] = both / count
    found["cores"] = (time.process_time() - used[0]) / (time.perf_counter() - used[1])
    if batch > 1:
        found["y"] = y if once > budget.timing else _answers(peer, samples, index, once, budget)
    if problem.ties is not None and len(problem.ties):
        tied = np.arange(min(len(problem.ties), max(1, int(budget.timing * count / once))))
        peer.prepare(problem.ties, tied)
        found["tied"] = _call(peer, problem.ties, tied).numpy()
    found["memory"] = before, _memory()
    return found


def _quickest(peer: Peer, samples: Samples, index: Array, budget: Budget) -> tuple[Array, float]:
    """Answers, and the time of the quickest of a few calls; of the first if that takes long."""
    start = time.process_time()
    y = _call(peer, samples, index).numpy()
    times = [time.process_time() - start]
    while len(times) < 5 and sum(times) < (budget.timing / 6 if len(times) > 1 else 1.0):
        times.append(_seconds(lambda: _call(peer, samples, index)))
    return y, min(times)


def _one_by_one(
    peer: Peer, samples: Samples, count: int, budget: Budget, found: dict[str, Any]
) -> None:
    """Every sample in a call of its own; all of them once before any is timed."""
    singles = [np.array([s]) for s in range(count)]
    start, y = time.process_time(), []
    for index in singles:
        y.append(_call(peer, samples, index).numpy())
        if len(y) >= LEAST_REPEATS and time.process_time() - start > budget.timing:
            break
    singles = singles[: len(y)]
    forward = [_seconds(lambda index=index: _call(peer, samples, index)) for index in singles]
    both, gradient = [], []
    for index in singles if peer.differentiable else []:
        if len(both) >= LEAST_REPEATS and sum(both) > budget.timing:
            break
        gradient.append(_gradient(peer, samples, index))
        both.append(_seconds(lambda index=index: _gradient(peer, samples, index)))
    found.update(count=len(y), y=np.concatenate(y), forward=np.array(forward))
    if both:
        found.update(both=np.array(both), gradient=np.concatenate(gradient))


def _answers(peer: Peer, samples: Samples, index: Array, once: float, budget: Budget) -> Array:
    """Answers to more samples than are timed, where that takes little time."""
    count = len(index)
    wanted = min(len(samples), max(count, min(256, int(budget.timing * count / once))))
    start = time.process_time()
    while count < wanted and time.process_time() - start < budget.building / 2:
        peer.prepare(samples, np.array([count]))
        count += 1
    return _call(peer, samples, np.arange(count)).numpy()


def _call(peer: Peer, samples: Samples, index: Array) -> torch.Tensor:
    with torch.no_grad():
        return peer.layer(torch.from_numpy(samples.yhat[index]), samples, index)


def _gradient(peer: Peer, samples: Samples, index: Array) -> Array:
    """Of `sum(cos(j) y_j)` with respect to the predictions, (n, d)."""
    leaf = torch.from_numpy(samples.yhat[index]).requires_grad_()
    y = peer.layer(leaf, samples, index)
    y.backward(loss_gradient(y.shape[1]).expand(len(y), -1))
    assert leaf.grad is not None
    return leaf.grad.numpy()


def loss_gradient(d: int) -> torch.Tensor:
    """What all gradients are pulled back from, (d,)."""
    return torch.cos(torch.arange(d, dtype=torch.float64))


def _repeat(function: Callable[[], object], budget: float) -> Array:
    """Times of a call; short calls are repeated within each, or one hiccup would be all of it."""
    calls = max(1, int(budget / MOST_REPEATS / max(_seconds(function), 1e-6)))
    taken: list[float] = []
    while len(taken) < MOST_REPEATS:
        if len(taken) >= LEAST_REPEATS and calls * sum(taken) > budget:
            break
        taken.append(_seconds(function, calls))
    return np.array(taken)


def _seconds(function: Callable[[], object], calls: int = 1) -> float:
    """Processor time of a call, of all threads: other work on the machine disturbs it little."""
    start = time.process_time()
    for _ in range(calls):
        function()
    return (time.process_time() - start) / calls


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
