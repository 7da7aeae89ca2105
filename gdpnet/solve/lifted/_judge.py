"""Judge: which rules hold at the points of a batch, where rows alone decide.

The same measure as `rules.violation` and `rules.global_violation`, which torch takes in some thirty
operations a batch: a few samples would wait for those longer than for their program.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numba import typeof

from gdpnet.ir.rules import Rules
from gdpnet.solve.exact._block import Block, unpack
from gdpnet.solve.exact._engine import Instance
from gdpnet.solve.exact._jit import Array, jit, source_stamp


class Measure(NamedTuple):
    """What all samples share.

    Attributes:
        shared: coefficients that do not depend on x, (m, n).
        largest: `max(1, max|a|)` of those, (m,).
        place: of a row among the varying ones, -1 for the others, (m,).
        equality: (m,) bool.
        boolean_start: rows of each boolean, (booleans + 1,).
        boolean_row: (entries,).
        nested_clause: clauses that a boolean guards, the innermost first, (k,).
        nested_guard: that boolean, (k,).
        nested_start: literals of each, (k + 1,).
        nested_literal: booleans, (entries,).
        rule_start: literals of each rule, (rules + 1,).
        rule_literal: booleans, (entries,).
        global_rows: (g,).
        lower: of the outputs, (d,).
        upper: (d,).
        integer: (d,) bool.
    """

    shared: Array
    largest: Array
    place: Array
    equality: Array
    boolean_start: Array
    boolean_row: Array
    nested_clause: Array
    nested_guard: Array
    nested_start: Array
    nested_literal: Array
    rule_start: Array
    rule_literal: Array
    global_rows: Array
    lower: Array
    upper: Array
    integer: Array


class Judge:
    """Says of points which rules hold.

    Args:
        rules: rules that are plain: no auxiliaries, no logic over indicators.
    """

    def __init__(self, rules: Rules) -> None:
        data, table = rules.data, rules.table
        shared = np.ascontiguousarray(table.shared.numpy())
        place = np.full(len(data.rows), -1, dtype=np.int64)
        place[table.varying.numpy()] = np.arange(len(table.varying))
        nested = [
            (index, clause)
            for index, clause in enumerate(data.clauses)
            if clause.guard >= 0 and not clause.logic
        ][::-1]
        outputs = data.columns[: data.outputs]
        self._block = Block(
            Measure(
                shared,
                np.abs(shared).max(1, initial=1.0),
                place,
                np.ascontiguousarray(table.equality.numpy()),
                *_ragged(boolean.true_rows for boolean in data.booleans),
                np.array([index for index, _ in nested], dtype=np.int64),
                np.array([clause.guard for _, clause in nested], dtype=np.int64),
                *_ragged([k - 1 for k in clause.literals] for _, clause in nested),
                *_ragged([k - 1 for k in data.clauses[r.clause].literals] for r in data.rules),
                np.array(data.global_rows, dtype=np.int64),
                np.array([column.lower for column in outputs], dtype=float),
                np.array([column.upper for column in outputs], dtype=float),
                np.array([column.integer for column in outputs], dtype=np.bool_),
            ),
            _MEASURE,
        )

    def __call__(
        self,
        samples: Array,
        instance: Instance,
        active: Array,
        y: Array,
        tolerance: float,
        assignment: Array,
        violation: Array,
    ) -> Array:
        """Which of some samples satisfy everything, bool (samples,).

        Args:
            samples: indices into the batch.
            instance: the rules of the batch; further rows and columns are ignored.
            active: which rules apply, (B, rules) bool.
            y: points, (B, d).
            tolerance: a rule, a row or a bound holds within this.
            assignment: gets 1 where a boolean's rows hold and 0 elsewhere, (B, booleans) int8.
            violation: gets the violation of each rule, (B, rules).
        """
        holds = np.empty(len(samples), dtype=np.bool_)
        _judge(
            *(self._block.words, samples, instance.bound, instance.varying, instance.active),
            *(active, y, tolerance, assignment, violation, holds),
        )
        return holds


def _ragged(lists: Iterable[Iterable[int]]) -> tuple[Array, Array]:
    """Lists behind each other: where each starts, and their entries."""
    arrays = [np.array(list(entries), dtype=np.int64) for entries in lists]
    start = np.cumsum([0, *map(len, arrays)], dtype=np.int64)
    return start, np.concatenate([np.zeros(0, dtype=np.int64), *arrays])


_NUMBERS, _INDICES, _FLAGS = np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.bool_)
_MEASURE = typeof(
    Measure(
        shared=np.zeros((0, 0)),
        largest=_NUMBERS,
        place=_INDICES,
        equality=_FLAGS,
        boolean_start=_INDICES,
        boolean_row=_INDICES,
        nested_clause=_INDICES,
        nested_guard=_INDICES,
        nested_start=_INDICES,
        nested_literal=_INDICES,
        rule_start=_INDICES,
        rule_literal=_INDICES,
        global_rows=_INDICES,
        lower=_NUMBERS,
        upper=_NUMBERS,
        integer=_FLAGS,
    )
)


def _compile_judge(stamp: int) -> Any:
    @jit
    def _judge(
        words,
        samples,
        bound,
        varying,
        active,
        rule_active,
        y,
        tolerance,
        assignment,
        violation,
        holds,
    ):
        rules = unpack(words, _MEASURE)
        m, d = rules.place.size, rules.lower.size
        booleans = rules.boolean_start.size - 1
        residual = np.empty(m)
        value = np.empty(booleans)
        for q in range(stamp * 0, samples.size):
            s = samples[q]
            for i in range(m):
                total, largest = 0.0, rules.largest[i]
                if rules.place[i] >= 0:
                    largest = 1.0
                    for j in range(d):
                        a = varying[s, rules.place[i], j]
                        total += a * y[s, j]
                        largest = max(largest, abs(a))
                else:
                    for j in range(d):
                        total += rules.shared[i, j] * y[s, j]
                excess = total - bound[s, i]
                excess = abs(excess) if rules.equality[i] else max(excess, 0.0)
                residual[i] = excess / max(largest, abs(bound[s, i]))
            for k in range(booleans):
                value[k] = 0.0
                for e in range(rules.boolean_start[k], rules.boolean_start[k + 1]):
                    value[k] = max(value[k], residual[rules.boolean_row[e]])
            for c in range(rules.nested_clause.size):
                if active[s, rules.nested_clause[c]]:
                    guard = rules.nested_guard[c]
                    inner = least(value, rules.nested_literal, rules.nested_start, c)
                    value[guard] = max(value[guard], inner)
            for k in range(booleans):
                assignment[s, k] = value[k] <= tolerance
            good = True
            for r in range(rules.rule_start.size - 1):
                broken = 0.0
                if rule_active[s, r]:
                    broken = least(value, rules.rule_literal, rules.rule_start, r)
                violation[s, r] = broken
                good = good and broken <= tolerance
            for e in range(rules.global_rows.size):
                good = good and residual[rules.global_rows[e]] <= tolerance
            for j in range(d):
                lower, upper = rules.lower[j], rules.upper[j]
                good = good and lower - y[s, j] <= tolerance * max(1.0, abs(lower))
                good = good and y[s, j] - upper <= tolerance * max(1.0, abs(upper))
                if rules.integer[j]:
                    good = good and abs(y[s, j] - np.round(y[s, j])) <= tolerance
            holds[q] = good

    return _judge


_judge = _compile_judge(source_stamp("solve/exact/_block", "solve/lifted/_judge"))


@jit
def least(value, literal, start, c):
    """The nearest of a clause's booleans."""
    found = np.inf
    for e in range(start[c], start[c + 1]):
        found = min(found, value[literal[e]])
    return found
