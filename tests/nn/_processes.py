"""What runs in other processes: it has to be importable there."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

import gdpnet
from gdpnet.study._models import load_model

MODELS = Path(__file__).parents[2] / "models"


class Ruled(nn.Module):
    """A small network with rules on its outputs."""

    def __init__(self, rules: gdpnet.RuleModel, gradient: str) -> None:
        super().__init__()
        p, d = len(rules.input_names), rules.data.outputs
        self.body = nn.Sequential(nn.Linear(p, 8), nn.ReLU(), nn.Linear(8, d)).double()
        self.layer = gdpnet.ProjectionLayer(rules, gradient=gradient)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(self.body(x / 30), x)


class Projections(Dataset):
    """Projects when a sample is asked for."""

    def __init__(self, rules: gdpnet.RuleModel) -> None:
        self.layer = gdpnet.ProjectionLayer(rules)
        self.x = load_model(MODELS / "cooling").sample(16, split="iid", seed=0)[0].double()

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> torch.Tensor:
        y = self.layer(torch.full((3,), 0.05 * index, dtype=torch.float64), self.x[index])
        return torch.cat([y, self.x[index]])


def project_in_workers(rules: gdpnet.RuleModel) -> torch.Tensor:
    loader = DataLoader(
        Projections(rules), batch_size=4, num_workers=1, multiprocessing_context="spawn"
    )
    return torch.cat(list(loader))


def gradients_of_two_ranks(model: nn.Module, x: torch.Tensor, folder: Path) -> list[torch.Tensor]:
    mp.spawn(_rank, (model, x, str(folder)), nprocs=2)
    first, second = (torch.load(folder / f"{rank}.pt") for rank in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    return first


def _rank(rank: int, model: nn.Module, x: torch.Tensor, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    parallel = DistributedDataParallel(model)
    parallel(x.chunk(2)[rank]).square().sum().backward()
    torch.save([p.grad for p in model.parameters()], f"{folder}/{rank}.pt")
    dist.destroy_process_group()
