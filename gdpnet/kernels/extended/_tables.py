"""Rows and layouts as the kernels read them: flat arrays."""

from __future__ import annotations

from typing import NamedTuple

from gdpnet.kernels._jit import Array


class Sources(NamedTuple):
    """The rows of the rules; those that do not depend on x are scaled by powers of two.

    Attributes:
        outputs: d.
        lower: (n,).
        upper: (n,).
        start: entries of each row, (m + 1,).
        column: (entries,).
        coefficient: (entries,), scaled.
        scale: (m,), 1 for rows that depend on x.
        equality: (m,) bool.
        varying: place among the rows whose coefficients depend on x, or -1, (m,).
    """

    outputs: int
    lower: Array
    upper: Array
    start: Array
    column: Array
    coefficient: Array
    scale: Array
    equality: Array
    varying: Array


class Tables(NamedTuple):
    """Layouts, parts, blocks and products, each a span of the next; all int64.

    Attributes:
        layout_part: (layouts + 1,).
        part_column: (parts + 1,) into `column`.
        part_row: (parts + 1,) into `row`.
        part_global: how many of a part's rows are global: the first, (parts,).
        part_block: (parts + 1,).
        block_product: (blocks + 1,).
        product_row: (products + 1,) into `member`.
        column: columns of the rules.
        row: rows of the rules.
        member: rows of a product, as places among the rows of its part.
    """

    layout_part: Array
    part_column: Array
    part_row: Array
    part_global: Array
    part_block: Array
    block_product: Array
    product_row: Array
    column: Array
    row: Array
    member: Array


class Extent(NamedTuple):
    """The most that a sample needs.

    Attributes:
        columns: columns of a part's program.
        rows: rows of a part's program.
        entries: entries of a part's program.
        blocks: blocks of a part.
        products: products of a layout.
        basis: columns of the programs of a layout's parts in all.
        parts: parts of a layout.
        all_blocks: blocks of a layout.
    """

    columns: int
    rows: int
    entries: int
    blocks: int
    products: int
    basis: int
    parts: int
    all_blocks: int
