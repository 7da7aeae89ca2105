"""Why nothing satisfies the rules: some of them, none superfluous, that contradict each other."""

from __future__ import annotations

import numpy as np

from gdpnet.errors import SolverError
from gdpnet.rules.model import Evaluated, RuleModel
from gdpnet.solve._disjunctive import solve_search
from gdpnet.solve._linear import Outcome
from gdpnet.solve._sample import Sample


def explain(rules: RuleModel, evaluated: Evaluated, index: int) -> list[str]:
    """Names of a minimal contradiction in one sample, empty where there is none.

    One thing after the other is left out; what can be left out while the rest stays contradictory
    is not part of the explanation. Bounds are tried first, so that the explanation is in terms of
    rules where it can be.
    """
    sample = Sample.of(rules, evaluated, index)
    parts = _Parts(sample)
    if parts.feasible(set()):
        return []
    removed: set[str] = set()
    for name in parts.names:
        if not parts.feasible(removed | {name}):
            removed.add(name)
    order = {name: k for k, name in enumerate([*rules.names, *_global_names(rules)])}
    left = [name for name in parts.names if name not in removed]
    return sorted(left, key=lambda name: order.get(name, len(order)))


def _global_names(rules: RuleModel) -> list[str]:
    return list(dict.fromkeys(rules.data.rows[i].name for i in rules.data.global_rows))


class _Parts:
    """What can be left out, by name: rules, propositions, global constraints, bounds."""

    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        data = sample.rules.data
        self.rows = {
            name: [i for i in data.global_rows if data.rows[i].name == name]
            for name in _global_names(sample.rules)
        }
        # A clause is left out with the rule it is nested in.
        owner = {
            data.clauses[nested].name: rule.name
            for rule in data.rules
            for nested in data.subtree(rule.clause)
        }
        self.clause_owner = [owner.get(clause.name, clause.name) for clause in sample.clauses]
        bounded = np.isfinite(sample.lower) | np.isfinite(sample.upper)
        self.bounds = {
            f"bounds of {column.name}": k for k, column in enumerate(data.columns) if bounded[k]
        }
        self.whole = {
            f"{column.name} is whole": k for k, column in enumerate(data.columns) if column.integer
        }
        self.names = [*self.whole, *self.bounds, *self.rows, *dict.fromkeys(self.clause_owner)]

    def feasible(self, removed: set[str]) -> bool:
        """Whether what is left can be satisfied."""
        rows = [i for name, indices in self.rows.items() if name not in removed for i in indices]
        clauses = [
            clause
            for clause, owner in zip(self.sample.clauses, self.clause_owner, strict=True)
            if owner not in removed
        ]
        bounded = np.ones(len(self.sample.lower), dtype=bool)
        for name, column in self.bounds.items():
            bounded[column] = name not in removed
        integer = self.sample.integer.copy()
        for name, column in self.whole.items():
            integer[column] = name not in removed
        program = self.sample.feasibility(rows, clauses, bounded, integer)
        outcome = solve_search(program, first=True).outcome
        if outcome not in (Outcome.OPTIMAL, Outcome.INFEASIBLE):
            raise SolverError(f"HiGHS could not tell whether rules contradict: {outcome.value}.")
        return outcome is Outcome.OPTIMAL
