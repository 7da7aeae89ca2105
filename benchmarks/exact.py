"""The exact engine beside HiGHS and Gurobi: same problems, same run, one thread.

    python benchmarks/exact.py [--quick] [--publish]

Times are medians; claims are ratios of this one run.
"""

import math
import statistics
import time
import tracemalloc
from pathlib import Path

import numpy as np
import torch
from _hull import HullSolver
from _measure import peak_bytes, seconds
from _results import Results, parsed, parser
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet.errors import SolverError
from gdpnet.ir.instance import Instance
from gdpnet.solve.exact.backend import engine_of
from gdpnet.solve.exact.options import SearchOptions
from gdpnet.study import load_model
from gdpnet.testing.problems.large import LARGE

MODELS = Path(__file__).parents[1] / "models"


def cooling(results: Results) -> None:
    """Cooling, 7 rules: the engine against HiGHS on the DNF's LP."""
    model = load_model(MODELS / "cooling")
    rules = model.build()
    engine, hull = engine_of(rules), HullSolver(rules)
    rng = np.random.default_rng(0)
    for split in ("iid", "ood"):
        x = model.sample(4096, split=split, seed=0)[0].numpy()
        yhat = rng.uniform(0, 1, (4096, 3))
        options = SearchOptions(np.ones(3), threads=1)
        instance = Instance.of(rules, x)
        few = 256
        models = hull.prepare(instance)
        lp = [m.solve(instance.bound[i], yhat[i]) for i, m in enumerate(models[:few])]
        found = engine.project(instance, yhat, options)
        worst = max(abs(lp[i][0] - found.distance[i]) for i in range(few))
        warm = seconds(
            lambda models=models, instance=instance, yhat=yhat: [
                models[i].solve(instance.bound[i], yhat[i]) for i in range(few)
            ],
            3,
        ) / few  # fmt: skip
        cold = seconds(
            lambda models=models, instance=instance, yhat=yhat: [
                models[i].solve(instance.bound[i], yhat[i], cold=True) for i in range(64)
            ],
            3,
        ) / 64  # fmt: skip
        own = {"split": split, "batch": 1}
        results.add(
            "cooling", **own, what="HiGHS warm", seconds=warm, samples=few, difference=worst
        )
        results.add("cooling", **own, what="HiGHS cold", seconds=cold, samples=64, difference=None)
        for batch in (4096, 256):
            xs, ys = x[:batch].copy(), yhat[:batch].copy()
            part = Instance.of(rules, xs)
            kernel = seconds(lambda p=part, y=ys, o=options: engine.project(p, y, o)) / batch
            whole = seconds(
                lambda x=xs, y=ys, o=options: engine.project(Instance.of(rules, x), y, o)
            ) / batch  # fmt: skip
            tx, ty = torch.from_numpy(xs), torch.from_numpy(ys)
            call = seconds(lambda x=tx, y=ty: gdpnet.project(rules, y, x, threads=1).y) / batch
            own = {"split": split, "batch": batch}
            results.add("cooling", **own, what="search", seconds=kernel)
            results.add("cooling", **own, what="with rows", seconds=whole)
            results.add("cooling", **own, what="project", seconds=call)
        xs, ys = x[:1].copy(), yhat[:1].copy()
        part = Instance.of(rules, xs)
        kernel = seconds(lambda: engine.project(part, ys, options))
        rows = seconds(lambda: Instance.of(rules, xs))
        tx, ty = torch.from_numpy(xs), torch.from_numpy(ys)
        call = seconds(lambda: gdpnet.project(rules, ty, tx).y)
        own = {"split": split, "batch": 1}
        results.add("cooling", **own, what="rows", seconds=rows)
        results.add("cooling", **own, what="search", seconds=kernel)
        results.add("cooling", **own, what="project", seconds=call)


def growth(results: Results, quick: bool) -> None:
    """k two-term rules in d = 3: time against k."""
    model = load_model(MODELS / "stress")
    for k in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20):
        rules = model.build(k=k)
        engine = engine_of(rules)
        x = model.module.sample(256, split="iid", seed=0, k=k)[0].numpy()
        yhat = np.random.default_rng(k).uniform(0, 1, (256, len(rules.output_names)))
        options = SearchOptions(np.ones(yhat.shape[1]), threads=1)
        instance = Instance.of(rules, x)
        found = engine.project(instance, yhat, options)
        ours = seconds(lambda: engine.project(instance, yhat, options)) / 256
        lp = None
        if k <= (6 if quick else 8):
            hull = HullSolver(rules)
            models = hull.prepare(instance)
            count = 20 if k < 6 else 4
            answers = [models[i].solve(instance.bound[i], yhat[i]) for i in range(count)]
            assert max(abs(answers[i][0] - found.distance[i]) for i in range(count)) < 1e-6
            lp = seconds(
                lambda: [models[i].solve(instance.bound[i], yhat[i]) for i in range(count)], 3, 0
            ) / count  # fmt: skip
        tx, ty = torch.from_numpy(x[:4]), torch.from_numpy(yhat[:4])
        start = time.perf_counter()
        milp = gdpnet.project(rules, ty, tx, solver="milp", threads=1)
        taken = (time.perf_counter() - start) / 4
        assert np.allclose(milp.distance.numpy(), found.distance[:4], atol=1e-7)
        results.add(
            "growth",
            k=k,
            products=2**k,
            engine_s=ours,
            nodes=found.nodes.mean(),
            lp_s=lp,
            milp_s=taken,
        )


def large(results: Results, quick: bool) -> None:
    """Problems whose DNF cannot be written down."""
    for make in LARGE:
        count = 2 if quick else 5
        case = make(count)
        model, yhat = case.build(), case.yhat
        rules = case.rules(model)
        rule_sizes = [float(len(d.disjuncts)) for d in model.component_data_objects(Disjunction)]
        engine = engine_of(rules)
        one = Instance.of(rules, np.zeros((1, 0)))
        options = SearchOptions(np.ones(yhat.shape[1]), threads=1)
        times, nodes, distances = [], [], []
        for y in yhat.numpy():
            times.append(seconds(lambda y=y: engine.project(one, y[None], options), 3, 0.02))
            solved = engine.project(one, y[None], options)
            nodes.append(solved.nodes[0])
            distances.append(solved.distance[0])
        ours = statistics.median(times)
        others: dict[str, float | None] = {}
        for solver in ("milp", "milp:gurobi"):
            try:
                taken = []
                for k in range(count):
                    start = time.perf_counter()
                    p = gdpnet.project(rules, yhat[k], solver=solver, threads=1, time_limit=120)
                    taken.append(time.perf_counter() - start)
                    if p.status != gdpnet.Status.LIMIT:
                        assert abs(float(p.distance) - distances[k]) < 1e-6
                others[solver] = statistics.median(taken)
            except SolverError:  # the licence is too small
                others[solver] = None
        results.add(
            "large",
            problem=case.name,
            products=math.prod(rule_sizes),
            engine_s=ours,
            nodes=statistics.median(nodes),
            highs_s=others["milp"],
            gurobi_s=others["milp:gurobi"],
        )


def memory(results: Results) -> None:
    """Peak memory of a batch of 100,000."""
    model = load_model(MODELS / "cooling")
    rules = model.build()
    x = model.sample(1000, split="iid", seed=0)[0].repeat(100, 1)
    yhat = torch.rand(100_000, 3, dtype=torch.float64)
    gdpnet.project(rules, yhat[:10], x[:10])
    resident = peak_bytes(lambda: gdpnet.project(rules, yhat, x))
    tracemalloc.start()  # Python's and numpy's share of it
    y = gdpnet.project(rules, yhat, x).y
    traced = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    results.add(
        "memory", problem="cooling", batch=len(y), resident_bytes=resident, traced_bytes=traced
    )


def main() -> None:
    arguments = parsed(parser(__doc__))
    torch.set_num_threads(1)
    results = Results("exact", arguments)
    cooling(results)
    growth(results, arguments.quick)
    large(results, arguments.quick)
    memory(results)
    results.write()


if __name__ == "__main__":
    main()
