"""The compiled core beside the kernels that it replaced: two trees, two processes, one run.

    python benchmarks/native.py --old PYTHON --old-tree FOLDER [--quick] [--publish]
                                [--only TEXT ...] [--skip-cold]

FOLDER is a checkout of the last commit with numba kernels, 6fabd1b; PYTHON is an interpreter that
has what it requires. Its kernels should be compiled and cached before, by
`gdpnet.warmup(relaxations=True)`. Each tree has a worker, a process that makes a case and times it
when it is told to: the old one, the new one, the old one, and so on, so both see the same machine.
Times are processor time, one thread, a sample; medians and least of the rounds. First uses are
timed in fresh processes, again in turns. The new tree is this one unless `--new-tree` names
another; its interpreter is the one that runs this.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from _native_cases import CASES, FIRST, digest, first_use, tree
from _results import ROOT, Results, parsed, parser

THREADS = ("OMP", "MKL", "OPENBLAS", "NUMBA")
SIDES = ("old", "new")


# ---- in a worker --------------------------------------------------------------------------------


def work() -> None:
    """Answer each line of json by one: make a case, time it."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    import torch

    torch.set_num_threads(1)
    sys.path.insert(0, str(tree() / "benchmarks"))  # peers of the tree, which fit its gdpnet
    timed, inner = None, 1
    for line in sys.stdin:
        task = json.loads(line)
        try:
            if task["do"] == "make":
                timed = CASES[tuple(task["case"])]()
                told = {"answer": digest(timed.call()), "nodes": timed.nodes}
                once = min(_seconds(timed.call, 1) for _ in range(2))
                inner = max(1, int(task["least"] / max(once, 1e-7)))
            else:
                told = {"seconds": _seconds(timed.call, inner) / timed.samples}
        except Exception as error:  # told as a row, the others go on
            told = {"failed": f"{type(error).__name__}: {error}"[:200]}
        answers.write(json.dumps(told) + "\n")
        answers.flush()


def _seconds(call: Any, inner: int) -> float:
    start = time.process_time()
    for _ in range(inner):
        call()
    return (time.process_time() - start) / inner


# ---- who tells them -----------------------------------------------------------------------------


class Side:
    """A tree, its interpreter, and its worker."""

    def __init__(self, interpreter: str, folder: Path) -> None:
        self._command = [interpreter, "-W", "ignore", __file__]
        threads = {f"{name}_NUM_THREADS": "1" for name in THREADS}
        self._environment = {**os.environ, **threads, "PYTHONPATH": str(folder)}
        self._worker: subprocess.Popen[str] | None = None

    def ask(self, **task: Any) -> dict[str, Any]:
        """The worker's answer."""
        if self._worker is None:
            self._worker = subprocess.Popen(
                [*self._command, "--worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=self._environment,
            )
        assert self._worker.stdin is not None
        assert self._worker.stdout is not None
        try:
            self._worker.stdin.write(json.dumps(task) + "\n")
            self._worker.stdin.flush()
            line = self._worker.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self._worker = None  # the next case gets a new one
            return {"failed": "the process is gone"}
        return json.loads(line)

    def fresh(self, name: str) -> dict[str, Any]:
        """A first use in a process of its own."""
        told = subprocess.run(
            [*self._command, "--first", name],
            capture_output=True,
            text=True,
            env=self._environment,
            check=False,
        )
        if told.returncode:
            return {"failed": (told.stderr.strip().splitlines() or ["no word"])[-1][:200]}
        return json.loads(told.stdout.splitlines()[-1])

    def close(self) -> None:
        """End the worker."""
        if self._worker is not None:
            self._worker.communicate()


def warm(results: Results, sides: dict[str, Side], rounds: int, least: float, only: list) -> None:
    """Every case, in turns."""
    for group, case in CASES:
        if only and not any(text in f"{group}: {case}" for text in only):
            continue
        task = {"do": "make", "case": (group, case), "least": least}
        made = {name: side.ask(**task) for name, side in sides.items()}
        failed = {name: told["failed"] for name, told in made.items() if "failed" in told}
        times: dict[str, list[float]] = {name: [] for name in SIDES}
        for _round in range(0 if failed else rounds):
            for name, side in sides.items():
                told = side.ask(do="time")
                if "failed" in told:
                    failed[name] = told["failed"]
                else:
                    times[name].append(told["seconds"])
        row: dict[str, Any] = {"group": group, "case": case}
        for name in SIDES:
            row[f"{name}_s"] = None if failed else statistics.median(times[name])
        for name in SIDES:
            row[f"{name}_least_s"] = None if failed else min(times[name])
        for name in SIDES:
            row[f"{name}_nodes"] = made[name].get("nodes")
        row["difference"] = None if failed else abs(made["old"]["answer"] - made["new"]["answer"])
        row["rounds"] = rounds
        row["failed"] = ", ".join(f"{k}: {v}" for k, v in failed.items()) or None
        results.add("warm", **row)


def cold(results: Results, sides: dict[str, Side], rounds: int, only: list) -> None:
    """Imports and first uses."""
    imports: dict[str, list[dict[str, float]]] = {name: [] for name in SIDES}
    rows = []
    for use in FIRST:
        if only and not any(text in f"cold: {use}" for text in only):
            continue
        found: dict[str, list[dict[str, float]]] = {name: [] for name in SIDES}
        failed = {}
        for _round in range(rounds):
            for name in SIDES:
                told = {} if name in failed else sides[name].fresh(use)
                if "failed" in told:
                    failed[name] = told["failed"]
                elif told:
                    found[name].append(told)
                    imports[name].append(told)
        title = f"first {use}" if use == "projection" else f"first use of {use.split(': ')[1]}"
        rows.append((title, "first", found, failed))
    parts = {"import torch": "torch", "import gdpnet, after torch": "gdpnet"}
    parts["reading the README's rules"] = "rules"
    rows = [*((title, what, imports, {}) for title, what in parts.items()), *rows]
    for title, what, found, failed in rows:
        row: dict[str, Any] = {"what": title}
        for suffix, key, take in (
            ("_s", what, statistics.median),
            ("_least_s", what, min),
            ("_peak_bytes", f"{what}_peak", statistics.median),
        ):
            for name in SIDES:
                values = [told[key] for told in found[name]]
                row[f"{name}{suffix}"] = take(values) if values else None
        row["rounds"] = max(len(found[name]) for name in SIDES)
        row["failed"] = ", ".join(f"{k}: {v}" for k, v in failed.items()) or None
        results.add("cold", **row)


def main() -> None:
    options = parser(__doc__, "two short rounds")
    options.add_argument("--old", metavar="PYTHON", help="interpreter of the old tree")
    options.add_argument("--old-tree", metavar="FOLDER", type=Path, help="the old tree")
    options.add_argument("--new-tree", metavar="FOLDER", type=Path, default=ROOT)
    options.add_argument("--only", nargs="+", default=[], help="cases whose name contains this")
    options.add_argument("--skip-cold", action="store_true", help="no fresh processes")
    options.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options.add_argument("--first", choices=FIRST, help=argparse.SUPPRESS)
    arguments = parsed(options)
    if arguments.worker:
        return work()
    if arguments.first:
        return print(json.dumps(first_use(arguments.first)))
    if not (arguments.old and arguments.old_tree):
        options.error("--old PYTHON and --old-tree FOLDER: what this tree is compared with")
    if shutil.which(arguments.old) is None or not (arguments.old_tree / "gdpnet").is_dir():
        options.error("--old is no program, or --old-tree has no gdpnet")
    if arguments.publish and (arguments.only or arguments.skip_cold or arguments.new_tree != ROOT):
        options.error("what is published is measured whole, on this tree")
    sides = {
        "old": Side(arguments.old, arguments.old_tree.resolve()),
        "new": Side(sys.executable, arguments.new_tree.resolve()),
    }
    from gdpnet.study.stamp import commit

    results = Results("native", arguments, about={"old tree": commit(arguments.old_tree)})
    rounds, least = (2, 0.02) if arguments.quick else (9, 0.1)
    warm(results, sides, rounds, least, arguments.only)
    if not arguments.skip_cold:
        cold(results, sides, 2 if arguments.quick else 5, arguments.only)
    for side in sides.values():
        side.close()
    results.write()
    return None


if __name__ == "__main__":
    main()
