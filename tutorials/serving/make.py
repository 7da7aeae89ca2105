"""Leaves what a server needs in a folder: saved rules, and the weights of a network.

    python make.py FOLDER

This is the last step of training. Pyomo is needed here, and not where the files are served.
"""

import sys
from pathlib import Path

import pyomo.environ as pyo
import torch
from app import new_network

import gdpnet


def rules() -> gdpnet.RuleModel:
    """A fan f and a chiller c: above 24 degrees one of them works hard, and power is limited."""
    m = pyo.ConcreteModel()
    m.Ta = pyo.Param(mutable=True, initialize=20.0)
    m.f = pyo.Var(bounds=(0, 1))
    m.c = pyo.Var(bounds=(0, 1))
    m.power = pyo.Constraint(expr=0.3 * m.f + m.c <= 0.05 * m.Ta)
    m.hot = gdpnet.rule(gdpnet.any_of(m.f >= 0.75, m.c >= 0.5), when=m.Ta >= 24)
    m.rest = gdpnet.rule(gdpnet.any_of(m.f <= 0.1, m.f >= 0.3))
    return gdpnet.RuleModel(m, outputs=[m.f, m.c], inputs=[m.Ta], input_bounds={"Ta": (10, 40)})


def main(folder: Path) -> None:
    torch.manual_seed(0)
    x = 10 + 30 * torch.rand(512, 1)
    target = torch.cat([((x - 20) / 15).clamp(0, 1), ((x - 25) / 20).clamp(0, 1)], 1)
    network = new_network()
    layer = gdpnet.ProjectionLayer(rules())
    optimiser = torch.optim.Adam(network.parameters(), 1e-2)
    for _ in range(100):
        optimiser.zero_grad()
        torch.nn.functional.mse_loss(layer(network(x), x), target).backward()
        optimiser.step()
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(network.state_dict(), folder / "network.pt")
    layer.rules.save(folder / "rules.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
