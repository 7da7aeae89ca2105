"""Problems larger than the models of the repository, as Pyomo.GDP models with predictions."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
import pyomo.environ as pyo
from pyomo.gdp import Disjunction

import gdpnet


@dataclass(frozen=True)
class Case:
    """A rule model without inputs and predictions to project onto it.

    Attributes:
        name: what it is.
        rules: the rule model.
        yhat: predictions, (samples, d).
        products: number of terms of its disjunctive normal form.
    """

    name: str
    rules: gdpnet.RuleModel
    yhat: np.ndarray
    products: float


def random_rules(samples: int = 20, seed: int = 0) -> Case:
    """d = 20 outputs, 10 rules of 3 disjuncts of 3 dense rows; one point satisfies all rules."""
    d, rules, disjuncts, rows = 20, 10, 3, 3
    rng = np.random.default_rng(seed)
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
    return _case("d = 20, 10 rules x 3 x 3", m, rng.uniform(0, 1, (samples, d)))


def label_groups(samples: int = 20, seed: int = 0) -> Case:
    """d = 100 probabilities; 20 groups that have nearly all or nearly none of the mass."""
    d, rules = 100, 20
    rng = np.random.default_rng(seed)
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(d), bounds=(0, 1))
    m.simplex = pyo.Constraint(expr=sum(m.y.values()) == 1)
    for r in range(rules):
        group = rng.choice(d, size=rng.integers(5, 16), replace=False)
        mass = sum(m.y[int(j)] for j in group)
        m.add_component(f"group{r}", Disjunction(expr=[[mass >= 0.95], [mass <= 0.05]]))
    logits = 2.0 * rng.normal(size=(samples, d))
    yhat = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    return _case("d = 100 simplex, 20 groups", m, yhat)


def job_shop(samples: int = 20, seed: int = 0) -> Case:
    """8 jobs on 3 machines, 35 pairs that must not overlap; start times wished for."""
    rng = np.random.default_rng(seed)
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
    yhat = rng.uniform(0, 0.6 * horizon, (samples, len(operations)))
    return _case("job shop, 35 disjunctions", m, yhat, outputs=[m.start])


def strip_packing(samples: int = 5, seed: int = 0, rectangles: int = 8) -> Case:
    """Rectangles in a strip that must not overlap: 28 disjunctions of 4; positions wished for."""
    rng = np.random.default_rng(seed)
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
    yhat = np.hstack(
        [rng.uniform(0, width - wide, (samples, rectangles)),
         rng.uniform(0, height - high, (samples, rectangles))]
    )  # fmt: skip
    return _case(f"strip packing, {rectangles} rectangles", m, yhat, outputs=[m.x, m.y])


def label_clauses(samples: int = 5, seed: int = 0) -> Case:
    """40 labels, 200 clauses of three literals `label >= 0.5` or `label <= 0.5`."""
    labels, clauses = 40, 200
    rng = np.random.default_rng(seed)
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
    return _case("200 clauses, 40 labels", m, rng.uniform(0, 1, (samples, labels)))


LARGE: list[Callable[[], Case]] = [
    random_rules,
    label_groups,
    job_shop,
    strip_packing,
    label_clauses,
]


def _dot(a: np.ndarray, y: pyo.Var) -> object:
    return sum(float(c) * y[j] for j, c in enumerate(a) if c != 0.0)


def _case(
    name: str, m: pyo.ConcreteModel, yhat: np.ndarray, outputs: list[object] | None = None
) -> Case:
    disjunctions = m.component_data_objects(Disjunction)
    products = float(np.prod([float(len(d.disjuncts)) for d in disjunctions]))
    rules = gdpnet.RuleModel(m, outputs=outputs or [m.y])
    return Case(name, rules, yhat, products)
