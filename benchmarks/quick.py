"""Has something become slower? Under two minutes.

    python benchmarks/quick.py [--store]

Everything is measured in processor time, one thread, as a ratio to something else in the same run:
HiGHS on the same problem, or the kernel beneath. `quick.json` holds the ratios of an earlier tree.
What is more than 1.6 times its stored ratio is measured again; if it stays so, it is told and
the exit code is 1. `--store` writes the ratios of this tree.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from _measure import seconds
from peers.adapters.highs import ConjunctiveInPlace, InPlace
from peers.cases import make, rules_of
from peers.problem import Problem

import gdpnet
from gdpnet.ir.instance import Instance
from gdpnet.solve.exact.backend import engine_of
from gdpnet.solve.exact.options import SearchOptions

STORED = Path(__file__).with_suffix(".json")
SLOWER = 1.6
Timed = Callable[[], object]


def cpu_seconds(call: Timed) -> float:
    """Median processor time of a call: other work on the machine disturbs it little."""
    return seconds(call, repeats=7, least=0.14, clock=time.process_time)


def pairs() -> dict[str, tuple[Timed, Timed]]:
    """What is measured, and what it is divided by."""
    cooling = make("cooling", 256)
    found: dict[str, tuple[Timed, Timed]] = {}
    calls = _layer_calls(cooling)
    highs = _highs_call(InPlace, cooling)
    found["layer without gradient / kernel"] = calls["free"], calls["kernel"]
    found["layer forward / kernel"] = calls["vertex"], calls["kernel"]
    found["kernel / HiGHS in place"] = calls["kernel"], highs
    found["vertex, forward and backward / forward"] = calls["vertex both"], calls["vertex"]
    found["QP, forward and backward / forward"] = calls["qp both"], calls["vertex"]
    found["batch of 1 / HiGHS in place"] = calls["one"], highs
    found["least norm / vertex"] = calls["least norm"], calls["free"]
    found["CNF / HiGHS in place"] = calls["cnf"], _highs_call(ConjunctiveInPlace, cooling)
    found["CNF, forward and backward / forward"] = calls["cnf both"], calls["cnf"]
    found["CNF, batch of 1 / HiGHS in place"] = calls["cnf one"], highs
    found["reading the rules / HiGHS in place"] = lambda: rules_of(cooling.source), highs
    for name in ("pbmc, 2 rules", "stress 10"):
        problem = make(name, 64)
        found[f"{name} / HiGHS in place"] = _free_call(problem), _highs_call(InPlace, problem)
    for name in ("random 20", "groups 100"):
        found[f"{name} / HiGHS in place on cooling"] = _free_call(make(name, 16, bare=True)), highs
    large = _free_call(make("random 20", 4, bare=True), "cnf")
    found["random 20, CNF / HiGHS in place on cooling"] = large, highs
    return found


def _layer_calls(problem: Problem) -> dict[str, Timed]:
    rules = rules_of(problem.source)
    engine, options = engine_of(rules), SearchOptions(np.ones(3), threads=1)
    x, yhat = (torch.from_numpy(v.copy()) for v in (problem.random.x, problem.random.yhat))
    leaf, ones = yhat.clone().requires_grad_(), torch.ones_like(yhat)
    vertex = gdpnet.ProjectionLayer(rules, gradient="vertex", threads=1)
    quadratic = gdpnet.ProjectionLayer(rules, gradient=gdpnet.QP(1e-2), threads=1)
    least = gdpnet.ProjectionLayer(
        rules, gradient="vertex", solver=gdpnet.solve.Exact(tie="least_norm"), threads=1
    )
    cnf = gdpnet.ProjectionLayer(rules, relaxation="cnf", gradient="vertex", threads=1)
    one_x, one_yhat = x[:1].clone(), yhat[:1].clone()
    return {
        "kernel": lambda: engine.project(Instance.of(rules, x.numpy()), yhat.numpy(), options),
        "free": lambda: _without(vertex, yhat, x),
        "one": lambda: _without(vertex, one_yhat, one_x),
        "least norm": lambda: _without(least, yhat, x),
        "vertex": lambda: vertex(leaf, x),
        "vertex both": lambda: vertex(leaf, x).backward(ones),
        "qp both": lambda: quadratic(leaf, x).backward(ones),
        "cnf": lambda: _without(cnf, yhat, x),
        "cnf one": lambda: _without(cnf, one_yhat, one_x),
        "cnf both": lambda: cnf(leaf, x).backward(ones),
    }


def _without(layer: gdpnet.ProjectionLayer, yhat: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return layer(yhat, x)


def _free_call(problem: Problem, relaxation: str = "dnf") -> Timed:
    layer = gdpnet.ProjectionLayer(rules_of(problem.source), relaxation=relaxation, threads=1)
    x, yhat = (torch.from_numpy(v.copy()) for v in (problem.random.x, problem.random.yhat))
    return lambda: _without(layer, yhat, x)


def _highs_call(kind: type[InPlace], problem: Problem) -> Timed:
    peer, index = kind(problem), np.arange(len(problem.random))
    peer.prepare(problem.random, index)
    yhat = torch.from_numpy(problem.random.yhat)
    return lambda: peer.layer(yhat, problem.random, index)


def ratios(measured: dict[str, tuple[Timed, Timed]]) -> dict[str, float]:
    """Every ratio, its two sides one after the other."""
    return {name: cpu_seconds(call) / cpu_seconds(base) for name, (call, base) in measured.items()}


def slower(now: dict[str, float], stored: dict[str, float]) -> list[str]:
    """Names of what takes too long."""
    return [name for name, ratio in now.items() if ratio > SLOWER * stored.get(name, np.inf)]


def main() -> int:
    """Measure, compare, tell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", action="store_true", help="write the ratios of this tree")
    store = parser.parse_args().store
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", gdpnet.errors.ZeroGradientWarning)
    measured = pairs()
    now = ratios(measured)
    if store:
        again = ratios(measured)
        kept = {name: float(f"{(now[name] * again[name]) ** 0.5:.4g}") for name in now}
        STORED.write_text(json.dumps(kept, indent=2) + "\n")
        print(f"stored in {STORED.name}")
        return 0
    stored = json.loads(STORED.read_text())
    suspects = slower(now, stored)
    if suspects:
        again = ratios({name: measured[name] for name in suspects})
        now |= {name: min(now[name], ratio) for name, ratio in again.items()}
    guilty = slower(now, stored)
    for name, ratio in now.items():
        told = f"{ratio / stored[name]:.2f} of the stored one" if name in stored else "new"
        print(f"{name:42s} {ratio:9.4g}, {told}{'  SLOWER' if name in guilty else ''}")
    for name in stored.keys() - now.keys():
        print(f"{name}: stored, but not measured any more")
    print(f"{len(guilty)} slower" if guilty else "nothing became slower")
    return 1 if guilty else 0


if __name__ == "__main__":
    sys.exit(main())
