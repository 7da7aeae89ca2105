"""What docs/studies/pbmc.md shows, measured on the networks that study.py trained.

    python studies/pbmc/measure.py [FOLDER]    (GDPNET_DATA as for study.py)

Takes the results over and writes the rows of all tables beside this file, then draws the pictures.
Nothing is trained. Tables and numbers of the page are filled by `benchmarks/fill.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import torch
from _study import HERE, SEEDS, Row, Study, grid, store
from conflicts import contradictory
from draw import draw_confusion, draw_sizes

import gdpnet
from gdpnet.bio import explain_cells
from gdpnet.study import keep_whole

EXPLAINED = (
    "cell", "predicted", "status", "rule", "expression", "asks_for", "prediction", "effect"
)  # fmt: skip


def main() -> None:
    study = Study(sys.argv[1] if len(sys.argv) > 1 else "build/pbmc-C")
    keep_whole(study.folder.path, HERE, [grid()])
    for name, rows in (
        ("right_and_wrong", right_and_wrong(study)),
        ("ties", ties(study)),
        ("rule_sets", rule_sets(study)),
        ("conflicts", contradictory(study)),
        ("cells", cells(study)),
    ):
        store(name, list(rows))
    draw_sizes()
    draw_confusion(study)


def _named_by_network(study: Study, y: torch.Tensor, yhat: torch.Tensor) -> torch.Tensor:
    """Of equally probable classes the one that the network predicted higher, as one-hot rows."""
    highest = study.model.labels(y) > 0
    return torch.eye(8).double()[torch.where(highest, yhat, -1.0).argmax(1)]


def right_and_wrong(study: Study) -> Iterator[Row]:
    """Accuracy where the true class satisfies the rules, and where it does not."""
    data = study.task.test("test")
    truth = torch.nn.functional.one_hot(data.target, 8).double()
    right = study.task.rules.satisfied(truth, data.rule_x)
    for rules, mask in (("right", right), ("wrong", ~right)):
        for method in ("base", "inference", "dnf"):
            for size in study.sizes:
                for seed in SEEDS:
                    share = study.model.labels(study.given_out(method, size, seed))
                    hit = float(share[mask].gather(1, data.target[mask, None]).mean())
                    run = {"method": method, "size": size, "seed": seed}
                    yield {"rules": rules, "cells": int(mask.sum()), **run, "accuracy": hit}


def ties(study: Study) -> Iterator[Row]:
    """Macro-F1 of DNF with four ways to name a class where two are equally probable."""
    target = study.task.test("test").target
    for size in study.sizes:
        for seed in SEEDS:
            yhat, y = study.predicted("dnf", size, seed), study.given_out("dnf", size, seed)
            highest = study.model.labels(y) > 0
            other = torch.where(highest, yhat, 2.0).argmin(1)
            for way, label in (
                ("half a cell to each", y),
                ("the first in the order of classes", highest.double().argmax(1)),
                ("the one the network predicted higher", _named_by_network(study, y, yhat)),
                ("the one the rules raised", other),
            ):
                shares = label if label.ndim == 2 else torch.eye(8).double()[label]
                f1 = study.model.metrics(shares, target)["macro_f1"]
                yield {"way": way, "size": size, "seed": seed, "macro_f1": f1}


def rule_sets(study: Study) -> Iterator[Row]:
    """Base networks projected at inference, for all rule sets."""
    model, target = study.model, study.task.test("test").target
    adata = model.cells()[model.split_rows()[1]]
    truth = torch.nn.functional.one_hot(target, 8).double()
    for name in model.RULE_SETS:
        for rho in (0.5, 0.6):
            markers = model.markers(name, rho)
            x = markers.expression(adata)
            right = float(markers.rules.satisfied(truth, x).double().mean())
            for size in study.sizes:
                for seed in SEEDS:
                    yhat = study.predicted("base", size, seed)
                    p = gdpnet.project(markers.rules, yhat, x)
                    free = p.status != gdpnet.Status.CONFLICT
                    named = _named_by_network(study, p.y, yhat)
                    yield {
                        "rules": name,
                        "rho": rho,
                        "right": right,
                        "contradictory": float((~free).double().mean()),
                        "size": size,
                        "seed": seed,
                        "csat": float(markers.rules.satisfied(p.y, x)[free].double().mean()),
                        "macro_f1": model.metrics(p.y, target)["macro_f1"],
                        "macro_f1_by_network": model.metrics(named, target)["macro_f1"],
                    }


def cells(study: Study) -> Iterator[Row]:
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
    for kind, mask in kinds.items():
        rows = mask.nonzero().flatten().tolist()
        if not rows:
            continue
        probabilities = sorted(zip(y[rows[0]].tolist(), model.CLASSES, strict=True), reverse=True)
        known = {
            "kind": kind,
            "such": len(rows),
            "size": size,
            "true": model.CLASSES[true[rows[0]]],
            "result": ", ".join(f"{name} {p:.2f}" for p, name in probabilities[:2]),
        }
        told = explain_cells(adata, model.markers(), "predicted", [rows[0]])
        for rule in told.to_dict("records"):
            yield known | {name: rule[name] for name in EXPLAINED}


if __name__ == "__main__":
    main()
