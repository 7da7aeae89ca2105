"""gdpnet beside what a user would pick instead: speed, rules broken, gradients.

    python benchmarks/run_peers.py [--quick] [--only NAME ...] [--cases NAME ...]
                                   [--resume | --report] [--python MODULE=INTERPRETER ...]
                                   [--path MODULE=FOLDER ...] [--out FOLDER] [--publish]

Peers of a module of `peers/adapters` have a process of their own, with one thread, and every cell
of the table (a peer, a case, a batch) a fork of it. All peers run a case before the next case
begins. Peers that are not installed, refuse, crash or take too long are rows of the table like the
others. Peers whose dependencies clash run with another interpreter, which needs numpy, scipy, torch
and the peers of that module: `--python layers=/path/to/python`. A peer that is no package is looked
for in a folder: `--path drl=/path/to/PiShield`, a clone of its repository. Each cell is kept in the
folder: `--resume` measures only those that are missing, `--report` none. Each family of cases (l1,
l2, tables) has a csv and a stamp of its own, and a run leaves those of the others as they are.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from _results import PUBLISHED, write_rows, write_stamp

from gdpnet.study.stamp import stamp

HERE = Path(__file__).parent
THREADS = ("OMP", "MKL", "OPENBLAS")

BATCHES = {"cooling": (256, 1, 4096)}
FEW = ("stress", "random", "groups")  # these have batches of 64
FULL = {"timing": 0.4, "building": 2.0}
QUICK = {"timing": 0.1, "building": 0.5}
LIMIT = 60.0  # seconds, after which a cell is ended


class Worker:
    """The process of the peers of one module."""

    def __init__(self, module: str, interpreter: str, folder: str = "") -> None:
        path = os.pathsep.join([*([folder] if folder else []), str(HERE), str(HERE.parent)])
        threads = {f"{name}_NUM_THREADS": "1" for name in THREADS}
        self.process = subprocess.Popen(
            [interpreter, "-W", "ignore", "-m", "peers.worker", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **threads, "PYTHONPATH": path},
        )
        self.hello = self._read()

    def run(self, task: dict[str, Any]) -> dict[str, Any]:
        """The answer to a cell."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(task) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return {"status": "crash", "message": "the process is gone"}
        return self._read()

    def close(self) -> None:
        """End the process."""
        self.process.communicate()

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            return {"status": "crash", "message": "the process is gone"}
        return json.loads(line)


def main() -> None:
    """Run everything."""
    arguments = _arguments()
    from peers.cases import family, names
    from peers.judge import Judge, broken_of_many
    from peers.registry import ENTRIES

    folder: Path = arguments.out
    kept = folder / "cells"
    kept.mkdir(parents=True, exist_ok=True)
    load = list(os.getloadavg())
    known = {entry.module for entry in ENTRIES.values()}
    interpreters = _pairs("python", arguments.python, known)
    folders = _pairs("path", arguments.path, known)
    cases = [case for case in names() if not arguments.cases or case in arguments.cases]
    if not cases:
        sys.exit(f"--cases: expected some of {', '.join(names())}.")
    asked = {family(case) for case in cases}
    titles = [
        title
        for title, entry in ENTRIES.items()
        if asked & set(entry.families)
        and (not arguments.only or any(name in title for name in arguments.only))
    ]
    budget = QUICK if arguments.quick else FULL
    began = time.perf_counter()
    modules = [] if arguments.report else dict.fromkeys(ENTRIES[t].module for t in titles)
    workers = {
        m: Worker(m, interpreters.get(m, sys.executable), folders.get(m, "")) for m in modules
    }
    rows = []
    for case in cases:
        batches = BATCHES.get(case, (64,) if case.startswith(FEW) else (256,))
        problem_file = folder / "problem.pickle"
        judge: Judge | None = None
        for batch in batches:
            for title in titles:
                entry = ENTRIES[title]
                if entry.only and not case.startswith(entry.only):
                    continue
                if family(case) not in entry.families:
                    continue
                cell = kept / f"{title}, {case}, {batch}.json".replace("/", "-")
                if arguments.report and not cell.exists():
                    continue
                if not (arguments.report or (arguments.resume and cell.exists())):
                    if judge is None:
                        judge = _judge(case, max(batches), problem_file)
                    head = {"peer": title, "program": entry.program, "case": case, "batch": batch}
                    head["family"] = family(case)
                    worker = workers[entry.module]
                    row = head | _cell(worker, entry.peer, judge, problem_file, batch, budget)
                    cell.write_text(json.dumps(row))
                row = json.loads(cell.read_text())
                rows.append(row)
                print(_line(row), flush=True)
    for worker in workers.values():
        worker.close()
    many = broken_of_many(10_000 if arguments.quick else 100_000) if "l1" in asked else None
    packages = tuple(dict.fromkeys(ENTRIES[t].package for t in titles))
    made = stamp(packages, load) | {"seconds": round(time.perf_counter() - began, 1)}
    made |= {f"{module} from a clone at": _commit(path) for module, path in folders.items()}
    told_then = folder / "measured.json"  # where and when the cells were measured
    if arguments.report and told_then.exists():
        made = json.loads(told_then.read_text())
    write_stamp(told_then, made)
    _write(rows, many, made, [folder, *([PUBLISHED] if arguments.publish else [])])


WANTED = {
    "python": ("a program that can be run", lambda value: shutil.which(value) is not None),
    "path": ("a folder", lambda value: Path(value).is_dir()),
}


def _pairs(option: str, pairs: Iterable[str], modules: Iterable[str]) -> dict[str, str]:
    """What was given for modules by an option, `MODULE=VALUE` each."""
    wanted, is_right = WANTED[option]
    found = {}
    for pair in pairs:
        module, _, value = pair.partition("=")
        if module not in modules or not is_right(value):
            sys.exit(
                f"--{option} {pair}: expected MODULE=VALUE, with one of "
                f"{', '.join(sorted(modules))} and {wanted}."
            )
        found[module] = value
    return found


def _commit(folder: str) -> str:
    command = ["git", "-C", folder, "rev-parse", "--short=12", "HEAD"]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    return told.stdout.strip() or "an unknown commit"


def _judge(case: str, count: int, path: Path) -> Any:
    from peers.cases import make
    from peers.judge import Judge

    problem = make(case, count)
    path.write_bytes(pickle.dumps(problem))
    return Judge(problem)


def _cell(
    worker: Worker, peer: str, judge: Any, problem: Path, batch: int, budget: dict[str, float]
) -> dict[str, Any]:
    if worker.hello["status"] != "ready":
        return worker.hello
    out = problem.with_name("answer.pickle")
    task = {"peer": peer, "problem": str(problem), "batch": batch, "out": str(out)}
    answer = worker.run(task | {"budget": budget, "limit": LIMIT})
    if answer["status"] != "done":
        return answer
    found = pickle.loads(out.read_bytes())
    if "failed" in found:
        return {"status": found["failed"], "message": found["message"]}
    looked = {k: v.item() if hasattr(v, "item") else v for k, v in judge.look(found).items()}
    return answer | looked


def _write(
    rows: list[dict[str, Any]], many: dict[str, int] | None, made: dict[str, Any], to: list[Path]
) -> None:
    """Rows, then everything that is made of them, from the files."""
    from peers import report
    from tables import described

    written: dict[str, list[dict[str, Any]]] = {} if many is None else {"peers.many": [many]}
    for row in rows:
        renamed = {key.replace("1e-", "1e_"): value for key, value in row.items()}
        written.setdefault(report.file_of(renamed.pop("family")), []).append(renamed)
    for folder in to:
        folder.mkdir(parents=True, exist_ok=True)
        for name, table in written.items():
            write_rows(folder / f"{name}.csv", table)
            write_stamp(folder / f"{name}.json", made)
        cells = report.read(folder)
        cells.to_parquet(folder / "peers.parquet")
        if many is not None:
            report.figure(cells, folder / "peers.png")
            (folder / "peers.md").write_text(report.page(folder))
    print()
    for claim in report.claims(cells, many) if many is not None else ():
        print(" | ".join(claim))
    print(f"\n{described(made)}\nwritten to {', '.join(map(str, to))}")


def _line(row: dict[str, Any]) -> str:
    head = f"{row['case']:17s} {row['batch']:5d}  {row['peer']:42s}"
    if row["status"] != "done":
        return f"{head} {row['status']}: {row.get('message', '')}"[:150]
    both = f"{row['both_us']:11.1f}" if "both_us" in row else " " * 11
    broken = f"broken {100 * row['broken_1e-4']:5.1f} %"
    tied = f", ties {100 * row['ties_broken_1e-4']:5.1f} %" if "ties_broken_1e-4" in row else ""
    return f"{head} {row['forward_us']:11.1f} {both} us, {broken}{tied}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="shorter times, to see that it works")
    parser.add_argument("--only", nargs="+", default=[], help="peers whose title contains this")
    parser.add_argument("--cases", nargs="+", default=[], help="these cases")
    parser.add_argument("--resume", action="store_true", help="keep the cells in the folder")
    parser.add_argument("--report", action="store_true", help="only write what is in the folder")
    parser.add_argument("--python", nargs="+", default=[], metavar="MODULE=INTERPRETER")
    parser.add_argument("--path", nargs="+", default=[], metavar="MODULE=FOLDER")
    parser.add_argument(
        "--publish", action="store_true", help="write to benchmarks/results as well"
    )
    parser.add_argument("--out", type=Path, default=HERE.parent / "build" / "peers")
    return parser.parse_args()


if __name__ == "__main__":
    main()
