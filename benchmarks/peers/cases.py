"""The rules that everybody is measured on, as plain arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.optimize import linprog

import gdpnet
from gdpnet.bio import marker_rules
from gdpnet.ir.instance import Instance
from gdpnet.relaxation.feasibility import FeasibilityCheck
from gdpnet.relaxation.layouts import Layouts
from gdpnet.relaxation.products import products
from gdpnet.solve.exact.backend import engine_of
from gdpnet.study import load_model
from gdpnet.testing.problems.large import dense_rules, label_groups

from .columns import TABLES
from .problem import Array, Part, Problem, Samples

MODELS = Path(__file__).parents[2] / "models"
MOST_PRODUCTS = 2048
TIES = 32
STRESS = tuple(range(1, 11))


def names() -> list[str]:
    """All cases, in the order they are run."""
    single = ["cooling", "cooling, 4 rules", "pbmc", "pbmc, 2 rules"]
    more = ["cooling, l2", "pbmc, l2", *TABLES]
    return [*single, *(f"stress {k}" for k in STRESS), "random 20", "groups 100", *more]


def family(name: str) -> str:
    """What a case asks for, and so whom: "l1", "l2", or the rules of "tables"."""
    return "tables" if name in TABLES else "l2" if name.endswith(", l2") else "l1"


def rules_of(source: tuple[str, dict[str, Any]]) -> gdpnet.RuleModel:
    """The rules of a case."""
    name, options = source
    if name in TABLES:
        return TABLES[name].rules()
    if name in ("cooling", "stress"):
        return load_model(MODELS / name).build(**options)
    return {"pbmc": _marker_rules, "random": _random_rules, "groups": _group_rules}[name]()


def make(name: str, count: int, seed: int = 0, bare: bool = False) -> Problem:
    """A case with random predictions and, where there are some, exact ties.

    Args:
        name: one of `names()`.
        count: number of random predictions.
        seed: of the predictions.
        bare: no ties and no programs.
    """
    if name in TABLES:
        return _table(name, count, seed)
    if family(name) == "l2":
        return replace(make(name.removesuffix(", l2"), count, seed, bare), norm="l2", ties=None)
    if name.startswith("cooling"):
        return _cooling(name, count, seed, bare)
    if name.startswith("pbmc"):
        return _pbmc(name, count, seed, bare)
    if name.startswith("stress"):
        return _stress(name, int(name.split()[1]), count, seed, bare)
    made = dense_rules(count) if name == "random 20" else label_groups(count)
    source = ("random" if name == "random 20" else "groups", {})
    yhat = made.yhat.numpy()
    return _problem(name, source, made.rules(), np.zeros((count, 0)), yhat, bare=bare)


# ---- the cases ----------------------------------------------------------------------------------


def _cooling(name: str, count: int, seed: int, bare: bool) -> Problem:
    """Half of the inputs shifted; or those with the most frequent set of four active rules."""
    model = load_model(MODELS / "cooling")
    rules = model.build()
    rng = np.random.default_rng(seed)
    many = count if name == "cooling" else 40_000
    halves = [model.sample(many // 2 + 1, split=s, seed=5 + seed)[0] for s in ("iid", "ood")]
    x = torch.stack(halves, 1).flatten(0, 1)[:many].numpy()
    if name != "cooling":
        x = x[_most_frequent(rules.active(torch.from_numpy(x)).numpy(), 4)][:count]
    yhat = rng.uniform(0, 1, (len(x), 3))
    near = x[rng.integers(0, len(x), 4 * TIES)]
    return _problem(name, ("cooling", {}), rules, x, yhat, near, rng, bare)


def _stress(name: str, k: int, count: int, seed: int, bare: bool) -> Problem:
    model = load_model(MODELS / "stress")
    rules = model.build(k=k)
    rng = np.random.default_rng([seed, k])
    x = model.module.sample(count, split="iid", seed=seed, k=k)[0].numpy()
    yhat = rng.uniform(0, 1, (count, len(rules.output_names)))
    near = x[rng.integers(0, len(x), 4 * TIES)] if k in (4, 10) else None
    return _problem(name, ("stress", {"k": k}), rules, x, yhat, near, rng, bare)


def _pbmc(name: str, count: int, seed: int, bare: bool) -> Problem:
    """Expression such that a marker is high in a quarter of the cells; no contradictory cell."""
    rules = _marker_rules()
    rng = np.random.default_rng(seed)
    many = 4 * (count + TIES) if name == "pbmc" else 40_000
    x = rng.normal(-0.67, 1.0, (many, len(rules.input_names)))
    logits = 2.0 * rng.normal(size=(len(x), len(rules.output_names)))
    yhat = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    status = gdpnet.project(rules, _tensor(yhat), _tensor(x)).status
    chosen = np.flatnonzero(status.numpy() != int(gdpnet.Status.CONFLICT))
    if name != "pbmc":
        chosen = chosen[_most_frequent(rules.active(_tensor(x[chosen])).numpy(), 2)]
    random, near = chosen[:count], chosen[count : count + 4 * TIES]
    return _problem(name, ("pbmc", {}), rules, x[random], yhat[random], x[near], rng, bare)


def _table(name: str, count: int, seed: int) -> Problem:
    """Rules of a table; nobody who is asked about them writes programs."""
    columns = TABLES[name]
    yhat = columns.predictions(count, np.random.default_rng(seed))
    made = _problem(name, (name, {}), columns.rules(), np.zeros((count, 0)), yhat, bare=True)
    return replace(made, weights=1.0 / columns.scale())


def _most_frequent(active: Array, count: int) -> Array:
    """Samples with the most frequent set of so many active rules."""
    sets, which, counts = np.unique(active, axis=0, return_inverse=True, return_counts=True)
    counts[sets.sum(1) != count] = 0
    return np.flatnonzero(which.ravel() == counts.argmax())


def _marker_rules() -> gdpnet.RuleModel:
    """The loose rules of models/pbmc, which needs the cells only to know their genes."""
    module = load_model(MODELS / "pbmc").module
    rules: gdpnet.RuleModel = marker_rules(
        module.RULE_SETS["C"].markers, module.CLASSES, tau=None, rho=module.RHO
    ).rules
    return rules


def _random_rules() -> gdpnet.RuleModel:
    return dense_rules(1).rules()


def _group_rules() -> gdpnet.RuleModel:
    return label_groups(1).rules()


# ---- to plain arrays ----------------------------------------------------------------------------


def _problem(
    name: str,
    source: tuple[str, dict[str, Any]],
    rules: gdpnet.RuleModel,
    x: Array,
    yhat: Array,
    near: Array | None = None,
    rng: Any = None,
    bare: bool = False,
) -> Problem:
    """The case of a rule model; `near` are inputs for which ties are looked for."""
    data, engine = rules.data, engine_of(rules)
    if len(data.columns) != data.outputs or len(rules.table.varying):
        raise ValueError("peers are written for rules with fixed coefficients, no auxiliaries")
    clauses: dict[bytes, tuple[int, Array]] = {}

    def samples(x: Array, yhat: Array) -> Samples:
        instance = Instance.of(rules, np.ascontiguousarray(x))
        pattern = np.array(
            [clauses.setdefault(on.tobytes(), (len(clauses), on))[0] for on in instance.active]
        )
        return Samples(x, yhat, instance.bound, instance.active[:, engine.rule_clauses], pattern)

    def clause_of(pattern: int) -> Array:
        return list(clauses.values())[pattern][1]

    random = samples(x, yhat)
    disjuncts = tuple(
        tuple(data.booleans[n - 1].true_rows for n in data.clauses[rule.clause].literals)
        for rule in data.rules
    )
    made = Problem(
        name=name,
        source=source,
        matrix=rules.table.shared.numpy().copy(),
        equality=np.array([row.equality for row in data.rows]),
        moving=np.array([bool(row.bound.atoms) for row in data.rows]),
        lower=rules.lower.numpy().copy(),
        upper=rules.upper.numpy().copy(),
        always=tuple(data.global_rows),
        rules=disjuncts,
        random=random,
        ties=None if near is None or bare else _ties(rules, samples, clause_of, near, rng),
    )
    if bare:
        return made
    patterns = [on for _, on in clauses.values()]
    for form, parts in _FORMS.items():
        too_many = _largest(disjuncts, engine.rule_clauses, patterns) > MOST_PRODUCTS
        if too_many and form != "cnf":
            made.forms[form] = None
        else:
            made.forms[form] = [parts(rules, on) for on in patterns]
    return made


def _largest(disjuncts: tuple[Any, ...], rule_clauses: Array, patterns: list[Array]) -> int:
    sizes = [len(rule) for rule in disjuncts]
    return max(
        math.prod(n for n, on in zip(sizes, pattern[rule_clauses], strict=True) if on)
        for pattern in patterns
    )


_KEPT: dict[int, tuple[gdpnet.RuleModel, Layouts, FeasibilityCheck]] = {}


def _tools(rules: gdpnet.RuleModel) -> tuple[Layouts, FeasibilityCheck]:
    if id(rules) not in _KEPT:
        _KEPT.clear()
        _KEPT[id(rules)] = (
            rules,
            Layouts(rules),
            FeasibilityCheck(rules.data, rules.data.input_bounds),
        )
    return _KEPT[id(rules)][1:]


def _written(rules: gdpnet.RuleModel, on: Array, plan: Any, pruned: bool) -> tuple[Part, ...]:
    layouts, _ = _tools(rules)
    found = layouts.listed[layouts.planned(plan, on, pruned)]
    return tuple(
        Part(p.columns, p.rows, tuple(tuple(q.rows for q in b.products) for b in p.blocks))
        for p in found
    )


def _components(rules: gdpnet.RuleModel, on: Array) -> tuple[Part, ...]:
    """Parts as the exact engine has them: what may hang together, whatever rules are active."""
    data = rules.data
    _, feasibility = _tools(rules)
    found = []
    for component in engine_of(rules).components:
        own, rows = set(component.clauses.tolist()), set(component.rows.tolist())
        active = [r for r, rule in enumerate(data.rules) if rule.clause in own and on[rule.clause]]
        terms = products(data, active, on.tolist(), feasibility=feasibility)
        always = tuple(i for i in data.global_rows if i in rows)
        block = tuple(term.rows for term in terms)
        found.append(Part(tuple(component.columns.tolist()), always, (block,)))
    return tuple(found)


_FORMS: dict[str, Callable[[gdpnet.RuleModel, Array], tuple[Part, ...]]] = {
    "dnf": lambda rules, on: _written(rules, on, None, True),
    "full": lambda rules, on: _written(rules, on, None, False),
    "cnf": lambda rules, on: _written(rules, on, gdpnet.Plan.cnf(), True),
    "qp": _components,
}


# ---- ties ---------------------------------------------------------------------------------------


def candidates(
    rules: gdpnet.RuleModel, active: Array, bound: Array, x: Array, rng: np.random.Generator
) -> Array:
    """Predictions, (n, d), that are likely to be ties.

    Uniform on a simplex; or as far from one disjunct of a rule as from the other, and otherwise
    feasible.
    """
    matrix, d = rules.table.shared.numpy(), len(rules.output_names)
    if any(row.equality for row in rules.data.rows):
        return np.full((len(x), d), 1.0 / d)
    inside = gdpnet.project(rules, torch.from_numpy(rng.random((len(x), d))), _tensor(x)).y
    yhat = inside.numpy().copy()
    ways = [_pair(rules, r) for r in range(len(rules.names))]
    for s in range(len(x)):
        pairs = [pair for r in np.flatnonzero(active[s]) if (pair := ways[r]) is not None]
        if pairs:
            step = rng.integers(1, 9) / 64
            for i, j in pairs[rng.integers(len(pairs))]:
                yhat[s, j] = bound[s, i] / matrix[i, j] + np.sign(matrix[i, j]) * step
    return yhat


def _ties(
    rules: gdpnet.RuleModel,
    samples: Callable[[Array, Array], Samples],
    clauses: Callable[[int], Array],
    x: Array,
    rng: np.random.Generator,
) -> Samples:
    """Predictions with two nearest points between which a rule is broken.

    Linear programs of all products tell which of the candidates are ties.
    """
    some = samples(x, np.zeros((len(x), len(rules.output_names))))
    some.yhat[:] = candidates(rules, some.active, some.bound, x, rng)
    kept: list[int] = []
    for s in range(len(x)):
        if len(kept) < TIES and _tied(rules, clauses(some.pattern[s]), some, s):
            kept.append(s)
    index = np.array(kept, dtype=int)
    return samples(some.x[index], some.yhat[index])


def _tensor(x: Array) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(x))


def _pair(rules: gdpnet.RuleModel, rule: int) -> list[tuple[int, int]] | None:
    """Row and output of both disjuncts, where a rule has two that bound one output each."""
    data, matrix = rules.data, rules.table.shared.numpy()
    literals = data.clauses[data.rules[rule].clause].literals
    rows = [i for n in literals for i in data.booleans[n - 1].true_rows]
    entries = [(i, j) for i in rows for j in np.flatnonzero(matrix[i])]
    apart = len(literals) == len(rows) == len(entries) == len({j for _, j in entries}) == 2
    return entries if apart else None


def _tied(rules: gdpnet.RuleModel, on: Array, samples: Samples, s: int) -> bool:
    (part,) = _components(rules, on)
    found = [_nearest(rules, [*part.rows, *rows], samples, s) for rows in part.blocks[0]]
    found = [nearest for nearest in found if nearest is not None]
    if not found:
        return False
    least = min(value for value, _ in found)
    best = [y for value, y in found if value < least + 1e-12]
    between = [(one + other) / 2 for one, other in combinations(best, 2)]
    if not between:
        return False
    x = _tensor(np.repeat(samples.x[s : s + 1], len(between), axis=0))
    return bool((rules.violation(torch.from_numpy(np.array(between)), x) > 1e-3).any())


def _nearest(
    rules: gdpnet.RuleModel, rows: list[int], samples: Samples, s: int
) -> tuple[float, Array] | None:
    """Distance to, and nearest point of, one product."""
    matrix, d = rules.table.shared.numpy(), samples.yhat.shape[1]
    equal = np.array([rules.data.rows[i].equality for i in rows], dtype=bool)
    index, eye, zero = np.array(rows, dtype=int), np.eye(d), np.zeros((len(rows), d))
    both = np.hstack([matrix[index], zero])
    less = np.vstack([both[~equal], np.hstack([eye, -eye]), np.hstack([-eye, -eye])])
    yhat = samples.yhat[s]
    right = samples.bound[s, index]
    answer = linprog(
        np.r_[np.zeros(d), np.ones(d)],
        A_ub=less,
        b_ub=np.r_[right[~equal], yhat, -yhat],
        A_eq=both[equal] if equal.any() else None,
        b_eq=right[equal] if equal.any() else None,
        bounds=[*zip(rules.lower.numpy(), rules.upper.numpy(), strict=True), *[(0, None)] * d],
    )
    return (answer.fun, answer.x[:d]) if answer.status == 0 else None
