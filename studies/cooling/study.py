"""Trains the study of docs/studies/cooling.md; goes on where it was stopped.

python studies/cooling/study.py [FOLDER]    draw.py FOLDER then takes the results over

The order is that of what is missed most if it is stopped: the sizes of the ablation first, then the
others, all methods for five seeds and then for ten; then, in a folder of their own, the rules
merged one by one.
"""

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

FIRST, REST = tuple(range(5)), tuple(range(5, 10))
ABLATION, OTHERS, MERGING = (25, 100, 500), (50, 250, 1000), (250, 500)


def grids() -> list[Grid]:
    """What is trained, in this order."""
    usual, mixed = tuple(METHODS), (*METHODS, *MIXTURES)
    return [
        Grid(methods=methods, sizes=sizes, seeds=seeds, protocols=PROTOCOLS)
        for methods, sizes, seeds in (
            (mixed, ABLATION, FIRST),
            (usual, OTHERS, FIRST),
            (mixed, ABLATION, REST),
            (usual, OTHERS, REST),
        )
    ]


def merging() -> list[Grid]:
    """The rules merged one by one, between the CNF and the DNF."""
    methods = ("cnf", "dnf", *MERGED)
    return [
        Grid(methods=methods, sizes=MERGING, seeds=seeds, protocols=PROTOCOLS)
        for seeds in (FIRST, REST)
    ]


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/cooling-study")
    torch.set_num_threads(1)
    started = time.monotonic()

    def told(done: int, total: int) -> None:
        minutes = (time.monotonic() - started) / 60
        sys.stderr.write(f"{minutes:6.1f} min: {done} of {total} of this part\n")

    for grid in grids():
        train(MODEL, grid, folder, finished=told)
    for grid in merging():
        train(MODEL, grid, folder / "merged", finished=told)


if __name__ == "__main__":
    main()
