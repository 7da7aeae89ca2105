"""The chain from a Pyomo.GDP model to its linear program."""

from __future__ import annotations

import itertools
import logging
import math
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.contrib.solver.common.factory import SolverFactory as NewSolverFactory
from pyomo.gdp import Disjunct, Disjunction

import gdpnet
from gdpnet.relaxation import Plan, convexify, convexify_rules
from gdpnet.testing import BY_NAME, PROBLEMS, Problem, random_predictions, random_rules
from gdpnet.testing.oracles import outputs_of, solved
from gdpnet.testing.problems import reference
from gdpnet.testing.problems.stress import pyomo_model as stress
from tests.relaxation._programs import assert_same, sizes, value_at


def names_of(m: Any) -> list[str]:
    return [d.name for d in m.component_data_objects(Disjunction)]


# ---- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", reference.CASES, ids=lambda c: c["id"])
def test_values_are_the_proved_ones(case: dict[str, Any]) -> None:
    """CNF, partial DNF and DNF over the reference; predictions outside the box included."""
    m = reference.build(case)
    names = names_of(m)
    kinds: dict[str, Any] = {"cnf_lp": "cnf", "dnf_lp": "dnf"}
    kinds |= {f"pdnf{k}_lp": [names[:k]] for k in range(1, len(names))}
    last = {}
    for key, clusters in kinds.items():
        expected = [(i, e) for i, e in enumerate(case["expected"]) if key in e]
        if not expected:
            continue
        lp = convexify(m, [m.y], clusters=clusters)
        for i, e in expected[:8]:
            value = value_at(lp, e["yhat"])
            assert value == pytest.approx(e[key], abs=1e-7)
            assert value <= e["l1"] + 1e-7
            last[key, i] = value
            if key == "dnf_lp":
                assert value == pytest.approx(e["l1"], abs=1e-7)
                assert gdpnet.RuleModel(m, [m.y]).satisfied(
                    [[v.value for v in lp.gdpnet_y.values()]], tol=1e-7
                )
    for i in range(len(case["expected"])):
        steps = ["cnf_lp", *(f"pdnf{k}_lp" for k in range(1, len(names))), "dnf_lp"]
        values = [last[key, i] for key in steps if (key, i) in last]
        assert all(a <= b + 1e-7 for a, b in itertools.pairwise(values))


def usable(problem: Problem) -> bool:
    """Finite bounds, and no whole numbers of the modeller's own."""
    columns = problem.rules().data.columns
    if problem.name == "bounds_from_inputs":
        return True
    whole = [c for c in columns if c.integer and not c.name.endswith("binary_indicator_var")]
    return not whole and all(math.isfinite(c.lower + c.upper) for c in columns)


BANK = [p for p in PROBLEMS if not p.name.startswith(("jl_", "paper_")) and usable(p)]


@pytest.mark.parametrize("problem", BANK, ids=lambda p: p.name)
def test_dnf_of_the_bank_is_exact(problem: Problem) -> None:
    """Nesting, logic, auxiliaries, conditions, inputs: the LP's value is the distance."""
    rules = problem.rules()
    exact = gdpnet.project(rules, problem.yhat, problem.x).distance.tolist()
    m = problem.build()
    outputs = outputs_of(m, problem.outputs)
    inputs = [m.find_component(name) for name in problem.inputs]
    for sample, distance in list(zip(problem.samples, exact, strict=True))[:3]:
        values = []
        for clusters in ("cnf", "dnf"):
            try:
                lp = convexify(m, outputs, inputs=inputs, clusters=clusters, x=sample.x or None)
                values.append(value_at(lp, sample.yhat))
            except gdpnet.errors.ConflictError:
                values.append(math.inf)
        assert values[1] == pytest.approx(distance, abs=1e-7)
        assert values[0] <= values[1] + 1e-7


def test_random_rules() -> None:
    tried = 0
    for seed in range(120):
        rng = np.random.default_rng(seed)
        rules = random_rules(rng)
        if any(c.integer or not math.isfinite(c.lower + c.upper) for c in rules.data.columns):
            continue
        if math.prod(len(c.literals) for c in rules.data.clauses if not c.logic) > 40:
            continue
        yhat = random_predictions(rng, rules.data.outputs)[:1]
        distance = float(gdpnet.project(rules, yhat).distance[0])
        try:
            lp = convexify_rules(rules, relaxation="dnf")
        except gdpnet.errors.ConflictError:
            assert distance == math.inf
            continue
        assert value_at(lp, yhat[0]) == pytest.approx(distance, abs=1e-6)
        tried += 1
    assert tried >= 10


def test_all_rules_convex_makes_cnf_exact() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 1))
    m.one = Disjunction(expr=[[m.y[0] + m.y[1] <= 0.8]])
    m.two = Disjunction(expr=[[m.y[0] >= 0.3], [m.y[0] >= 0.5]])
    for yhat in ((0.1, 0.9), (0.9, 0.9), (0.4, 0.1)):
        values = [value_at(convexify(m, [m.y], clusters=c), yhat) for c in ("cnf", "dnf")]
        assert values[0] == pytest.approx(values[1], abs=1e-8)


# ---- the paper ----------------------------------------------------------------------------------


def test_lifting_first_gives_3_not_4_and_a_half() -> None:
    m = BY_NAME["paper_one_rule"].build()
    lp = convexify(m, [m.y], yhat=[4.5])
    assert solved(lp)
    assert lp.gdpnet_y[0].value == pytest.approx(3.0)
    assert pyo.value(lp.gdpnet_distance) == pytest.approx(1.5)


def test_a_tie_ends_on_a_disjunct() -> None:
    m = BY_NAME["midway"].build()
    lp = convexify(m, [m.y], clusters="dnf")
    value_at(lp, [5.0])
    assert min(abs(lp.y.value - 3.0), abs(lp.y.value - 7.0)) < 1e-9


def test_separate_parts_stay_separate() -> None:
    """Copies of all outputs in every part would bring fractional vertices back on ties."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 10))
    m.gap = Disjunction(range(2), rule=lambda m, i: [[m.y[i] <= 3], [m.y[i] >= 7]])
    lp = convexify(m, [m.y], clusters="dnf", yhat=[5, 5])
    assert len(lp._gdpnet_basic_steps) == 2
    assert solved(lp)
    for j in range(2):
        assert min(abs(lp.gdpnet_y[j].value - end) for end in (3, 7)) < 1e-9


def test_sizes_of_the_paper() -> None:
    """k = 10: 7174 variables and 25097 rows, the two global rows outside counted in.

    The instance of that table has one disjunct of two rows; ten two-term rules, d = 3.
    """
    m = stress(10)
    m.rule[9].disjuncts[0].more = pyo.Constraint(expr=m.y[0] + m.y[1] <= 1.9)
    originals = 2
    options = {"inputs": [m.need], "prune": False}
    variables, rows = sizes(convexify(m, [m.y], clusters="cnf", **options))
    assert (variables, rows + originals) == (146, 373)
    variables, rows = sizes(convexify(m, [m.y], clusters="dnf", **options))
    assert (variables, rows + originals) == (7174, 25097)
    # Without the products that are empty it is another matter.
    pruned = convexify(m, [m.y], clusters="dnf", inputs=[m.need])
    assert sizes(pruned)[0] < 300


# ---- parameters ---------------------------------------------------------------------------------


@pytest.mark.parametrize("clusters", ["cnf", "dnf"])
@pytest.mark.parametrize("name", ["coefficients", "bounds_from_inputs"])
def test_params_set_after_the_chain(name: str, clusters: str) -> None:
    """Every Param changed in the LP gives the numbers, and the optimum, of a fresh build."""
    problem = BY_NAME[name]
    m = problem.build()
    inputs = [m.find_component(n) for n in problem.inputs]
    options: dict[str, Any] = {"inputs": inputs, "clusters": clusters, "prune": False}
    lp = convexify(m, [m.y], **options)
    for sample in problem.samples:
        for n, value in zip(problem.inputs, sample.x, strict=True):
            lp.find_component(n).set_value(value)
        fresh = convexify(m, [m.y], x=sample.x, yhat=sample.yhat, **options)
        value = value_at(lp, sample.yhat)
        assert_same(lp, fresh)
        assert value == pytest.approx(value_at(fresh, sample.yhat), abs=1e-9)


def test_one_program_for_a_range_of_inputs() -> None:
    """Pruned for all loads within their bounds, so that the load may be set anew."""
    m = stress(5)
    bounds = {"need": (0.1, 0.6)}
    lp = convexify(m, [m.y], inputs=[m.need], clusters="dnf", input_bounds=bounds)
    whole = convexify(m, [m.y], inputs=[m.need], clusters="dnf", prune=False)
    assert sizes(lp)[0] < sizes(whole)[0]
    for need, yhat in ((0.1, (0.9, 0.1, 0.3)), (0.6, (0.1, 0.2, 0.9)), (0.4, (0.5, 0.5, 0.5))):
        lp.need = whole.need = need
        assert value_at(lp, yhat) == pytest.approx(value_at(whole, yhat), abs=1e-8)


def test_the_model_is_not_changed() -> None:
    m = BY_NAME["conditional_logic"].build()
    before = gdpnet.RuleModel(m, [m.y], [m.a]).fingerprint
    components = len(list(m.component_objects(descend_into=True)))
    convexify(m, [m.y], inputs=[m.a], x=[0.0], clusters="dnf")
    assert gdpnet.RuleModel(m, [m.y], [m.a]).fingerprint == before
    assert len(list(m.component_objects(descend_into=True))) == components
    assert all(d.active for d in m.second.disjuncts)


def test_inactive_rules_go_with_their_logic() -> None:
    m = BY_NAME["conditional_logic"].build()
    off = convexify(m, [m.y], inputs=[m.a], x=[0.0], clusters="dnf")
    assert not off.second.active
    assert not off.tie.active
    assert not any(d.active for d in off.second.disjuncts)
    assert len(off._gdpnet_basic_steps) == 1
    # y[1] is free now: only the first rule is paid for.
    assert value_at(off, [0.5, 0.5]) == pytest.approx(0.2)


def test_weights() -> None:
    m = BY_NAME["two_boxes"].build()
    lp = convexify(m, [m.y], weights=[1.0, 3.0], clusters="dnf", yhat=[5, 6])
    assert solved(lp)
    assert pyo.value(lp.gdpnet_distance) == pytest.approx(5.0)


def test_other_solver_interfaces() -> None:
    m = BY_NAME["coefficients"].build()
    lp = convexify(m, [m.y], inputs=[m.s, m.t], x=[3.0, 0.1], yhat=[0.1, 0.6])
    value = value_at(lp, [0.1, 0.6])
    found = NewSolverFactory("highs").solve(lp)
    assert found.incumbent_objective == pytest.approx(value, abs=1e-8)


def test_conditions_of_inputs_outside_of_rules_can_be_solved() -> None:
    """An Expr_if in a constraint that stays outside is written so that solvers take it."""
    m = pyo.ConcreteModel()
    m.s = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var(bounds=(0, 10))
    limit = pyo.Expr_if(IF=m.s >= 1, THEN=4.0, ELSE=6.0)
    m.row = pyo.Constraint(expr=2 * m.y <= limit)
    lp = convexify(m, [m.y], inputs=[m.s])
    assert value_at(lp, [5.0]) == pytest.approx(3.0)
    lp.s = 0.0
    assert value_at(lp, [5.0]) == pytest.approx(2.0)


# ---- plans, messages ----------------------------------------------------------------------------


def test_plans_and_rules_of_conditional_constraints() -> None:
    m = BY_NAME["conditions"].build()
    rules = gdpnet.RuleModel(m, [m.y], [m.a, m.b])
    plan = Plan((("single", "group.rule"), ("many[0]", "many[1]")))
    yhat, x = [0.5, 0.5], [1.0, 1.0]
    lp = convexify(m, [m.y], inputs=[m.a, m.b], clusters=plan, x=x)
    again = convexify_rules(rules, relaxation=plan, x=x)
    cnf, dnf = (convexify_rules(rules, relaxation=kind, x=x) for kind in ("cnf", "dnf"))
    values = [value_at(program, yhat) for program in (cnf, lp, dnf)]
    assert values == sorted(values)
    assert value_at(again, yhat) == pytest.approx(values[1], abs=1e-9)
    # What does not apply is left out of its cluster.
    lp = convexify(m, [m.y], inputs=[m.a, m.b], clusters=plan, x=[0.0, 0.0])
    assert value_at(lp, yhat) == pytest.approx(value_at(convexify_rules(
        rules, relaxation="dnf", x=[0.0, 0.0]), yhat))  # fmt: skip


def test_whole_numbers_are_relaxed_and_said_so(caplog: pytest.LogCaptureFixture) -> None:
    m = BY_NAME["whole_outputs"].build()
    with caplog.at_level(logging.WARNING, logger="gdpnet"):
        convexify(m, [m.y])
    assert "y[0], y[1]" in caplog.text


def test_wrong_arguments() -> None:
    m = BY_NAME["strictly_hot"].build()
    outputs, inputs = [m.f, m.c], [m.Ta]
    with pytest.raises(gdpnet.errors.InputError, match="x: expected 1"):
        convexify(m, outputs, inputs=inputs, x=[1.0, 2.0])
    with pytest.raises(gdpnet.errors.RuleError, match=r"'cold' does not exist.*hot"):
        convexify(m, outputs, inputs=inputs, clusters=[["cold"]])
    with pytest.raises(gdpnet.errors.RuleError, match="'cnf', 'dnf'"):
        convexify(m, outputs, inputs=inputs, clusters="some")
    with pytest.raises(gdpnet.errors.RuleError, match="outputs: expected a Var"):
        convexify(m, [m.Ta])
    with pytest.raises(gdpnet.errors.RuleError, match="expected a Param"):
        convexify(m, outputs, inputs=[m.f])
    with pytest.raises(gdpnet.errors.RuleError, match="empty"):
        convexify(m, outputs, clusters=[[]])
    m.part = pyo.Block()
    with pytest.raises(gdpnet.errors.RuleError, match="Block of"):
        convexify(m.part, outputs)
    with pytest.raises(gdpnet.errors.InputError, match="x: expected 1"):
        convexify_rules(gdpnet.RuleModel(m, outputs, inputs))


def test_contradictions_and_missing_bounds() -> None:
    m = BY_NAME["contradictory_logic"].build()
    with pytest.raises(gdpnet.errors.ConflictError):
        convexify(m, [m.y])
    m = BY_NAME["unbounded_outputs"].build()
    with pytest.raises(gdpnet.errors.RuleError, match=r"'y\[0\]' \(lower and upper\).*setlb"):
        convexify(m, [m.y])


def test_by_name_on_a_modellers_own_model() -> None:
    """The transformations one by one, as a modeller calls them, with a rule left to big-M."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 10))
    m.a, m.b = Disjunct(), Disjunct()
    m.a.row = pyo.Constraint(expr=m.y[0] <= 3)
    m.b.row = pyo.Constraint(expr=m.y[0] >= 7)
    m.one = Disjunction(expr=[m.a, m.b])
    m.two = Disjunction(expr=[[m.y[1] <= 4], [m.y[1] >= 8]])
    m.three = Disjunction(expr=[[m.y[0] + m.y[1] >= 12], [m.y[0] + m.y[1] <= 5]])
    steps = pyo.TransformationFactory("gdpnet.basic_steps")
    steps.apply_to(m, clusters=[["one", "two"]])
    pyo.TransformationFactory("gdpnet.lift_projection").apply_to(m, outputs=[m.y], yhat=[5.5, 6])
    merged = m._gdpnet_basic_steps[0].merged
    pyo.TransformationFactory("gdpnet.hull").apply_to(m, targets=[merged])
    pyo.TransformationFactory("gdp.bigm").apply_to(m)
    pyo.SolverFactory("appsi_highs").solve(m)
    assert pyo.value(m.gdpnet_distance) == pytest.approx(3.5)
    assert steps.get_src_disjuncts(merged.disjuncts[0])[0] is m.a
