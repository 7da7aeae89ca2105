"""How many instructions the search takes: the same on every run, whatever else the machine does.

    python benchmarks/instructions.py [--quick] [--publish]

Fixed samples of fixed problems are written out as arrays and projected, some in l2, by a small
program of the core's sources (core/tests/count_search.cpp) under valgrind, which counts the
instructions of the search alone: memory is there, nothing is read, no Python. Counts are compared
with those of benchmarks/results. What takes more than 3 % more than stored is told, and the exit
code is 1. Counts of another compiler are not compared. `--publish` stores those of this tree. Needs
cmake, a C++ compiler and valgrind.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _results import PUBLISHED, ROOT, UNPUBLISHED, Results, Row, parsed, parser, read_rows

from gdpnet.ir.instance import Instance
from gdpnet.solve.exact.backend import engine_of
from gdpnet.solve.exact.engine import activity_of
from gdpnet.solve.exact.options import SearchOptions
from gdpnet.study import load_model
from gdpnet.testing.problems.large import dense_rules, label_groups

MORE = 1.03
BUILD = ROOT / "build" / "count"


# ---- problems -----------------------------------------------------------------------------------


def problems() -> Iterator[tuple[str, str, Any, np.ndarray, np.ndarray]]:
    """Name, norm, rules, inputs and predictions."""
    model = load_model(ROOT / "models" / "cooling")
    halves = [model.sample(128, split=split, seed=0)[0].numpy() for split in ("iid", "ood")]
    yhat = np.random.default_rng(0).uniform(0, 1, (256, 3))
    cooling = model.build(), np.concatenate(halves), yhat
    yield "cooling, 7 rules, d = 3", "l1", *cooling
    for name, make in (
        ("random 20, 10 rules x 3 disjuncts x 3 rows", dense_rules),
        ("groups 100, 20 groups", label_groups),
    ):
        case = make(16)
        yield name, "l1", case.rules(), np.zeros((16, 0)), case.yhat.numpy()
    yield "cooling, l2", "l2", *cooling
    case = dense_rules(16)
    yield "random 20, l2", "l2", case.rules(), np.zeros((16, 0)), case.yhat.numpy()


def arrays(rules: Any, x: np.ndarray, yhat: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """All that the program reads, in its order."""
    engine, instance = engine_of(rules), Instance.of(rules, np.ascontiguousarray(x))
    options = SearchOptions(np.ones(yhat.shape[1]), threads=1)
    yield "components", np.array(len(engine.components))
    for component in engine.components:
        prepared = component.prepared._asdict()
        assert prepared.pop("curves") is None  # the program knows linear rows
        yield from prepared.items()
        yield from component.logic._asdict().items()
        yield "size", np.array(len(yhat))
        yield "active", activity_of(component, instance.active)
        yield "coefficients", instance.varying[:, component.varying][:, :, component.columns]
        yield "bound", instance.bound[:, component.rows]
        yield "price", instance.price[:, component.priced]
        yield "yhat", yhat[:, component.outputs]
        yield "weights", options.weights[component.outputs]
        for name in ("node_limit", "tolerance", "lost"):
            yield name, np.array(getattr(options, name))


def write(path: Path, found: Iterator[tuple[str, Any]]) -> None:
    """A line an array; floats lose nothing."""
    with path.open("w") as file:
        for name, values in found:
            flat = np.asarray(values, dtype=float).ravel()
            print(name, len(flat), *(x.hex() for x in flat.tolist()), file=file)


# ---- counting -----------------------------------------------------------------------------------


def built() -> Path:
    """The program, made anew where sources have changed."""
    options = ["-DGDPNET_PYTHON=OFF", "-DGDPNET_COUNT=ON", "-DCMAKE_BUILD_TYPE=Release"]
    for words in (
        ["cmake", "-S", str(ROOT / "core"), "-B", str(BUILD), *options],
        ["cmake", "--build", str(BUILD), "--target", "count_search"],
    ):
        told = subprocess.run(words, capture_output=True, text=True, check=False)
        if told.returncode:
            sys.exit(f"{' '.join(words)}\n{told.stdout}\n{told.stderr}")
    return BUILD / "count_search"


def count(program: Path, file: Path, norm: str) -> tuple[int, dict[str, Any]]:
    """Instructions within `counted` and `counted_l2`, and what the program says."""
    told = subprocess.run(
        [
            *("valgrind", "--tool=callgrind", "--toggle-collect=counted*"),
            *("--callgrind-out-file=/dev/null", str(program), str(file), norm),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.search(r"Collected : (\d+)", told.stderr)
    if found is None or found[1] == "0":
        sys.exit(f"valgrind counted nothing:\n{told.stderr}")
    return int(found[1]), json.loads(told.stdout)


def compared(rows: list[Row], stored: list[Row]) -> Iterator[tuple[str, bool]]:
    """A line about each problem, and whether it takes too much."""
    for row in rows:
        before = next((old for old in stored if old["problem"] == row["problem"]), None)
        if before is None:
            yield f"{row['problem']}: not stored", False
        elif before["compiler"] != row["compiler"] or before["samples"] != row["samples"]:
            yield f"{row['problem']}: stored with {before['compiler']}, not compared", False
        else:
            times = row["instructions"] / before["instructions"]
            nodes = "" if before["nodes"] == row["nodes"] else f"; nodes were {before['nodes']}"
            more = times > MORE
            yield f"{row['problem']}: {times:.4f} of stored{nodes}{'  MORE' if more else ''}", more


def main() -> int:
    arguments = parsed(parser(__doc__, "the first problem alone"))
    for tool in ("cmake", "valgrind"):
        if shutil.which(tool) is None:
            sys.exit(f"{tool} is not installed.")
    kept = PUBLISHED / "instructions.csv"
    stored = read_rows(kept) if kept.exists() else []
    results = Results("instructions", arguments)
    program = built()
    UNPUBLISHED.mkdir(parents=True, exist_ok=True)
    for name, norm, rules, x, yhat in problems():
        file = UNPUBLISHED / "instructions.txt"
        write(file, arrays(rules, x, yhat))
        instructions, told = count(program, file, norm)
        told["compiler"] = f"c++ {told['compiler']}"
        results.add(problem=name, samples=len(yhat), instructions=instructions, **told)
        if arguments.quick:
            break
    lines = list(compared(results.tables[""], stored))
    results.write()
    print("\n" + "\n".join(line for line, _ in lines))
    return int(any(more for _, more in lines) and not arguments.publish)


if __name__ == "__main__":
    sys.exit(main())
