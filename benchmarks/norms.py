"""Which norm to train with: a first look at two small tasks, cooling and a probability simplex.

    python benchmarks/norms.py [--quick] [--publish]

A network is trained on its own loss, then through the projection for as many steps again; beside it
the first network, trained as long without rules and projected only where it is used ("inference").
The same networks, samples and order for all lines of a seed. The simplex: five classes in the
plane, softmax in front of the rules, which ask for probability by where x is; the loss is the
negative log-likelihood of the class, in nats, of probabilities of at least 1e-3.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyomo.environ as pyo
import torch
from _results import Results, parsed, parser
from pyomo.gdp import Disjunction
from torch import nn

import gdpnet
from gdpnet.study import load_model
from gdpnet.study.training._task import Task

SEEDS = 5
STEPS = 400
SIZE = 100
BATCH = 32
LEAST = 1e-3  # of a probability, where its logarithm is taken

WAYS = [
    (method, norm, gradient)
    for norm in ("l1", "l2")
    for method, gradient in (
        ("inference", ""),
        ("projected", "vertex"),
        ("projected", "straight_through"),
        ("projected", "auto"),
    )
] + [("projected", "l1", "qp")]


@dataclass(frozen=True)
class Problem:
    """A task as the loop below takes it.

    Attributes:
        name: of the task.
        rules: the rules.
        network: makes one, from a seed.
        loss: of outputs and targets.
        samples: inputs, inputs of the rules and targets, of a size, a split and a seed.
        splits: that are tested on.
    """

    name: str
    rules: gdpnet.RuleModel
    network: Callable[[int], nn.Module]
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    samples: Callable[[int, str, int], tuple[torch.Tensor, torch.Tensor, torch.Tensor]]
    splits: tuple[str, ...]


def cooling() -> Problem:
    task = Task(load_model(Path(__file__).parents[1] / "models" / "cooling"))

    def samples(size: int, split: str, seed: int) -> tuple:
        data = task.training(size, seed) if split == "train" else task.test(split)
        return data.x, data.rule_x, data.target

    return Problem(
        "cooling", task.rules, task.new_network, task.loss, samples, tuple(task.test_seeds)
    )


CENTRES = torch.tensor([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0], [1.0, 1.0]]).double()


def simplex() -> Problem:
    m = pyo.ConcreteModel()
    m.x = pyo.Param([0, 1], mutable=True, initialize=0.0)
    m.p = pyo.Var(range(5), bounds=(0, 1))
    m.one = pyo.Constraint(expr=sum(m.p.values()) == 1)
    m.right = Disjunction(expr=[[m.p[1] + m.p[3] >= 0.6], [m.p[4] >= 0.5]])
    m.up = Disjunction(expr=[[m.p[2] + m.p[3] >= 0.6], [m.p[4] >= 0.5]])
    m.corner = Disjunction(expr=[[m.p[0] >= 0.5], [m.p[4] >= 0.6]])
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.active_when[m.right] = m.x[0] >= 1.4
    m.active_when[m.up] = m.x[1] >= 1.4
    m.active_when[m.corner] = m.x[0] + m.x[1] <= 0.6
    rules = gdpnet.RuleModel(m, outputs=[m.p], inputs=[m.x])

    def samples(size: int, split: str, seed: int) -> tuple:
        count = size if split == "train" else 2000
        rng = torch.Generator().manual_seed(seed if split == "train" else 10_000)
        label = torch.randint(0, 5, (count,), generator=rng)
        x = CENTRES[label] + 0.45 * torch.randn(count, 2, generator=rng).double()
        return x, x, label

    def network(seed: int) -> nn.Module:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            layers = (nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 5), nn.Softmax(-1))
            return nn.Sequential(*layers).double()

    def loss(p: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        return nn.functional.nll_loss(p.clamp_min(LEAST).log(), label)

    return Problem("simplex", rules, network, loss, samples, ("iid",))


def batches(size: int, steps: int, seed: int) -> Iterator[torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        yield torch.randint(0, size, (BATCH,), generator=rng)


def train(problem: Problem, network: nn.Module, layer: Any, data: tuple, seed: int, n: int) -> None:
    x, rule_x, target = data
    optimiser = torch.optim.AdamW(network.parameters(), lr=3e-3, weight_decay=0.0)
    for chosen in batches(len(x), n, seed):
        y = network(x[chosen])
        if layer is not None:
            y = layer(y, rule_x[chosen])
        optimiser.zero_grad()
        problem.loss(y, target[chosen]).backward()
        optimiser.step()


def trained(problem: Problem, way: tuple[str, str, str], seed: int, steps: int) -> tuple:
    """The network and its layer."""
    method, norm, gradient = way
    keywords = {} if method == "inference" else {"gradient": gradient}
    layer = gdpnet.ProjectionLayer(problem.rules, norm=norm, threads=1, **keywords)
    network, data = problem.network(seed), problem.samples(SIZE, "train", seed)
    train(problem, network, None, data, 2 * seed, steps)
    through = None if method == "inference" else layer
    train(problem, network, through, data, 2 * seed + 1, steps)
    return network, layer


def main() -> None:
    arguments = parsed(parser(__doc__, "one seed, a tenth of the steps"))
    torch.set_num_threads(1)
    results = Results("norms", arguments)
    seeds, steps = (1, STEPS // 10) if arguments.quick else (SEEDS, STEPS)
    for problem in (cooling(), simplex()):
        for way in WAYS:
            made = [trained(problem, way, seed, steps) for seed in range(seeds)]
            for split in problem.splits:
                losses, held, times = [], [], []
                for seed, (network, layer) in enumerate(made):
                    x, rule_x, target = problem.samples(SIZE, split, seed)
                    with torch.no_grad():
                        yhat = network(x)
                        layer(yhat[:64], rule_x[:64])
                        started = time.process_time()
                        y = layer(yhat, rule_x)
                        times.append((time.process_time() - started) / len(x))
                    losses.append(float(problem.loss(y, target)))
                    held.append(float(problem.rules.satisfied(y, rule_x).double().mean()))
                results.add(
                    task=problem.name,
                    split=split,
                    method=way[0],
                    norm=way[1],
                    gradient=way[2] or "none",
                    loss=statistics.mean(losses),
                    spread=statistics.stdev(losses) if len(losses) > 1 else 0.0,
                    satisfied=statistics.mean(held),
                    seconds=statistics.median(times),
                    seeds=seeds,
                )
    results.write()


if __name__ == "__main__":
    main()
