"""Which rules meet: in a variable, through global rows, or in logic."""

from __future__ import annotations

import numpy as np

from gdpnet.ir.data import RuleData
from gdpnet.ir.semantics import DisjointSets


def columns_of(data: RuleData, rule: int) -> set[int]:
    """Variables in the rows of a rule, nested ones included."""
    return {
        column
        for row in data.rows_below(data.rules[rule].clause)
        for column in data.columns_in(row)
    }


def neighbours(data: RuleData) -> np.ndarray:
    """Which rules meet in a variable, through global rows or in logic, bool `rules x rules`.

    Rules that meet only through a third rule are not related; the connected components of the graph
    hold them together.
    """
    columns = [columns_of(data, r) for r in range(len(data.rules))]
    sets = DisjointSets()
    for i in data.global_rows:
        sets.join(_of(data, i))
    for clause in data.clauses:
        if clause.logic:
            named = [abs(literal) - 1 for literal in clause.literals]
            rows = [i for b in named for i in data.booleans[b].false_rows]
            sets.join([*(("boolean", b) for b in named), *(c for i in rows for c in _of(data, i))])
    touched = [
        {sets.find(item) for item in (*(("column", j) for j in own), *_named(data, r))}
        for r, own in enumerate(columns)
    ]
    return np.array([[bool(a & b) for b in touched] for a in touched], dtype=bool).reshape(
        len(columns), len(columns)
    )


def _of(data: RuleData, row: int) -> list[tuple[str, int]]:
    return [("column", column) for column in data.columns_in(row)]


def _named(data: RuleData, rule: int) -> list[tuple[str, int]]:
    """Booleans of a rule's disjuncts, nested ones included."""
    return [
        ("boolean", literal - 1)
        for k in data.subtree(data.rules[rule].clause)
        for literal in data.clauses[k].literals
    ]
