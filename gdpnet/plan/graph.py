"""The rule-interaction graph: which rules have to do with each other, and how much."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np

from gdpnet.errors import InputError, RuleError
from gdpnet.ir.batch import as_array, as_batch
from gdpnet.ir.interaction import columns_of, neighbours
from gdpnet.ir.rules import Rules
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.plan._sampled import Sampled

SAMPLES = 200
"""Samples drawn where none are given."""


def interaction_graph(rules: Rules, yhat: Any = None, x: Any = None) -> nx.Graph[str]:
    """Rules as nodes, interactions as edges with the evidence for them.

    Attributes of nodes: `disjuncts` and `rows` (how many), `outputs` (names of those it
    constrains), `active` (share of the samples it applies to).

    There is an edge between rules that have to do with each other: through a variable of both,
    through global constraints that link their variables, or through logic that names their
    indicators. Its attributes:

    - `shared`: variables both have; none where they meet through global constraints or logic;
    - `together`: share of the samples in which both are active (hot and cold never meet);
    - `empty`: share of their pairs of disjuncts that no output satisfies;
    - `gain`: what a basic step on the two brings: by how much merging them raises the value of the
      relaxation of the two alone, mean over the samples in which both are active; None where it
      cannot be measured, because a variable has no bounds and so there is no hull;
    - `weight`: gain times together.

    The graph's own attribute `samples` is the number of samples.

    All attributes are plain Python values, so a graph goes through JSON unchanged:
    `json.dumps(networkx.node_link_data(graph, edges="edges"))`, and back by
    `networkx.node_link_graph(json.loads(text), edges="edges")`.

    Args:
        rules: the rules.
        yhat: predictions to measure at, `batch x d`; uniform over the bounds where not given.
        x: inputs to measure at, `batch x p`; uniform over `input_bounds` where not given.

    Returns:
        A networkx Graph whose nodes are the names of the rules; `plot_rule_graph` draws it.

    Example:
        >>> import gdpnet, pyomo.environ as pyo
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var([1, 2, 3], bounds=(0, 10))
        >>> m.a = gdpnet.rule(gdpnet.any_of(m.y[1] <= 3, m.y[1] >= 7))
        >>> m.b = gdpnet.rule(gdpnet.any_of(m.y[1] + m.y[2] <= 4, m.y[1] + m.y[2] >= 9))
        >>> m.c = gdpnet.rule(gdpnet.any_of(m.y[3] <= 3, m.y[3] >= 7))
        >>> graph = gdpnet.plan.interaction_graph(gdpnet.RuleModel(m, outputs=[m.y]))
        >>> sorted(graph.edges)
        [('a', 'b')]
    """
    return graph_of(Sampled(rules, *draw_samples(rules, yhat, x)))


def graph_of(sampled: Sampled) -> nx.Graph[str]:
    """The graph of rules measured at samples."""
    rules, active, data = sampled.rules, sampled.active, sampled.rules.data
    graph: nx.Graph[str] = nx.Graph(samples=len(active))
    columns = [columns_of(data, r) for r in range(len(rules.names))]
    for r, name in enumerate(rules.names):
        graph.add_node(
            name,
            disjuncts=len(data.clauses[data.rules[r].clause].literals),
            rows=len(data.rows_below(data.rules[r].clause)),
            outputs=[data.columns[j].name for j in sorted(columns[r]) if j < data.outputs],
            active=float(active[:, r].mean()) if len(active) else 0.0,
        )
    related = neighbours(data)
    for one, other in combinations(range(len(rules.names)), 2):
        if not related[one, other]:
            continue
        both = np.flatnonzero(active[:, one] & active[:, other])
        together = len(both) / max(1, len(active))
        gain = _gain(sampled, one, other, both)
        graph.add_edge(
            rules.names[one],
            rules.names[other],
            shared=[data.columns[j].name for j in sorted(columns[one] & columns[other])],
            together=together,
            empty=sampled.empty_pairs(one, other, both) if len(both) else 0.0,
            gain=gain,
            weight=(gain or 0.0) * together,
        )
    return graph


def _gain(sampled: Sampled, one: int, other: int, both: np.ndarray) -> float | None:
    """By how much merging two rules raises the value of their relaxation, where both are active."""
    merged = sampled.distance((one, other))[both]
    # The relaxation's value is at least either rule's distance: most samples need no program.
    least = np.maximum(sampled.distance((one,)), sampled.distance((other,)))[both]
    finite = np.isfinite(merged)
    open_ = np.flatnonzero(finite & (merged > least + TOLERANCES.equal))
    if not len(open_):
        return 0.0
    try:
        value = sampled.pair_value(one, other, both[open_])
    except RuleError:
        return None
    return float(np.maximum(merged[open_] - value, 0.0).sum() / finite.sum())


def draw_samples(rules: Rules, yhat: Any, x: Any) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and predictions to measure at, each checked or drawn."""
    d = len(rules.output_names)
    if yhat is not None:
        batch = as_batch(x, yhat, rules.input_names, rules.output_names, y_name="yhat")
        return as_array(batch.x).copy(), as_array(batch.y).copy()
    rng = np.random.default_rng(0)
    if x is not None:
        batch = as_batch(x, None, rules.input_names, rules.output_names, inputs_only=True)
        inputs = as_array(batch.x).copy()
    else:
        low, high = np.array(rules.data.input_bounds).reshape(-1, 2).T
        if not np.isfinite([low, high]).all():
            raise InputError(
                "x: the inputs have no finite input_bounds to draw from. Pass x, or give the "
                "Rules input_bounds."
            )
        inputs = rng.uniform(low, high, (SAMPLES, len(low)))
    lower, upper = rules.lower.numpy(), rules.upper.numpy()
    if not np.isfinite([lower, upper]).all():
        raise InputError(
            "yhat: an output has no finite bounds to draw predictions from. Pass predictions."
        )
    return inputs, rng.uniform(lower, upper, (len(inputs), d))
