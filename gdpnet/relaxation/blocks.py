"""What a relaxation consists of: parts over their own variables, and in each part its blocks.

A block is a cluster of active rules, merged by basic steps into one disjunction. A relaxation is
the intersection of the hulls of its blocks. Blocks that share no variable, directly or through
global rows, are convexified apart: copies of the variables of one in the other would bring
fractional vertices back on ties.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gdpnet.errors import RuleError
from gdpnet.ir.data import Role, RuleData
from gdpnet.ir.logic import find_assignment
from gdpnet.ir.semantics import DisjointSets, enforced
from gdpnet.relaxation.feasibility import FeasibilityCheck
from gdpnet.relaxation.products import Product, products, propositions
from gdpnet.relaxation.relaxable import NO_LOGIC, LogicRows


@dataclass(frozen=True)
class MergedBlock:
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

    Every block has copies of all columns, and their sums, outputs and auxiliaries alike, are the
    same in all blocks.

    Attributes:
        columns: indices of `RuleData.columns`, outputs first, then auxiliaries. A bound that is
            infinite is no bound; a global row of the part stands for it.
        rows: global rows, part of every product.
        blocks: at least one; without active rules one block with one product without rows.
    """

    columns: tuple[int, ...]
    rows: tuple[int, ...]
    blocks: tuple[MergedBlock, ...]

    @property
    def convex(self) -> bool:
        """Whether no rule stands in it."""
        return not any(block.rules for block in self.blocks)


Layout = tuple[Part, ...]
"""Parts of a relaxation. An output in no part stands in no row: it stays at the prediction, clipped
to its bounds."""

ALWAYS = MergedBlock((), (Product(frozenset(), ()),))
"""What a part without active rules has as its block."""


def payers(data: RuleData, layout: Layout) -> np.ndarray:
    """Which booleans with a price each product chooses, `priced x products` of 0 and 1.

    A product costs the sum of its members, and what is nested only where its parent is chosen.
    """
    chosen = [k.literals for part in layout for block in part.blocks for k in block.products]
    return np.array(
        [[float(boolean + 1 in literals) for literals in chosen] for boolean in data.priced]
    ).reshape(len(data.priced), len(chosen))


def contradictory(layout: Layout) -> bool:
    """Whether a block has no product left, so that no point satisfies the rules."""
    return any(not block.products for part in layout for block in part.blocks)


def layout(
    data: RuleData,
    clusters: Sequence[Sequence[int]],
    active: Sequence[bool],
    logic: LogicRows = NO_LOGIC,
    feasibility: FeasibilityCheck | None = None,
) -> Layout:
    """The relaxation of a pattern of active rules.

    Args:
        data: the rules, as `relaxable` gives them.
        clusters: active rules, cluster by cluster.
        active: which clauses apply.
        logic: columns and rows of the logic; without it logic that ties several clusters is left
            out.
        feasibility: leave products out that it finds empty; keep all where it is None.
    """
    if not _possible(data, active):
        return (Part((0,), (), (MergedBlock((), ()),)),)
    spoken = _across(data, logic, clusters, active)
    needed = {logic.truth[k] for c in spoken for k in _booleans(data, c)}
    blocks = []
    for cluster in clusters:
        found = products(data, cluster, active, logic.same, feasibility)
        blocks.append(MergedBlock(tuple(cluster), tuple(_decided(p, logic, needed) for p in found)))
    always = [*data.global_rows, *(logic.spoken[c] for c in spoken)]
    parts = _parts(data, blocks, always)
    for part in parts:
        if not part.convex:
            refuse_unbounded(data, part)
    return parts


def hanging_together(
    data: RuleData, chosen: Iterable[int], active: Sequence[bool], logic: LogicRows = NO_LOGIC
) -> list[list[int]]:
    """Rules in groups that share no variable and no logic: the clusters of the DNF.

    Args:
        data: the rules, as `relaxable` gives them.
        chosen: active rules.
        active: which clauses apply.
        logic: columns and rows of the logic.
    """
    n, chosen = len(data.columns), list(chosen)
    pairs = list(_tied_columns(data, data.global_rows))
    for place, r in enumerate(chosen):
        pairs += [(n + place, j) for j in _columns(data, _rows_of(data, r, active))]
    first = n + len(chosen)
    pairs += [(first + a, first + b) for a, b in _tied_booleans(data, logic, chosen, active)]
    for place, r in enumerate(chosen):
        pairs += [(n + place, first + k) for k in _indicators(data, r)]
    label = _labels(pairs, first + len(data.booleans))
    groups: dict[Hashable, list[int]] = {}
    for place, r in enumerate(chosen):
        groups.setdefault(label[n + place], []).append(r)
    return list(groups.values())


# ---- what hangs together --------------------------------------------------------------------


def _parts(data: RuleData, blocks: list[MergedBlock], always: list[int]) -> Layout:
    n = len(data.columns)
    pairs = list(_tied_columns(data, always))
    for b, block in enumerate(blocks):
        own = _columns(data, {row for product in block.products for row in product.rows})
        # What names no variable at all goes with the first one.
        pairs += [(n + b, j) for j in own or {0}]
    label = _labels(pairs, n + len(blocks))
    named = {j for pair in pairs for j in pair}
    home = {i: label[_first(data, i)] for i in always}
    found = []
    for k in dict.fromkeys(label[j] for j in sorted(named)):
        columns = tuple(j for j in range(n) if label[j] == k and j in named)
        own_blocks = tuple(block for b, block in enumerate(blocks) if label[n + b] == k)
        rows = tuple(i for i in always if home[i] == k)
        found.append(Part(columns, rows, own_blocks or (ALWAYS,)))
    return tuple(found)


def _labels(pairs: Iterable[tuple[int, int]], size: int) -> list[Hashable]:
    """Connected component of each of so many things."""
    sets = DisjointSets()
    for pair in pairs:
        sets.join(pair)
    return [sets.find(k) for k in range(size)]


def _first(data: RuleData, row: int) -> int:
    columns = data.columns_in(row)
    return columns[0] if columns else 0


def _tied_columns(data: RuleData, rows: Iterable[int]) -> Iterator[tuple[int, int]]:
    for i in rows:
        first = _first(data, i)
        yield first, first
        yield from ((first, j) for j in data.columns_in(i))


def _columns(data: RuleData, rows: Iterable[int]) -> set[int]:
    return {j for i in rows for j in data.columns_in(i)}


def _rows_of(data: RuleData, rule: int, active: Sequence[bool]) -> set[int]:
    """Rows of a rule's disjuncts, and of what is nested in them and applies."""
    below = [data.clauses[k] for k in data.subtree(data.rules[rule].clause) if active[k]]
    return set(enforced(data.booleans, [n for clause in below for n in clause.literals]))


# ---- logic ----------------------------------------------------------------------------------


def _booleans(data: RuleData, clause: int) -> list[int]:
    """Booleans that a clause names, its guard included."""
    found = data.clauses[clause]
    return [abs(n) - 1 for n in found.literals] + ([found.guard] if found.guard >= 0 else [])


def _indicators(data: RuleData, rule: int) -> list[int]:
    below = data.subtree(data.rules[rule].clause)
    return [abs(n) - 1 for k in below for n in data.clauses[k].literals]


def _possible(data: RuleData, active: Sequence[bool]) -> bool:
    """Whether truth values satisfy the propositions at all."""
    if not any(c.logic for c in data.clauses):
        return True
    return find_assignment(propositions(data, active), {}) is not None


def _tied_booleans(
    data: RuleData, logic: LogicRows, rules: Iterable[int], active: Sequence[bool]
) -> Iterator[tuple[int, int]]:
    """Booleans that stand in one proposition, or in one rule that a proposition names."""
    for c in logic.spoken:
        if active[c]:
            booleans = _booleans(data, c)
            yield from ((booleans[0], k) for k in booleans)
    for k, nested in logic.same.items():
        yield k, nested - 1
    for r in rules:
        for c in data.subtree(data.rules[r].clause):
            booleans = _booleans(data, c)
            if any(data.booleans[k].tied for k in booleans):
                yield from ((booleans[0], k) for k in booleans)


def _across(
    data: RuleData, logic: LogicRows, clusters: Sequence[Sequence[int]], active: Sequence[bool]
) -> list[int]:
    """Clauses of propositions that tie several clusters, so that products cannot settle them."""
    if not any(active[c] for c in logic.spoken):
        return []
    rules = [r for cluster in clusters for r in cluster]
    label = _labels(_tied_booleans(data, logic, rules, active), len(data.booleans))
    touched: dict[Hashable, set[int]] = {}
    for place, cluster in enumerate(clusters):
        for r in cluster:
            for k in _indicators(data, r):
                touched.setdefault(label[k], set()).add(place)
    sources = {
        data.clauses[c].source
        for c in logic.spoken
        if active[c] and len(touched.get(label[_booleans(data, c)[0]], ())) > 1
    }
    return [c for c in logic.spoken if active[c] and data.clauses[c].source in sources]


def _decided(product: Product, logic: LogicRows, needed: set[int]) -> Product:
    """A product with the rows that give truth values their value, where one is needed."""
    rows = [
        logic.decides[n] for n in sorted(product.literals) if logic.truth.get(abs(n) - 1) in needed
    ]
    return Product(product.literals, tuple(dict.fromkeys((*product.rows, *rows))))


# ---- bounds ---------------------------------------------------------------------------------


def box(data: RuleData, bound: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the outputs for a batch, each `batch x d`.

    Args:
        data: the rules.
        bound: right sides of their rows, `batch x rows`.
    """
    outputs = data.columns[: data.outputs]
    lower = np.tile([c.lower for c in outputs], (len(bound), 1))
    upper = np.tile([c.upper for c in outputs], (len(bound), 1))
    for i in moving_bounds(data):
        ((j, a),) = data.rows[i].terms
        side = upper if data.rows[i].role is Role.UPPER else lower
        side[:, j] = bound[:, i] / a.number
    return lower, upper


def moving_bounds(data: RuleData) -> list[int]:
    """Global rows that are bounds of an output."""
    rows = [i for i in data.global_rows if data.rows[i].is_bound]
    return [i for i in rows if data.rows[i].terms[0][0] < data.outputs]


LARGEST = 1e9
"""Bounds beyond this are too large for a hull in double precision."""


def refuse_unbounded(data: RuleData, part: Part) -> None:
    """The hull needs finite bounds: name all variables that lack one, or have none that counts."""
    sides = {j: [data.columns[j].lower, data.columns[j].upper] for j in part.columns}
    for i in part.rows:  # bounds that depend on inputs
        if len(data.rows[i].terms) == 1 and not data.rows[i].curves:
            ((j, a),) = data.rows[i].terms
            if a.is_number and a.number:
                for side in (0, 1) if data.rows[i].equality else (int(a.number > 0),):
                    sides[j][side] = 0.0
    open_ended = [
        data.columns[j].name for j, ends in sides.items() if not all(map(math.isfinite, ends))
    ]
    if open_ended:
        raise RuleError(
            f"The hull needs finite bounds, but {', '.join(open_ended[:8])} "
            f"{'has' if len(open_ended) == 1 else 'have'} none. Give "
            f"{'it' if len(open_ended) == 1 else 'them'} bounds in the Pyomo model, or use "
            "relaxation='dnf' with solver='exact', which needs none."
        )
    wide = [data.columns[j].name for j, ends in sides.items() if max(map(abs, ends)) > LARGEST]
    if wide:
        raise RuleError(
            f"The hull multiplies bounds with weights from 0 to 1: beyond {LARGEST:.0e}, as for "
            f"{', '.join(wide[:8])}, rules are lost in rounding. Give bounds that can be reached, "
            "or use relaxation='dnf' with solver='exact', which needs none."
        )
