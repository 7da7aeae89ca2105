"""Seeds trained side by side take the steps that each takes alone."""

from pathlib import Path

import pytest
import torch
from torch import nn

from gdpnet.study.training import Data, Grid, train
from gdpnet.study.training._objective import Objective
from gdpnet.study.training._together import stacked

MODEL = """
import gdpnet, torch
import pyomo.environ as pyo
from gdpnet.study.training import Protocol, Stage

PROTOCOLS = {
    "short": Protocol(base=Stage(4, 1e-2, epochs=6), finetune=Stage(1, 1e-2, epochs=2)),
    "checked": Protocol(
        base=Stage(4, 1e-2, steps=20, check_every=5),
        finetune=Stage(4, 1e-2, steps=20, check_every=5),
        validation=0.2,
    ),
}

def build():
    m = pyo.ConcreteModel()
    m.t = pyo.Param(mutable=True, initialize=0.0)
    m.y = pyo.Var([1, 2], bounds=(-1, 1))
    m.gap = gdpnet.rule(gdpnet.any_of(m.y[1] <= -0.3 - 0.1 * m.t, m.y[1] >= 0.3))
    m.low = pyo.Constraint(expr=m.y[1] + m.y[2] <= 0.8)
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t])

rule_inputs = [0]
TEST_SIZE = 40

def sample(n, split, seed):
    random = torch.Generator().manual_seed(seed + 1000 * (split != "train"))
    x = torch.randn(n, 3, generator=random, dtype=torch.float64)
    return x, torch.stack([x.sum(1).tanh(), (x[:, 0] * x[:, 1]).tanh()], 1)

def network():
    return torch.nn.Sequential(torch.nn.Linear(3, 6), torch.nn.Tanh(), torch.nn.Linear(6, 2))
"""

METHODS = ("base", "penalty", "finetuned-penalty", "inference", "dnf")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    file = tmp_path / "task.py"
    file.write_text(MODEL)
    return file


def weights(folder: Path, protocol: str = "short") -> dict[str, torch.Tensor]:
    found = {}
    for file in sorted((folder / "networks" / protocol).glob("*.pt")):
        state = torch.load(file)["network"]
        found |= {f"{file.stem}/{key}": value for key, value in state.items()}
    return found


def test_the_same_networks_as_one_by_one(model: Path, tmp_path: Path) -> None:
    grid = Grid(methods=METHODS, sizes=(10, 15), seeds=(0, 1, 2), protocols=("short",))
    alone = train(model, grid, tmp_path / "alone")
    together = train(model, grid, tmp_path / "together", together=True)
    expected, found = weights(tmp_path / "alone"), weights(tmp_path / "together")
    assert expected.keys() == found.keys()
    for key, value in expected.items():
        torch.testing.assert_close(found[key], value, rtol=1e-8, atol=1e-8, msg=key)
    runs = ("protocol", "method", "size", "seed")
    mse = {tuple(row[k] for k in runs): row["mse"] for row in alone}
    assert {tuple(row[k] for k in runs) for row in together} == set(mse)
    for row in together:
        assert row["mse"] == pytest.approx(mse[tuple(row[k] for k in runs)], rel=1e-6)
        assert row["train_steps"] > 0


class StoppedError(Exception):
    pass


def test_it_goes_on_where_it_stopped(model: Path, tmp_path: Path) -> None:
    grid = Grid(methods=METHODS, sizes=(70,), seeds=(0, 1), protocols=("short",))
    train(model, grid, tmp_path / "once", together=True)

    def stop(told: str, step: int, total: int) -> None:
        if "dnf" in told and step < total:
            raise StoppedError

    def save_then_stop(told: str, step: int, total: int) -> None:
        if "dnf" in told and 64 < step < total:
            raise StoppedError

    stopped = tmp_path / "stopped"
    for progress in (stop, save_then_stop):
        with pytest.raises(StoppedError):
            train(model, grid, stopped, together=True, progress=progress, save_every=0.0)
    assert list(stopped.glob("networks/short/*.running.pt"))
    train(model, grid, stopped, together=True)
    expected, found = weights(tmp_path / "once"), weights(stopped)
    assert expected.keys() == found.keys()
    for key, value in expected.items():
        torch.testing.assert_close(found[key], value, rtol=0, atol=0, msg=key)


def test_a_seed_that_is_there_already_is_not_trained_again(model: Path, tmp_path: Path) -> None:
    first = Grid(methods=("base",), sizes=(10,), seeds=(1,), protocols=("short",))
    every = Grid(methods=("base", "dnf"), sizes=(10,), seeds=(0, 1, 2), protocols=("short",))
    train(model, first, tmp_path / "study")
    file = tmp_path / "study" / "networks" / "short" / "n10-seed1-base.pt"
    before = file.read_bytes()
    rows = train(model, every, tmp_path / "study", together=True)
    assert len(rows) == 6
    assert file.read_bytes() == before


def test_each_network_is_kept_where_it_is_best(model: Path, tmp_path: Path) -> None:
    grid = Grid(methods=METHODS, sizes=(20,), seeds=(0, 1, 2), protocols=("checked",))
    train(model, grid, tmp_path / "alone")
    train(model, grid, tmp_path / "together", together=True)
    expected, found = (weights(tmp_path / name, "checked") for name in ("alone", "together"))
    assert expected.keys() == found.keys()
    for key, value in expected.items():
        torch.testing.assert_close(found[key], value, rtol=1e-8, atol=1e-8, msg=key)
    # Not all are best at the end, or the test would pass without looking.
    curves = [
        torch.load(file)["curve"]
        for file in sorted((tmp_path / "together" / "networks" / "checked").glob("*.pt"))
    ]
    best = {min(curve, key=lambda look: look[1])[0] for curve in curves}
    assert len(best) > 1
    for file, curve in zip(
        sorted((tmp_path / "alone" / "networks" / "checked").glob("*.pt")), curves, strict=True
    ):
        alone = torch.load(file)["curve"]
        assert [step for step, _ in alone] == [step for step, _ in curve]
        assert [loss for _, loss in curve] == pytest.approx([loss for _, loss in alone], rel=1e-6)


def test_networks_that_cannot_stand_side_by_side() -> None:
    x = torch.randn(2, 3, 4, dtype=torch.float64)
    convolution = [nn.Sequential(nn.Conv1d(1, 1, 1)).double() for _ in range(3)]
    assert stacked(convolution, x) is None
    assert stacked([nn.Linear(4, 2).double() for _ in range(3)], x) is None  # no room to replace it

    class Mixing(nn.Module):
        """Looks across the batch, which side by side is another dimension."""

        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.linear(x) - self.linear(x).mean(0)

    assert stacked([Mixing().double() for _ in range(3)], x) is None
    usual = [
        nn.Sequential(nn.Linear(4, 5, bias=False), nn.ReLU(), nn.Linear(5, 2)).double()
        for _ in range(3)
    ]
    together = stacked(usual, x)
    assert together is not None
    torch.testing.assert_close(together(x)[:, 1], usual[1](x[:, 1]))


def test_a_weighted_mean_is_no_mean_whatever_comes_first() -> None:
    weight = torch.tensor([1.0, 5.0], dtype=torch.float64)

    def loss(y: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(y, target, weight=weight)

    y = torch.randn(1, 3, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    summed = Objective(loss).summed(3)
    for target in ([0, 0, 0], [0, 1, 1], [0, 0, 0]):
        data = Data(y, None, torch.tensor([target]))
        alone = sum(loss(y[:, k], data.target[:, k]) for k in range(3))
        assert float(summed(torch.nn.Identity(), data)) == pytest.approx(float(alone), rel=1e-12)
