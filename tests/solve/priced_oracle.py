"""Random rules with prices, and what they cost by means that share nothing with gdpnet.

A model is written down three times from the same lists: as Pyomo model, as mixed-integer program
(HiGHS by scipy; a binary for each disjunct, and one more for each rule that may be broken), and as
an enumeration of all choices with a quadratic program of DAQP each.

    .venv/bin/python -m tests.solve.priced_oracle 5000
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import daqp
import numpy as np
import pyomo.environ as pyo
import torch
from pyomo.gdp import Disjunct, Disjunction
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

import gdpnet

REACH = 10.0
INF = float("inf")
Row = tuple[tuple[float, ...], str, float]  # coefficients, sense, right side


@dataclass
class Term:
    """A disjunct: rows, its price, and at most one rule inside."""

    rows: list[Row]
    price: float = 0.0
    inner: Rule | None = None


@dataclass
class Rule:
    """Disjuncts, and what breaking it costs; None for a hard one."""

    terms: list[Term]
    price: float | None = None


@dataclass
class Option:
    """One way to deal with a rule: rows to hold, what that costs, which disjunct it is."""

    rows: list[Row]
    cost: float
    term: int  # -1: broken


@dataclass
class Model:
    """Rules over `d` outputs within [-REACH, REACH].

    Attributes:
        implied: pairs (rule, disjunct) of which the first being true implies the second.
        weights: of the outputs.
    """

    d: int
    rules: list[Rule]
    always: list[Row] = field(default_factory=list)
    implied: list[tuple[tuple[int, int], tuple[int, int]]] = field(default_factory=list)
    weights: list[float] | None = None

    def options(self) -> list[list[Option]]:
        """Of each rule."""
        return [_options(rule) for rule in self.rules]

    def allowed(self, choice: tuple[Option, ...]) -> bool:
        """Whether truth values fit the implications."""
        chosen = [option.term for option in choice]
        return all(chosen[a] != i or chosen[b] == j for (a, i), (b, j) in self.implied)

    def rules_of(self) -> gdpnet.RuleModel:
        """The rules as gdpnet reads them."""
        m = pyo.ConcreteModel()
        m.y = pyo.Var(range(self.d), bounds=(-REACH, REACH))
        m.rule_price = pyo.Suffix(direction=pyo.Suffix.LOCAL)
        m.always = pyo.ConstraintList()
        for row in self.always:
            m.always.add(_written(m, row))
        terms = [_add(m, m, f"r{k}", rule) for k, rule in enumerate(self.rules)]
        m.logic = pyo.LogicalConstraintList()
        for (a, i), (b, j) in self.implied:
            m.logic.add(terms[a][i].indicator_var.implies(terms[b][j].indicator_var))
        return gdpnet.RuleModel(m, outputs=[m.y])


def _options(rule: Rule) -> list[Option]:
    found = []
    for place, term in enumerate(rule.terms):
        for inner in _options(term.inner) if term.inner else [Option([], 0.0, 0)]:
            found.append(Option(term.rows + inner.rows, term.price + inner.cost, place))
    if rule.price is not None:
        found.append(Option([], rule.price, -1))
    return found


def _written(m: Any, row: Row) -> Any:
    a, sense, b = row
    left = sum(c * m.y[j] for j, c in enumerate(a) if c)
    return {"<=": left <= b, ">=": left >= b, "==": left == b}[sense]


def _add(m: Any, block: Any, name: str, rule: Rule) -> list[Any]:
    disjuncts = []
    for k, term in enumerate(rule.terms):
        block.add_component(f"{name}_{k}", Disjunct())
        disjunct = block.component(f"{name}_{k}")
        disjunct.rows = pyo.ConstraintList()
        for row in term.rows:
            disjunct.rows.add(_written(m, row))
        if term.price:
            m.rule_price[disjunct] = term.price
        if term.inner:
            _add(m, disjunct, "inner", term.inner)
        disjuncts.append(disjunct)
    block.add_component(name, Disjunction(expr=disjuncts))
    if rule.price is not None:
        m.rule_price[block.component(name)] = rule.price
    return disjuncts


# ---- the oracles ---------------------------------------------------------------------------------


def least_l1(model: Model, yhat: np.ndarray) -> float:
    """What is minimised, by a mixed-integer program; inf where nothing is feasible."""
    options = model.options()
    flat = [(k, option) for k, each in enumerate(options) for option in each]
    d, n = model.d, 2 * model.d + len(flat)
    weight = np.ones(d) if model.weights is None else np.array(model.weights)
    rows, low, high = [], [], []

    def add(line: np.ndarray, least: float, most: float) -> None:
        rows.append(line)
        low.append(least)
        high.append(most)

    for j in range(d):  # t_j >= |y_j - yhat_j|
        for sign in (1.0, -1.0):
            line = np.zeros(n)
            line[j], line[d + j] = sign, -1.0
            add(line, -INF, sign * yhat[j])
    for a, b in [pair for row in model.always for pair in _inequalities(row)]:
        add(np.concatenate([a, np.zeros(n - d)]), -INF, b)
    for place, (_, option) in enumerate(flat):
        for a, b in [pair for row in option.rows for pair in _inequalities(row)]:
            line = np.concatenate([a, np.zeros(n - d)])
            most = REACH * np.abs(a).sum() - b
            if most > 0:
                line[2 * d + place] = most
                add(line, -INF, b + most)
    for k in range(len(options)):
        add(_of(flat, n, d, lambda r, _, k=k: r == k), 1.0, 1.0)
    for (ra, i), (rb, j) in model.implied:
        first = _of(flat, n, d, lambda r, t, ra=ra, i=i: r == ra and t == i)
        second = _of(flat, n, d, lambda r, t, rb=rb, j=j: r == rb and t == j)
        add(first - second, -INF, 0.0)
    cost = np.concatenate([np.zeros(d), weight, [option.cost for _, option in flat]])
    whole = np.concatenate([np.zeros(2 * d), np.ones(len(flat))])
    far = 2 * REACH + np.abs(yhat).max()
    bounds = Bounds(
        np.concatenate([np.full(d, -REACH), np.zeros(d), np.zeros(len(flat))]),
        np.concatenate([np.full(d, REACH), np.full(d, far), np.ones(len(flat))]),
    )
    found = milp(
        cost,
        integrality=whole,
        bounds=bounds,
        constraints=LinearConstraint(np.array(rows), low, high),
        options={"mip_rel_gap": 0.0},
    )
    if found.status == 2:
        return INF
    if found.status != 0:  # HiGHS gives up on one in some thousand
        return _enumerated(model, yhat, weight)
    # Again with the binaries fixed: no big-M times integrality tolerance is left.
    fixed = np.round(found.x[2 * d :])
    bounds.lb[2 * d :] = bounds.ub[2 * d :] = fixed
    again = milp(cost, bounds=bounds, constraints=LinearConstraint(np.array(rows), low, high))
    return float(again.fun) if again.status == 0 else float(found.fun)


def _enumerated(model: Model, yhat: np.ndarray, weight: np.ndarray) -> float:
    """A linear program for every choice."""
    d, best = model.d, INF
    bounds = [(-REACH, REACH)] * d + [(0, None)] * d
    away = np.block([[np.eye(d), -np.eye(d)], [-np.eye(d), -np.eye(d)]])
    for choice in itertools.product(*model.options()):
        if not model.allowed(choice):
            continue
        rows = model.always + [row for option in choice for row in option.rows]
        pairs = [pair for row in rows for pair in _inequalities(row)]
        a = np.vstack([away, *(np.concatenate([a, np.zeros(d)]) for a, _ in pairs)])
        b = np.concatenate([yhat, -yhat, [b for _, b in pairs]])
        found = linprog(np.concatenate([np.zeros(d), weight]), a, b, bounds=bounds)
        if found.status == 0:
            best = min(best, found.fun + sum(option.cost for option in choice))
    return best


def _of(flat: Any, n: int, d: int, which: Any) -> np.ndarray:
    line = np.zeros(n)
    for place, (rule, option) in enumerate(flat):
        line[2 * d + place] = float(which(rule, option.term))
    return line


def _inequalities(row: Row) -> list[tuple[np.ndarray, float]]:
    a, sense, b = np.array(row[0], dtype=float), row[1], row[2]
    below, above = (a, b), (-a, -b)
    return {"<=": [below], ">=": [above], "==": [below, above]}[sense]


def least_l2(model: Model, yhat: np.ndarray) -> float:
    """The same for the squared Euclidean distance: a quadratic program for every choice."""
    weight = np.ones(model.d) if model.weights is None else np.array(model.weights)
    best = INF
    for choice in itertools.product(*model.options()):
        cost = sum(option.cost for option in choice)
        if cost >= best or not model.allowed(choice):
            continue
        rows = model.always + [row for option in choice for row in option.rows]
        best = min(best, cost + _squared(rows, yhat, weight))
    return best


def _squared(rows: list[Row], yhat: np.ndarray, weight: np.ndarray) -> float:
    d = len(yhat)
    pairs = [pair for row in rows for pair in _inequalities(row)]
    a = np.array([row for row, _ in pairs]).reshape(len(pairs), d)
    upper = np.concatenate([np.full(d, REACH), [b for _, b in pairs]])
    lower = np.concatenate([np.full(d, -REACH), np.full(len(pairs), -1e30)])
    square = weight**2
    x, _, flag, _ = daqp.solve(
        np.diag(2.0 * square), -2.0 * square * yhat, np.ascontiguousarray(a), upper, lower,
        np.zeros(len(upper), dtype=np.int32), primal_tol=1e-11, dual_tol=1e-11,
    )  # fmt: skip
    return float(square @ (x - yhat) ** 2) if flag == 1 else INF


# ---- random models -------------------------------------------------------------------------------


def random_model(seed: int) -> tuple[Model, np.ndarray]:
    """A model and predictions; small whole numbers, so that ties are met."""
    rng = np.random.default_rng([seed, 19])
    d = int(rng.integers(1, 4))
    halves = rng.random() < 0.5

    def number(low: float, high: float) -> float:
        drawn = rng.uniform(low, high)
        return float(round(2 * drawn) / 2) if halves else float(drawn)

    def row() -> Row:
        a = rng.integers(-2, 3, d).astype(float)
        if not a.any() or rng.random() < 0.5:
            a[:] = 0.0
            a[rng.integers(d)] = rng.choice([-1.0, 1.0])
        sense = "==" if rng.random() < 0.05 else str(rng.choice(["<=", ">="]))
        return tuple(a.tolist()), sense, number(-8, 8)

    def price(share: float) -> float:
        return 0.0 if rng.random() < 0.1 else number(0.0, 6.0) if rng.random() < share else 0.0

    def rule(nested: bool) -> Rule:
        terms = []
        for _ in range(int(rng.integers(1, 4))):
            rows = [row() for _ in range(int(rng.integers(1, 3)))]
            inner = rule(False) if nested and rng.random() < 0.2 else None
            terms.append(Term(rows, price(0.3 if priced else 0.0), inner))
        return Rule(terms, price(1.0) if rng.random() < 0.6 else None)

    priced = rng.random() < 0.5
    rules = [rule(True) for _ in range(int(rng.integers(1, 4)))]
    model = Model(d, rules, [row() for _ in range(int(rng.random() < 0.2))])
    if len(rules) > 1 and rng.random() < 0.25:
        a, b = rng.permutation(len(rules))[:2].tolist()
        i, j = rng.integers(len(rules[a].terms)), rng.integers(len(rules[b].terms))
        model.implied.append(((a, int(i)), (b, int(j))))
    if rng.random() < 0.3:
        model.weights = np.round(4 * rng.uniform(0.25, 3, d)).clip(1).__truediv__(4).tolist()
    yhat = rng.uniform(-12, 12, (3, d))
    yhat[1:] = np.round(2 * yhat[1:]) / 2
    return model, yhat


def disagreements(seed: int, norm: str = "l1", solver: Any = "exact") -> list[str]:
    """What is wrong with the projections of a random model."""
    model, yhat = random_model(seed)
    rules = model.rules_of()
    p = gdpnet.project(
        rules, torch.from_numpy(yhat), norm=norm, weights=model.weights, solver=solver
    )
    least = least_l1 if norm == "l1" else least_l2
    found = []
    for s in range(len(yhat)):
        wanted = least(model, yhat[s])
        told = f"seed {seed} sample {s} {norm}: {gdpnet.Status(int(p.status[s])).name}"
        if wanted == INF:
            if int(p.status[s]) != gdpnet.Status.CONFLICT:
                found.append(f"{told}, value {float(p.value[s])}, but nothing is feasible")
            continue
        if not abs(float(p.value[s]) - wanted) <= 1e-7 * max(1.0, wanted):
            found.append(f"{told}, value {float(p.value[s]):.9g}, wanted {wanted:.9g}")
            continue
        found += _inconsistent(model, rules, p, s, told)
    return found


def _inconsistent(model: Model, rules: Any, p: Any, s: int, told: str) -> list[str]:
    """Whether y, disjuncts, what is broken and what is paid belong together."""
    y = p.y[s].numpy()
    moved = float(p.distance[s])
    value = (moved if p.request.settings.norm == "l1" else moved**2) + float(p.price[s])
    found = []
    if abs(value - float(p.value[s])) > 1e-8 * max(1.0, value):
        found.append(f"{told}: distance and price make {value}, not {float(p.value[s])}")
    least = 0.0
    for r, rule in enumerate(model.rules):
        holding = [o for o in _options(rule) if all(_holds(row, y) for row in o.rows)]
        best = min((o.cost for o in holding), default=INF)
        least += best
        broken, place = bool(p.broken[s, r]), int(p.disjunct[s, r])
        if broken != (place == -1):
            found.append(f"{told}: rule {r} broken {broken}, disjunct {place}")
        own = [o.cost for o in holding if o.term == place]
        if not own or (not model.implied and min(own) > best + 1e-9):
            found.append(f"{told}: rule {r} has disjunct {place} at {own}, {best} is possible")
    if not model.implied and abs(least - float(p.price[s])) > 1e-9:
        found.append(f"{told}: paid {float(p.price[s])}, the cheapest that holds is {least}")
    if not bool(rules.satisfied(p.y[s], tol=1e-7)):
        found.append(f"{told}: hard rules do not hold")
    paid_or_moved = moved > 1e-9 or float(p.price[s]) > 0.0
    if paid_or_moved != (int(p.status[s]) == gdpnet.Status.PROJECTED):
        found.append(f"{told}: moved {moved}, paid {float(p.price[s])}")
    return found


def _holds(row: Row, y: np.ndarray) -> bool:
    a, sense, b = row
    over = float(np.dot(a, y)) - b
    size = max(1.0, abs(b), max(map(abs, a)))
    worst = {"<=": over, ">=": -over, "==": abs(over)}[sense]
    return worst <= 1e-8 * size


def main(count: int, first: int = 0) -> int:
    """Compare `count` models; prints what disagrees."""
    told: Counter[str] = Counter()
    for seed in range(first, first + count):
        for norm in ("l1", "l2"):
            wrong = disagreements(seed, norm)
            told[norm] += bool(wrong)
            for line in wrong:
                print(line, flush=True)
    print(
        f"{count} models from seed {first}: " + ", ".join(f"{n} {k} wrong" for n, k in told.items())
    )
    return int(any(told.values()))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
