"""Layouts as the core reads them: flat arrays, compiled once a layout and kept."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gdpnet.core import Array
from gdpnet.ir.data import RuleData
from gdpnet.ir.steps import power_of_two
from gdpnet.relaxation.blocks import Layout, Part


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


def sources(data: RuleData) -> Sources:
    """The rows of a rule model."""
    start, column, value, varying = [0], [], [], []
    count = 0
    for row in data.rows:
        for j, a in row.terms:
            column.append(j)
            value.append(a.number)
        start.append(len(column))
        moving = any(not a.is_number for _, a in row.terms)
        varying.append(count if moving else -1)
        count += moving
    raw = np.array(value, dtype=np.float64)
    place = np.array(varying, dtype=np.int64)
    largest = np.array([np.abs(raw[a:b]).max(initial=0.0) for a, b in pairwise(start)])
    scale = np.where(place >= 0, 1.0, power_of_two(largest))
    return Sources(
        outputs=data.outputs,
        lower=np.array([c.lower for c in data.columns], dtype=np.float64),
        upper=np.array([c.upper for c in data.columns], dtype=np.float64),
        start=np.array(start, dtype=np.int64),
        column=np.array(column, dtype=np.int64),
        coefficient=raw * np.repeat(scale, np.diff(start)),
        scale=scale.reshape(-1),
        equality=np.array([row.equality for row in data.rows], dtype=np.bool_),
        varying=place,
    )


def extent(data: RuleData, layout: Layout) -> Extent:
    """What the samples of a layout need."""
    most = Extent(0, 0, 0, 0, 0, 0, len(layout), sum(len(part.blocks) for part in layout))
    for part in layout:
        n, own = len(part.columns), _rows(part)
        base = n + sum(j < data.outputs for j in part.columns)
        terms = max((len(data.rows[i].terms) for i in own), default=0)
        # With one block the program has its nearest product only.
        counts = [1 if len(part.blocks) == 1 else max(1, len(b.products)) for b in part.blocks]
        columns = base + sum(k - 1 for k in counts) * (base + 1)
        longest = max((len(k.rows) for b in part.blocks for k in b.products), default=0)
        rows = len(part.rows) + longest + 2 * n + base + 1  # of a reference product
        # The reference product's rows name all products of its block.
        entries = sum(2 * rows * (2 * terms + 3) * k for k in counts)
        most = Extent(
            columns=max(most.columns, columns),
            rows=max(most.rows, rows * sum(counts), len(own)),
            entries=max(most.entries, entries, terms * len(own)),
            blocks=max(most.blocks, len(part.blocks)),
            products=most.products + sum(len(b.products) for b in part.blocks),
            basis=most.basis + columns,
            parts=most.parts,
            all_blocks=most.all_blocks,
        )
    return most


def largest(extents: Iterable[Extent]) -> Extent:
    """What suffices for all."""
    return Extent(*(max(values) for values in zip(Extent(*[0] * 8), *extents, strict=True)))


class TableWriter:
    """Layouts while more of them may come."""

    def __init__(self) -> None:
        self._spans: dict[str, list[int]] = {
            name: [0]
            for name in (
                *("layout_part", "part_column", "part_row"),
                *("part_block", "block_product", "product_row"),
            )
        }
        self._values: dict[str, list[int]] = {
            name: [] for name in ("part_global", "column", "row", "member")
        }

    def add(self, layout: Layout) -> None:
        """Write a layout behind the others."""
        for part in layout:
            self._add_part(part)
        self._end("layout_part", len(layout))

    def _add_part(self, part: Part) -> None:
        values, rows, own = self._values, _rows(part), set(part.rows)
        place = {i: k for k, i in enumerate(rows)}
        values["column"] += part.columns
        values["row"] += rows
        values["part_global"].append(len(own))
        self._end("part_column", len(part.columns))
        self._end("part_row", len(rows))
        self._end("part_block", len(part.blocks))
        for block in part.blocks:
            self._end("block_product", len(block.products))
            for product in block.products:
                members = [place[i] for i in dict.fromkeys(product.rows) if i not in own]
                values["member"] += members
                self._end("product_row", len(members))

    def _end(self, name: str, length: int) -> None:
        spans = self._spans[name]
        spans.append(spans[-1] + length)

    def tables(self) -> Tables:
        """All layouts so far as flat arrays."""
        lists = self._spans | self._values
        return Tables(**{name: np.array(lists[name], dtype=np.int64) for name in Tables._fields})


def _rows(part: Part) -> list[int]:
    """All rows of a part, the global ones first."""
    own = [i for block in part.blocks for product in block.products for i in product.rows]
    return list(dict.fromkeys([*part.rows, *own]))
