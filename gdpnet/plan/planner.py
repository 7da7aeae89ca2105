"""choose: the answer to the paper's open question which rules to merge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np
import torch

from gdpnet.checks import check_choice, check_count
from gdpnet.errors import InputError, RuleError
from gdpnet.ir.rules import Rules
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.plan._sampled import Sampled
from gdpnet.plan.graph import draw_samples, graph_of
from gdpnet.relaxation.layouts import layouts_of
from gdpnet.relaxation.plan import Plan

# Samples that are looked at, and those of them on which candidates are compared.
_SAMPLES, _COMPARED = 512, 64

# Candidates that a bound prefers and that are then measured.
_FINALISTS = 6

Partition = tuple[tuple[int, ...], ...]
Score = tuple[float, float]


def choose(
    rules: Rules,
    budget: int = 64,
    yhat: Any = None,
    x: Any = None,
    objective: str = "tightness",
    unit: str = "products",
) -> Plan:
    """Clusters of rules to merge under a budget.

    Rules that interact are merged whole where that fits the budget: then the relaxation is exact by
    construction (`plan.exact`). Where it does not fit, clusters are searched for: merged, rules
    moved and exchanged between them, as long as that helps on the samples. The search is guided by
    lower bounds (the distance of a cluster alone, which needs no linear program, and what was
    measured for finer clusters), and the best it finds is measured.

    Args:
        rules: the rules.
        budget: the most that a sample may cost; the worst pattern of active rules met in the
            samples counts.
        yhat: predictions to measure at, `batch x d`; uniform over the bounds where not given.
        x: inputs to measure at, `batch x p`; uniform over `input_bounds` where not given.
        objective: `"tightness"`: the mean value of the relaxation; `"satisfaction"`: the share of
            samples whose point satisfies all rules.
        unit: what the budget counts. `"products"`: terms of the merged clusters that are not empty
            for some sample of the pattern (with `input_bounds` the program leaves the empty ones
            out; without, those that are empty only for the x at hand are written down);
            `"nonzeros"`: entries of the whole linear program as `gdpnet.convexify` writes it.

    Returns:
        The plan; deterministic for the same arguments.

    Example:
        >>> import gdpnet, pyomo.environ as pyo
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var([1, 2, 3], bounds=(0, 10))
        >>> m.a = gdpnet.rule(gdpnet.any_of(m.y[1] <= 3, m.y[1] >= 7))
        >>> m.b = gdpnet.rule(gdpnet.any_of(m.y[1] + m.y[2] <= 4, m.y[1] + m.y[2] >= 9))
        >>> m.c = gdpnet.rule(gdpnet.any_of(m.y[3] <= 3, m.y[3] >= 7))
        >>> rules = gdpnet.RuleModel(m, outputs=[m.y])
        >>> plan = gdpnet.plan.choose(rules, budget=16)
        >>> plan, plan.exact
        (Plan(a + b), True)
    """
    check_count("budget", budget)
    check_choice("objective", objective, ("tightness", "satisfaction"))
    check_choice("unit", unit, ("products", "nonzeros"))
    _refuse_whole_numbers(rules)
    inputs, predictions = draw_samples(rules, yhat, x)
    if not len(inputs):
        raise InputError("x: expected at least one sample, got none.")
    some = np.linspace(0, len(inputs) - 1, min(len(inputs), _SAMPLES)).astype(int)
    sampled = Sampled(rules, inputs[some], predictions[some])
    return _Planner(sampled, budget, objective, unit).plan()


def _refuse_whole_numbers(rules: Rules) -> None:
    whole = [column.name for column in rules.data.columns if column.integer]
    if whole:
        raise RuleError(
            f"A plan merges rules, and {', '.join(whole[:8])} would still be whole numbers that a "
            "hull relaxes. Use relaxation='dnf' with solver='exact', or 'adaptive'."
        )


class _Planner:
    def __init__(self, sampled: Sampled, budget: int, objective: str, unit: str) -> None:
        self.sampled, self.rules, self.budget = sampled, sampled.rules, budget
        self.objective, self.unit = objective, unit
        self.graph = graph_of(sampled)
        place = {name: r for r, name in enumerate(self.rules.names)}
        self.parts = [
            tuple(sorted(place[name] for name in part))
            for part in nx.connected_components(self.graph)
        ]
        self.meet = {
            frozenset((place[a], place[b]))
            for a, b, together in self.graph.edges(data="together")
            if together
        }
        self.nothing = sampled.distance(())
        self.exact = sampled.distance(range(len(self.rules.names)))
        self.alone = _canonical([(r,) for r in range(len(self.rules.names))])
        self._values: dict[Partition, tuple[np.ndarray, np.ndarray]] = {}
        self._bounds: dict[Partition, np.ndarray] = {}
        self._sizes: dict[Partition, int] = {}

    def plan(self) -> Plan:
        start = self.alone
        self._solve(start, np.arange(1))  # raises where a hull cannot be written down
        if not self.fits(start):
            raise InputError(
                f"budget: without any basic step the program has {self._nonzeros(start)} nonzeros "
                f"in the worst sample, more than {self.budget}."
            )
        for part in sorted(self.parts, key=len):
            whole = _canonical([*(c for c in start if c[0] not in part), part])
            if self.fits(whole):
                start = whole
        exact = all(part in start for part in self.parts)
        best = start if exact else self._search(start)
        names = self.rules.names
        merged = [tuple(names[r] for r in cluster) for cluster in best if len(cluster) > 1]
        return Plan(tuple(merged), exact=exact)

    # ---- what a partition costs ------------------------------------------------------------

    def fits(self, partition: Partition) -> bool:
        """Whether the worst pattern stays within the budget."""
        merged = [cluster for cluster in partition if len(cluster) > 1]
        total = np.zeros(len(self.sampled.patterns), dtype=np.int64)
        for cluster in merged:
            total += self.sampled.products(cluster, self.budget)
        # Every product has nonzeros: what has too many of them need not be assembled.
        within = bool((total <= self.budget).all())
        if self.unit == "nonzeros":
            return within and self._nonzeros(partition) <= self.budget
        return within

    def _nonzeros(self, partition: Partition) -> int:
        if partition not in self._sizes:
            layouts = layouts_of(self.rules)
            worst = 0
            for pattern in np.unique(self.sampled.instance.active, axis=0):
                on = pattern[self.sampled.rule_clauses]
                clusters = [[r for r in cluster if on[r]] for cluster in partition]
                number = layouts.number([c for c in clusters if c], pattern, pruned=True)
                worst = max(worst, layouts.sizes(number).nonzeros)
            self._sizes[partition] = worst
        return self._sizes[partition]

    # ---- what it brings --------------------------------------------------------------------

    @cached_property
    def compared(self) -> np.ndarray:
        """Samples on which merging can bring anything."""
        finite = np.flatnonzero(np.isfinite(self.exact))
        value, good = self._solve(self.alone, finite)
        left = finite[(value < self.exact[finite] - TOLERANCES.equal) | ~good]
        return left[np.linspace(0, len(left) - 1, min(len(left), _COMPARED)).astype(int)]

    def bound(self, partition: Partition) -> np.ndarray:
        """A lower bound on the value, `compared`.

        The value is at least the distance of any cluster (of each component of the graph), and at
        least the value measured for a finer partition.
        """
        if partition not in self._bounds:
            nothing = self.nothing[self.compared]
            total = nothing.copy()
            for part in self.parts:
                inside = [
                    self.sampled.distance(c)[self.compared] for c in partition if c[0] in part
                ]
                total += np.maximum.reduce(inside) - nothing
            label = {r: k for k, cluster in enumerate(partition) for r in cluster}
            for finer, (value, _) in self._values.items():
                if all(len({label[r] for r in cluster}) == 1 for cluster in finer):
                    total = np.maximum(total, value)
            self._bounds[partition] = total
        return self._bounds[partition]

    def promise(self, partition: Partition) -> Score:
        """The score that the bound ensures."""
        bound = self.bound(partition)
        return self._score(bound, bound >= self.exact[self.compared] - TOLERANCES.equal)

    def score(self, partition: Partition) -> Score:
        """The score measured; programs are solved where the bound leaves it open."""
        if partition not in self._values:
            value = self.bound(partition).copy()
            good = value >= self.exact[self.compared] - TOLERANCES.equal
            left = np.flatnonzero(~good)
            if len(left):
                found, good[left] = self._solve(partition, self.compared[left])
                value[left] = np.where(np.isfinite(found), found, value[left])
            self._values[partition] = value, good
            self._bounds.clear()
        return self._score(*self._values[partition])

    def _score(self, value: np.ndarray, good: np.ndarray) -> Score:
        tight, satisfied = float(value.mean()), float(good.mean())
        return (tight, satisfied) if self.objective == "tightness" else (satisfied, tight)

    def _solve(self, partition: Partition, samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Value of the relaxation, and whether its point satisfies all rules."""
        from gdpnet.projection import Status, project

        names = self.rules.names
        plan = Plan(tuple(tuple(names[r] for r in c) for c in partition if len(c) > 1))
        x = torch.from_numpy(self.sampled.x[samples]) if self.rules.input_names else None
        yhat = torch.from_numpy(self.sampled.yhat[samples])
        found = project(self.rules, yhat, x, relaxation=plan)
        return found.value.numpy(), (found.status <= Status.PROJECTED).numpy()

    # ---- search ----------------------------------------------------------------------------

    def _search(self, start: Partition) -> Partition:
        """The best partition found: by the bound from several starts, then by measuring."""
        if not len(self.compared):
            return start
        for candidate in [start, *self._pairs(start)]:
            self.score(candidate)
        starts = {start, *self._pairs(start), *self._grown(start)}
        reached = {
            self._climb(candidate, self.promise, self._neighbours)
            for candidate in self._best(starts)
        }
        best = max([start, *self._best({*starts, *reached})], key=self.score)
        return self._climb(best, self.score, lambda p: self._best(self._neighbours(p)))

    def _best(self, partitions: Iterable[Partition]) -> list[Partition]:
        """The few with the best bound."""
        return sorted(sorted(partitions), key=self.promise, reverse=True)[:_FINALISTS]

    def _pairs(self, start: Partition) -> list[Partition]:
        """Two rules merged that gain by it alone."""
        names = self.rules.names
        alone = [cluster for cluster in start if len(cluster) == 1]
        merged = [
            _canonical([*(c for c in start if c not in (one, other)), (*one, *other)])
            for one, other in combinations(alone, 2)
            if self._meets(one, other)
            and self.graph.edges[names[one[0]], names[other[0]]]["weight"]
        ]
        return [candidate for candidate in merged if self.fits(candidate)]

    def _grown(self, start: Partition) -> Iterator[Partition]:
        """Clusters grown from every rule, one best rule at a time; those that fit.

        A larger cluster may have fewer products that are not empty, so growing goes on beyond the
        budget.
        """
        for part in self.parts:
            if part in start:
                continue
            for seed in part:
                cluster: tuple[int, ...] = (seed,)
                while len(cluster) < len(part) - 1:
                    near = [r for r in part if r not in cluster and self._meets(cluster, (r,))]
                    if not near:
                        break
                    grown = [
                        _canonical([*(_without(start, (*cluster, r))), (*cluster, r)]) for r in near
                    ]
                    k = max(range(len(near)), key=lambda i: self.promise(grown[i]))
                    cluster = (*cluster, near[k])
                    if self.fits(grown[k]):
                        yield grown[k]

    def _climb(
        self,
        partition: Partition,
        score: Callable[[Partition], Score],
        neighbours: Callable[[Partition], Iterable[Partition]],
    ) -> Partition:
        while True:
            best = max(neighbours(partition), key=score, default=partition)
            if not _better(score(best), score(partition)):
                return partition
            partition = best

    def _neighbours(self, partition: Partition) -> list[Partition]:
        """Partitions one step away that fit: two clusters merged, a rule moved, two exchanged."""
        found = {_canonical(changed) for changed in self._changed(partition)} - {partition}
        return [candidate for candidate in sorted(found) if self.fits(candidate)]

    def _changed(self, partition: Partition) -> Iterator[list[tuple[int, ...]]]:
        for one, other in combinations(partition, 2):
            if not self._meets(one, other):
                continue
            rest = [c for c in partition if c not in (one, other)]
            yield [*rest, (*one, *other)]
            for r in one:
                yield [*rest, _less(one, r), (*other, r)]
            for s in other:
                yield [*rest, (*one, s), _less(other, s)]
            for r in one:
                for s in other:
                    yield [*rest, (*_less(one, r), s), (*_less(other, s), r)]
        for cluster in partition:
            for r in cluster if len(cluster) > 1 else ():
                yield [*(c for c in partition if c != cluster), _less(cluster, r), (r,)]

    def _meets(self, one: Sequence[int], other: Sequence[int]) -> bool:
        return any(frozenset((a, b)) in self.meet for a in one for b in other)


def _canonical(clusters: Iterable[Sequence[int]]) -> Partition:
    return tuple(sorted(tuple(sorted(cluster)) for cluster in clusters if cluster))


def _without(partition: Partition, rules: Sequence[int]) -> list[tuple[int, ...]]:
    return [tuple(r for r in cluster if r not in rules) for cluster in partition]


def _less(cluster: tuple[int, ...], rule: int) -> tuple[int, ...]:
    return tuple(r for r in cluster if r != rule)


def _better(one: Score, other: Score) -> bool:
    """Lexicographically larger by more than rounding errors."""
    if abs(one[0] - other[0]) > TOLERANCES.equal:
        return one[0] > other[0]
    return one[1] > other[1] + TOLERANCES.equal
