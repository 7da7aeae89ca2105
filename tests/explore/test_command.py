"""`gdpnet explore`."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from gdpnet.cli import app

MODELS = Path(__file__).parents[2] / "models"


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["explore", *arguments])
    return result.exit_code, result.output


def test_cooling(tmp_path: Path) -> None:
    page = tmp_path / "new" / "page.html"
    code, output = run(
        str(MODELS / "cooling"), "-o", str(page), "--outputs", "c,p", "--samples", "3"
    )
    assert (code, output.strip()) == (0, f"Wrote {page}")
    text = page.read_text()
    assert '"pair": [1, 2]' in text
    assert "<title>cooling: rules</title>" in text


def test_arguments_of_build(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert run(str(MODELS / "toy"), "--build", "name=figure1", "-o", str(page))[0] == 0
    assert "<title>toy figure1: rules</title>" in page.read_text()
    code, output = run(str(MODELS / "toy"), "--build", "figure1", "-o", str(page))
    assert code == 2
    assert "expected NAME=VALUE" in output


def test_nothing_is_written_where_it_cannot_be(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    code, output = run(str(MODELS / "toy"), "--outputs", "y,z", "-o", str(page))
    assert code == 2
    assert "'z' is no output" in output
    assert not page.exists()
    assert run(str(MODELS / "cooling"), "-o", str(tmp_path))[0] == 2
