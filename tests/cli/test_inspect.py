"""Shares that `gdpnet inspect` tells are compared with what the model makes certain."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli._calls import MODEL, MODELS, SAMPLE, line, run


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "gap.py"
    path.write_text(MODEL + SAMPLE)
    return path


def test_inspect_prints_rules_and_shares(model: Path) -> None:
    result = run("inspect", model, "--samples", 1000)
    assert result.exit_code == 0, result.output
    from gdpnet.study import load_model

    assert result.stdout.startswith(str(load_model(model).build()))
    active, chance, target = line(result.stdout, "gap")
    assert (active, target) == ("100.0%", "100.0%")
    assert 45 < float(chance.removesuffix("%")) < 55
    assert line(result.stdout, "late") == ["50.0%", "100.0%", "100.0%"]
    assert line(result.stdout, "never") == ["100.0%", "0.0%", "0.0%"]
    assert line(result.stdout, "global constraints") == ["100.0%", "100.0%"]
    assert line(result.stdout, "all together") == ["0.0%", "0.0%"]
    assert "1000 samples, split iid, seed 0." in result.stdout
    assert "Rules at once: 2 active 50.0 %, 3 active 50.0 %." in result.stdout


def test_inspect_shows_how_far_it_is(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[str, list[float]] = {}

    @contextlib.contextmanager
    def bar(doing: str) -> Iterator[Callable[[str, float], None]]:
        assert doing == "Measuring"
        yield lambda what, share: told.setdefault(what, []).append(share)

    monkeypatch.setattr("gdpnet.cli.inspect.progress_bar", bar)
    assert run("inspect", model, "--samples", 1000).exit_code == 0
    assert list(told) == ["random predictions", "targets"]
    for shares in told.values():
        assert len(shares) > 3
        assert shares == sorted(set(shares))
        assert shares[-1] == 1.0


def test_inspect_is_reproducible(model: Path) -> None:
    first, second = run("inspect", model, "--seed", 3), run("inspect", model, "--seed", 3)
    assert first.stdout == second.stdout
    assert run("inspect", model, "--seed", 4).stdout != first.stdout


def test_inspect_without_sample(tmp_path: Path) -> None:
    path = tmp_path / "gap.py"
    path.write_text(MODEL)
    result = run("inspect", path)
    assert result.exit_code == 0, result.output
    assert "no sample()" in result.stdout


def test_inspect_with_inputs_only(tmp_path: Path) -> None:
    path = tmp_path / "gap.py"
    path.write_text(MODEL + "\ndef sample(n, split, seed): return torch.zeros(n, 1).double()\n")
    result = run("inspect", path, "--samples", 10)
    assert result.exit_code == 0, result.output
    assert line(result.stdout, "late") == ["0.0%"]
    assert "target" not in result.stdout


def test_inspect_with_an_unbounded_output(tmp_path: Path) -> None:
    path = tmp_path / "gap.py"
    free = MODEL.replace("m.z = pyo.Var(bounds=(0, 1))", "m.z = pyo.Var()")
    path.write_text(free + "\ndef sample(n, split, seed): return torch.zeros(n, 1).double()\n")
    result = run("inspect", path, "--samples", 10)
    assert result.exit_code == 0, result.output
    assert "No random predictions: an output has no bounds." in result.stdout
    path.write_text(free + SAMPLE)  # the targets' range stands in
    result = run("inspect", path, "--samples", 10)
    assert line(result.stdout, "never") == ["100.0%", "0.0%", "0.0%"]


def test_inspect_html(model: Path, tmp_path: Path) -> None:
    page = tmp_path / "build" / "gap.html"
    result = run("inspect", model, "--samples", 1000, "--html", page)
    assert result.exit_code == 0, result.output
    assert f"Wrote {page}" in result.stdout
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "<title>gap: rules</title>" in text
    assert '<th scope="row">late</th><td>50.0 %</td>' in text
    for outside in ("http://", "https://", "<script", "<link"):
        assert outside not in text, "the page should need nothing but itself"


def test_inspect_html_that_cannot_be_written(model: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run("inspect", model, "--samples", 0, "--html", tmp_path / "file" / "page.html")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")


def test_inspect_refuses_in_a_sentence(tmp_path: Path) -> None:
    result = run("inspect", tmp_path / "nowhere.py")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: No model at ")
    assert "Traceback" not in result.output


def test_inspect_unknown_split(model: Path) -> None:
    result = run("inspect", model, "--split", "mars")
    assert result.exit_code == 2
    assert "sample() raised ValueError" in result.stderr
    assert "split is 'mars', expected 'iid'" in result.stderr


def test_inspect_the_cooling_model(tmp_path: Path) -> None:
    page = tmp_path / "cooling.html"
    result = run("inspect", MODELS / "cooling", "--samples", 200, "--html", page)
    assert result.exit_code == 0, result.output
    assert "200 samples" in result.stdout
    assert page.stat().st_size > 0


def test_inspect_gives_build_what_it_wants() -> None:
    result = run("inspect", MODELS / "stress", "--samples", 20, "--build", "k=2")
    assert result.exit_code == 0, result.output
    assert "rule[1]" in result.stdout
    assert "rule[2]" not in result.stdout
    for wrong, told in (("k=two", "--build k: expected int, got 'two'"), ("k", "NAME=VALUE")):
        refused = run("inspect", MODELS / "stress", "--build", wrong)
        assert refused.exit_code == 2
        assert told in refused.stderr


def test_inspect_projects_and_checks_by_milp() -> None:
    result = run("inspect", MODELS / "cooling", "--samples", 50, "--project")
    assert result.exit_code == 0
    assert "Projected 50 predictions by the exact engine" in result.output
    assert "50 of 50 projections satisfy every rule" in result.output
