"""The command line, called in process; shares are compared with what the model makes certain."""

import os
import subprocess
import sys
import textwrap
from importlib.metadata import version
from pathlib import Path

import gurobipy
import pytest
from typer.testing import CliRunner, Result

from gdpnet import cli

MODELS = Path(__file__).parents[1] / "models"

# t runs through 0 .. n-1, so `late` is active on exactly half; y lies in [0, 1], so `never` and
# `always` are certain and `gap` holds for half of all uniform predictions.
MODEL = """
import gdpnet
import pyomo.environ as pyo
import torch
from pyomo.gdp import Disjunction


def build():
    m = pyo.ConcreteModel()
    m.t = pyo.Param(mutable=True, initialize=0.0)
    m.y = pyo.Var(bounds=(0, 1))
    m.z = pyo.Var(bounds=(0, 1))
    m.gap = Disjunction(expr=[[m.y <= 0.25], [m.y >= 0.75]])
    m.late = Disjunction(expr=[[m.y <= 1], [m.y >= 0.9]])
    m.never = Disjunction(expr=[[m.y >= 2], [m.y + m.z >= 3]])
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.active_when[m.late] = m.t >= HALF
    return gdpnet.RuleModel(m, outputs=[m.y, m.z], inputs=[m.t])


HALF = 500
"""

SAMPLE = """
def sample(n, split="iid", seed=0):
    if split != "iid":
        raise ValueError(f"split is {split!r}, expected 'iid'")
    return torch.arange(n, dtype=torch.float64)[:, None], torch.zeros(n, 2, dtype=torch.float64)
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "gap.py"
    path.write_text(MODEL + SAMPLE)
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli.app, [str(a) for a in arguments])


def line(output: str, start: str) -> list[str]:
    """The cells of the table's line that starts so."""
    (found,) = [row for row in output.splitlines() if row.startswith(start + " ")]
    return found.removeprefix(start).replace(" %", "%").split()


def test_version() -> None:
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout == f"gdpnet {version('gdpnet')}\n"


def test_help_names_the_commands() -> None:
    result = run("--help")
    assert result.exit_code == 0
    assert "doctor" in result.stdout
    assert "inspect" in result.stdout


def test_doctor() -> None:
    result = run("doctor")
    assert result.exit_code == 0, result.output
    for name in ("gdpnet", "pyomo", "torch", "numpy", "numba", "highspy", "networkx"):
        assert version(name) in result.stdout
    assert "HiGHS" in result.stdout
    assert "Gurobi" in result.stdout
    assert f"{os.cpu_count()} cores" in result.stdout


def test_doctor_fails_if_the_core_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)  # import raises ModuleNotFoundError
    result = run("doctor")
    assert result.exit_code == 1
    assert "cannot work here: highspy, HiGHS." in result.stdout


def test_doctor_does_without_gurobi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gurobipy", None)
    result = run("doctor")
    assert result.exit_code == 0
    assert "gurobipy cannot be imported" in result.stdout


@pytest.mark.gurobi
def test_gurobi_line_says_what_the_licence_allows() -> None:
    check = cli._check_gurobi()
    if not check.ok:
        assert "no usable licence" in check.detail
        return
    # The reference: whether 2001 rows, another way to exceed the limit, are taken.
    with gurobipy.Env(params={"OutputFlag": 0}) as env, gurobipy.Model(env=env) as model:
        x = model.addVar()
        model.addConstrs(x >= i for i in range(2001))
        try:
            model.optimize()
            limited = False
        except gurobipy.GurobiError:
            limited = True
    assert ("size-limited" in check.detail) == limited
    assert ("any size" in check.detail) == (not limited)


def test_gurobi_without_licence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise gurobipy.GurobiError(gurobipy.GRB.Error.NO_LICENSE, "No Gurobi license found")

    monkeypatch.setattr(gurobipy, "Env", refuse)
    check = cli._check_gurobi()
    assert not check.ok
    assert not check.core
    assert "no usable licence: No Gurobi license found" in check.detail


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
    assert "<td>late</td><td>50.0 %</td>" in text
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


def test_traceback_on_request(tmp_path: Path) -> None:
    from gdpnet.errors import ModelFileError

    result = run("--traceback", "inspect", tmp_path / "nowhere.py")
    assert result.exit_code == 1
    assert isinstance(result.exception, ModelFileError)


def test_inspect_the_cooling_model(tmp_path: Path) -> None:
    page = tmp_path / "cooling.html"
    result = run("inspect", MODELS / "cooling", "--samples", 200, "--html", page)
    assert result.exit_code == 0, result.output
    assert "200 samples" in result.stdout
    assert page.stat().st_size > 0


def test_as_a_module_without_a_traceback(tmp_path: Path) -> None:
    script = [sys.executable, "-m", "gdpnet.cli"]
    done = subprocess.run(
        [*script, "inspect", "nowhere"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert "nowhere" in done.stderr


def test_import_starts_no_solver_and_draws_no_figure() -> None:
    code = """
        import sys
        import gdpnet
        unwanted = {"highspy", "gurobipy", "matplotlib", "typer"} & set(sys.modules)
        assert not unwanted, unwanted
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


def test_inspect_projects_and_checks_by_milp() -> None:
    result = run(
        "inspect", Path(__file__).parents[1] / "models" / "cooling", "--samples", "50", "--project"
    )
    assert result.exit_code == 0
    assert "Projected 50 predictions by the exact engine" in result.output
    assert "50 of 50 projections satisfy every rule" in result.output
