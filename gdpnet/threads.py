"""How many threads there are, and work on the samples of a batch in them where that pays."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")

FEW = 16
"""Samples that are no matter for threads, and those that are timed before threads are started."""
_WORTH_THREADS = 4e-3  # seconds of work that pay for starting them


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def workers_of(threads: int | None) -> int:
    """Threads to work in.

    Processes that share a machine (the ranks of a training, the workers of a loader) are given
    their share by the affinity mask or by torch's setting: neither is exceeded.

    Args:
        threads: as asked for, or None to choose.
    """
    return threads or min(cores(), torch.get_num_threads())


def in_threads(work: Callable[[tuple[int, int]], None], size: int, threads: int | None) -> None:
    """Work through samples 0..size-1.

    Args:
        work: does samples first..last-1; called from several threads.
        size: number of samples.
        threads: how many, or None to choose.
    """
    if size <= FEW:
        work((0, size))
        return
    first, workers = 0, workers_of(threads)
    if threads is None and workers > 1:
        # Threads cost more than they bring where there is little to do: look at a few samples.
        first = FEW
        start = time.perf_counter()
        work((0, first))
        expected = (time.perf_counter() - start) / first * (size - first)
        workers = 1 if expected < _WORTH_THREADS else workers
    if workers == 1:
        work((first, size))
        return
    # Four pieces a worker, so that a few hard samples do not leave the others idle.
    pieces = min(4 * workers, size - first)
    cuts = [first + (size - first) * k // pieces for k in range(pieces + 1)]
    map_in_threads(work, list(pairwise(cuts)), workers)


def map_in_threads(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    threads: int | None,
    cancel: Callable[[], None] = lambda: None,
) -> list[Result]:
    """What a function makes of each item, in their order.

    Args:
        function: called from several threads.
        items: what it is called with.
        threads: how many, or None to choose.
        cancel: called where one of them fails or the user interrupts: calls off those at work.
    """
    workers = min(len(items), workers_of(threads))
    if workers <= 1:
        return list(map(function, items))
    pool = ThreadPoolExecutor(workers)
    try:
        return list(pool.map(function, items))
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        cancel()
        raise
    finally:
        pool.shutdown()
