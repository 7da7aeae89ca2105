"""Gradients of projections against finite differences and against what is known of them."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet.lp.program import Outcome
from gdpnet.solve import Answer, Request, Settings
from gdpnet.solve.milp import disjunctive
from gdpnet.solve.milp.jacobian import ActiveJacobian
from gdpnet.study._models import load_model

MODELS = Path(__file__).parents[2] / "models"
STEP = 1e-6
GUROBI = pytest.param("gurobi", marks=pytest.mark.gurobi)


def jacobian(rules, yhat, x=None, **keywords) -> torch.Tensor:
    """dy/dyhat by backward passes, `batch x d x d`."""
    yhat = yhat.clone().requires_grad_()
    return rows_of_jacobian(gdpnet.project(rules, yhat, x, **keywords).y, yhat)


def rows_of_jacobian(y: torch.Tensor, yhat: torch.Tensor) -> torch.Tensor:
    """dy/dyhat of a projection, `batch x d x d`."""
    rows = []
    for j in range(yhat.shape[1]):
        (row,) = torch.autograd.grad(y[:, j].sum(), yhat, retain_graph=True)
        rows.append(row)
    return torch.stack(rows, 1)


def differences(rules, yhat, x=None, step=STEP, **keywords) -> tuple[torch.Tensor, torch.Tensor]:
    """The same by one-sided differences on both sides, and where these agree (no kink)."""
    base = gdpnet.project(rules, yhat, x, **keywords).y
    above, below = [], []
    for j in range(yhat.shape[1]):
        moved = torch.zeros_like(yhat)
        moved[:, j] = step
        above.append((gdpnet.project(rules, yhat + moved, x, **keywords).y - base) / step)
        below.append((base - gdpnet.project(rules, yhat - moved, x, **keywords).y) / step)
    above, below = torch.stack(above, 2), torch.stack(below, 2)
    smooth = (above - below).abs().amax((1, 2)) < 1e-5
    return above, smooth


@pytest.mark.parametrize("split", ["iid", "ood"])
def test_vertex_is_the_derivative_of_the_projection(split) -> None:
    model = load_model(MODELS / "cooling")
    rules = model.build()
    x = model.sample(5000, split=split, seed=7)[0].double()
    yhat = torch.rand(5000, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    yhat = 1.4 * yhat - 0.2  # some outside of the box
    found = jacobian(rules, yhat, x, gradient="vertex")
    expected, smooth = differences(rules, yhat, x)
    assert smooth.float().mean() > 0.99
    assert (found - expected)[smooth].abs().max() < 1e-5
    outside = ((yhat < 0) | (yhat > 1)) & smooth[:, None]
    assert outside.any()
    assert not found.transpose(1, 2)[outside].any()


@pytest.mark.parametrize("solver", ["extended", "highs", GUROBI])
@pytest.mark.parametrize("relaxation", ["cnf", "plan", "adaptive", "dnf"])
def test_vertex_is_the_derivative_of_a_relaxation(relaxation, solver) -> None:
    model = load_model(MODELS / "cooling")
    rules = model.build()
    count = 1000 if solver == "extended" else 60
    x = model.sample(count, split="ood", seed=7)[0].double()
    yhat = torch.rand(count, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    yhat = 1.4 * yhat - 0.2
    if relaxation == "plan":
        relaxation = gdpnet.Plan.lexicographic(rules, 3)
    keywords = {"relaxation": relaxation, "solver": solver}
    found = jacobian(rules, yhat, x, gradient="vertex", **keywords)
    expected, smooth = differences(rules, yhat, x, **keywords)
    assert smooth.float().mean() > 0.95
    assert (found - expected)[smooth].abs().max() < 1e-5


def test_a_relaxation_follows_bounds_that_depend_on_inputs() -> None:
    m = pyo.ConcreteModel()
    m.top = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var([1, 2], bounds=(0, m.top))
    m.rule = Disjunction(expr=[[m.y[1] + m.y[2] >= 1.5], [m.y[1] <= 0.2]])
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.top], input_bounds={"top": (1, 2)})
    yhat = torch.tensor([[1.8, 0.1], [0.7, 0.7]], dtype=torch.float64)
    for relaxation, solver in product(("cnf", "dnf"), ("auto", "highs")):
        x = torch.tensor([[1.25], [1.5]], dtype=torch.float64, requires_grad=True)
        keywords = {"relaxation": relaxation, "solver": solver}
        y = gdpnet.project(rules, yhat, x, gradient="vertex", **keywords).y
        # 1.25 is as far as the first can go, so the second has to make up for it.
        torch.testing.assert_close(y[0], torch.tensor([1.25, 0.25], dtype=torch.float64))
        y[:, 0].sum().backward()
        assert x.grad.flatten().tolist() == pytest.approx([1.0, 0.0])


@pytest.mark.parametrize("solver", ["highs", GUROBI])
def test_written_out_coefficients_that_depend_on_inputs_get_their_gradient(solver) -> None:
    rules = parametric()
    generator = torch.Generator().manual_seed(8)
    x = torch.rand(40, 2, dtype=torch.float64, generator=generator, requires_grad=True)
    yhat = 4 * torch.rand(40, 3, dtype=torch.float64, generator=generator) - 2
    found = []
    for chosen in ("extended", solver):
        y = gdpnet.project(rules, yhat, x, relaxation="cnf", solver=chosen, gradient="vertex").y
        found.append(torch.autograd.grad((y @ y.new_tensor([1.0, -0.3, 0.5])).sum(), x)[0])
    assert found[0].abs().sum() > 1
    torch.testing.assert_close(found[1], found[0], atol=1e-8, rtol=1e-8)


@pytest.mark.filterwarnings("ignore::gdpnet.errors.ZeroGradientWarning")
def test_ties_get_the_derivative_of_the_vertex_that_was_returned() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(6), bounds=(0, 1))
    m.total = pyo.Constraint(expr=sum(m.y.values()) == 1)
    m.first = Disjunction(expr=[[m.y[0] + m.y[1] >= 0.6], [m.y[2] + m.y[3] >= 0.6]])
    m.second = Disjunction(expr=[[m.y[1] <= 0.05], [m.y[4] + m.y[5] >= 0.3]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    generator = torch.Generator().manual_seed(5)
    yhat = 0.15 * torch.rand(40, 6, dtype=torch.float64, generator=generator)
    yhat.requires_grad_()
    points = []
    for solver in ("extended", "highs"):
        points.append(gdpnet.project(rules, yhat, solver=solver, gradient="vertex").y)
        found = rows_of_jacobian(points[-1], yhat)
        # The sum stays 1, and an output that was moved does not follow its own prediction.
        assert found.sum(1).abs().max() < 1e-9
        moved = (points[-1] - yhat).abs() > 1e-9
        own = found.diagonal(dim1=1, dim2=2)
        torch.testing.assert_close(own, (~moved).double(), atol=1e-9, rtol=0.0)
    assert (points[0] - points[1]).abs().max() > 0.01  # many points are nearest: solvers differ


def simplex(d: int = 6) -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.p = pyo.Var(range(d), bounds=(0, 1))
    m.total = pyo.Constraint(expr=sum(m.p.values()) == 1)
    m.first = Disjunction(expr=[[m.p[0] >= 0.5], [m.p[1] + m.p[2] >= 0.6]])
    m.second = Disjunction(expr=[[m.p[3] <= 0.1], [m.p[0] <= 0.2, m.p[4] <= 0.2]])
    return gdpnet.RuleModel(m, outputs=[m.p])


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 1.0, 0.5, 1.0, 3.0]])
def test_least_norm_has_a_derivative_of_its_own(weights) -> None:
    rules = simplex()
    generator = torch.Generator().manual_seed(3)
    yhat = torch.rand(400, 6, dtype=torch.float64, generator=generator).softmax(1)
    keywords = {"solver": gdpnet.solve.Exact(tie="least_norm"), "weights": weights}
    found = jacobian(rules, yhat, gradient="vertex", **keywords)
    expected, smooth = differences(rules, yhat, **keywords)
    assert smooth.float().mean() > 0.9
    assert (found - expected)[smooth].abs().max() < 1e-5
    vertex = jacobian(rules, yhat, gradient="vertex", weights=weights)
    assert (found - vertex).abs().amax((1, 2)).median() > 0.1


def parametric() -> gdpnet.RuleModel:
    """Inputs in right sides, in coefficients, in a product of both."""
    m = pyo.ConcreteModel()
    m.a = pyo.Param(mutable=True, initialize=1.0)
    m.b = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var([1, 2, 3], bounds=(-2, 2))
    m.all = pyo.Constraint(expr=m.y[1] + m.a * m.y[2] <= 1 + m.b)
    m.rule = Disjunction(
        expr=[[m.a * m.y[1] + m.y[3] >= m.b**2], [m.y[2] - m.a * m.b * m.y[3] >= 1]]
    )
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.a, m.b])


@pytest.mark.parametrize("gradient", ["vertex", gdpnet.QP(1e-1)])
def test_gradients_reach_the_inputs(gradient) -> None:
    rules = parametric()
    rng = np.random.default_rng(0)
    yhat = torch.from_numpy(rng.uniform(-2, 2, (500, 3)))
    x = torch.from_numpy(rng.uniform(0.3, 1.5, (500, 2)))
    keywords = {"gradient": gradient, "forward": "exact" if gradient == "vertex" else "qp"}
    leaf = x.clone().requires_grad_()
    weight = torch.from_numpy(rng.normal(size=(500, 3)))
    (gdpnet.project(rules, yhat, leaf, **keywords).y * weight).sum().backward()

    def loss(at: torch.Tensor) -> torch.Tensor:
        return (gdpnet.project(rules, yhat, at, **keywords).y * weight).sum(1)

    base = loss(x)
    for j in range(2):
        moved = torch.zeros_like(x)
        moved[:, j] = STEP
        above, below = (loss(x + moved) - base) / STEP, (base - loss(x - moved)) / STEP
        smooth = (above - below).abs() < 1e-4
        assert smooth.float().mean() > 0.9
        assert (leaf.grad[:, j] - above)[smooth].abs().max() < 1e-4
    assert leaf.grad.abs().amax(0).min() > 0.1


def test_a_single_input_for_all_samples_gets_the_sum() -> None:
    rules = parametric()
    yhat = torch.rand(20, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x = torch.tensor([0.7, 1.2], dtype=torch.float64)
    one, many = x.clone().requires_grad_(), x.expand(20, 2).clone().requires_grad_()
    for leaf in (one, many):
        gdpnet.project(rules, yhat, leaf, gradient="vertex").y.sum().backward()
    torch.testing.assert_close(one.grad, many.grad.sum(0))


def test_activation_contributes_nothing() -> None:
    m = pyo.ConcreteModel()
    m.t = pyo.Param(mutable=True, initialize=0.0)
    m.y = pyo.Var(bounds=(0, 1))
    m.hot = Disjunction(expr=[[m.y >= 0.5]])
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.active_when[m.hot] = m.t >= 28
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t])
    x = torch.tensor([[28.0], [20.0]], requires_grad=True)
    y = gdpnet.project(rules, torch.tensor([[0.2], [0.2]]), x, gradient="vertex").y
    assert y.tolist() == [[0.5], [pytest.approx(0.2)]]
    y.sum().backward()
    assert x.grad.tolist() == [[0.0], [0.0]]


def test_a_threshold_is_learned() -> None:
    m = pyo.ConcreteModel()
    m.threshold = pyo.Param(mutable=True, initialize=0.0)
    m.y = pyo.Var(bounds=(0, 1))
    m.least = pyo.Constraint(expr=m.y >= m.threshold)
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.threshold])
    yhat = torch.linspace(0, 1, 101, dtype=torch.float64)[:, None]
    target = yhat.clamp(min=0.4)
    threshold = torch.tensor([0.1], dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([threshold], lr=0.02)
    for _ in range(200):
        y = gdpnet.project(rules, yhat, threshold, gradient="vertex").y
        loss = (y - target).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert threshold.item() == pytest.approx(0.4, abs=1e-3)


@pytest.mark.parametrize("relaxation", ["dnf", "cnf"])
@pytest.mark.parametrize("seed", range(4))
def test_gradcheck_of_the_regularised_map(seed, relaxation) -> None:
    rules = parametric()
    rng = np.random.default_rng(100 + seed)
    yhat = torch.from_numpy(rng.uniform(-2, 2, (6, 3))).requires_grad_()
    x = torch.from_numpy(rng.uniform(0.3, 1.5, (6, 2))).requires_grad_()
    layer = gdpnet.ProjectionLayer(
        rules,
        relaxation=relaxation,
        gradient=gdpnet.QP(0.1),
        forward="qp",
        on_conflict="raise",
    )
    assert (layer.project(yhat, x).distance > 0.0).any()
    # An interior-point method stops at about 1e-7: differences need a longer step over that.
    step, atol = (1e-6, 1e-5) if relaxation == "dnf" else (1e-4, 2e-3)
    assert torch.autograd.gradcheck(layer, (yhat, x), eps=step, atol=atol, rtol=1e-4)


def test_straight_through_and_mixtures() -> None:
    rules = simplex()
    generator = torch.Generator().manual_seed(5)
    yhat = torch.rand(50, 6, dtype=torch.float64, generator=generator)
    identity = torch.eye(6, dtype=torch.float64).expand(50, 6, 6)
    straight = jacobian(rules, yhat, gradient="straight_through")
    assert torch.equal(straight, identity)
    vertex = jacobian(rules, yhat, gradient="vertex")
    mixed = jacobian(rules, yhat, gradient=gdpnet.Mixed("vertex", "straight_through", 0.25))
    torch.testing.assert_close(mixed, 0.25 * vertex + 0.75 * identity)
    qp = jacobian(rules, yhat, gradient=gdpnet.QP(1e-2))
    named = jacobian(rules, yhat, gradient="mixed:0.25")
    torch.testing.assert_close(named, 0.25 * qp + 0.75 * identity)
    both = jacobian(rules, yhat, gradient=gdpnet.Mixed(gdpnet.QP(1e-2), gdpnet.Vertex(), 0.5))
    torch.testing.assert_close(both, 0.5 * qp + 0.5 * vertex)


def test_inward_gradients_never_lead_away_from_the_rules() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([1, 2], bounds=(0, 1))
    m.total = pyo.Constraint(expr=m.y[1] + m.y[2] <= 1)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    yhat = torch.tensor([[1.5, 0.4], [0.2, 0.3], [-1.0, 0.5]], requires_grad=True)
    y = gdpnet.project(rules, yhat, gradient=gdpnet.StraightThrough(inward=True)).y
    (y * torch.tensor([[-1.0, 1.0], [1.0, -1.0], [-2.0, 3.0]])).sum().backward()
    # A step against the gradient: 1.5 would grow further beyond, -1.0 comes back.
    assert yhat.grad.tolist() == [[0.0, 1.0], [1.0, -1.0], [-2.0, 3.0]]


def test_milp_has_the_same_gradients() -> None:
    model = load_model(MODELS / "cooling")
    rules = model.build()
    x = model.sample(20, split="ood", seed=3)[0].double()
    yhat = torch.rand(20, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for gradient in ("vertex", "qp"):
        exact = jacobian(rules, yhat, x, gradient=gradient)
        torch.testing.assert_close(
            jacobian(rules, yhat, x, gradient=gradient, solver="milp"), exact
        )


def apart() -> gdpnet.RuleModel:
    """Three outputs, any two of them at least 2 apart."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(3), bounds=(0, 10))
    m.gap = pyo.Expression(range(3), rule=lambda m, i: m.y[i] - m.y[(i + 1) % 3])
    m.apart = Disjunction(range(3), rule=lambda m, i: [[m.gap[i] >= 2], [m.gap[i] <= -2]])
    return gdpnet.RuleModel(m, outputs=[m.y])


def test_what_the_engine_left_to_milp_has_the_gradient_of_its_vertex() -> None:
    rules = apart()
    yhat = torch.tensor([[1.0, 5.0, 9.0], [5.0, 5.1, 5.2]], dtype=torch.float64)
    keywords = {"solver": gdpnet.solve.Exact(node_limit=1), "gradient": "vertex"}
    p = gdpnet.project(rules, yhat.clone().requires_grad_(), **keywords)
    assert p.info.solver == ["exact", "milp"]
    assert p.info.capped.tolist() == [False, False]
    assert not p.info.identity.any()
    found = jacobian(rules, yhat, **keywords)
    expected, smooth = differences(rules, yhat, **keywords)
    assert smooth.tolist() == [True, True]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-8)
    assert found[1].abs().sum() == pytest.approx(3)  # one stays, and the others keep their distance


def test_what_the_engine_left_unfinished_passes_the_gradient_of_the_qp() -> None:
    yhat = torch.tensor([[1.0, 5.0, 9.0], [5.0, 5.1, 5.2]], dtype=torch.float64, requires_grad=True)
    for gradient in ("qp", gdpnet.Mixed("qp", "vertex", 0.5)):
        rules = apart()
        p = gdpnet.project(rules, yhat, gradient=gradient, solver=gdpnet.solve.Exact(node_limit=1))
        assert p.info.identity.tolist() == [False, True]
        with pytest.warns(
            gdpnet.errors.IdentityGradientWarning, match=r"1 of the 2 samples.*node_limit"
        ):
            (found,) = torch.autograd.grad(p.y.sum(), yhat)
        assert torch.equal(found, torch.ones_like(yhat))
        # Told once for these rules, and never where nothing is trained.
        p = gdpnet.project(rules, yhat, gradient=gradient, solver=gdpnet.solve.Exact(node_limit=1))
        p.y.sum().backward()
        with torch.no_grad():
            p = gdpnet.project(
                apart(), yhat, gradient=gradient, solver=gdpnet.solve.Exact(node_limit=1)
            )
        assert p.info.identity.any()
        assert (
            gdpnet.project(rules, yhat, solver=gdpnet.solve.Exact(node_limit=1)).info.identity
            is None
        )
        assert not gdpnet.project(rules, yhat, gradient=gradient).info.identity.any()


def test_milp_has_the_gradient_of_the_vertex_it_returned() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([0, 1], bounds=(0, 1))
    m.total = pyo.Constraint(expr=m.y[0] + m.y[1] <= 1)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    yhat = torch.tensor([[0.8, 0.8]], dtype=torch.float64)
    for solver in ("exact", "milp"):  # two vertices are equally near
        y = gdpnet.project(rules, yhat, solver=solver).y[0]
        follows = int(y[0] < y[1])
        expected = torch.zeros(2, 2, dtype=torch.float64)
        expected[follows, follows], expected[1 - follows, follows] = 1.0, -1.0
        found = jacobian(rules, yhat, solver=solver, gradient="vertex")[0]
        torch.testing.assert_close(found, expected)


def test_a_point_of_milp_that_is_no_vertex_is_told_and_passes_its_gradient() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([0, 1], bounds=(0, 1))
    m.total = pyo.Constraint(expr=m.y[0] + m.y[1] <= 1)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    nobody, settings = np.zeros(1, dtype=bool), Settings(weights=np.ones(2))
    request = Request(rules, np.zeros((1, 0)), np.array([[0.8, 0.8]]), nobody, settings)
    answer = Answer.passed(request, np.zeros((1, 0), dtype=bool), "milp")
    answer.y[0], answer.status[0] = 0.5, gdpnet.Status.PROJECTED  # as near as the two vertices
    found = ActiveJacobian(request, answer, np.array([0]))
    assert found.capped.tolist() == [True]
    assert found.answered.tolist() == [False]
    assert found.vjp(np.array([[1.0, 2.0]])).yhat.tolist() == [[1.0, 2.0]]


def test_limits_of_milp_pass_the_gradient(monkeypatch) -> None:
    def limited(*arguments, **keywords):
        answer = solve(*arguments, **keywords)
        return replace(answer, outcome=Outcome.LIMIT)

    solve = disjunctive.solve
    monkeypatch.setattr(disjunctive, "solve", limited)
    yhat = torch.tensor([[5.0, 5.1, 5.2]], dtype=torch.float64, requires_grad=True)
    p = gdpnet.project(apart(), yhat, gradient="vertex", solver="milp")
    assert p.status.tolist() == [gdpnet.Status.LIMIT]
    with pytest.warns(gdpnet.errors.IdentityGradientWarning, match="1 of the 1 samples"):
        p.y.sum().backward()
    assert torch.equal(yhat.grad, torch.ones_like(yhat))


@pytest.mark.parametrize("inward", [False, True])
def test_straight_through_asks_nothing_of_a_fallback(inward: bool) -> None:
    rules = apart()
    yhat = torch.tensor([[5.0, 5.1, 5.2]], dtype=torch.float64, requires_grad=True)
    gradient = gdpnet.StraightThrough(inward=inward)
    p = gdpnet.project(rules, yhat, gradient=gradient, solver=gdpnet.solve.Exact(node_limit=1))
    assert p.info.solver == "milp"
    assert not p.info.identity.any()
    p.y.sum().backward()
    above = (yhat < p.y).detach()  # a smaller prediction would be further away
    assert above.any()
    assert torch.equal(yhat.grad, torch.where(above & inward, 0.0, 1.0).double())


def test_the_regularised_point_may_break_rules_and_says_so() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.gap = Disjunction(expr=[[m.y <= 3], [m.y >= 7]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    yhat = torch.tensor([[5.0], [4.0], [8.0]], dtype=torch.float64)
    p = gdpnet.project(rules, yhat, forward="qp", gradient=gdpnet.QP(1e-2))
    assert p.status.tolist() == [
        gdpnet.Status.RELAXED,
        gdpnet.Status.PROJECTED,
        gdpnet.Status.SATISFIED,
    ]
    assert p.y[0].item() == pytest.approx(5.0)
    assert p.y[1].item() == pytest.approx(3.0)
    assert p.disjunct.flatten().tolist() == [-1, 0, 1]


def almost_empty() -> gdpnet.RuleModel:
    """The second disjunct is empty where t < u, by as little as they differ."""
    m = pyo.ConcreteModel()
    m.t = pyo.Param(mutable=True, initialize=1.0)
    m.u = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var([0, 1], bounds=(0, 10))
    m.s = pyo.Constraint(expr=m.u * m.y[0] + 2 * m.y[1] <= 16 * m.t)
    m.g = Disjunction(expr=[[m.y[0] + m.t * m.y[1] <= 3 * m.u], [m.y[1] >= 8 * m.u]])
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t, m.u])


@pytest.mark.parametrize("u", [1.1301, 1.1304, 1.1318, 1.15, 1.3])
def test_almost_empty_products_do_not_disturb_the_regularised_gradient(u) -> None:
    rules, found = almost_empty(), []
    for relaxation in ("dnf", "cnf"):
        x = torch.tensor([[1.13, u]], dtype=torch.float64, requires_grad=True)
        yhat = torch.tensor([[0.5, 7.0]], dtype=torch.float64, requires_grad=True)
        gdpnet.project(rules, yhat, x, relaxation=relaxation, gradient="qp").y[0, 1].backward()
        found.append(torch.cat([x.grad, yhat.grad], 1))
    torch.testing.assert_close(found[1], found[0], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("relaxation", ["dnf", "cnf"])
@pytest.mark.parametrize("gradient", ["vertex", "qp", "auto", "straight_through"])
def test_unusable_samples_leave_shared_parameters_alone(gradient, relaxation) -> None:
    m = pyo.ConcreteModel()
    m.t = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var([1, 2], bounds=(0, 10))
    m.g = Disjunction(expr=[[m.y[1] >= 3 * m.t], [m.y[2] >= 7 * pyo.sqrt(m.t)]])
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t])
    yhat = torch.tensor([[1.0, 1.0], [float("nan"), 1.0], [1.0, 2.0], [1.0, 2.0]])
    yhat.requires_grad_()
    w = torch.tensor(1.0, requires_grad=True)
    x = w * torch.tensor([[1.0], [1.0], [1.0], [-1.0]])  # sqrt of the last is no number
    p = gdpnet.project(rules, yhat, x, gradient=gradient, relaxation=relaxation, on_invalid="mark")
    assert (p.status == gdpnet.Status.ERROR).tolist() == [False, True, False, True]
    p.y.square().sum().backward()  # NaN of two samples comes in
    assert yhat.grad.isfinite().all()
    assert not yhat.grad[[1, 3]].any()
    assert w.grad is None or w.grad.isfinite()


@pytest.mark.parametrize("shapes", [((2,), (1, 1)), ((3, 2), (1, 1, 1)), ((3, 2), (1,))])
def test_inputs_of_any_single_row_shape_get_their_gradient(shapes) -> None:
    m = pyo.ConcreteModel()
    m.t = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var([1, 2], bounds=(0, 10))
    m.g = pyo.Constraint(expr=m.y[1] >= 3 * m.t)
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t])
    x = torch.ones(shapes[1], requires_grad=True)
    gdpnet.project(rules, torch.ones(shapes[0]), x, gradient="vertex").y.sum().backward()
    assert x.grad.shape == x.shape
    assert x.grad.sum().item() == 3.0 * (shapes[0][0] if len(shapes[0]) > 1 else 1)


def test_writing_into_what_a_gradient_needs_is_told() -> None:
    m = pyo.ConcreteModel()
    m.a = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var(bounds=(0, 10))
    m.least = pyo.Constraint(expr=m.a * m.y >= 2)
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.a])
    x = torch.ones(4, 1, dtype=torch.float64, requires_grad=True)
    y = gdpnet.project(rules, torch.zeros(4, 1), x, gradient="vertex").y
    with torch.no_grad():
        x.fill_(3.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_writing_into_what_was_copied_is_allowed(dtype) -> None:
    rules = simplex()
    found = []
    for written in (False, True):
        yhat = torch.linspace(-1, 1, 24, dtype=dtype).reshape(4, 6).requires_grad_()
        y = gdpnet.project(rules, yhat, gradient="auto").y
        if written:
            with torch.no_grad():
                yhat.zero_()
                y.zero_()
        (y * torch.arange(6.0)).sum().backward()
        found.append(yhat.grad)
    assert torch.equal(*found)


def test_nothing_keeps_a_graph_alive() -> None:
    rules = simplex()
    yhat = torch.rand(4, 6, dtype=torch.float64, requires_grad=True)
    y = gdpnet.project(rules, yhat, gradient="auto").y
    y.sum().backward()
    watched = weakref.ref(y)
    gc.disable()
    try:
        del y
        assert watched() is None
    finally:
        gc.enable()


def test_the_regularised_point_where_there_is_none() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(3), bounds=(0, 10))
    m.gap = pyo.Expression(range(3), rule=lambda m, i: m.y[i] - m.y[(i + 1) % 3])
    m.apart = Disjunction(range(3), rule=lambda m, i: [[m.gap[i] >= 2], [m.gap[i] <= -2]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    yhat = torch.tensor([[5.0, 5.1, 5.2]], dtype=torch.float64)
    p = gdpnet.project(rules, yhat, forward="qp", solver=gdpnet.solve.Exact(node_limit=1))
    assert p.info.solver == "milp"
    assert rules.satisfied(p.y).all()
    with pytest.raises(gdpnet.errors.InputError, match="no strict and no tie"):
        gdpnet.project(rules, yhat, forward="qp", strict=True)
    assert gdpnet.project(rules, yhat, relaxation="cnf", gradient="qp").info.capped is None


@pytest.mark.parametrize("relaxation", ["cnf", "adaptive"])
def test_nearest_outputs_of_contradictory_rules_with_a_relaxation(relaxation) -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.least = Disjunction(expr=[[m.y >= 7]])
    m.most = Disjunction(expr=[[m.y <= 3]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    exact = gdpnet.project(rules, [[12.0]], on_conflict="nearest")
    p = gdpnet.project(rules, [[12.0]], relaxation=relaxation, on_conflict="nearest")
    assert p.status.tolist() == [gdpnet.Status.CONFLICT]
    torch.testing.assert_close(p.y, exact.y)


@pytest.mark.filterwarnings("ignore::gdpnet.errors.ZeroGradientWarning")
@pytest.mark.parametrize("relaxation", ["cnf", "dnf"])
@pytest.mark.parametrize("gradient", ["vertex", "qp"])
def test_an_output_with_one_value_follows_no_prediction(relaxation: str, gradient: str) -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([1, 2], bounds=(0, 10))
    m.y[2].setlb(3)
    m.y[2].setub(3)
    m.a = Disjunction(expr=[[m.y[1] == 3], [m.y[1] >= 7], [m.y[1] + m.y[2] <= -1]])
    m.b = Disjunction(expr=[[m.y[1] <= 4], [m.y[1] + 0.1 * m.y[2] >= 6.3]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    yhat = torch.tensor([[4.5, 3.0], [4.5, 2.0]], dtype=torch.float64, requires_grad=True)
    y = gdpnet.project(rules, yhat, relaxation=relaxation, gradient=gradient).y
    assert y.tolist() == [[3, 3], [3, 3]]
    y[:, 1].sum().backward()
    assert yhat.grad is not None
    assert yhat.grad[:, 1].tolist() == [0, 0]
