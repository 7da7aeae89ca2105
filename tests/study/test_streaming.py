"""Tables projected piece by piece equal the arrays projected at once."""

from __future__ import annotations

import csv
import datetime
import math
import os
import re
import resource
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest
import torch

import gdpnet
from gdpnet import Status
from gdpnet.study import project_file
from gdpnet.study.left_overs import clear_all_left_overs, part_of
from tests.study._tables import two_rules

ROWS = 500


@pytest.fixture(scope="module")
def rules() -> gdpnet.RuleModel:
    return two_rules()


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "id": [f"{k:04d}" for k in range(ROWS)],
            "y[1]": rng.uniform(0, 10, ROWS),
            "note": [["plain", 'a "quoted", word', "two\nlines", ""][k % 4] for k in range(ROWS)],
            "t": rng.uniform(0, 3.5, ROWS),
            "y[2]": rng.uniform(0, 10, ROWS),
            "count": np.arange(ROWS),
        }
    )


def write(frame: pd.DataFrame, path: Path) -> Path:
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, index=False)
    return path


def read(path: Path) -> pd.DataFrame:
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    return pd.read_csv(path, dtype={"id": str}, float_precision="round_trip")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("other", ["csv", "parquet"])
@pytest.mark.parametrize("chunk", [7, 16384])
def test_the_file_is_what_project_gives(
    rules: gdpnet.RuleModel, frame: pd.DataFrame, tmp_path: Path, kind: str, other: str, chunk: int
) -> None:
    source = write(frame, tmp_path / f"in.{kind}")
    done = project_file(rules, source, tmp_path / f"out.{other}", chunk=chunk)
    found = read(done.path)
    added = ["y[1]_projected", "y[2]_projected", "gdpnet_status", "gdpnet_distance"]
    assert list(found.columns) == [*frame.columns, *added]

    yhat = torch.from_numpy(frame[["y[1]", "y[2]"]].to_numpy().copy())
    x = torch.from_numpy(frame[["t"]].to_numpy().copy())
    p = gdpnet.project(rules, yhat, x)
    assert {Status.SATISFIED, Status.PROJECTED, Status.CONFLICT} <= set(p.status.tolist())
    np.testing.assert_array_equal(found[added[:2]].to_numpy(), p.y.numpy())
    np.testing.assert_array_equal(found["gdpnet_distance"].to_numpy(), p.distance.numpy())
    assert found["gdpnet_status"].tolist() == [Status(s).name for s in p.status.tolist()]
    assert done.rows == ROWS
    assert done.statuses == {s: int((p.status == s).sum()) for s in Status}

    # pandas' own reader finds the columns that were there before unchanged.
    kept = found[list(frame.columns)].copy()
    if kind == "csv" and other == "parquet":
        kept["id"] = [f"{k:04d}" for k in kept["id"]]  # its type follows from the first rows
    pd.testing.assert_frame_equal(kept.fillna(""), frame, check_exact=False, rtol=1e-15)


def test_texts_of_a_csv_file_stay_as_they_are_spelled(
    rules: gdpnet.RuleModel, tmp_path: Path
) -> None:
    lines = [
        "\ufeffcode,t,y[1],y[2],day",
        "007,1.50,+2.0,1e0,2024-01-01",
        '"a,b", 0 ,9.10,9,',
        '"say ""x""",0,1,2.,1 000',
    ]
    (tmp_path / "in.csv").write_text("\n".join(lines), encoding="utf-8")
    project_file(rules, tmp_path / "in.csv", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    with (tmp_path / "in.csv").open(newline="", encoding="utf-8-sig") as file:
        assert [row[:5] for row in [header, *rows]] == list(csv.reader(file))
    assert [row[7] for row in rows] == ["SATISFIED"] * 3
    assert "007,1.50," in (tmp_path / "out.csv").read_text(encoding="utf-8"), "no needless quotes"


def test_rows_that_cannot_be_used_are_marked_and_the_others_untouched(
    rules: gdpnet.RuleModel, frame: pd.DataFrame, tmp_path: Path
) -> None:
    bad = frame.copy()
    bad.loc[3, "t"] = math.nan
    bad.loc[10, "y[2]"] = math.inf
    bad.loc[499, "y[1]"] = math.nan
    for kind in ("csv", "parquet"):
        clean = project_file(rules, write(frame, tmp_path / f"a.{kind}"), tmp_path / f"b.{kind}")
        source = write(bad, tmp_path / f"c.{kind}")
        done = project_file(rules, source, tmp_path / f"d.{kind}", chunk=64)
        assert done.statuses[Status.ERROR] == 3
        marked, expected = read(done.path), read(clean.path)
        errors = marked["gdpnet_status"] == "ERROR"
        assert np.flatnonzero(errors).tolist() == [3, 10, 499]
        added = ["y[1]_projected", "y[2]_projected", "gdpnet_distance"]
        assert marked.loc[errors, added].isna().all(axis=None)
        pd.testing.assert_frame_equal(marked.loc[~errors, added], expected.loc[~errors, added])
        with pytest.raises(
            gdpnet.errors.InputError, match=r"row 4 has no finite number in column 't'"
        ):
            project_file(rules, source, tmp_path / f"e.{kind}", on_invalid="raise")
        assert not (tmp_path / f"e.{kind}").exists()
        later = write(pd.concat([frame[:4], bad[4:]]), tmp_path / f"f.{kind}")
        with pytest.raises(gdpnet.errors.InputError, match=r"row 11 .* column 'y\[2\]'"):
            project_file(rules, later, tmp_path / f"e.{kind}", on_invalid="raise", chunk=4)


def test_missing_numbers_have_many_spellings(rules: gdpnet.RuleModel, tmp_path: Path) -> None:
    spelled = ["", "NA", "nan", "NaN", "null", " ", "inf", "-inf"]
    lines = ["t,y[1],y[2]", *(f"{text},1,1" for text in spelled), "0,1,1"]
    (tmp_path / "in.csv").write_text("\n".join(lines) + "\n")
    done = project_file(rules, tmp_path / "in.csv", tmp_path / "out.csv")
    assert done.statuses[Status.ERROR] == len(spelled)
    assert done.statuses[Status.SATISFIED] == 1


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_cell_that_is_no_number_spoils_its_row_only(
    rules: gdpnet.RuleModel, frame: pd.DataFrame, tmp_path: Path, kind: str
) -> None:
    clean = read(project_file(rules, write(frame, tmp_path / "a.csv"), tmp_path / "b.csv").path)
    bad = frame.astype({"t": str, "y[2]": str})
    bad.loc[7, "t"] = "abc"
    bad.loc[[7, 400], "y[2]"] = ["1,5", "12 m"]
    if kind == "parquet":
        bad["t"] = bad["t"].astype("category")
    source = write(bad, tmp_path / f"in.{kind}")
    done = project_file(rules, source, tmp_path / f"out.{kind}", chunk=64)
    assert done.unusable == done.statuses[Status.ERROR] == 2
    assert done.first_unusable == "row 8 has no finite number in column 't', but 'abc'"
    found = read(done.path)
    errors = found["gdpnet_status"] == "ERROR"
    assert np.flatnonzero(errors).tolist() == [7, 400]
    added = ["y[1]_projected", "y[2]_projected", "gdpnet_distance"]
    assert found.loc[errors, added].isna().all(axis=None)
    pd.testing.assert_frame_equal(found.loc[~errors, added], clean.loc[~errors, added])
    assert found.loc[[7, 400], "y[2]"].tolist() == ["1,5", "12 m"]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_of_the_user_are_not_overwritten(
    rules: gdpnet.RuleModel, frame: pd.DataFrame, tmp_path: Path, kind: str
) -> None:
    own = frame.assign(**{"y[1]_projected": "mine", "gdpnet_status": "good"})
    source, target = write(own, tmp_path / f"in.{kind}"), tmp_path / f"out.{kind}"
    message = r"columns 'y\[1\]_projected', 'gdpnet_status' already.*--added-prefix.*--again"
    with pytest.raises(gdpnet.errors.InputError, match=message):
        project_file(rules, source, target)
    with pytest.raises(gdpnet.errors.InputError, match="a column 'gdpnet_status' already"):
        project_file(rules, source, target, replace=True)
    assert [p.name for p in tmp_path.iterdir()] == [source.name]
    found = read(project_file(rules, source, target, added_prefix="new_").path)
    pd.testing.assert_frame_equal(found[list(own.columns)].fillna(""), own, rtol=1e-15)
    added = ["new_y[1]_projected", "new_y[2]_projected"]
    assert list(found.columns) == [*own.columns, *added, "new_gdpnet_status", "new_gdpnet_distance"]
    # What is read is not replaced even where replacing was asked for.
    columns = {"t": "gdpnet_distance"}
    source = write(frame.rename(columns={"t": "gdpnet_distance"}), tmp_path / f"b.{kind}")
    with pytest.raises(gdpnet.errors.InputError, match="a column 'gdpnet_distance' already"):
        project_file(rules, source, target, columns=columns, again=True, overwrite=True)


def test_a_column_serves_one_output(
    rules: gdpnet.RuleModel, frame: pd.DataFrame, tmp_path: Path
) -> None:
    source = write(frame, tmp_path / "in.csv")
    with pytest.raises(
        gdpnet.errors.InputError, match=r"'y\[1\]' is the column of more than one output"
    ):
        project_file(rules, source, tmp_path / "out.csv", columns={"y[2]": "y[1]"})


def ended_process() -> int:
    """The number of a process that is gone."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def test_what_killed_runs_left_is_found(
    rules: gdpnet.RuleModel, frame: pd.DataFrame, tmp_path: Path
) -> None:
    source, target = write(frame, tmp_path / "in.csv"), tmp_path / "out.csv"
    mine = part_of(target)
    assert str(os.getpid()) in mine.name
    gone, running = ended_process(), os.getppid()
    dead = [
        tmp_path / mine.name.replace(str(os.getpid()), str(gone)),
        tmp_path / f".out.csv.{gone}.part",
        mine,  # of an earlier process that had the number of this one
    ]
    alive = [
        tmp_path / mine.name.replace(str(os.getpid()), str(running)),
        tmp_path / f".out.csv.elsewhere-{gone}.part",
        tmp_path / f".other.csv.{gone}.part",
    ]
    for file in (*dead, *alive):
        file.write_text("half")
    os.utime(mine, (0, 0))
    done = project_file(rules, source, target)
    told = "\n".join(done.left_over)
    assert len(done.left_over) == 5
    assert not any(file.exists() for file in dead)
    assert all(f"Removed {file}" in told for file in dead)
    assert all(file.read_text() == "half" for file in alive)
    assert f"{alive[0]} is being written by another run, process {running}" in told
    assert f"{alive[1]} was begun on the machine elsewhere" in told
    assert ".other.csv" not in told
    assert project_file(rules, source, tmp_path / "new.csv").left_over == ()


def test_processes_that_are_ending_are_waited_for(tmp_path: Path) -> None:
    ending = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1.0)"])
    waits = threading.Thread(target=ending.wait)
    waits.start()
    mine = part_of(tmp_path / "out.csv").name
    file = tmp_path / mine.replace(str(os.getpid()), str(ending.pid))
    file.write_text("half")
    assert "is being written by another run" in clear_all_left_overs(tmp_path)[0]
    assert clear_all_left_overs(tmp_path, patience=60.0)[0].startswith(f"Removed {file}")
    assert not file.exists()
    waits.join()


def test_the_missing_input_is_told_first(rules: gdpnet.RuleModel, tmp_path: Path) -> None:
    (tmp_path / "out.csv").write_text("precious")
    with pytest.raises(gdpnet.errors.InputError, match=r"in\.csv: there is no such file"):
        project_file(rules, tmp_path / "in.csv", tmp_path / "out.csv")


def test_prefix_map_and_replace(
    rules: gdpnet.RuleModel, frame: pd.DataFrame, tmp_path: Path
) -> None:
    expected = read(project_file(rules, write(frame, tmp_path / "a.csv"), tmp_path / "b.csv").path)
    named = frame.rename(columns={"y[1]": "pred_y[1]", "y[2]": "second", "t": "temperature"})
    source = write(named, tmp_path / "c.csv")
    how: dict[str, Any] = {
        "prefix": "pred_",
        "columns": {"y[2]": "second", "t": "temperature"},
    }
    found = read(project_file(rules, source, tmp_path / "d.csv", **how).path)
    assert found["pred_y[1]_projected"].equals(expected["y[1]_projected"])
    assert found["second_projected"].equals(expected["y[2]_projected"])
    found = read(project_file(rules, source, tmp_path / "e.csv", replace=True, **how).path)
    assert list(found.columns) == [*named.columns, "gdpnet_status", "gdpnet_distance"]
    assert found["second"].equals(expected["y[2]_projected"])
    with pytest.raises(gdpnet.errors.InputError, match="'z' is no input and no output"):
        project_file(rules, source, tmp_path / "f.csv", columns={"z": "second"})


def test_a_second_run_replaces_its_own_columns(
    rules: gdpnet.RuleModel, frame: pd.DataFrame, tmp_path: Path
) -> None:
    for kind in ("csv", "parquet"):
        file = tmp_path / f"a.{kind}"
        project_file(rules, write(frame, file), file, overwrite=True)
        once = file.read_bytes()
        project_file(rules, file, file, overwrite=True, again=True)
        assert list(read(file).columns).count("gdpnet_status") == 1
        if kind == "csv":
            assert file.read_bytes() == once


@pytest.mark.parametrize("relaxation", ["cnf", "pdnf:2", "plan:4", "adaptive", "dnf:highs"])
def test_other_relaxations(
    rules: gdpnet.RuleModel, frame: pd.DataFrame, tmp_path: Path, relaxation: str
) -> None:
    source = write(frame, tmp_path / "in.parquet")
    found = read(project_file(rules, source, tmp_path / "out.parquet", relaxation=relaxation).path)
    yhat = torch.from_numpy(frame[["y[1]", "y[2]"]].to_numpy().copy())
    x = torch.from_numpy(frame[["t"]].to_numpy().copy())
    plans: dict[str, Any] = {
        "pdnf:2": gdpnet.Plan.lexicographic(rules, 2),
        "plan:4": gdpnet.plan.choose(rules, 4, yhat, x),
    }
    name = relaxation.removesuffix(":highs")
    how = {"solver": "highs"} if relaxation.endswith("highs") else {}
    p = gdpnet.project(rules, yhat, x, relaxation=plans.get(name, name), **how)
    np.testing.assert_allclose(found["gdpnet_distance"], p.distance.numpy(), atol=1e-9)
    assert found["gdpnet_status"].tolist() == [Status(s).name for s in p.status.tolist()]


def test_delimiter(rules: gdpnet.RuleModel, frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.to_csv(tmp_path / "in.csv", index=False, sep=";")
    with pytest.raises(gdpnet.errors.InputError, match="has no column"):
        project_file(rules, tmp_path / "in.csv", tmp_path / "out.csv")
    done = project_file(rules, tmp_path / "in.csv", tmp_path / "out.csv", delimiter=";")
    found = pd.read_csv(done.path, sep=";")
    assert found["note"].fillna("").tolist() == frame["note"].tolist()


def test_nothing_is_overwritten_by_a_run_that_fails(
    rules: gdpnet.RuleModel, frame: pd.DataFrame, tmp_path: Path
) -> None:
    target = tmp_path / "out.csv"
    target.write_text("precious")
    source = write(frame, tmp_path / "in.csv")
    with pytest.raises(gdpnet.errors.InputError, match="exists already"):
        project_file(rules, source, target)
    with source.open("a") as file:  # damaged at the very end
        file.write("x,abc,,1,1,1\n")
    with pytest.raises(gdpnet.errors.InputError, match=r"row 501 .* column 'y\[1\]', but 'abc'"):
        project_file(rules, source, target, overwrite=True, chunk=50, on_invalid="raise")
    assert target.read_text() == "precious"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.csv", "out.csv"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("in.csv", b"", "is empty"),
        ("in.csv", b"t,y[1],y[2]\n", "holds no rows"),
        ("in.csv", b"t,y[1]\n1,2\n", "has no column 'y[2]'. It has 't', 'y[1]'"),
        ("in.csv", b"t,t,y[1],y[2]\n1,2,3,4\n", "more than one column 't'"),
        ("in.csv", b"t,y[1],y[2]\n1,2\n", "cannot be read as csv: CSV parse error"),
        ("in.csv", b"t,y[1],y[2]\n1,2,\xff\n", "cannot be read as csv"),
        ("in.csv", b"t,y[1],y[\xff]\n1,2,3\n", "cannot be read as csv"),
        ("in.parquet", b"", "cannot be read as parquet"),
        ("in.parquet", b"t,y[1],y[2]\n1,2,3\n", "cannot be read as parquet"),
        ("in.xlsx", b"PK", "expected a name that ends in .csv or .parquet, got '.xlsx'"),
        ("in", b"", "got no extension"),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files_that_cannot_be_read(
    rules: gdpnet.RuleModel, tmp_path: Path, name: str, content: bytes, message: str, kind: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(gdpnet.errors.InputError, match=re.escape(message)):
        project_file(rules, tmp_path / name, tmp_path / f"out.{kind}")
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_wrong_types_and_places(rules: gdpnet.RuleModel, tmp_path: Path) -> None:
    table = pyarrow.table(
        {"t": [[1.0]], "y[1]": [1.0], "y[2]": [1.0]},
    )
    pyarrow.parquet.write_table(table, tmp_path / "in.parquet")
    with pytest.raises(gdpnet.errors.InputError, match="column 't' should hold numbers"):
        project_file(rules, tmp_path / "in.parquet", tmp_path / "out.csv")
    table = pyarrow.table({"t": [1.0], "y[1]": [1], "y[2]": [1.0], "deep": [{"a": 1}]})
    pyarrow.parquet.write_table(table, tmp_path / "in.parquet")
    project_file(rules, tmp_path / "in.parquet", tmp_path / "out.parquet")
    assert pyarrow.parquet.read_schema(tmp_path / "out.parquet").field("y[1]").type == "int64"
    with pytest.raises(gdpnet.errors.InputError, match="cannot be written"):
        project_file(rules, tmp_path / "in.parquet", tmp_path / "out.csv")
    with pytest.raises(gdpnet.errors.InputError, match="there is no such file"):
        project_file(rules, tmp_path / "nowhere.csv", tmp_path / "out.csv")
    table = pyarrow.table({"t": [datetime.date(2024, 1, 1)], "y[1]": [1.0], "y[2]": [1.0]})
    pyarrow.parquet.write_table(table, tmp_path / "dates.parquet")
    with pytest.raises(gdpnet.errors.InputError, match="'t' should hold numbers, but is of date32"):
        project_file(rules, tmp_path / "dates.parquet", tmp_path / "out.csv")
    with pytest.raises(gdpnet.errors.InputError, match=r"got '\.txt'"):
        project_file(rules, tmp_path / "in.parquet", tmp_path / "out.txt")
    assert not (tmp_path / "out.csv").exists()


def test_wrong_keywords(rules: gdpnet.RuleModel, frame: pd.DataFrame, tmp_path: Path) -> None:
    source, target = write(frame, tmp_path / "in.csv"), tmp_path / "out.csv"
    for keyword, value, message in (
        ("chunk", 0, "chunk"),
        ("delimiter", ";;", "delimiter"),
        ("delimiter", "é", "ASCII"),
        ("delimiter", "\n", "another meaning"),
        ("on_invalid", "drop", "on_invalid"),
        ("on_conflict", "ignore", "on_conflict"),
        ("solver", "cplex", "solver"),
        ("relaxation", "hull", "'hull' is none that is known"),
    ):
        with pytest.raises(gdpnet.errors.InputError, match=message):
            project_file(rules, source, target, **{keyword: value})
    with pytest.raises(gdpnet.errors.InputError, match="names one already"):
        project_file(rules, source, target, relaxation="dnf:highs", solver="exact")
    assert not target.exists()


def test_conflicts_can_stop_it(
    rules: gdpnet.RuleModel, frame: pd.DataFrame, tmp_path: Path
) -> None:
    source = write(frame, tmp_path / "in.csv")
    with pytest.raises(gdpnet.errors.ConflictError, match="off"):
        project_file(rules, source, tmp_path / "out.csv", on_conflict="raise")
    assert not (tmp_path / "out.csv").exists()


def test_progress_ends_at_one(rules: gdpnet.RuleModel, frame: pd.DataFrame, tmp_path: Path) -> None:
    for kind in ("csv", "parquet"):
        told: list[tuple[int, float]] = []
        project_file(
            rules,
            write(frame, tmp_path / f"in.{kind}"),
            tmp_path / f"out.{kind}",
            chunk=100,
            progress=lambda *step: told.append(step),  # noqa: B023
        )
        assert [rows for rows, _ in told] == [100, 200, 300, 400, 500]
        shares = [share for _, share in told]
        assert shares == sorted(shares)
        assert shares[-1] == 1.0


def test_pyarrow_missing_is_named(
    rules: gdpnet.RuleModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(gdpnet.errors.InputError, match=re.escape("pip install 'gdpnet[study]'")):
        project_file(rules, tmp_path / "in.csv", tmp_path / "out.csv")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the memory from /proc")
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, kind: str) -> None:
    rows = 500_000
    rng = np.random.default_rng(0)
    columns = {name: rng.uniform(0, 3, rows) for name in ("t", "y[1]", "y[2]", "a", "b", "c")}
    source = tmp_path / f"in.{kind}"
    if kind == "csv":
        pyarrow.csv.write_csv(pyarrow.table(columns), source)
    else:
        pyarrow.parquet.write_table(pyarrow.table(columns), source, row_group_size=1 << 15)
    # In a process of its own, or what other tests have left behind would be counted as well.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
        target = tmp_path / f"out.{kind}"
        seen = alone.submit(_resident_while_projecting, source, target).result()
    early = len(seen) // 5
    # The last four fifths are 31 MB of numbers, read and made, and 60 MB as text.
    assert max(seen[early:]) - max(seen[:early]) < 10, seen


def _resident_while_projecting(source: Path, target: Path) -> list[float]:
    seen: list[float] = []
    project_file(two_rules(), source, target, progress=lambda *_: seen.append(_resident()))
    return seen


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20
