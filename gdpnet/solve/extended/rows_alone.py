"""The projection onto the disjuncts that a point satisfies: a convex set, and no search.

A conic program's point is as near as its tolerances let it be. Where it satisfies the rules the
nearest point of the disjuncts that hold there is found by the exact engine, from rows alone, to the
last digits and with its derivative.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from gdpnet.ir.rules import Rules
from gdpnet.ir.semantics import enforced
from gdpnet.solve.base import Answer, Array, Request
from gdpnet.solve.exact.backend import Exact

_MOST_CHOICES = 2048  # kept for the rules; more are made anew


def project_onto_rows(
    request: Request, rows: Sequence[tuple[int, ...]]
) -> Iterator[tuple[Array, Answer]]:
    """Samples that have the same rows to satisfy, and their projections onto those.

    Args:
        request: the samples.
        rows: of each sample, without those that always hold.
    """
    groups: dict[tuple[int, ...], list[int]] = {}
    for s, own in enumerate(rows):
        groups.setdefault(own, []).append(s)
    for own, members in groups.items():
        samples = np.array(members, dtype=np.int64)
        every = (*request.rules.data.global_rows, *own)
        part = request.take(samples)._replace(rules=with_rows_alone(request.rules, every))
        yield samples, Exact().solve(part)


def chosen_rows(rules: Rules, active: Array, holds: Array) -> tuple[int, ...]:
    """Rows of the first disjunct of each rule that holds, and of all truth values that matter.

    Args:
        rules: the rules.
        active: which clauses apply, `clauses`.
        holds: booleans that are true, `booleans`.
    """
    data = rules.data
    chosen: dict[int, None] = {}
    for k, boolean in enumerate(data.booleans):
        if boolean.tied:
            chosen[k + 1 if holds[k] > 0 else -(k + 1)] = None
    for k, clause in enumerate(data.clauses):
        if clause.logic or not active[k]:
            continue
        if clause.guard >= 0 and clause.guard + 1 not in chosen:
            continue
        if any(literal in chosen for literal in clause.literals):
            continue
        first = next((n for n in clause.literals if holds[n - 1] > 0), None)
        if first is not None:
            chosen[first] = None
    return tuple(sorted(set(enforced(data.booleans, chosen))))


def with_rows_alone(rules: Rules, rows: tuple[int, ...]) -> Rules:
    """The same columns and rows, of which these always hold, and no choice is left."""
    known = rules.cache[_choices]
    found = known.get(rows)
    if found is None:
        data = replace(
            rules.data,
            global_rows=tuple(dict.fromkeys(rows)),
            booleans=(),
            clauses=(),
            rules=(),
            conditions=(),
        )
        found = Rules.from_data(data)
        if len(known) >= _MOST_CHOICES:
            known.clear()
        known[rows] = found
    return found


def _choices(_: Rules) -> dict[tuple[int, ...], Rules]:
    """Rules without a choice, by their rows."""
    return {}
