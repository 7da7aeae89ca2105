"""A few sentences on projecting onto a model's rules: how far, how fast, and checked by MILP."""

from __future__ import annotations

import time

import torch

import gdpnet
from gdpnet.model import RuleModel

_CHECKED = 20  # samples that are projected by MILP as well


def projection_summary(rules: RuleModel, yhat: torch.Tensor, x: torch.Tensor) -> str:
    """Project predictions by the exact engine, some of them by MILP too, and tell what came out.

    Args:
        rules: the rules.
        yhat: predictions, `batch x d`.
        x: inputs, `batch x p`.
    """
    gdpnet.project(rules, yhat[:1], x[:1])
    start = time.perf_counter()
    exact = gdpnet.project(rules, yhat, x)
    taken = time.perf_counter() - start
    status = gdpnet.Status
    counts = {s: int((exact.status == s).sum()) for s in status}
    told = [f"{counts[s]} {s.name}" for s in status if counts[s]]
    free = exact.status != status.CONFLICT
    good = rules.satisfied(exact.y[free], x[free])
    moved = exact.distance[exact.status == status.PROJECTED]
    few = min(_CHECKED, len(yhat))
    start = time.perf_counter()
    milp = gdpnet.project(rules, yhat[:few], x[:few], solver="milp")
    slow = (time.perf_counter() - start) / few
    known = torch.isfinite(milp.distance)
    worst = (milp.value - exact.value[:few])[known].abs().max().item() if known.any() else 0.0
    per_sample = taken / len(yhat)
    lines = [
        f"Projected {len(yhat)} predictions by the exact engine: {', '.join(told)}; "
        f"{1e6 * per_sample:.1f} us a sample.",
        f"{int(good.sum())} of {int(free.sum())} projections satisfy every rule; mean distance of "
        f"those that moved {moved.mean().item() if len(moved) else 0.0:.3f}.",
        f"MILP by HiGHS on {few} of them: {1e3 * slow:.1f} ms a sample "
        f"({slow / per_sample:.0f} times longer), largest difference of distances {worst:.0e}.",
    ]
    return "\n".join(lines)
