"""Run all benchmarks, one after the other, and with --publish fill the pages from what they found.

    python benchmarks/run_all.py [NAME ...] [--quick] [--publish] [--list]
                                 [--old PYTHON --old-tree FOLDER]

`--old` and `--old-tree` are for native.py, which is left out without them. `--list` tells how long
each takes. A script that fails is told at the end, and the others are run all the same.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

from _results import PUBLISHED, ROOT

HERE = Path(__file__).parent

# Minutes on a quiet machine, about; where a run is published its stamp knows better.
SCRIPTS = {
    "rules": 0.2,
    "euclidean": 1,
    "convex": 3,
    "norms": 1,
    "prices": 1,
    "instructions": 1,
    "exact": 2,
    "overhead": 2,
    "programs": 0.5,
    "layer": 4,
    "relaxations": 4,
    "plans": 4,
    "native": 8,
    "constants": 4,
    "forwards": 5,
    "tasks": 8,
    "gradients": 8,
    "serving": 3,
    "bulk": 4,
    "run_peers": 11,
    "coupled": 60,
}

# Of packages that are installed by `make test-integrations`, and not beside the others.
NEEDED = {"serving": ("fastapi", "uvicorn"), "bulk": ("ray",)}


def minutes(name: str) -> float:
    """How long a script takes."""
    stem = "peers" if name == "run_peers" else name
    for path in sorted(PUBLISHED.glob(f"{stem}*.json")):
        seconds = json.loads(path.read_text(encoding="utf-8")).get("seconds")
        if seconds:
            return seconds / 60
    return SCRIPTS[name]


def reason_to_skip(name: str, arguments: argparse.Namespace) -> str | None:
    """Why a script cannot be run here, if so."""
    if name == "native" and not (arguments.old and arguments.old_tree):
        return "needs --old and --old-tree"
    if name == "instructions":
        missing = [tool for tool in ("cmake", "valgrind") if shutil.which(tool) is None]
        return f"needs {' and '.join(missing)}" if missing else None
    absent = [each for each in NEEDED.get(name, ()) if importlib.util.find_spec(each) is None]
    if absent:
        return f"needs {' and '.join(absent)}: run it by build/integrations/bin/python"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SCRIPTS)}")
    parser.add_argument("--quick", action="store_true", help="the short form of each")
    parser.add_argument("--publish", action="store_true", help="store results and fill the pages")
    parser.add_argument("--list", action="store_true", help="tell how long each takes")
    parser.add_argument("--old", metavar="PYTHON")
    parser.add_argument("--old-tree", metavar="FOLDER")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in SCRIPTS]
    if unknown:
        parser.error(f"no benchmark is called {', '.join(unknown)}")
    names = arguments.names or list(SCRIPTS)
    if arguments.list:
        print("\n".join(f"{name:13s} {minutes(name):5.1f} minutes" for name in names))
        return 0
    told = []
    for name in names:
        reason = reason_to_skip(name, arguments)
        if reason:
            told.append(f"{name}: left out, {reason}")
            continue
        words = [f"--{word}" for word in ("quick", "publish") if getattr(arguments, word)]
        if name == "native":
            words += ["--old", arguments.old, "--old-tree", arguments.old_tree]
        print(f"\n== {name}", flush=True)
        start = time.perf_counter()
        ended = subprocess.run([sys.executable, str(HERE / f"{name}.py"), *words], check=False)
        taken = (time.perf_counter() - start) / 60
        failed = f"failed with {ended.returncode}, " if ended.returncode else ""
        told.append(f"{name}: {failed}{taken:.1f} minutes")
    if arguments.publish:
        subprocess.run([sys.executable, str(HERE / "fill.py")], cwd=ROOT, check=True)
    print("\n" + "\n".join(told))
    return int(any("failed" in line for line in told))


if __name__ == "__main__":
    sys.exit(main())
