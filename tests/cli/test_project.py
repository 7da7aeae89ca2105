"""`gdpnet project`: what is written is what `gdpnet.project` gives; bad input costs nothing."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import gdpnet
from gdpnet.study import load_model
from tests.cli._calls import MODEL, MODELS, run


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "gap.py"
    path.write_text(MODEL.replace("m.never =", "# m.never ="))
    return path


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.csv"
    path.write_text("name,t,y,z\na,0,0.5,0.5\nb,600,0.8,0.1\nc,,0.1,0.1\n")
    return path


def test_cooling_from_parquet_to_csv(tmp_path: Path) -> None:
    loaded = load_model(MODELS / "cooling")
    rules = loaded.build()
    x, y = loaded.sample(300, split="ood", seed=1)  # type: ignore[misc]
    columns = dict(zip(rules.input_names, x.T.numpy(), strict=True))
    columns |= {f"pred_{name}": v for name, v in zip(rules.output_names, y.T.numpy(), strict=True)}
    pd.DataFrame(columns).to_parquet(tmp_path / "in.parquet")
    target = tmp_path / "deep" / "out.csv"
    result = run(
        *("project", MODELS / "cooling", tmp_path / "in.parquet", target),
        *("--prefix", "pred_", "--chunk", 64),
    )
    assert result.exit_code == 0, result.output
    found = pd.read_csv(target, float_precision="round_trip")
    p = gdpnet.project(rules, y, x)
    written = found[[f"pred_{name}_projected" for name in rules.output_names]].to_numpy()
    np.testing.assert_array_equal(written, p.y.numpy())
    assert rules.satisfied(torch.from_numpy(written), x).all()
    counts = found["gdpnet_status"].value_counts()
    for status, count in counts.items():
        assert f"{count} {status}" in result.stdout
    assert "Projected 300 rows" in result.stdout
    assert f"Wrote {target}" in result.stdout


def test_rows_that_cannot_be_used(model: Path, source: Path, tmp_path: Path) -> None:
    result = run("project", model, source, tmp_path / "out.csv")
    assert result.exit_code == 0, result.output
    assert "1 SATISFIED, 1 PROJECTED, 1 ERROR" in result.stdout
    assert "row is not usable: row 3 has no finite number in column 't', but an empty cell.\n" in (
        result.stdout
    )
    found = pd.read_csv(tmp_path / "out.csv")
    assert found["gdpnet_status"].tolist() == ["PROJECTED", "SATISFIED", "ERROR"]
    assert found["y_projected"].tolist()[1] == 0.8
    assert math.isnan(found["y_projected"].tolist()[2])
    result = run("project", model, source, tmp_path / "other.csv", "--on-invalid", "raise")
    assert result.exit_code == 2
    assert "row 3 has no finite number in column 't'" in result.stderr
    assert not (tmp_path / "other.csv").exists()


def test_a_cell_that_is_no_number_is_told(model: Path, tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text("t,y,z\n0,1,1\n0,abc,1\n0,1,1\nx,1,1\n")
    result = run("project", model, source, tmp_path / "out.csv")
    assert result.exit_code == 0, result.output
    assert (
        "2 rows are not usable: the first: row 2 has no finite number in column 'y', but 'abc'."
        in (result.stdout)
    )
    statuses = pd.read_csv(tmp_path / "out.csv")["gdpnet_status"].tolist()
    assert statuses == ["SATISFIED", "ERROR", "SATISFIED", "ERROR"]


def test_columns_that_are_there_already(model: Path, tmp_path: Path) -> None:
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("t,y,z,gdpnet_status\n0,0.5,0.5,mine\n")
    result = run("project", model, source, target)
    assert result.exit_code == 2
    assert "has a column 'gdpnet_status' already" in result.stderr
    result = run("project", model, source, target, "--added-prefix", "new_")
    assert result.exit_code == 0, result.output
    found = pd.read_csv(target)
    assert found["gdpnet_status"].tolist() == ["mine"]
    assert found["new_gdpnet_status"].tolist() == ["PROJECTED"]
    result = run("project", model, source, target, "--again", "--force")
    assert result.exit_code == 0, result.output
    assert pd.read_csv(target)["gdpnet_status"].tolist() == ["PROJECTED"]


def test_left_overs_are_told_though_the_run_fails(
    model: Path, source: Path, tmp_path: Path
) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    left = tmp_path / f".out.csv.{process.pid}.part"
    left.write_text("half")
    source.write_text("t,y\n0,1\n")
    result = run("project", model, source, tmp_path / "out.csv")
    assert result.exit_code == 2
    assert f"Removed {left}, left by a run that was stopped" in result.stderr
    assert not left.exists()


def test_the_missing_input_is_told_before_the_target(model: Path, tmp_path: Path) -> None:
    (tmp_path / "out.csv").write_text("precious")
    result = run("project", model, tmp_path / "missing.csv", tmp_path / "out.csv")
    assert result.exit_code == 2
    assert "missing.csv: there is no such file" in result.stderr


def test_columns_by_another_name(model: Path, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("hour,y,second\n0,0.5,0.5\n")
    names = ["--column", "t=hour", "--column", "z=second", "--replace"]
    result = run("project", model, tmp_path / "in.csv", tmp_path / "out.csv", *names)
    assert result.exit_code == 0, result.output
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[0] == "hour,y,second,gdpnet_status,gdpnet_distance"
    assert lines[1].endswith("PROJECTED,0.25")
    result = run("project", model, tmp_path / "in.csv", tmp_path / "b.csv", "--column", "t")
    assert result.exit_code == 2
    assert "expected NAME=COLUMN, got 't'" in result.stderr


def test_an_existing_file_needs_force(model: Path, source: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    target.write_text("precious")
    result = run("project", model, source, target)
    assert result.exit_code == 2
    assert "exists already. Name another file, or add --force." in result.stderr
    assert target.read_text() == "precious"
    result = run("project", model, source, target, "--force")
    assert result.exit_code == 0, result.output
    assert target.read_text().startswith("name,t,y,z,y_projected")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("in.csv", "", "is empty"),
        ("in.csv", "t,y\n0,1\n", "has no column 'z'"),
        ("in.csv", "t,y,z,y_projected\n0,1,1,1\n", "has a column 'y_projected' already"),
        ("in.csv", "t,y,z\n0,1\n", "cannot be read as csv"),
        ("in.parquet", "no parquet", "cannot be read as parquet"),
        ("in.xls", "", "expected a name that ends in .csv or .parquet"),
        ("nowhere", None, "got no extension"),
        ("nowhere.csv", None, "there is no such file"),
    ],
)
def test_bad_files_are_told_in_a_sentence_and_nothing_is_overwritten(
    model: Path, tmp_path: Path, name: str, content: str | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    target = tmp_path / "out.csv"
    target.write_text("precious")
    result = run("project", model, tmp_path / name, target, "--force")
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("Error: ")
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert "Traceback" not in result.output
    assert target.read_text() == "precious"
    assert not list(tmp_path.glob(".*"))


def test_bad_targets_and_options(model: Path, source: Path, tmp_path: Path) -> None:
    for target, more, message in (
        (tmp_path / "out.txt", [], "got '.txt'"),
        (tmp_path, [], "is a folder"),
        (source / "out.csv", [], "is no folder"),
        (tmp_path / "out.csv", ["--relaxation", "hull"], "'hull' is none that is known"),
        (tmp_path / "out.csv", ["--solver", "cplex"], "'cplex'"),
        (tmp_path / "out.csv", ["--relaxation", "cnf", "--solver", "exact"], "Exact() solves"),
    ):
        result = run("project", model, source, target, *more)
        assert result.exit_code == 2, result.output
        assert message in result.stderr
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_file()) == ["gap.py", "in.csv"]


def test_a_folder_goes_on_where_it_was(model: Path, tmp_path: Path) -> None:
    (tmp_path / "in" / "b").mkdir(parents=True)
    (tmp_path / "in" / "one.csv").write_text("t,y,z\n0,0.5,0.5\n600,0.8,0.1\n")
    (tmp_path / "in" / "b" / "two.csv").write_text("t,y,z\n0,0.5,\n")
    result = run("project", model, tmp_path / "in", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "Projected 3 rows" in result.stdout
    assert "1 SATISFIED, 1 PROJECTED, 1 ERROR" in result.stdout
    assert "b/two.csv: row 1 has no finite number in column 'z'" in result.stdout
    lines = (tmp_path / "out" / "one.csv").read_text().splitlines()
    assert lines[0] == "t,y,z,y_projected,z_projected,gdpnet_status,gdpnet_distance"
    (tmp_path / "out" / "one.csv").unlink()
    result = run("project", model, tmp_path / "in", tmp_path / "out", "--jobs", 1)
    assert result.exit_code == 0, result.output
    assert "1 file was there already.\nProjected 2 rows" in result.stdout
    assert (tmp_path / "out" / "one.csv").read_text().splitlines() == lines
    result = run("project", model, tmp_path / "in", tmp_path / "out", "--norm", "l2")
    assert result.exit_code == 2
    assert "was begun with other options" in result.stderr
    result = run("project", model, tmp_path / "in" / "one.csv", tmp_path / "o.csv", "--jobs", 2)
    assert result.exit_code == 2
    assert "one.csv is one file, and --ray and --jobs share out" in result.stderr


def test_ray_is_missed(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "one.csv").write_text("t,y,z\n0,0.5,0.5\n")
    monkeypatch.setitem(sys.modules, "ray", None)
    for value in ([], ["auto"]):
        result = run("project", model, tmp_path / "in", tmp_path / "out", "--ray", *value)
        assert result.exit_code == 2
        assert "--ray needs ray, which is not installed. pip install 'gdpnet[ray]'" in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_model_that_is_none(source: Path, tmp_path: Path) -> None:
    (tmp_path / "no.py").write_text("x = 1\n")
    result = run("project", tmp_path / "no.py", source, tmp_path / "out.csv")
    assert result.exit_code == 2
    assert "defines no build()" in result.stderr


def test_without_pyarrow(
    model: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = run("project", model, source, tmp_path / "out.csv")
    assert result.exit_code == 2
    assert "pip install 'gdpnet[study]'" in result.stderr
