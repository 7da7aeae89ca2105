"""`gdpnet compare`: the numbers are the library's, bad input is told in a sentence."""

from __future__ import annotations

import os
from pathlib import Path

import pandas
import pytest
import torch

import gdpnet.study
from gdpnet.study import load_model
from tests.cli._calls import MODEL, MODELS, SAMPLE, line, run

NOISY = """
def sample(n, split="iid", seed=0):
    generator = torch.Generator().manual_seed(seed)
    y = torch.rand(n, 2, generator=generator, dtype=torch.float64)
    return 1000 * torch.rand(n, 1, generator=generator, dtype=torch.float64), y
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "gap.py"
    path.write_text(MODEL.replace("m.never =", "# m.never =") + NOISY)
    return path


def test_the_table_is_the_library_s(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "out" / "table.csv"
    asked = ["--relaxations", "cnf,pdnf:2,dnf,dnf:highs", "--samples", 40, "--seed", 3]
    result = run("compare", model, *asked, "--csv", file)
    assert result.exit_code == 0, result.output
    assert f"Wrote {file}" in result.stdout
    table = pandas.read_csv(file)
    assert list(table.relaxation) == ["cnf", "pdnf:2", "dnf", "dnf:highs"]

    loaded = load_model(model)
    rules = loaded.build()
    x, targets = loaded.sample(40, split="iid", seed=3)  # type: ignore[misc]
    noise = torch.randn(40, 2, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    yhat = targets + 0.5 * targets.std(0, correction=0) * noise
    expected = gdpnet.study.compare(rules, yhat, x, list(table.relaxation)).table
    for column in table.columns.difference(["compile_seconds", "seconds_per_sample", "note"]):
        pandas.testing.assert_series_equal(table[column], expected[column], check_dtype=False)
    assert line(result.stdout, "  solver") == ["extended", "extended", "exact", "highs"]
    assert "targets plus noise of 0.5 standard deviations" in result.stdout
    assert "40 samples" in result.stdout


def test_cooling_with_the_usual_relaxations_and_a_page(tmp_path: Path) -> None:
    page = tmp_path / "cooling.html"
    result = run("compare", MODELS / "cooling", "--samples", 100, "--split", "ood", "--html", page)
    assert result.exit_code == 0, result.output
    header = result.stdout.splitlines()[0].split()
    assert header == ["cnf", "pdnf:2", "plan:4", "adaptive", "dnf", "dnf:highs"]
    shares = line(result.stdout, "  of all, %")
    assert shares[3:] == ["100", "100", "100"]
    text = page.read_text(encoding="utf-8")
    assert "<title>cooling: relaxations compared</title>" in text
    assert "R5_demand_response" in text
    assert "http" not in text


def test_uniform_predictions(model: Path) -> None:
    asked = ["--relaxations", "dnf", "--samples", 20]
    result = run("compare", model, *asked, "--predictions", "uniform")
    assert result.exit_code == 0, result.output
    assert "Predictions uniform in the outputs' bounds." in result.stdout


def test_without_sample_inputs_come_from_their_bounds(tmp_path: Path) -> None:
    path = tmp_path / "gap.py"
    path.write_text(MODEL)
    result = run("compare", path, "--relaxations", "dnf")
    assert result.exit_code == 2
    assert "has no sample(), and the inputs t have no input_bounds" in result.stderr
    path.write_text(MODEL.replace("inputs=[m.t]", "inputs=[m.t], input_bounds={'t': (0, 1000)}"))
    result = run("compare", path, "--relaxations", "dnf", "--samples", 30)
    assert result.exit_code == 0, result.output
    assert "Inputs uniform in input_bounds, seed 0." in result.stdout
    result = run("compare", path, "--predictions", "noisy")
    assert result.exit_code == 2
    assert "Noisy predictions need targets" in result.stderr


def test_an_output_without_bounds_or_targets(tmp_path: Path) -> None:
    path = tmp_path / "gap.py"
    free = MODEL.replace("m.z = pyo.Var(bounds=(0, 1))", "m.z = pyo.Var()")
    path.write_text(free + "\ndef sample(n, split, seed): return torch.zeros(n, 1).double()\n")
    result = run("compare", path)
    assert result.exit_code == 2
    assert "Give the Vars bounds" in result.stderr


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1\n", "defines no build()"),
        ("def build():\n    raise KeyError('lost')\n", "build() raised KeyError at line 2"),
        ("def build():\n    return 3\n", "should return a gdpnet.RuleModel, but returned int"),
        ("def build(:\n", "line 1 is not valid Python"),
        (MODEL + "\ndef sample(n, split, seed): return torch.zeros(n, 4)\n", "x with 1 columns"),
        (
            MODEL + "\ndef sample(n, split, seed): return torch.zeros(n, 1), torch.zeros(n, 3)\n",
            "targets with 2 columns (y, z), got shape",
        ),
        (
            MODEL + "\ndef sample(n, split, seed): return torch.zeros(n, 1), torch.zeros(2, 2)\n",
            "inputs and 2 targets",
        ),
        (MODEL + "\ndef sample(n, split, seed): return 'no'\n", "sample() should return"),
    ],
)
def test_models_that_are_none(tmp_path: Path, source: str, message: str) -> None:
    path = tmp_path / "broken.py"
    path.write_text(source)
    result = run("compare", path, "--samples", 5)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("Error: ")
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_unknown_relaxation(model: Path) -> None:
    result = run("compare", model, "--relaxations", "cnf,hull")
    assert result.exit_code == 2
    assert "'hull' is none that is known" in result.stderr


# What a file for training may define: other columns in x, classes for targets, its own splits.
CLASSES = """
TEST_SEEDS = {"test": 1}
rule_inputs = [2]


def sample(n, split, seed):
    if split != "test":
        raise ValueError(f"split is {split!r}, expected 'test'")
    t = torch.arange(n, dtype=torch.float64)[:, None]
    return torch.cat([-t, -t, t, -t], 1), torch.zeros(n, dtype=torch.int64)


def loss(y, target):
    return y.sum()
"""


@pytest.mark.parametrize("command", ["compare", "inspect", "explore"])
def test_files_made_for_training_work_as_they_are(tmp_path: Path, command: str) -> None:
    path = tmp_path / "gap.py"
    path.write_text(MODEL.replace("m.never =", "# m.never =").replace("500", "30") + CLASSES)
    more = {
        "compare": ["--relaxations", "dnf", "--samples", 40],
        "inspect": ["--samples", 40],
        "explore": ["--output", tmp_path / "page.html"],
    }[command]
    result = run(command, path, *more)
    assert result.exit_code == 0, result.output
    if command == "inspect":
        assert line(result.stdout, "late")[0] == "25.0%", "the third column of x is the input"


def test_unknown_split(tmp_path: Path) -> None:
    path = tmp_path / "gap.py"
    path.write_text(MODEL + SAMPLE)
    result = run("compare", path, "--split", "mars")
    assert result.exit_code == 2
    assert "split is 'mars'" in result.stderr


@pytest.mark.parametrize("option", ["--html", "--csv"])
def test_files_that_cannot_be_written_are_told_before_the_work(
    model: Path, tmp_path: Path, option: str
) -> None:
    (tmp_path / "file").write_text("")
    for target in (tmp_path / "file" / "page", tmp_path):
        result = run("compare", model, option, target)
        assert result.exit_code == 2
        assert result.stderr.startswith("Error: ")
        assert result.stdout == "", "nothing is computed"


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_without_permission(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)
    result = run("compare", model, "--html", folder / "page.html")
    assert result.exit_code == 2
    assert "no permission" in result.stderr
