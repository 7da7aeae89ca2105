"""Work on the samples of a batch, in threads where that pays."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

_PROBE = 16  # samples that are timed before threads are started
_WORTH_THREADS = 4e-3  # seconds of work that pay for starting them
_CORES = os.cpu_count() or 1


def in_threads(work: Callable[[tuple[int, int]], None], size: int, threads: int | None) -> None:
    """Work through samples 0..size-1.

    Args:
        work: does samples first..last-1; called from several threads.
        size: number of samples.
        threads: how many, or None to choose.
    """
    if size <= _PROBE:
        work((0, size))
        return
    first, workers = 0, threads or _CORES
    if threads is None and workers > 1:
        # Threads cost more than they bring where there is little to do: look at a few samples.
        first = _PROBE
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
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, pairwise(cuts)))
