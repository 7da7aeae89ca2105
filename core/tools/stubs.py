"""Writes gdpnet/core/_native.pyi, and the core's names into gdpnet/core/__init__.py: make stubs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

BORDER = Path(__file__).parents[2] / "gdpnet" / "core"


def main() -> None:
    """Write both."""
    command = [sys.executable, "-m", "nanobind.stubgen", "--quiet", "--exclude-values"]
    command += ["-i", str(BORDER), "-m", "_native", "-o", str(BORDER / "_native.pyi")]
    subprocess.run(command, check=True)
    # Not by way of the package: what its list lacks, others cannot import from it.
    sys.path.insert(0, str(BORDER))
    import _native

    names = [name for name in dir(_native) if not name.startswith("_")]
    lines = "".join(f"    from gdpnet.core._native import {name} as {name}\n" for name in names)
    file = BORDER / "__init__.py"
    listed = r"(?<=if TYPE_CHECKING:\n)(?:    from gdpnet\.core\._native .*\n)+"
    file.write_text(re.sub(listed, lines, file.read_text(encoding="utf-8")), encoding="utf-8")
    subprocess.run([sys.executable, "-m", "ruff", "check", "--fix", "--quiet", file], check=True)


if __name__ == "__main__":
    main()
