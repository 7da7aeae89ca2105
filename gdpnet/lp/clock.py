"""One limit of time for everything that is done for a sample or a batch, and calling it off."""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections.abc import Callable

logger = logging.getLogger("gdpnet")

BESIDE = "gdpnet solver"
"""Name of the threads that solvers run in."""

_LOOK = 0.05  # seconds between two looks at the clock
_GRACE = 0.3  # seconds that a solver has to stop once it was asked to
_LAST_GRACE = 60.0  # and once the process ends


class Clock:
    """Seconds that are left; it starts when it is made.

    Args:
        seconds: the limit, or None for none.
        nodes: of each mixed-integer program, or None for no limit: counted, so that what is found
            does not depend on the clock.
    """

    def __init__(self, seconds: float | None = None, nodes: int | None = None) -> None:
        self.nodes = nodes
        self._end = None if seconds is None else time.monotonic() + seconds
        self._cancelled = threading.Event()

    def __reduce__(self) -> str | tuple[object, ...]:
        """What is left; no limit stays that very object, by which it is known."""
        return "UNLIMITED" if self is UNLIMITED else (Clock, (self.left, self.nodes))

    @property
    def left(self) -> float | None:
        """Seconds left, at least 0; None without a limit."""
        if self._cancelled.is_set():
            return 0.0
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    @property
    def over(self) -> bool:
        """Whether nothing is left."""
        return self.left == 0.0

    def cancel(self) -> None:
        """Call everything off that looks at this clock."""
        self._cancelled.set()

    def part(self, share: float) -> Clock:
        """A clock with a part of what is left, called off with this one."""
        left = self.left
        shared = Clock(None if left is None else left * share, self.nodes)
        shared._cancelled = self._cancelled
        return shared

    def share(self, parts: float, most: float | None = None) -> float | None:
        """Seconds for one of equal parts of what is left; None without a limit.

        Args:
            parts: their number.
            most: a limit that the part has besides, or None.
        """
        limits = [self.left if self.left is None else self.left / parts, most]
        return min((limit for limit in limits if limit is not None), default=None)


UNLIMITED = Clock()

_left_behind: list[threading.Thread] = []
_lock = threading.Lock()


def run_beside(run: Callable[[], object], stop: Callable[[], object], clock: Clock) -> bool:
    """Run a solver in a thread of its own and wait for it: until it ends or the time is over.

    Waiting can be interrupted by Ctrl-C where running cannot, and a solver that does not look at
    its own clock is left behind, one at most: while it runs, others with a limit wait for it.

    Args:
        run: runs the solver.
        stop: asks it to stop.
        clock: when to ask it.

    Returns:
        Whether it ended.
    """
    if clock.left is not None and not _wait_for_left_behind(clock.left):
        return False
    done = threading.Event()
    failure: list[Exception] = []

    def work() -> None:
        try:
            run()
        except Exception as error:  # the caller's, not this thread's
            failure.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=work, daemon=True, name=BESIDE)
    thread.start()
    try:
        while not done.wait(_LOOK):
            if clock.over:
                break
        else:
            if failure:
                raise failure[0]
            return True
        stop()
        if done.wait(_GRACE):
            return True
    except BaseException:  # the clock goes on: others may look at it
        stop()
        done.wait(_GRACE)
        raise
    return _leave_behind(thread)


def _wait_for_left_behind(seconds: float) -> bool:
    """Whether no solver is left behind any more, after some time at most."""
    with _lock:
        _left_behind[:] = [thread for thread in _left_behind if thread.is_alive()]
        running = list(_left_behind)
    for thread in running:
        thread.join(seconds)
    return not any(thread.is_alive() for thread in running)


@atexit.register
def _wait_at_exit() -> None:
    """A process that ends while a solver runs would be aborted by its threads."""
    _wait_for_left_behind(_LAST_GRACE)


def _leave_behind(thread: threading.Thread) -> bool:
    """Leave a solver behind, unless there is one already: then wait for it to end."""
    with _lock:
        _left_behind[:] = [other for other in _left_behind if other.is_alive()]
        if not _left_behind:
            _left_behind.append(thread)
            logger.warning(
                "A solver did not stop at its time limit; it goes on in the background until it "
                "looks at its clock, and its answer is not used."
            )
            return False
    logger.warning(
        "A second solver does not stop at its time limit; waiting for it, since one at most is "
        "left behind."
    )
    thread.join()
    return True
