"""A network with rules, and samples to train it on."""

from __future__ import annotations

import pyomo.environ as pyo
import torch

import gdpnet


def rules() -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.t = pyo.Param(mutable=True, initialize=0.0)
    m.y = pyo.Var([1, 2], bounds=(-2, 2))
    m.gap = gdpnet.rule(gdpnet.any_of(m.y[1] <= -0.2 - m.t, m.y[1] >= 0.2))
    m.low = pyo.Constraint(expr=m.y[1] + m.y[2] <= 1)
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t])


class Net(torch.nn.Module):
    """What most frameworks are given: a network that ends in the layer."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.hidden = torch.nn.Linear(2, width)
        self.out = torch.nn.Linear(width, 2)
        self.layer = gdpnet.ProjectionLayer(rules())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(self.out(self.hidden(x).tanh()), x[:, :1])


def samples(n: int = 32) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    x = torch.rand(n, 2, generator=draw)
    return x, torch.stack([x[:, 0] - 0.5, x[:, 1]], 1)


def broken(network: Net) -> int:
    """Rows whose outputs break the rules."""
    x, _ = samples(64)
    with torch.no_grad():
        y = network.eval()(x)
    return int((~network.layer.rules.satisfied(y, x[:, :1], tol=1e-5)).sum())


class Projected(torch.utils.data.Dataset[torch.Tensor]):
    """Targets of the samples, projected one by one."""

    def __init__(self) -> None:
        self.layer = Net().layer

    def __len__(self) -> int:
        return len(samples()[0])

    def __getitem__(self, k: int) -> torch.Tensor:
        x, y = samples()
        return self.layer(y[k : k + 1], x[k : k + 1, :1])[0]
