"""Which parts of a model hang together through their variables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyomo.common.collections import ComponentSet
from pyomo.core.expr.visitor import identify_variables
from pyomo.gdp.disjunct import DisjunctData

from gdpnet.ir.semantics import DisjointSets
from gdpnet.relaxation.pyomo import walk


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


def joined(disjunctions: Iterable[Any], constraints: Iterable[Any]) -> DisjointSets:
    """Groups of variables (by id) and Disjunctions (by id) that no constraint lets apart.

    Args:
        disjunctions: rules; the Vars of all disjuncts of one belong together.
        constraints: rows that hold always.
    """
    groups = DisjointSets()
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
