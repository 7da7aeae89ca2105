"""Why nothing satisfies the rules: some of them, none superfluous, that contradict each other."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import torch

from gdpnet.errors import SolverError
from gdpnet.ir.data import Boolean
from gdpnet.ir.rules import Evaluated, Rules
from gdpnet.lp.program import Outcome
from gdpnet.solve.milp import cuts
from gdpnet.solve.milp.disjunctive import solve_search
from gdpnet.solve.milp.sample import RulesAtSample


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
    parts = _Parts(RulesAtSample.of(rules, evaluated, index), breakable)
    if parts.feasible(set()):
        return []
    removed = {part for part in parts.names if part[0] == "clause"}
    if parts.feasible(removed):  # something about rules or logic is needed
        removed = set()
    for part in parts.names:
        if part not in removed and not parts.feasible(removed | {part}):
            removed.add(part)
    order = [("clause", rules.data.clauses[rule.clause].source) for rule in rules.data.rules]
    order += [part for part in parts.names if part[0] == "row"]
    place = {part: k for k, part in enumerate(order)}
    left = [part for part in parts.names if part not in removed]
    return [parts.names[part] for part in sorted(left, key=lambda p: place.get(p, len(place)))]


def explain_all(rules: Rules, x: torch.Tensor) -> list[list[str]]:
    """As `explain`, for each sample of a batch.

    Args:
        rules: the rules.
        x: inputs, `batch x p`, float64.
    """
    evaluated = rules.evaluate(x)
    rules.refuse_unusable(evaluated)
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
        not _Parts(RulesAtSample.of(rules, evaluated, i), breakable=True).feasible(set())
        for i in range(len(different))
    ]
    return np.array(found, dtype=bool)[which.reshape(-1)]


_Part = tuple[str, int]
"""A rule or proposition ("clause") or a global Constraint ("row") by its source; the bounds or the
integrality of a column ("bounds", "integer")."""


class _Parts:
    """What can be left out: rules, propositions, whole numbers, bounds, globals.

    Attributes:
        names: of all parts, in the order in which they are tried.
    """

    def __init__(self, sample: RulesAtSample, breakable: bool) -> None:
        self.sample = sample
        data = sample.rules.data
        self.booleans = _without_rows(sample) if breakable else data.booleans
        # A clause is left out with the rule it is nested in.
        rule_of = {
            data.clauses[nested].source: data.clauses[rule.clause]
            for rule in data.rules
            for nested in data.subtree(rule.clause)
        }
        owners = [rule_of.get(clause.source, clause) for clause in sample.clauses]
        self.clauses: list[_Part] = [("clause", clause.source) for clause in owners]
        self.rows: dict[int, _Part] = {i: ("row", data.rows[i].source) for i in data.global_rows}
        self.names: dict[_Part, str] = {("clause", c.source): c.name for c in owners}
        for k, column in enumerate(data.columns):
            if column.integer:
                self.names["integer", k] = f"{column.name} is whole"
        for k in np.flatnonzero(np.isfinite(sample.lower) | np.isfinite(sample.upper)).tolist():
            self.names["bounds", k] = f"bounds of {data.columns[k].name}"
        self.names |= {part: data.rows[i].name for i, part in self.rows.items()}

    def feasible(self, removed: set[_Part]) -> bool:
        """Whether what is left can be satisfied."""
        rows = [i for i, part in self.rows.items() if part not in removed]
        owned = zip(self.sample.clauses, self.clauses, strict=True)
        clauses = [clause for clause, part in owned if part not in removed]
        columns = range(len(self.sample.lower))
        bounded = np.array([("bounds", k) not in removed for k in columns], dtype=bool)
        left = np.array([("integer", k) not in removed for k in columns], dtype=bool)
        integer = self.sample.integer & left
        program = self.sample.feasibility(rows, clauses, bounded, integer)
        program = replace(program, booleans=self.booleans)
        outcome = cuts.solve(program, self.sample, partial(solve_search, first=True)).outcome
        if outcome not in (Outcome.OPTIMAL, Outcome.INFEASIBLE):
            raise SolverError(f"HiGHS could not tell whether rules contradict: {outcome.message}.")
        return outcome is Outcome.OPTIMAL


def _without_rows(sample: RulesAtSample) -> tuple[Boolean, ...]:
    """Booleans whose rows may be broken without end where they are disjuncts of active rules."""
    data = sample.rules.data
    booleans = list(data.booleans)
    for rule in data.rules:
        if data.clauses[rule.clause] in sample.clauses:
            for clause in data.subtree(rule.clause):
                for literal in data.clauses[clause].literals:
                    booleans[literal - 1] = replace(booleans[literal - 1], true_rows=())
    return tuple(booleans)
