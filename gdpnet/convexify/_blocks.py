"""What a relaxation consists of: parts over their own variables, and in each part its blocks.

A block is a cluster of active rules, merged by basic steps into one disjunction. A relaxation is
the intersection of the hulls of its blocks. Blocks that share no variable, directly or through
global rows, are convexified apart: copies of the variables of one in the other would bring
fractional vertices back on ties.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from gdpnet.convexify._products import Product, products
from gdpnet.rules.model import RuleModel


@dataclass(frozen=True)
class Block:
    """A cluster of merged active rules as one disjunction.

    Attributes:
        rules: indices of the rules.
        products: its terms; their rows are without the global ones. None where the rules
            contradict each other.
    """

    rules: tuple[int, ...]
    products: tuple[Product, ...]


@dataclass(frozen=True)
class Part:
    """Blocks that hang together, over their own variables only.

    Attributes:
        columns: indices of `RuleData.columns`, outputs first, then auxiliaries. A bound that is
            infinite is no bound; a global row of the part stands for it.
        rows: global rows, part of every product.
        blocks: at least one; without active rules one block with one product without rows.
    """

    columns: tuple[int, ...]
    rows: tuple[int, ...]
    blocks: tuple[Block, ...]


Layout = tuple[Part, ...]
"""Parts of a relaxation. An output in no part stands in no row: it stays at the prediction, clipped
to its bounds."""


def layout(rules: RuleModel, clusters: Sequence[Sequence[int]], active: Sequence[bool]) -> Layout:
    """The relaxation of a pattern of active rules.

    Args:
        rules: the rules.
        clusters: active rules, cluster by cluster.
        active: which clauses apply.
    """
    data = rules.data
    blocks = [Block(tuple(c), tuple(products(data, c, active))) for c in clusters]
    n = len(data.columns)
    pairs = [
        (n + b, column)
        for b, block in enumerate(blocks)
        for product in block.products
        for row in product.rows
        for column, _ in data.rows[row].terms
    ]
    first = {i: data.rows[i].terms[0][0] for i in data.global_rows if data.rows[i].terms}
    pairs += [(first[i], column) for i in first for column, _ in data.rows[i].terms]
    size = n + len(blocks)
    one, other = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(one)), (one, other)), shape=(size, size))
    count, label = connected_components(graph, directed=False)
    named = {column for pair in pairs for column in pair}
    found = []
    for k in range(count):
        members = np.flatnonzero(label == k).tolist()
        columns = tuple(j for j in members if j < n and j in named)
        own = tuple(blocks[j - n] for j in members if j >= n)
        rows = tuple(i for i, column in first.items() if label[column] == k)
        if rows or own:
            none = Block((), (Product(frozenset(), ()),))
            found.append(Part(columns, rows, own or (none,)))
    return tuple(found)
