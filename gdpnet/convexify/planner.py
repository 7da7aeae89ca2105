"""plan_basic_steps: the answer to the paper's open question which rules to merge."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np

from gdpnet.convexify._products import count_products
from gdpnet.convexify.graph import as_tensors, draw_samples, interaction_graph
from gdpnet.convexify.plan import Plan
from gdpnet.errors import InputError
from gdpnet.rules.model import RuleModel
from gdpnet.solve._arguments import check_choice, check_count

# Samples on which candidate merges are compared.
_MEASURED = 512


def plan_basic_steps(
    rules: RuleModel,
    budget: int = 64,
    x: Any = None,
    samples: Any = None,
    objective: str = "tightness",
) -> Plan:
    """Clusters of rules to merge under a budget of products.

    Rules that interact with each other alone are merged whole where that fits the budget: then the
    relaxation is exact by construction (`plan.exact`). Otherwise the pair of clusters whose merging
    helps most, measured on the samples, is merged, again and again, as long as it fits.

    Args:
        rules: the rules.
        budget: most products (terms of all disjunctions after the basic steps) that a sample may
            have, counted over the active rules; the worst sample counts.
        x: inputs to measure at, `batch x p`; uniform over `input_bounds` where not given.
        samples: predictions to measure at, `batch x d`; uniform over the bounds where not given.
        objective: `"tightness"`: the mean value of the relaxation; `"satisfaction"`: the share of
            samples whose point satisfies all rules.

    Example:
        >>> import gdpnet, pyomo.environ as pyo
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var([1, 2, 3], bounds=(0, 10))
        >>> m.a = gdpnet.rule(gdpnet.any_of(m.y[1] <= 3, m.y[1] >= 7))
        >>> m.b = gdpnet.rule(gdpnet.any_of(m.y[1] + m.y[2] <= 4, m.y[1] + m.y[2] >= 9))
        >>> m.c = gdpnet.rule(gdpnet.any_of(m.y[3] <= 3, m.y[3] >= 7))
        >>> rules = gdpnet.RuleModel(m, outputs=[m.y])
        >>> plan = gdpnet.plan_basic_steps(rules, budget=16)
        >>> plan, plan.exact
        (Plan(a + b), True)
    """
    check_count("budget", budget)
    check_choice("objective", objective, ("tightness", "satisfaction"))
    inputs, predictions = draw_samples(rules, x, samples)
    if not len(inputs):
        raise InputError("x: expected at least one sample, got none.")
    graph = interaction_graph(rules, *_pair(rules, inputs, predictions))
    planner = _Planner(rules, budget, inputs, predictions, graph, objective)
    return planner.plan()


def _pair(rules: RuleModel, x: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
    inputs, predictions = as_tensors(x, y)
    return (inputs if rules.input_names else None), predictions


class _Planner:
    def __init__(
        self,
        rules: RuleModel,
        budget: int,
        x: np.ndarray,
        yhat: np.ndarray,
        graph: nx.Graph[str],
        objective: str,
    ) -> None:
        self.rules, self.budget, self.graph, self.objective = rules, budget, graph, objective
        self.x, self.yhat = _pair(rules, x[:_MEASURED], yhat[:_MEASURED])
        active = rules.active(as_tensors(x, yhat)[0] if rules.input_names else None)
        self.patterns = np.unique(active.reshape(-1, len(rules.names)).numpy(), axis=0)
        self.clusters: list[tuple[str, ...]] = [(name,) for name in rules.names]

    def plan(self) -> Plan:
        parts = sorted(nx.connected_components(self.graph), key=len)
        for part in parts:
            whole = [tuple(name for name in self.rules.names if name in part)]
            others = [c for c in self.clusters if c[0] not in part]
            if len(part) > 1 and self.products([*others, *whole]) <= self.budget:
                self.clusters = [*others, *whole]
        while True:
            best = self._best_merge()
            if best is None:
                break
            self.clusters = best
        merged = tuple(sorted(c for c in self.clusters if len(c) > 1))
        exact = all(any(part <= set(c) for c in self.clusters) for part in parts)
        return Plan(merged, exact=exact)

    def products(self, clusters: list[tuple[str, ...]]) -> int:
        """Products of the worst pattern of active rules."""
        place = {name: r for r, name in enumerate(self.rules.names)}
        worst = 0
        for active in self.patterns:
            total = 0
            for cluster in clusters:
                on = [place[name] for name in cluster if active[place[name]]]
                total += count_products(self.rules.data, on) if on else 0
            worst = max(worst, total)
        return worst

    def _best_merge(self) -> list[tuple[str, ...]] | None:
        base = self._score(self.clusters)
        best, chosen = base + 1e-9, None
        for one, other in combinations(self.clusters, 2):
            if not any(self.graph.has_edge(a, b) for a in one for b in other):
                continue
            together = tuple(name for name in self.rules.names if name in (*one, *other))
            candidate = [c for c in self.clusters if c not in (one, other)] + [together]
            if self.products(candidate) > self.budget:
                continue
            score = self._score(candidate)
            if score > best:
                best, chosen = score, candidate
        return chosen

    def _score(self, clusters: list[tuple[str, ...]]) -> float:
        from gdpnet.solve import Status, project

        plan = Plan(tuple(c for c in clusters if len(c) > 1))
        found = project(self.rules, self.yhat, self.x, relaxation=plan)
        if self.objective == "tightness":
            finite = found.value.isfinite()
            return float(found.value[finite].mean()) if finite.any() else 0.0
        return float((found.status <= Status.PROJECTED).double().mean())
