"""What is promised to work without a package, in an interpreter that cannot import it.

`make test-minimal` does the same in environments where the packages are not installed.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.environments.smoke import MESSAGES

SMOKE = Path(__file__).with_name("smoke.py")
ROOT = SMOKE.parents[2]

# Stands before everything that finds modules, so nothing of the package can be imported.
PREAMBLE = """
import runpy, sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {package!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
sys.argv[1:] = [{package!r}]
runpy.run_path({smoke!r}, run_name="__main__")
"""


@pytest.mark.parametrize("package", MESSAGES)
def test_saved_rules_run_without(package: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PREAMBLE.format(package=package, smoke=str(SMOKE))],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"fine without {package}\n"
