"""The planner's order: one basic step after the other, each where it tightens most."""

from __future__ import annotations

from itertools import combinations

import torch

from gdpnet.model import RuleModel
from gdpnet.plan.graph import draw_samples
from gdpnet.projection import project
from gdpnet.relaxation.plan import Plan


def planned_order(rules: RuleModel, x: torch.Tensor) -> list[Plan]:
    """Plans with 0, 1, 2, ... basic steps, the last with all rules merged.

    Each merges those two clusters of the one before whose merging raises the relaxation's mean
    value most, at the given inputs and predictions drawn uniformly over the outputs' bounds; the
    first pair in declaration order where several raise it alike.

    Args:
        rules: the rules.
        x: inputs to measure at, `batch x p`.

    Returns:
        As many plans as there are rules, at least one.
    """
    yhat = torch.as_tensor(draw_samples(rules, None, x)[1])
    clusters: list[tuple[str, ...]] = [(name,) for name in rules.names]
    order = [Plan.cnf()]
    while len(clusters) > 1:
        candidates = [_merged(clusters, *pair) for pair in combinations(range(len(clusters)), 2)]
        plans = [Plan(tuple(c for c in merged if len(c) > 1)) for merged in candidates]
        values = [float(project(rules, yhat, x, relaxation=plan).value.mean()) for plan in plans]
        best = max(range(len(plans)), key=lambda k: round(values[k], 9))
        clusters = candidates[best]
        order.append(plans[best])
    return order


def _merged(clusters: list[tuple[str, ...]], one: int, other: int) -> list[tuple[str, ...]]:
    rest = [c for k, c in enumerate(clusters) if k not in (one, other)]
    return [*rest, clusters[one] + clusters[other]]
