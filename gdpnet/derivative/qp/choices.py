"""What may be chosen for each rule: the options of every clause, as the listing reads them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import numpy as np

from gdpnet.ir.data import Clause, RuleData
from gdpnet.kernels import Array, Choices
from gdpnet.solve.exact.arrays import Component


def choices(data: RuleData, component: Component) -> Choices:
    """The options of every clause, in the order of the component's logic."""
    place = {int(b): k for k, b in enumerate(component.booleans)}

    def own(literal: int) -> int:
        return (1 if literal > 0 else -1) * (place[abs(literal) - 1] + 1)

    options: list[list[list[int]]] = []
    for c in component.clauses:
        clause = data.clauses[c]
        found = [[k] for k in clause.literals] if clause.logic else _options(data, clause)
        options.append([[own(k) for k in option] for option in found])
    options += [[[k + 1], [-k - 1]] for k, _ in component.decided]
    proposition = [data.clauses[c].logic for c in component.clauses]
    flat = [option for some in options for option in some]
    return Choices(
        clause_start=_starts(options),
        option_start=_starts(flat),
        literal=np.array([k for option in flat for k in option], dtype=np.int64),
        proposition=np.array(proposition + [True] * len(component.decided), dtype=np.bool_),
    )


def _options(data: RuleData, clause: Clause) -> list[list[int]]:
    """Options of a Disjunction; booleans whose truth matters are false where not chosen."""
    literals = clause.literals
    chosen: list[tuple[int, ...]] = [(k,) for k in literals]
    tied = [k for k in literals if data.booleans[k - 1].tied]
    if not _exclusive(data, clause):
        chosen += [some for size in range(2, len(tied) + 1) for some in combinations(tied, size)]
    options = []
    for some in chosen:
        others = [k for k in literals if k not in some]
        below = [
            k
            for other in others
            for nested in data.guarded.get(other - 1, ())
            for c in data.subtree(nested)
            for k in data.clauses[c].literals
        ]
        false = [-k for k in (*others, *below) if data.booleans[k - 1].tied]
        options.append([*some, *false])
    return options


def _exclusive(data: RuleData, clause: Clause) -> bool:
    """Whether logic that applies wherever the clause does forbids every pair of its literals."""
    pairs = {
        frozenset(c.literals)
        for c in data.clauses
        if c.logic
        and len(c.literals) == 2
        and c.guard in (-1, clause.guard)
        and set(c.conditions) <= set(clause.conditions)
    }
    return all(frozenset((-a, -b)) in pairs for a, b in combinations(clause.literals, 2))


def _starts(lists: Iterable[list[Any]]) -> Array:
    return np.cumsum([0, *map(len, lists)]).astype(np.int64)
