"""Which gradient trains best: the evidence behind gradient="auto".

    python benchmarks/gradients.py [--quick] [--publish]

Two tasks, several seeds, everything but the gradient the same. Cooling: a small network from 400
samples, squared error on shifted data. Simplex: a classifier from 64 samples whose probabilities
obey rules of the form "if a marker is high, one of these two classes has at least 0.7". Protocols:
from scratch, the layer behind a linear output; bounded, the same behind a sigmoid; fine-tuned, from
a network that was trained without rules.
"""

import copy
import statistics
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyomo.environ as pyo
import torch
from _results import Results, parsed, parser
from pyomo.gdp import Disjunction
from torch import nn

import gdpnet
from gdpnet.study import load_model

MODELS = Path(__file__).parents[1] / "models"

INWARD = gdpnet.StraightThrough(inward=True)

GRADIENTS = {
    "straight-through": gdpnet.StraightThrough(),
    "straight-through, inward": INWARD,
    "vertex": gdpnet.Vertex(),
    "qp 1e-1": gdpnet.QP(1e-1),
    "qp 1e-2": gdpnet.QP(1e-2),
    "qp 1e-3": gdpnet.QP(1e-3),
    "0.25 qp + 0.75 straight": gdpnet.Mixed("qp", "straight_through", 0.25),
    "0.5 vertex + 0.5 straight": gdpnet.Mixed("vertex", "straight_through", 0.5),
    "0.5 qp + 0.5 inward": gdpnet.Mixed("qp", INWARD, 0.5),
    "0.5 vertex + 0.5 inward (auto)": gdpnet.Mixed("vertex", INWARD, 0.5),
}


def trained(
    network: nn.Module,
    layer: nn.Module | None,
    loss: Callable[..., torch.Tensor],
    batches: list[tuple[torch.Tensor, ...]],
    steps: int,
    rate: float,
) -> nn.Module:
    """A copy of a network after AdamW over the batches, again and again."""
    network = copy.deepcopy(network)
    optimiser = torch.optim.AdamW(network.parameters(), lr=rate)
    for step in range(steps):
        value = loss(network, layer, *batches[step % len(batches)])
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
    return network


def compare(
    fresh: nn.Module,
    rules: gdpnet.RuleModel,
    loss: Callable[..., torch.Tensor],
    score: Callable[[nn.Module, nn.Module | None], float],
    batches: list[tuple[torch.Tensor, ...]],
    steps: int,
    protocol: str,
    **keywords: str,
) -> dict[str, float]:
    """Score of the network without rules, and trained with each gradient."""
    base = trained(fresh, None, loss, batches, steps, 1e-2)
    results = {
        "none: base network": score(base, None),
        "none: projected at inference": score(base, gdpnet.ProjectionLayer(rules, **keywords)),
    }
    for name, gradient in GRADIENTS.items():
        layer = gdpnet.ProjectionLayer(rules, gradient=gradient, **keywords)
        if protocol == "fine-tuned":
            network = trained(base, layer, loss, batches, steps // 2, 1e-3)
        else:
            network = trained(fresh, layer, loss, batches, steps, 1e-2)
        results[name] = score(network, layer)
    return results


def cooling(seed: int, steps: int, protocol: str) -> dict[str, float]:
    """Mean squared error on shifted data, times 1000, for each gradient."""
    model = load_model(MODELS / "cooling")
    rules = model.build()
    x, y = (t.double() for t in model.sample(400, split="iid", seed=100 + seed))
    test_x, test_y = (t.double() for t in model.sample(2000, split="ood", seed=3))
    mean, scale = x.mean(0), x.std(0)
    batches = list(zip(x.split(32), y.split(32), strict=True))

    def predicted(network: nn.Module, layer: nn.Module | None, x: torch.Tensor) -> torch.Tensor:
        found = network((x - mean) / scale)
        if protocol == "bounded":
            found = found.sigmoid()
        return found if layer is None else layer(found, x)

    def loss(network: nn.Module, layer: nn.Module | None, *data: torch.Tensor) -> torch.Tensor:
        return (predicted(network, layer, data[0]) - data[1]).square().mean()

    def error(network: nn.Module, layer: nn.Module | None) -> float:
        with torch.no_grad():
            return 1e3 * float((predicted(network, layer, test_x) - test_y).square().mean())

    torch.manual_seed(seed)
    fresh = nn.Sequential(
        nn.Linear(7, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3)
    ).double()
    return compare(fresh, rules, loss, error, batches, steps, protocol)


def markers() -> gdpnet.RuleModel:
    """Eight classes; a high marker leaves two of them, or four."""
    m = pyo.ConcreteModel()
    m.marker = pyo.Param(range(4), mutable=True, initialize=0.0)
    m.p = pyo.Var(range(8), bounds=(0, 1))
    m.total = pyo.Constraint(expr=sum(m.p.values()) == 1)
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)

    @m.Disjunction(range(4))
    def rule(m: pyo.ConcreteModel, k: int) -> list:
        return [[m.p[2 * k] >= 0.7], [m.p[2 * k + 1] >= 0.7]]

    for k in range(4):
        m.active_when[m.rule[k]] = m.marker[k] >= 1
    m.pairs = Disjunction(
        expr=[[sum(m.p[j] for j in range(4)) >= 0.6], [sum(m.p[j] for j in range(4, 8)) >= 0.6]]
    )
    return gdpnet.RuleModel(m, outputs=[m.p], inputs=[m.marker])


def cells(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Noisy features, markers that are high for the right pair of classes, labels."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 8, count)
    centres = np.random.default_rng(0).normal(size=(8, 12))
    features = centres[label] + 1.2 * rng.normal(size=(count, 12))
    marker = rng.uniform(0, 0.9, (count, 4))
    high = rng.uniform(size=count) < 0.6
    marker[high, label[high] // 2] += 1.0
    features[:, :4] += marker
    return tuple(map(torch.from_numpy, (features, marker, label)))


def simplex(seed: int, steps: int, tie: str, protocol: str) -> dict[str, float]:
    """Accuracy in percent for each gradient."""
    rules = markers()
    features, marker, label = cells(64, 100 + seed)
    test_features, test_marker, test_label = cells(4000, 7)
    batches = list(zip(features.split(16), marker.split(16), label.split(16), strict=True))

    def predicted(network: nn.Module, layer: nn.Module | None, *data: torch.Tensor) -> torch.Tensor:
        p = network(data[0]).softmax(1)
        return p if layer is None else layer(p, data[1])

    def loss(network: nn.Module, layer: nn.Module | None, *data: torch.Tensor) -> torch.Tensor:
        p = predicted(network, layer, *data).gather(1, data[2][:, None])
        return -(p + 1e-3).log().mean()

    def accuracy(network: nn.Module, layer: nn.Module | None) -> float:
        with torch.no_grad():
            found = predicted(network, layer, test_features, test_marker).argmax(1)
        return 100 * float((found == test_label).double().mean())

    torch.manual_seed(seed)
    fresh = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 8)).double()
    return compare(
        fresh, rules, loss, accuracy, batches, steps, protocol, solver=gdpnet.solve.Exact(tie=tie)
    )


def main() -> None:
    """Run all tasks."""
    arguments = parsed(parser(__doc__, "fewer seeds and steps"))
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", gdpnet.errors.ZeroGradientWarning)
    results = Results("gradients", arguments)
    seeds, steps = (2, 200) if arguments.quick else (5, 1000)
    tasks: dict[tuple[str, str], Callable[[int], dict[str, float]]] = {
        ("cooling", protocol): partial(cooling, steps=steps, protocol=protocol)
        for protocol in ("from scratch", "bounded", "fine-tuned")
    } | {
        (f"simplex, {tie}", protocol): partial(
            simplex, steps=steps // 2, tie=tie, protocol=protocol
        )
        for tie in ("first", "least_norm")
        for protocol in ("from scratch", "fine-tuned")
    }
    for (task, protocol), call in tasks.items():
        found = [call(seed) for seed in range(seeds)]
        for gradient in found[0]:
            scores = [one[gradient] for one in found]
            results.add(
                task=task,
                protocol=protocol,
                gradient=gradient,
                mean=statistics.mean(scores),
                deviation=statistics.stdev(scores),
                **{f"seed_{seed}": score for seed, score in enumerate(scores)},
            )
    results.write()


if __name__ == "__main__":
    main()
