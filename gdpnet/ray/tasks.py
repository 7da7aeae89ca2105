"""Tasks: work spread over a Ray cluster, and its results as they come."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from gdpnet.checks import check_count
from gdpnet.errors import SolverError
from gdpnet.extras import need
from gdpnet.study.spread import Item, Result

_AHEAD = 4  # tasks for a CPU that are submitted before it is free


class Tasks:
    """Runs each item as a task of a Ray cluster; what `spread=` of `gdpnet.study` takes.

    A task whose worker or node is lost is begun again on another. Files and studies are written so
    that this does no harm: a file is there once it is complete, a row of a study once. Everything
    that the work reads and writes has to be found under the same path on every node.

    Args:
        address: `"local"` starts Ray on this machine and stops it afterwards (without reporting
            usage statistics, unless `RAY_USAGE_STATS_ENABLED` says so); `"auto"` or `HOST:PORT`
            joins a cluster. Where the process is connected already, that cluster is used.
        num_cpus: CPUs that a task takes.
        retries: how often a task is begun again whose worker or node was lost.

    Example:
        >>> gdpnet.study.project_folder(rules, "in", "out", spread=Tasks("auto"))  # doctest: +SKIP
    """

    def __init__(self, address: str = "local", *, num_cpus: float = 1, retries: int = 8) -> None:
        check_count("retries", retries)
        self._address, self._num_cpus, self._retries = address, num_cpus, retries

    def run(
        self, work: Callable[[Item], Iterable[Result]], items: Sequence[Item]
    ) -> Iterator[Result]:
        """What a work yields for each item, in the order in which it comes.

        Args:
            work: called with one item.
            items: for each of them; see `gdpnet.study.spread.Runner`.
        """
        ray = need("ray", "ray", "Clusters need")
        with _connected(ray, self._address):
            task = ray.remote(_results).options(
                num_cpus=self._num_cpus, max_retries=self._retries, num_returns="streaming"
            )
            shared = ray.put(work)
            yield from _collected(ray, (task.remote(shared, item) for item in items))

    def __repr__(self) -> str:
        return f"Tasks({self._address!r})"


def _results(work: Callable[[Item], Iterable[Result]], item: Item) -> Iterator[Result]:
    yield from work(item)


def _collected(ray: Any, streams: Iterator[Any]) -> Iterator[Any]:
    """Results of streams as they come; where one fails no other begins, and it is raised last."""
    most = _AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
    running = list(islice(streams, most))
    failure: Exception | None = None
    while running:
        ready, _ = ray.wait(running, num_returns=1, timeout=1.0)
        for stream in ready:
            try:
                yield ray.get(next(stream))
                continue
            except StopIteration:
                pass
            except ray.exceptions.RayError as error:
                failure = failure or error
                streams = iter(())
            running.remove(stream)
            running += islice(streams, 1)
    if failure is not None:
        raise _told(failure) from None


def _told(error: Exception) -> Exception:
    """What went wrong in a task, as it would have been raised here."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, Exception):
        return cause
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return SolverError(
        f"Ray gave a task up: {reason} The same command goes on from here; its logs tell more."
    )


@contextlib.contextmanager
def _connected(ray: Any, address: str) -> Iterator[None]:
    if ray.is_initialized():
        yield
        return
    # Nobody asked for what is sent by default when a cluster is started.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    own = {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    try:
        ray.init(
            address, log_to_driver=False, logging_level="ERROR", **own if address == "local" else {}
        )
    except (ConnectionError, ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise SolverError(f"Ray at {address!r} cannot be reached: {reason}") from None
    try:
        yield
    finally:
        ray.shutdown()
