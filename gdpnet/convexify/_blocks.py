"""How the rules of a sample are convexified: blocks of merged rules, in parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gdpnet.convexify._products import Product, products
from gdpnet.rules._data import RuleData


@dataclass(frozen=True)
class Block:
    """A cluster of merged active rules as one disjunction.

    Attributes:
        rules: the rules.
        products: terms of the disjunction; rows without the global ones.
    """

    rules: tuple[int, ...]
    products: tuple[Product, ...]


@dataclass(frozen=True)
class Part:
    """Blocks that hang together, over their own variables only.

    Attributes:
        columns: indices of `RuleData.columns`, outputs first, then auxiliaries.
        rows: global rows, part of every product.
        blocks: at least one; without active rules one block with one product without rows.
    """

    columns: tuple[int, ...]
    rows: tuple[int, ...]
    blocks: tuple[Block, ...]


Layout = tuple[Part, ...]


def layout(data: RuleData, clusters: Sequence[Sequence[int]], active: Sequence[bool]) -> Layout:
    """One part over all columns.

    Args:
        data: the rules.
        clusters: active rules, cluster by cluster.
        active: which clauses apply.
    """
    blocks = tuple(Block(tuple(c), tuple(products(data, c, active))) for c in clusters)
    if not blocks:
        blocks = (Block((), (Product(frozenset(), ()),)),)
    return (Part(tuple(range(len(data.columns))), tuple(data.global_rows), blocks),)
