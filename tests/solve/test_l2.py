"""norm="l2": the nearest point in the Euclidean norm, against enumeration with DAQP."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunct, Disjunction

import gdpnet
from gdpnet import Status
from gdpnet.errors import InputError
from gdpnet.solve import Exact
from gdpnet.testing import PROBLEMS, Problem, random_predictions, random_rules
from gdpnet.testing.problems import reference
from tests.derivative.euclidean_differences import differences
from tests.derivative.random_models import compare, random_model
from tests.solve.l2_oracle import Oracle

LARGE = {c["id"] for c in reference.CASES if c["dnf_terms"] > 100}


def agrees(
    rules: gdpnet.RuleModel, yhat: Any, x: Any = None, weights: Any = None, **keywords: Any
) -> gdpnet.Projection:
    """Project, and compare every sample with the enumeration."""
    yhat = torch.as_tensor(yhat, dtype=torch.float64)
    p = gdpnet.project(rules, yhat, x, norm="l2", weights=weights, **keywords)
    inputs = None if x is None else torch.as_tensor(x, dtype=torch.float64).reshape(len(yhat), -1)
    for k in range(len(yhat)):
        at = None if inputs is None else inputs[k].numpy()
        wanted = Oracle(rules, yhat[k].numpy(), at, weights).solve()
        if math.isinf(wanted):
            assert p.status[k] == Status.CONFLICT
            assert p.distance[k] == p.value[k] == math.inf
            continue
        assert p.status[k] in (Status.SATISFIED, Status.PROJECTED)
        assert float(p.value[k]) == pytest.approx(wanted, rel=1e-8, abs=1e-8)
        assert float(p.distance[k]) ** 2 == pytest.approx(wanted, rel=1e-8, abs=1e-8)
        own = None if inputs is None else inputs[k : k + 1]
        assert rules.satisfied(p.y[k : k + 1], own, tol=1e-9).all()
    return p


# ---- against enumeration --------------------------------------------------------------------


@pytest.mark.parametrize(
    "problem", [p for p in PROBLEMS if p.name not in LARGE], ids=lambda p: p.name
)
def test_the_bank(problem: Problem) -> None:
    rules = problem.rules(problem.build())
    agrees(rules, problem.yhat, problem.x)
    d = len(rules.output_names)
    agrees(rules, problem.yhat, problem.x, np.linspace(0.5, 2.0, d).tolist())


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_random_rules(first: int) -> None:
    for seed in range(first, first + 10):
        rng = np.random.default_rng(seed)
        rules = random_rules(rng)
        d = len(rules.output_names)
        weights = rng.uniform(0.3, 3.0, d).tolist() if seed % 2 else None
        agrees(rules, random_predictions(rng, d), weights=weights)


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_models_with_inputs_auxiliaries_and_whole_numbers(first: int) -> None:
    for seed in range(first, first + 10):
        model = random_model(seed, batch=4)
        agrees(model.rules, model.yhat, model.x, model.weights)


def test_whole_auxiliaries_are_tried_one_after_the_other() -> None:
    # Whole numbers without cost that are whole by chance, until a rule is decided.
    model = random_model(546, batch=4)
    agrees(model.rules, model.yhat, model.x, model.weights)


# ---- what is meant --------------------------------------------------------------------------


def gap(low: float = 3.0, high: float = 7.0, *, mirrored: bool = False) -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    below, above = [m.y <= low], [m.y >= high]
    m.gap = Disjunction(expr=[above, below] if mirrored else [below, above])
    return gdpnet.RuleModel(m, outputs=[m.y])


def test_distance_is_the_root_and_value_the_square() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([0, 1], bounds=(0, 10))
    m.total = pyo.Constraint(expr=m.y[0] + m.y[1] <= 2)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    p = gdpnet.project(rules, [[3.0, 2.0]], norm="l2", weights=[4.0, 2.0])
    assert p.y[0].tolist() == pytest.approx([2.0, 0.0])  # 2.4 and -0.4, but for the bound
    moved = (p.y[0] - torch.tensor([3.0, 2.0])) * torch.tensor([4.0, 2.0])
    assert float(p.distance) == pytest.approx(float(moved.norm()))
    assert float(p.value) == pytest.approx(float(moved.norm()) ** 2)
    assert float(p.info.bound) == pytest.approx(float(p.value))


def test_predictions_are_not_clipped_first() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([0, 1], bounds=(0, 1))
    m.total = pyo.Constraint(expr=m.y[0] + m.y[1] <= 1)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    assert gdpnet.project(rules, [[3.0, 1.0]], norm="l2").y.tolist() == [[1.0, 0.0]]


def test_squared_distances_of_components_add_up() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(3), bounds=(0, 10))
    m.first = Disjunction(expr=[[m.y[0] <= 3], [m.y[0] >= 7]])
    m.second = Disjunction(expr=[[m.y[1] <= 2], [m.y[1] >= 8]])
    p = gdpnet.project(gdpnet.RuleModel(m, outputs=[m.y]), [[4.0, 4.0, 12.0]], norm="l2")
    assert p.y.tolist() == [[3.0, 2.0, 10.0]]
    assert float(p.value) == pytest.approx(1.0 + 4.0 + 4.0)
    assert float(p.distance) == pytest.approx(3.0)


def test_a_prediction_that_is_good_enough_passes() -> None:
    p = gdpnet.project(gap(), [[2.0], [3.0 + 1e-10], [8.0]], norm="l2")
    assert p.status.tolist() == [Status.SATISFIED] * 3
    assert p.y.tolist() == [[2.0], [3.0 + 1e-10], [8.0]]
    assert p.value.tolist() == [0.0] * 3


# ---- equal distances ------------------------------------------------------------------------


def test_of_equally_near_disjuncts_the_first_is_taken() -> None:
    assert gdpnet.project(gap(), [[5.0]], norm="l2").y.tolist() == [[3.0]]
    mirrored = gdpnet.project(gap(mirrored=True), [[5.0]], norm="l2")
    assert mirrored.y.tolist() == [[7.0]]
    assert mirrored.disjunct.tolist() == [[0]]


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_the_order_of_the_model_decides_between_corners(order: tuple[int, ...]) -> None:
    # Four corners of a square, rows that are met in another order, all equally near.
    m = pyo.ConcreteModel()
    m.y = pyo.Var([0, 1], bounds=(-2, 2))
    sides = [m.y[0] <= -1, m.y[0] >= 1, m.y[1] <= -1, m.y[1] >= 1]
    m.out = Disjunction(expr=[[sides[k]] for k in order])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    p = gdpnet.project(rules, [[0.0, 0.0]], norm="l2")
    assert p.disjunct.tolist() == [[0]]
    wanted = [[-1.0, 0.0], [1.0, 0.0], [0.0, -1.0], [0.0, 1.0]][order[0]]
    assert p.y.tolist() == [wanted]


def test_rules_are_compared_one_after_the_other() -> None:
    # Either both low or both high: the second rule is broken more, and branched on first.
    m = pyo.ConcreteModel()
    m.y = pyo.Var([0, 1], bounds=(-9, 9))
    m.small = Disjunction(expr=[[m.y[0] >= 1], [m.y[0] <= -1]])
    m.large = Disjunction(expr=[[m.y[1] <= -4], [m.y[1] >= 4]])
    m.tie = Disjunction(expr=[[m.y[0] >= 0, m.y[1] >= 0], [m.y[0] <= 0, m.y[1] <= 0]])
    p = gdpnet.project(gdpnet.RuleModel(m, outputs=[m.y]), [[0.0, 0.0]], norm="l2")
    assert p.y.tolist() == [[1.0, 4.0]]
    assert p.disjunct.tolist() == [[0, 1, 0]]


def test_many_ties_cost_little() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(8), bounds=(-9, 9))
    m.total = pyo.Constraint(expr=sum(m.y.values()) <= 100)  # one component
    m.rules = Disjunction(range(8), rule=lambda m, j: [[m.y[j] <= -1], [m.y[j] >= 1]])
    p = gdpnet.project(gdpnet.RuleModel(m, outputs=[m.y]), np.zeros((1, 8)), norm="l2")
    assert p.y.tolist() == [[-1.0] * 8]
    assert int(p.info.nodes) < 40


# ---- columns without cost -------------------------------------------------------------------


@pytest.mark.parametrize("coefficient", [1.0, 1e-3, 1e3])
@pytest.mark.parametrize("bounds", [(None, None), (-1e4, 1e4), (0, 1e7)])
def test_auxiliaries_cost_nothing_however_far_they_move(coefficient: float, bounds: Any) -> None:
    m = pyo.ConcreteModel()
    m.y, m.z = pyo.Var(), pyo.Var(bounds=bounds)
    m.row = pyo.Constraint(expr=m.y >= 1000 - coefficient * m.z)
    m.gap = Disjunction(expr=[[m.y <= 3], [m.y >= 7]])
    p = gdpnet.project(gdpnet.RuleModel(m, outputs=[m.y]), [[4.5], [0.0], [6.5]], norm="l2")
    least = 1000 - coefficient * (math.inf if bounds[1] is None else bounds[1])
    wanted = [3.0, 0.0, 7.0] if least <= 0 else [least] * 3
    assert p.y[:, 0].tolist() == pytest.approx(wanted, abs=1e-12)
    assert int(p.info.nodes.max()) <= 3


def test_a_chain_of_auxiliaries() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([0, 1], bounds=(-50, 50))
    m.a = pyo.Var(range(3))
    m.first = pyo.Constraint(expr=m.a[0] == 100 * m.y[0] + m.y[1])
    m.second = pyo.Constraint(expr=m.a[1] == 0.01 * m.a[0] - m.y[1])
    m.third = pyo.Constraint(expr=1e4 * m.a[2] == m.a[0] + m.a[1])
    m.rule = Disjunction(expr=[[m.a[2] <= 0.1, m.a[1] >= 2], [m.a[2] >= 0.5]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    p = agrees(rules, np.random.default_rng(0).uniform(-40, 40, (20, 2)))
    assert int(p.info.nodes.max()) <= 5


def test_auxiliaries_do_not_make_the_search_blind() -> None:
    # Twelve rules whose rows all have an auxiliary of their own of size 1e4.
    rng = np.random.default_rng(3)
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(4), bounds=(-5, 5))
    m.a = pyo.Var(range(12), bounds=(-1e4, 1e4))
    m.link, m.rules = pyo.ConstraintList(), Disjunction(range(12), rule=lambda m, r: _two(m, r))
    for r in range(12):
        m.link.add(m.a[r] == 1e3 * sum(float(c) * m.y[j] for j, c in enumerate(rng.normal(size=4))))
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    p = agrees(rules, rng.normal(size=(5, 4)))
    assert int(p.info.nodes.max()) <= 400


def _two(m: Any, r: int) -> list[Any]:
    return [[m.a[r] <= -400.0], [m.a[r] >= 400.0]]


def test_a_bound_that_rows_say_once_more_is_no_contradiction() -> None:
    # Rows that come one after the other fix every column; y[0] ends off its bound by rounding.
    m = pyo.ConcreteModel()
    m.y = pyo.Var([0, 1], bounds=(0, 10))
    m.n, m.on = pyo.Var(bounds=(0, 4)), pyo.Var(bounds=(0, 1))
    rows = [
        m.y[0] - 2.5 * m.n == 0,
        m.y[1] - 10 * m.on <= 0,
        -m.y[1] + 4 * m.on <= 0,
        m.n + m.on >= 1,
        m.n <= 0,
    ]
    m.rules = Disjunction(range(5), rule=lambda m, k: [[rows[k]]])
    p = agrees(gdpnet.RuleModel(m, outputs=[m.y]), [[0.5, 0.5]])
    assert p.y.tolist() == [[0.0, 4.0]]


# ---- whole numbers, logic, nesting ----------------------------------------------------------


def test_whole_outputs() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([0, 1], bounds=(0, 6))
    m.y[1].domain = pyo.Integers
    m.row = pyo.Constraint(expr=m.y[0] + 2 * m.y[1] <= 7)
    m.rule = Disjunction(expr=[[m.y[1] >= 2, m.y[0] <= 1], [m.y[0] >= 4]])
    p = agrees(gdpnet.RuleModel(m, outputs=[m.y]), np.random.default_rng(1).uniform(0, 6, (20, 2)))
    assert (p.y[:, 1] == p.y[:, 1].round()).all()


def test_logic_and_nested_rules() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([0, 1], bounds=(-5, 5))
    m.d = Disjunct([0, 1, 2])
    m.d[0].c = pyo.Constraint(expr=m.y[0] <= -1)
    m.d[1].c = pyo.Constraint(expr=m.y[0] >= 1)
    m.d[2].c = pyo.Constraint(expr=m.y[1] >= 3)
    m.first = Disjunction(expr=[m.d[0], m.d[1], m.d[2]])
    m.d[1].inner = Disjunction(expr=[[m.y[1] <= -2], [m.y[1] >= 2]])
    m.e = Disjunct([0, 1])
    m.e[0].c = pyo.Constraint(expr=m.y[0] + m.y[1] <= 0)
    m.e[1].c = pyo.Constraint(expr=m.y[0] + m.y[1] >= 1)
    m.second = Disjunction(expr=[m.e[0], m.e[1]])
    m.logic = pyo.LogicalConstraint(expr=m.d[0].indicator_var.implies(m.e[1].indicator_var))
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    agrees(rules, np.random.default_rng(2).uniform(-4, 4, (30, 2)), weights=[1.0, 3.0])


# ---- what may go wrong ----------------------------------------------------------------------


def test_contradictions_and_limits_are_said() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 1))
    m.rule = Disjunction(expr=[[m.y >= 2], [m.y <= -1]])
    p = gdpnet.project(gdpnet.RuleModel(m, outputs=[m.y]), [[0.5]], norm="l2")
    assert p.status.tolist() == [Status.CONFLICT]
    model = random_model(546, batch=8)
    limited = gdpnet.project(
        model.rules, model.yhat, model.x, norm="l2", solver=Exact(node_limit=3)
    )
    free = gdpnet.project(model.rules, model.yhat, model.x, norm="l2")
    assert limited.answer.finished_by("milp").any()  # what the search left open
    assert limited.status.tolist() == free.status.tolist()
    assert torch.allclose(limited.distance, free.distance, rtol=1e-8, atol=1e-8)


def test_large_predictions_keep_the_digits_of_the_answer() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([0, 1])
    m.rule = Disjunction(expr=[[m.y[0] + m.y[1] <= 1, m.y[0] >= 0], [m.y[0] - m.y[1] >= 3]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    yhat = torch.tensor([[1e7, 3e7], [-2e6, 1e6], [4e5, 5e5]], dtype=torch.float64)
    p = gdpnet.project(rules, yhat, norm="l2")
    assert (p.status == Status.PROJECTED).all()
    assert rules.satisfied(p.y, tol=1e-9).all()
    for k in range(3):
        wanted = Oracle(rules, yhat[k].numpy()).solve()
        assert float(p.value[k]) == pytest.approx(wanted, rel=1e-9)


def test_float32_predictions_get_numbers_that_hold() -> None:
    model = random_model(7, batch=8)
    yhat = model.yhat.float()
    p = gdpnet.project(model.rules, yhat, model.x, norm="l2")
    assert p.y.dtype is torch.float32
    good = (p.status == Status.PROJECTED) | (p.status == Status.SATISFIED)
    assert good.any()
    x = None if model.x is None else model.x[good]
    assert model.rules.satisfied(p.y[good].double(), x, tol=1e-6).all()


def test_answers_do_not_depend_on_threads() -> None:
    model = random_model(12, batch=200)
    one, four = (
        gdpnet.project(model.rules, model.yhat, model.x, norm="l2", threads=t) for t in (1, 4)
    )
    assert torch.equal(one.y, four.y)
    assert torch.equal(one.info.nodes, four.info.nodes)


@pytest.mark.parametrize(
    ("keywords", "told"),
    [
        ({"relaxation": "cnf", "solver": "highs"}, "norm: solver .* knows 'l1', got 'l2'"),
        ({"solver": "milp"}, "norm: solver MILP.* knows 'l1', got 'l2'"),
        ({"solver": "extended"}, "norm: solver Extended.* knows 'l1', got 'l2'"),
        ({"solver": Exact(tie="least_norm")}, "norm: 'l2' leaves no tie to tie='least_norm'"),
    ],
)
def test_what_does_not_know_it_says_so(keywords: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        gdpnet.project(gap(), [[5.0]], norm="l2", **keywords)
    with pytest.raises(InputError, match=r"norm: solver .* knows 'l1', 'l2', got 'linf'"):
        gdpnet.project(gap(), [[5.0]], norm="linf")


# ---- derivatives ----------------------------------------------------------------------------


def test_jacobians_are_those_of_differences() -> None:
    # As many as wanted: python -m tests.derivative.euclidean_differences --samples 10000
    tally, _ = differences(400)
    assert not tally.wrong, tally.wrong[:5]
    assert tally.through_x >= 120


def test_the_jacobian_is_the_projector_onto_the_face() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(3), bounds=(-10, 10))
    m.plane = pyo.Constraint(expr=m.y[0] + 2 * m.y[1] - m.y[2] == 1)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    weights = np.array([1.0, 2.0, 0.5])
    layer = gdpnet.ProjectionLayer(rules, norm="l2", weights=weights.tolist(), gradient="vertex")
    yhat = torch.tensor([[0.3, 0.2, 0.9]], dtype=torch.float64)
    found = torch.autograd.functional.jacobian(lambda t: layer(t)[0], yhat)[:, 0]
    a, inverse = np.array([1.0, 2.0, -1.0]), np.diag(weights**-2)
    wanted = np.eye(3) - np.outer(inverse @ a, a) / (a @ inverse @ a)
    assert np.abs(found.numpy() - wanted).max() <= 1e-12


def test_what_a_bound_holds_has_no_gradient() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(3), bounds=(0, 10))
    m.total = pyo.Constraint(expr=m.y[0] + m.y[1] <= 1)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    # Held by its bound; sharing what the row asks; on a bound only because its prediction is.
    yhat = torch.tensor([[-1.0, 3.0, 0.0]], dtype=torch.float64, requires_grad=True)
    gdpnet.project(rules, yhat, norm="l2", gradient="vertex").y.sum().backward()
    assert yhat.grad is not None
    assert yhat.grad.tolist() == [[0.0, 0.0, 1.0]]


@pytest.mark.parametrize("weights", [None, [0.5, 2.0, 1.0]], ids=["plain", "weighted"])
def test_gradcheck_through_rows_that_depend_on_inputs(weights: list[float] | None) -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Param([0, 1], mutable=True, initialize=1.0)
    m.y = pyo.Var(range(3), bounds=(-5, 5))
    m.a = pyo.Var(bounds=(-50, 50))
    m.n = pyo.Var(domain=pyo.Integers, bounds=(0, 3))
    m.link = pyo.Constraint(expr=m.a == m.y[0] + m.x[0] ** 2 * m.y[1])
    m.row = pyo.Constraint(expr=m.x[1] * m.y[0] + m.y[2] >= 2.5 + 0.3 * m.n)
    m.rule = Disjunction(expr=[[m.a >= 1 + m.x[1], m.n >= 1], [m.a <= -9]])
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.x])
    layer = gdpnet.ProjectionLayer(rules, norm="l2", weights=weights, gradient="vertex")
    rng = torch.Generator().manual_seed(3)
    yhat = torch.randn(6, 3, generator=rng, dtype=torch.float64, requires_grad=True)
    x = (0.7 + torch.rand(6, 2, generator=rng, dtype=torch.float64)).requires_grad_()
    p = layer.project(yhat, x)
    assert (p.status == Status.PROJECTED).all()
    # The derivative gives auxiliaries a squared weight of 1e-6 in place of none (face.hpp), so that
    # it is good to some 1e-6 where one is free; without auxiliaries to rounding, below.
    assert torch.autograd.gradcheck(layer, (yhat, x), eps=1e-5, atol=1e-5, rtol=1e-5)
    (gradient,) = torch.autograd.grad(p.y.sum(), x)
    assert (gradient.abs() > 1e-3).any(1).all()


def test_derivatives_without_auxiliaries_are_those_to_seven_digits() -> None:
    checked = 0
    for seed in range(40):
        model = random_model(seed, batch=6, plain=True)
        if model.x is None:
            continue
        smooth = compare(model, 1e-7, norm="l2", gradient="vertex")
        assert not smooth.wrong, smooth.wrong[:3]
        checked += smooth.smooth
    assert checked > 60
