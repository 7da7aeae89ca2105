"""Rules with prices: what is paid, what is broken, and that nothing is cheaper."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunct, Disjunction

import gdpnet
from gdpnet import Status
from gdpnet.testing import PROBLEMS, Problem
from tests.solve import priced_oracle
from tests.solve.priced_oracle import INF, Model, Rule, Term, disagreements, least_l1, least_l2

NORMS = pytest.mark.parametrize("norm", ["l1", "l2"])


def gap(price: Any = None, **prices: float) -> gdpnet.RuleModel:
    """y <= 3 or y >= 7; the disjuncts are d[0] and d[1]."""
    m = pyo.ConcreteModel()
    m.p = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var(bounds=(0, 10))
    m.d = Disjunct([0, 1])
    m.d[0].c = pyo.Constraint(expr=m.y <= 3)
    m.d[1].c = pyo.Constraint(expr=m.y >= 7)
    m.gap = Disjunction(expr=[m.d[0], m.d[1]])
    given = {m.d[int(key[1])]: value for key, value in prices.items()}
    if price is not None:
        given[m.gap] = price(m) if callable(price) else price
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p], prices=given)


def told(p: gdpnet.Projection) -> list[tuple[float, float, bool, int, str]]:
    statuses = [Status(code).name for code in p.status.tolist()]
    broken, disjunct = p.broken[:, 0].tolist(), p.disjunct[:, 0].tolist()
    return list(zip(p.y[:, 0].tolist(), p.price.tolist(), broken, disjunct, statuses, strict=True))


X = [[1.0]] * 4


def test_a_rule_is_broken_where_that_is_cheaper() -> None:
    p = gdpnet.project(gap(1.2), [[2.0], [4.0], [4.5], [6.0]], X)
    assert told(p) == [
        (2.0, 0.0, False, 0, "SATISFIED"),
        (3.0, 0.0, False, 0, "PROJECTED"),
        (4.5, 1.2, True, -1, "PROJECTED"),
        (7.0, 0.0, False, 1, "PROJECTED"),
    ]
    assert p.value.tolist() == [0.0, 1.0, 1.2, 1.0]
    assert p.distance.tolist() == [0.0, 1.0, 0.0, 1.0]
    assert p.info.bound.tolist() == p.value.tolist()


def test_with_l2_prices_are_in_units_of_the_squared_distance() -> None:
    p = gdpnet.project(gap(1.2), [[4.0], [4.2]], [[1.0]] * 2, norm="l2")
    assert p.value.tolist() == pytest.approx([1.0, 1.2])
    assert p.broken[:, 0].tolist() == [False, True]
    assert p.distance.tolist() == [1.0, 0.0]


@NORMS
def test_prices_keep_their_unit_whatever_the_weights(norm: str) -> None:
    for weight in (0.25, 1.0, 8.0):
        price = 1.2 * (weight if norm == "l1" else weight**2)
        p = gdpnet.project(gap(price), [[4.0], [4.5]], [[1.0]] * 2, norm=norm, weights=[weight])
        assert p.broken[:, 0].tolist() == [False, True]
        assert p.price.tolist() == pytest.approx([0.0, price])
        assert float(p.value[1]) == pytest.approx(price)


def test_disjuncts_cost_what_choosing_them_costs() -> None:
    p = gdpnet.project(gap(d0=3.0), [[2.0], [4.5], [6.5], [5.5]], X)
    assert told(p) == [
        (2.0, 3.0, False, 0, "PROJECTED"),
        (7.0, 0.0, False, 1, "PROJECTED"),
        (7.0, 0.0, False, 1, "PROJECTED"),
        (7.0, 0.0, False, 1, "PROJECTED"),
    ]


@NORMS
def test_of_disjuncts_that_hold_the_cheapest_is_chosen(norm: str) -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.d = Disjunct([0, 1, 2])
    for k, bound in enumerate((8, 5, 9)):
        m.d[k].c = pyo.Constraint(expr=m.y <= bound)
    m.r = Disjunction(expr=[m.d[k] for k in m.d])
    rules = gdpnet.RuleModel(m, outputs=[m.y], prices={m.d[0]: 2, m.d[1]: 1, m.d[2]: 1})
    p = gdpnet.project(rules, [[4.0], [6.0], [8.5]], norm=norm)
    assert p.disjunct[:, 0].tolist() == [1, 2, 2]
    assert p.price.tolist() == [1.0, 1.0, 1.0]
    assert p.y[:, 0].tolist() == [4.0, 6.0, 8.5]


@NORMS
def test_what_logic_asks_for_is_not_paid_for_beside_a_broken_rule(norm: str) -> None:
    # Breaking the gap costs 2 and is looked at first; d[1] has to be true all the same.
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.z = pyo.Var(bounds=(0, 10))
    m.d = Disjunct([0, 1])
    m.d[0].c = pyo.Constraint(expr=m.y <= 3)
    m.d[1].c = pyo.Constraint(expr=m.y >= 7)
    m.gap = Disjunction(expr=[m.d[0], m.d[1]], xor=False)
    m.other = Disjunction(expr=[m.z >= 8, m.z <= 4])
    far = m.other.disjuncts[0].indicator_var
    m.either = pyo.LogicalConstraint(expr=m.d[1].indicator_var.lor(far))
    rules = gdpnet.RuleModel(m, outputs=[m.y, m.z], prices={m.gap: 2.0, m.d[1]: 3.5})
    p = gdpnet.project(rules, [[6.5, 1.0]], norm=norm)
    assert p.y.tolist() == [[7.0, 1.0]]
    assert p.broken.tolist() == [[False, False]]
    assert p.value.tolist() == [3.5 + (0.5 if norm == "l1" else 0.25)]


def test_ties_go_to_the_first_in_the_model() -> None:
    # Moving costs 1, as breaking does: the rule is held.
    for norm in ("l1", "l2"):
        p = gdpnet.project(gap(1.0), [[4.0]], [[1.0]], norm=norm)
        assert told(p) == [(3.0, 0.0, False, 0, "PROJECTED")]
        p = gdpnet.project(gap(d0=1.0, d1=1.0), [[5.0]], [[1.0]], norm=norm)
        assert told(p)[0][:4] == (3.0, 1.0, False, 0)


def test_a_price_of_nothing_is_never_enforced() -> None:
    p = gdpnet.project(gap(0), [[2.0], [5.0]], [[1.0]] * 2)
    assert told(p) == [(2.0, 0.0, False, 0, "SATISFIED"), (5.0, 0.0, True, -1, "SATISFIED")]
    p = gdpnet.project(gap(0), [[2.0], [5.0]], [[1.0]] * 2, solver="milp")
    assert told(p) == [(2.0, 0.0, False, 0, "SATISFIED"), (5.0, 0.0, True, -1, "SATISFIED")]


def test_prices_that_depend_on_inputs() -> None:
    rules = gap(lambda m: 0.5 * m.p)
    p = gdpnet.project(rules, [[4.5], [4.5]], [[1.0], [4.0]])
    assert told(p) == [(4.5, 0.5, True, -1, "PROJECTED"), (3.0, 0.0, False, 0, "PROJECTED")]
    with pytest.raises(gdpnet.errors.InputError, match="price of breaking 'gap' is negative"):
        gdpnet.project(rules, [[4.5], [4.5]], [[-1.0], [4.0]])
    p = gdpnet.project(rules, [[4.5], [4.5]], [[-1.0], [1.0]], on_invalid="mark")
    assert [Status(s).name for s in p.status.tolist()] == ["ERROR", "PROJECTED"]
    assert math.isnan(p.price[0])
    assert p.price[1] == 0.5


def test_inactive_and_not_chosen_rules_cost_nothing() -> None:
    m = pyo.ConcreteModel()
    m.p = pyo.Param(mutable=True)
    m.y = pyo.Var(bounds=(0, 10))
    m.a, m.b = Disjunct(), Disjunct()
    m.a.c = pyo.Constraint(expr=m.y <= 3)
    m.a.inner = Disjunction(expr=[[m.y <= 1], [m.y >= 2.5]])
    m.b.c = pyo.Constraint(expr=m.y >= 7)
    m.r = Disjunction(expr=[m.a, m.b])
    m.cap = pyo.Constraint(expr=m.y <= 8)
    m.active_when = pyo.Suffix()
    m.active_when[m.cap] = m.p >= 1
    rules = gdpnet.RuleModel(
        m, outputs=[m.y], inputs=[m.p], prices={m.a.inner: 0.25, m.cap: 0.5, m.b: 0.1}
    )
    p = gdpnet.project(rules, [[1.5], [9.0], [9.0], [8.2]], [[0.0], [0.0], [1.0], [1.0]])
    # The nested rule is bought off; it is no column of `broken`.
    assert p.price.tolist() == pytest.approx([0.25, 0.1, 0.6, 0.1])
    assert p.y[:, 0].tolist() == [1.5, 9.0, 9.0, 8.0]
    assert p.broken.tolist() == [[False, False], [False, False], [False, True], [False, False]]


def test_limits_are_told_in_the_same_units() -> None:
    model, yhat = priced_oracle.random_model(3)
    limited = gdpnet.project(
        model.rules_of(), yhat, norm="l2", weights=model.weights,
        solver=gdpnet.solve.Exact(node_limit=1),
    )  # fmt: skip
    for s in range(len(yhat)):
        assert float(limited.value[s]) <= least_l2(model, yhat[s]) + 1e-9


# ---- against oracles -----------------------------------------------------------------------------


@NORMS
@pytest.mark.parametrize("first", [0, 20, 40, 60])
def test_random_models(norm: str, first: int) -> None:
    assert [w for seed in range(first, first + 20) for w in disagreements(seed, norm)] == []


@pytest.mark.parametrize("solver", ["milp", gdpnet.solve.Exact(node_limit=1)], ids=repr)
def test_random_models_by_mixed_integer_programs(solver: Any) -> None:
    assert [w for seed in range(100, 115) for w in disagreements(seed, "l1", solver)] == []


def with_prices(problem: Problem, seed: int) -> tuple[Any, dict[Any, float]]:
    """A model of the bank, and random prices of its rules and disjuncts."""
    rng = np.random.default_rng([seed, 4])
    m = problem.build()
    prices = {}
    everywhere: Any = {"active": True, "descend_into": (pyo.Block, Disjunct)}
    for rule in m.component_data_objects(Disjunction, **everywhere):
        if rng.random() < 0.6:
            prices[rule] = float(np.round(4 * rng.uniform(0, 3)) / 4)
        for disjunct in rule.disjuncts:
            if rng.random() < 0.2:
                prices[disjunct] = float(np.round(4 * rng.uniform(0, 2)) / 4)
    return m, prices


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_the_bank_with_random_prices(problem: Problem) -> None:
    m, prices = with_prices(problem, len(problem.name))
    rules = gdpnet.RuleModel(
        m,
        outputs=[m.find_component(name) for name in problem.outputs],
        inputs=[m.find_component(name) for name in problem.inputs],
        input_bounds=problem.input_bounds,
        prices=prices,
    )
    hard = problem.rules()
    found = gdpnet.project(rules, problem.yhat, problem.x)
    milp = gdpnet.project(rules, problem.yhat, problem.x, solver="milp")
    assert found.status.tolist() == milp.status.tolist()
    good = found.status != Status.CONFLICT
    assert found.value[good].tolist() == pytest.approx(milp.value[good].tolist(), abs=1e-7)
    assert (found.distance + found.price)[good].tolist() == pytest.approx(
        found.value[good].tolist(), abs=1e-7
    )
    assert rules.satisfied(found.y[good], None if problem.x is None else problem.x[good]).all()
    if not rules.data.prices_disjuncts:  # never dearer than holding all of them
        held = gdpnet.project(hard, problem.yhat, problem.x)
        assert (found.value <= held.value + 1e-7).all()


# ---- what is returned ----------------------------------------------------------------------------


def test_strict_and_types() -> None:
    rules = gap(1.2)
    for dtype in (torch.float32, torch.float16):
        yhat = torch.tensor([[4.0], [4.5]], dtype=dtype)
        p = gdpnet.project(rules, yhat, X[:2], strict=True)
        assert p.broken[:, 0].tolist() == [False, True]
        assert p.price.dtype is dtype
        assert p.info.strict is not None and p.info.strict.all()  # noqa: PT018


def test_load_into_leaves_all_indicators_of_a_broken_rule_false() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.gap = Disjunction(expr=[[m.y <= 3], [m.y >= 7]])
    rules = gdpnet.RuleModel(m, outputs=[m.y], prices={m.gap: 1.2})
    p = gdpnet.project(rules, [[4.5], [6.5]])
    p.load_into(m, sample=0)
    assert (m.y.value, [d.indicator_var.value for d in m.gap.disjuncts]) == (4.5, [False, False])
    p.load_into(m, sample=1)
    assert (m.y.value, [d.indicator_var.value for d in m.gap.disjuncts]) == (7.0, [False, True])


def test_explanations() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.R3 = Disjunction(expr=[[m.y <= 3], [m.y >= 7]])
    rules = gdpnet.RuleModel(m, outputs=[m.y], prices={m.R3: 0.5})
    told, kept = rules.explain([[3.8], [3.2]])
    assert "R3 was broken: holding it would have cost 0.8, its price is 0.5" in str(told)
    assert told.price == 0.5
    assert told.rules[0].holding == pytest.approx(0.8)
    assert "was broken" not in str(kept)
    assert kept.rules[0].price is None
    m.low = pyo.Constraint(expr=m.y >= 3.5)
    m.high = pyo.Constraint(expr=m.y <= 6.5)
    rules = gdpnet.RuleModel(m, outputs=[m.y], prices={m.R3: 0.5})
    assert "holding it is not possible, its price is 0.5" in str(rules.explain([3.8]))


def test_predictions_of_layers() -> None:
    layer = gdpnet.ProjectionLayer(gap(1.2), gradient="vertex")
    yhat = torch.tensor([[4.0], [4.5]], dtype=torch.float64, requires_grad=True)
    y = layer(yhat, torch.ones(2, 1))
    assert y[:, 0].tolist() == [3.0, 4.5]
    y.sum().backward()
    # Held by its row; nothing holds the one whose rule was bought off.
    assert yhat.grad is not None
    assert yhat.grad[:, 0].tolist() == [0.0, 1.0]


# ---- gradients of what is paid -------------------------------------------------------------------


@NORMS
def test_value_has_the_slope_of_what_is_paid(norm: str) -> None:
    rules = gap(lambda m: 0.5 * m.p**2)
    yhat = torch.tensor([[4.5], [4.5]], dtype=torch.float64)
    x = torch.tensor([[1.2], [4.0]], dtype=torch.float64, requires_grad=True)
    p = gdpnet.project(rules, yhat, x, norm=norm)
    assert p.broken[:, 0].tolist() == [True, False]
    (slope,) = torch.autograd.grad(p.value.sum(), x, retain_graph=True)
    assert slope[:, 0].tolist() == pytest.approx([1.2, 0.0])
    (slope,) = torch.autograd.grad(p.price.sum(), x)
    assert slope[:, 0].tolist() == pytest.approx([1.2, 0.0])


@NORMS
def test_value_by_differences(norm: str) -> None:
    m = pyo.ConcreteModel()
    m.p = pyo.Param(range(2), mutable=True)
    m.y = pyo.Var(range(2), bounds=(-10, 10))
    m.r = gdpnet.rule(
        gdpnet.any_of(m.y[0] + m.y[1] <= m.p[0], m.y[0] >= 7), price=0.3 * m.p[1] ** 2
    )
    m.s = gdpnet.rule(m.y[0] - m.y[1] <= -m.p[0], price=0.7)
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    rng = np.random.default_rng(5)
    yhat = torch.from_numpy(rng.uniform(-3, 6, (40, 2))).requires_grad_()
    x = torch.from_numpy(rng.uniform(0.5, 3, (40, 2))).requires_grad_()

    def value(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return gdpnet.project(rules, a, b, norm=norm, gradient="vertex").value

    found = torch.autograd.grad(value(yhat, x).sum(), (yhat, x))
    assert 0 < int(gdpnet.project(rules, yhat, x, norm=norm).broken.sum()) < 80
    h = 1e-6
    for given, slope, other in ((0, found[0], 1), (1, found[1], 0)):
        both = [yhat.detach(), x.detach()]
        for j in range(both[given].shape[1]):
            ends = []
            for sign in (h, -h):
                moved = both[given].clone()
                moved[:, j] += sign
                pair = (moved, both[other]) if given == 0 else (both[other], moved)
                ends.append(value(*pair))
            difference = (ends[0] - ends[1]) / (2 * h)
            assert slope[:, j].tolist() == pytest.approx(difference.tolist(), abs=1e-5)


def test_a_price_is_learned_from_what_people_break() -> None:
    # Somebody who holds the rule up to a cost of 1.3: the value of what they did, less the least
    # there is, is never negative, and 0 for their own price.
    rules = gap(lambda m: m.p)
    yhat = torch.linspace(3, 7, 41, dtype=torch.float64)[:, None]
    away = (yhat[:, 0] - 3).minimum(7 - yhat[:, 0])
    broken = away > 1.3
    price = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([price], lr=0.2)
    for _ in range(60):
        optimizer.zero_grad()
        did = torch.where(broken, price, away)
        loss = (did - gdpnet.project(rules, yhat, price.expand(41, 1)).value).mean()
        loss.backward()
        optimizer.step()
    assert 1.2 <= price.item() <= 1.4
    assert loss.item() == pytest.approx(0.0, abs=1e-9)


# ---- contradictions ------------------------------------------------------------------------------


def cheapest(
    model: Model, importance: list[float], yhat: np.ndarray, least: Any
) -> tuple[float, float]:
    """Importance of the cheapest set that is left out, and what the best of them costs."""
    hard = [r for r, rule in enumerate(model.rules) if rule.price is None]
    sets = [s for k in range(len(hard) + 1) for s in combinations(hard, k)]
    costs = sorted((sum(importance[r] for r in s), s) for s in sets)
    best, found = INF, INF
    for cost, dropped in costs:
        if cost > best + 1e-9:
            break
        free = [Rule([Term([])]) if r in dropped else rule for r, rule in enumerate(model.rules)]
        value = least(replace(model, rules=free), yhat)
        if value < INF:
            best, found = cost, min(found, value)
    return best, found


def anything(seed: int) -> tuple[Model, np.ndarray]:
    """Rules of all kinds; they seldom contradict each other."""
    model, yhat = priced_oracle.random_model(seed)
    model.implied = []
    return model, yhat


def shares(seed: int) -> tuple[Model, np.ndarray]:
    """Rules that each want a part of a whole: several sets of them are as cheap to leave out."""
    rng = np.random.default_rng([seed, 11])
    d = int(rng.integers(3, 6))

    def row(sense: str, b: Any) -> tuple[tuple[float, ...], str, float]:
        a = np.eye(d)[rng.integers(d)]
        if rng.random() < 0.25:
            a[a == 0.0] = 0.3 * rng.integers(-1, 2, d - 1)
        return tuple(a.tolist()), sense, float(b)

    def term() -> Term:
        rows = [row(">=", rng.choice([2, 3, 4, 5]))]
        rows += [row("<=", rng.choice([0, 1, 2]))] if rng.random() < 0.3 else []
        rows += [row("==", rng.choice([1, 3]))] if rng.random() < 0.1 else []
        return Term(rows, price=float(rng.choice([0, 0, 0, 0.7])))

    rules = [
        Rule([term() for _ in range(rng.integers(1, 4))], price=1.5)
        for _ in range(rng.integers(3, 6))
    ]
    whole = (tuple([1.0] * d), "==", float(rng.choice([5, 6, 8])))
    parts = [(tuple(a), ">=", 0.0) for a in np.eye(d).tolist()]
    weights = None if rng.random() < 0.5 else rng.choice([0.5, 1, 2], d).tolist()
    yhat = 6 * rng.dirichlet(np.ones(d), 3) + 0.5 * rng.normal(size=(3, d))
    return Model(d, rules, [whole, *parts], weights=weights), yhat


@NORMS
@pytest.mark.parametrize(("draw", "count", "contradictory"), [(anything, 90, 20), (shares, 80, 80)])
def test_dropping_against_enumeration(norm: str, draw: Any, count: int, contradictory: int) -> None:
    least, conflicts = (least_l1 if norm == "l1" else least_l2), 0
    for seed in range(count):
        rng = np.random.default_rng([seed, 7])
        model, yhat = draw(seed)
        for rule in model.rules:
            rule.price = None if rng.random() < 0.7 else rule.price
        importance = rng.integers(1, 4, len(model.rules)).astype(float).tolist()
        data = model.rules_of().data
        weighed = [replace(r, importance=i) for r, i in zip(data.rules, importance, strict=True)]
        rules = gdpnet.RuleModel.from_data(replace(data, rules=tuple(weighed)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", gdpnet.errors.ConflictWarning)
            p = gdpnet.project(rules, yhat, norm=norm, weights=model.weights, on_conflict="drop")
        for s in np.flatnonzero(p.status.numpy() == Status.CONFLICT).tolist():
            conflicts += 1
            best, value = cheapest(model, importance, yhat[s], least)
            assert bool(p.info.unmendable[s]) == (best == INF)
            if best == INF:
                assert p.info.dropped[s] == ()
                continue
            paid = sum(importance[rules.names.index(name)] for name in p.info.dropped[s])
            moves = np.abs(p.y[s].numpy() - yhat[s]) * np.array(model.weights or [1.0] * model.d)
            moved = moves.sum() if norm == "l1" else (moves**2).sum()
            assert paid == pytest.approx(best)
            assert moved + float(p.price[s]) == pytest.approx(value, abs=1e-6)
    assert conflicts > contradictory


def contradictory() -> Any:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.a = gdpnet.rule(m.y <= 2)
    m.b = gdpnet.rule(m.y >= 6)
    m.c = gdpnet.rule(m.y >= 8, importance=0.5)
    return m


def test_dropped_rules_are_named_and_the_status_says_so() -> None:
    m = contradictory()
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    p = gdpnet.project(rules, [[3.0], [7.0]], on_conflict="drop")
    # a alone costs 1, b and c 1.5.
    assert p.info.dropped == [("a",), ("a",)]
    assert p.y[:, 0].tolist() == [8.0, 8.0]
    assert p.status.tolist() == [Status.CONFLICT] * 2
    assert p.distance.tolist() == [math.inf] * 2
    assert p.disjunct.tolist() == [[-1, 0, 0]] * 2
    rules = gdpnet.RuleModel(m, outputs=[m.y], importances={m.a: 1.5})
    p = gdpnet.project(rules, [[3.0], [7.0]], on_conflict="drop")
    # Equally cheap sets: the nearer one.
    assert p.info.dropped == [("b", "c"), ("a",)]
    assert p.y[:, 0].tolist() == [2.0, 8.0]
    passed = gdpnet.project(rules, [[3.0]])
    assert passed.info.dropped is None
    assert passed.y.tolist() == [[3.0]]


def test_importance_counts_where_a_rule_applies() -> None:
    # In the first sample only two rules apply, and the cheaper goes; in the second all do.
    m = contradictory()
    m.p = pyo.Param(mutable=True)
    m.active_when = pyo.Suffix()
    m.active_when[m.a] = m.p >= 0
    m.active_when[m.b] = m.p >= 1
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    p = gdpnet.project(rules, [[3.0]] * 4, [[0.0], [1.0], [0.0], [-1.0]], on_conflict="drop")
    assert p.info.dropped == [("c",), ("a",), ("c",), ()]
    assert p.y[:, 0].tolist() == [2.0, 8.0, 2.0, 8.0]


@NORMS
@pytest.mark.parametrize("coupled", [False, True])
def test_very_many_sets_are_searched_at_once(norm: str, coupled: bool) -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(6), bounds=(0, 10))
    if coupled:  # one component: too many sets to be listed
        m.total = pyo.Constraint(expr=sum(m.y[j] for j in m.y) <= 59)
    for j in m.y:  # 64 equally cheap sets
        m.add_component(f"low{j}", gdpnet.rule(m.y[j] <= 4))
        m.add_component(f"high{j}", gdpnet.rule(m.y[j] >= 6))
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    yhat = [[1.0, 9.0, 4.5, 5.5, 3.0, 10.0]]
    p = gdpnet.project(rules, yhat, norm=norm, on_conflict="drop")
    assert p.y.tolist() == [[1.0, 9.0, 4.0, 6.0, 3.0, 10.0]]
    assert p.info.dropped == [("high0", "low1", "high2", "low3", "high4", "low5")]


def halves(count: int) -> gdpnet.RuleModel:
    """Four rules, each for half of what there is: any two of them go; and some that choose."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(4 + count), bounds=(0, 1))
    m.total = pyo.Constraint(expr=sum(m.y[j] for j in range(4)) == 1)
    m.p = pyo.Param(mutable=True)
    m.active_when = pyo.Suffix()
    for j in range(4):
        m.add_component(f"half{j}", gdpnet.rule(m.y[j] >= 0.5))
    m.active_when[m.half3] = m.p >= 1
    for j in range(4, 4 + count):
        either = gdpnet.any_of(m.y[j] <= 0.3, m.y[j] - 0.1 * m.y[0] >= 0.7)
        m.add_component(f"either{j}", gdpnet.rule(either))
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])


@NORMS
@pytest.mark.parametrize("count", [0, 2, 7])  # with 7 there are too many products to be listed
def test_what_is_dropped_does_not_depend_on_the_batch(norm: str, count: int) -> None:
    rules, rng = halves(count), np.random.default_rng(5)
    yhat, x = rng.dirichlet(np.ones(4), 40), np.arange(40.0)[:, None] % 2
    yhat = np.column_stack([yhat, rng.uniform(0, 1, (40, count))])
    drop = partial(gdpnet.project, rules, norm=norm, on_conflict="drop")
    together = drop(yhat, x)
    assert together.info.dropped is not None
    for s in range(0, 40, 3):
        alone = drop(yhat[[s]], x[[s]])
        assert alone.y.tolist() == together.y[[s]].tolist()
        assert alone.info.dropped == [together.info.dropped[s]]
    order = rng.permutation(40)
    for threads in (1, 2, 3):
        again = drop(np.tile(yhat[order], (3, 1)), np.tile(x[order], (3, 1)), threads=threads)
        for at in range(3):
            there = slice(40 * at, 40 * (at + 1))
            assert again.y[there].tolist() == together.y[order].tolist()
            assert again.disjunct[there].tolist() == together.disjunct[order].tolist()
            assert again.info.dropped[there] == [together.info.dropped[s] for s in order]
    # Those that are wanted most stay.
    for s, names in enumerate(together.info.dropped):
        of = 4 if x[s, 0] else 3
        if count == 0:  # else the first is worth more than it shows
            kept = np.argsort(-yhat[s, :of])[:2]
            assert set(names) == {f"half{j}" for j in range(of) if j not in kept}
        assert len(names) == of - 2


def test_a_priced_rule_is_bought_off_and_not_dropped() -> None:
    m = contradictory()
    rules = gdpnet.RuleModel(m, outputs=[m.y], prices={m.c: 0.25})
    p = gdpnet.project(rules, [[7.0]], on_conflict="drop")
    assert (p.info.dropped, p.broken.tolist()) == ([("a",)], [[False, False, True]])
    assert (p.y.tolist(), p.price.tolist()) == ([[7.0]], [0.25])


def test_where_no_rule_is_to_blame() -> None:
    m = contradictory()
    m.always = pyo.Constraint(expr=m.y >= 11)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    with pytest.warns(gdpnet.errors.ConflictWarning, match=r"on_conflict='drop'.*always"):
        p = gdpnet.project(rules, [[3.0]], on_conflict="drop")
    assert p.y.tolist() == [[3.0]]
    assert p.info.dropped == [()]
    assert p.info.unmendable is not None
    assert p.info.unmendable.tolist() == [True]


def test_dropping_is_refused_for_relaxations() -> None:
    m = contradictory()
    with pytest.raises(gdpnet.errors.InputError, match="'drop' is known for relaxation='dnf' only"):
        gdpnet.project(
            gdpnet.RuleModel(m, outputs=[m.y]), [[3.0]], relaxation="cnf", on_conflict="drop"
        )


def test_nearest_breaks_hard_rules_and_buys_off_others() -> None:
    m = contradictory()
    rules = gdpnet.RuleModel(m, outputs=[m.y], prices={m.c: 0.25})
    for norm in ("l1", "l2"):
        p = gdpnet.project(rules, [[4.0]], norm=norm, on_conflict="nearest")
        hard = rules.violation(p.y)[0, :2].sum()
        assert p.status.tolist() == [Status.CONFLICT]
        assert float(hard) == pytest.approx(
            4 / 6, abs=1e-6
        )  # b, whose size is the larger, gives way


def test_metrics_count_hard_and_priced_rules_apart() -> None:
    pytest.importorskip("torchmetrics")
    m = contradictory()
    rules = gdpnet.RuleModel(m, outputs=[m.y], prices={m.b: 1, m.c: 1})
    metric = gdpnet.nn.RuleSatisfaction(rules)
    metric.update([[1.0], [7.0], [9.0]])
    found = {key: float(value) for key, value in metric.compute().items()}
    assert found["csat"] == pytest.approx(1 / 3)
    assert found["csat_priced"] == pytest.approx(1 / 3)
    assert found["csat_all"] == 0.0
    assert found["csat/b"] == pytest.approx(2 / 3)


def test_penalties_count_priced_rules_as_others() -> None:
    hard, priced = gap(), gap(1.2)
    y, x = torch.tensor([[2.0], [4.5]]), torch.ones(2, 1)
    one, other = (gdpnet.nn.RulePenalty(rules, reduction="none")(y, x) for rules in (hard, priced))
    assert one.tolist() == other.tolist()
    assert float(other[1]) > 0.0


def test_who_takes_no_prices() -> None:
    with pytest.raises(gdpnet.errors.RuleError, match="knows no prices"):
        gdpnet.project(gap(1.0), [[4.0]], [[1.0]], solver=gdpnet.solve.Exact(tie="least_norm"))
