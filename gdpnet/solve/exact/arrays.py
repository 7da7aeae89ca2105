"""The rules as the core reads them: scaled sparse rows and clauses, one set a component.

Rules that share no column, directly or through global rows and logic, do not influence each other.
They are projected separately, each over its own columns: the search of one is not repeated for
every node of the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gdpnet import core
from gdpnet.core import Array
from gdpnet.ir.data import Row, RuleData, Shape
from gdpnet.ir.linear import Coefficient
from gdpnet.ir.steps import impossible, power_of_two

_SHAPES = (Shape.SQUARES, Shape.NORM, Shape.EXP, Shape.LOG, Shape.POWER)  # as the core counts them


class CurveArrays(NamedTuple):
    """Curves of a component's rows, as compressed lists.

    Attributes:
        row: the curved rows, (c,).
        start: curves of each of them, (c + 1,).
        shape: of each curve, its place in `Shape`.
        weight: of each curve.
        exponent: of each curve.
        first: arguments of each curve, (curves + 1,).
        argument: rows of the component.
    """

    row: Array
    start: Array
    shape: Array
    weight: Array
    exponent: Array
    first: Array
    argument: Array


class Prepared(NamedTuple):
    """What all samples of a component share; rows are scaled by powers of two.

    Attributes:
        outputs: number of outputs, the first columns.
        lower: (n,).
        upper: (n,).
        integer: (n,) bool.
        start: entries of each row, (m + 1,).
        column: (entries,).
        coefficient: (entries,), scaled; those of varying rows are filled in for each sample.
        largest: largest coefficient of each row before scaling, (m,).
        scale: (m,).
        equality: (m,) bool.
        varying: rows whose coefficients depend on x, (k,).
        global_rows: rows that always hold, (g,).
        plain: whether a prediction can be accepted by looking at rows alone.
        curves: of its curved rows; None where there are none.
    """

    outputs: int
    lower: Array
    upper: Array
    integer: Array
    start: Array
    column: Array
    coefficient: Array
    largest: Array
    scale: Array
    equality: Array
    varying: Array
    global_rows: Array
    plain: bool
    curves: CurveArrays | None


class Logic(NamedTuple):
    """Booleans and clauses, as compressed lists.

    Attributes:
        clause_start: literals of each clause, (clauses + 1,).
        clause_literal: k + 1 for boolean k, negative for "not k".
        clause_guard: the boolean in whose disjunct a clause stands, or -1, (clauses,).
        true_start: rows that a boolean's truth enforces, (booleans + 1,).
        true_row: those rows.
        false_start: rows that its falsehood enforces, (booleans + 1,).
        false_row: those rows.
        guarded_start: clauses guarded by a boolean, (booleans + 1,).
        guarded_clause: those clauses.
        tied: booleans that logic or sums speak of, (booleans,) bool.
        priced: booleans that cost something where they are chosen, (priced,).
        priced_entry: their places in `clause_literal`, in their rule, (priced,).
    """

    clause_start: Array
    clause_literal: Array
    clause_guard: Array
    true_start: Array
    true_row: Array
    false_start: Array
    false_row: Array
    guarded_start: Array
    guarded_clause: Array
    tied: Array
    priced: Array
    priced_entry: Array


@dataclass(frozen=True)
class Component:
    """A part of the rules that can be projected by itself.

    Attributes:
        columns: its columns of z, outputs first.
        rows: its rows.
        booleans: its booleans.
        clauses: its clauses.
        varying: its rows among the varying rows of all rules.
        priced: its booleans with a price among those of all rules.
        decided: its booleans that must be decided where a clause names them, as (boolean within
            the component, clauses within the component that name it).
        prepared: rows for the core.
        logic: clauses for the core; those of `decided` come last.
    """

    columns: Array
    rows: Array
    booleans: Array
    clauses: Array
    varying: Array
    priced: Array
    decided: tuple[tuple[int, Array], ...]
    prepared: Prepared
    logic: Logic

    @cached_property
    def nested(self) -> bool:
        """Whether a rule stands in a disjunct of another."""
        return bool((self.logic.clause_guard >= 0).any())

    @cached_property
    def accepting(self) -> bool:
        """Whether predictions that are good enough are accepted before any search."""
        return self.prepared.plain and not self.nested

    def ordinary(self, clauses: int) -> bool:
        """Whether its answers are those of the rules, and need nothing before or after the search.

        Args:
            clauses: of the rules.
        """
        alone = len(self.clauses) == clauses and not self.decided
        return alone and self.accepting and not self.discrete and self.prepared.curves is None

    @cached_property
    def discrete(self) -> bool:
        """Whether an output must be whole."""
        return bool(self.prepared.integer[: self.prepared.outputs].any())

    @cached_property
    def outputs(self) -> Array:
        """Its outputs."""
        return self.columns[: self.prepared.outputs]

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key != "native"}

    @cached_property
    def native(self) -> core.Component:
        """Its rows and clauses, as the core reads them."""
        return core.Component(core.Rows(*self.prepared), core.Logic(*self.logic))


def components(data: RuleData) -> list[Component]:
    """The components of a rule model that have rows; other outputs are only clipped."""
    part = _partition(data)
    counts = len(data.columns), len(data.rows), len(data.booleans), len(data.clauses)
    first = np.cumsum((0, *counts)).tolist()
    # Columns, rows, booleans and clauses of each part, in one pass over all of them.
    members: dict[int, tuple[list[int], ...]] = {}
    for kind, (start, end) in enumerate(pairwise(first)):
        for node in range(start, end):
            members.setdefault(part[node], ([], [], [], []))[kind].append(node - start)
    whole = _Whole(data)
    found = []
    for which in sorted(members):
        columns, rows, booleans, clauses = members[which]
        integer = any(data.columns[c].integer for c in columns)
        if columns and (rows or clauses or integer):
            found.append(_component(whole, *map(_indices, (columns, rows, booleans, clauses))))
    return found


class _Whole:
    """What components need of all the rules: the rules, rows that vary, rows that never hold."""

    def __init__(self, data: RuleData) -> None:
        self.data = data
        self.varying = [
            i for i, row in enumerate(data.rows) if any(not a.is_number for _, a in row.terms)
        ]
        self.never = impossible(data)


def _indices(numbers: list[int]) -> Array:
    return np.array(numbers, dtype=np.int64)


def _partition(data: RuleData) -> list[int]:
    """A representative for every column, row, boolean and clause (in this order)."""
    first_row = len(data.columns)
    first_boolean = first_row + len(data.rows)
    first_clause = first_boolean + len(data.booleans)
    parent = list(range(first_clause + len(data.clauses)))

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    def join(node: int, others: Iterable[int]) -> None:
        for other in others:
            a, b = root(node), root(other)
            parent[max(a, b)] = min(a, b)  # a column, where there is one, represents its part

    for i, row in enumerate(data.rows):
        join(first_row + i, (column for column, _ in row.terms))
        join(first_row + i, (first_row + k for curve in row.curves for k in curve.arguments))
    for k, boolean in enumerate(data.booleans):
        join(first_boolean + k, (first_row + i for i in boolean.true_rows + boolean.false_rows))
    for c, clause in enumerate(data.clauses):
        join(first_clause + c, (first_boolean + abs(k) - 1 for k in clause.literals))
        if clause.guard >= 0:
            join(first_clause + c, (first_boolean + clause.guard,))
    for node in range(first_row, len(parent)):
        if root(node) >= first_row:  # nothing of it touches a column: any component will do
            join(node, (0,))
    return [root(node) for node in range(len(parent))]


def _component(
    whole: _Whole, columns: Array, rows: Array, booleans: Array, clauses: Array
) -> Component:
    data, varying_rows, never = whole.data, whole.varying, whole.never
    column_of = {int(c): j for j, c in enumerate(columns)}
    row_of = {int(r): i for i, r in enumerate(rows)}
    boolean_of = {int(b): k for k, b in enumerate(booleans)}
    varying = [k for k, row in enumerate(varying_rows) if row in row_of]

    start, column, coefficient = [0], [], []
    for row in rows:
        # Without terms a row is wrong at once, where branching would try all whole numbers.
        for j, a in () if row in never else data.rows[row].terms:
            column.append(column_of[j])
            coefficient.append(a.number)
        start.append(len(column))
    raw = np.array(coefficient, dtype=np.float64)
    largest = np.array([np.abs(raw[a:b]).max(initial=0.0) for a, b in pairwise(start)])
    scale = power_of_two(largest)
    own_global = [row_of[i] for i in data.global_rows if i in row_of]
    outputs = int(np.sum(columns < data.outputs))
    owned = [data.columns[c] for c in columns]
    drafts = [data.booleans[b] for b in booleans]
    logic, decided = _logic(data, row_of, boolean_of, clauses)
    return Component(
        columns=columns,
        rows=rows,
        booleans=booleans,
        clauses=clauses,
        varying=np.array(varying, dtype=np.int64),
        priced=np.array([p for p, k in enumerate(data.priced) if k in boolean_of], dtype=np.int64),
        decided=decided,
        prepared=Prepared(
            outputs=outputs,
            lower=np.array([c.lower for c in owned], dtype=np.float64),
            upper=np.array([c.upper for c in owned], dtype=np.float64),
            integer=np.array([c.integer for c in owned], dtype=np.bool_),
            start=np.array(start, dtype=np.int64),
            column=np.array(column, dtype=np.int64),
            coefficient=raw * np.repeat(scale, np.diff(start)),
            largest=largest,
            scale=scale,
            equality=np.array([data.rows[i].equality for i in rows], dtype=np.bool_),
            varying=np.array([row_of[varying_rows[k]] for k in varying], dtype=np.int64),
            global_rows=np.array(own_global, dtype=np.int64),
            plain=outputs == len(columns) and not any(b.tied for b in drafts),
            curves=_curves(data, row_of),
        ),
        logic=logic,
    )


def _curves(data: RuleData, row_of: dict[int, int]) -> CurveArrays | None:
    curved = [i for i in row_of if data.rows[i].curves]
    if not curved:
        return None
    curves = [curve for i in curved for curve in data.rows[i].curves]
    start, _ = _compressed([[0] * len(data.rows[i].curves) for i in curved])
    first, argument = _compressed([[row_of[k] for k in c.arguments] for c in curves])
    return CurveArrays(
        row=np.array([row_of[i] for i in curved], dtype=np.int64),
        start=start,
        shape=np.array([_SHAPES.index(c.shape) for c in curves], dtype=np.int64),
        weight=np.array([c.weight for c in curves], dtype=np.float64),
        exponent=np.array([c.exponent for c in curves], dtype=np.float64),
        first=first,
        argument=argument,
    )


def _logic(
    data: RuleData,
    row_of: dict[int, int],
    boolean_of: dict[int, int],
    clauses: Array,
) -> tuple[Logic, tuple[tuple[int, Array], ...]]:
    lists = [
        [_sign(k) * (boolean_of[abs(k) - 1] + 1) for k in _undominated(data, int(c))]
        for c in clauses
    ]
    guards = [
        -1 if data.clauses[c].guard < 0 else boolean_of[data.clauses[c].guard] for c in clauses
    ]
    true_rows = [[row_of[i] for i in data.booleans[b].true_rows] for b in boolean_of]
    false_rows = [[row_of[i] for i in data.booleans[b].false_rows] for b in boolean_of]
    # A boolean that enforces something either way has to be decided even where every clause that
    # names it holds by another literal: the clause "k or not k" sees to that.
    decided = []
    for k, (on, off) in enumerate(zip(true_rows, false_rows, strict=True)):
        if off and (on or k in guards):
            named = [c for c, literals in enumerate(lists) if k + 1 in map(abs, literals)]
            decided.append((k, np.array(named, dtype=np.int64)))
    lists += [[k + 1, -(k + 1)] for k, _ in decided]
    guards += [-1] * len(decided)
    guarded: list[list[int]] = [[] for _ in boolean_of]
    for c, guard in enumerate(guards):
        if guard >= 0:
            guarded[guard].append(c)
    clause_start, clause_literal = _compressed(lists)
    true_start, true_row = _compressed(true_rows)
    false_start, false_row = _compressed(false_rows)
    guarded_start, guarded_clause = _compressed(guarded)
    tied = np.array([data.booleans[b].tied for b in boolean_of], dtype=np.bool_)
    clause_of = {int(c): place for place, c in enumerate(clauses)}
    priced = [k for k in data.priced if k in boolean_of]
    owners = [clause_of[data.owner[k]] for k in priced]
    entries = [
        int(clause_start[c]) + lists[c].index(boolean_of[k] + 1)
        for k, c in zip(priced, owners, strict=True)
    ]
    logic = Logic(
        clause_start=clause_start,
        clause_literal=clause_literal,
        clause_guard=np.array(guards, dtype=np.int64),
        true_start=true_start,
        true_row=true_row,
        false_start=false_start,
        false_row=false_row,
        guarded_start=guarded_start,
        guarded_clause=guarded_clause,
        tied=tied,
        priced=np.array([boolean_of[k] for k in priced], dtype=np.int64),
        priced_entry=np.array(entries, dtype=np.int64),
    )
    return logic, tuple(decided)


def _undominated(data: RuleData, index: int) -> list[int]:
    """Literals of a clause without disjuncts whose rows contain all rows of another one.

    Such a disjunct is part of the other, so the union is the same without it. Rows are compared as
    they are written. Disjuncts that logic names, that hold nested rules, or that cost something,
    stay, and all of a rule that may be broken.
    """
    literals = list(data.clauses[index].literals)
    if data.clauses[index].breaking >= 0 or not set(data.priced).isdisjoint(
        k - 1 for k in literals
    ):
        return literals
    if any(k < 0 or data.booleans[k - 1].tied or k - 1 in data.guarded for k in literals):
        return literals
    rows = [
        frozenset(_key(data, data.rows[i]) for i in data.booleans[k - 1].true_rows)
        for k in literals
    ]
    return [
        k
        for place, k in enumerate(literals)
        if not any(
            rows[other] < rows[place] or (rows[other] == rows[place] and other < place)
            for other in range(len(literals))
        )
    ]


def _key(data: RuleData, row: Row) -> tuple[object, ...]:
    """What a row says, hashable."""
    parts = [(column, *_key_of(coefficient)) for column, coefficient in row.terms]
    curves = [
        (c.shape, c.weight, c.exponent, *(_key(data, data.rows[i]) for i in c.arguments))
        for c in row.curves
    ]
    return (tuple(parts), _key_of(row.bound), row.equality, *curves)


def _key_of(coefficient: Coefficient) -> tuple[object, ...]:
    return (coefficient.number, frozenset(coefficient.atoms.items()))


def _sign(literal: int) -> int:
    return 1 if literal > 0 else -1


def _compressed(lists: list[list[int]]) -> tuple[Array, Array]:
    start = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    return start, np.array([k for one in lists for k in one], dtype=np.int64)
