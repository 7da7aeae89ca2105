"""Work spread over processes, and its results as they come."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Protocol, TypeVar

from gdpnet.errors import SolverError

Item = TypeVar("Item")
Result = TypeVar("Result")


class Runner(Protocol):
    """Runs work on many items, somewhere."""

    def run(
        self, work: Callable[[Item], Iterable[Result]], items: Sequence[Item]
    ) -> Iterator[Result]:
        """What a work yields for each item, in the order in which it comes.

        Where an item fails what is under way ends, nothing else begins, and the error is raised
        when all of that has been yielded.

        Args:
            work: called with one item; can be pickled, as its items and results can.
            items: for each of them.
        """
        ...


class Processes:
    """Processes of this machine, each with one item at a time.

    Args:
        jobs: how many.

    Example:
        >>> Processes(4)
        Processes(4)
    """

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def run(
        self, work: Callable[[Item], Iterable[Result]], items: Sequence[Item]
    ) -> Iterator[Result]:
        """What a work yields for each item, in the order in which it comes; see `Runner`."""
        context = multiprocessing.get_context("spawn")
        queue = context.SimpleQueue()
        jobs = min(self._jobs, len(items))
        with ProcessPoolExecutor(jobs, context, _keep, (queue,)) as pool:
            running: set[Future[None]] = {pool.submit(_drain, work, item) for item in items}
            failures: list[BaseException] = []
            try:
                while running:
                    ended, running = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)
                    while not queue.empty():
                        yield queue.get()
                    failures += [error for future in ended if (error := future.exception())]
                    if failures:
                        running = {future for future in running if not future.cancel()}
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise
            while not queue.empty():
                yield queue.get()
        if failures:
            if isinstance(failures[0], BrokenProcessPool):
                raise SolverError(
                    "A process was killed from outside, perhaps for want of memory. The same "
                    "command goes on from here; fewer --jobs need less memory."
                ) from None
            raise failures[0]

    def __repr__(self) -> str:
        return f"Processes({self._jobs})"


# Of a worker: where its results go.
_queues: list[Any] = []


def _keep(queue: Any) -> None:
    _queues.append(queue)


def _drain(work: Callable[[Item], Iterable[Result]], item: Item) -> None:
    parent = os.getppid()
    for result in work(item):
        leave_if_orphaned(parent)
        _queues[0].put(result)


def leave_if_orphaned(parent: int) -> None:
    """End this process where the one that wanted its results is gone.

    It may have been started again, and have work of this one done by another.

    Args:
        parent: what `os.getppid` said at the start.
    """
    if os.getppid() != parent:
        os._exit(1)
