"""What may be chosen for each rule: the options of every clause, as the listing reads them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from gdpnet.core import Array
from gdpnet.ir.data import Clause, RuleData
from gdpnet.ir.semantics import options as choices_of
from gdpnet.solve.exact.arrays import Component


class Choices(NamedTuple):
    """What may be chosen for each clause of a component, compressed.

    Attributes:
        clause_start: options of each clause, (clauses + 1,).
        option_start: literals of each option, (options + 1,).
        literal: all of an option hold together.
        proposition: clauses that only admit or refuse a choice, (clauses,) bool.
    """

    clause_start: Array
    option_start: Array
    literal: Array
    proposition: Array


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
    options = []
    for some in choices_of(data, clause):
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


def _starts(lists: Iterable[list[Any]]) -> Array:
    return np.cumsum([0, *map(len, lists)]).astype(np.int64)
