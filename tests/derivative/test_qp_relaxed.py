"""The regularised QP of several blocks, against the written-down program and differences."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction
from scipy.optimize import linprog

import gdpnet
from gdpnet.derivative.qp.dnf import solve_qp
from gdpnet.derivative.qp.parts import BlockPart, RelaxedSolved, block_part, solve_parts
from gdpnet.ir.instance import Instance
from gdpnet.relaxation.products import Product, products
from gdpnet.solve.exact.backend import engine_of
from gdpnet.solve.exact.options import SearchOptions
from gdpnet.study import load_model
from gdpnet.testing import PROBLEMS, Problem, with_random_prices
from tests.derivative.qp_oracle import Polyhedron, Program, solve, written_blocks

ROOT = Path(__file__).parents[2]
NOTHING = Product(frozenset(), ())


def bounded(problem: Problem) -> bool:
    columns = problem.rules().data.columns
    whole = any(c.integer for c in columns)
    if problem.name == "bad_scales":  # ranges of 2e6 and 20: left unsolved, and said so
        return False
    return not whole and all(np.isfinite([c.lower, c.upper]).all() for c in columns)


BOUNDED = [p for p in PROBLEMS if bounded(p)]


class Relaxation:
    """The CNF, or another choice of clusters, of one sample's active rules, over all columns."""

    def __init__(
        self, rules: gdpnet.RuleModel, instance: Instance, sample: int, merged: bool = False
    ) -> None:
        data = rules.data
        active = instance.active[sample].tolist()
        chosen = [r for r, rule in enumerate(data.rules) if active[rule.clause]]
        clusters = [[r] for r in chosen]
        if merged and len(chosen) > 1:
            clusters = [chosen[:2], *([r] for r in chosen[2:])]
        self.rules, self.instance = rules, instance.take(np.array([sample]))
        self.blocks = [list(products(data, c, active)) for c in clusters] or [[NOTHING]]
        rows = [[product.rows for product in block] for block in self.blocks]
        self.columns = range(len(data.columns))
        self.part: BlockPart = block_part(
            *(rules, self.columns, data.global_rows, rows),
            payers=np.array([[float(k + 1 in product.literals) for block in self.blocks
                              for product in block] for k in data.priced]
                            ).reshape(len(data.priced), sum(map(len, self.blocks))),
        )  # fmt: skip

    @property
    def reach(self) -> np.ndarray:
        data = self.rules.data
        return np.array([c.upper - c.lower for c in data.columns[: data.outputs]])

    def program(
        self,
        yhat: np.ndarray,
        weights: np.ndarray,
        eps: float,
        instance: Instance | None = None,
    ) -> Program | None:
        """What is written down; None where it is large, or all products of a block are empty."""
        blocks, costs = self.polyhedra(instance or self.instance)
        if not all(blocks) or len(costs) > 16:
            return None
        program = written_blocks(blocks, self.reach, yhat, weights, eps)
        cost = program.cost.copy()
        width = len(cost) // len(costs)
        cost[width - 1 :: width] += costs
        return replace(program, cost=cost)

    def polyhedra(self, instance: Instance) -> tuple[list[list[Polyhedron]], list[float]]:
        """The products that are not empty, and what each of them costs."""
        data = self.rules.data
        table = self.rules.table.shared.numpy().copy()
        table[self.rules.table.varying.numpy()] = instance.varying[0]
        bound, eye = instance.bound[0], np.eye(len(data.columns))
        found: list[list[Polyhedron]] = []
        costs = []
        prices = (instance.price @ self.part.payers)[0].tolist()
        for block in self.blocks:
            found.append([])
            for product in block:
                price = prices.pop(0)
                rows = list(dict.fromkeys((*data.global_rows, *product.rows)))
                less = [i for i in rows if not data.rows[i].equality]
                same = [i for i in rows if data.rows[i].equality]
                polyhedron = Polyhedron(
                    upper=np.vstack([table[less], eye, -eye]),
                    limit=np.r_[
                        bound[less],
                        [c.upper for c in data.columns],
                        [-c.lower for c in data.columns],
                    ],
                    equal=table[same],
                    right=bound[same],
                )
                if not polyhedron.empty():  # its copy is 0 either way
                    found[-1].append(polyhedron)
                    costs.append(price)
        return found, costs

    def solved(self, yhat: np.ndarray, weights: np.ndarray, eps: float) -> RelaxedSolved:
        return self.solved_for(self.instance, yhat, weights, eps)

    def solved_for(
        self, instance: Instance, yhat: np.ndarray, weights: np.ndarray, eps: float
    ) -> RelaxedSolved:
        return solve_parts([(self.part, np.arange(len(yhat)))], instance, yhat, weights, eps)


def clipped(rules: gdpnet.RuleModel, yhat: np.ndarray) -> np.ndarray:
    columns = rules.data.columns[: rules.data.outputs]
    return np.clip(yhat, [c.lower for c in columns], [c.upper for c in columns])


def setting(
    problem: Problem, priced: bool = False
) -> tuple[gdpnet.RuleModel, Instance, np.ndarray]:
    rules, yhat = problem.rules(), problem.yhat.numpy()
    if priced:
        rules = with_random_prices(rules, np.random.default_rng(len(yhat)))
    x = np.zeros((len(yhat), 0)) if problem.x is None else np.ascontiguousarray(problem.x.numpy())
    return rules, Instance.of(rules, x), clipped(rules, yhat)


@pytest.mark.parametrize("problem", BOUNDED, ids=lambda p: p.name)
@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("priced", [False, True])
def test_bank_equals_the_written_program(problem: Problem, merged: bool, priced: bool) -> None:
    rules, instance, yhat = setting(problem, priced)
    weights = np.linspace(0.5, 1.0, yhat.shape[1])
    for s in range(len(yhat)):
        relaxation = Relaxation(rules, instance, s, merged)
        program = relaxation.program(yhat[s], weights, 0.05)
        if program is None:
            continue
        found = relaxation.solved(yhat[[s]], weights, 0.05)
        if feasible(program):
            assert found.solved[0]
            y = yhat[s] + program.moves @ solve(program)
            np.testing.assert_allclose(found.y[0], y, rtol=1e-6, atol=1e-6)
        else:
            assert not found.solved[0]


def feasible(program: Program) -> bool:
    answer = linprog(
        np.zeros(len(program.cost)),
        A_ub=program.upper,
        b_ub=program.limit,
        A_eq=program.equal,
        b_eq=program.right,
        bounds=(None, None),
    )
    return bool(answer.status == 0)


def cooling(size: int) -> tuple[gdpnet.RuleModel, Instance, np.ndarray]:
    model = load_model(ROOT / "models" / "cooling")
    assert model.sample is not None
    x, y = model.sample(size, "ood", 0)
    rules = model.build()
    yhat = clipped(rules, y.numpy() + 0.15 * np.random.default_rng(0).standard_normal(y.shape))
    return rules, Instance.of(rules, np.ascontiguousarray(x.numpy().astype(float))), yhat


@pytest.mark.parametrize("eps", [1e-3, 1e-2, 1e-1])
def test_cooling_equals_the_written_program(eps: float) -> None:
    rules, instance, yhat = cooling(24)
    for s in range(len(yhat)):
        relaxation = Relaxation(rules, instance, s)
        program = relaxation.program(yhat[s], np.ones(3), eps)
        assert program is not None
        found = relaxation.solved(yhat[[s]], np.ones(3), eps)
        assert found.solved[0]
        np.testing.assert_allclose(
            found.y[0], yhat[s] + program.moves @ solve(program), rtol=1e-6, atol=1e-6
        )


def differences(relaxation: Relaxation, yhat: np.ndarray, eps: float) -> int:
    """Compares `vjp` with central differences where the map is smooth; how many were compared."""
    d = yhat.shape[1]
    weights, gradient = np.ones(d), np.cos(np.arange(d))[None]
    instance = relaxation.instance

    def at(yhat: np.ndarray, instance: Instance) -> RelaxedSolved:
        return relaxation.solved_for(instance, yhat, weights, eps)

    found = at(yhat, instance)
    if not found.solved[0]:
        return 0
    gradients = found.vjp(gradient)
    compared = 0

    def check(up: RelaxedSolved, down: RelaxedSolved, h: float, ours: float) -> None:
        nonlocal compared
        ahead = float(((up.y - found.y) * gradient).sum()) / h
        behind = float(((found.y - down.y) * gradient).sum()) / h
        if up.solved[0] and down.solved[0] and abs(ahead - behind) < 1e-3 * (1 + abs(ahead)):
            assert ours == pytest.approx((ahead + behind) / 2, rel=2e-3, abs=2e-3)
            compared += 1

    h = 1e-4
    for j in range(d):
        e = h * np.eye(d)[[j]]
        check(at(yhat + e, instance), at(yhat - e, instance), h, gradients.yhat[0, j])
    for name in ("bound", "varying"):
        array = getattr(instance, name)
        for place in zip(*np.nonzero(np.ones_like(array)), strict=True):
            if name == "varying" and array[place] == 0.0:
                continue
            moved = []
            for sign in (1.0, -1.0):
                other = array.copy()
                other[place] += sign * h
                moved.append(at(yhat, instance._replace(**{name: other})))
            check(*moved, h, getattr(gradients, name)[place])
    return compared


@pytest.mark.parametrize("merged", [False, True])
def test_cooling_derivatives_are_finite_differences(merged: bool) -> None:
    rules, instance, yhat = cooling(12)
    inside = np.clip(yhat, 0.01, 0.99)
    total = sum(
        differences(Relaxation(rules, instance, s, merged), inside[[s]], 1e-2) for s in range(12)
    )
    assert total > 100


def test_derivatives_through_coefficients_auxiliaries_and_equalities() -> None:
    compared = 0
    for problem in BOUNDED:
        if problem.name in ("coefficients", "equalities", "power", "coupled_by_auxiliary"):
            rules, instance, yhat = setting(problem)
            moved = yhat + 0.01 * np.random.default_rng(0).standard_normal(yhat.shape)
            for s in range(len(yhat)):
                here = clipped(rules, moved)[[s]]
                compared += differences(Relaxation(rules, instance, s), here, 0.05)
    assert compared > 20


def test_derivatives_of_rules_with_prices_are_those_of_the_written_program() -> None:
    compared, h = {"yhat": 0, "price": 0}, 1e-4
    for problem in BOUNDED[:12]:
        rules, instance, yhat = setting(problem, priced=True)
        start = clipped(rules, yhat + 0.01 * np.random.default_rng(0).standard_normal(yhat.shape))
        gradient = np.cos(np.arange(yhat.shape[1]))
        for s in range(min(2, len(yhat))):
            relaxation, here = Relaxation(rules, instance, s), start[[s]]
            found = relaxation.solved(here, np.ones(yhat.shape[1]), 0.2)
            program = relaxation.program(here[0], np.ones(yhat.shape[1]), 0.2)
            if program is None or not feasible(program):
                continue
            ours = found.vjp(gradient[None])
            price = relaxation.instance.price
            for name, size in (("yhat", here.shape[1]), ("price", price.shape[1])):
                for j in range(size):
                    ends = []
                    for sign in (h, 0.0, -h):
                        step = sign * np.eye(size)[j]
                        at, own = here[0], relaxation.instance
                        if name == "yhat":
                            at = at + step
                        else:
                            own = own._replace(price=price + step)
                        moved = relaxation.program(at, np.ones(len(at)), 0.2, own)
                        ends.append(gradient @ (at + moved.moves @ solve(moved)))
                    ahead, behind = (ends[0] - ends[1]) / h, (ends[1] - ends[2]) / h
                    if abs(ahead - behind) < 1e-3:
                        assert getattr(ours, name)[0, j] == pytest.approx(
                            (ahead + behind) / 2, abs=1e-5
                        )
                        compared[name] += abs(ahead) > 1e-3
    assert compared["yhat"] > 20
    assert compared["price"] > 10


def gaps() -> gdpnet.RuleModel:
    """Rules without common outputs; a third output in no rule."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(3), bounds=(0, 10))
    m.a = Disjunction(expr=[[m.y[0] <= 3], [m.y[0] >= 7]])
    m.b = Disjunction(expr=[[m.y[1] <= 2], [m.y[1] >= 4]])
    return gdpnet.RuleModel(m, outputs=[m.y])


def test_parts_are_solved_apart() -> None:
    rules = gaps()
    yhat = np.array([[4.0, 2.5, 5.0], [4.0, 3.1, 10.0], [4.99, 3.0, 5.0]])
    instance = Instance.of(rules, np.zeros((3, 0)))
    parts = [(block_part(rules, [j], [], [[[2 * j], [2 * j + 1]]]), np.arange(3)) for j in range(2)]
    found = solve_parts(parts, instance, yhat, np.ones(3), 1e-2)
    assert found.solved.all()
    options = SearchOptions(weights=np.ones(3), threads=1)
    engine = engine_of(rules)
    dnf = solve_qp(engine, instance, yhat, options, engine.project(instance, yhat, options), 1e-2)
    np.testing.assert_allclose(found.y, dnf.y, atol=1e-6)
    gradient = np.random.default_rng(0).standard_normal((3, 3))
    ours, theirs = found.vjp(gradient), dnf.vjp(gradient)
    np.testing.assert_allclose(ours.yhat, theirs.yhat, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(ours.bound, theirs.bound, rtol=1e-4, atol=1e-4)
    assert ours.yhat[0, 2] == gradient[0, 2]


def test_only_the_samples_of_a_part_are_touched() -> None:
    rules = gaps()
    yhat = np.array([[4.0, 2.5, 5.0], [4.0, 3.1, 5.0]])
    instance = Instance.of(rules, np.zeros((2, 0)))
    part = block_part(rules, [0], [], [[[0], [1]]])
    found = solve_parts([(part, np.array([1]))], instance, yhat, np.ones(3), 1e-2)
    assert found.solved.all()
    np.testing.assert_array_equal(found.y[0], yhat[0])
    assert abs(found.y[1, 0] - 3.0) < 1e-6
    gradients = found.vjp(np.ones((2, 3)))
    np.testing.assert_array_equal(gradients.yhat[0], 1.0)
    np.testing.assert_array_equal(gradients.bound[0], 0.0)
    assert abs(gradients.yhat[1, 0]) < 1e-6


def test_answers_do_not_depend_on_threads() -> None:
    rules, instance, yhat = cooling(300)
    relaxation = Relaxation(rules, instance, 0)
    own = instance.take((instance.active == instance.active[0]).all(1))
    start = yhat[(instance.active == instance.active[0]).all(1)]
    gradient = np.random.default_rng(0).standard_normal(start.shape)
    parts = [(relaxation.part, np.arange(len(start)))]
    one, three = (solve_parts(parts, own, start, np.ones(3), 1e-2, threads=t) for t in (1, 3))
    np.testing.assert_array_equal(one.y, three.y)
    for ours, theirs in zip(one.vjp(gradient), three.vjp(gradient), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_prediction_outside_its_bounds_gets_no_gradient() -> None:
    yhat = torch.tensor([[4.0, 3.1, 11.0], [-1.0, 3.0, 5.0]], dtype=torch.float64)
    yhat.requires_grad_()
    gdpnet.project(gaps(), yhat, relaxation="cnf", gradient=gdpnet.QP(1e-2)).y.sum().backward()
    assert yhat.grad is not None
    assert yhat.grad[0, 2] == 0.0
    assert yhat.grad[1, 0] == 0.0
    assert yhat.grad[1, 2] == 1.0


def test_samples_do_not_depend_on_those_beside_them() -> None:
    """Alone, in a batch, and beside samples that cannot be solved: the same to the last digit."""
    rules, instance, yhat = cooling(300)
    same = (instance.active == instance.active[0]).all(1)
    relaxation = Relaxation(rules, instance, 0)
    own, start = instance.take(same), yhat[same]
    assert len(start) > 20
    gradient = np.random.default_rng(0).standard_normal(start.shape)
    batch = relaxation.solved_for(own, start, np.ones(3), 1e-2)
    spoiled = own._replace(bound=own.bound.copy())
    spoiled.bound[1::2] = np.nan
    beside = relaxation.solved_for(spoiled, start, np.ones(3), 1e-2)
    assert batch.solved.all()
    np.testing.assert_array_equal(beside.solved, np.arange(len(start)) % 2 == 0)
    np.testing.assert_array_equal(beside.y[1::2], start[1::2])
    np.testing.assert_array_equal(beside.y[::2], batch.y[::2])
    of_batch, of_beside = batch.vjp(gradient), beside.vjp(gradient)
    np.testing.assert_array_equal(of_beside.yhat[1::2], gradient[1::2])
    for s in range(len(start)):
        alone = relaxation.solved_for(own.take([s]), start[[s]], np.ones(3), 1e-2)
        np.testing.assert_array_equal(alone.y[0], batch.y[s])
        np.testing.assert_array_equal(alone.vjp(gradient[[s]]).yhat[0], of_batch.yhat[s])
        if s % 2 == 0:
            np.testing.assert_array_equal(of_beside.yhat[s], of_batch.yhat[s])
            np.testing.assert_array_equal(of_beside.bound[s], of_batch.bound[s])


def test_programs_that_are_not_solved_are_told() -> None:
    # Squares of 1e6 beside an eps of 1e-2: the end of the central path is not reached.
    rules = next(p for p in PROBLEMS if p.name == "bad_scales").rules()
    yhat = torch.tensor([[5e5, 0.0], [0.0, 0.5]], dtype=torch.float64, requires_grad=True)
    p = gdpnet.project(rules, yhat, relaxation="cnf", gradient="qp")
    assert p.info.identity.tolist() == p.info.capped.tolist() == [True, False]
    with pytest.warns(gdpnet.errors.IdentityGradientWarning, match=r"1 of the 2 samples.*'qp'"):
        p.y.sum().backward()
    assert yhat.grad[0].tolist() == [1.0, 1.0]
