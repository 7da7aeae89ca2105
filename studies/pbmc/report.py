"""Tables and pictures of docs/studies/pbmc.md, from the folder that study.py filled.

python studies/pbmc/report.py [FOLDER]    (GDPNET_DATA as for study.py)

Writes results.csv beside this file and the pictures beside the page, and replaces what stands in
the page between `<!-- NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import csv
import re
import shutil
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np
import torch
from _study import MEASURES, NAMES, PAPER, PAPER_SIZES, ROOT, SEEDS, Study
from matplotlib import pyplot

import gdpnet
from gdpnet.bio import explain_cells
from gdpnet.plot import style

HERE = Path(__file__).resolve().parent
PAGE = ROOT / "docs" / "studies" / "pbmc.md"
PICTURES = PAGE.with_suffix("")
SHOWN = ("csat_conflict_free", "ties")
STORED = ("right and wrong", "ties", "rule sets")

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


def main() -> None:
    study = Study(sys.argv[1] if len(sys.argv) > 1 else "build/pbmc-C")
    write_results(study)
    parts = {
        "tables": tables(study),
        "gains": gains(study),
        "right and wrong": right_and_wrong(study),
        "ties": ties(study),
        "rule sets": rule_sets(study),
        "cells": cells(study),
    }
    for name in STORED:
        store(name, parts[name])
    shutil.copy(study.folder.path / "study.json", HERE / "study.json")
    draw_sizes(study, PICTURES / "sizes.png")
    draw_confusion(study, PICTURES / "confusion.png")
    text = PAGE.read_text(encoding="utf-8")
    for name, part in parts.items():
        pattern = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
        text, count = re.subn(
            pattern, lambda m, part=part: f"{m[1]}{part}\n{m[2]}", text, flags=re.DOTALL
        )
        if not count:
            sys.stderr.write(f"pbmc.md has no place for: {name}\n")
    PAGE.write_text(text, encoding="utf-8")


def store(name: str, table: str) -> None:
    """Keep a table that does not follow from results.csv, cell by cell."""
    lines = [line for line in table.splitlines() if not line.startswith("|---")]
    with (HERE / f"{name.replace(' ', '_')}.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(cells_of(line) for line in lines)


def cells_of(line: str) -> list[str]:
    """The cells of a line of a table."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def write_results(study: Study) -> None:
    columns = ("method", "size", "seed", *MEASURES, *SHOWN)
    rows = [row for row in study.folder.results() if row["method"] in NAMES]
    order = list(NAMES)
    rows.sort(key=lambda row: (row["size"], order.index(row["method"]), row["seed"]))
    with (HERE / "results.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for row in rows:
            writer.writerow([_short(row[name]) for name in columns])


def _short(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else value


# ---- tables ------------------------------------------------------------------------------


def tables(study: Study) -> str:
    """The five tables: ours, mean and deviation, with the paper's mean in brackets."""
    parts = []
    for k, size in enumerate(study.sizes):
        head = "| method | accuracy | macro-F1 | precision | recall | CSAT, all cells | CSAT, "
        lines = [
            f"### n = {size} (paper: {PAPER_SIZES[k]})",
            "",
            f"{head}conflict-free | ties |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for method in study.methods:
            found = [study.spread(method, size, m) for m in (*MEASURES, *SHOWN)]
            paper = [*PAPER[method][k], None, None] if method in PAPER else [None] * 7
            entries = []
            for value, other in zip(found, paper, strict=True):
                text = "not trained" if value is None else str(value)
                entries.append(text if other is None else f"{text} ({other:.3f})")
            if found[-1] is not None:
                entries[-1] = f"{found[-1].mean:.2f}"
            lines.append(f"| {NAMES[method]} | {' | '.join(entries)} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def gains(study: Study) -> str:
    """What projecting changes in macro-F1, seed by seed."""
    chosen = [m for m in study.methods if m not in ("base", "rules")]
    lines = [
        f"| method | {' | '.join(f'n = {size}' for size in study.sizes)} |",
        f"|---|{'---|' * len(study.sizes)}",
    ]
    for method in chosen:
        entries = []
        for size in study.sizes:
            ours, base = (study.values(m, size, "macro_f1") for m in (method, "base"))
            if len(ours) < len(SEEDS):
                entries.append("")
                continue
            change = np.array(ours) - np.array(base)
            entries.append(f"{change.mean():+.3f} ({(change > 0).sum()} of {len(SEEDS)})")
        lines.append(f"| {NAMES[method]} | {' | '.join(entries)} |")
    return "\n".join(lines)


def right_and_wrong(study: Study) -> str:
    """Accuracy where the true class satisfies the rules, and where it does not."""
    data = study.task.test("test")
    truth = torch.nn.functional.one_hot(data.target, 8).double()
    right = study.task.rules.satisfied(truth, data.rule_x)
    lines = [
        f"| cells | {' | '.join(f'n = {size}' for size in study.sizes)} |",
        f"|---|{'---|' * len(study.sizes)}",
    ]
    for told, mask in (
        (f"rules right, {int(right.sum())} cells", right),
        (f"rules wrong, {int((~right).sum())} cells", ~right),
    ):
        for method in ("base", "inference", "dnf"):
            entries = []
            for size in study.sizes:
                hits = []
                for seed in SEEDS:
                    share = study.model.labels(study.given_out(method, size, seed))
                    hits.append(float(share[mask].gather(1, data.target[mask, None]).mean()))
                entries.append(f"{np.mean(hits):.3f}")
            lines.append(f"| {told}: {NAMES[method]} | {' | '.join(entries)} |")
    return "\n".join(lines)


def ties(study: Study) -> str:
    """Macro-F1 of DNF with three ways to name a class where two are equally probable."""
    data = study.task.test("test")
    lines = [
        f"| label of two equal classes | {' | '.join(f'n = {size}' for size in study.sizes)} |",
        f"|---|{'---|' * len(study.sizes)}",
    ]
    found: dict[str, list[str]] = {}
    for size in study.sizes:
        ways: dict[str, list[float]] = {}
        for seed in SEEDS:
            yhat = study.predicted("dnf", size, seed)
            y = study.given_out("dnf", size, seed)
            highest = study.model.labels(y) > 0
            first = torch.nn.functional.one_hot(highest.double().argmax(1), 8).double()
            kept = torch.where(highest, yhat, -1.0).argmax(1)
            other = torch.where(highest, yhat, 2.0).argmin(1)
            for way, label in (
                ("half a cell to each (the tables)", y),
                ("the first in the order of classes", first),
                ("the one the network predicted higher", torch.eye(8).double()[kept]),
                ("the one the rules raised", torch.eye(8).double()[other]),
            ):
                value = study.model.metrics(label, data.target)["macro_f1"]
                ways.setdefault(way, []).append(value)
        for way, values in ways.items():
            found.setdefault(way, []).append(f"{np.mean(values):.3f}")
    lines += [f"| {way} | {' | '.join(values)} |" for way, values in found.items()]
    base = [np.mean(study.values("base", size, "macro_f1")) for size in study.sizes]
    lines.append(f"| the base network, for comparison | {' | '.join(f'{v:.3f}' for v in base)} |")
    return "\n".join(lines)


def rule_sets(study: Study) -> str:
    """Macro-F1 of base networks projected at inference, for all rule sets."""
    data, model = study.task.test("test"), study.model
    adata = model.cells()[model.split_rows()[1]]
    lines = [
        f"| rules | CSAT | {' | '.join(f'n = {size}' for size in study.sizes)} |",
        f"|---|---|{'---|' * len(study.sizes)}",
    ]
    base = [np.mean(study.values("base", size, "macro_f1")) for size in study.sizes]
    lines.append(f"| none | | {' | '.join(f'{value:.3f}' for value in base)} |")
    for name in model.RULE_SETS:
        for rho in (0.5, 0.6):
            markers = model.markers(name, rho)
            x = markers.expression(adata)
            entries, shares = [], []
            for size in study.sizes:
                values = []
                for seed in SEEDS:
                    yhat = study.predicted("base", size, seed)
                    p = gdpnet.project(markers.rules, yhat, x)
                    free = p.status != gdpnet.Status.CONFLICT
                    shares.append(float(markers.rules.satisfied(p.y, x)[free].double().mean()))
                    highest = model.labels(p.y) > 0
                    kept = torch.where(highest, yhat, -1.0).argmax(1)
                    labels = (p.y, torch.eye(8).double()[kept])
                    values.append([model.metrics(y, data.target)["macro_f1"] for y in labels])
                entries.append(" / ".join(f"{value:.3f}" for value in np.mean(values, axis=0)))
            lines.append(f"| {name}, rho {rho} | {min(shares):.3f} | {' | '.join(entries)} |")
    return "\n".join(lines)


# ---- a few cells -------------------------------------------------------------------------


def cells(study: Study) -> str:
    """One cell each that the rules corrected, spoiled, left alone, and could not agree on."""
    size, seed = study.sizes[2], SEEDS[0]
    model, data = study.model, study.task.test("test")
    yhat = study.predicted("base", size, seed)
    y = study.given_out("inference", size, seed)
    before, after = yhat.argmax(1), model.labels(y)
    true = data.target
    single = after.amax(1) == 1.0
    active = study.task.rules.active(data.rule_x).sum(1)
    broken = ~study.task.rules.satisfied(yhat, data.rule_x)
    free = study.task.conflict_free("test")
    moved = single & broken & free
    kinds = {
        "corrected": moved & (before != true) & (after.argmax(1) == true) & (active > 1),
        "spoiled": moved & (before == true) & (after.argmax(1) != true),
        "left with two classes": ~single & broken & free & (active > 1) & (active < 4),
        "contradictory": ~free & (active < 5),
    }
    adata = model.cells()[model.split_rows()[1]].copy()
    adata.obsm["predicted"] = yhat.numpy()
    parts = []
    for kind, mask in kinds.items():
        rows = mask.nonzero().flatten().tolist()
        if not rows:
            continue
        told = explain_cells(adata, model.markers(), "predicted", [rows[0]])
        first = told.iloc[0]
        probabilities = sorted(zip(y[rows[0]].tolist(), model.CLASSES, strict=True), reverse=True)
        result = ", ".join(f"{name} {p:.2f}" for p, name in probabilities[:2])
        parts.append(
            f"**{kind}** ({len(rows)} such): {first['cell']}, truly {model.CLASSES[true[rows[0]]]},"
            f" predicted {first['predicted']}, result {result} ({first['status']})\n"
        )
        shown = told[["rule", "expression", "asks_for", "prediction", "effect"]]
        parts.append("| rule | expression | asks for | the prediction | effect |")
        parts.append("|---|---|---|---|---|")
        parts += [f"| {' | '.join(map(str, row))} |" for row in shown.itertuples(index=False)]
        parts.append("")
    return "\n".join(parts).rstrip()


# ---- pictures ----------------------------------------------------------------------------


def draw_sizes(study: Study, file: Path) -> None:
    """Macro-F1 and CSAT against the number of training cells; dotted: the paper's."""
    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    panels = (
        (axes[0], "macro_f1", 1, "macro-F1"),
        (axes[1], "csat_conflict_free", 4, "CSAT, conflict-free cells"),
    )
    for ax, measure, column, title in panels:
        for method, (colour, marker) in LOOKS.items():
            spreads = [(size, study.spread(method, size, measure)) for size in study.sizes]
            known = [(size, spread) for size, spread in spreads if spread is not None]
            if known:
                ax.errorbar(
                    [size for size, _ in known],
                    [spread.mean for _, spread in known],
                    [spread.deviation for _, spread in known],
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
        ax.set_xticks(study.sizes, [str(size) for size in study.sizes])
        ax.minorticks_off()
        ax.set_xlabel("training cells")
        ax.set_title(title, loc="left")
        ax.set_ylim(0, 1.06)
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False, fontsize=8, ncols=2, loc="upper left")
    axes[1].text(475, 1.012, "CNF, DNF, projected at inference, rules only", fontsize=8, ha="right")
    figure.savefig(file, dpi=130)
    pyplot.close(figure)


def draw_confusion(study: Study, file: Path) -> None:
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
    figure.savefig(file, dpi=120, bbox_inches="tight")
    pyplot.close(figure)


if __name__ == "__main__":
    main()
