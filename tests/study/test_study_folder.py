"""A study can be killed and goes on; what is damaged or somebody else's is left alone."""

from __future__ import annotations

import csv
import dataclasses
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from gdpnet.errors import InputError, SolverError
from gdpnet.study import Grid, StudyFolder, keep_whole, train
from tests.study._tasks import GAP, TIMES, untimed

GRID = Grid(methods=("base", "dnf"), sizes=(40,), seeds=(0,), protocols=("long",))


@pytest.fixture
def gap(tmp_path: Path) -> Path:
    path = tmp_path / "gap.py"
    path.write_text(GAP)
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_killed_and_resumed_is_bit_identical(gap: Path, tmp_path: Path) -> None:
    out = tmp_path / "killed"
    program = (
        "import sys; from gdpnet.study import Grid, train\n"
        "grid = Grid(methods=('base', 'dnf'), sizes=(40,), seeds=(0,), protocols=('long',))\n"
        "train(sys.argv[1], grid, sys.argv[2], save_every=0.0)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen([sys.executable, "-c", program, gap, out], env=environment)
    # Kill it in the second stage, when some of its steps have been saved.
    running = out / "networks" / "long" / "n40-seed0-base+dnf.running.pt"
    try:
        while not running.exists():
            assert process.poll() is None, "it finished before it could be killed"
            time.sleep(0.002)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert [row["method"] for row in StudyFolder(out).results()] == ["base", "base"]
    state = StudyFolder(out).load(running)
    assert state is not None
    assert 0 < state["step"] < 1600
    resumed = train(gap, GRID, out)
    whole = train(gap, GRID, tmp_path / "whole")
    assert untimed(resumed) == untimed(whole)
    assert not running.exists()
    name = "networks/long/n40-seed0-base+dnf.pt"
    one, other = (StudyFolder(out).load(folder / name) for folder in (out, tmp_path / "whole"))
    assert one["network"].keys() == other["network"].keys()
    assert all(one["network"][key].equal(other["network"][key]) for key in one["network"])


def test_a_finished_study_is_not_trained_again(gap: Path, tmp_path: Path) -> None:
    grid = Grid(methods=("base", "dnf"), sizes=(12,), seeds=(0,), protocols=("short",))
    train(gap, grid, tmp_path / "out")
    before = contents(tmp_path / "out")
    train(gap, grid, tmp_path / "out")
    assert contents(tmp_path / "out") == before
    larger = Grid(methods=("base", "cnf"), sizes=(12, 16), seeds=(0,), protocols=("short",))
    train(gap, larger, tmp_path / "out")
    old = before["results.csv"].decode()
    assert (tmp_path / "out" / "results.csv").read_text().startswith(old)
    assert len(StudyFolder(tmp_path / "out").finished()) == 5


@pytest.mark.slow
def test_two_processes_give_the_same_table(gap: Path, tmp_path: Path) -> None:
    grid = Grid(methods=("base", "dnf"), sizes=(12, 16), seeds=(0,), protocols=("short",))
    alone = train(gap, grid, tmp_path / "one")
    together = train(gap, grid, tmp_path / "two", jobs=2)
    assert untimed(alone) == untimed(together)


@pytest.mark.slow
def test_what_other_processes_finish_is_kept_when_one_fails(gap: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    train(gap, Grid(methods=("base",), sizes=(12,), seeds=(0,), protocols=("short",)), out)
    (out / "networks" / "short" / "n12-seed0-base.pt").write_bytes(b"")
    grid = Grid(methods=("base", "dnf"), sizes=(12, 16), seeds=(0,), protocols=("short",))
    with pytest.raises(InputError, match="is damaged"):
        train(gap, grid, out, jobs=2)
    finished = {("short", method, 16, 0) for method in ("base", "dnf")}
    assert StudyFolder(out).finished() == {("short", "base", 12, 0), *finished}


@pytest.mark.slow
def test_a_killed_process_is_told(gap: Path, tmp_path: Path) -> None:
    gap.write_text(
        f"{GAP}\nimport multiprocessing, os, signal\n"
        "if multiprocessing.parent_process():\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    grid = Grid(methods=("base",), sizes=(12, 16), seeds=(0,), protocols=("short",))
    with pytest.raises(SolverError, match="was killed from outside"):
        train(gap, grid, tmp_path / "out", jobs=2)


def test_the_table_is_tidy(gap: Path, tmp_path: Path) -> None:
    grid = Grid(methods=("base", "dnf"), sizes=(12,), seeds=(0, 1), protocols=("short",))
    train(gap, grid, tmp_path / "out")
    with (tmp_path / "out" / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    keys = [tuple(r[k] for k in ("protocol", "method", "size", "seed", "split")) for r in rows]
    assert len(set(keys)) == len(keys) == 8
    for row in rows:
        assert None not in row
        assert None not in row.values()
        for name, value in row.items():
            if name not in ("protocol", "method", "split"):
                assert value == "" or float(value) >= 0
    assert set(rows[0]) >= {"mse", "csat", "csat_rules", "csat/gap", "csat/late", *TIMES}
    assert not list((tmp_path / "out").rglob("*.part"))


def test_a_study_says_by_what_and_on_what_it_was_trained(gap: Path, tmp_path: Path) -> None:
    grid = Grid(methods=("base",), sizes=(12,), seeds=(0,), protocols=("short",))
    folder = StudyFolder(tmp_path / "out")
    for seeds in ((0,), (0,), (0, 1)):  # the second has nothing to do, the third goes on
        train(gap, dataclasses.replace(grid, seeds=seeds), folder.path)
        (run,) = folder.study()["runs"]
        assert run["cpu"]
        assert {"commit", "dirty", "date", "torch", "cores", "command"} <= set(run)
    folder.record({**run, "torch": "another"})
    assert [one["torch"] for one in folder.study()["runs"]] == [run["torch"], "another"]


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "other"])
def test_a_damaged_checkpoint_is_named_and_left_alone(
    gap: Path, tmp_path: Path, damage: str
) -> None:
    grid = Grid(methods=("base",), sizes=(12,), seeds=(0,), protocols=("short",))
    out = tmp_path / "out"
    expected = train(gap, grid, out)
    (file,) = out.rglob("*base.pt")
    good = file.read_bytes()
    place = good.index(b"\x00" * 3, 400)
    if damage == "flip":
        # A byte of a tensor: torch itself loads it without a word.
        import zipfile

        with zipfile.ZipFile(file) as archive:
            (entry,) = [e for e in archive.infolist() if e.filename.endswith("data/0")]
            place = good.index(archive.read(entry))
    bad = {
        "cut": good[: len(good) // 2],
        "flip": good[:place] + bytes([good[place] ^ 64]) + good[place + 1 :],
        "empty": b"",
        "other": b"not a checkpoint",
    }[damage]
    file.write_bytes(bad)
    (out / "results.csv").unlink()
    before = contents(out)
    with pytest.raises(InputError, match=r"n12-seed0-base\.pt is damaged"):
        train(gap, grid, out)
    assert contents(out) == before
    assert untimed(train(gap, grid, out, force=True)) == untimed(expected)


def test_another_studys_folder_is_refused(gap: Path, tmp_path: Path) -> None:
    grid = Grid(methods=("base",), sizes=(12,), seeds=(0,), protocols=("short",))
    out = tmp_path / "out"
    train(gap, grid, out)
    before = contents(out)
    changes = [
        ("rules", GAP.replace("<= 0.25", "<= 0.3")),
        ("network", GAP.replace("Linear(1, 4)", "Linear(1, 4, bias=False)")),
        ("data", GAP.replace("torch.cat([(x > 0.5)", "torch.cat([(x > 0.4)")),
        (
            "data",
            GAP.replace("n = min(n, 120)", "n, seed = min(n, 120), seed + (split == 'train')"),
        ),
        ("protocol short", GAP.replace("Stage(4, 1e-2, epochs=3)", "Stage(4, 1e-2, epochs=4)")),
    ]
    for what, text in changes:
        gap.write_text(text)
        with pytest.raises(InputError, match=f"another study: {what} differ"):
            train(gap, grid, out)
    gap.write_text(GAP)
    other = Grid(methods=("base",), sizes=(12,), protocols=("short",), gradient="vertex")
    with pytest.raises(InputError, match="gradient differ"):
        train(gap, other, out)
    assert contents(out) == before


def test_a_folder_with_other_things_is_refused(gap: Path, tmp_path: Path) -> None:
    out = tmp_path / "papers"
    out.mkdir()
    (out / "thesis.tex").write_text("everything")
    with pytest.raises(InputError, match="not empty"):
        train(gap, Grid(methods=("base",), sizes=(12,), protocols=("short",)), out)
    assert [p.name for p in out.iterdir()] == ["thesis.tex"]


def test_two_studies_do_not_write_to_one_folder(gap: Path, tmp_path: Path) -> None:
    grid = Grid(methods=("base",), sizes=(12,), seeds=(0,), protocols=("short",))
    out = tmp_path / "out"
    train(gap, grid, out)
    with StudyFolder(out).alone(), pytest.raises(InputError, match="another `gdpnet train`"):
        train(gap, grid, out)


@pytest.mark.slow
def test_workers_of_a_killed_study_end(gap: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    gap.write_text(GAP.replace("epochs=40), finetune", "epochs=40_000), finetune"))
    program = (
        "import sys; from gdpnet.study import Grid, train\n"
        "if __name__ == '__main__':\n"
        "    grid = Grid(methods=('base',), sizes=(40, 41), seeds=(0,), protocols=('long',))\n"
        "    train(sys.argv[1], grid, sys.argv[2], jobs=2, save_every=0.0)\n"
    )
    script = tmp_path / "script.py"
    script.write_text(program)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen([sys.executable, script, gap, out], env=environment)
    try:
        while len(list(out.rglob("*.running.pt"))) < 2:
            assert process.poll() is None
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    before: dict[Path, int] = {}
    for _ in range(40):
        time.sleep(0.5)
        now = {p: p.stat().st_mtime_ns for p in out.rglob("*.running.pt")}
        if now == before:
            break
        before = now
    else:
        pytest.fail("workers go on without the process that writes the table")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"network": {}}, "its network is another one"),
        ({"network": None}, "it holds no network"),
        ({"seconds": None}, "it holds no seconds"),
    ],
)
def test_a_checkpoint_of_something_else_is_damaged(
    gap: Path, tmp_path: Path, wrong: dict, told: str
) -> None:
    grid = Grid(methods=("base",), sizes=(12,), seeds=(0,), protocols=("short",))
    out = tmp_path / "out"
    expected = train(gap, grid, out)
    (file,) = out.rglob("*base.pt")
    state = {**torch.load(file), **wrong}
    torch.save({k: v for k, v in state.items() if v is not None or k == "network"}, file)
    (out / "results.csv").unlink()
    with pytest.raises(InputError, match=f"is damaged .{told}"):
        train(gap, grid, out)
    assert untimed(train(gap, grid, out, force=True)) == untimed(expected)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("results.csv", b"protocol,method,size,seed,split\n\xff,a,1,2,b\n"),
        ("study.json", b"[]"),
        ("study.json", b'{"protocols": 3}'),
    ],
)
def test_a_damaged_file_is_named_and_left_alone(
    gap: Path, tmp_path: Path, name: str, content: bytes
) -> None:
    out = tmp_path / "out"
    grid = Grid(methods=("base",), sizes=(12,), seeds=(0,), protocols=("short",))
    train(gap, grid, out)
    (out / name).write_bytes(content)
    with pytest.raises(InputError, match=rf"{name} cannot be read"):
        train(gap, grid, out)
    assert (out / name).read_bytes() == content


def test_of_a_study_only_seeds_that_all_methods_have_are_kept(gap: Path, tmp_path: Path) -> None:
    out, kept = tmp_path / "study", tmp_path / "kept"
    protocol = {"sizes": (40,), "protocols": ("long",)}
    train(gap, Grid(methods=("base",), seeds=(0, 1), **protocol), out)
    both = Grid(methods=("base", "dnf"), seeds=(0, 1), **protocol)
    with pytest.raises(InputError, match="no size and seed yet"):
        keep_whole(out, kept, [both])
    train(gap, Grid(methods=("dnf",), seeds=(1,), **protocol), out)
    keep_whole(out, kept, [both])
    assert StudyFolder(kept).finished() == {("long", m, 40, 1) for m in ("base", "dnf")}
    assert StudyFolder(kept).study() == StudyFolder(out).study()
    assert {path.name for path in kept.iterdir()} == {"results.csv", "study.json"}
