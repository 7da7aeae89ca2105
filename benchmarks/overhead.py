"""What rules cost on the cooling task: training, inference, sizes, and growth with the rules.

    python benchmarks/overhead.py [--quick] [--publish]

What the paper's Tables "Per-sample inference time", "LP sizes" and "LP size and inference-time
scaling" show; its own numbers are in `_paper.py`. Times are medians of processor time, one thread:
others on the machine do not count.
"""

import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from _results import Results, parsed, parser

import gdpnet
from gdpnet.relaxation.sizes import sizes_of
from gdpnet.study import METHODS, Task, load_model
from gdpnet.study.training._evaluation import Outputs
from gdpnet.study.training._objective import Objective

MODELS = Path(__file__).parents[1] / "models"


def cpu_seconds(function: Callable[[], object], repeats: int = 15) -> float:
    """Median processor time of a call."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return statistics.median(times)


def methods(results: Results, task: Task, steps: int) -> None:
    """Training and inference of every method."""
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
        results.add(
            "methods",
            method=name,
            step_1_s=cells[0],
            step_32_s=cells[1],
            batch_s=whole,
            single_s=statistics.median(alone),
        )


def sizes(results: Results, task: Task) -> None:
    """Sizes of the linear programs of the IID test set, by number of active rules."""
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
            results.add(
                "sizes",
                least=least,
                form=form,
                samples=len(chosen),
                **_spread("variables", variables),
                **_spread("rows", rows),
            )
    for k, samples in enumerate(torch.bincount(count, minlength=6).tolist()):
        results.add("active", active=k, samples=samples)


def _spread(name: str, values: np.ndarray) -> dict[str, float]:
    return {
        f"{name}_mean": values.mean(),
        f"{name}_deviation": values.std(),
        f"{name}_least": values.min(),
        f"{name}_most": values.max(),
    }


def growth(results: Results, most: int) -> None:
    """models/stress: sizes and times against the number of rules, all of them active."""
    model = load_model(MODELS / "stress")
    for k in [*range(11), 12, 14, 16, 18, 20]:
        rules = model.build(k=k)
        x = model.module.sample(256, split="iid", seed=0, k=k)[0]
        yhat = torch.from_numpy(np.random.default_rng(k).uniform(0, 1, (256, 3)))
        found = {
            form: sizes_of(rules, form, x=x[0].tolist(), prune=False)
            for form in ("cnf", "dnf")
            if form == "cnf" or k <= 10
        }
        cnf = _times(rules, yhat, x, relaxation="cnf")
        exact = _times(rules, yhat, x)
        written = None
        if k <= most:
            lp = {"relaxation": "dnf", "solver": "highs", "threads": 1}
            few = 8
            gdpnet.project(rules, yhat[:few], x[:few], **lp)
            written = cpu_seconds(lambda: gdpnet.project(rules, yhat[:few], x[:few], **lp), 3) / few
        results.add(
            "growth",
            k=k,
            cnf_variables=found["cnf"].variables,
            cnf_rows=found["cnf"].rows,
            cnf_s=cnf[0],
            cnf_single_s=cnf[1],
            dnf_variables=found["dnf"].variables if "dnf" in found else None,
            dnf_rows=found["dnf"].rows if "dnf" in found else None,
            dnf_program_s=written,
            exact_s=exact[0],
            exact_single_s=exact[1],
        )


def _times(
    rules: gdpnet.RuleModel, yhat: torch.Tensor, x: torch.Tensor, **how: object
) -> list[float]:
    layer = gdpnet.ProjectionLayer(rules, threads=1, **how)
    with torch.no_grad():
        layer(yhat, x)
        batch = cpu_seconds(lambda: layer(yhat, x), 9) / len(yhat)
        alone = [cpu_seconds(lambda k=k: layer(yhat[k], x[k]), 3) for k in range(32)]
    return [batch, statistics.median(alone)]


def main() -> None:
    arguments = parsed(parser(__doc__, "fewer steps, smaller programs"))
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", gdpnet.errors.ZeroGradientWarning)
    results = Results("overhead", arguments)
    task = Task(load_model(MODELS / "cooling"))
    methods(results, task, 40 if arguments.quick else 200)
    sizes(results, task)
    growth(results, 5 if arguments.quick else 10)
    results.write()


if __name__ == "__main__":
    main()
