"""Draws docs/pictures/first_look.png: predictions and their projections, two rules in the plane.

Run from the top of the repository: python docs/tools/first_look.py
"""

from itertools import product
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from matplotlib.patches import Rectangle

import gdpnet
from gdpnet.study import load_model

ROOT = Path(__file__).resolve().parents[2]
# Okabe-Ito colours, told apart also without colour vision; hatching and labels say the same.
BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"
# Letters are not to be crossed by hatching.
BEHIND = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}


def main() -> None:
    model = load_model(ROOT / "models" / "toy")
    rules = model.build(name="figure1")
    boxes = model.module.FIGURE1

    predictions = torch.tensor(
        [[4.3, 3.4], [4.6, 6.3], [8.6, 6.6], [1.2, 2.0], [5.6, 1.4], [2.4, 4.2]]
    ).double()
    projection = gdpnet.project(rules, predictions)
    assert rules.satisfied(projection.y).all()

    figure, ax = plt.subplots(figsize=(6.4, 4.6), dpi=150)
    for (name, pair), colour, hatch in zip(
        boxes.items(), (BLUE, ORANGE), ("///", "\\\\\\"), strict=True
    ):
        for k, box in enumerate(pair):
            ax.add_patch(_rectangle(box, fill=False, edgecolor=colour, hatch=hatch, alpha=0.45))
            (left, _), (_, top) = box
            label = f"{name}, disjunct {k + 1}"
            ax.annotate(label, (left, top + 0.14), color=colour, fontsize=7, bbox=BEHIND, zorder=3)
    for one, other in product(boxes["rule1"], boxes["rule2"]):
        common = _intersection(one, other)
        if common is not None:
            ax.add_patch(_rectangle(common, facecolor=GREEN, edgecolor=GREEN, alpha=0.45))
    ax.annotate("both\nrules hold", (6.15, 3.65), color="black", fontsize=8, weight="bold")

    for before, after in zip(predictions.tolist(), projection.y.tolist(), strict=True):
        ax.annotate("", after, before, arrowprops={"arrowstyle": "->", "lw": 1.3})
        ax.plot(*before, "o", color="white", markeredgecolor="black", markersize=6)
        ax.plot(*after, "o", color="black", markersize=5)
    ax.plot([], [], "o", color="white", markeredgecolor="black", label="prediction")
    ax.plot([], [], "o", color="black", label="projection: nearest point where all rules hold")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2, frameon=False, fontsize=8)
    ax.set(xlim=(0, 10), ylim=(0, 10), xlabel="$y_1$", ylabel="$y_2$", aspect="equal")
    figure.savefig(ROOT / "docs" / "pictures" / "first_look.png", bbox_inches="tight")


def _rectangle(box: tuple, **style: object) -> Rectangle:
    (left, right), (bottom, top) = box
    return Rectangle((left, bottom), right - left, top - bottom, **style)


def _intersection(one: tuple, other: tuple) -> tuple | None:
    common = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(one, other, strict=True))
    return common if all(low < high for low, high in common) else None


if __name__ == "__main__":
    main()
