"""Convex rows by the exact engine: distances by hand, enumeration, differences, limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet import core
from gdpnet.errors import InputError, RuleError
from gdpnet.ir.data import RuleData
from gdpnet.ir.instance import Instance
from gdpnet.ir.linear import Coefficient
from gdpnet.ir.rules import Rules
from gdpnet.solve import Exact
from gdpnet.solve.exact.engine import ExactEngine
from gdpnet.solve.exact.options import SearchOptions
from gdpnet.solve.status import Status
from gdpnet.testing import Problem, random_convex_model
from gdpnet.testing.problems.convex import PROBLEMS

NORMS = ["l1", "l2"]
THIN = {"single_point", "touching_discs", "flat"}  # without an interior: right to 1e-6


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_bank(problem: Problem, norm: str) -> None:
    rules = problem.rules()
    p = gdpnet.project(rules, problem.yhat, problem.x, norm=norm)
    for k, sample in enumerate(problem.samples):
        wanted = sample.euclidean if norm == "l2" else sample.distance
        status = int(p.status[k])
        if wanted == float("inf"):
            assert status == Status.CONFLICT
            continue
        assert status in (Status.PROJECTED, Status.SATISFIED)
        if wanted is not None:
            tolerance = 1e-6 if problem.name in THIN else 1e-8
            assert float(p.distance[k]) == pytest.approx(wanted, abs=tolerance)
    answered = p.status != Status.CONFLICT
    assert rules.satisfied(p.y, problem.x, tol=1e-9)[answered].all()


@pytest.mark.parametrize("norm", NORMS)
def test_random_rules_are_those_of_enumeration(norm: str) -> None:
    pytest.importorskip("clarabel")
    from tests.solve.convex_oracle import compare

    found = [compare(seed, norm) for seed in range(10_000, 10_150)]
    assert [message for _, message in found if message is not None] == []
    assert {core.SOLVED, core.NO_SOLUTION} <= {outcome for outcome, _ in found}


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", ["ellipsoids", "cones", "mixed"])
def test_no_point_of_the_rules_is_nearer(kind: str, norm: str) -> None:
    """Of random models, exponentials and logarithms among them: points that satisfy the rules."""
    rng = np.random.default_rng(7)
    for _ in range(12):
        m = random_convex_model(rng, int(rng.integers(2, 5)), kind)
        rules = gdpnet.RuleModel(m, outputs=[m.y])
        d = len(rules.output_names)
        yhat = torch.from_numpy(rng.uniform(-4, 4, (4, d)))
        p = gdpnet.project(rules, yhat, norm=norm)
        assert set(p.status.tolist()) <= {Status.SATISFIED, Status.PROJECTED}
        assert rules.satisfied(p.y, tol=1e-9).all()
        # Between an answer and points around it there is none that is better by more than rounding.
        near = p.y[:, None] + torch.from_numpy(rng.normal(size=(4, 2000, d)) * 0.05)
        good = rules.satisfied(near.reshape(-1, d), tol=0.0).reshape(4, -1)
        away = torch.linalg.vector_norm(near - yhat[:, None], ord=int(norm[1]), dim=2)
        assert (away[good] >= p.distance[:, None].expand_as(away)[good] - 1e-6).all()


def disc(radius: float = 1.0) -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(-5, 5))
    m.rule = Disjunction(
        expr=[[m.y[0] ** 2 + m.y[1] ** 2 <= radius**2], [m.y[0] >= 4, m.y[1] >= 4]]
    )
    return gdpnet.RuleModel(m, outputs=[m.y])


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("size", [1e3, 1e6, 1e9, 1e12])
def test_far_predictions_are_projected(size: float, norm: str) -> None:
    """Multipliers are as large as the prediction; the point keeps its digits."""
    yhat = size * torch.tensor([[-1.0, 3e-13], [-1.0, -1.0], [-1.0, 0.5], [2e-13, -1.0]]).double()
    p = gdpnet.project(disc(), yhat, norm=norm)
    assert (p.status == Status.PROJECTED).all()
    assert disc().satisfied(p.y, tol=1e-9).all()
    if norm == "l2":
        expected = yhat / torch.linalg.vector_norm(yhat, dim=1, keepdim=True)
        assert torch.allclose(p.y, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("name", "seed"), [("convex_thin", 68), ("convex_thin", 149)])
def test_sets_that_touch_are_not_taken_for_empty(name: str, seed: int) -> None:
    """Cuts of touching balls are nearly parallel: the nearer disjunct was closed for that."""
    pytest.importorskip("clarabel")
    from tests.fuzz.convex_judge import judge_convex

    assert judge_convex(name, seed).failures == []


def test_balls_that_touch_in_many_dimensions_are_finished() -> None:
    """Cuts come near in steps that shrink with the dimension: these were left open."""
    pytest.importorskip("clarabel")
    from tests.solve.convex_oracle import compare

    for seed in (26, 156, 488, 1353, 1404, 1412, 1875, 1986):
        assert compare(seed, "l1") == (core.SOLVED, None)
    for seed in (299, 412, 461, 514, 672, 843, 1020, 1171):  # the point breaks other rules
        assert compare(seed, "l1") == (core.NO_SOLUTION, None)


def test_of_balls_that_touch_the_point_is_found_and_not_one_beside() -> None:
    """A hair of room let 1e-6 of the distance slip."""
    pytest.importorskip("clarabel")
    from tests.solve.convex_oracle import compare

    for seed in (926, 2098):
        assert compare(seed, "l1") == (core.SOLVED, None)


@pytest.mark.parametrize("norm", NORMS)
def test_sets_without_an_interior_are_finished(norm: str) -> None:
    """With a hair of room; these were LIMIT."""
    for seed in (5, 103, 892, 920, 1466):
        rng = np.random.default_rng([seed, 77])
        d = int(rng.integers(2, 9))
        kind = ["ellipsoids", "cones", "mixed", "mixed"][int(rng.integers(4))]
        m = random_convex_model(rng, d, kind, thin=0.1)
        rules = gdpnet.RuleModel(m, outputs=[m.y])
        p = gdpnet.project(rules, torch.from_numpy(rng.normal(size=(16, d)) * 3), norm=norm)
        assert set(p.status.tolist()) <= {Status.SATISFIED, Status.PROJECTED}
        assert rules.satisfied(p.y, tol=1e-9).all()


@pytest.mark.parametrize("norm", NORMS)
def test_strict_answers_hold_without_tolerance(norm: str) -> None:
    rules, rng = disc(), np.random.default_rng(3)
    yhat = torch.from_numpy(rng.uniform(-4, 3, (200, 2)))
    p = gdpnet.project(rules, yhat, norm=norm, strict=True)
    assert rules.satisfied(p.y, tol=0.0).all()
    plain = gdpnet.project(rules, yhat, norm=norm)
    assert (p.distance - plain.distance).abs().max() < 1e-12


@pytest.mark.parametrize("norm", NORMS)
def test_answers_do_not_depend_on_the_samples_before(norm: str) -> None:
    """Units of auxiliaries were chosen by another sample's cuts, and points were not nearest."""
    from tests.derivative.random_convex import random_convex

    for seed in (588, 827):
        model = random_convex(seed)

        def answer(part: slice, model: Any = model) -> torch.Tensor:
            x = None if model.x is None else model.x[part]
            return gdpnet.project(model.rules, model.yhat[part], x, norm=norm, threads=1).y

        alone = torch.cat([answer(slice(k, k + 1)) for k in range(len(model.yhat))])
        together = answer(slice(None))
        assert torch.equal(together, answer(slice(None)))
        assert torch.equal(together, alone)


@pytest.mark.parametrize("norm", NORMS)
def test_answers_do_not_depend_on_the_batch(norm: str) -> None:
    rng = np.random.default_rng(4)
    m = random_convex_model(rng, 4)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    yhat = torch.from_numpy(rng.uniform(-4, 4, (40, 4)))
    together = gdpnet.project(rules, yhat, norm=norm, threads=2).y
    alone = torch.cat([gdpnet.project(rules, y[None], norm=norm).y for y in yhat])
    assert torch.equal(together, alone)


@pytest.mark.parametrize("norm", NORMS)
def test_float32_and_weights(norm: str) -> None:
    rules = disc()
    p = gdpnet.project(rules, torch.tensor([[3.0, 0.5]]), norm=norm, weights=[1.0, 100.0])
    assert p.y.dtype == torch.float32
    assert rules.satisfied(p.y.double(), tol=1e-6).all()
    assert float(p.y[0, 1]) == pytest.approx(0.5, abs=1e-3)


def test_limits_are_told() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(3), bounds=(-5, 5))
    far = [[-2, -2, -2], [2, 2, 2], [-2, 2, 0]]
    for r in range(3):
        discs = [[sum((m.y[j] - c[j] - r / 4) ** 2 for j in range(3)) <= 3.0] for c in far]
        m.add_component(f"rule{r}", Disjunction(expr=discs, xor=False))
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    yhat = torch.zeros(1, 3, dtype=torch.float64)
    for norm in NORMS:
        p = gdpnet.project(rules, yhat, norm=norm, solver=Exact(node_limit=2))
        assert int(p.status[0]) in (Status.LIMIT, Status.UNSOLVED)
        whole = gdpnet.project(rules, yhat, norm=norm)
        assert int(whole.status[0]) == Status.PROJECTED
        assert float(p.value[0]) <= float(whole.value[0]) + 1e-9


def test_sets_that_barely_touch_are_no_proved_contradiction() -> None:
    """A gap of 1e-8 is within the margin: the sample is left open, or an answer is found."""
    for gap in (-1e-8, 0.0, 1e-9, 1e-8):
        m = pyo.ConcreteModel()
        m.y = pyo.Var(range(2), bounds=(-5, 5))
        m.left = pyo.Constraint(expr=(m.y[0] + 1) ** 2 + m.y[1] ** 2 <= 1)
        m.right = pyo.Constraint(expr=(m.y[0] - 1 - gap) ** 2 + m.y[1] ** 2 <= 1)
        rules = gdpnet.RuleModel(m, outputs=[m.y])
        for norm in NORMS:
            p = gdpnet.project(rules, torch.tensor([[0.3, 2.0]], dtype=torch.float64), norm=norm)
            assert int(p.status[0]) != Status.CONFLICT
            if int(p.status[0]) == Status.PROJECTED:
                assert rules.satisfied(p.y, tol=1e-9).all()


def test_what_is_not_known_is_refused() -> None:
    rules, yhat = disc(), torch.zeros(1, 2, dtype=torch.float64)
    with pytest.raises(RuleError, match=r"linear rows only.*have no interior.*Use norm='l2'"):
        gdpnet.project(rules, yhat, solver=Exact(tie="least_norm"))


@pytest.mark.parametrize("norm", NORMS)
def test_contradictory_discs_are_broken_as_little_as_possible(norm: str) -> None:
    """As little as on a fine grid, and as near as those of its points that break no more."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(-5, 5))
    m.one = Disjunction(
        expr=[[m.y[0] ** 2 + m.y[1] ** 2 <= 1], [(m.y[0] + 3) ** 2 + m.y[1] ** 2 <= 0.5]]
    )
    m.two = Disjunction(expr=[[(m.y[0] - 3) ** 2 + m.y[1] ** 2 <= 1], [m.y[1] >= 4, m.y[0] >= 4]])
    m.never = pyo.Constraint(expr=m.y[0] + m.y[1] <= 2.9)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    yhat = torch.tensor([[0.0, 0.0], [3.0, 2.0], [-3.0, 1.0]], dtype=torch.float64)
    p = gdpnet.project(rules, yhat, norm=norm, on_conflict="nearest")
    assert (p.status == Status.CONFLICT).all()
    assert (rules.global_violation(p.y) <= 1e-9).all()
    broken = rules.violation(p.y).sum(1)
    line = torch.linspace(-5, 5, 1001, dtype=torch.float64)
    grid = torch.cartesian_prod(line, line)
    grid = grid[rules.global_violation(grid) <= 0.0]
    possible = rules.violation(grid).sum(1).min()
    assert (broken <= possible).all()
    assert (broken >= possible - 0.01).all()  # what a step of the grid can hide
    assert (broken - broken[0]).abs().max() < 1e-7


@pytest.mark.parametrize("norm", NORMS)
def test_of_what_is_broken_as_little_the_nearest_is_taken(norm: str) -> None:
    """Between two parallel slabs every point breaks as much in sum."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(-5, 5))
    m.low = Disjunction(expr=[[m.y[0] ** 2 <= 1], [(m.y[0] - 0.5) ** 2 <= 0.25]])
    m.high = Disjunction(expr=[[m.y[0] >= 3], [m.y[0] >= 4]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    yhat = torch.tensor([[0.2, 2.0], [4.5, -1.0]], dtype=torch.float64)
    p = gdpnet.project(rules, yhat, norm=norm, on_conflict="nearest")
    assert (p.status == Status.CONFLICT).all()
    # 2 t of the slab against 1/3 of the half space: the slab holds.
    assert p.y.tolist() == pytest.approx(np.array([[1.0, 2.0], [1.0, -1.0]]), abs=1e-6)


@pytest.mark.parametrize("norm", NORMS)
def test_the_regularised_point_mixes_discs_by_hand(norm: str) -> None:
    """Beside a tie: weights of the simplex next to -v / eps, by the distances v to both discs."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(-9, 9))
    m.rule = Disjunction(expr=[[(m.y[0] + s) ** 2 + m.y[1] ** 2 <= 1] for s in (3, -3)])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    yhat, eps = torch.tensor([[0.02, 0.0]], dtype=torch.float64, requires_grad=True), 0.5
    keywords = {"norm": norm, "gradient": gdpnet.QP(eps), "forward": "qp"}
    p = gdpnet.project(rules, yhat, **keywords)
    value = (lambda away: away) if norm == "l1" else (lambda away: away**2)
    weight = 0.5 + (value(2.02) - value(1.98)) / (2 * eps)  # of the disc on the right
    assert p.y.tolist()[0] == pytest.approx([-2 + 4 * weight, 0.0], abs=1e-9)
    p.y[0, 0].backward()
    slope = 4 * (2.0 if norm == "l1" else 8.0) / (2 * eps)  # dy / dweight, dweight / dyhat
    assert float(yhat.grad[0, 0]) == pytest.approx(slope, rel=1e-6)
    mixed = gdpnet.Mixed(gdpnet.QP(eps), "straight_through", 0.25)
    yhat.grad = None
    gdpnet.project(rules, yhat, norm=norm, gradient=mixed).y[0, 0].backward()
    assert float(yhat.grad[0, 0]) == pytest.approx(0.25 * slope + 0.75, rel=1e-6)


@pytest.mark.parametrize("norm", NORMS)
def test_contradictory_globals_pass(norm: str) -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(-5, 5))
    m.left = pyo.Constraint(expr=(m.y[0] + 3) ** 2 + m.y[1] ** 2 <= 1)
    m.right = pyo.Constraint(expr=(m.y[0] - 3) ** 2 + m.y[1] ** 2 <= 1)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    yhat = torch.tensor([[0.3, 2.0]], dtype=torch.float64)
    with pytest.warns(gdpnet.errors.ConflictWarning, match="left, right"):
        p = gdpnet.project(rules, yhat, norm=norm, on_conflict="nearest")
    assert torch.equal(p.y, yhat)


# ---- derivatives --------------------------------------------------------------------------------


def _of_inputs(data: RuleData) -> RuleData:
    """All coefficients depend on an input, so that derivatives by each are asked for."""

    def of_input(a: Coefficient) -> Coefficient:
        return Coefficient(a.number, {("input", 0): 1.0})

    rows = tuple(
        replace(row, terms=tuple((j, of_input(a)) for j, a in row.terms), bound=of_input(row.bound))
        for row in data.rows
    )
    return replace(data, rows=rows, inputs=("x",), input_bounds=((-1.0, 1.0),))


@pytest.mark.parametrize("norm", NORMS)
def test_derivatives_are_those_of_differences(norm: str) -> None:
    pytest.importorskip("clarabel")
    from tests.solve.convex_oracle import random_draft

    compared, step = 0, 1e-5
    for seed in range(300):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(2, 7))
        rules = Rules.from_data(_of_inputs(random_draft(rng, d, thin=0.0).data()))
        engine, yhat = ExactEngine(rules), 3.0 * rng.normal(size=(1, d))
        options = SearchOptions(rng.uniform(0.5, 1.0, d), norm=norm)
        instance = Instance.of(rules, np.zeros((1, 1)))
        solved = engine.project(instance, yhat, options, detailed=True)
        if solved.status[0] != core.SOLVED:
            continue
        gradient = rng.normal(size=(1, d))
        to = engine.jacobian(instance, solved, yhat, options).vjp(gradient)
        ways = (
            rng.normal(size=yhat.shape),
            0.3 * rng.normal(size=instance.bound.shape),
            0.3 * rng.normal(size=instance.varying.shape) * (instance.varying != 0.0),
        )

        def loss(
            by: float,
            engine: ExactEngine = engine,
            instance: Instance = instance,
            yhat: np.ndarray = yhat,
            options: SearchOptions = options,
            gradient: np.ndarray = gradient,
            ways: tuple[np.ndarray, ...] = ways,
        ) -> float:
            moved = instance._replace(
                bound=instance.bound + by * ways[1], varying=instance.varying + by * ways[2]
            )
            there = engine.project(moved, yhat + by * ways[0], options)
            return float((gradient * there.z).sum())

        ahead, here, behind = loss(step), loss(0.0), loss(-step)
        wanted = (ahead - behind) / (2.0 * step)
        size = max(1.0, abs(wanted))
        if not abs((ahead - here) - (here - behind)) <= 1e-2 * step * size:
            continue  # a kink within the step
        found = sum(float((a * b).sum()) for a, b in zip(to[:3], ways, strict=True))
        assert found == pytest.approx(wanted, abs=1e-5 * size), seed
        compared += 1
    assert compared > 150


@pytest.mark.filterwarnings("ignore:The gradient of all")  # in l1 rows hold every output
@pytest.mark.parametrize("norm", NORMS)
def test_gradcheck_through_inputs(norm: str) -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(3), bounds=(-5, 5))
    m.p = pyo.Param(initialize=1.0, mutable=True)
    m.r = pyo.Param(initialize=1.0, mutable=True)
    m.near = pyo.Constraint(
        expr=m.p * (m.y[0] - m.r) ** 2 + m.y[0] * m.y[1] + m.y[1] ** 2 + m.y[2] ** 2 <= m.r + 1
    )
    m.side = Disjunction(expr=[[m.p * m.y[2] >= 0.2], [m.y[2] <= -1]])
    rules = gdpnet.RuleModel(
        m, outputs=[m.y], inputs=[m.p, m.r], input_bounds=[(1.0, 3.0), (0.5, 2.0)]
    )
    layer = gdpnet.ProjectionLayer(rules, norm=norm, gradient="vertex")
    yhat = torch.tensor([[3.0, 2.0, 0.1], [-2.0, 0.3, 1.7]], dtype=torch.float64)
    x = torch.tensor([[1.5, 1.0], [2.0, 1.4]], dtype=torch.float64)
    assert torch.autograd.gradcheck(layer, (yhat.requires_grad_(), x.requires_grad_()))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("exponent", [1.5, 2.5])
def test_nearest_points_at_the_end_of_a_power_s_domain(norm: str, exponent: float) -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([0, 1], bounds=(-4, 4))
    m.t = pyo.Param(initialize=0.0, mutable=True)
    base = m.y[0] + 0.5 * m.y[1] - m.t
    m.row = pyo.Constraint(expr=base**exponent + m.y[1] + 0.1 * m.y[0] <= 1)
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t], input_bounds=[(-1, 1)])
    yhat = torch.tensor([[-2.0, 3.0]], dtype=torch.float64)
    for t in np.linspace(-0.5, 0.5, 21):
        x = torch.tensor([[t]], dtype=torch.float64, requires_grad=True)
        p = gdpnet.project(rules, yhat, x, norm=norm, gradient="vertex")
        assert p.status.tolist() == [Status.PROJECTED]
        # There the base is 0, and the row is linear: y0 + y1 / 2 = t, y0 / 10 + y1 = 1.
        corner = [(t - 0.5) / 0.95, (1 - 0.1 * t) / 0.95]
        assert p.y[0].tolist() == pytest.approx(corner, abs=1e-8)
        slopes = [torch.autograd.grad(p.y[0, j], x, retain_graph=True)[0].item() for j in (0, 1)]
        assert slopes == pytest.approx([1 / 0.95, -0.1 / 0.95], abs=1e-7)


@pytest.mark.parametrize("size", [1e160, 1e200, 1e300])
def test_predictions_whose_squares_are_no_numbers_are_no_contradiction(size: float) -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([1, 2], bounds=(-2, 2))
    m.rule = Disjunction(expr=[[m.y[1] ** 2 + m.y[2] ** 2 <= 1], [m.y[1] >= 1.5]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    yhat = torch.tensor([[size, 1.0], [-size, 1.0]], dtype=torch.float64)
    assert (gdpnet.project(rules, yhat, norm="l2").status != Status.CONFLICT).all()


def test_violations_of_convex_rows_with_auxiliaries_are_numbers() -> None:
    m = pyo.ConcreteModel()
    m.y, m.s = pyo.Var(bounds=(-4, 4)), pyo.Var(bounds=(-4, 4))
    m.curved = pyo.Constraint(expr=(4.5 + m.s) ** -2 + 0.3 * m.y <= 0.05)
    m.line = pyo.Constraint(expr=m.s <= 0.37 * m.y + 0.1)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    for y in (0.11, 0.2, 0.613):
        # Of s <= 0.37 y + 0.1 + v the largest is best for the curve.
        low, high = 0.0, 1.0
        for _ in range(60):
            v = (low + high) / 2
            held = (4.6 + 0.37 * y + v) ** -2 + 0.3 * y <= 0.05 + v
            low, high = (low, v) if held else (v, high)
        assert float(rules.global_violation([[y]])) == pytest.approx(high, abs=1e-7)


def test_rounding_of_steep_tangents_is_no_failure() -> None:
    m = pyo.ConcreteModel()
    m.y, m.s = pyo.Var(bounds=(-4, 4)), pyo.Var(bounds=(-4, 4))
    m.curved = pyo.Constraint(expr=(m.y + 0.3 * m.s) ** 0.3 >= 0.7)
    m.line = pyo.Constraint(expr=m.s <= 0.37 * m.y + 0.1)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    # The base is not negative for s >= 1.1 / 0.3, which breaks the line by so much.
    wanted = 1.1 / 0.3 + 0.37 * 1.1 - 0.1
    assert float(rules.global_violation([[-1.1]])) == pytest.approx(wanted, abs=1e-6)


def test_refusals_tell_what_can_be_had_instead() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([1, 2], bounds=(-5, 5))
    m.disc = Disjunction(expr=[[m.y[1] ** 2 + m.y[2] ** 2 <= 1], [m.y[1] ** 2 <= 1]])
    m.right = Disjunction(expr=[[m.y[1] >= 3], [m.y[1] >= 4]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    with pytest.raises(gdpnet.errors.ConflictError, match=r"breaks the rules as little"):
        gdpnet.project(rules, [[0.0, 0.0]], on_conflict="raise")
    with pytest.raises(InputError, match="norm: expected one of 'l1', 'l2', got 'l3'"):
        gdpnet.plot.plot_region(rules, norm="l3")


@pytest.mark.parametrize("shape", ["log", "root"])
def test_outside_a_domain_one_sample_spoils_no_other(shape: str) -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(-3, 3))
    m.s = pyo.Var(bounds=(-3, 3))
    inner = m.y + 0.3 * m.s
    m.curve = pyo.Constraint(expr=pyo.log(inner) >= 0.3 if shape == "log" else inner**0.3 >= 0.7)
    m.line = pyo.Constraint(expr=m.s <= 0.37 * m.y + 0.1)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    y = torch.tensor([[-1.234], [2.0], [-0.8]], dtype=torch.float64)
    violation = rules.global_violation(y)
    assert violation.isfinite().all()
    assert violation[0] > violation[2] > 0.0  # farther outside
    assert violation[1] == 0.0
    assert rules.satisfied(y).tolist() == [False, True, False]
