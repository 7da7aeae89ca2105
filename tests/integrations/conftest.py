"""Tests beside packages that gdpnet does not need: run by `make test-integrations`, where they are.

There a package that is missing is a failure. Elsewhere nothing of this is collected.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

if not os.environ.get("GDPNET_INTEGRATIONS"):
    collect_ignore_glob = ["test_*.py"]

# Nothing is sent anywhere, and nothing is fetched.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
# Or workers starve beside whatever else the machine does.
os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"


class LocalCluster:
    """A Ray cluster whose nodes are processes of this machine; all but the head have a CPU."""

    # 127.0.0.1 is what Ray would take for the machine's address to others.
    _how: ClassVar[dict[str, Any]] = {
        "num_cpus": 1,
        "node_ip_address": "127.0.0.2",
        "object_store_memory": 100 * 2**20,
    }

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        head = {**self._how, "num_cpus": 0, "include_dashboard": False}
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self.address = self._cluster.address

    def add(self) -> Any:
        node = self._cluster.add_node(**self._how)
        self._cluster.wait_for_nodes()
        return node

    def node_of(self, worker: int) -> Any:
        """The node of a process that works for it; None for others, and those that are gone."""
        import psutil

        try:
            parent = psutil.Process(worker).ppid()
        except psutil.NoSuchProcess:
            return None
        nodes = self._cluster.worker_nodes
        found = (n for n in nodes if n.all_processes["raylet"][0].process.pid == parent)
        return next(found, None)

    def kill(self, node: Any) -> None:
        if node in self._cluster.worker_nodes:
            self._cluster.remove_node(node, allow_graceful=False)

    def shutdown(self) -> None:
        self._cluster.shutdown()


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    import ray

    made = LocalCluster()
    try:
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


@pytest.fixture
def nodes(cluster: LocalCluster) -> Iterator[list[Any]]:
    """Two nodes that work."""
    made = [cluster.add() for _ in range(2)]
    yield made
    for node in made:
        cluster.kill(node)
