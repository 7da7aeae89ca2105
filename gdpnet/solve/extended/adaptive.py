"""Adaptive basic steps: rules are merged where a relaxation's point breaks them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gdpnet.ir.interaction import neighbours
from gdpnet.ir.rules import Rules
from gdpnet.relaxation.layouts import Clusters
from gdpnet.relaxation.products import count_products
from gdpnet.solve.base import Array
from gdpnet.solve.status import Status

if TYPE_CHECKING:
    from gdpnet.solve.extended.backend import RelaxedBatch

# Products that are written down for a cluster.
_MOST_PRODUCTS = 512

# Instead of the number of a layout: too many products, or nothing left to merge.
_NO_FURTHER = -1


def take_basic_steps(batch: RelaxedBatch) -> None:
    """Merge broken rules with rules they interact with, round by round, until all rules hold.

    A point of a relaxation that satisfies all rules is the nearest one: its distance is at most the
    relaxation's value, which is at most the distance of any point that satisfies them.
    """
    status, layouts = batch.answer.status, batch.layouts
    related = neighbours(layouts.ready.rules.data)
    rounds = np.zeros(len(batch.x), dtype=np.int64)
    batch.answer = batch.answer.noting(rounds=rounds)
    todo = np.flatnonzero(status == Status.RELAXED)
    while len(todo):
        broken, fractional = batch.broken(todo), batch.fractional[todo]
        state = np.column_stack(
            [batch.number[todo], np.packbits(broken, axis=1), np.packbits(fractional, axis=1)]
        )
        _, first, which = np.unique(state, axis=0, return_index=True, return_inverse=True)
        after = np.empty(len(first), dtype=np.int64)
        for k, s in enumerate(first.tolist()):
            sample = int(todo[s])
            before = layouts.clusters[batch.number[sample]]
            merged = _enlarged(layouts.ready.rules, before, broken[s], fractional[s], related)
            if merged is None or merged == before:
                after[k] = _NO_FURTHER
            else:
                active, pruned = batch.instance.active[sample], bool(batch.pruned[sample])
                after[k] = layouts.number(merged, active, pruned)
        numbers = after[which.ravel()]
        todo, numbers = todo[numbers >= 0], numbers[numbers >= 0]
        batch.number[todo] = numbers
        rounds[todo] += 1
        batch.solve(todo)
        todo = todo[status[todo] == Status.RELAXED]


def _enlarged(
    rules: Rules, clusters: Clusters, broken: Array, fractional: Array, related: Array
) -> Clusters | None:
    """Every broken rule's cluster joined with one that it interacts with; None beyond the limit.

    Clusters whose weights are fractional come first, then the smallest.
    """
    current = [set(cluster) for cluster in clusters]
    # Where no single rule is broken, propositions, auxiliaries or whole numbers are.
    for rule in (np.flatnonzero(broken) if broken.any() else np.flatnonzero(fractional)).tolist():
        own = next(c for c in current if rule in c)
        others = [c for c in current if c is not own and related[np.ix_(list(own), list(c))].any()]
        if not others:
            continue
        other = min(
            others,
            key=lambda c: (
                not fractional[list(c)].any(),
                count_products(rules.data, sorted(c)),
                min(c),
            ),
        )
        own |= other
        current.remove(other)
    found = tuple(sorted(tuple(sorted(c)) for c in current))
    if any(count_products(rules.data, c) > _MOST_PRODUCTS for c in found):
        return None
    return found
