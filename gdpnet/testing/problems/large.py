"""Problems of the size that benchmarks need; drawn from a seed, the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.gdp import Disjunction

from gdpnet.testing._problem import Problem, samples

Array = np.ndarray
Drawn = tuple[pyo.ConcreteModel, Callable[[int], Array]]
"""A model, and what draws so many predictions, (samples, d)."""


def _large(draw: Callable[[np.random.Generator], Drawn]) -> Callable[..., Problem]:
    """What makes the problem: its model and then its predictions are drawn from one stream."""

    @wraps(draw)
    def made(count: int = 5, seed: int = 0) -> Problem:
        def drawn() -> Drawn:
            return draw(np.random.default_rng(seed))

        model, predictions = drawn()
        outputs = tuple(var.name for var in model.component_objects(pyo.Var, descend_into=False))
        yhat = samples(*predictions(count).tolist())
        return Problem(draw.__name__, lambda: drawn()[0], yhat, outputs)

    return made


@_large
def dense_rules(rng: np.random.Generator) -> Drawn:
    """20 outputs, 10 rules of 3 disjuncts of 3 dense rows; one point satisfies all rules."""
    d, rules, disjuncts, rows = 20, 10, 3, 3
    inside = rng.uniform(0.2, 0.8, d)
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(d), bounds=(0, 1))
    for r in range(rules):
        terms = []
        for k in range(disjuncts):
            centre = inside if k == 0 else rng.uniform(0, 1, d)
            a = rng.normal(size=(rows, d)) * (rng.random((rows, d)) < 0.4)
            b = a @ centre - 0.05
            terms.append([_dot(a[i], m.y) <= float(b[i]) for i in range(rows)])
        m.add_component(f"rule{r}", Disjunction(expr=terms))
    return m, lambda count: rng.uniform(0, 1, (count, d))


@_large
def label_groups(rng: np.random.Generator) -> Drawn:
    """100 probabilities; 20 groups that have nearly all or nearly none of the mass."""
    d, rules = 100, 20
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(d), bounds=(0, 1))
    m.simplex = pyo.Constraint(expr=sum(m.y.values()) == 1)
    for r in range(rules):
        group = rng.choice(d, size=rng.integers(5, 16), replace=False)
        mass = sum(m.y[int(j)] for j in group)
        m.add_component(f"group{r}", Disjunction(expr=[[mass >= 0.95], [mass <= 0.05]]))

    def softmax(count: int) -> Array:
        logits = 2.0 * rng.normal(size=(count, d))
        return np.exp(logits) / np.exp(logits).sum(1, keepdims=True)

    return m, softmax


@_large
def job_shop(rng: np.random.Generator) -> Drawn:
    """8 jobs on 3 machines, 35 pairs that must not overlap; start times wished for."""
    machines = [list(range(8)), [0, 2, 4, 6], [1, 5]]
    operations = [(machine, job) for machine, jobs in enumerate(machines) for job in jobs]
    length = {op: float(rng.integers(2, 9)) for op in operations}
    horizon = sum(length[op] for op in operations)
    m = pyo.ConcreteModel()
    m.start = pyo.Var(operations, bounds=(0, horizon))
    m.order = pyo.ConstraintList()
    for job in range(8):
        route = [op for op in operations if op[1] == job]
        for before, after in pairwise(route):
            m.order.add(m.start[after] >= m.start[before] + length[before])
    for machine, jobs in enumerate(machines):
        for i, j in combinations(jobs, 2):
            a, b = (machine, i), (machine, j)
            first = m.start[a] + length[a] <= m.start[b]
            second = m.start[b] + length[b] <= m.start[a]
            name = f"machine{machine}_{i}_{j}"
            m.add_component(name, Disjunction(expr=[[first], [second]]))
    return m, lambda count: rng.uniform(0, 0.6 * horizon, (count, len(operations)))


@_large
def strip_packing(rng: np.random.Generator) -> Drawn:
    """8 rectangles in a strip that must not overlap: 28 disjunctions of 4; positions wished for."""
    rectangles = 8
    wide, high = rng.uniform(1, 4, rectangles), rng.uniform(1, 4, rectangles)
    width, height = 10.0, 12.0
    m = pyo.ConcreteModel()
    index = range(rectangles)
    m.x = pyo.Var(index, bounds=lambda m, i: (0, width - wide[i]))
    m.y = pyo.Var(index, bounds=lambda m, i: (0, height - high[i]))
    for i, j in combinations(index, 2):
        apart = [
            [m.x[i] + wide[i] <= m.x[j]],
            [m.x[j] + wide[j] <= m.x[i]],
            [m.y[i] + high[i] <= m.y[j]],
            [m.y[j] + high[j] <= m.y[i]],
        ]
        m.add_component(f"apart_{i}_{j}", Disjunction(expr=apart))

    def positions(count: int) -> Array:
        across = rng.uniform(0, width - wide, (count, rectangles))
        return np.hstack([across, rng.uniform(0, height - high, (count, rectangles))])

    return m, positions


@_large
def label_clauses(rng: np.random.Generator) -> Drawn:
    """40 labels, 200 clauses of three literals `label >= 0.5` or `label <= 0.5`."""
    labels, clauses = 40, 200
    truth = rng.random(labels) < 0.5  # satisfies every clause, so that there is a solution
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(labels), bounds=(0, 1))
    count = 0
    while count < clauses:
        chosen = rng.choice(labels, size=3, replace=False)
        positive = rng.random(3) < 0.5
        if not (truth[chosen] == positive).any():
            continue
        literals = [
            [m.y[int(j)] >= 0.5] if p else [m.y[int(j)] <= 0.5]
            for j, p in zip(chosen, positive, strict=True)
        ]
        m.add_component(f"clause{count}", Disjunction(expr=literals))
        count += 1
    return m, lambda count: rng.uniform(0, 1, (count, labels))


LARGE = (dense_rules, label_groups, job_shop, strip_packing, label_clauses)
"""Each makes its problem, with so many samples, of a seed."""


def _dot(a: Array, y: pyo.Var) -> Any:
    return sum(float(c) * y[j] for j, c in enumerate(a) if c != 0.0)
