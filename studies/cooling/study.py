"""Trains the study of docs/studies/cooling.md; goes on where it was stopped.

python studies/cooling/study.py [FOLDER]    draw.py FOLDER then takes the results over

All methods of the ten seeds, with mixtures of gradients at the sizes of the ablation; then, in a
folder of their own, the rules merged one by one.
"""

import os
import sys
import time
from pathlib import Path

import torch

from gdpnet.study import METHODS, Grid, train

MODEL = Path(__file__).resolve().parents[2] / "models" / "cooling"
PROTOCOLS = ("paper", "converged")

# With cnf-mixed, dnf-mixed (0.25), cnf, dnf (1) and straight-through (DNF, 0): five shares of each.
MIXTURES = ("cnf-mixed:0", "cnf-mixed:0.5", "cnf-mixed:0.75", "dnf-mixed:0.5", "dnf-mixed:0.75")
MERGED = tuple(f"pdnf:{k}" for k in range(2, 8)) + tuple(f"steps:{s}" for s in range(1, 7))

SEEDS = tuple(range(10))
ABLATION, OTHERS, MERGING = (25, 100, 500), (50, 250, 1000), (250, 500)


def grids() -> list[Grid]:
    """What is trained, in this order."""
    return [
        Grid(methods=methods, sizes=sizes, seeds=SEEDS, protocols=PROTOCOLS)
        for methods, sizes in (((*METHODS, *MIXTURES), ABLATION), (tuple(METHODS), OTHERS))
    ]


def merging() -> list[Grid]:
    """The rules merged one by one, between the CNF and the DNF."""
    methods = ("cnf", "dnf", *MERGED)
    return [Grid(methods=methods, sizes=MERGING, seeds=SEEDS, protocols=PROTOCOLS)]


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/cooling-study")
    torch.set_num_threads(1)
    started = time.monotonic()

    def told(done: int, total: int) -> None:
        minutes = (time.monotonic() - started) / 60
        sys.stderr.write(f"{minutes:6.1f} min: {done} of {total} of this part\n")

    parts = [(grid, folder) for grid in grids()]
    parts += [(grid, folder / "merged") for grid in merging()]
    for grid, part in parts:
        train(MODEL, grid, part, jobs=os.cpu_count() or 1, together=True, finished=told)


if __name__ == "__main__":
    main()
