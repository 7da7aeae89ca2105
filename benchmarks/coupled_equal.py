"""Small random problems of coupled.py: the engine, what takes over, and the peer find the same.

    python benchmarks/coupled_equal.py [--count 2000] [--seed 0]

Every problem has a size, rules and two predictions of its own. The engine's distance is compared
with that of our MILP form, that of a search that is handed over at its first node, and every
fourth time that of Pyomo's big-M in HiGHS; in l2 with the second of these. Every y is judged by
the rules. The exit code is 1 where something differs.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator

import _bigm
import numpy as np
import torch
from _coupled_case import Case
from _coupled_cases import groups, pumped_storage
from _coupled_library import epidemic, network, packing, purchasing

import gdpnet
from gdpnet.errors import WorkLimitWarning

SAME = 1e-7  # relative to max(1, distance), between our own
SAME_AS_PEER = 5e-6  # whose gap and tolerances are 1e-6
SAMPLES = 2


def drawn(seed: int) -> Case:
    """A small problem."""
    rng = np.random.default_rng(seed)
    kind = seed % 6
    if kind == 0:
        return groups(int(rng.integers(6, 25)), int(rng.integers(4, 20)), seed % 4 > 0, seed)
    if kind == 1:
        return pumped_storage(int(rng.integers(2, 7)), seed)
    if kind == 2:
        return network(int(rng.integers(1, 3)), nodes=6, chords=int(rng.integers(1, 3)), seed=seed)
    if kind == 3:
        return purchasing(1, int(rng.integers(2, 4)), seed)
    if kind == 4:
        return epidemic(int(rng.integers(2, 6)), int(rng.integers(2, 4)), seed)
    return packing(int(rng.integers(3, 6)), seed)


def differences(seed: int) -> Iterator[str]:
    """What differs in one problem."""
    case = drawn(seed)
    rules = case.rules()
    x, yhat = case.sample(SAMPLES)
    given = torch.from_numpy(yhat), torch.from_numpy(x)
    who = {
        "engine": gdpnet.solve.Exact(node_limit=10**7),
        "handed over": gdpnet.solve.Exact(node_limit=1),
        "MILP": gdpnet.solve.MILP(),
    }
    for norm, names in (("l1", list(who)), ("l2", ["engine", "handed over"])):
        found = {
            name: gdpnet.project(rules, *given, solver=who[name], norm=norm, threads=1)
            for name in names
        }
        yield from apart(f"seed {seed}, {case.name}, {norm}", rules, given[1], found)
        if norm == "l1":
            first = found["engine"]
    known = (first.status != gdpnet.Status.CONFLICT).numpy()
    if seed % 4 == 0:
        for s in np.flatnonzero(known):
            peer = _bigm.solve(case, x[s], yhat[s], 60.0)
            most = SAME_AS_PEER * max(1.0, float(first.distance[s]))
            if peer.finished and abs(peer.value - float(first.distance[s])) > most:
                yield f"seed {seed}, {case.name}: peer {peer.value}, engine {first.distance[s]}"


def apart(
    told: str, rules: gdpnet.RuleModel, x: torch.Tensor, found: dict[str, gdpnet.Projection]
) -> Iterator[str]:
    """Who differs from the engine."""
    first = found["engine"]
    known = (first.status != gdpnet.Status.CONFLICT).numpy()
    size = np.maximum(1.0, first.distance.numpy())
    for name, p in found.items():
        if p.status.tolist() != first.status.tolist():
            yield f"{told}, {name}: {p.status.tolist()}, the engine {first.status.tolist()}"
            continue
        off = np.abs(p.distance.numpy()[known] - first.distance.numpy()[known]) / size[known]
        if (off > SAME).any():
            yield f"{told}, {name}: {p.distance.tolist()}, the engine {first.distance.tolist()}"
        if not rules.satisfied(p.y, x, tol=1e-8).numpy()[known].all():
            yield f"{told}, {name}: a rule is broken"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=2000)
    options.add_argument("--seed", type=int, default=0)
    arguments = options.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", WorkLimitWarning)
    wrong = 0
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        for line in differences(seed):
            wrong += 1
            print(line, flush=True)
    print(f"{arguments.count} problems, {wrong} differences")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
