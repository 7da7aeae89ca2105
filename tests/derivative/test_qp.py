"""The regularised QP of the DNF, against the written-down program and finite differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyomo.gdp import Disjunction
from scipy.optimize import linprog

import gdpnet
from gdpnet.core import SOLVED
from gdpnet.derivative.qp.dnf import QPSolved, solve_qp
from gdpnet.ir.instance import Instance
from gdpnet.solve.exact.backend import engine_of
from gdpnet.solve.exact.engine import ExactEngine, Solved
from gdpnet.solve.exact.jacobian import FactoredJacobian
from gdpnet.solve.exact.options import SearchOptions
from gdpnet.study import load_model
from gdpnet.testing import PROBLEMS, Problem, random_predictions, random_rules
from tests.derivative.qp_oracle import regularised, solve, terms, written

ROOT = Path(__file__).parents[2]
RANDOM = settings(derandomize=True, deadline=None, max_examples=60, database=None)
CONTINUOUS = [p for p in PROBLEMS if not any(c.integer for c in p.rules().data.columns)]


@dataclass(frozen=True)
class Case:
    """Rules and a batch, to be solved for several inputs."""

    engine: ExactEngine
    instance: Instance
    yhat: np.ndarray
    weights: np.ndarray
    eps: float

    def projected(self) -> Solved:
        options = SearchOptions(weights=self.weights, threads=1)
        return self.engine.project(self.instance, self.yhat, options, detailed=True)

    def solved(self, **options: Any) -> QPSolved:
        given = SearchOptions(weights=self.weights, threads=1)
        return solve_qp(
            *(self.engine, self.instance, self.yhat, given, self.projected(), self.eps), **options
        )


def case(
    rules: gdpnet.RuleModel,
    yhat: Any,
    eps: float,
    x: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> Case:
    yhat = np.ascontiguousarray(yhat, dtype=np.float64)
    engine = engine_of(rules)
    x = np.zeros((len(yhat), 0)) if x is None else np.ascontiguousarray(x)
    weights = np.ones(yhat.shape[1]) if weights is None else weights
    return Case(engine, Instance.of(rules, x), yhat, weights, eps)


def of_problem(problem: Problem, eps: float, jitter: float = 0.0) -> Case:
    x = None if problem.x is None else problem.x.numpy()
    yhat = problem.yhat.numpy()
    yhat = yhat + jitter * np.random.default_rng(0).standard_normal(yhat.shape)
    return case(problem.rules(), yhat, eps, x)


def of_seed(seed: int, jitter: float = 0.0) -> Case:
    rng = np.random.default_rng(seed)
    rules = random_rules(rng)
    d = len(rules.output_names)
    yhat = random_predictions(rng, d) + jitter * rng.standard_normal((4, d))
    weights = rng.choice([0.3, 0.5, 1.0], d)
    return case(
        rules, yhat, float(rng.choice([1e-3, 1e-2, 1e-1, 1.0])), weights=weights / weights.max()
    )


def rules_of(*expressions: Callable[[Any], Any], d: int = 1, bounds: Any = (None, None)) -> Any:
    """Rules of one Disjunction for each function of y."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(d), bounds=bounds)
    for k, expression in enumerate(expressions):
        m.add_component(f"rule{k}", Disjunction(expr=expression(m.y)))
    return gdpnet.RuleModel(m, outputs=[m.y])


def dense(solved: QPSolved) -> np.ndarray:
    """dy/dyhat, (B, d, d)."""
    size, d = solved.y.shape
    return np.stack([solved.vjp(np.repeat(np.eye(d)[[j]], size, 0)).yhat for j in range(d)], 1)


def compare(given: Case) -> int:
    """Compares y with the oracle's, component by component; how many were compared."""
    projected, found = given.projected(), given.solved()
    compared = 0
    for s in np.flatnonzero(projected.status == SOLVED):
        y = regularised(given.engine, given.instance, s, given.yhat[s], given.weights, given.eps)
        if y is None:
            continue
        for component in given.engine.components:
            own = component.outputs
            if (projected.z[s, own] == given.yhat[s, own]).all():
                y[own] = given.yhat[s, own]  # that part of the prediction passes
        assert not found.capped[s]
        np.testing.assert_allclose(found.y[s], y, rtol=1e-6, atol=1e-6)
        compared += 1
    return compared


# ---- the map --------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", CONTINUOUS, ids=lambda p: p.name)
@pytest.mark.parametrize("eps", [1e-2, 0.3])
def test_bank_equals_the_written_program(problem: Problem, eps: float) -> None:
    given = of_problem(problem, eps)
    compared = compare(given)
    small = all(
        terms(given.engine.rules, c, given.instance, 0, 40) is not None
        for c in given.engine.components
    )
    assert compared > 0 or not small or not (given.projected().status == SOLVED).any()


@RANDOM
@given(st.integers(0, 10**6))
def test_random_rules_equal_the_written_program(seed: int) -> None:
    given = of_seed(seed)
    if not any(c.prepared.integer.any() for c in given.engine.components):
        compare(given)


@pytest.mark.parametrize("seed", [7, 25, 484, 511, 569, 856])
def test_the_band_holds_every_product_with_weight(seed: int) -> None:
    """v_k < v* + eps (1 + 2 |z*|^2 + |a*|^2) wherever the written program has lambda_k > 0."""
    given = of_seed(seed)
    projected = given.projected()
    checked = 0
    for component in given.engine.components:
        own, n = component.outputs, len(component.columns)
        lower, upper = component.prepared.lower[: len(own)], component.prepared.upper[: len(own)]
        for s in np.flatnonzero(projected.status == SOLVED):
            found = terms(given.engine.rules, component, given.instance, s, 40)
            if not found:
                continue
            yhat = np.clip(given.yhat[s, own], lower, upper)
            d, w = len(own), given.weights[own]
            x = solve(written(found, yhat, w, given.eps)).reshape(len(found), -1)
            values = []
            for term in found:
                split = np.hstack([np.eye(d), -np.eye(d), np.zeros((d, n - d))])
                whole = np.vstack([split, np.hstack([np.zeros((n - d, 2 * d)), np.eye(n - d)])])
                shift = np.r_[yhat, np.zeros(n - d)]
                answer = linprog(
                    np.r_[w, w, np.zeros(n - d)],
                    A_ub=term.upper @ whole,
                    b_ub=term.limit - term.upper @ shift,
                    A_eq=term.equal @ whole,
                    b_eq=term.right - term.equal @ shift,
                    bounds=[(0, None)] * (2 * d) + [(None, None)] * (n - d),
                )
                values.append((answer.fun, whole @ answer.x))
            best, point = min(values, key=lambda pair: pair[0])
            size = 1 + 2 * (point[:d] ** 2).sum() + (point[d:] ** 2).sum()
            weight = x[:, -1]
            inside = np.array([v for v, _ in values]) < best + given.eps * size
            assert inside[weight > 1e-7].all()
            checked += 1
    assert checked > 0


# ---- its derivative -------------------------------------------------------------------------


def check_derivatives(given: Case) -> int:
    """Compares `vjp` with central differences where the map is smooth; how many were compared."""
    status, found = given.projected().status, given.solved()
    gradient = np.random.default_rng(1).standard_normal(given.yhat.shape)
    gradients = found.vjp(gradient)
    for array in (gradients.yhat, gradients.bound, gradients.varying):
        assert np.isfinite(array).all()
    compared = 0

    def check(moved: Callable[[float], Case], ours: np.ndarray) -> None:
        nonlocal compared
        smooth = status == SOLVED
        slopes = []
        for h in (1e-6, 3e-6):
            up, down = moved(h), moved(-h)
            smooth = smooth & (up.projected().status == SOLVED)
            smooth &= down.projected().status == SOLVED
            ahead = ((up.solved().y - found.y) * gradient).sum(1) / h
            behind = ((found.y - down.solved().y) * gradient).sum(1) / h
            smooth &= np.abs(ahead - behind) <= 1e-3 * (1 + np.abs(ahead))
            slopes.append((ahead + behind) / 2)
        smooth &= np.abs(slopes[0] - slopes[1]) <= 1e-4 * (1 + np.abs(slopes[0]))
        np.testing.assert_allclose(slopes[1][smooth], ours[smooth], rtol=1e-4, atol=1e-4)
        compared += int(smooth.sum())

    def along(array: np.ndarray, place: tuple[int, ...], h: float) -> np.ndarray:
        moved = array.copy()
        moved[(slice(None), *place)] += h
        return moved

    instance = given.instance

    def with_yhat(place: tuple[int, ...]) -> Callable[[float], Case]:
        return lambda h: replace(given, yhat=along(given.yhat, place, h))

    def with_rows(name: str, place: tuple[int, ...]) -> Callable[[float], Case]:
        array = getattr(instance, name)
        return lambda h: replace(
            given, instance=instance._replace(**{name: along(array, place, h)})
        )

    for j in range(given.yhat.shape[1]):
        check(with_yhat((j,)), gradients.yhat[:, j])
    for i in range(instance.bound.shape[1]):
        check(with_rows("bound", (i,)), gradients.bound[:, i])
    for v, j in zip(*np.nonzero((instance.varying != 0).any(0)), strict=True):
        check(with_rows("varying", (v, j)), gradients.varying[:, v, j])
    return compared


@pytest.mark.parametrize(
    "problem", [p for p in PROBLEMS if p.name != "bad_scales"], ids=lambda p: p.name
)
def test_bank_derivatives_are_finite_differences(problem: Problem) -> None:
    check_derivatives(of_problem(problem, 1e-2, jitter=1e-2))


def test_random_derivatives_are_finite_differences() -> None:
    # Integer data put rows on bounds and on each other, where one row cannot move alone.
    seeds = [seed for seed in range(40) if seed != 24]
    assert sum(check_derivatives(of_seed(seed, jitter=1e-2)) for seed in seeds) > 1000


def test_derivatives_are_those_of_the_oracle() -> None:
    compared = 0
    for seed in (3, 5, 16, 484, 856):
        given = of_seed(seed, jitter=1e-2)
        if any(c.prepared.integer.any() for c in given.engine.components):
            continue
        projected, jacobian = given.projected(), dense(given.solved())
        for s in np.flatnonzero(projected.status == SOLVED):
            if (
                regularised(
                    given.engine, given.instance, s, given.yhat[s], given.weights, given.eps
                )
                is None
            ):
                continue

            def oracle(yhat: np.ndarray, s: int = s, given: Case = given) -> np.ndarray:
                y = regularised(given.engine, given.instance, s, yhat, given.weights, given.eps)
                assert y is not None
                return y

            for j, e in enumerate(np.eye(given.yhat.shape[1])):
                here = given.yhat[s]
                one = (oracle(here + 1e-5 * e) - oracle(here)) / 1e-5
                two = (oracle(here) - oracle(here - 1e-5 * e)) / 1e-5
                if np.abs(one - two).max() < 1e-4 and len(given.engine.components) == 1:
                    np.testing.assert_allclose(jacobian[s, :, j], one, rtol=1e-3, atol=1e-4)
                    compared += 1
    assert compared >= 8


# ---- known facts ----------------------------------------------------------------------------


def test_the_shifted_form_does_not_depend_on_the_origin() -> None:
    rules = rules_of(lambda y: [[y[0] <= 103], [y[0] >= 107]])
    found = case(rules, [[104.9]], 1e-2).solved()
    assert found.y[0, 0] == pytest.approx(103, abs=1e-12)
    assert found.products[0] == 1
    assert dense(found)[0, 0, 0] == pytest.approx(0, abs=1e-12)


def test_with_one_product_it_is_still_a_quadratic_program() -> None:
    rules = rules_of(lambda y: [[y[0] + 1.005 * y[1] >= 1]], d=2)
    found = case(rules, [[0.0, 0.0]], 1e-2).solved()
    np.testing.assert_allclose(dense(found)[0], [[0.5, -0.5], [-0.5, 0.5]], atol=0.01)


@pytest.mark.parametrize("eps", [1e-3, 1e-2])
def test_near_a_tie_the_jacobian_grows_with_one_over_eps(eps: float) -> None:
    rules = rules_of(lambda y: [[y[0] <= 3], [y[0] >= 7]])
    found = case(rules, [[5.0]], eps).solved()
    assert found.y[0, 0] == pytest.approx(5)
    # lambda_1 - lambda_2 = (v_2 - v_1) / (eps (1 + 2 z^2)), z = 2, and 4 between the two points
    assert dense(found)[0, 0, 0] == pytest.approx(4 / 9 / eps, rel=10 * eps)


@pytest.mark.parametrize("split", ["iid", "ood"])
def test_small_eps_gives_the_vertex_jacobian_on_cooling(split: str) -> None:
    model = load_model(ROOT / "models" / "cooling")
    assert model.sample is not None
    x, y = model.sample(1000, split, 0)
    noise = 0.15 * np.random.default_rng(0).standard_normal(y.shape)
    given = case(model.build(), y.numpy() + noise, 1e-3, x.numpy().astype(float))
    projected = given.projected()
    vertex = FactoredJacobian(given.instance, projected, 3).dense()
    same = (np.abs(dense(given.solved()) - vertex) < 1e-6).all((1, 2))
    assert same[projected.status == SOLVED].mean() >= 0.99


# ---- decisions ------------------------------------------------------------------------------


def test_the_same_disjunct_twice_counts_twice() -> None:
    once = rules_of(lambda y: [[y[0] <= 3], [y[0] >= 7]])
    twice = rules_of(lambda y: [[y[0] <= 3], [y[0] <= 3], [y[0] >= 7]])
    eps = 0.1
    assert case(once, [[5.0]], eps).solved().y[0, 0] == pytest.approx(5)
    found = case(twice, [[5.0]], eps).solved()
    assert found.products[0] == 3
    assert found.y[0, 0] == pytest.approx(3 * 2 / 3 + 7 / 3)


def test_duplicate_rows_give_a_finite_answer() -> None:
    rules = rules_of(lambda y: [[y[0] + y[1] >= 1] * 3 + [2 * y[0] + 2 * y[1] >= 2]], d=2)
    found = case(rules, [[0.0, 0.1], [0.2, 0.2]], 1e-2).solved()
    gradients = found.vjp(np.array([[1.0, 0.0], [0.0, 1.0]]))
    np.testing.assert_allclose(found.y.sum(1), 1)
    np.testing.assert_allclose(dense(found), [[[0.5, -0.5], [-0.5, 0.5]]] * 2, atol=1e-9)
    assert np.isfinite(gradients.bound).all()


def test_above_the_cap_distinct_vertices_are_mixed() -> None:
    names = [lambda y, k=k: [[y[k] <= 0.4], [y[k] >= 0.6], [y[0] >= -5]] for k in range(4)]
    rules = rules_of(*names, lambda y: [[y[0] + y[1] >= 4], [y[0] - y[1] >= 4]], d=4)
    given = case(rules, [[0.5, 0.5, 0.5, 0.5]], 0.1)
    whole, capped = given.solved(cap=1000), given.solved(cap=8)
    assert not whole.capped[0]
    assert whole.products[0] > 8
    assert capped.capped[0]
    assert 1 <= capped.products[0] <= 8
    assert np.isfinite(dense(capped)).all()


def test_room_for_more_products_than_expected() -> None:
    names = [lambda y, k=k: [[y[k] <= 0.4], [y[k] >= 0.6]] for k in range(4)]
    coupled = rules_of(*names, lambda y: [[sum(y[k] for k in range(4)) >= -50]], d=4)
    yhat = np.full((300, 4), 0.5)
    found = case(coupled, yhat, 1.0).solved()
    np.testing.assert_array_equal(found.products, 16)
    np.testing.assert_allclose(found.y, 0.5, atol=1e-9)


def test_what_passes_is_the_identity() -> None:
    rules = rules_of(lambda y: [[y[0] <= 3], [y[0] >= 7]], bounds=(0, 10))
    found = case(rules, [[2.0], [3.0]], 1.0).solved()
    np.testing.assert_array_equal(found.y, [[2.0], [3.0]])
    np.testing.assert_array_equal(dense(found), np.ones((2, 1, 1)))
    assert not found.products.any()


def test_conflicts_pass_and_leave_the_others_alone() -> None:
    m = pyo.ConcreteModel()
    m.t = pyo.Param(mutable=True, initialize=0.0)
    m.y = pyo.Var(bounds=(0, 10))
    m.low = pyo.Constraint(expr=m.y <= m.t)
    m.rule = Disjunction(expr=[[m.y >= 7], [m.y >= 8]])
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t])
    found = case(rules, [[5.0], [5.0]], 1e-2, np.array([[0.0], [9.0]])).solved()
    np.testing.assert_allclose(found.y, [[5.0], [7.0]])
    np.testing.assert_allclose(dense(found)[:, 0, 0], [1.0, 0.0], atol=1e-12)


def test_outside_the_box_the_gradient_is_zero() -> None:
    rules = rules_of(lambda y: [[y[0] + y[1] >= 1]], d=2, bounds=(0, 1))
    found = case(rules, [[-0.5, 0.2]], 1e-2).solved()
    np.testing.assert_array_equal(dense(found)[0, :, 0], 0.0)
    assert np.abs(dense(found)[0, :, 1]).max() > 0


def test_integers_are_fixed_where_the_projection_has_them() -> None:
    m = pyo.ConcreteModel()
    m.k = pyo.Var(domain=pyo.Integers, bounds=(0, 4))
    m.y = pyo.Var(bounds=(0, 10))
    m.rule = Disjunction(expr=[[m.y >= 2 * m.k + 1], [m.y <= m.k - 3]])
    rules = gdpnet.RuleModel(m, outputs=[m.k, m.y])
    given = case(rules, [[1.2, 1.5], [2.4, 0.2]], 1e-2)
    found = given.solved()
    np.testing.assert_array_equal(found.y[:, 0], given.projected().z[:, 0])
    np.testing.assert_allclose(dense(found)[:, 0], 0.0, atol=1e-12)
    assert np.isfinite(dense(found)).all()
