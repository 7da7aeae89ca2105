"""CNF, partial DNF and DNF with norm="l2": ordered, exact where they say so, and differentiable."""

from __future__ import annotations

import math
import sys
import zlib
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet import QP, Mixed, Plan, Status
from gdpnet.errors import InputError, RuleError, SolverError
from gdpnet.ir.data import Shape
from gdpnet.lp import clarabel
from gdpnet.lp.conic import ConicSolution
from gdpnet.lp.program import Outcome
from gdpnet.relaxation import convexify
from gdpnet.relaxation.pyomo.adapter import read_matrices
from gdpnet.relaxation.sizes import sizes_of
from gdpnet.solve.conic import written
from gdpnet.testing import (
    CONVEX,
    PROBLEMS,
    Problem,
    random_convex_model,
    random_predictions,
    random_rules,
)
from tests.derivative import random_models
from tests.derivative.random_models import Tally, compare, random_model
from tests.relaxation.test_cones import solved
from tests.relaxation.test_relaxations import has_hull, two_boxes
from tests.solve.l2_oracle import Oracle

Tensor = torch.Tensor

# What Clarabel's values may miss, of values of about 1.
NEAR = 1e-6


def few_products(rules: gdpnet.RuleModel, k: int) -> bool:
    first = rules.data.rules[:k]
    return math.prod(len(rules.data.clauses[r.clause].literals) for r in first) <= 100


def assert_ordered(
    rules: gdpnet.RuleModel,
    yhat: Tensor,
    x: Tensor | None,
    weights: Any = None,
    norm: str = "l2",
    tolerance: float = NEAR,
) -> None:
    """Values rise with every rule that is merged, to that of the exact engine."""
    exact = gdpnet.project(rules, yhat, x, norm=norm, weights=weights)
    near = tolerance * exact.value.clamp(min=1.0)
    plans: list[Any] = [
        Plan.lexicographic(rules, k) for k in range(len(rules.names)) if few_products(rules, k)
    ]
    if few_products(rules, len(rules.names)):
        plans.append("dnf")
    last = torch.zeros(len(yhat), dtype=torch.float64)
    for relaxation in plans:
        p = gdpnet.project(
            rules, yhat, x, norm=norm, relaxation=relaxation, solver="clarabel", weights=weights
        )
        assert (p.value >= last - near).all()
        assert (p.value <= exact.value + near).all()
        assert not ((p.status == Status.UNSOLVED) | (p.status == Status.ERROR)).any()
        projected = p.status == Status.PROJECTED
        assert rules.satisfied(p.y, x, tol=1e-8)[projected].all()
        assert torch.allclose(p.distance[projected], exact.distance[projected], atol=1e-6)
        assert (exact.status[p.status == Status.CONFLICT] == Status.CONFLICT).all()
        last = torch.where(p.value.isfinite(), p.value, last)
    if plans[-1] == "dnf":
        assert p.status.tolist() == exact.status.tolist()
        assert (p.value.isinf() == exact.value.isinf()).all()
        both = exact.value.isfinite()
        assert ((p.value - exact.value).abs() <= near)[both].all()


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_relaxations_of_the_bank_are_ordered(problem: Problem) -> None:
    rules = problem.rules()
    if not has_hull(rules):
        with pytest.raises(RuleError, match="hull"):
            gdpnet.project(rules, problem.yhat, problem.x, norm="l2", relaxation="cnf")
        return
    assert_ordered(rules, problem.yhat, problem.x, None)
    weights = np.linspace(0.5, 2.0, len(rules.output_names)).tolist()
    assert_ordered(rules, problem.yhat, problem.x, weights)


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_relaxations_of_random_rules_are_ordered(first: int) -> None:
    for seed in range(first, first + 10):
        rng = np.random.default_rng(seed)
        rules = random_rules(rng)
        if has_hull(rules):
            yhat = torch.from_numpy(random_predictions(rng, len(rules.output_names)))
            assert_ordered(rules, yhat, None, None)


# ---- convex rows ----------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("problem", CONVEX, ids=lambda p: p.name)
def test_relaxations_of_convex_rows_are_ordered(problem: Problem, norm: str) -> None:
    assert_ordered(problem.rules(), problem.yhat, problem.x, norm=norm)


@pytest.mark.parametrize("first", range(0, 24, 8))
def test_relaxations_of_random_convex_rows_are_ordered(first: int) -> None:
    for seed in range(first, first + 8):
        rng = np.random.default_rng(seed)
        d, kind = 2 + seed % 3, ("ellipsoids", "cones", "mixed")[seed % 3]
        m = random_convex_model(rng, d, kind, thin=0.0)
        yhat = torch.from_numpy(rng.uniform(-4, 4, (4, d)))
        assert_ordered(gdpnet.RuleModel(m, outputs=[m.y]), yhat, None, tolerance=1e-5)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("problem", CONVEX, ids=lambda p: p.name)
def test_the_pyomo_chain_of_convex_rows_has_the_same_value(problem: Problem, norm: str) -> None:
    rules = problem.rules()
    if any(column.integer for column in rules.data.columns):
        pytest.skip("the chain relaxes whole numbers")
    p = gdpnet.project(rules, problem.yhat, problem.x, norm=norm, relaxation="cnf")
    for k, sample in enumerate(problem.samples):
        if p.status[k] in (Status.SATISFIED, Status.CONFLICT):
            continue
        program = gdpnet.convexify(
            rules, relaxation="cnf", x=sample.x or None, yhat=sample.yhat, norm=norm
        )
        lost = float(pyo.value(_outside(program))) if norm == "l1" else 0.0
        wanted = float(p.value[k])
        assert solved(read_matrices(program)) + lost == pytest.approx(wanted, abs=1e-5, rel=1e-5)


def _outside(program: Any) -> Any:
    """What is left of the objective where every distance is 0."""
    for eta in program.gdpnet_eta.values():
        eta.set_value(0.0)
    return program.gdpnet_distance.expr


# ---- y --------------------------------------------------------------------------------------


def gap(*, mirrored: bool = False) -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    below, above = [m.y <= 3], [m.y >= 7]
    m.gap = Disjunction(expr=[above, below] if mirrored else [below, above])
    return gdpnet.RuleModel(m, outputs=[m.y])


def test_a_single_rule_is_exact_also_at_a_tie() -> None:
    yhat = [[4.5], [5.0], [12.0], [-3.0], [8.0]]
    p = gdpnet.project(gap(), yhat, norm="l2", relaxation="cnf")
    assert p.y.tolist() == [[3.0], [3.0], [10.0], [0.0], [8.0]]
    assert p.value.tolist() == pytest.approx([2.25, 4.0, 4.0, 9.0, 0.0], abs=1e-7)
    assert p.disjunct.tolist() == [[0], [0], [1], [0], [1]]
    assert [s.value for s in map(Status, p.status.tolist())] == [1, 1, 1, 1, 0]
    mirrored = gdpnet.project(gap(mirrored=True), [[5.0]], norm="l2", relaxation="cnf")
    assert mirrored.y.tolist() == [[7.0]]


def test_a_relaxed_point_is_a_mean_and_its_value_a_lower_bound() -> None:
    rules = two_boxes()
    yhat = torch.tensor([[4.5, 9.5]], dtype=torch.float64)
    cnf = gdpnet.project(rules, yhat, norm="l2", relaxation="cnf")
    exact = gdpnet.project(rules, yhat, norm="l2")
    assert Status(int(cnf.status)) is Status.RELAXED
    assert float(cnf.value) < float(exact.value) - 1.0
    # The mean of copies is never farther than their mean squared distance.
    assert float(cnf.distance) ** 2 <= float(cnf.value) + NEAR
    assert not rules.satisfied(cnf.y).any()
    adaptive = gdpnet.project(rules, yhat, norm="l2", relaxation="adaptive")
    assert adaptive.y.tolist() == exact.y.tolist()
    assert adaptive.info.rounds is not None
    assert int(adaptive.info.rounds) == 1


def test_a_part_of_the_distance_for_each_output_is_tighter_than_one_for_all() -> None:
    # One epigraph of the whole distance in the disjuncts: the sum of squares is at most t.
    m = pyo.ConcreteModel()
    m.y = pyo.Var([1, 2], bounds=(0, 10))
    m.t = pyo.Var(bounds=(0, 1e3))
    whole = (m.y[1] - 4.5) ** 2 + (m.y[2] - 9.5) ** 2 <= m.t

    def box(a: float, b: float, c: float, d: float) -> list[Any]:
        return [m.y[1] >= a, m.y[1] <= b, m.y[2] >= c, m.y[2] <= d, whole]

    m.rule1 = Disjunction(expr=[box(1, 3, 1, 8), box(6, 9, 2, 9)])
    m.rule2 = Disjunction(expr=[box(2, 8, 3, 5), box(3.5, 5.5, 7, 9.5)])
    matrices = read_matrices(convexify(m, [m.t], weights=[1.0], yhat=[0.0]))
    one_for_all = solved(matrices)
    yhat = torch.tensor([[4.5, 9.5]], dtype=torch.float64)
    each = gdpnet.project(two_boxes(), yhat, norm="l2", relaxation="cnf")
    assert float(each.value) > one_for_all + 0.05
    assert one_for_all > 0.0


def test_plans_layers_and_sizes() -> None:
    rules = two_boxes()
    yhat = torch.tensor([[4.5, 9.5], [2.0, 2.0]], dtype=torch.float64)
    exact = gdpnet.project(rules, yhat, norm="l2")
    for relaxation in ("pdnf:2", "plan:64", Plan((rules.names,))):
        p = gdpnet.project(rules, yhat, norm="l2", relaxation=relaxation)
        assert p.status.tolist() == exact.status.tolist()
        assert torch.allclose(p.y, exact.y, atol=1e-9)
    layer = gdpnet.ProjectionLayer(rules, norm="l2", relaxation="cnf")
    p = gdpnet.project(rules, yhat, norm="l2", relaxation="cnf")
    assert torch.equal(layer(yhat), p.y)
    sizes = p.info.sizes
    assert sizes == sizes_of(rules, "cnf", norm="l2")
    assert sizes is not None
    assert sizes.cones == sizes.disjuncts * 2 == 8
    assert sizes_of(rules, "cnf").cones == 0


def test_predictions_far_away_and_other_batches_give_the_same() -> None:
    rules = two_boxes()
    yhat = torch.tensor([[1e6, -1e6], [4.5, 9.5], [-3e3, 4.0]], dtype=torch.float64)
    p = gdpnet.project(rules, yhat, norm="l2", relaxation="cnf")
    exact = gdpnet.project(rules, yhat, norm="l2")
    assert (p.value <= exact.value * (1 + 1e-9)).all()
    for k in range(3):
        alone = gdpnet.project(rules, yhat[k], norm="l2", relaxation="cnf")
        assert torch.allclose(alone.y, p.y[k], atol=1e-4)
        assert float(alone.value) == pytest.approx(float(p.value[k]), rel=1e-6)
    many = yhat.repeat(100, 1)
    threads = gdpnet.project(rules, many, norm="l2", relaxation="cnf", threads=2)
    assert threads.status.reshape(100, 3).unique(dim=0).tolist() == [p.status.tolist()]


def test_batches_are_taken_to_pieces_where_programs_are_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    yhat = torch.from_numpy(np.random.default_rng(3).uniform(0, 10, (7, 2)))
    whole = gdpnet.project(two_boxes(), yhat, norm="l2", relaxation="cnf")
    monkeypatch.setattr(written, "_NUMBERS", 300)
    pieces = gdpnet.project(two_boxes(), yhat, norm="l2", relaxation="cnf")
    assert torch.equal(whole.y, pieces.y)
    assert torch.equal(whole.value, pieces.value)


def test_a_backend_by_name() -> None:
    rules = gap()
    p = gdpnet.project(rules, [[4.0]], norm="l2", solver="clarabel")
    assert p.info.solver == "clarabel"
    assert "clarabel" in gdpnet.solve.names()
    one = gdpnet.project(two_boxes(), [[4.5, 9.5]], solver="clarabel", relaxation="cnf")
    assert float(one.value) == pytest.approx(2.0625, abs=1e-7)  # with norm="l1", as HiGHS has it
    for keywords in ({"strict": True}, {"on_conflict": "nearest"}):
        with pytest.raises(InputError):
            gdpnet.project(rules, [[4.0]], norm="l2", relaxation="cnf", **keywords)


# ---- what may go wrong ----------------------------------------------------------------------


def test_without_clarabel_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "clarabel", None)
    told = (
        r"or of convex rows, need clarabel, which is not installed. pip install 'gdpnet\[conic\]'"
    )
    with pytest.raises(SolverError, match=told):
        gdpnet.project(gap(), [[4.0]], norm="l2", relaxation="cnf")
    assert gdpnet.project(gap(), [[4.0]], norm="l2").y.tolist() == [[3.0]]


def test_what_clarabel_cannot_solve(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = ConicSolution(Outcome.FAILED)
    monkeypatch.setattr(clarabel.KeptProgram, "solve", lambda *_: failed)
    p = gdpnet.project(gap(), [[4.0]], norm="l2", relaxation="cnf", gradient="vertex")
    assert (p.status.tolist(), p.y.tolist()) == ([Status.PROJECTED], [[3.0]])
    assert p.info.solver == "exact"  # one rule: its CNF is exact
    p = gdpnet.project(two_boxes(), [[4.5, 9.5]], norm="l2", relaxation="cnf")
    assert p.status.tolist() == [Status.UNSOLVED]
    assert p.y.tolist() == [[4.5, 9.5]]
    assert p.value.tolist() == [0.0]


def test_contradictions_are_confirmed() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 1))
    m.low = Disjunction(expr=[[m.y[0] + m.y[1] <= 0.3], [m.y[0] <= 0.1, m.y[1] <= 0.1]])
    m.high = Disjunction(expr=[[m.y[0] + m.y[1] >= 0.9], [m.y[0] >= 0.8]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    p = gdpnet.project(rules, [[0.5, 0.5]], norm="l2", relaxation="cnf")
    assert p.status.tolist() == [Status.CONFLICT]
    assert p.value.tolist() == [math.inf]
    assert p.y.tolist() == [[0.5, 0.5]]


# ---- derivatives ----------------------------------------------------------------------------


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps as wide as points of an interior-point method need, right to about 1e-5."""
    monkeypatch.setattr(random_models, "STEP", 1e-3)
    monkeypatch.setattr(random_models, "AGREE", 2e-3)


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize(
    ("keywords", "smooth"),
    [
        ({"relaxation": "cnf", "gradient": "vertex"}, 100),
        ({"relaxation": "cnf", "gradient": QP(0.5), "forward": "qp"}, 70),
        ({"relaxation": "pdnf:1", "gradient": QP(0.02), "forward": "qp"}, 50),
        ({"gradient": QP(0.5), "forward": "qp"}, 100),
        ({"gradient": QP(0.02), "forward": "qp"}, 100),
    ],
    ids=["vertex cnf", "qp cnf", "qp cnf small", "qp dnf", "qp dnf small"],
)
def test_jacobians_are_those_of_differences(keywords: dict[str, Any], smooth: int) -> None:
    tally = Tally()
    for seed in range(30):
        model = random_model(seed, batch=6, plain=True)
        tally.add(compare(model, 5e-3, f"model {seed}", norm="l2", **keywords))
    assert not tally.wrong, tally.wrong[:5]
    assert tally.smooth >= smooth, tally.smooth
    assert tally.through_x >= smooth // 4


@pytest.mark.usefixtures("wide")
def test_jacobians_of_relaxations_of_discs_are_those_of_differences() -> None:
    tally, relaxed = Tally(), 0
    for seed in range(24):
        rng = np.random.default_rng(seed)
        m = random_convex_model(rng, 3, "ellipsoids", thin=0.0)
        rules = gdpnet.RuleModel(m, outputs=[m.y])
        model = random_models.RandomModel(
            rules, torch.from_numpy(rng.uniform(-4, 4, (6, 3))), None, None
        )
        keywords = {"norm": "l2", "relaxation": "cnf", "gradient": "vertex"}
        tally.add(compare(model, 5e-3, f"model {seed}", **keywords))
        found = gdpnet.project(rules, model.yhat, norm="l2", relaxation="cnf")
        relaxed += int((found.status == Status.RELAXED).sum())
    assert not tally.wrong, tally.wrong[:5]
    assert tally.smooth >= 30
    assert relaxed >= 10


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_jacobians_of_relaxed_points_on_every_cone(
    norm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relaxed points alone: exponential and power cones among their rows."""
    monkeypatch.setattr(random_models, "_moved", lambda p: p.status == Status.RELAXED)
    tally, shapes = Tally(), set()
    for seed in range(36):
        rng = np.random.default_rng(seed)
        m = random_convex_model(rng, 3, "mixed", thin=0.0)
        rules = gdpnet.RuleModel(m, outputs=[m.y])
        yhat = torch.from_numpy(rng.uniform(-4, 4, (6, 3)))
        model = random_models.RandomModel(rules, yhat, None, None)
        keywords = {"norm": norm, "relaxation": "cnf", "gradient": "vertex"}
        found = compare(model, 5e-3, f"model {seed}", **keywords)
        tally.add(found)
        if found.smooth:
            shapes |= {curve.shape for row in rules.data.rows for curve in row.curves}
    assert not tally.wrong, tally.wrong[:5]
    assert tally.smooth >= 6
    assert {Shape.EXP, Shape.LOG, Shape.POWER} & shapes


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_jacobians_of_regularised_relaxations_of_convex_rows(norm: str) -> None:
    tally = Tally()
    for seed in range(12):
        rng = np.random.default_rng(seed)
        m = random_convex_model(rng, 2, "mixed", thin=0.0)
        rules = gdpnet.RuleModel(m, outputs=[m.y])
        model = random_models.RandomModel(
            rules, torch.from_numpy(rng.uniform(-4, 4, (4, 2))), None, None
        )
        keywords = {"relaxation": "cnf", "gradient": QP(0.5), "forward": "qp"}
        tally.add(compare(model, 5e-3, f"model {seed}", norm=norm, **keywords))
    # A copy whose weight Clarabel cannot tell from 0 is taken for one with weight, or for none.
    assert len(tally.wrong) <= tally.smooth // 20, tally.wrong[:5]
    assert tally.smooth >= 20


def test_the_regularised_program_in_closed_form_is_the_conic_one() -> None:
    """Two ways to the same point, and to its gradient: products one by one, and one program."""
    compared = 0
    for seed in range(12):
        model = random_model(seed, batch=8, plain=True)
        for eps in (0.05, 1.0):
            found = []
            for solver in ("exact", "clarabel"):
                yhat = model.yhat.clone().requires_grad_()
                p = gdpnet.project(
                    model.rules, yhat, model.x, norm="l2", solver=solver, weights=model.weights,
                    gradient=QP(eps), forward="qp",
                )  # fmt: skip
                p.y.mul(torch.linspace(1, 2, p.y.shape[1]).double()).sum().backward()
                assert yhat.grad is not None
                found.append((p.y.detach(), yhat.grad))
            (y, gradient), (other, theirs) = found
            assert torch.allclose(y, other, atol=1e-4)
            assert torch.allclose(gradient, theirs, atol=2e-3)
            compared += len(y)
    assert compared == 192


def test_near_a_tie_the_loss_feels_both_sides() -> None:
    rules, eps = gap(), 0.5
    yhat = torch.tensor([[4.99], [4.5], [3.5]], dtype=torch.float64, requires_grad=True)
    p = gdpnet.project(rules, yhat, norm="l2", gradient=QP(eps))
    p.y.sum().backward()
    assert yhat.grad is not None
    # Squared distances a and b of 3 and 7: weights 1/2 -+ (a - b) / (2 eps), while below 1.
    slope = 4.0 * (2 * 1.99 + 2 * 2.01) / (2 * eps)
    assert yhat.grad.tolist() == [[pytest.approx(slope)], [0.0], [0.0]]
    moved = gdpnet.project(rules, [[4.99]], norm="l2", gradient=QP(eps), forward="qp")
    share = 0.5 + (2.01**2 - 1.99**2) / (2 * eps)
    assert float(moved.y) == pytest.approx(3 * share + 7 * (1 - share))
    assert Status(int(moved.status)) is Status.RELAXED


def test_mixtures() -> None:
    rules = two_boxes()
    jacobians = []
    for gradient in (QP(2.0), "straight_through", Mixed(QP(2.0), "straight_through", 0.25)):
        yhat = torch.tensor([[4.5, 9.5]], dtype=torch.float64, requires_grad=True)
        gdpnet.project(rules, yhat, norm="l2", relaxation="cnf", gradient=gradient).y[
            0, 0
        ].backward()
        jacobians.append(yhat.grad)
    qp, identity, mixed = jacobians
    assert qp is not None
    assert not torch.allclose(qp, identity)
    assert torch.allclose(mixed, 0.25 * qp + 0.75 * identity)


def test_more_products_than_the_cap_are_said() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(-2, 2))
    m.out = Disjunction(expr=[[m.y[0] <= -1], [m.y[0] >= 1], [m.y[1] <= -1], [m.y[1] >= 1]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    yhat = torch.tensor([[0.0, 0.0]], dtype=torch.float64, requires_grad=True)
    for cap, capped in ((4, False), (2, True)):
        p = gdpnet.project(rules, yhat, norm="l2", gradient=QP(0.1, cap=cap))
        p.y.sum().backward()
        assert p.info.capped is not None
        assert p.info.capped.tolist() == [capped]


def test_the_oracle_agrees_where_the_cnf_is_exact() -> None:
    """Clarabel inside, DAQP outside: points that are said to be nearest are."""
    nearest = 0
    for seed in range(20):
        model = random_model(seed, batch=4, plain=True)
        p = gdpnet.project(
            model.rules, model.yhat, model.x, norm="l2", relaxation="cnf", weights=model.weights
        )
        for k in torch.nonzero(p.status == Status.PROJECTED).flatten().tolist():
            x = None if model.x is None else model.x[k].numpy()
            wanted = Oracle(model.rules, model.yhat[k].numpy(), x, model.weights).solve()
            assert float(p.distance[k]) ** 2 == pytest.approx(wanted, rel=1e-6, abs=1e-8)
            nearest += 1
    assert nearest >= 30


@pytest.mark.parametrize(("seed", "sample"), [(142, 1), (255, 0), (296, 0)])
def test_predictions_far_away_are_solved(seed: int, sample: int) -> None:
    """Squares were lost beside predictions of 1e7 to 1e9, and these were UNSOLVED."""
    from tests.fuzz.convex import convex_case

    case = convex_case(np.random.default_rng([seed, zlib.crc32(b"convex")]), thin=0.0)
    yhat, weights = case.yhat[sample : sample + 1], case.weights.tolist()
    exact = gdpnet.project(case.rules, yhat, norm="l2", weights=weights)
    p = gdpnet.project(case.rules, yhat, norm="l2", weights=weights, relaxation="cnf")
    assert int(p.status[0]) in (Status.RELAXED, Status.PROJECTED)
    # Between the way to the box of the outputs and that to the rules.
    d = yhat.shape[1]
    outside = (yhat[0] - yhat[0].clamp(-4.0, 4.0)).numpy()
    assert (case.lower[:d] == -4.0).all()
    assert (case.upper[:d] == 4.0).all()
    assert float(p.value[0]) >= ((case.weights * outside) ** 2).sum() * (1.0 - 1e-12)
    assert float(p.value[0]) <= float(exact.value[0]) * (1.0 + 1e-12)
    assert (p.y.abs() <= 4.0 + 1e-6).all()
    # Beside the way there, what the relaxation leaves of the squares is nothing.
    away = case.weights * (p.y - yhat)[0].numpy()
    assert float(p.value[0]) == pytest.approx(away @ away, rel=1e-7)


def test_cones_that_clarabel_lost_its_way_in_are_solved() -> None:
    """The seventh sample was UNSOLVED, for equations of a step that were not solved well."""
    rng = np.random.default_rng(3)
    for k in range(8):
        d = int(rng.integers(2, 9))
        m = random_convex_model(rng, d, ["ellipsoids", "cones", "mixed"][k % 3], thin=0.0)
        yhat = torch.from_numpy(rng.normal(size=(48, d)) * 3)[6:7]
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    p = gdpnet.project(rules, yhat, norm="l2", relaxation="pdnf:2")
    exact = gdpnet.project(rules, yhat, norm="l2")
    assert int(p.status[0]) in (Status.RELAXED, Status.PROJECTED)
    assert 17.0 < float(p.value[0]) <= float(exact.value[0]) + 1e-6
