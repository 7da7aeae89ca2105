"""Which parts of a model hang together through their variables."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from pyomo.common.collections import ComponentSet
from pyomo.core.expr.visitor import identify_variables
from pyomo.gdp.disjunct import DisjunctData

from gdpnet.relaxation.pyomo import walk


class Groups:
    """Disjoint groups of things that were joined."""

    def __init__(self) -> None:
        self._parent: dict[Hashable, Hashable] = {}

    def find(self, item: Hashable) -> Hashable:
        """The representative of the group of an item."""
        path = []
        while (parent := self._parent.setdefault(item, item)) != item:
            path.append(item)
            item = parent
        for passed in path:
            self._parent[passed] = item
        return item

    def join(self, items: Iterable[Hashable]) -> None:
        """Put items into one group."""
        first: Hashable = None
        for item in items:
            if first is None:
                first = self.find(item)
            else:
                self._parent[self.find(item)] = first


def variables_of(constraint: Any) -> list[Any]:
    """Vars of a constraint that are not fixed."""
    return list(identify_variables(constraint.expr, include_fixed=False))


def variables_below(disjunction: Any) -> ComponentSet:
    """Vars in the rows of a Disjunction, nested ones included."""
    found = ComponentSet()
    for inner in walk.tree([disjunction]):
        for disjunct in inner.disjuncts:
            for constraint in walk.constraints(disjunct) if disjunct.active else ():
                found.update(variables_of(constraint))
    return found


def is_active_indicator(variable: Any) -> bool:
    """Whether a Var is the binary of a Disjunct that can still be chosen."""
    block = variable.parent_block()
    return (
        isinstance(block, DisjunctData) and block.active and block.binary_indicator_var is variable
    )


def joined(disjunctions: Iterable[Any], constraints: Iterable[Any]) -> Groups:
    """Groups of variables (by id) and Disjunctions (by id) that no constraint lets apart.

    Args:
        disjunctions: rules; the Vars of all disjuncts of one belong together.
        constraints: rows that hold always.
    """
    groups = Groups()
    for disjunction in disjunctions:
        below = [id(variable) for variable in variables_below(disjunction)]
        binaries = [
            id(disjunct.binary_indicator_var)
            for inner in walk.tree([disjunction])
            for disjunct in inner.disjuncts
        ]
        groups.join([id(disjunction), *below, *binaries])
    for constraint in constraints:
        groups.join([id(variable) for variable in variables_of(constraint)])
    return groups
