"""Which rules hold at the points of a batch, where rows alone decide."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import typeof

from gdpnet.kernels._block import unpack
from gdpnet.kernels._jit import Array, jit, source_stamp


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


_NUMBERS, _INDICES, _FLAGS = np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.bool_)
MEASURE = typeof(
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
    def judge(
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
        rules = unpack(words, MEASURE)
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

    return judge


judge = _compile_judge(source_stamp("kernels/_block", "kernels/extended/_judge"))


@jit
def least(value, literal, start, c):
    """The nearest of a clause's booleans."""
    found = np.inf
    for e in range(start[c], start[c + 1]):
        found = min(found, value[literal[e]])
    return found
