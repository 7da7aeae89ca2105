"""Where rules contradict each other, a batch at a time: broken as little as possible.

Every rule gets a column for how much it is broken, as `milp.nearest.elastic` has it for one sample.
The least sum of those is a projection in l1 in which they alone have weight; it is a matter of the
inputs, so it is found once for all samples whose rules are the same. The nearest point that breaks
rules no more is a second projection. Both are the core's search.

What the columns stand in is written once for all samples. So rows of disjuncts must not depend on
the inputs, and no disjunct may stand in logic: there it could be true where its rule does not
apply, and its rows must hold as they are. `breaking` and MILP know these rules, a sample at a time,
and those with prices, whole numbers or convex rows; they also take what is not proved here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gdpnet import core
from gdpnet.ir.data import Column, Row, RuleData
from gdpnet.ir.instance import Instance
from gdpnet.ir.linear import Coefficient
from gdpnet.ir.rules import Rules
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.solve.base import Array
from gdpnet.solve.exact.engine import ExactEngine, Solved
from gdpnet.solve.exact.margin import same_rules
from gdpnet.solve.exact.options import SearchOptions


class LeastBroken(NamedTuple):
    """What became of samples whose rules contradict each other.

    Attributes:
        y: outputs, (B, d); of no use where nothing is proved.
        proved: where rules are broken least and y is the nearest such point, (B,) bool.
    """

    y: Array
    proved: Array


class Elastic:
    """Rules that may be broken, each by an amount.

    Args:
        rules: the rules, `suitable` ones.
    """

    def __init__(self, rules: Rules) -> None:
        data = rules.data
        self._own = len(data.columns)
        written, self._bound = _elastic(data)
        amounts = range(self._own, len(written.columns))
        least = replace(written, outputs=len(written.columns))
        self._least = ExactEngine(Rules(least))
        total = Row("sum", tuple((j, Coefficient(1.0)) for j in amounts), Coefficient(0.0))
        self._nearest = ExactEngine(
            Rules(
                replace(
                    written,
                    rows=(*written.rows, total),
                    global_rows=(*written.global_rows, len(written.rows)),
                )
            )
        )
        self._weights = (np.arange(len(written.columns)) >= self._own).astype(float)
        lower, upper = (
            np.array([getattr(column, end) for column in written.columns])
            for end in ("lower", "upper")
        )
        self._start = np.clip(0.0, lower, upper)
        self._lower, self._upper = lower[: data.outputs], upper[: data.outputs]

    @staticmethod
    def of(rules: Rules) -> Elastic | None:
        """Those of rules; None where they are for others."""
        return Elastic(rules) if suitable(rules.data) else None

    def least_broken(self, instance: Instance, yhat: Array, options: SearchOptions) -> LeastBroken:
        """The nearest points that break rules as little as possible.

        Args:
            instance: the rules of the batch.
            yhat: predictions, (B, d).
            options: how they are searched.
        """
        options = options._replace(tie="first", tolerance=0.0, lost=0.0)
        first, pattern = same_rules(instance)
        alike = self._of(instance.take(first))
        start = np.tile(self._start, (len(first), 1))
        by_amount = options._replace(norm="l1", weights=self._weights)
        found = self._least.project(alike, start, by_amount)
        total = np.where(_proved(found), found.z[:, self._own :].sum(1), np.nan)
        proved = np.isfinite(total)[pattern]
        some = np.flatnonzero(proved)
        y = yhat.copy()
        if len(some):
            limit = np.array([TOLERANCES.above(each) for each in total.tolist()])[pattern[some]]
            own = self._of(instance.take(some))
            own = own._replace(bound=np.ascontiguousarray(np.column_stack([own.bound, limit])))
            found = self._nearest.project(own, yhat[some], options)
            proved[some] = _proved(found)
            y[some] = np.clip(found.z[:, : yhat.shape[1]], self._lower, self._upper)
        return LeastBroken(y, proved)

    def _of(self, instance: Instance) -> Instance:
        """The rules of a batch with the rows and columns that were added."""
        size, varying, _ = instance.varying.shape
        wide = np.zeros((size, varying, len(self._weights)))
        wide[:, :, : self._own] = instance.varying
        bound = np.column_stack([instance.bound, np.tile(self._bound, (size, 1))])
        return Instance(instance.active, np.ascontiguousarray(bound), wide, instance.price)


def suitable(data: RuleData) -> bool:
    """Whether rules are of the kind that is written once for all samples."""
    if data.priced or data.curved or any(column.integer for column in data.columns):
        return False
    owned: set[int] = set()
    always = set(data.global_rows)
    for rule in data.rules:
        for clause in data.subtree(rule.clause):
            for literal in data.clauses[clause].literals:
                boolean = data.booleans[literal - 1]
                rows = [data.rows[i] for i in boolean.true_rows]
                if boolean.tied or boolean.false_rows or not always.isdisjoint(boolean.true_rows):
                    return False
                if not owned.isdisjoint(boolean.true_rows):
                    return False  # a row of two rules
                if not all(a.is_number for row in rows for _, a in row.terms):
                    return False
                if not all(row.bound.is_number for row in rows):
                    return False
                owned.update(boolean.true_rows)
    return True


def _proved(found: Solved) -> Array:
    """Which of a batch's answers are the nearest points."""
    solved = (found.status == core.SOLVED) | (found.status == core.ACCEPTED_AS_IS)
    return np.asarray(solved & np.isfinite(found.distance))


def _elastic(data: RuleData) -> tuple[RuleData, Array]:
    """Rules with a column for how much each is broken, and right sides of the rows added.

    Equalities of disjuncts become two inequalities, so that they can be broken by an amount.
    """
    rows, booleans, columns = list(data.rows), list(data.booleans), list(data.columns)
    for rule in data.rules:
        amount = len(columns)
        columns.append(Column(f"{rule.name} is broken", 0.0, np.inf))
        for clause in data.subtree(rule.clause):
            for literal in data.clauses[clause].literals:
                boolean = booleans[literal - 1]
                own = list(boolean.true_rows)
                for i in boolean.true_rows:
                    row = rows[i]
                    numbers = [row.bound.number, *(a.number for _, a in row.terms)]
                    # What violations are relative to; see `ir.tolerances`.
                    size = max(1.0, *(abs(number) for number in numbers))
                    term = (amount, Coefficient(-size))
                    rows[i] = replace(row, terms=(*row.terms, term), equality=False)
                    if row.equality:
                        back = tuple((j, a.scaled(-1.0)) for j, a in row.terms)
                        own.append(len(rows))
                        rows.append(Row(row.name, (*back, term), row.bound.scaled(-1.0)))
                booleans[literal - 1] = replace(boolean, true_rows=tuple(own))
    added = np.array([row.bound.number for row in rows[len(data.rows) :]], dtype=float)
    return (
        replace(data, columns=tuple(columns), rows=tuple(rows), booleans=tuple(booleans)),
        added,
    )
