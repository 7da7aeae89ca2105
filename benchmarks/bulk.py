"""Rows a second from folder to folder of parquet: one process, all cores, Ray on this machine.

    python benchmarks/bulk.py [--quick] [--publish] [--repeats N]

Cheap rules (cooling, 7 of them) and dear ones (90 interacting rules, about a millisecond a row)
apart. `start` is the time of a folder with one row in each file: processes that start and import;
rows a second are of what comes after it. Processor time depends little on who else uses the
machine: what 10^9 rows cost is worked out from that of one process. With all cores it is that of
the processes that were started, without what starting them takes; Ray does not tell its own. Modes
take turns, and medians of all turns are stored. Needs the packages of
tests/integrations/requirements.txt (`make test-integrations` installs them).
"""

import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import torch
from _results import Results, parsed, parser

import gdpnet
import gdpnet.ray
from gdpnet.study import load_model, project_folder
from gdpnet.testing.problems import stress
from gdpnet.threads import cores

FILES = 8
os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 (as the other modes have it)


def cheap(rows: int) -> tuple[gdpnet.RuleModel, np.ndarray, np.ndarray]:
    """Cooling, with predictions that are off by some noise."""
    model = load_model("cooling")
    rules = model.build()
    x, target = (each.numpy() for each in model.sample(10_000, split="iid", seed=0))
    again = np.arange(rows) % len(x)
    noise = np.random.default_rng(0).normal(size=(rows, target.shape[1]))
    return rules, x[again], target[again] + 0.5 * target.std(0) * noise


def dear(rows: int) -> tuple[gdpnet.RuleModel, np.ndarray, np.ndarray]:
    """90 rules that hang together, in 50 outputs."""
    m = stress.pyomo_model(90, 50)
    rng = np.random.default_rng(0)
    x = rng.uniform(0.3, 1, (rows, 1)) * stress.delivered(50)
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.need]), x, rng.uniform(0, 1, (rows, 50))


def write(folder: Path, rules: gdpnet.RuleModel, x: np.ndarray, yhat: np.ndarray) -> None:
    """The same rows in each file: all of them would need more memory than they are worth."""
    folder.mkdir()
    names = [*rules.input_names, *rules.output_names]
    rows = pyarrow.table(dict(zip(names, np.column_stack([x, yhat]).T, strict=True)))
    for k in range(FILES):
        pyarrow.parquet.write_table(rows, folder / f"{k:03d}.parquet")


def timed(rules: gdpnet.RuleModel, source: Path, target: Path, how: dict) -> tuple[float, float]:
    """Seconds of the clock, and of processors: of this process and of those it started."""
    shutil.rmtree(target, ignore_errors=True)
    start, own = time.perf_counter(), processor()
    project_folder(rules, source, target, **how)
    return time.perf_counter() - start, processor() - own


def processor() -> float:
    """Processor time so far, of this process and of its children that have ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def measure(results: Results, name: str, made: tuple, repeats: int, folder: Path) -> None:
    rules, x, yhat = made
    rows = FILES * len(x)
    write(folder / "many", rules, x, yhat)
    write(folder / "few", rules, x[:1], yhat[:1])
    modes = {
        "one process": {"jobs": 1, "threads": 1},
        "all cores": {"jobs": cores()},
        "Ray": {"spread": gdpnet.ray.Tasks()},
    }
    found: dict[str, list[tuple[float, float, float]]] = {mode: [] for mode in modes}
    for _ in range(repeats):
        for mode, how in modes.items():
            start, before = timed(rules, folder / "few", folder / "out", how)
            whole, spent = timed(rules, folder / "many", folder / "out", how)
            found[mode].append((start, whole, spent - before))
    for mode, runs in found.items():
        start, whole, spent = (statistics.median(column) for column in zip(*runs, strict=True))
        results.add(
            rules=name,
            mode=mode,
            rows=rows,
            files=FILES,
            cores=1 if mode == "one process" else cores(),
            seconds=whole,
            start_s=start,
            row_cpu_s=None if mode == "Ray" else spent / rows,
            turns=repeats,
        )
        shutil.rmtree(folder / "out", ignore_errors=True)


def main() -> None:
    options = parser(__doc__, "a tenth of the rows, once")
    options.add_argument("--repeats", type=int, default=5, help="medians of so many turns")
    arguments = parsed(options)
    torch.set_num_threads(1)
    results = Results("bulk", arguments, packages=("pyarrow", "ray"))
    size = 10 if arguments.quick else 1
    for name, made in (("cheap", cheap(2_000_000 // size)), ("dear", dear(1_500 // size))):
        with tempfile.TemporaryDirectory() as folder:
            measure(results, name, made, 1 if arguments.quick else arguments.repeats, Path(folder))
    results.write()


if __name__ == "__main__":
    main()
