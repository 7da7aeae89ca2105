"""A second look at contradictions: rules contradict each other only where they do with a margin.

The search concludes a contradiction from arithmetic that rounds. Where rows are nearly parallel it
may conclude too much, for some predictions and not for others. So what it calls contradictory is
searched once more with every row and bound loosened a little: if nothing is feasible even then, the
contradiction is certain. Else the numbers are close, and the sample is left to other means.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gdpnet.ir.data import Row, RuleData
from gdpnet.ir.linear import Coefficient
from gdpnet.ir.steps import impossible
from gdpnet.rules.model import RuleModel
from gdpnet.solve._results import Array, Options

if TYPE_CHECKING:
    from gdpnet.solve.exact import ExactEngine, Solved

# How far rows give way, relative to max(1, |b|, max|a|).
_MARGIN = 1e-6


class Loosened:
    """Rules with every equality as two inequalities, so that each row can give way.

    Args:
        rules: the rules.
    """

    def __init__(self, rules: RuleModel) -> None:
        from gdpnet.solve.exact import ExactEngine

        self.rules = RuleModel.from_data(_loosened(rules.data))
        self.engine: ExactEngine = ExactEngine(self.rules)

    def search(self, x: Array, yhat: Array, options: Options) -> Solved:
        """Nearest points of the loosened rules."""
        instance = self.engine.instantiate(x)
        largest = np.abs(self.rules.table.shared.numpy()).max(1, initial=1.0)
        size = np.maximum(np.abs(instance.bound), largest)
        varying = self.rules.table.varying.numpy()
        if len(varying):
            own = np.abs(instance.varying).max(2, initial=1.0)
            size[:, varying] = np.maximum(np.abs(instance.bound[:, varying]), own)
        loose = instance._replace(bound=instance.bound + _MARGIN * size)
        return self.engine.project(loose, yhat, options._replace(tie="vertex"))


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


def doubtful(rules: RuleModel, x: Array, yhat: Array, conflict: Array, options: Options) -> Array:
    """Which contradictions do not hold with a margin.

    Args:
        rules: the rules.
        x: inputs, (B, p).
        yhat: predictions, (B, d).
        conflict: samples said to be contradictory.
        options: how they were searched.

    Returns:
        Those of them.
    """
    from gdpnet.solve.exact import NO_SOLUTION

    if not len(conflict):
        return conflict
    loosened: Loosened = rules.kept("loosened", Loosened)
    return conflict[loosened.search(x[conflict], yhat[conflict], options).status != NO_SOLUTION]
