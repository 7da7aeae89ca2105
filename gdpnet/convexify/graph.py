"""The rule-interaction graph: which rules have to do with each other, and how much."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import torch

from gdpnet.convexify._lifted import LiftedProgram
from gdpnet.errors import InputError
from gdpnet.rules._batch import as_batch
from gdpnet.rules._data import RuleData
from gdpnet.rules.model import RuleModel

if TYPE_CHECKING:
    from gdpnet.solve.exact import ExactEngine, Instance

SAMPLES = 200
"""Samples drawn where none are given."""


def interaction_graph(rules: RuleModel, x: Any = None, samples: Any = None) -> nx.Graph[str]:
    """Rules as nodes, interactions as edges with the evidence for them.

    Node attributes: `disjuncts`, `rows`, `outputs` (names of the variables in it), `active` (share
    of the samples it applies to). There is an edge between rules that share a variable, directly or
    through global constraints and logic; its attributes: `shared` (variables both have), `together`
    (share of the samples in which both are active; hot and cold never meet), `empty` (share of
    their pairs of disjuncts that no output satisfies), `gain` (by how much merging the two raises
    the value of the relaxation of the two alone, mean over the samples in which both are active),
    `weight` (gain times together).

    Args:
        rules: the rules.
        x: inputs to measure at, `batch x p`; uniform over `input_bounds` where not given.
        samples: predictions to measure at, `batch x d`; uniform over the bounds where not given.

    Returns:
        A networkx Graph; `networkx.node_link_data` makes JSON of it.

    Example:
        >>> import gdpnet, pyomo.environ as pyo
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var([1, 2, 3], bounds=(0, 10))
        >>> m.a = gdpnet.rule(gdpnet.any_of(m.y[1] <= 3, m.y[1] >= 7))
        >>> m.b = gdpnet.rule(gdpnet.any_of(m.y[1] + m.y[2] <= 4, m.y[1] + m.y[2] >= 9))
        >>> m.c = gdpnet.rule(gdpnet.any_of(m.y[3] <= 3, m.y[3] >= 7))
        >>> graph = gdpnet.interaction_graph(gdpnet.RuleModel(m, outputs=[m.y]))
        >>> sorted(graph.edges)
        [('a', 'b')]
    """
    from gdpnet.solve._exact import engine_of

    inputs, predictions = draw_samples(rules, x, samples)
    engine = engine_of(rules)
    instance = engine.instantiate(inputs)
    active = instance.active[:, engine.rule_clauses]
    data = rules.data
    graph: nx.Graph[str] = nx.Graph()
    columns = [_columns(data, r) for r in range(len(rules.names))]
    for r, name in enumerate(rules.names):
        graph.add_node(
            name,
            disjuncts=len(data.clauses[data.rules[r].clause].literals),
            rows=len(data.rows_below(data.rules[r].clause)),
            outputs=tuple(data.columns[j].name for j in sorted(columns[r])),
            active=float(active[:, r].mean()) if len(active) else 0.0,
        )
    related = _related(data, columns)
    for one, other in combinations(range(len(rules.names)), 2):
        if not related[one, other]:
            continue
        both = np.flatnonzero(active[:, one] & active[:, other])
        empty, gain = _measure(engine, instance.take(both), predictions[both], one, other)
        together = len(both) / max(1, len(active))
        shared = sorted(columns[one] & columns[other])
        graph.add_edge(
            rules.names[one],
            rules.names[other],
            shared=tuple(data.columns[j].name for j in shared),
            together=together,
            empty=empty,
            gain=gain,
            weight=gain * together,
        )
    return graph


def draw_samples(rules: RuleModel, x: Any, samples: Any) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and predictions to measure at, each checked or drawn."""
    d = len(rules.output_names)
    if samples is not None:
        batch = as_batch(x, samples, rules.input_names, rules.output_names, y_name="samples")
        return batch.x.numpy().copy(), batch.y.numpy().copy()
    rng = np.random.default_rng(0)
    if x is not None:
        batch = as_batch(x, None, rules.input_names, rules.output_names, inputs_only=True)
        inputs = np.ascontiguousarray(batch.x.numpy())
    else:
        low, high = np.array(rules.data.input_bounds).reshape(-1, 2).T
        if not np.isfinite([low, high]).all():
            raise InputError(
                "x: the inputs have no finite input_bounds to draw from. Pass x, or give the "
                "RuleModel input_bounds."
            )
        inputs = rng.uniform(low, high, (SAMPLES, len(low)))
    lower, upper = rules.lower.numpy(), rules.upper.numpy()
    if not np.isfinite([lower, upper]).all():
        raise InputError(
            "samples: an output has no finite bounds to draw predictions from. Pass samples."
        )
    return inputs, rng.uniform(lower, upper, (len(inputs), d))


def _columns(data: RuleData, rule: int) -> set[int]:
    return {
        column
        for row in data.rows_below(data.rules[rule].clause)
        for column, _ in data.rows[row].terms
    }


def _related(data: RuleData, columns: list[set[int]]) -> np.ndarray:
    """Which rules are connected through variables, global rows and logic, bool `rules x rules`."""
    links: nx.Graph[Any] = nx.Graph()
    links.add_nodes_from(range(len(columns)))
    for r, own in enumerate(columns):
        links.add_edges_from((r, ("column", j)) for j in own)
    for i in data.global_rows:
        nx.add_path(links, [("column", j) for j, _ in data.rows[i].terms])
    owner = {
        literal: r
        for r, rule in enumerate(data.rules)
        for k in data.subtree(rule.clause)
        for literal in data.clauses[k].literals
    }
    for k, clause in enumerate(data.clauses):
        if clause.logic:
            for literal in clause.literals:
                links.add_edge(("clause", k), ("boolean", abs(literal)))
                if abs(literal) in owner:
                    links.add_edge(("boolean", abs(literal)), owner[abs(literal)])
    related = np.zeros((len(columns), len(columns)), dtype=bool)
    for part in nx.connected_components(links):
        members = [node for node in part if isinstance(node, int)]
        related[np.ix_(members, members)] = True
    return related


def _measure(
    engine: ExactEngine, instance: Instance, yhat: np.ndarray, one: int, other: int
) -> tuple[float, float]:
    """Share of empty pairs of disjuncts, and the gain of merging, of two rules alone."""
    from gdpnet.solve._results import Options
    from gdpnet.solve.exact import products_within
    from gdpnet.solve.exact._linear import DenseSolver

    rules, data = engine.rules, engine.data
    if not len(yhat) or not all(
        math.isfinite(c.lower + c.upper) and not c.integer for c in data.columns
    ):
        return 0.0, 0.0
    own = {k for r in (one, other) for k in data.subtree(data.rules[r].clause)}
    alone = np.zeros_like(instance.active)
    alone[:, sorted(own)] = instance.active[:, sorted(own)]
    pair = type(instance)(alone, instance.bound, instance.varying)
    weights = np.ones(len(rules.output_names))
    exact = engine.project(pair, yhat, Options(weights, tolerance=0.0)).distance
    pattern = alone[0]
    program = LiftedProgram(rules, [[one], [other]], pattern.tolist(), weights)
    same = np.flatnonzero((alone == pattern).all(1))
    start = np.clip(yhat, rules.lower.numpy(), rules.upper.numpy())
    moving = program.moving_values(pair.bound, pair.varying, start)[same]
    points, outcome = DenseSolver(program).solve(moving)
    value = program.value_of(points) + np.abs(start - yhat)[same].sum(1)
    good = (outcome == 0) & np.isfinite(exact[same])
    gain = float(np.maximum(exact[same] - value, 0.0)[good].mean()) if good.any() else 0.0
    pairs = math.prod(len(data.clauses[data.rules[r].clause].literals) for r in (one, other))
    few = pair.take(np.arange(min(8, len(yhat))))
    reach = np.full((len(engine.components), len(few.bound)), np.inf)
    counts = np.ones(len(few.bound))
    for listed in products_within(engine, few, yhat[: len(few.bound)], weights, reach, 1 + pairs):
        counts *= np.maximum(listed.count, 0)
    return float(np.clip(1.0 - counts / pairs, 0.0, 1.0).mean()), gain


def neighbours(rules: RuleModel) -> np.ndarray:
    """Which rules interact, bool `rules x rules`."""
    data = rules.data
    return _related(data, [_columns(data, r) for r in range(len(rules.names))])


def as_tensors(x: np.ndarray, y: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """Arrays of samples as tensors."""
    return torch.from_numpy(x), torch.from_numpy(y)
