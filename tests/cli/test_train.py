"""`gdpnet train` and `gdpnet report`: tables on the screen, and refusals in a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gdpnet.study.training._training import Training
from tests.cli._calls import MODEL, SAMPLE, line, run
from tests.study._tasks import GAP

FEW = ("--sizes", "12", "--seeds", "0,1", "--protocols", "short", "--methods", "base,dnf")


@pytest.fixture
def gap(tmp_path: Path) -> Path:
    path = tmp_path / "gap.py"
    path.write_text(GAP)
    return path


def refused(*arguments: object) -> str:
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    assert result.stderr.startswith("Error: ")
    return result.stderr


def test_train_prints_tables_and_writes_a_page(gap: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run("train", gap, "--out", out, *FEW)
    assert result.exit_code == 0, result.output
    assert "short, n = 12, 2 seeds: mean (standard deviation)" in result.stdout
    assert result.stdout.count("\ndnf ") == 2  # quality and cost
    assert str(out / "report.html") in result.stdout
    page = (out / "report.html").read_text()
    assert "http" not in page.replace("http://www.w3.org", "")
    assert "Protocol short" in page
    assert "100 % of the training targets satisfy the rules within 1e-6.<" in page


def test_targets_that_break_rules_are_told(gap: Path, tmp_path: Path) -> None:
    gap.write_text(GAP.replace("(x > 0.5).double(), x], 1)", "0.2 + 0.8 * x, x], 1)"))
    out = tmp_path / "out"
    for _ in range(2):  # the folder of an earlier run that did not count them is the same study
        result = run("train", gap, "--out", out, *FEW[:-1], "base")
        assert result.exit_code == 0, result.output
        study = json.loads((out / "study.json").read_text())
        assert 0.0 < study.pop("targets_satisfied") < 1.0
        (out / "study.json").write_text(json.dumps(study))
    page = (out / "report.html").read_text()
    assert " % of the training targets satisfy the rules within 1e-6. The others break them" in page


def test_a_folder_that_cannot_be_made_is_told_in_a_sentence(gap: Path, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("keep me")
    told = refused("train", gap, "--out", file / "out", *FEW)
    assert str(file) in told
    assert "Errno" not in told
    assert file.read_text() == "keep me"


def test_report_needs_no_training(
    gap: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    both = (*FEW[:1], "12,16", *FEW[2:-1], "base,dnf,cnf,pdnf:2,steps:1")
    trained = run("train", gap, "--out", out, *both)
    assert trained.exit_code == 0, trained.output
    for network in out.rglob("*.pt"):
        network.unlink()
    gap.unlink()
    monkeypatch.setattr(Training, "run", lambda self, pause=None: pytest.fail("trained"))
    first = (out / "report.html").read_bytes()
    result = run("report", out)
    assert result.exit_code == 0, result.output
    assert result.stdout == trained.stdout
    assert (out / "report.html").read_bytes() == first
    assert first.count(b"<img") == 2
    cells = line(result.stdout.split("order, k")[1].split("\n\n")[0], "planner, 2")
    assert cells[4] == "100"  # both rules merged: the DNF
    other = run("report", out, "--html", tmp_path / "elsewhere" / "page.html")
    assert other.exit_code == 0
    assert (tmp_path / "elsewhere" / "page.html").read_bytes() == first


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            ("--methods", "base,foo"),
            "There is no method 'foo'; known are base, finetuned-base, penalty",
        ),
        (("--protocols", "slow"), "no protocol 'slow'; known are paper, converged, quick"),
        (("--sizes", "12,121"), "a training size of 121 was asked for"),
        (("--sizes", "ten"), "--sizes: expected whole numbers"),
        (("--sizes", "0"), "sizes: expected whole numbers >= 2"),
        (("--seeds", "-1"), "seeds: expected whole numbers >= 0"),
        (("--gradient", "steep"), "gradient: expected one of 'auto'"),
        (("--methods", "pdnf:9"), "expected k from 0 to 2"),
        (("--methods", ","), "methods: expected at least one"),
    ],
)
def test_what_cannot_be_trained_is_refused(
    gap: Path, tmp_path: Path, options: tuple[str, ...], told: str
) -> None:
    out = tmp_path / "out"
    assert told in refused("train", gap, "--out", out, *FEW, *options)
    assert not out.exists()


def test_models_that_cannot_be_trained(tmp_path: Path) -> None:
    path, out = tmp_path / "gap.py", tmp_path / "out"
    path.write_text(MODEL)
    told = refused("train", path, "--out", out)
    assert "no sample and no network" in told
    assert "def sample(n, split, seed):" in told
    path.write_text(MODEL + SAMPLE)
    assert "`def network():`" in refused("train", path, "--out", out)
    path.write_text(GAP + "\ndef sample(n, split, seed): return torch.zeros(n, 1)\n")
    assert "sample() should return x and target" in refused("train", path, "--out", out)
    path.write_text(GAP + "\ndef network(): return 3\n")
    assert "network() should return a torch.nn.Module" in refused("train", path, "--out", out, *FEW)
    assert "no such file" in refused("train", tmp_path / "none.py", "--out", out)
    assert not out.exists()


def test_folders_that_cannot_be_used(gap: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    assert "file" in refused("train", gap, "--out", tmp_path / "file", *FEW)
    assert "file" in refused("train", gap, "--out", tmp_path / "file" / "below", *FEW)
    assert (tmp_path / "file").read_text() == "mine"
    assert "holds no study" in refused("report", tmp_path)
    assert "holds no study" in refused("report", tmp_path / "nowhere")


def test_damaged_tables_are_named(gap: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("train", gap, "--out", out, *FEW).exit_code == 0
    table = out / "results.csv"
    good = table.read_text()
    table.write_text(good.replace(",12,0,", ",twelve,0,", 1))
    told = refused("report", out)
    assert "results.csv, line 2: size: expected a number, got 'twelve'" in told
    refused("train", gap, "--out", out, *FEW)
    assert "twelve" in table.read_text()
    table.write_text("a,b\n1,2\n")
    assert "no table of results" in refused("report", out)
    table.unlink()
    assert "no results yet" in refused("report", out)
