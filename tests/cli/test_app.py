"""The command line as a whole."""

import subprocess
import sys
import textwrap
from importlib.metadata import version
from pathlib import Path

from tests.cli._calls import run


def test_version() -> None:
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout == f"gdpnet {version('gdpnet')}\n"


def test_help_names_the_commands() -> None:
    result = run("--help")
    assert result.exit_code == 0
    for command in ("doctor", "inspect", "compare", "project"):
        assert f" {command} " in result.stdout


def test_traceback_on_request(tmp_path: Path) -> None:
    from gdpnet.errors import ModelFileError

    result = run("--traceback", "inspect", tmp_path / "nowhere.py")
    assert result.exit_code == 1
    assert isinstance(result.exception, ModelFileError)


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
