"""Which gradient, which norm, which tie: three tasks beyond those that chose the defaults.

    python benchmarks/tasks.py [--quick] [--publish]

The tasks are those of `_own_tasks.py`. From scratch: 400 steps through the layer. Fine-tuned: 400
without it, then 200 through it. At inference: 600 without it, then projected; penalty: the same
with a penalty for broken rules, its weight chosen on validation samples from four. All lines of a
seed share the network, the samples and their order; 20 % are kept for validation by the penalty
alone.
"""

from __future__ import annotations

import copy
import statistics
import warnings
from typing import Any

import torch
from _own_tasks import OwnTask, digits, dispatch, waypoints
from _results import Results, parsed, parser
from torch import nn

import gdpnet
from gdpnet.nn import RulePenalty

SIZES = {"dispatch": 150, "waypoints": 150, "digits": 60}
BATCH, RATE = 16, 5e-3
WEIGHTS = (0.002, 0.02, 0.2, 2.0)

GRADIENTS: dict[str, Any] = {
    "straight-through": "straight_through",
    "straight-through, inward": gdpnet.StraightThrough(inward=True),
    "vertex": "vertex",
    "qp": "qp",
    "mixed:0.25": "mixed:0.25",
    "auto": "auto",
}
NEEDS_L1 = ("qp", "mixed:0.25")


def settings(task: OwnTask) -> dict[str, dict[str, Any]]:
    """Norms, and ties where outputs share a sum."""
    found: dict[str, dict[str, Any]] = {"l1": {}, "l2": {"norm": "l2"}}
    if task.name == "digits":
        found["l1, least norm"] = {"solver": gdpnet.solve.Exact(tie="least_norm")}
    return found


def trained(
    task: OwnTask, network: nn.Module, data: tuple, steps: int, first: int, layer: Any, penalty: Any
) -> nn.Module:
    """A copy of a network after so many steps, in the order of a seed."""
    network = copy.deepcopy(network)
    optimiser = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.0)
    x, rule_x, target = data
    rng = torch.Generator().manual_seed(first)
    for _ in range(steps):
        rows = torch.randint(0, len(x), (BATCH,), generator=rng)
        y = network(x[rows])
        if layer is not None:
            y = layer(y, rule_x[rows])
        value = task.loss(y, target[rows])
        if penalty is not None:
            value = value + penalty(y, rule_x[rows])
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
    return network


def scored(task: OwnTask, network: nn.Module, layer: Any) -> float:
    x, rule_x, target = task.test()
    with torch.no_grad():
        y = network(x)
        return task.score(y if layer is None else layer(y, rule_x), target)


def one_seed(task: OwnTask, seed: int, steps: int) -> dict[tuple[str, str, str], float]:
    """Scores by setting, protocol and gradient."""
    data = task.samples(SIZES[task.name], seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        fresh = task.network()
    base = trained(task, fresh, data, steps, 2 * seed, None, None)
    longer = trained(task, base, data, steps // 2, 2 * seed + 1, None, None)
    tuned = _penalised(task, fresh, data, steps, seed)
    found = {("none", "none", "base network"): scored(task, longer, None)}
    for setting, keywords in settings(task).items():
        at_inference = gdpnet.ProjectionLayer(task.rules, threads=1, **keywords)
        found[setting, "none", "projected at inference"] = scored(task, longer, at_inference)
        found[setting, "none", "penalty, tuned, projected"] = scored(task, tuned, at_inference)
        for name, gradient in GRADIENTS.items():
            if setting == "l2" and name in NEEDS_L1:
                continue
            layer = gdpnet.ProjectionLayer(task.rules, gradient=gradient, threads=1, **keywords)
            scratch = trained(task, fresh, data, steps, 2 * seed, layer, None)
            tuned_on = trained(task, base, data, steps // 2, 2 * seed + 1, layer, None)
            found[setting, "from scratch", name] = scored(task, scratch, layer)
            found[setting, "fine-tuned", name] = scored(task, tuned_on, layer)
    return found


def _penalised(task: OwnTask, fresh: nn.Module, data: tuple, steps: int, seed: int) -> nn.Module:
    """With the weight that is best on validation samples, once projected."""
    kept = len(data[0]) // 5
    fit, held = (tuple(part[rows] for part in data) for rows in (slice(kept, None), slice(kept)))
    layer = gdpnet.ProjectionLayer(task.rules, threads=1)
    best: list[tuple[float, float]] = []
    for weight in WEIGHTS:
        penalty = RulePenalty(task.rules, weight=weight, temperature=1e-2)
        network = trained(task, fresh, fit, steps, 2 * seed, None, penalty)
        with torch.no_grad():
            y = layer(network(held[0]), held[1])
        best.append((task.score(y, held[2]), weight))
    penalty = RulePenalty(task.rules, weight=min(best)[1], temperature=1e-2)
    return trained(task, fresh, data, steps + steps // 2, 2 * seed, None, penalty)


def main() -> None:
    arguments = parsed(parser(__doc__, "one seed, a tenth of the steps"))
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", gdpnet.errors.ZeroGradientWarning)
    results = Results("tasks", arguments, packages=("scikit-learn",))
    seeds, steps = (2, 40) if arguments.quick else (5, 400)
    for task in (dispatch(), waypoints(), digits()):
        active = float(task.rules.active(task.test()[1]).double().sum(1).mean())
        found = [one_seed(task, seed, steps) for seed in range(seeds)]
        for setting, protocol, gradient in found[0]:
            scores = [one[setting, protocol, gradient] for one in found]
            results.add(
                task=task.name,
                unit=task.unit,
                active=active,
                setting=setting,
                protocol=protocol,
                gradient=gradient,
                mean=statistics.mean(scores),
                deviation=statistics.stdev(scores),
                **{f"seed_{seed}": score for seed, score in enumerate(scores)},
            )
    results.write()


if __name__ == "__main__":
    main()
