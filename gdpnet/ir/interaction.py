"""Which rules meet: in a variable, through global rows, or in logic."""

from __future__ import annotations

from typing import Any

import numpy as np

from gdpnet.ir.data import RuleData


def columns_of(data: RuleData, rule: int) -> set[int]:
    """Variables in the rows of a rule, nested ones included."""
    return {
        column
        for row in data.rows_below(data.rules[rule].clause)
        for column, _ in data.rows[row].terms
    }


def neighbours(data: RuleData) -> np.ndarray:
    """Which rules meet in a variable, through global rows or in logic, bool `rules x rules`.

    Rules that meet only through a third rule are not related; the connected components of the graph
    hold them together.
    """
    import networkx as nx  # late: few projections need it, and its import takes a while

    columns = [columns_of(data, r) for r in range(len(data.rules))]
    links: nx.Graph[Any] = nx.Graph()
    links.add_nodes_from(("column", j) for j in range(len(data.columns)))
    for i in data.global_rows:
        nx.add_path(links, [("column", j) for j, _ in data.rows[i].terms])
    for k, clause in enumerate(data.clauses):
        if clause.logic:
            named = [abs(literal) - 1 for literal in clause.literals]
            links.add_edges_from((("clause", k), ("boolean", b)) for b in named)
            rows = [i for b in named for i in data.booleans[b].false_rows]
            links.add_edges_from((("clause", k), ("column", j)) for i in rows for j in _of(data, i))
    part = {node: p for p, nodes in enumerate(nx.connected_components(links)) for node in nodes}
    touched = [
        {part["column", j] for j in own} | {part[b] for b in _named(data, r) if b in part}
        for r, own in enumerate(columns)
    ]
    return np.array([[bool(a & b) for b in touched] for a in touched], dtype=bool).reshape(
        len(columns), len(columns)
    )


def _of(data: RuleData, row: int) -> list[int]:
    return [column for column, _ in data.rows[row].terms]


def _named(data: RuleData, rule: int) -> list[tuple[str, int]]:
    """Booleans of a rule's disjuncts, nested ones included."""
    return [
        ("boolean", literal - 1)
        for k in data.subtree(data.rules[rule].clause)
        for literal in data.clauses[k].literals
    ]
