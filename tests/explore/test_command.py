"""`gdpnet explore`."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from gdpnet.cli.app import app

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


INDEXED = """
import gdpnet
import pyomo.environ as pyo
from pyomo.gdp import Disjunction

def build():
    m = pyo.ConcreteModel()
    m.P = pyo.Var(["g1", "g2"], [1, 2], bounds=(0, 10))
    m.d = Disjunction(expr=[[m.P["g1", 1] <= 3], [m.P["g2", 1] >= 7]])
    return gdpnet.RuleModel(m, outputs=[m.P])
"""


@pytest.mark.parametrize(
    ("given", "pair"),
    [
        ("P[g1,1],P[g2,1]", [0, 2]),
        ("P[g2,2], P[g1,2]", [3, 1]),
        ("P[g1, 1] , P[g2, 1]", [0, 2]),
        ("0,2", [0, 2]),
        ("3, P[g1,1]", [3, 0]),
    ],
)
def test_outputs_with_several_indices_and_by_number(
    given: str, pair: list[int], tmp_path: Path
) -> None:
    model, page = tmp_path / "model.py", tmp_path / "page.html"
    model.write_text(INDEXED)
    code, output = run(str(model), "--outputs", given, "-o", str(page))
    assert code == 0, output
    assert f'"pair": {pair}' in page.read_text()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("P[g1,1]", "expected two names or indices"),
        ("P[g1,1],P[g1,1]", "two different ones"),
        ("0,9", "0 to 3"),
        ("P[g1,1],Q", "'Q' is no output"),
        ("", "outputs"),
    ],
)
def test_outputs_that_are_none(given: str, told: str, tmp_path: Path) -> None:
    model, page = tmp_path / "model.py", tmp_path / "page.html"
    model.write_text(INDEXED)
    code, output = run(str(model), "--outputs", given, "-o", str(page))
    assert code == 2
    assert told in " ".join(output.split())
    assert not page.exists()
