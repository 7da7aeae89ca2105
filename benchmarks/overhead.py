"""What rules cost on the cooling task: training, inference, sizes, and growth with the rules.

    python benchmarks/overhead.py [--quick] [--out FILE]

The paper's Tables "Per-sample inference time", "LP sizes" and "LP size and inference-time scaling"
beside ours. Times are medians of processor time, one thread: others on the machine do not count.
"""

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from _measure import Report
from relaxations import PAPER

import gdpnet
from gdpnet.relaxation.sizes import sizes_of
from gdpnet.study import METHODS, Task, load_model
from gdpnet.study.training._evaluation import Outputs
from gdpnet.study.training._objective import Objective

MODELS = Path(__file__).parents[1] / "models"
report = Report()

# Seconds a sample of the paper's table, and its sizes with no active rule.
PAPER_SECONDS = {
    "CNF": [
        .006599, .008361, .008230, .008023, .009787, .008193, .005307, .005601, .006087, .007065,
        .007796,
    ],
    "DNF": [
        .009122, .007077, .007697, .008667, .010559, .013100, .019194, .041093, .107464, .267479,
        .920017,
    ],
}  # fmt: skip
PAPER_INFERENCE = {"base": "<1 us", "penalty": "<1 us", "cnf": "25.03 ms", "dnf": "28.62 ms"}
PAPER_SIZES = {
    ("CNF", 1): ("27.78 ± 9.75", "20 to 62", "98.28 ± 39.11", "67 to 235"),
    ("DNF", 1): ("32.51 ± 14.53", "23 to 121", "111.94 ± 60.27", "73 to 485"),
    ("CNF", 2): ("37.50 ± 6.54", "34 to 62", "137.28 ± 26.29", "123 to 235"),
    ("DNF", 2): ("44.39 ± 14.86", "37 to 121", "160.53 ± 62.69", "129 to 485"),
}


def cpu_seconds(function: Callable[[], object], repeats: int = 15) -> float:
    """Median processor time of a call."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return statistics.median(times)


def methods(task: Task, steps: int) -> None:
    """Training and inference of every method."""
    report.say("\n### Every method\n")
    report.say(
        "| method | training step, batch 1, us | epoch of 1,000, s | step, batch 32, us | "
        "inference, batch 2,000, us a sample | one by one, us | paper, one by one |"
    )
    report.say("|---|---:|---:|---:|---:|---:|---:|")
    data, test = task.training(512, 0), task.test("iid")
    singles = [test.take(slice(k, k + 1)) for k in range(128)]
    for name in METHODS:
        if name.startswith("finetuned"):
            continue  # costs what its namesake does
        method = task.method(name)
        layer = task.layer(method, "qp")
        objective = Objective.of(task, method, layer)
        cells = []
        for batch in (1, 32):
            network = task.new_network(0)
            optimiser = torch.optim.AdamW(network.parameters(), 1e-3, fused=True)
            times = []
            for step in range(steps):
                first = step * batch % (len(data) - batch + 1)
                part = data.take(slice(first, first + batch))
                start = time.process_time()
                loss = objective(network, part)
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                times.append(time.process_time() - start)
            cells.append(statistics.median(times[steps // 4 :]))
        outputs = Outputs(network, layer).eval()
        with torch.no_grad():
            whole = cpu_seconds(lambda o=outputs: o(test)) / len(test)
            alone = [cpu_seconds(lambda o=outputs, s=s: o(s), 3) for s in singles]
        report.say(
            f"| {name} | {1e6 * cells[0]:.0f} | {1e3 * cells[0]:.2f} | {1e6 * cells[1]:.0f} | "
            f"{1e6 * whole:.2f} | {1e6 * statistics.median(alone):.0f} | "
            f"{PAPER_INFERENCE.get(name, '')} |"
        )


def sizes(task: Task) -> None:
    """Sizes of the linear programs of the IID test set, by number of active rules."""
    report.say("\n### Sizes of the linear programs, IID test set\n")
    report.say(
        "| active rules | form | samples | variables | least to most | paper | | rows and bounds | "
        "least to most | paper | |"
    )
    report.say("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    x = task.test("iid").x
    active = task.rules.active(x)
    patterns, inverse = torch.unique(active, dim=0, return_inverse=True)
    first = [int((inverse == k).nonzero()[0]) for k in range(len(patterns))]
    count = active.sum(1)
    for least in (1, 2):
        for form, prune in (("CNF", False), ("DNF", False), ("DNF, empty left out", True)):
            found = [
                sizes_of(task.rules, form[:3].lower(), x=x[k].tolist(), prune=prune) for k in first
            ]
            chosen = inverse[count >= least].tolist()
            variables = np.array([found[k].variables for k in chosen])
            rows = np.array([found[k].rows + found[k].bounds for k in chosen])
            theirs = PAPER_SIZES.get((form, least), ("",) * 4)
            report.say(
                f"| at least {least} | {form} | {len(chosen)} | {_spread(variables)} | "
                f"{theirs[0]} | {theirs[1]} | {_spread(rows)} | {theirs[2]} | {theirs[3]} |"
            )
    counts = torch.bincount(count, minlength=6).tolist()
    report.say(f"\nSamples with 0, 1, 2, ... active rules: {', '.join(map(str, counts))}.")


def _spread(values: np.ndarray) -> str:
    return f"{values.mean():.2f} ± {values.std():.2f} | {values.min()} to {values.max()}"


def growth(most: int) -> None:
    """models/stress: sizes and times against the number of rules, all of them active."""
    report.say("\n### k two-term rules, all active, 3 outputs\n")
    report.say(
        "| k | CNF variables / rows | paper | CNF, us a sample | one by one | paper | "
        "DNF variables / rows | paper | DNF's program, us | exact engine, us a sample | "
        "one by one | paper |"
    )
    report.say("|---|" + "---:|" * 11)
    model = load_model(MODELS / "stress")
    for k in [*range(11), 12, 14, 16, 18, 20]:
        rules = model.build(k=k)
        x = model.module.sample(256, split="iid", seed=0, k=k)[0]
        yhat = torch.from_numpy(np.random.default_rng(k).uniform(0, 1, (256, 3)))
        cells = []
        for form in ("cnf", "dnf"):
            size = theirs = ""
            if form == "cnf" or k <= 10:
                found = sizes_of(rules, form, x=x[0].tolist(), prune=False)
                size = f"{found.variables:,} / {found.rows:,}"
            if 1 <= k <= 10:
                theirs = "{:,} / {:,g}".format(*PAPER[form.upper()][k])
            elif k == 0:
                theirs = "9 / 20"
            cells.append((size, theirs))
        paper = [f"{1e3 * PAPER_SECONDS[f][k]:.1f} ms" if k <= 10 else "" for f in ("CNF", "DNF")]
        cnf = _times(rules, yhat, x, relaxation="cnf")
        exact = _times(rules, yhat, x)
        written = ""
        if k <= most:
            lp = {"relaxation": "dnf", "solver": "highs", "threads": 1}
            few = 8
            gdpnet.project(rules, yhat[:few], x[:few], **lp)
            taken = cpu_seconds(lambda: gdpnet.project(rules, yhat[:few], x[:few], **lp), 3)
            written = f"{1e6 * taken / few:,.0f}"
        report.say(
            f"| {k} | {cells[0][0]} | {cells[0][1]} | {cnf[0]} | {cnf[1]} | {paper[0]} | "
            f"{cells[1][0]} | {cells[1][1]} | {written} | {exact[0]} | {exact[1]} | {paper[1]} |"
        )
    report.say(
        "\nThe exact engine and CNF: batch 256, and single predictions through `gdpnet.project`. "
        "The DNF's program: written out and solved by HiGHS, kept and changed in place, "
        "products that are empty for all inputs left out; 8 samples."
    )


def _times(rules: gdpnet.RuleModel, yhat: torch.Tensor, x: torch.Tensor, **how: object) -> list:
    layer = gdpnet.ProjectionLayer(rules, threads=1, **how)
    with torch.no_grad():
        layer(yhat, x)
        batch = cpu_seconds(lambda: layer(yhat, x), 9) / len(yhat)
        alone = [cpu_seconds(lambda k=k: layer(yhat[k], x[k]), 3) for k in range(32)]
    return [f"{1e6 * batch:,.2f}", f"{1e6 * statistics.median(alone):,.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer steps, smaller programs")
    parser.add_argument("--out", type=Path, help="write the tables to this file as well")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", gdpnet.errors.ZeroGradientWarning)
    task = Task(load_model(MODELS / "cooling"))
    methods(task, 40 if arguments.quick else 200)
    sizes(task)
    growth(5 if arguments.quick else 10)
    report.write(arguments.out)


if __name__ == "__main__":
    main()
