"""pytest with another build of the compiled core, such as one with sanitizers.

    python -m tests.with_core build/sanitize/module tests/solve/test_bank.py

The first argument is the folder that holds the module; the others are pytest's.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

NAME = "gdpnet.core._native"


def main(folder: str, *arguments: str) -> int:
    (file,) = Path(folder).resolve().glob("_native.*")
    spec = importlib.util.spec_from_file_location(NAME, file)
    assert spec is not None
    assert spec.loader is not None
    # Who imports the border afterwards finds this one.
    sys.modules[NAME] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[NAME])
    from gdpnet import core

    assert core.AVAILABLE, core.WHY_MISSING
    assert core._native.__file__ == str(file)
    print(f"the core is {file}", flush=True)
    return int(pytest.main(list(arguments)))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
