"""Pictures of docs/studies/pbmc.md."""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")
import torch
from _study import HERE, SEEDS, Study
from matplotlib import pyplot
from names import NAMES, PAPER, PAPER_SIZES

from gdpnet.plot import style
from gdpnet.study import StudyFolder
from gdpnet.study.report import Results

PICTURES = HERE.parents[1] / "docs" / "studies" / "pbmc"

# As in the pictures of the cooling study: colours that are told apart without colour vision, and
# markers that say the same.
LOOKS = {
    "base": (style.INK, "o"),
    "penalty": (style.ORANGE, "s"),
    "finetuned-penalty": (style.VERMILION, "D"),
    "inference": (style.SKY, "^"),
    "cnf": (style.GREEN, "v"),
    "dnf": (style.BLUE, "*"),
    "dnf-relaxed": (style.PURPLE, "P"),
    "rules": (style.QUIET, "X"),
}


def draw_sizes() -> None:
    """Macro-F1 and CSAT against the number of training cells; dotted: the paper's."""
    results = Results(StudyFolder(HERE).results())
    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    panels = (
        (axes[0], "macro_f1", 1, "macro-F1"),
        (axes[1], "csat_conflict_free", 4, "CSAT, conflict-free cells"),
    )
    for ax, measure, column, title in panels:
        for method, (colour, marker) in LOOKS.items():
            spreads = [results.at(measure, method=method, size=size) for size in results.sizes]
            ax.errorbar(
                results.sizes,
                [spread.mean for spread in spreads],
                [spread.deviation for spread in spreads],
                color=colour,
                label=NAMES[method],
                marker=marker,
                markersize=6,
                capsize=2,
                linewidth=1.6,
            )
            if method in PAPER:
                paper = [row[column] for row in PAPER[method]]
                ax.plot(
                    PAPER_SIZES, paper, color=colour, linestyle=":", linewidth=1.1,
                    marker=marker, markersize=3,
                )  # fmt: skip
        ax.set_xscale("log")
        ax.set_xticks(results.sizes, [str(size) for size in results.sizes])
        ax.minorticks_off()
        ax.set_xlabel("training cells")
        ax.set_title(title, loc="left")
        ax.set_ylim(0, 1.06)
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False, fontsize=8, ncols=2, loc="upper left")
    axes[1].text(475, 1.012, "CNF, DNF, projected at inference, rules only", fontsize=8, ha="right")
    figure.savefig(PICTURES / "sizes.png", dpi=130)
    pyplot.close(figure)


def draw_confusion(study: Study) -> None:
    """Where cells of each class go, before and after the rules, for a small training set."""
    size, data = study.sizes[1], study.task.test("test")
    figure, axes = pyplot.subplots(1, 3, figsize=(13, 5.4), layout="constrained", sharey=True)
    names = [
        name.replace(" cells", "").replace("Monocytes", "Mono") for name in study.model.CLASSES
    ]
    for ax, method in zip(axes, ("base", "dnf", "rules"), strict=True):
        table = torch.zeros(8, 8, dtype=torch.float64)
        for seed in SEEDS:
            if method == "rules":
                make = study.task.method("rules").network
                y = study.task.new_network(seed, make)(data.x)
            else:
                y = study.given_out(method, size, seed)
            table += study.model.confusion(y, data.target) / len(SEEDS)
        share = table / table.sum(1, keepdim=True)
        ax.imshow(share, cmap="Blues", vmin=0, vmax=1)
        for i in range(8):
            for j in range(8):
                if share[i, j] >= 0.005:
                    dark = share[i, j] > 0.55
                    text = f"{share[i, j]:.2f}".lstrip("0")
                    ax.text(
                        j,
                        i,
                        text,
                        ha="center",
                        va="center",
                        fontsize=7.5,
                        color="white" if dark else "black",
                    )
        ax.set_xticks(range(8), names, rotation=45, ha="right", fontsize=8)
        ax.set_yticks(range(8), names, fontsize=8)
        ax.set_title(f"{NAMES[method]}", loc="left", fontsize=10)
        ax.set_xlabel("label")
    axes[0].set_ylabel("true class")
    figure.suptitle(
        f"Shares of each class, n = {size}, mean of {len(SEEDS)} seeds", x=0.01, ha="left"
    )
    figure.savefig(PICTURES / "confusion.png", dpi=120, bbox_inches="tight")
    pyplot.close(figure)
