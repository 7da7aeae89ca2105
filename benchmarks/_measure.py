"""Times, and tables that go to the screen and to a file."""

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
    start = clock()
    function()
    once = max(clock() - start, 1e-7)
    inner = max(1, int(least / repeats / once))
    times = []
    for _ in range(repeats):
        start = clock()
        for _ in range(inner):
            function()
        times.append((clock() - start) / inner)
    return statistics.median(times)


class Report:
    """Lines that are printed as they come, and kept."""

    def __init__(self) -> None:
        self._said: list[str] = []

    def say(self, line: str) -> None:
        """Print a line and keep it."""
        print(line, flush=True)
        self._said.append(line)

    def write(self, path: Path | None) -> None:
        """Write what was said to a file, if one was asked for."""
        if path:
            path.write_text("\n".join(self._said) + "\n")
