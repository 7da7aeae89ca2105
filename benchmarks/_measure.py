"""Times and memory."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path


def seconds(
    function: Callable[[], object],
    repeats: int = 9,
    least: float = 0.05,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Median time of a call; short calls are repeated within each measurement."""

    def once() -> float:
        start = clock()
        function()
        return max(clock() - start, 1e-7)

    first = once()
    if 0.0 < least < repeats * first:  # it may have imported something, and be short after all
        first = once()
    inner = max(1, int(least / repeats / first))
    times = []
    for _ in range(repeats):
        start = clock()
        for _ in range(inner):
            function()
        times.append((clock() - start) / inner)
    return statistics.median(times)


def resident_bytes() -> int | None:
    """Memory that the process holds, whoever took it; None where the system does not tell."""
    return _status("VmRSS")


def peak_bytes(function: Callable[[], object]) -> int | None:
    """What a call adds to the process at its peak, memory of compiled code included."""
    forget = Path("/proc/self/clear_refs")
    before = resident_bytes()
    if before is None or not forget.exists():
        return None
    forget.write_text("5")  # the peak starts anew
    function()
    return _status("VmHWM") - before


def _status(field: str) -> int | None:
    told = Path("/proc/self/status")
    lines = told.read_text().splitlines() if told.exists() else []
    found = [int(line.split()[1]) for line in lines if line.startswith(f"{field}:")]
    return 1024 * found[0] if found else None
