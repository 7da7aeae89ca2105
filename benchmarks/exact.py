"""The exact engine beside HiGHS and Gurobi: same problems, same run, one thread.

    python benchmarks/exact.py [--quick]

Times are medians; claims are ratios of this one run.
"""

import argparse
import math
import statistics
import time
import tracemalloc
from pathlib import Path

import numpy as np
import torch
from _hull import HullSolver
from _measure import seconds
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet.errors import SolverError
from gdpnet.ir.instance import Instance
from gdpnet.solve.exact.backend import engine_of
from gdpnet.solve.exact.options import SearchOptions
from gdpnet.study import load_model
from gdpnet.testing.problems.large import LARGE

MODELS = Path(__file__).parents[1] / "models"


def cooling() -> None:
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
        print(f"\ncooling {split}, largest difference of distances {worst:.1e}")
        print(f"  HiGHS on the DNF's LP, kept and warm   {1e6 * warm:9.2f} us a sample")
        print(f"  HiGHS on the DNF's LP, cold            {1e6 * cold:9.2f} us a sample")
        for batch in (4096, 256):
            xs, ys = x[:batch].copy(), yhat[:batch].copy()
            part = Instance.of(rules, xs)
            kernel = seconds(lambda p=part, y=ys, o=options: engine.project(p, y, o)) / batch
            whole = seconds(
                lambda x=xs, y=ys, o=options: engine.project(Instance.of(rules, x), y, o)
            ) / batch  # fmt: skip
            tx, ty = torch.from_numpy(xs), torch.from_numpy(ys)
            call = seconds(lambda x=tx, y=ty: gdpnet.project(rules, y, x, threads=1).y) / batch
            print(
                f"  batch {batch:5d}: search {1e6 * kernel:6.2f}, with the rules' rows "
                f"{1e6 * whole:6.2f}, gdpnet.project {1e6 * call:6.2f} us a sample: "
                f"{warm / kernel:5.0f}, {warm / whole:5.0f} and {warm / call:5.0f} times faster "
                "than HiGHS warm"
            )
        xs, ys = x[:1].copy(), yhat[:1].copy()
        part = Instance.of(rules, xs)
        kernel = seconds(lambda: engine.project(part, ys, options))
        rows = seconds(lambda: Instance.of(rules, xs))
        tx, ty = torch.from_numpy(xs), torch.from_numpy(ys)
        call = seconds(lambda: gdpnet.project(rules, ty, tx).y)
        print(
            f"  batch     1: rows {1e6 * rows:.1f} us, search and dispatch {1e6 * kernel:.1f} us, "
            f"checks and torch {1e6 * (call - rows - kernel):.1f} us; the call is "
            f"{call / warm:.2f} of HiGHS warm"
        )


def growth(quick: bool) -> None:
    """k two-term rules in d = 3: time against k."""
    print("\nk two-term rules, d = 3: us a sample")
    titles = ("k", "products", "engine", "nodes", "DNF LP", "MILP", "ratio")
    print("{:>3} {:>9} {:>9} {:>7} {:>12} {:>11} {:>9}".format(*titles))
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
        lp = ""
        ratio = ""
        if k <= (6 if quick else 8):
            hull = HullSolver(rules)
            models = hull.prepare(instance)
            count = 20 if k < 6 else 4
            answers = [models[i].solve(instance.bound[i], yhat[i]) for i in range(count)]
            assert max(abs(answers[i][0] - found.distance[i]) for i in range(count)) < 1e-6
            taken = seconds(
                lambda: [models[i].solve(instance.bound[i], yhat[i]) for i in range(count)], 3, 0
            ) / count  # fmt: skip
            lp, ratio = f"{1e6 * taken:.0f}", f"{taken / ours:.0f}"
        tx, ty = torch.from_numpy(x[:4]), torch.from_numpy(yhat[:4])
        start = time.perf_counter()
        milp = gdpnet.project(rules, ty, tx, solver="milp", threads=1)
        taken = (time.perf_counter() - start) / 4
        assert np.allclose(milp.distance.numpy(), found.distance[:4], atol=1e-7)
        ratio = ratio or f"{taken / ours:.0f}*"
        print(
            f"{k:3d} {2.0**k:9.0f} {1e6 * ours:9.2f} {found.nodes.mean():7.2f} {lp:>12} "
            f"{1e6 * taken:11.0f} {ratio:>9}"
        )
    print("ratio: the DNF's LP by HiGHS over the engine; * MILP over the engine")


def large(quick: bool) -> None:
    """Problems whose DNF cannot be written down."""
    print("\nlarge problems: ms a sample, medians; MILP by HiGHS and Gurobi on the same samples")
    titles = ("problem", "products", "engine", "nodes", "HiGHS", "Gurobi")
    print("{:<32} {:>9} {:>9} {:>7} {:>14} {:>14}".format(*titles))
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
        cells = []
        for solver in ("milp", "milp:gurobi"):
            try:
                taken = []
                for k in range(count):
                    start = time.perf_counter()
                    p = gdpnet.project(rules, yhat[k], solver=solver, threads=1, time_limit=120)
                    taken.append(time.perf_counter() - start)
                    if p.status != gdpnet.Status.LIMIT:
                        assert abs(float(p.distance) - distances[k]) < 1e-6
                other = statistics.median(taken)
                cells.append(f"{1e3 * other:.0f} ({other / ours:.0f}x)")
            except SolverError:
                cells.append("licence")
        print(
            f"{case.name:<32} {math.prod(rule_sizes):9.1e} {1e3 * ours:9.3f} "
            f"{statistics.median(nodes):7.0f} {cells[0]:>14} {cells[1]:>14}"
        )


def memory() -> None:
    """Peak memory of a batch of 100,000."""
    model = load_model(MODELS / "cooling")
    rules = model.build()
    x = model.sample(1000, split="iid", seed=0)[0].repeat(100, 1)
    yhat = torch.rand(100_000, 3, dtype=torch.float64)
    gdpnet.project(rules, yhat[:10], x[:10])
    tracemalloc.start()
    y = gdpnet.project(rules, yhat, x).y
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(f"\nmemory: cooling, batch {len(y)}: {peak / 1e6:.0f} MB above the inputs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer samples")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    cooling()
    growth(quick)
    large(quick)
    memory()


if __name__ == "__main__":
    main()
