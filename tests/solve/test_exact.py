"""The exact engine beyond the bank: random problems, ties, limits, threads, derivatives."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet import Status
from gdpnet.ir.instance import Instance
from gdpnet.solve.exact.backend import engine_of
from gdpnet.solve.exact.jacobian import FactoredJacobian
from gdpnet.solve.exact.options import SearchOptions
from gdpnet.study import load_model
from gdpnet.testing import random_predictions, random_rules
from tests.fuzz import disagreement

ROOT = Path(__file__).parents[2]
RANDOM = settings(derandomize=True, deadline=None, max_examples=120, database=None)


@RANDOM
@given(st.integers(0, 10**6))
def test_random_problems_equal_milp(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rules = random_rules(rng)
    yhat = torch.from_numpy(random_predictions(rng, len(rules.output_names)))
    exact = gdpnet.project(rules, yhat, solver="exact")
    milp = gdpnet.project(rules, yhat, solver="milp", threads=1)
    assert exact.info.solver == "exact"
    assert exact.status.tolist() == milp.status.tolist()
    some = exact.status != Status.CONFLICT
    assert torch.allclose(exact.distance[some], milp.distance[some], atol=1e-7, rtol=1e-9)
    assert rules.satisfied(exact.y[some], tol=1e-8).all()


@pytest.mark.parametrize("seed", [1002865, 1003509, 1003677, 1004577, 1005795, 1007384, 5001422])
def test_seeds_that_once_disagreed(seed: int) -> None:
    assert disagreement(seed) == ""


def softmax_ties(samples: int) -> tuple[gdpnet.RuleModel, torch.Tensor]:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(4), bounds=(0, 1))
    m.simplex = pyo.Constraint(expr=sum(m.y.values()) == 1)
    m.rule = gdpnet.rule(gdpnet.any_of(m.y[0] >= 0.5, m.y[1] >= 0.5))
    return gdpnet.RuleModel(m, outputs=[m.y]), torch.full((samples, 4), 0.25).double()


def box_ties(samples: int) -> tuple[gdpnet.RuleModel, torch.Tensor]:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([1, 2], bounds=(0, 10))
    m.rule = Disjunction(
        expr=[
            [m.y[1] <= 3, m.y[2] <= 3],
            [m.y[1] >= 7, m.y[2] <= 3],
            [m.y[1] <= 3, m.y[2] >= 7],
            [m.y[1] >= 7, m.y[2] >= 7],
        ]
    )
    half = torch.full((samples, 2), 5.0).double()
    half[::2, 1] = torch.linspace(0, 10, len(half[::2])).double()
    return gdpnet.RuleModel(m, outputs=[m.y]), half


@pytest.mark.parametrize("ties", [softmax_ties, box_ties])
def test_no_rule_is_broken_on_ties(ties: object) -> None:
    rules, yhat = ties(5000)  # type: ignore[operator]
    p = gdpnet.project(rules, yhat)
    assert (p.status == Status.PROJECTED).any()
    assert rules.satisfied(p.y, tol=1e-9).all()
    want = gdpnet.project(rules, yhat[:2], solver="milp").distance
    assert torch.allclose(p.distance[:2], want, atol=1e-12)


def test_least_norm_spreads_what_the_vertex_takes_from_few() -> None:
    rules, _ = softmax_ties(1)
    yhat = torch.tensor([[0.3, 0.2, 0.3, 0.2]], dtype=torch.float64)
    vertex = gdpnet.project(rules, yhat)
    even = gdpnet.project(rules, yhat, solver=gdpnet.solve.Exact(tie="least_norm"))
    assert vertex.distance.item() == pytest.approx(even.distance.item(), abs=1e-12)
    assert even.y[0].tolist() == pytest.approx([0.5, 0.4 / 3, 0.7 / 3, 0.4 / 3], abs=1e-9)
    assert even.info.least_norm is not None
    assert even.info.least_norm.all()
    assert vertex.info.least_norm is None
    assert (vertex.y - yhat).norm() > (even.y - yhat).norm() + 0.01
    with pytest.raises(gdpnet.errors.InputError, match="Exact: tie: expected one of"):
        gdpnet.solve.Exact(tie="vertex")


def test_least_norm_is_the_same_whatever_the_threads() -> None:
    rules, _ = softmax_ties(1)
    logits = torch.randn(300, 4, generator=torch.Generator().manual_seed(2)).double()
    yhat = logits.softmax(1)
    one = gdpnet.project(rules, yhat, solver=gdpnet.solve.Exact(tie="least_norm"), threads=1)
    two = gdpnet.project(rules, yhat, solver=gdpnet.solve.Exact(tie="least_norm"), threads=2)
    assert torch.equal(one.y, two.y)
    assert rules.satisfied(one.y, tol=1e-9).all()
    vertex = gdpnet.project(rules, yhat)
    assert torch.allclose(one.distance, vertex.distance, atol=1e-10)


@pytest.fixture(scope="module")
def cooling() -> tuple[gdpnet.RuleModel, torch.Tensor, torch.Tensor]:
    model = load_model(ROOT / "models" / "cooling")
    x, _ = model.sample(2000, split="ood", seed=5)
    generator = torch.Generator().manual_seed(1)
    return model.build(), x, torch.rand(2000, 3, generator=generator).double() * 1.4 - 0.2


Cooling = tuple[gdpnet.RuleModel, torch.Tensor, torch.Tensor]


def test_cooling_equals_milp(cooling: Cooling) -> None:
    rules, x, yhat = cooling
    p = gdpnet.project(rules, yhat, x)
    assert rules.satisfied(p.y, x, tol=1e-9).all()
    milp = gdpnet.project(rules, yhat[:150], x[:150], solver="milp", threads=1)
    assert torch.allclose(p.distance[:150], milp.distance, atol=1e-9)


def test_threads_and_batches_change_nothing(cooling: Cooling) -> None:
    rules, x, yhat = cooling
    one = gdpnet.project(rules, yhat, x, threads=1)
    for other in (
        gdpnet.project(rules, yhat, x, threads=3),
        gdpnet.project(rules, yhat.flip(0), x.flip(0)),
    ):
        y = other.y if other.y[0].equal(one.y[0]) else other.y.flip(0)
        assert torch.equal(one.y, y)
    single = [gdpnet.project(rules, yhat[i], x[i]).y for i in range(20)]
    assert torch.equal(one.y[:20], torch.stack(single))


def test_jacobian_is_that_of_finite_differences(cooling: Cooling) -> None:
    rules, x, yhat = cooling
    engine = engine_of(rules)
    instance = Instance.of(rules, x.numpy())
    options = SearchOptions(np.ones(3))
    solved = engine.project(instance, yhat.numpy(), options, detailed=True)
    jacobian = FactoredJacobian(instance, solved, 3).dense()
    numeric, h = np.empty_like(jacobian), 1e-6
    for j in range(3):
        step = h * np.eye(3)[j]
        above = engine.project(instance, yhat.numpy() + step, options).z
        below = engine.project(instance, yhat.numpy() - step, options).z
        numeric[:, :, j] = (above - below) / (2 * h)
    off = np.abs(numeric - jacobian).max((1, 2)) > 1e-6
    assert off.mean() < 0.002  # predictions that happen to lie on a kink


def test_gradients_of_right_sides_and_coefficients() -> None:
    m = pyo.ConcreteModel()
    m.p = pyo.Param([0, 1, 2], mutable=True, initialize=1.0)
    m.y = pyo.Var([0, 1, 2], bounds=(-5, 5))
    m.total = pyo.Constraint(expr=m.p[0] * m.y[0] + m.y[1] + 0.5 * m.y[2] >= 2 * m.p[1] + 1)
    m.rule = Disjunction(
        expr=[[m.p[2] * m.y[0] <= 1 - m.p[1]], [m.y[1] - m.p[0] * m.y[2] == m.p[2]]]
    )
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    rng = np.random.default_rng(3)
    x, yhat = rng.uniform(0.5, 2.0, (300, 3)), rng.uniform(-2, 2, (300, 3))
    engine = engine_of(rules)
    options = SearchOptions(np.ones(3))

    def outputs(at: np.ndarray) -> np.ndarray:
        return engine.project(Instance.of(rules, at), yhat, options).z

    instance = Instance.of(rules, x)
    solved = engine.project(instance, yhat, options, detailed=True)
    seed = rng.normal(size=(300, 3))
    gradients = FactoredJacobian(instance, solved, 3).vjp(seed)
    inputs = torch.from_numpy(x).requires_grad_()
    rows = rules.evaluate(inputs).rows
    (rows.bound * torch.from_numpy(gradients.bound)).sum().backward(retain_graph=True)
    (rows.coefficients * torch.from_numpy(gradients.varying)).sum().backward()
    assert inputs.grad is not None
    numeric, h = np.empty((300, 3)), 1e-6
    for j in range(3):
        step = h * np.eye(3)[j]
        change = (outputs(x + step) - outputs(x - step)) / (2 * h)
        numeric[:, j] = (change * seed).sum(1)
    off = np.abs(numeric - inputs.grad.numpy()).max(1) > 1e-5
    assert off.mean() < 0.01
    assert (np.abs(numeric).max(1) > 1e-3).mean() > 0.5  # most of them do depend on x


def test_multipliers_are_the_rate_of_the_distance() -> None:
    m = pyo.ConcreteModel()
    m.b = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var([1, 2], bounds=(0, 10))
    m.sum = pyo.Constraint(expr=m.y[1] + 2 * m.y[2] >= 3 * m.b)
    m.rule = Disjunction(expr=[[4 * m.y[1] <= m.b], [m.y[1] >= 9]])
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.b])
    yhat = torch.tensor([[1.0, 0.5]]).double()
    p = gdpnet.project(rules, yhat, [1.0])
    rows, multipliers = p.info.tight
    named = {
        rules.data.rows[i].name: v
        for i, v in zip(rows[0].tolist(), multipliers[0].tolist(), strict=True)
        if i >= 0
    }
    assert len(named) == 2
    h = 1e-6
    after = gdpnet.project(rules, yhat, [1.0 + h])
    rate = float(after.distance[0] - p.distance[0]) / h
    # Right sides of the rows as they are stored: -3 b and b.
    assert -(named["sum"] * -3.0 + named["rule_disjuncts[0].constraint[1]"]) == pytest.approx(
        rate, abs=1e-6
    )


def test_unfinished_samples_go_to_milp() -> None:
    rules, yhat = packing()
    full = gdpnet.project(rules, yhat)
    cut = gdpnet.project(rules, yhat, solver=gdpnet.solve.Exact(node_limit=2))
    assert full.info.solver == "exact"
    assert "milp" in cut.info.solver
    assert (cut.status == Status.PROJECTED).all()
    assert torch.allclose(full.distance, cut.distance, atol=1e-7)
    assert rules.satisfied(cut.y, tol=1e-7).all()


def test_time_limit_returns_the_best_found() -> None:
    rules, yhat = packing(rectangles=9)
    p = gdpnet.project(rules, yhat, time_limit=0.2, solver=gdpnet.solve.Exact(node_limit=10**9))
    proved = gdpnet.project(rules, yhat)
    for k in range(len(yhat)):
        if p.status[k] == Status.LIMIT:
            assert p.value[k] <= proved.distance[k] + 1e-7
            assert p.distance[k] >= proved.distance[k] - 1e-7
        else:
            assert p.distance[k] == pytest.approx(float(proved.distance[k]), abs=1e-7)
    found = torch.isfinite(p.distance)
    assert rules.satisfied(p.y[found], tol=1e-7).all()


def test_what_the_search_had_proved_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that proves nothing in its time does not make the search's bound worse."""
    rules, yhat = packing(rectangles=9)
    best = gdpnet.project(rules, yhat).distance

    def give_up(request, samples, answer, backend, **keywords) -> np.ndarray:
        answer.status[samples] = Status.LIMIT
        answer.value[samples] = 0.0
        return samples[:0]

    monkeypatch.setattr("gdpnet.solve.exact.backend.finish", give_up)
    with pytest.warns(gdpnet.errors.WorkLimitWarning, match="are not proved nearest"):
        p = gdpnet.project(rules, yhat, solver=gdpnet.solve.Exact(node_limit=300))
    limit = p.status == Status.LIMIT
    assert limit.any()
    assert (p.value[limit] > 0.0).all()
    assert (p.value <= best + 1e-9).all()


def packing(rectangles: int = 6) -> tuple[gdpnet.RuleModel, torch.Tensor]:
    rng = np.random.default_rng(4)
    size = rng.uniform(2, 4, (rectangles, 2))
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(rectangles), bounds=(0, 8))
    m.y = pyo.Var(range(rectangles), bounds=(0, 8))
    m.apart = Disjunction(
        [(i, j) for i in range(rectangles) for j in range(i)],
        rule=lambda m, i, j: [
            [m.x[i] + size[i, 0] <= m.x[j]],
            [m.x[j] + size[j, 0] <= m.x[i]],
            [m.y[i] + size[i, 1] <= m.y[j]],
            [m.y[j] + size[j, 1] <= m.y[i]],
        ],
    )
    yhat = torch.from_numpy(rng.uniform(0, 6, (3, 2 * rectangles)))
    return gdpnet.RuleModel(m, outputs=[m.x, m.y]), yhat


def test_independent_rules_are_searched_apart() -> None:
    m = pyo.ConcreteModel()
    blocks = 12
    m.y = pyo.Var(range(2 * blocks), bounds=(0, 1))
    for k in range(blocks):
        a, b = m.y[2 * k], m.y[2 * k + 1]
        m.add_component(f"sum{k}", pyo.Constraint(expr=a + b == 1))
        rule = gdpnet.rule(gdpnet.any_of(a >= 0.9, b >= 0.8, a + 0.5 * b <= 0.55))
        m.add_component(f"rule{k}", rule)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    assert len(engine_of(rules).components) == blocks
    yhat = torch.rand(5, 2 * blocks, generator=torch.Generator().manual_seed(0)).double()
    p = gdpnet.project(rules, yhat)
    assert torch.allclose(p.distance, gdpnet.project(rules, yhat, solver="milp").distance)
    assert p.info.nodes.max() <= 6 * blocks
    assert rules.satisfied(p.y, tol=1e-9).all()


def test_dominated_disjuncts_are_dropped() -> None:
    m = pyo.ConcreteModel()
    m.p = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var([1, 2], bounds=(0, 10))
    m.rule = Disjunction(
        expr=[
            [m.y[1] <= 2, m.y[2] <= m.p],  # within the second
            [m.y[1] <= 2],
            [m.y[1] >= 7],
            [m.y[1] >= 7],  # the third again
            [m.y[2] <= m.p],  # contains the first as well
        ]
    )
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    (component,) = engine_of(rules).components
    assert component.logic.clause_literal.tolist() == [2, 3, 5]
    yhat = torch.from_numpy(np.random.default_rng(0).uniform(0, 10, (50, 2)))
    p = gdpnet.project(rules, yhat, [1.0])
    milp = gdpnet.project(rules, yhat, [1.0], solver="milp")
    assert torch.allclose(p.distance, milp.distance, atol=1e-9)
    assert set(p.disjunct.flatten().tolist()) <= {1, 2, 4}


def test_functions_that_the_tape_lacks_are_evaluated_by_torch() -> None:
    m = pyo.ConcreteModel()
    m.t = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var(bounds=(0, 10))
    m.rule = gdpnet.rule(gdpnet.any_of(m.y <= pyo.exp(m.t), m.y >= 9), when=m.t >= 0)
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t])
    p = gdpnet.project(rules, torch.tensor([[5.0], [5.0]]).double(), torch.tensor([[1.0], [-1.0]]))
    assert p.y.flatten().tolist() == pytest.approx([np.e, 5.0])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_strict_leaves_no_violation_at_all(cooling: Cooling, dtype: torch.dtype) -> None:
    rules, x, yhat = cooling
    plain = gdpnet.project(rules, yhat.to(dtype), x)
    strict = gdpnet.project(rules, yhat.to(dtype), x, strict=True)
    assert not rules.satisfied(plain.y, x, tol=0.0).all()
    assert strict.info.strict is not None
    assert rules.satisfied(strict.y, x, tol=0.0)[strict.info.strict].all()
    assert strict.info.strict.double().mean() > 0.99
    grown = strict.distance.double() - plain.distance.double()
    # Where the nearest set is a point (a chiller level of exactly 0.4) another one is taken.
    # Otherwise: margins of 8 or 64 eps, terms of about 1, multipliers of up to 1 / 0.15.
    assert (grown.abs() <= 500 * torch.finfo(dtype).eps).double().mean() > 0.99


def test_strict_needs_the_engine() -> None:
    rules, yhat = softmax_ties(1)
    with pytest.raises(gdpnet.errors.InputError, match="strict"):
        gdpnet.project(rules, yhat, strict=True, solver="milp")
    p = gdpnet.project(rules, yhat.float(), strict=True)
    assert p.info.strict is not None
    assert p.info.strict.all()
    assert abs(float(p.y.double().sum()) - 1.0) <= 1e-6


def test_memory_of_a_large_batch(cooling: Cooling) -> None:
    rules, x, yhat = cooling
    x, yhat = x.repeat(50, 1), yhat.repeat(50, 1)
    gdpnet.project(rules, yhat[:10], x[:10])
    tracemalloc.start()
    p = gdpnet.project(rules, yhat, x)
    y = p.y
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(y) == 100_000
    assert peak < 200e6


def test_without_the_core_milp_takes_over_and_says_so() -> None:
    code = """
import sys, logging
sys.modules["gdpnet.core._native"] = None
import gdpnet, torch
import pyomo.environ as pyo
logging.getLogger("gdpnet").addHandler(logging.StreamHandler(sys.stdout))
m = pyo.ConcreteModel()
m.y = pyo.Var(bounds=(0, 10))
m.rule = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 7))
rules = gdpnet.RuleModel(m, outputs=[m.y])
p = gdpnet.project(rules, torch.tensor([[4.5]]))
gdpnet.project(rules, torch.tensor([[4.5]]))
print(p.y.item(), p.info.solver)
try:
    gdpnet.project(rules, torch.tensor([[4.5]]), solver="exact")
except gdpnet.errors.SolverError as error:
    print("refused:", error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "3.0 milp" in done.stdout
    assert done.stdout.count("The compiled core is not built") == 2  # logged once, and the refusal
    assert "refused: solver='exact' needs the compiled core" in done.stdout
