"""active, satisfied, violation and global_violation against Pyomo's own evaluation."""

from __future__ import annotations

import io
import itertools
from functools import cache
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunct, Disjunction
from scipy.optimize import linprog

import gdpnet
from gdpnet.solve.milp import disjunctive
from gdpnet.solve.milp.sample import RulesAtSample
from gdpnet.study.samples import what_holds
from gdpnet.testing import BY_NAME, PROBLEMS, Problem, oracles, random_predictions, random_rules

POINTS = 12
LOOSE = 0.05  # a tolerance at which some random points hold and others do not


def is_plain(problem: Problem) -> bool:
    return not problem.auxiliaries and not any(
        problem.build().component_data_objects(
            pyo.LogicalConstraint, descend_into=(pyo.Block, Disjunct)
        )
    )


PLAIN = [p for p in PROBLEMS if is_plain(p)]
# Every indicator is at hand by name, and nothing is fixed: truth values can be listed.
LOGIC = [p for p in PROBLEMS if not p.auxiliaries and p not in PLAIN]
WITH_AUXILIARIES = [p for p in PROBLEMS if p.auxiliaries]


@cache
def around(name: str, count: int) -> tuple[torch.Tensor | None, torch.Tensor]:
    problem = BY_NAME[name]
    rules = problem.rules()
    generator = torch.Generator().manual_seed(7)
    which = torch.arange(count) % len(problem.samples)
    x = None if problem.x is None else problem.x[which]
    yhat = problem.yhat[which]
    near = gdpnet.project(rules, yhat, x).y
    share = torch.rand(count, 1, generator=generator, dtype=torch.float64)
    share[::3] = 1.0
    noise = 0.3 * torch.randn(yhat.shape, generator=generator, dtype=torch.float64)
    noise[::3] = 0.0
    return x, yhat + share * (near - yhat) + noise


def points(problem: Problem, count: int = POINTS) -> tuple[torch.Tensor | None, torch.Tensor]:
    """Random points around the samples and their projections, some of them exact."""
    return around(problem.name, count)


def at(model: Any, problem: Problem, x: list[float], y: list[float]) -> tuple[dict, list[str]]:
    """Gives inputs and outputs their values; the values by name, and what is off."""
    params = dict(zip(problem.inputs, x, strict=True))
    for name, value in params.items():
        model.find_component(name).set_value(value)
    oracles.set_values(oracles.outputs_of(model, problem.outputs), y)
    return params, problem.off(params)


def directly_global(model: Any, problem: Problem, rules: gdpnet.RuleModel) -> float:
    """Worst residual of global constraints, bounds and integrality."""
    worst = [0.0]
    for row in model.component_data_objects(pyo.Constraint, active=True, descend_into=pyo.Block):
        if row.name not in rules.names:
            worst.append(oracles.residual(row))
    for var in oracles.outputs_of(model, problem.outputs):
        if var.lb is not None:
            worst.append((var.lb - var.value) / max(1.0, abs(var.lb)))
        if var.ub is not None:
            worst.append((var.value - var.ub) / max(1.0, abs(var.ub)))
        if not var.is_continuous():
            worst.append(abs(var.value - round(var.value)))
    return max(worst)


def directly_rule(component: Any, off: list[str]) -> float:
    if oracles.is_off(component, off):
        return 0.0
    if component.ctype is pyo.Constraint:
        return oracles.residual(component)
    for name in off:  # nested ones
        nested = component.model().find_component(name)
        nested.deactivate()
    worst = oracles.residual_of_rule(component)
    for name in off:
        component.model().find_component(name).activate()
    return worst


@pytest.mark.parametrize("problem", PLAIN, ids=lambda p: p.name)
def test_plain_rules_as_pyomo_evaluates_them(problem: Problem) -> None:
    model = problem.build()
    rules = problem.rules(model)
    assert rules.is_plain
    x, y = points(problem)
    violation, globally = rules.violation(y, x), rules.global_violation(y, x)
    active = rules.active(x) if x is not None else torch.ones(len(y), len(rules.names)).bool()
    satisfied = {tol: rules.satisfied(y, x, tol=tol) for tol in (1e-6, LOOSE)}
    for k in range(len(y)):
        _, off = at(model, problem, [] if x is None else x[k].tolist(), y[k].tolist())
        wanted = []
        for r, name in enumerate(rules.names):
            component = model.find_component(name)
            assert active[k, r].item() == (not oracles.is_off(component, off)), name
            wanted.append(directly_rule(component, off))
        alone = directly_global(model, problem, rules)
        assert violation[k].tolist() == pytest.approx(wanted, abs=1e-12)
        assert globally[k].item() == pytest.approx(alone, abs=1e-12)
        for tol, told in satisfied.items():
            assert told[k].item() == (max([alone, *wanted]) <= tol)


def holds_for_some_truth_values(
    model: Any, rules: gdpnet.RuleModel, off: list[str], tol: float
) -> bool:
    """Lists the values of all indicators and BooleanVars; what is off is left out."""
    disjunctions = [
        d
        for d in model.component_data_objects(
            Disjunction, active=True, descend_into=(pyo.Block, Disjunct)
        )
        if not oracles.is_off(d, off)
    ]
    disjuncts = [d for one in disjunctions for d in one.disjuncts if d.active]
    others = list(model.component_data_objects(pyo.BooleanVar, descend_into=pyo.Block))
    variables = [v for v in [*(d.indicator_var for d in disjuncts), *others] if not v.fixed]
    parent = {id(d): one.parent_block() for one in disjunctions for d in one.disjuncts}
    rows = {id(d): rows_of(d) for d in disjuncts}
    propositions = [
        c
        for c in model.component_data_objects(
            pyo.LogicalConstraint, active=True, descend_into=(pyo.Block, Disjunct)
        )
        if not oracles.is_off(c, off)
    ]

    def chosen(block: Any) -> bool:
        """Whether a Disjunct and all around it are true; so is the model itself."""
        if block.ctype is not Disjunct:
            return True
        return bool(block.indicator_var.value) and chosen(parent[id(block)])

    def consistent() -> bool:
        for one in disjunctions:
            if chosen(one.parent_block()):
                true = sum(bool(d.indicator_var.value) for d in one.disjuncts if d.active)
                if (true != 1) if one.xor else (true < 1):
                    return False
        if any(chosen(d) and rows[id(d)] > tol for d in disjuncts):
            return False
        return all(pyo.value(c.expr) for c in propositions if chosen(c.parent_block()))

    for values in itertools.product((True, False), repeat=len(variables)):
        for variable, value in zip(variables, values, strict=True):
            variable.set_value(value)
        if consistent():
            return True
    return False


def rows_of(disjunct: Any) -> float:
    found = disjunct.component_data_objects(pyo.Constraint, active=True, descend_into=pyo.Block)
    return max([0.0, *map(oracles.residual, found)])


@pytest.mark.parametrize("problem", LOGIC, ids=lambda p: p.name)
def test_logic_as_listed_truth_values(problem: Problem) -> None:
    model = problem.build()
    rules = problem.rules(model)
    x, y = points(problem)
    satisfied = {tol: rules.satisfied(y, x, tol=tol) for tol in (1e-6, LOOSE)}
    for k in range(len(y)):
        _, off = at(model, problem, [] if x is None else x[k].tolist(), y[k].tolist())
        alone = directly_global(model, problem, rules)
        for tol, told in satisfied.items():
            wanted = alone <= tol and holds_for_some_truth_values(model, rules, off, tol)
            assert told[k].item() == wanted, (y[k], tol)


def test_random_points_see_both_sides() -> None:
    """The comparisons above mean something: points that hold and points that do not."""
    for some in (PLAIN[::6], LOGIC[::4], WITH_AUXILIARIES[::4]):
        told = [problem.rules().satisfied(*points(problem, 6)[::-1]) for problem in some]
        assert set(torch.cat(told).tolist()) == {True, False}


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_satisfied_means_no_violation_above_the_tolerance(problem: Problem) -> None:
    rules = problem.rules()
    x, y = points(problem, 6)
    worst = rules.global_violation(y, x)
    if rules.names:
        worst = torch.maximum(worst, rules.violation(y, x).amax(1))
    for tol in (1e-6, 0.01, LOOSE, 0.3):
        # A measured violation is exact to the last digits of a solver only.
        clear = (worst - tol).abs() > 1e-9
        assert torch.equal(rules.satisfied(y, x, tol=tol)[clear], (worst <= tol)[clear])


# ---- logic ------------------------------------------------------------------------------------


def by_milp(rules: gdpnet.RuleModel, y: torch.Tensor) -> list[float]:
    """Least level at which all clauses hold together, by a mixed-integer program a sample."""
    evaluated = rules.evaluate(y.new_zeros(len(y), 0))
    found = []
    for i in range(len(y)):
        sample = RulesAtSample.of(rules, evaluated, i)
        program = sample.least_violation(y[i].numpy(), sample.clauses, (), (), 0.0)
        answer = disjunctive.polish(program, disjunctive.solve(program))
        found.append(torch.inf if answer.point is None else max(0.0, float(answer.point[-1])))
    return found


def test_logic_is_measured_as_by_a_mixed_integer_program() -> None:
    compared, raised, impossible = 0, 0, 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        rules = random_rules(rng)
        if rules.is_plain or rules.auxiliary_names:
            continue
        y = torch.from_numpy(random_predictions(rng, len(rules.output_names)))
        violation, globally = rules.measure(y)
        rows = rules.evaluate(y.new_zeros(len(y), 0)).rows
        alone = torch.maximum(rules.satisfaction.of_globals(rows.residual(y), y), violation.amax(1))
        together = torch.maximum(violation.amax(1), globally)
        for k, joint in enumerate(by_milp(rules, y)):
            wanted = max(joint, alone[k].item())
            assert together[k].item() == pytest.approx(wanted, rel=1e-8, abs=1e-8), (seed, k)
            compared, raised = compared + 1, raised + (joint > alone[k].item() + 1e-6)
            impossible += joint == torch.inf
    assert compared > 100
    assert raised > 30
    assert 0 < impossible < raised


def counted_programs(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every program that is solved from now on."""
    solved: list[object] = []
    solve = disjunctive.solve

    def counting(program: Any, *rest: Any) -> Any:
        solved.append(program)
        return solve(program, *rest)

    monkeypatch.setattr(disjunctive, "solve", counting)
    return solved


@pytest.mark.parametrize("problem", LOGIC, ids=lambda p: p.name)
def test_logic_alone_needs_no_program(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = points(problem)
    solved = counted_programs(monkeypatch)
    problem.rules().measure(y, x)
    assert not solved


def test_both_violations_for_the_price_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = BY_NAME["coupled_by_auxiliary"]
    rules = problem.rules()
    y = torch.rand(40, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    solved = counted_programs(monkeypatch)
    each = rules.violation(y)
    price = len(solved)
    assert price >= len(y)
    measured = rules.measure(y)
    assert len(solved) == 2 * price
    assert torch.equal(measured[0], each)
    assert torch.equal(measured[1], rules.global_violation(y))
    solved.clear()
    held = what_holds(rules, None, y)
    assert len(solved) == price
    assert torch.equal(held[:, -1], rules.satisfied(y))
    assert torch.equal(held[:, -2], measured[1] <= 1e-6)
    assert torch.equal(held[:, :-2], each <= 1e-6)


# ---- auxiliaries ------------------------------------------------------------------------------


def test_auxiliary_violation_by_a_linear_program() -> None:
    """y0 >= a, y1 >= 1 - a: the least t such that both hold within t, for some a in [0, 1]."""
    rules = BY_NAME["coupled_by_auxiliary"].rules()
    torch.manual_seed(3)
    y = torch.rand(20, 2).double()
    for k, (first, second) in enumerate(y.tolist()):
        found = linprog(
            [0, 1],
            A_ub=[[1, -1], [-1, -1]],
            b_ub=[first, second - 1],
            bounds=[(0, 1), (0, None)],
        )
        assert rules.global_violation(y[k]).item() == pytest.approx(found.fun, abs=1e-9)
        assert rules.satisfied(y[k], tol=1e-6).item() == (found.fun <= 1e-6)


def test_auxiliary_in_a_rule_by_hand() -> None:
    """P is determined by f and c, so the rule's violation is a formula."""
    rules = BY_NAME["power"].rules()
    torch.manual_seed(4)
    y = torch.rand(30, 2).double()
    for k, (f, c) in enumerate(y.tolist()):
        P = 2 * f + 3 * c
        # Rows are scaled by max(1, |b|, |a|): 2 and 3 for those of P, 1 for c.
        wanted = min(max(0.0, P - 2) / 2, max(0.0, (3 - P) / 3, c - 0.4))
        assert rules.violation(y[k]).item() == pytest.approx(wanted, abs=1e-9)
        assert rules.global_violation(y[k]).item() == pytest.approx(0.0, abs=1e-9)


def test_one_value_of_the_auxiliary_for_all_rules() -> None:
    """Each rule holds by itself, for another value of a; together they do not."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 1))
    m.a = pyo.Var(bounds=(0, 1))
    m.first = Disjunction(expr=[[m.a >= 0.8], [m.y >= 0.9]])
    m.second = Disjunction(expr=[[m.a <= 0.2], [m.y >= 0.7]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    y = torch.tensor([[0.1], [0.75], [0.95]]).double()
    assert rules.violation(y).abs().max().item() <= 1e-9
    assert rules.global_violation(y).tolist() == pytest.approx([0.3, 0.0, 0.0], abs=1e-9)
    assert rules.satisfied(y).tolist() == [False, True, True]


@pytest.mark.parametrize("problem", WITH_AUXILIARIES, ids=lambda p: p.name)
def test_auxiliaries_as_pyomo_finds_them(problem: Problem) -> None:
    """A point satisfies the rules if and only if its distance to them is 0."""
    model = problem.build()
    rules = problem.rules(model)
    x, y = points(problem, 6)
    assert x is None
    for k, told in enumerate(rules.satisfied(y, tol=1e-6).tolist()):
        distance = oracles.pyomo_distance(
            model, problem.outputs, y[k].tolist(), reach=problem.reach
        )
        assert told == (distance <= 1e-6)


# ---- types, shapes, snapshot --------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_types_and_shapes(dtype: torch.dtype) -> None:
    rules = BY_NAME["conditions"].rules()
    y, x = torch.rand(2, 3, 2).to(dtype), torch.ones(2, 3, 2).to(dtype)
    assert rules.violation(y, x).dtype == dtype
    assert rules.global_violation(y, x).dtype == dtype
    assert rules.violation(y, x).shape == (2, 3, len(rules.names))
    assert rules.active(x).shape == (2, 3, len(rules.names))
    assert rules.satisfied(y, x).shape == rules.global_violation(y, x).shape == (2, 3)
    assert rules.satisfied(y[0, 0], x[0, 0]).shape == ()
    assert rules.satisfied(y, x[0, 0]).tolist() == rules.satisfied(y, x).tolist()


def test_large_batches_are_measured_in_pieces() -> None:
    rules = BY_NAME["strictly_hot"].rules()
    torch.manual_seed(0)
    x, y = 40 * torch.rand(40000, 1), torch.rand(40000, 2)
    told = rules.satisfied(y, x)
    demand = 0.8 * y[:, 0] + y[:, 1] - 0.1 - 0.01 * x[:, 0]
    hot = (x[:, 0] <= 28) | (y[:, 1] >= 0.45) | (y[:, 0] >= 0.75)
    clear = demand.abs() > 1e-5
    assert torch.equal(told[clear], ((demand >= 0) & hot)[clear])


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_reading_changes_nothing_in_the_model(problem: Problem) -> None:
    def printed(model: Any) -> str:
        text = io.StringIO()
        model.pprint(ostream=text)
        return text.getvalue()

    model = problem.build()
    before = printed(model)
    x = None if problem.x is None else problem.x[:1]
    gdpnet.project(problem.rules(model), problem.yhat[:1], x)
    assert printed(model) == before


def test_later_edits_are_not_seen() -> None:
    problem = BY_NAME["strictly_hot"]
    model = problem.build()
    rules = problem.rules(model)
    assert problem.x is not None
    before = gdpnet.project(rules, problem.yhat, problem.x)
    text, hashed = repr(rules), rules.fingerprint
    model.Ta.set_value(99.0)
    model.c.setub(0.2)
    model.f.fix(0.3)
    model.hot.deactivate()
    model.demand.set_value(model.f + model.c <= 0.1)
    model.active_when[model.hot] = model.Ta > -100
    model.extra = Disjunction(expr=[[model.f <= 0], [model.c <= 0]])
    after = gdpnet.project(rules, problem.yhat, problem.x)
    assert torch.equal(before.y, after.y)
    assert torch.equal(before.status, after.status)
    assert (repr(rules), rules.fingerprint) == (text, hashed)
    assert rules.names == ("hot",)
