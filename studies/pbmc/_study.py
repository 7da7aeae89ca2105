"""What study.py and report.py share: the study's folder, its networks, the paper's tables."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any, NamedTuple

import torch

from gdpnet.study import load_model
from gdpnet.study.training import StudyFolder, Task

ROOT = Path(__file__).resolve().parents[2]
SEEDS = tuple(range(10))
PROTOCOL = "pbmc"

PAPER_SIZES = (12, 23, 117, 234, 469)
MEASURES = ("accuracy", "macro_f1", "macro_precision", "macro_recall", "csat")

# Means of the paper's appendix, in the order of MEASURES, one row for each of its sizes.
PAPER = {
    "base": (
        (0.251, 0.232, 0.381, 0.339, 0.105),
        (0.470, 0.296, 0.381, 0.392, 0.242),
        (0.713, 0.559, 0.582, 0.650, 0.487),
        (0.736, 0.606, 0.664, 0.646, 0.520),
        (0.835, 0.709, 0.773, 0.710, 0.742),
    ),
    "penalty": (
        (0.468, 0.339, 0.385, 0.466, 0.046),
        (0.431, 0.319, 0.361, 0.411, 0.052),
        (0.753, 0.567, 0.600, 0.632, 0.464),
        (0.753, 0.528, 0.553, 0.556, 0.575),
        (0.829, 0.675, 0.720, 0.680, 0.595),
    ),
    "finetuned-penalty": (
        (0.254, 0.224, 0.389, 0.328, 0.180),
        (0.414, 0.293, 0.465, 0.358, 0.317),
        (0.673, 0.538, 0.574, 0.599, 0.611),
        (0.686, 0.551, 0.617, 0.591, 0.654),
        (0.776, 0.648, 0.662, 0.709, 0.778),
    ),
    "cnf": (
        (0.329, 0.324, 0.459, 0.460, 0.709),
        (0.503, 0.407, 0.496, 0.539, 0.804),
        (0.726, 0.588, 0.614, 0.703, 0.846),
        (0.691, 0.566, 0.607, 0.658, 0.863),
        (0.804, 0.643, 0.646, 0.736, 0.856),
    ),
    "dnf": (
        (0.342, 0.326, 0.450, 0.462, 0.908),
        (0.501, 0.402, 0.488, 0.534, 0.951),
        (0.723, 0.584, 0.610, 0.699, 0.948),
        (0.691, 0.549, 0.590, 0.645, 0.918),
        (0.813, 0.666, 0.666, 0.756, 0.882),
    ),
    "rules": (
        (0.180, 0.162, 0.181, 0.315, 0.980),
        (0.167, 0.158, 0.161, 0.343, 0.980),
        (0.193, 0.175, 0.196, 0.362, 0.980),
        (0.193, 0.167, 0.184, 0.311, 0.980),
        (0.189, 0.167, 0.181, 0.337, 0.980),
    ),
}

NAMES = {
    "base": "base",
    "finetuned-base": "base, fine-tuned",
    "penalty": "penalty",
    "finetuned-penalty": "fine-tuned penalty",
    "inference": "projected at inference",
    "inference-least-norm": "projected at inference, least norm",
    "cnf": "CNF",
    "cnf-mixed": "CNF, mixed gradient",
    "cnf-relaxed": "CNF, relaxed",
    "dnf": "DNF",
    "dnf-mixed": "DNF, mixed gradient",
    "dnf-relaxed": "DNF, relaxed",
    "dnf-least-norm": "DNF, least norm",
    "dnf-nearest": "DNF, nearest on conflict",
    "rules": "rules only",
}

# As they are trained: what takes longest comes last.
METHODS = (*(name for name in NAMES if name != "penalty"), "penalty")


class Spread(NamedTuple):
    """Mean and standard deviation over seeds."""

    mean: float
    deviation: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.deviation:.3f}"


class Study:
    """A study's folder, with its table by method and size."""

    def __init__(self, folder: str) -> None:
        self.folder = StudyFolder(folder)
        self.task = Task(load_model(ROOT / "models" / "pbmc"))
        self.model: Any = load_model(ROOT / "models" / "pbmc").module
        self.sizes: tuple[int, ...] = self.model.sizes()
        self._rows: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for row in self.folder.results():
            if row["protocol"] == PROTOCOL:
                self._rows.setdefault((row["method"], row["size"]), []).append(row)

    @property
    def methods(self) -> list[str]:
        """Those that are in the table for some size."""
        return [name for name in NAMES if any(method == name for method, _ in self._rows)]

    def values(self, method: str, size: int, measure: str) -> list[float]:
        """One number for each seed, in their order; empty where nothing was trained."""
        rows = sorted(self._rows.get((method, size), []), key=lambda row: row["seed"])
        return [row[measure] for row in rows]

    def spread(self, method: str, size: int, measure: str) -> Spread | None:
        """Over the seeds; None where some are missing."""
        values = self.values(method, size, measure)
        if len(values) < len(SEEDS):
            return None
        return Spread(statistics.fmean(values), statistics.stdev(values))

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
