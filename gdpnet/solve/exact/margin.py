"""A second look at contradictions: rules contradict each other only where they do with a margin.

The search concludes a contradiction from arithmetic that rounds. Where rows are nearly parallel it
may conclude too much, for some predictions and not for others. So what it calls contradictory is
searched once more with every row and bound loosened a little: if nothing is feasible even then, the
contradiction is certain. Else the numbers are close, and the sample is left to other means. What a
prediction is does not matter there, so samples whose rules are the same are looked at once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gdpnet import core
from gdpnet.ir.data import Row, RuleData
from gdpnet.ir.instance import Instance
from gdpnet.ir.linear import Coefficient
from gdpnet.ir.rules import Rules
from gdpnet.ir.steps import impossible, power_of_two
from gdpnet.solve.base import Array
from gdpnet.solve.exact.options import SearchOptions

if TYPE_CHECKING:
    from gdpnet.solve.exact.engine import ExactEngine, Solved

# How far rows give way, relative to max(1, |b|, max|a|), in units of the columns' bounds: what is
# contradictory even then is certain at once. Else a margin in the user's units tells, looked at to
# the last digits, unless bounds differ too much to do without units.
_MARGIN, _LEAST = 1e-6, 1e-8
_ALIKE = 1e3


class Loosened:
    """Rules with every equality as two inequalities, so that each row can give way.

    Columns are in units of their bounds: where those differ by many orders of magnitude the search
    may have gone astray for that.

    Args:
        rules: the rules.
    """

    def __init__(self, rules: Rules) -> None:
        from gdpnet.solve.exact.engine import ExactEngine

        self.unit = _units(rules.data)
        self.rules = Rules.from_data(_loosened(_in_units(rules.data, self.unit)))
        self.engine: ExactEngine = ExactEngine(self.rules)
        alike = bool(self.unit.max(initial=1.0) <= _ALIKE * self.unit.min(initial=1.0))
        self.least = _Plain(rules) if alike and not rules.data.curved else None

    def feasible(self, x: Array, options: SearchOptions) -> Array:
        """Where the loosened rules are not proved contradictory, (B,) bool."""
        instance = Instance.of(self.rules, x)
        first, pattern = same_rules(instance)
        status = _searched(self.engine, instance.take(first), options, _MARGIN).status
        feasible = status != core.NO_SOLUTION
        if feasible.any() and self.least is not None:
            rest = np.flatnonzero(feasible)
            feasible[rest] = self.least.feasible(x[first[rest]], options)
        return np.asarray(feasible[pattern])


class _Plain:
    """The same in the user's units, with the least margin.

    Args:
        rules: the rules, whose rows are all straight.
    """

    def __init__(self, rules: Rules) -> None:
        from gdpnet.solve.exact.engine import ExactEngine

        self.rules = Rules.from_data(_loosened(rules.data))
        self.engine: ExactEngine = ExactEngine(self.rules)

    def feasible(self, x: Array, options: SearchOptions) -> Array:
        """Where the loosened rules are not contradictory, (B,) bool."""
        fine = options._replace(fine=True)
        solved = _searched(self.engine, Instance.of(self.rules, x), fine, _LEAST)
        return np.asarray(solved.status != core.NO_SOLUTION)


def _searched(
    engine: ExactEngine, instance: Instance, options: SearchOptions, size: float
) -> Solved:
    """Points of loosened rules; which ones does not matter."""
    rules = engine.rules
    margin = size * instance.scale(rules.table)
    margin[:, sorted(rules.data.arguments)] = 0.0  # they say nothing that could give way
    loose = instance._replace(bound=instance.bound + margin)
    d = rules.data.outputs
    norm = "l2" if rules.data.curved else "l1"  # whichever is more at home there
    plain = options._replace(tie="first", norm=norm, weights=np.ones(d))
    return engine.project(loose, np.zeros((len(loose.active), d)), plain)


def _units(data: RuleData) -> Array:
    """The power of two nearest to the size of each column's bounds; 1 for integers and the open."""
    ends = np.array([max(abs(c.lower), abs(c.upper)) for c in data.columns], dtype=float)
    usable = np.isfinite(ends) & (ends > 0.0) & ~np.array([c.integer for c in data.columns])
    return np.where(usable, 1.0 / power_of_two(np.where(usable, ends, 1.0)), 1.0)


def _in_units(data: RuleData, unit: Array) -> RuleData:
    """The same rules over columns divided by units."""
    columns = tuple(
        replace(column, lower=column.lower / u, upper=column.upper / u)
        for column, u in zip(data.columns, unit.tolist(), strict=True)
    )
    rows = tuple(
        replace(row, terms=tuple((j, a.scaled(float(unit[j]))) for j, a in row.terms))
        for row in data.rows
    )
    return replace(data, columns=columns, rows=rows)


def _loosened(data: RuleData) -> RuleData:
    equalities = [i for i, row in enumerate(data.rows) if row.equality]
    opposite = {i: len(data.rows) + k for k, i in enumerate(equalities)}

    def both(rows: tuple[int, ...]) -> tuple[int, ...]:
        return rows + tuple(opposite[i] for i in rows if i in opposite)

    def negated(row: Row) -> Row:
        terms = tuple((j, a.scaled(-1.0)) for j, a in row.terms)
        return Row(row.name, terms, row.bound.scaled(-1.0))

    columns = tuple(
        column
        if column.integer
        else replace(
            column,
            lower=column.lower - _MARGIN * _size(column.lower),
            upper=column.upper + _MARGIN * _size(column.upper),
        )
        for column in data.columns
    )
    never = impossible(data)  # no margin makes them possible
    rows = tuple(
        Row(row.name, (), Coefficient(-1.0)) if i in never else replace(row, equality=False)
        for i, row in enumerate(data.rows)
    )
    return replace(
        data,
        columns=columns,
        rows=rows + tuple(negated(data.rows[i]) for i in equalities),
        global_rows=both(data.global_rows),
        booleans=tuple(
            replace(b, true_rows=both(b.true_rows), false_rows=both(b.false_rows))
            for b in data.booleans
        ),
    )


def _size(bound: float) -> float:
    return max(1.0, abs(bound)) if np.isfinite(bound) else 1.0


def same_rules(instance: Instance) -> tuple[Array, Array]:
    """One sample of each kind of rules, (kinds,), and the kind of every sample, (B,)."""
    size = len(instance.active)
    first, pattern = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    count = core.same_rules(instance.active, instance.varying, instance.bound, first, pattern)
    return first[:count], pattern


def doubtful(rules: Rules, x: Array, conflict: Array, options: SearchOptions) -> Array:
    """Which contradictions do not hold with a margin.

    Args:
        rules: the rules.
        x: inputs, (B, p).
        conflict: samples said to be contradictory.
        options: how they were searched.

    Returns:
        Those of them.
    """
    if not len(conflict):
        return conflict
    return conflict[rules.cache[Loosened].feasible(x[conflict], options)]
