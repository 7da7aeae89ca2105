"""Where hard rules contradict: the cheapest set of them left out, then the nearest point.

Every hard rule gets one more disjunct, which asks for a column of its own to be 1. First what is
left out counts alone: each of these disjuncts costs the importance of its rule, and distances and
prices cost nothing. Then nothing more may be left out than that, a row over these columns, and what
is minimised is as usual: of several cheapest sets that with the nearest point is taken. Both are
searches as any other, in which nothing large stands beside something small.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gdpnet import core
from gdpnet.ir.data import Boolean, Column, Row, RuleData
from gdpnet.ir.instance import Instance
from gdpnet.ir.linear import Coefficient
from gdpnet.ir.rules import Rules
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.solve.base import Array
from gdpnet.solve.exact.engine import ExactEngine, Solved
from gdpnet.solve.exact.options import SearchOptions


class Droppable:
    """Rules of which the hard ones may be left out.

    Args:
        rules: the rules.
    """

    def __init__(self, rules: Rules) -> None:
        data = rules.data
        self.hard = np.flatnonzero(np.array(data.hard, dtype=bool))
        self.importance = np.array([data.rules[r].importance for r in self.hard], dtype=float)
        self.rules = Rules(_droppable(data, self.hard.tolist()))
        self.engine = ExactEngine(self.rules)
        self._original = np.isin(self.rules.data.priced, data.priced)

    def drop(self, x: Array, yhat: Array, options: SearchOptions) -> tuple[Solved, Array, Array]:
        """Leave out what contradicts.

        Args:
            x: inputs, (B, p).
            yhat: predictions, (B, d).
            options: how they are searched.

        Returns:
            The projections, over further columns and booleans; which rules are left out,
            (B, rules) bool; and for which samples that does not help, (B,) bool.
        """
        instance = Instance.of(self.rules, np.ascontiguousarray(x))
        alone = options._replace(
            weights=np.zeros(yhat.shape[1]), norm="l1", tie="first", price_unit=1.0
        )
        counted = instance._replace(price=np.where(self._original, 0.0, instance.price))
        first = self.engine.project(counted, yhat, alone)
        least = np.where(np.isfinite(first.distance), first.distance, 0.0)
        budget = np.array([TOLERANCES.above(float(level)) for level in least])
        bound = instance.bound.copy()
        bound[:, -1] = budget
        price = np.where(self._original, instance.price, 0.0)
        second = instance._replace(bound=bound, price=np.ascontiguousarray(price))
        found = self.engine.project(second, yhat, options._replace(tie="first"))
        dropped = np.zeros((len(x), len(self.rules.data.rules)), dtype=bool)
        dropped[:, self.hard] = found.assignment[:, -len(self.hard) :] == 1
        return found, dropped, first.status == core.NO_SOLUTION


def _droppable(data: RuleData, hard: list[int]) -> RuleData:
    """The rules with a disjunct more for each hard one, a column each, and a row over them."""
    n, m, k = len(data.columns), len(data.rows), len(data.booleans)
    columns = [Column(f"{data.rules[r].name} is left out", 0.0, 1.0) for r in hard]
    asked = [
        Row(column.name, ((n + p, Coefficient(-1.0)),), Coefficient(-1.0))
        for p, column in enumerate(columns)
    ]
    importance = [data.rules[r].importance for r in hard]
    limit = Row(
        "what is left out",
        tuple((n + p, Coefficient(value)) for p, value in enumerate(importance)),
        Coefficient(sum(importance)),
    )
    clauses, rules = list(data.clauses), list(data.rules)
    for p, r in enumerate(hard):
        c = rules[r].clause
        clauses[c] = replace(clauses[c], literals=(*clauses[c].literals, k + p + 1), xor=False)
        rules[r] = replace(rules[r], positions=(*rules[r].positions, -1))
    return replace(
        data,
        columns=(*data.columns, *columns),
        rows=(*data.rows, *asked, limit),
        global_rows=(*data.global_rows, m + len(hard)),
        booleans=(
            *data.booleans,
            *(
                Boolean(column.name, (m + p,), price=Coefficient(importance[p]))
                for p, column in enumerate(columns)
            ),
        ),
        clauses=tuple(clauses),
        rules=tuple(rules),
    )
