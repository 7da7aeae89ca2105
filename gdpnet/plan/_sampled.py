"""Rules at sampled inputs and predictions: what any few of them cost by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gdpnet import core
from gdpnet.errors import RuleError
from gdpnet.ir.data import Clause, Rule, RuleData
from gdpnet.ir.instance import Instance
from gdpnet.ir.linear import Coefficient
from gdpnet.ir.rules import Rules
from gdpnet.relaxation.feasibility import FeasibilityCheck
from gdpnet.relaxation.products import products as products_of

if TYPE_CHECKING:
    from gdpnet.projection.projection import Projection
    from gdpnet.solve.exact.engine import ExactEngine

# Samples of a pattern of active rules at which products are tried, and pairs of disjuncts.
_TRIED = 16


class Sampled:
    """A rule model with a batch of inputs and predictions.

    Args:
        rules: the rules.
        x: inputs, `batch x p`.
        yhat: predictions, `batch x d`.

    Attributes:
        active: which rules apply, bool `batch x rules`.
        patterns: different rows of `active`, bool `patterns x rules`.
    """

    def __init__(self, rules: Rules, x: np.ndarray, yhat: np.ndarray) -> None:
        self.rules, self.x, self.yhat = rules, x, yhat
        self.instance = Instance.of(rules, x)
        if self.instance.unusable().any():
            rules.refuse_unusable(rules.evaluate(torch.from_numpy(x)))
        self.rule_clauses = np.array([rule.clause for rule in rules.data.rules], dtype=np.int64)
        self.active = self.instance.active[:, self.rule_clauses]
        self.patterns, pattern = np.unique(self.active, axis=0, return_inverse=True)
        self.pattern: np.ndarray = pattern.ravel()
        self._weights = np.ones(yhat.shape[1])
        self._distances: dict[tuple[int, ...], np.ndarray] = {}
        self._products: dict[tuple[int, ...], np.ndarray] = {}

    @cached_property
    def engine(self) -> ExactEngine | None:
        """Without the core there is none: MILP and linear programs say the same, slowly."""
        from gdpnet.solve.exact.backend import engine_of

        return engine_of(self.rules) if core.AVAILABLE else None

    def distance(self, cluster: Sequence[int]) -> np.ndarray:
        """Distance to the points that satisfy the rules of a cluster, whatever the others say.

        With prices the least of distance and price together.

        No relaxation that merges the cluster has a smaller value.

        Returns:
            `batch`; inf where the rules contradict each other.
        """
        key = tuple(sorted(cluster))
        if key not in self._distances:
            self._distances[key] = self._distance(key)
        return self._distances[key]

    def _distance(self, cluster: Sequence[int]) -> np.ndarray:
        if self.engine is None:
            own = Rules.from_data(about(self.rules.data, cluster))
            return self._project(own, np.arange(len(self.yhat))).value.numpy()
        from gdpnet.solve.exact.options import SearchOptions

        options = SearchOptions(self._weights, tolerance=0.0, threads=1)
        only = _with_activity(self.instance, self._only(cluster))
        return self.engine.project(only, self.yhat, options).distance

    def _project(self, rules: Rules, samples: np.ndarray, **keywords: Any) -> Projection:
        """Samples projected onto some of the rules, or otherwise."""
        from gdpnet.projection import project

        x = torch.from_numpy(self.x[samples]) if self.rules.input_names else None
        return project(rules, torch.from_numpy(self.yhat[samples]), x, **keywords)

    def products(self, cluster: Sequence[int], most: int) -> np.ndarray:
        """Products of a cluster that are not empty for some sample, for each pattern.

        Args:
            cluster: its rules.
            most: where there are more, `most + 1` is returned.

        Returns:
            `patterns`; 0 where no rule of the cluster is active.
        """
        key = (*sorted(cluster), most)
        if key not in self._products:
            self._products[key] = np.minimum(self._count(cluster, most), most + 1)
        return self._products[key]

    def _count(self, cluster: Sequence[int], most: int) -> np.ndarray:
        if self.engine is None:
            return self._count_in_turn(cluster, most)
        from gdpnet.solve.exact.products import products_within

        samples = self._few_of_each
        part = _with_activity(self.instance.take(samples), self._only(cluster)[samples])
        reach = np.full((len(self.engine.components), len(samples)), np.inf)
        counts = np.ones(len(self.patterns), dtype=np.int64)
        listed = products_within(
            self.engine, part, self.yhat[samples], self._weights, reach, most + 1
        )
        own = [literal - 1 for literal in _booleans(self.rules.data, cluster)]
        for products in listed:
            columns = np.isin(products.component.booleans, own)
            if not columns.any():
                continue
            met = np.arange(most + 1) < products.count[:, None]
            for p in range(len(self.patterns)):
                here = self.pattern[samples] == p
                # Programs are shared by the samples of a pattern, so it is their union that counts.
                chosen = products.assignment[here][met[here]][:, columns]
                unknown = (products.count[here] < 0).any()
                counts[p] *= most + 1 if unknown else len(np.unique(chosen, axis=0))
        counts[~self.patterns[:, list(cluster)].any(1)] = 0
        return counts

    def _count_in_turn(self, cluster: Sequence[int], most: int) -> np.ndarray:
        """As `_count`, by a linear program for each product and sample."""
        active = self._only(cluster)
        met: list[set[frozenset[int]]] = [set() for _ in self.patterns]
        for s in self._few_of_each.tolist():
            on = [r for r in cluster if self.active[s, r]]
            data = _at_sample(self.rules, self.instance, s)
            try:
                listed = products_of(data, on, active[s], feasibility=FeasibilityCheck(data, ()))
            except RuleError:  # more than can be listed
                return np.full(len(self.patterns), most + 1)
            met[self.pattern[s]] |= {product.literals for product in listed}
        counts = np.array([len(found) for found in met], dtype=np.int64)
        counts[~self.patterns[:, list(cluster)].any(1)] = 0
        return counts

    @cached_property
    def _few_of_each(self) -> np.ndarray:
        """A few samples of each pattern, with different inputs."""
        if not self.x.shape[1]:
            return np.arange(1)
        first = np.unique(self.x, axis=0, return_index=True)[1]
        pattern = self.pattern[first]
        return np.concatenate([_spread(first[pattern == p]) for p in range(len(self.patterns))])

    def _only(self, cluster: Sequence[int]) -> np.ndarray:
        """Activity of clauses where only the rules of a cluster matter, bool `batch x clauses`."""
        kept = clauses_about(self.rules.data, cluster)
        active = np.zeros_like(self.instance.active)
        active[:, kept] = self.instance.active[:, kept]
        return active

    def pair_value(self, one: int, other: int, samples: np.ndarray) -> np.ndarray:
        """Value of the relaxation of two rules, each convexified by itself, `samples`."""
        pair = Rules.from_data(about(self.rules.data, (one, other)))
        return self._project(pair, samples, relaxation="cnf").value.numpy()

    def empty_pairs(self, one: int, other: int, samples: np.ndarray) -> float:
        """Share of the pairs of disjuncts of two rules that no output satisfies."""
        data, samples = self.rules.data, _spread(samples)
        choices, place = self._single_choices
        logic = _logic_about(choices, _booleans(data, (one, other)))
        always = [k for k, c in enumerate(choices.clauses) if c.guard >= 0 and not c.logic]
        pairs = [
            [*always, *logic, place[first], place[second]]
            for first in data.clauses[data.rules[one].clause].literals
            for second in data.clauses[data.rules[other].clause].literals
        ]
        return float(np.mean([self._contradictory(clauses, samples) for clauses in pairs]))

    def _contradictory(self, clauses: Sequence[int], samples: np.ndarray) -> float:
        """Share of samples for which some clauses of `_single_choices` leave nothing."""
        from gdpnet.solve.exact.options import SearchOptions
        from gdpnet.solve.status import Status

        choices, _ = self._single_choices
        if self.engine is None:
            # The two choices come last.
            own = [(k, choices.clauses[clauses[k]].name) for k in range(-2, 0)]
            kept = replace(
                choices,
                clauses=tuple(choices.clauses[k] for k in clauses),
                rules=tuple(Rule(name, len(clauses) + k, (0,)) for k, name in own),
            )
            status = self._project(Rules.from_data(kept), samples).status.numpy()
            return float((status == Status.CONFLICT).mean())
        from gdpnet.core import NO_SOLUTION

        instance = Instance.of(self._choosing.rules, self.x[samples])
        active = np.zeros_like(instance.active)
        active[:, clauses] = instance.active[:, clauses]
        part = _with_activity(instance, active)
        options = SearchOptions(self._weights, tolerance=0.0, threads=1)
        solved = self._choosing.project(part, self.yhat[samples], options)
        return float((solved.status == NO_SOLUTION).mean())

    @cached_property
    def _single_choices(self) -> tuple[RuleData, dict[int, int]]:
        """Rules in which every disjunct is a clause, and the clause of each literal."""
        data = self.rules.data
        top = {rule.clause for rule in data.rules}
        literals = [literal for k in sorted(top) for literal in data.clauses[k].literals]
        rest = [c for k, c in enumerate(data.clauses) if k not in top]
        single = [Clause(str(literal), (literal,)) for literal in literals]
        choices = replace(data, rules=(), clauses=(*rest, *single))
        return choices, {literal: len(rest) + k for k, literal in enumerate(literals)}

    @cached_property
    def _choosing(self) -> ExactEngine:
        from gdpnet.solve.exact.engine import ExactEngine

        return ExactEngine(Rules.from_data(self._single_choices[0]))


def _at_sample(rules: Rules, instance: Instance, sample: int) -> RuleData:
    """The rules with the numbers that their rows have for one sample."""
    data = rules.data
    place = {row: k for k, row in enumerate(rules.table.varying.tolist())}

    def number(row: int, column: int, coefficient: Coefficient) -> Coefficient:
        if not coefficient.atoms:
            return coefficient
        return Coefficient(float(instance.varying[sample, place[row], column]))

    rows = [
        replace(
            row,
            terms=tuple((j, number(i, j, a)) for j, a in row.terms),
            bound=Coefficient(float(instance.bound[sample, i])),
        )
        for i, row in enumerate(data.rows)
    ]
    return replace(data, rows=tuple(rows))


def about(data: RuleData, rules: Sequence[int]) -> RuleData:
    """The same model with some of its rules only."""
    kept = clauses_about(data, rules)
    place = {k: new for new, k in enumerate(kept)}
    return replace(
        data,
        clauses=tuple(data.clauses[k] for k in kept),
        rules=tuple(replace(data.rules[r], clause=place[data.rules[r].clause]) for r in rules),
    )


def clauses_about(data: RuleData, rules: Sequence[int]) -> list[int]:
    """Clauses of some rules, nested ones included, and the logic that names no other rule."""
    own = {k for r in rules for k in data.subtree(data.rules[r].clause)}
    return sorted({*own, *_logic_about(data, _booleans(data, rules))})


def _booleans(data: RuleData, rules: Sequence[int]) -> set[int]:
    return {
        literal
        for r in rules
        for k in data.subtree(data.rules[r].clause)
        for literal in data.clauses[k].literals
    }


def _logic_about(data: RuleData, booleans: set[int]) -> list[int]:
    named = {abs(literal) for c in data.clauses if not c.logic for literal in c.literals}
    return [
        k
        for k, c in enumerate(data.clauses)
        if c.logic and named & {abs(literal) for literal in c.literals} <= booleans
    ]


def _with_activity(instance: Instance, active: np.ndarray) -> Instance:
    return instance._replace(active=active)


def _spread(samples: np.ndarray) -> np.ndarray:
    """At most a few samples, evenly taken."""
    if len(samples) <= _TRIED:
        return samples
    return samples[np.linspace(0, len(samples) - 1, _TRIED).astype(int)]
