"""Why nothing satisfies the rules: some of them, none superfluous, that contradict each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from gdpnet.errors import SolverError
from gdpnet.ir.data import Boolean
from gdpnet.ir.rules import Evaluated, Rules
from gdpnet.lp.program import Outcome
from gdpnet.solve.milp.disjunctive import solve_search
from gdpnet.solve.milp.sample import Sample


def explain(rules: Rules, evaluated: Evaluated, index: int, breakable: bool = False) -> list[str]:
    """Names of a minimal contradiction in one sample, empty where there is none.

    One thing after the other is left out; what can be left out while the rest stays contradictory
    is not part of the explanation. Rules are tried first, so that none is named where others, or
    global constraints, bounds and whole numbers, contradict each other without it.

    Args:
        rules: the rules.
        evaluated: the rules for a batch of inputs.
        index: of the sample.
        breakable: rules may be broken, as `on_conflict="nearest"` breaks them.
    """
    parts = _Parts(Sample.of(rules, evaluated, index), breakable)
    if parts.feasible(set()):
        return []
    removed = set(parts.clauses)
    if parts.feasible(removed):  # something about rules or logic is needed
        removed = set()
    for name in parts.names:
        if name not in removed and not parts.feasible(removed | {name}):
            removed.add(name)
    order = {name: k for k, name in enumerate([*rules.names, *_global_names(rules)])}
    left = [name for name in parts.names if name not in removed]
    return sorted(left, key=lambda name: order.get(name, len(order)))


def explain_all(rules: Rules, x: torch.Tensor) -> list[list[str]]:
    """As `explain`, for each sample of a batch.

    Args:
        rules: the rules.
        x: inputs, `batch x p`, float64.
    """
    evaluated = rules.evaluate(x)
    rules.refuse_unusable(evaluated.rows)
    return [explain(rules, evaluated, i) for i in range(len(x))]


def unmendable(rules: Rules, x: np.ndarray) -> np.ndarray:
    """Where bounds, global constraints and logic contradict each other, whatever rules are broken.

    Args:
        rules: the rules.
        x: inputs, (B, p).

    Returns:
        bool (B,).
    """
    different, which = np.unique(x, axis=0, return_inverse=True)
    evaluated = rules.evaluate(torch.from_numpy(different))
    found = [
        not _Parts(Sample.of(rules, evaluated, i), breakable=True).feasible(set())
        for i in range(len(different))
    ]
    return np.array(found, dtype=bool)[which.reshape(-1)]


def _global_names(rules: Rules) -> list[str]:
    return list(dict.fromkeys(rules.data.rows[i].name for i in rules.data.global_rows))


class _Parts:
    """What can be left out, by name: rules, propositions, whole numbers, bounds, globals."""

    def __init__(self, sample: Sample, breakable: bool) -> None:
        self.sample = sample
        data = sample.rules.data
        self.booleans = _without_rows(sample) if breakable else data.booleans
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
        self.clauses = list(dict.fromkeys(self.clause_owner))
        self.names = [*self.clauses, *self.whole, *self.bounds, *self.rows]

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
        program = replace(program, booleans=self.booleans)
        outcome = solve_search(program, first=True).outcome
        if outcome not in (Outcome.OPTIMAL, Outcome.INFEASIBLE):
            raise SolverError(f"HiGHS could not tell whether rules contradict: {outcome.message}.")
        return outcome is Outcome.OPTIMAL


def _without_rows(sample: Sample) -> tuple[Boolean, ...]:
    """Booleans whose rows may be broken without end where they are disjuncts of active rules."""
    data = sample.rules.data
    booleans = list(data.booleans)
    for rule in data.rules:
        if data.clauses[rule.clause] in sample.clauses:
            for clause in data.subtree(rule.clause):
                for literal in data.clauses[clause].literals:
                    booleans[literal - 1] = replace(booleans[literal - 1], true_rows=())
    return tuple(booleans)
