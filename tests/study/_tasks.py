"""Small tasks for training, and how to compare what came out of them."""

from __future__ import annotations

import math
from pathlib import Path

MODELS = Path(__file__).parents[2] / "models"

# Two outputs, a rule that is always active and one of the second half of the inputs; training takes
# a tenth of a second.
GAP = """
import gdpnet
import pyomo.environ as pyo
import torch
from pyomo.gdp import Disjunction

from gdpnet.study import Protocol, Stage

TEST_SEEDS = {"near": 7, "far": 8}
TEST_SIZE = 60
PROTOCOLS = {
    "short": Protocol(base=Stage(4, 1e-2, epochs=3), finetune=Stage(1, 1e-2, epochs=1)),
    "best": Protocol(
        base=Stage(4, 3e-2, steps=30, check_every=7),
        finetune=Stage(4, 3e-2, steps=30, check_every=7),
        both=True,
        validation=0.25,
    ),
    "long": Protocol(base=Stage(1, 1e-3, epochs=40), finetune=Stage(1, 1e-3, epochs=40)),
}


def build():
    m = pyo.ConcreteModel()
    m.t = pyo.Param(mutable=True, initialize=0.0)
    m.y = pyo.Var([1, 2], bounds=(0, 1))
    m.gap = Disjunction(expr=[[m.y[1] <= 0.25], [m.y[1] >= 0.75]])
    m.late = Disjunction(expr=[[m.y[1] + m.y[2] <= 0.5], [m.y[1] + m.y[2] >= 1.5]])
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.active_when[m.late] = m.t >= 0.5
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t], input_bounds=[(0, 1)])


def sample(n, split, seed):
    n = min(n, 120)
    draw = torch.Generator().manual_seed(1000 * ["train", "near", "far"].index(split) + seed)
    x = torch.rand(120, 1, generator=draw, dtype=torch.float64)[:n]
    return x, torch.cat([(x > 0.5).double(), x], 1)


def network():
    return torch.nn.Sequential(
        torch.nn.Linear(1, 4), torch.nn.Dropout(0.1), torch.nn.ReLU(), torch.nn.Linear(4, 2)
    )
"""

TIMES = {"inference_us", "single_us", "train_seconds", "epoch_seconds"}


def untimed(rows: list[dict]) -> list[dict]:
    """Rows in a fixed order, without times, NaN as None so that equal rows are equal."""
    plain = [
        {
            key: None if isinstance(value, float) and math.isnan(value) else value
            for key, value in row.items()
            if key not in TIMES
        }
        for row in rows
    ]
    return sorted(plain, key=lambda row: [str(value) for value in row.values()])
