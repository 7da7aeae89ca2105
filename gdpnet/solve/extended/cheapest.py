"""Of the disjuncts that hold at a point those that cost least."""

from __future__ import annotations

import numpy as np

from gdpnet.ir.rules import Rules

Array = np.ndarray


def cheapest(rules: Rules, active: Array, holds: Array, price: Array) -> Array:
    """For each rule that applies the cheapest of its literals that hold, the first of several.

    A disjunct costs what it costs itself and the cheapest choices of what is nested in it. Each
    rule is looked at by itself: truth values that logic ties together are left to the caller.

    Args:
        rules: the rules.
        active: which clauses apply, (B, clauses) bool.
        holds: which booleans hold, what is nested in them included, (B, booleans) bool.
        price: of the booleans that have one, (B, priced).

    Returns:
        1 for booleans that are chosen, else 0, (B, booleans) int8. Of a rule of which nothing holds
        none is.
    """
    data = rules.data
    cost = np.zeros(holds.shape)
    cost[:, list(data.priced)] = price
    cost[~holds] = np.inf
    clauses = [(k, clause.guard) for k, clause in enumerate(data.clauses) if not clause.logic]
    literals = {k: np.array(data.clauses[k].literals) - 1 for k, _ in clauses}
    # Nested ones stand behind the clause that holds their guard.
    for k, guard in reversed(clauses):
        if guard >= 0:
            cost[:, guard] += np.where(active[:, k], cost[:, literals[k]].min(1), 0.0)
    chosen = np.zeros(holds.shape, dtype=np.int8)
    for k, guard in clauses:
        required = active[:, k] if guard < 0 else active[:, k] & (chosen[:, guard] == 1)
        own = cost[:, literals[k]]
        there = np.flatnonzero(required & np.isfinite(own).any(1))
        chosen[there, literals[k][own[there].argmin(1)]] = 1
    return chosen
