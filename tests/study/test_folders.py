"""Folders of tables: as file by file, stopped and gone on with, never with other options."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pyomo.environ as pyo
import pytest

import gdpnet
from gdpnet.errors import InputError
from gdpnet.study import project_file, project_folder
from tests.study._tables import contents, ids, table, two_rules, write_folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write_folder(tmp_path / "in", files=4, rows=50)
    return tmp_path / "in"


def test_a_folder_is_its_files(source: Path, tmp_path: Path) -> None:
    (source / "more.csv").write_text("t,y[1],y[2]\n0,5,5\n0,,5\n")
    rules = two_rules()
    done = project_folder(rules, source, tmp_path / "out", chunk=16)
    assert done.rows == 202
    assert sum(done.statuses.values()) == 202
    assert done.statuses[gdpnet.Status.ERROR] == done.unusable == 1
    told = "more.csv: row 2 has no finite number in column 'y[1]', but an empty cell"
    assert done.first_unusable.endswith(told)
    assert done.skipped == 0
    found = contents(tmp_path / "out")
    assert set(found) == set(contents(source))
    for name, written in found.items():
        if "empty" not in name:
            alone = project_file(rules, source / name, tmp_path / "one" / name, chunk=16).path
            assert written == alone.read_bytes()
    empty = pyarrow.parquet.read_table(tmp_path / "out" / "part-empty.parquet")
    other = pyarrow.parquet.read_table(tmp_path / "out" / "part-000.parquet")
    assert empty.num_rows == 0
    assert empty.schema == other.schema
    names = {file.name for file in (tmp_path / "out").iterdir() if file.is_file()}
    assert names - set(found) == {"_gdpnet.json", ".lock"}
    # Readers of folders see the tables alone.
    assert len(pyarrow.parquet.read_table(tmp_path / "out" / "below")) == 50


@pytest.mark.slow
def test_processes_give_the_same_bytes(source: Path, tmp_path: Path) -> None:
    shares = []
    one = project_folder(two_rules(), source, tmp_path / "one", jobs=1)
    two = project_folder(
        two_rules(), source, tmp_path / "two", jobs=2, progress=lambda *told: shares.append(told)
    )
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert one.statuses == two.statuses
    assert shares[-1] == (200, 1.0)
    assert [s for _, s in shares] == sorted(s for _, s in shares)


def test_progress_is_told_within_a_file(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gdpnet.study.folders._PATIENCE", 0.0)
    told: list[tuple[int, float]] = []
    project_folder(
        two_rules(), source, tmp_path / "out", chunk=10, progress=lambda *now: told.append(now)
    )
    rows, shares = zip(*told, strict=True)
    assert list(rows) == sorted(rows)
    assert list(shares) == sorted(shares)
    assert {10, 20, 30, 200} <= set(rows)
    assert shares[-1] == 1.0


class Stopping:
    """Stops after some items, as a kill does."""

    def __init__(self, after: int) -> None:
        self.after, self.begun = after, []

    def run(self, work: Callable[[Any], Iterable[Any]], items: Sequence[Any]) -> Iterator[Any]:
        for k, item in enumerate(items):
            if k == self.after:
                raise KeyboardInterrupt
            self.begun.append(item)
            yield from work(item)


def test_a_stopped_run_goes_on(source: Path, tmp_path: Path) -> None:
    whole = project_folder(two_rules(), source, tmp_path / "whole")
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        project_folder(two_rules(), source, out, spread=Stopping(2))
    before = {name: (out / name).stat().st_mtime_ns for name in contents(out)}
    assert len(before) == 2
    left = Stopping(99)
    rest = project_folder(two_rules(), source, out, spread=left)
    assert rest.skipped == 2
    assert len(left.begun) == 3
    assert {name: (out / name).stat().st_mtime_ns for name in before} == before
    assert contents(out) == contents(tmp_path / "whole")
    assert project_folder(two_rules(), source, out).skipped == 5
    assert ids(out) == list(range(200))
    assert whole.rows == 200


def test_files_that_changed_or_came_are_projected(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    project_folder(two_rules(), source, out)
    pyarrow.parquet.write_table(table(9, 77), source / "part-000.parquet")
    pyarrow.parquet.write_table(table(8, 78), source / "part-new.parquet")
    # Stopped before the changed file was reached: what is there of it is old, and goes.
    with pytest.raises(KeyboardInterrupt):
        project_folder(two_rules(), source, out, spread=Stopping(0))
    assert not (out / "part-000.parquet").exists()
    done = project_folder(two_rules(), source, out)
    assert (done.rows, done.skipped) == (17, 4)
    project_folder(two_rules(), source, tmp_path / "anew")
    assert contents(out) == contents(tmp_path / "anew")


def test_folders_of_others_are_left_alone(source: Path, tmp_path: Path) -> None:
    rules, out = two_rules(), tmp_path / "out"
    project_folder(rules, source, out)
    before = contents(out)
    with pytest.raises(InputError, match="was begun with other options"):
        project_folder(rules, source, out, norm="l2")
    with pytest.raises(InputError, match="was begun with other rules"):
        project_folder(other_rules(), source, out)
    assert contents(out) == before
    done = project_folder(rules, source, out, norm="l2", overwrite=True)
    assert done.rows == 200
    assert contents(out) != before
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "precious.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty, and was not begun by such a run"):
        project_folder(rules, source, mine)
    assert [p.name for p in mine.iterdir() if p.name != ".lock"] == ["precious.txt"]
    (out / "_gdpnet.json").write_text(json.dumps({"files": 3}))
    with pytest.raises(InputError, match=r"_gdpnet\.json cannot be read"):
        project_folder(rules, source, out)


def other_rules() -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.t = pyo.Param(mutable=True, initialize=0.0)
    m.y = pyo.Var([1, 2], bounds=(0, 9))
    m.a = gdpnet.rule(gdpnet.any_of(m.y[1] <= m.t, m.y[2] >= 6))
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t])


def test_what_cannot_be_done_is_told(source: Path, tmp_path: Path) -> None:
    rules = two_rules()
    (tmp_path / "none").mkdir()
    (tmp_path / "file").touch()
    for folder, target, message in (
        (tmp_path / "nowhere", tmp_path / "out", "there is no such folder"),
        (tmp_path / "none", tmp_path / "out", "holds no files that end in .csv or .parquet"),
        (source, source / "out", "beside"),
        (source, tmp_path, "beside"),
        (source, tmp_path / "file", "is no folder"),
    ):
        with pytest.raises(InputError, match=message):
            project_folder(rules, folder, target)
    assert not (tmp_path / "out").exists()
    (source / "broken.parquet").write_bytes(b"no parquet")
    with pytest.raises(InputError, match=r"broken\.parquet cannot be read as parquet"):
        project_folder(rules, source, tmp_path / "out")


@pytest.mark.slow
def test_a_killed_run_goes_on(source: Path, tmp_path: Path) -> None:
    project_folder(two_rules(), source, tmp_path / "whole")
    program = (
        "import sys\n"
        "from gdpnet.study import project_folder\n"
        "from tests.study._tables import two_rules\n"
        "if __name__ == '__main__':\n"
        "    project_folder(two_rules(), sys.argv[1], sys.argv[2], jobs=2)\n"
    )
    script = tmp_path / "run.py"
    script.write_text(program)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    out = tmp_path / "out"
    process = subprocess.Popen([sys.executable, script, source, out], env=environment)
    try:
        while not contents(out) if out.exists() else True:
            assert process.poll() is None, "it finished before it could be killed"
            time.sleep(0.002)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    project_folder(two_rules(), source, out, jobs=1)
    assert contents(out) == contents(tmp_path / "whole")
    assert ids(out) == list(range(200))
