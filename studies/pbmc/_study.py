"""What the scripts share: what is trained, the folder with its networks, rows on disk."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from names import NAMES

from gdpnet.study import Grid, StudyFolder, Task, load_model

HERE = Path(__file__).resolve().parent
MODEL = HERE.parents[1] / "models" / "pbmc"
SEEDS = tuple(range(10))
PROTOCOL = "pbmc"

Row = dict[str, Any]

# As they are trained: what takes longest comes last.
METHODS = (*(name for name in NAMES if name != "penalty"), "penalty")


def grid() -> Grid:
    """What is trained."""
    sizes = load_model(MODEL).module.sizes()
    return Grid(methods=METHODS, sizes=sizes, seeds=SEEDS, protocols=(PROTOCOL,))


def store(name: str, rows: Sequence[Row]) -> None:
    """Keep rows beside the scripts; numbers with all their digits."""
    with (HERE / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


class Study:
    """The folder that study.py filled, with its networks."""

    def __init__(self, folder: str) -> None:
        self.folder = StudyFolder(folder)
        self.task = Task(load_model(MODEL))
        self.model: Any = load_model(MODEL).module
        self.sizes: tuple[int, ...] = self.model.sizes()

    def predicted(self, method: str, size: int, seed: int) -> torch.Tensor:
        """What the base, or a projection's network, predicts for the test cells."""
        chain = "base" if method == "base" else f"base+{method}"
        network = self.task.new_network(seed)
        state = self.folder.load(self.folder.checkpoint(PROTOCOL, size, seed, chain))
        if state is None:
            raise SystemExit(f"{method}, n = {size}, seed {seed} has not been trained yet")
        network.load_state_dict(state["network"])
        with torch.no_grad():
            y: torch.Tensor = network(self.task.test("test").x)
        return y

    def given_out(self, method: str, size: int, seed: int) -> torch.Tensor:
        """What the method gives out for the test cells."""
        layer = self.task.layer(self.task.method(method), "qp")
        start = "base" if method.startswith("inference") else method
        y = self.predicted(start, size, seed)
        with torch.no_grad():
            return y if layer is None else layer(y, self.task.test("test").rule_x)
