"""Draws docs/pictures/regions.png: what each relaxation makes of two models' rules.

Left the paper's illustration of CNF and DNF, right the cooling plant at one input, in the plane of
its pump power.

Run from the top of the repository: python docs/tools/regions.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
import torch

import gdpnet
from gdpnet.study import load_model

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "models"


def main() -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(11.6, 6.2), dpi=130, layout="constrained")

    rules = load_model(MODELS / "toy").build(name="figure1")
    gdpnet.plot.plot_region(rules, relaxation=["cnf", "dnf"], yhat=[4.6, 6.3], ax=left)

    rules = load_model(MODELS / "cooling").build()
    # Ta, H, w, price, dr, mf, mc: hot, humid and busy
    x = torch.tensor([35.9, 70.0, 0.69, 0.39, 0.0, 0.0, 0.0], dtype=torch.float64)
    gdpnet.plot.plot_region(
        rules, x=x, outputs=("f", "c"), relaxation=["cnf", "dnf"], yhat=[0.5, 0.15, 0.2], ax=right
    )
    figure.savefig(ROOT / "docs" / "pictures" / "regions.png", bbox_inches="tight")


if __name__ == "__main__":
    main()
