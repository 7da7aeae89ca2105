"""Ray: whoever is killed, every row is there once, and is what one process writes."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pytest
import ray
import ray.data
import torch

import gdpnet
import gdpnet.ray
from gdpnet.errors import InputError
from gdpnet.study import BatchProjector, Grid, StudyFolder, project_folder, train
from tests.cli._calls import run
from tests.study._tables import contents, ids, table, two_rules, write_folder
from tests.study._tasks import GAP, untimed

ROOT = Path(__file__).parents[2]
FILES, ROWS = 6, 40
# So slow that a file takes part of a second, and there is somebody to be killed.
SLOWLY: dict[str, Any] = {"solver": "milp", "chunk": 4}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables") / "in"
    write_folder(folder, FILES, ROWS)
    return folder


@pytest.fixture(scope="module")
def expected(source: Path) -> dict[str, bytes]:
    """What one process writes."""
    project_folder(two_rules(), source, source.parent / "one", jobs=1, **SLOWLY)
    return contents(source.parent / "one")


def writing(out: Path) -> list[int]:
    """Processes that are in the middle of a file."""
    files = (re.search(r"-(\d+)\.part$", file.name) for file in out.rglob(".*.part"))
    return [int(match[1]) for match in files if match]


@contextlib.contextmanager
def killing(kill: Callable[[], bool]) -> Iterator[None]:
    """Tries to kill until that was done, while something else goes on."""
    done, over = threading.Event(), threading.Event()

    def work() -> None:
        while not over.wait(0.01):
            if kill():
                done.set()
                return

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert done.is_set(), "there was nobody to be killed"


def check(out: Path, expected: dict[str, bytes], done: Any) -> None:
    assert contents(out) == expected
    assert ids(out) == list(range(FILES * ROWS))
    assert done.rows == FILES * ROWS
    assert not list(out.rglob(".*.part"))


def test_a_node_is_killed(
    cluster: Any, nodes: Any, source: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    out = tmp_path / "out"

    def kill() -> bool:
        found = [node for worker in writing(out) if (node := cluster.node_of(worker))]
        if found:  # in the middle of a file
            cluster.kill(found[0])
        return bool(found)

    tasks = gdpnet.ray.Tasks(cluster.address)
    with killing(kill):
        done = project_folder(two_rules(), source, out, spread=tasks, **SLOWLY)
    check(out, expected, done)


def test_a_worker_is_killed(
    cluster: Any, nodes: Any, source: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    out = tmp_path / "out"

    def kill() -> bool:
        found = [worker for worker in writing(out) if cluster.node_of(worker)]
        if found:
            os.kill(found[0], signal.SIGKILL)
        return bool(found)

    tasks = gdpnet.ray.Tasks(cluster.address)
    with killing(kill):
        done = project_folder(two_rules(), source, out, spread=tasks, **SLOWLY)
    check(out, expected, done)


def test_the_driver_is_killed(
    cluster: Any, nodes: Any, source: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    program = (
        "import sys, gdpnet.ray\n"
        "from gdpnet.study import project_folder\n"
        "from tests.study._tables import two_rules\n"
        "tasks = gdpnet.ray.Tasks(sys.argv[3])\n"
        "project_folder(two_rules(), *sys.argv[1:3], spread=tasks, solver='milp', chunk=4)\n"
    )
    out, environment = tmp_path / "out", {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-c", program, source, out, cluster.address], env=environment
    )
    try:
        until = time.monotonic() + 300  # it imports torch, on a machine that may have other work
        while not (out.exists() and contents(out) and writing(out)):
            assert process.poll() is None, "it finished before it could be killed"
            assert time.monotonic() < until
            time.sleep(0.005)
    finally:
        process.kill()
        process.wait()
    before = contents(out)
    assert 0 < len(before) < len(expected)
    tasks = gdpnet.ray.Tasks(cluster.address)
    done = project_folder(two_rules(), source, out, spread=tasks, **SLOWLY)
    assert done.skipped >= len(before)
    assert contents(out) == expected
    assert ids(out) == list(range(FILES * ROWS))


def test_what_fails_in_a_task_is_told(cluster: Any, nodes: Any, tmp_path: Path) -> None:
    write_folder(tmp_path / "in", 2, 5)
    (tmp_path / "in" / "broken.parquet").write_bytes(b"no parquet")
    tasks = gdpnet.ray.Tasks(cluster.address)
    with pytest.raises(InputError, match=r"broken\.parquet cannot be read as parquet"):
        project_folder(two_rules(), tmp_path / "in", tmp_path / "out", spread=tasks)
    (tmp_path / "in" / "broken.parquet").unlink()
    project_folder(two_rules(), tmp_path / "in", tmp_path / "out", spread=tasks)
    assert ids(tmp_path / "out") == list(range(10))


def test_a_study_goes_on_when_a_node_is_killed(cluster: Any, nodes: Any, tmp_path: Path) -> None:
    gap = tmp_path / "gap.py"
    gap.write_text(GAP)
    grid = Grid(methods=("base", "dnf"), sizes=(12, 40), seeds=(0, 1), protocols=("long",))
    arrived: list[int] = []

    def finished(done: int, total: int) -> None:
        arrived.append(done)
        if done == 1:
            cluster.kill(nodes[0])

    tasks, out = gdpnet.ray.Tasks(cluster.address), tmp_path / "ray"
    rows = train(gap, grid, out, spread=tasks, finished=finished, save_every=0.05)
    assert arrived == list(range(9)), "every method once"
    alone = train(gap, grid, tmp_path / "one")
    key = ("protocol", "method", "size", "seed", "split")
    by_name = [
        sorted(untimed(r), key=lambda row: [str(row[k]) for k in key]) for r in (rows, alone)
    ]
    assert by_name[0] == by_name[1]
    files = sorted((tmp_path / "one" / "networks").rglob("*.pt"))
    assert len(files) == 8
    for file in files:
        other = out / "networks" / file.relative_to(tmp_path / "one" / "networks")
        one, two = (StudyFolder(out).load(each)["network"] for each in (file, other))  # type: ignore[index]
        assert all(torch.equal(one[name], two[name]) for name in one)
    assert not list((out / "networks").rglob("*.running.pt"))


def test_ray_data(cluster: Any, nodes: Any, tmp_path: Path) -> None:
    ray.init(cluster.address, log_to_driver=False)
    two_rules().save(tmp_path / "rules.json")
    rows = [table(ROWS, k, k * ROWS) for k in range(FILES)]
    found = (
        ray.data.from_arrow(rows)
        .map_batches(
            gdpnet.ray.Project,
            fn_constructor_args=[str(tmp_path / "rules.json")],
            fn_constructor_kwargs={"norm": "l2"},
            batch_format="pyarrow",
            compute=ray.data.ActorPoolStrategy(size=1),
            num_cpus=0.5,
        )
        .to_arrow_refs()
    )
    got = pyarrow.concat_tables(ray.get(found)).sort_by("id")
    wanted = BatchProjector(two_rules(), norm="l2")(pyarrow.concat_tables(rows)).sort_by("id")
    ray.shutdown()
    assert got.equals(wanted)


def test_the_command_line(cluster: Any, nodes: Any, source: Path, tmp_path: Path) -> None:
    two = Path(sys.modules["tests.study._tables"].__file__ or "").read_text()
    (tmp_path / "two.py").write_text(two.replace("def two_rules", "def build"))
    one, out = tmp_path / "one", tmp_path / "out"
    assert run("project", tmp_path / "two.py", source, one, "--jobs", 1).exit_code == 0
    result = run("project", tmp_path / "two.py", source, out, "--ray", cluster.address)
    assert result.exit_code == 0, result.output
    assert f"Projected {FILES * ROWS} rows" in result.stdout
    assert contents(out) == contents(one)
    (tmp_path / "gap.py").write_text(GAP)
    few = ("--sizes", "12", "--seeds", "0", "--protocols", "short", "--methods", "base,dnf")
    study = tmp_path / "study"
    result = run("train", tmp_path / "gap.py", "--out", study, *few, "--ray", cluster.address)
    assert result.exit_code == 0, result.output
    assert len(StudyFolder(study).finished()) == 2


def test_a_cluster_of_its_own(source: Path, tmp_path: Path) -> None:
    assert not ray.is_initialized()
    project_folder(two_rules(), source, tmp_path / "one", jobs=1)
    spread = gdpnet.ray.Tasks()
    project_folder(two_rules(), source, tmp_path / "out", spread=spread)
    assert contents(tmp_path / "out") == contents(tmp_path / "one")
    assert not ray.is_initialized(), "what was started was stopped"
    with pytest.raises(gdpnet.errors.SolverError, match="cannot be reached"):
        project_folder(two_rules(), source, tmp_path / "no", spread=gdpnet.ray.Tasks("nonsense"))
