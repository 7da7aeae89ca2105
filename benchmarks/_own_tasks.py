"""Three small tasks that gdpnet's defaults were not tuned on: dispatch, waypoints, digits.

Dispatch: four units with forbidden zones share a load and keep a reserve; targets are the cheapest
points by quadratic costs. Waypoints: three of them around two rectangles, with limits on each step;
targets are near the straight line, sideways moves being cheaper than others. In both the targets
obey the rules, and the metric in which they are nearest is neither norm of the layer. Digits:
scikit-learn's, 60 labels, rules mined on images that are used for nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyomo.environ as pyo
import torch
from pyomo.gdp import Disjunction
from torch import nn

import gdpnet

Samples = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class OwnTask:
    """A task as the loop takes it.

    Attributes:
        name: of the task.
        unit: of the score.
        rules: the rules.
        network: makes one; its outputs are within the bounds.
        loss: of outputs and targets.
        score: of outputs and targets; less is better.
        samples: inputs of the network, inputs of the rules and targets, of a size and a seed.
        test: the same for testing.
    """

    name: str
    unit: str
    rules: gdpnet.RuleModel
    network: Callable[[], nn.Module]
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    score: Callable[[torch.Tensor, torch.Tensor], float]
    samples: Callable[[int, int], Samples]
    test: Callable[[], Samples]


class _Scaled(nn.Module):
    """A network whose outputs lie within bounds, from inputs brought to size 1."""

    def __init__(self, inputs: Samples, low: torch.Tensor, high: torch.Tensor, width: int) -> None:
        super().__init__()
        x = inputs[0]
        self._mean, self._scale = x.mean(0), x.std(0) + 1e-9
        self._low, self._high = low, high
        self.layers = nn.Sequential(
            nn.Linear(x.shape[1], width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, len(low)),
        ).double()  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        unit = self.layers((x - self._mean) / self._scale).sigmoid()
        return self._low + (self._high - self._low) * unit


def _mse(y: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return (y - target).square().mean()


def _regression(
    name: str,
    rules: gdpnet.RuleModel,
    drawn: Callable[[int, int], torch.Tensor],
    wanted: Callable[[torch.Tensor], torch.Tensor],
    weights: list[float],
) -> OwnTask:
    """Targets: the nearest point to what is wanted, in a weighted Euclidean metric."""

    def samples(size: int, seed: int) -> Samples:
        x = drawn(4 * size, seed)
        p = gdpnet.project(rules, wanted(x), x, norm="l2", weights=weights)
        good = (p.status == gdpnet.Status.SATISFIED) | (p.status == gdpnet.Status.PROJECTED)
        x, y = x[good][:size], p.y[good][:size]
        return x, x, y

    some = samples(200, 99)
    low, high = rules.lower.double(), rules.upper.double()
    return OwnTask(
        name,
        "1000 MSE",
        rules,
        lambda: _Scaled(some, low, high, 16),
        _mse,
        lambda y, target: 1e3 * float(_mse(y, target)),
        samples,
        lambda: samples(1000, 7),
    )


def dispatch() -> OwnTask:
    """Four units, zones in which they must not run, load and reserve."""
    zones = ((0.3, 0.5), (0.45, 0.6), (0.25, 0.4), (0.5, 0.7))
    size = (1.0, 0.8, 0.6, 1.2)
    m = pyo.ConcreteModel()
    m.demand = pyo.Param(mutable=True, initialize=2.0)
    m.wind = pyo.Param(mutable=True, initialize=0.2)
    m.tight = pyo.Param(mutable=True, initialize=0.0)
    m.p = pyo.Var(range(4), bounds=lambda m, i: (0.0, size[i]))
    m.balance = pyo.Constraint(expr=sum(m.p.values()) == m.demand - m.wind)

    @m.Disjunction(range(4))
    def zone(m: pyo.ConcreteModel, i: int) -> list:
        return [[m.p[i] <= zones[i][0]], [m.p[i] >= zones[i][1]]]

    # On tense days one of the two large units keeps a reserve.
    m.reserve = Disjunction(expr=[[m.p[0] <= 0.8], [m.p[3] <= 0.9]])
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.active_when[m.reserve] = m.tight >= 0.5
    rules = gdpnet.RuleModel(m, outputs=[m.p], inputs=[m.demand, m.wind, m.tight])
    price = torch.tensor([0.6, 0.9, 1.2, 0.5]).double()
    curve = torch.tensor([1.0, 1.6, 2.2, 0.8]).double()

    def drawn(count: int, seed: int) -> torch.Tensor:
        rng = np.random.default_rng([seed, 1])
        load, wind = rng.uniform(1.0, 3.0, count), rng.uniform(0.0, 0.6, count)
        return torch.from_numpy(np.stack([load, wind, (rng.random(count) < 0.4) * 1.0], 1))

    def wanted(x: torch.Tensor) -> torch.Tensor:
        # Without rules: marginal costs are equal, price + 2 curve p = lambda.
        need = (x[:, 0] - x[:, 1])[:, None]
        level = (need + (price / (2 * curve)).sum()) / (1 / (2 * curve)).sum()
        return (level - price) / (2 * curve)

    return _regression("dispatch", rules, drawn, wanted, curve.sqrt().tolist())


def waypoints() -> OwnTask:
    """Three waypoints from the left to the right, around two rectangles."""
    boxes = (((1.5, 4.0), (2.0, 5.5)), ((6.0, 8.5), (4.5, 8.0)))
    m = pyo.ConcreteModel()
    m.a = pyo.Param(mutable=True, initialize=5.0)
    m.b = pyo.Param(mutable=True, initialize=5.0)
    m.y = pyo.Var(range(3), range(2), bounds=(0, 10))

    @m.Disjunction(range(3), range(2))
    def free(m: pyo.ConcreteModel, k: int, box: int) -> list:
        (left, right), (low, high) = boxes[box]
        return [
            [m.y[k, 0] <= left],
            [m.y[k, 0] >= right],
            [m.y[k, 1] <= low],
            [m.y[k, 1] >= high],
        ]

    def place(k: int, axis: int) -> object:
        if k in (-1, 3):
            return (0.0 if k < 0 else 10.0) if axis == 0 else (m.a if k < 0 else m.b)
        return m.y[k, axis]

    @m.Constraint(range(4), range(2), ["up", "down"])
    def step(m: pyo.ConcreteModel, k: int, axis: int, way: str) -> object:
        move = place(k, axis) - place(k - 1, axis)
        return (move if way == "up" else -move) <= 4.0

    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.a, m.b])

    def drawn(count: int, seed: int) -> torch.Tensor:
        rng = np.random.default_rng([seed, 2])
        return torch.from_numpy(rng.uniform(1.0, 9.0, (count, 2)))

    def wanted(x: torch.Tensor) -> torch.Tensor:
        share = torch.tensor([0.25, 0.5, 0.75]).double()
        along = (10 * share).expand(len(x), 3)
        across = x[:, :1] + (x[:, 1:] - x[:, :1]) * share
        return torch.stack([along, across], 2).flatten(1)

    return _regression("waypoints", rules, drawn, wanted, [1.0, 0.5] * 3)


def digits() -> OwnTask:
    """Classes of images; where a patch is dark or light, one of a few classes has 0.6 or more."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    images, labels = images[order] / 16.0, labels[order]
    # Patches of 2 x 2 pixels: what the rules look at.
    patches = images.reshape(-1, 4, 2, 4, 2).mean((2, 4)).reshape(-1, 16)
    mined, pool, held = slice(0, 600), slice(600, 1100), slice(1100, None)
    found = _mined(patches[mined], labels[mined])
    m = pyo.ConcreteModel()
    m.x = pyo.Param(range(16), mutable=True, initialize=0.0)
    m.p = pyo.Var(range(10), bounds=(0, 1))
    m.one = pyo.Constraint(expr=sum(m.p.values()) == 1)
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.rule = pyo.Block(range(len(found)))
    for k, (patch, sign, threshold, classes) in enumerate(found):
        m.rule[k].some = Disjunction(expr=[[m.p[c] >= 0.6] for c in classes])
        m.active_when[m.rule[k].some] = sign * m.x[patch] >= sign * threshold
    rules = gdpnet.RuleModel(m, outputs=[m.p], inputs=[m.x])

    def taken(rows: np.ndarray) -> Samples:
        return tuple(torch.from_numpy(np.asarray(v)) for v in (
            images[rows], patches[rows], labels[rows]))  # fmt: skip

    def samples(size: int, seed: int) -> Samples:
        chosen = np.random.default_rng([seed, 3]).choice(500, size, replace=False)
        return taken(np.arange(pool.start, pool.stop)[chosen])

    def network() -> nn.Module:
        layers = (nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10), nn.Softmax(-1))
        return nn.Sequential(*layers).double()

    def loss(p: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        # A projection may leave the true class with nothing: a clamp would have no gradient there.
        return -(p.gather(1, label[:, None]) + 1e-3).log().mean()

    def wrong(p: torch.Tensor, label: torch.Tensor) -> float:
        return 100 * float((p.argmax(1) != label).double().mean())

    tested = np.arange(held.start, len(images))
    return OwnTask(
        "digits", "% wrong", rules, network, loss, wrong, samples, lambda: taken(tested)
    )  # fmt: skip


def _mined(patches: np.ndarray, labels: np.ndarray) -> list[tuple[int, int, float, list[int]]]:
    """Five patches that say most: where one is dark, or light, four classes are nearly all."""
    found = []
    for patch in range(16):
        for sign in (1, -1):
            threshold = float(np.quantile(sign * patches[:, patch], 0.85))
            on = sign * patches[:, patch] >= threshold
            counts = np.bincount(labels[on], minlength=10)
            classes = np.argsort(-counts, kind="stable")[:4]
            share = counts[classes].sum() / max(1, on.sum())
            if 0.05 < on.mean() < 0.4:
                found.append((share, patch, sign, sign * threshold, sorted(map(int, classes))))
    found.sort(key=lambda one: (-one[0], one[1]))
    return [one[1:] for one in found[:5]]
