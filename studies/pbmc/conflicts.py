"""Cells whose rules contradict each other: what to do about them.

The base networks' predictions for the test cells are projected in several ways: a contradictory
cell keeps its prediction ("pass"), breaks all rules as little as possible ("nearest"), is projected
with the fewest rules left out ("drop"), or every rule may be broken at a price.
"""

from __future__ import annotations

from collections.abc import Iterator

from _study import SEEDS, Row, Study
from names import PRICES, WAYS

import gdpnet

RHOS = (0.5, 0.6)


def contradictory(study: Study) -> Iterator[Row]:
    """All ways, sizes and seeds.

    Columns: `rho`, least probability that the rules ask for; `way`, key of `WAYS`; `size` and
    `seed` of the network; `cells`, number of contradictory test cells; `accuracy` and `macro_f1`
    over all test cells; `contradictory`, accuracy over contradictory ones; `held`, share of the
    active rules that hold, and `held_contradictory`, the same over contradictory cells.
    """
    for rho in RHOS:
        yield from _measured(study, rho)


def _measured(study: Study, rho: float) -> Iterator[Row]:
    """All ways, sizes and seeds for rules with a least probability."""
    model, data = study.model, study.task.test("test")
    rules, x = model.build(rho=rho), data.rule_x
    active = rules.active(x)
    priced = {f"price {price:g}": model.priced(price, rho=rho).rules for price in PRICES}
    for size in study.sizes:
        for seed in SEEDS:
            yhat = study.predicted("base", size, seed)
            exact = gdpnet.project(rules, yhat, x)
            apart = exact.status == gdpnet.Status.CONFLICT
            for way in WAYS:
                if way == "none":
                    y = yhat
                elif way in priced:
                    y = gdpnet.project(priced[way], yhat, x).y
                else:
                    y = gdpnet.project(rules, yhat, x, on_conflict=way).y
                share = model.labels(y).gather(1, data.target[:, None])[:, 0]
                holds = (rules.violation(y, x) <= 1e-6) & active
                yield {
                    "rho": rho,
                    "way": way,
                    "size": size,
                    "seed": seed,
                    "cells": int(apart.sum()),
                    "accuracy": float(share.mean()),
                    "macro_f1": model.metrics(y, data.target)["macro_f1"],
                    "contradictory": float(share[apart].mean()),
                    "held": float(holds.sum() / active.sum()),
                    "held_contradictory": float(holds[apart].sum() / active[apart].sum()),
                }
