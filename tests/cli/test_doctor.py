"""What `gdpnet doctor` says of this machine, and of one on which something is missing."""

import sys
from importlib.metadata import version

import gurobipy
import pytest

import gdpnet
from gdpnet import core
from gdpnet.cli.doctor import _check_gurobi
from gdpnet.threads import cores, workers_of
from tests.cli._calls import run


def test_doctor() -> None:
    result = run("doctor")
    assert result.exit_code == 0, result.output
    for name in ("gdpnet", "pyomo", "torch", "numpy", "highspy", "networkx"):
        assert version(name) in result.stdout
    assert "HiGHS" in result.stdout
    assert "Gurobi" in result.stdout
    assert f"{cores()} cores" in result.stdout
    assert f"gdpnet {workers_of(None)}" in result.stdout


def test_doctor_fails_without_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)  # import raises ModuleNotFoundError
    result = run("doctor")
    assert result.exit_code == 1
    assert "cannot work here: highspy, HiGHS." in result.stdout


def test_doctor_does_without_gurobi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gurobipy", None)
    result = run("doctor")
    assert result.exit_code == 0
    assert "no gurobipy cannot be imported" in " ".join(result.stdout.split())


def test_doctor_shows_the_core() -> None:
    told = " ".join(run("doctor").stdout.split())
    assert f"ok compiled core {gdpnet.__version__}, by {core.COMPILER}" in told
    assert "; projects" in told


def test_doctor_does_without_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gdpnet.core.AVAILABLE", False)
    monkeypatch.setattr("gdpnet.core.WHY_MISSING", "The compiled core cannot be loaded (why). Do")
    result = run("doctor")
    assert result.exit_code == 0
    told = " ".join(result.stdout.split())
    assert "no compiled core cannot be loaded (why). Do; HiGHS does the exact engine's work" in told


def test_doctor_says_that_the_core_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gdpnet.core.out_of_date", lambda: "It is old.")
    result = run("doctor")
    assert result.exit_code == 0
    assert "no compiled core" in " ".join(result.stdout.split())
    assert "It is old." in result.stdout


def test_doctor_fails_if_the_core_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gdpnet.cli.doctor._project_one", lambda: 7.0)
    result = run("doctor")
    assert result.exit_code == 1
    assert "cannot work here: compiled core." in result.stdout


@pytest.mark.gurobi
def test_gurobi_line_says_what_the_licence_allows() -> None:
    check = _check_gurobi()
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
    check = _check_gurobi()
    assert not check.ok
    assert not check.needed
    assert "no usable licence: No Gurobi license found" in check.detail
