"""Where hard rules contradict: the cheapest set of them left out, then the nearest point.

Every hard rule gets one more disjunct, without rows, that leaves it out. Which sets are cheapest by
importance is a matter of the inputs: it is found once for all samples whose rules are the same.
Then each sample is searched once, with nothing left out but one of its sets. Both are the core's
search (`leaving.hpp`). Components do not influence each other here either: the cheapest set of all
is made of the cheapest sets of each.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gdpnet.ir.data import Boolean, RuleData
from gdpnet.ir.instance import Instance
from gdpnet.ir.rules import Rules
from gdpnet.solve.base import Array
from gdpnet.solve.exact.engine import ExactEngine
from gdpnet.solve.exact.options import SearchOptions


class Dropped(NamedTuple):
    """What became of samples whose rules contradict each other.

    Attributes:
        z: columns, (B, n); NaN where nothing was found.
        value: of what is minimised, infinite where nothing was found, (B,).
        assignment: of the booleans, (B, booleans) int8.
        rules: which are left out, (B, rules) bool.
        hopeless: where leaving out rules does not help, (B,) bool.
    """

    z: Array
    value: Array
    assignment: Array
    rules: Array
    hopeless: Array


class Droppable:
    """Rules of which the hard ones may be left out.

    Args:
        rules: the rules.
    """

    def __init__(self, rules: Rules) -> None:
        data = rules.data
        self.hard = np.flatnonzero(np.array(data.hard, dtype=bool))
        self._rules, self._booleans = len(data.rules), len(data.booleans)
        self.engine = ExactEngine(Rules(_droppable(data, self.hard.tolist())))
        importance = [data.rules[r].importance for r in self.hard]
        self._leaving = self.engine.leaving(self._booleans, importance)

    def drop(self, instance: Instance, yhat: Array, options: SearchOptions) -> Dropped:
        """Leave out what contradicts.

        Args:
            instance: the rules of the batch, without the disjuncts that leave them out.
            yhat: predictions, (B, d).
            options: how they are searched.
        """
        size, own = len(yhat), self._booleans
        leaving = self.engine.cheapest(instance, self._leaving, options)
        hopeless, each = np.zeros(size, dtype=bool), np.empty(size, dtype=bool)
        for sets in leaving:
            sets.hopeless(each)
            hopeless |= each
        solved = self.engine.project(instance, yhat, options._replace(tie="first"), leaving=leaving)
        left_out = np.zeros((size, self._rules), dtype=bool)
        left_out[:, self.hard] = solved.assignment[:, own:] == 1
        return Dropped(solved.z, solved.distance, solved.assignment[:, :own], left_out, hopeless)


def _droppable(data: RuleData, hard: list[int]) -> RuleData:
    """The rules with a disjunct more for each hard one."""
    k = len(data.booleans)
    clauses, rules, booleans = list(data.clauses), list(data.rules), list(data.booleans)
    for p, r in enumerate(hard):
        rule = rules[r]
        clause = clauses[rule.clause]
        clauses[rule.clause] = replace(clause, literals=(*clause.literals, k + p + 1), xor=False)
        rules[r] = replace(rule, positions=(*rule.positions, -1))
        booleans.append(Boolean(f"{rule.name} is left out", tied=True))
    return replace(data, booleans=tuple(booleans), clauses=tuple(clauses), rules=tuple(rules))
