"""Every gradient against finite differences on random models, with respect to yhat and x."""

from __future__ import annotations

import math

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet.core import DETERMINED
from gdpnet.solve.exact.backend import engine_of
from tests.derivative.random_convex import random_convex
from tests.derivative.random_models import Tally, compare, random_model

QP = {"gradient": gdpnet.QP(0.05), "forward": "qp"}
VERTEX = {"gradient": "vertex"}


# Points of interior-point methods are good to 1e-8, which differences divide by the step, 1e-5.
VERTICES, REGULARISED = 1e-4, 1e-3


# Models, the fewest smooth samples among them, the fewest of those that move with an input.
@pytest.mark.parametrize(
    ("keywords", "tolerance", "models", "smooth", "through_x"),
    [
        pytest.param(VERTEX, VERTICES, 400, 2000, 800, id="vertex"),
        pytest.param(
            VERTEX | {"solver": gdpnet.solve.Exact(tie="least_norm")},
            VERTICES,
            200,
            1000,
            400,
            id="least norm",
        ),
        pytest.param(QP, REGULARISED, 15, 80, 40, id="qp"),
        pytest.param(VERTEX | {"relaxation": "cnf"}, VERTICES, 100, 500, 250, id="vertex, cnf"),
        pytest.param(QP | {"relaxation": "cnf"}, REGULARISED, 150, 900, 600, id="qp, cnf"),
    ],
)
def test_jacobians_are_those_of_the_point_returned(
    keywords, tolerance, models, smooth, through_x
) -> None:
    tally = Tally()
    for seed in range(models):
        model = random_model(seed, plain="relaxation" in keywords)
        tally.add(compare(model, tolerance, f"model {seed}", **keywords))
    assert not tally.wrong, tally.wrong[:5]
    assert tally.smooth >= smooth
    assert tally.through_x >= through_x


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_jacobians_of_convex_rows(norm: str) -> None:
    """Of `euclidean_differences --convex`, with models that once were wrong among them."""
    tally = Tally()
    for seed in (*range(80), 162, 577, 588, 739, 827, 1000, 1186, 1227, 1528):
        tally.add(compare(random_convex(seed), VERTICES, f"model {seed}", norm=norm, **VERTEX))
    assert not tally.wrong, tally.wrong[:5]
    assert tally.smooth >= 450
    assert tally.through_x >= 200


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_regularised_jacobians_of_convex_rows(norm: str) -> None:
    tally = Tally()
    keywords = {"gradient": gdpnet.QP(0.3), "forward": "qp"}
    for seed in range(50):
        model = random_convex(seed, plain=True)
        tally.add(compare(model, REGULARISED, f"model {seed}", norm=norm, **keywords))
    assert not tally.wrong, tally.wrong[:5]
    assert tally.smooth >= 200
    assert tally.through_x >= 80


@pytest.mark.filterwarnings("ignore::gdpnet.errors.ZeroGradientWarning")  # of y; it is not of yhat
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_a_distance_computed_from_y_has_its_exact_gradient(norm: str) -> None:
    """As the page on gradients says, for "vertex"; of `project`'s own numbers, by differences."""
    step, smooth, moved = 1e-6, 0, 0
    for seed in range(60):
        model = random_model(seed)
        if model.x is None:
            continue
        weights = torch.linspace(0.5, 2.0, model.yhat.shape[1], dtype=torch.float64)
        keywords = {"norm": norm, "weights": weights}

        def distance(both: torch.Tensor, model=model, keywords=keywords) -> torch.Tensor:
            yhat, x = both.split([model.yhat.shape[1], model.x.shape[1]], 1)
            return gdpnet.project(model.rules, yhat, x, **keywords).distance

        yhat, x = model.yhat.clone().requires_grad_(), model.x.clone().requires_grad_()
        p = gdpnet.project(model.rules, yhat, x, **keywords, **VERTEX)
        known = p.distance.isfinite()
        change = weights * (p.y - yhat)
        found = change.abs().sum(1) if norm == "l1" else torch.linalg.vector_norm(change, dim=1)
        torch.testing.assert_close(found[known], p.distance[known])
        exact = torch.cat(torch.autograd.grad(found.sum(), (yhat, x)), 1)
        both = torch.cat([yhat, x], 1).detach()
        for j in range(both.shape[1]):
            move = torch.zeros_like(both)
            move[:, j] = step
            ahead = (distance(both + move) - p.distance) / step
            behind = (p.distance - distance(both - move)) / step
            differ = known & ((ahead - behind).abs() < 1e-4)  # no kink, such as another disjunct
            torch.testing.assert_close(
                exact[differ, j], (ahead + behind)[differ] / 2, rtol=1e-4, atol=1e-4
            )
            smooth += int(differ.sum())
            moved += int((differ & (exact[:, j].abs() > 1e-3)).sum())
    assert smooth > 1500
    assert moved > 500


def test_jacobians_of_milp_are_those_of_the_point_returned() -> None:
    tally = Tally()
    for seed in (0, 8, 15, 19):  # with ties, whole numbers and auxiliaries
        tally.add(
            compare(random_model(seed, batch=4), VERTICES, f"model {seed}", **VERTEX, solver="milp")
        )
    assert not tally.wrong, tally.wrong[:5]
    assert tally.smooth >= 8
    assert tally.through_x >= 4


def of_inputs(rules, yhat, x, **keywords) -> list[float]:
    """dy/dx of one sample with one input."""

    def y(at):
        return gdpnet.project(rules, torch.tensor([yhat]), at, **keywords).y[0]

    at = torch.tensor([[x]], dtype=torch.float64)
    return torch.autograd.functional.jacobian(y, at).flatten().tolist()


def whole(rows) -> gdpnet.RuleModel:
    """A whole number n and an output y, with rows that depend on an input."""
    m = pyo.ConcreteModel()
    m.x = pyo.Param(mutable=True, initialize=1.0)
    m.n = pyo.Var(domain=pyo.Integers, bounds=(0, 5))
    m.y = pyo.Var(bounds=(0, 5))
    m.rows = pyo.ConstraintList()
    for row in rows(m):
        m.rows.add(row)
    return gdpnet.RuleModel(m, outputs=[m.n, m.y], inputs=[m.x])


@pytest.mark.parametrize("tie", ["first", "least_norm"])
def test_a_whole_number_rests_on_a_row_that_moves(tie) -> None:
    rules = whole(lambda m: [m.n >= m.x - 0.3, m.y >= m.x + 0.5 * m.n])
    assert of_inputs(
        rules, [0.2, 0.4], 1.5, gradient="vertex", solver=gdpnet.solve.Exact(tie=tie)
    ) == pytest.approx([0, 1])
    half = of_inputs(
        rules, [0.2, 0.4], 1.5, gradient="auto", solver=gdpnet.solve.Exact(tie=tie)
    )  # inward tells nothing of x
    assert half == pytest.approx([0, 0.5])


def test_a_whole_number_that_tight_rows_determine_rests() -> None:
    # y is on its bound, so the row determines n; with whole data, x = 2 is a kink.
    rules = whole(lambda m: [m.n + m.y >= m.x, 2 * m.y >= m.x - m.n])
    yhat, x = torch.tensor([[1.2, -0.5]]), torch.tensor([[2.0]], dtype=torch.float64)
    p = gdpnet.project(rules, yhat, x.clone().requires_grad_(), gradient="vertex")
    assert p.y.tolist() == [[2.0, 0.0]]
    ((_, detail),) = p.answer.linearisation.dictionaries().parts
    assert detail.column_state[0, 0] == DETERMINED
    below = (p.y.detach() - gdpnet.project(rules, yhat, x - 1e-5).y) / 1e-5
    assert of_inputs(rules, [1.2, -0.5], 2.0, gradient="vertex") == pytest.approx(below[0].tolist())


def test_the_least_norm_point_slides_along_a_row_that_tilts() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var(range(3), bounds=(-1, 1))
    m.total = pyo.Constraint(expr=m.y[0] + m.y[1] + m.y[2] == 1)
    m.row = pyo.Constraint(expr=m.x * m.y[0] + m.y[1] <= 0.5)
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.x])
    found = of_inputs(
        rules, [0.0, 0.0, 0.0], 1.3, gradient="vertex", solver=gdpnet.solve.Exact(tie="least_norm")
    )
    assert found == pytest.approx(by_hand(1.3), abs=1e-6)


def by_hand(x: float, step: float = 1e-6) -> list[float]:
    """Derivative of `least |y|^2` with `y0 + y1 + y2 = 1`, `x y0 + y1 = 1/2`."""
    ends = []
    for at in (x + step, x - step):
        rows = np.array([[1.0, 1.0, 1.0], [at, 1.0, 0.0]])
        ends.append(rows.T @ np.linalg.solve(rows @ rows.T, [1.0, 0.5]))
    return ((ends[0] - ends[1]) / (2 * step)).tolist()


def test_what_is_kept_where_a_priced_row_tilts() -> None:
    # At x = 1 all points of the row are equally near, at any other x one of them is the nearest:
    # there is no derivative, and what is reported keeps x y0 + y1 = 1.
    m = pyo.ConcreteModel()
    m.x = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var(range(2), bounds=(0, 2))
    m.row = pyo.Constraint(expr=m.x * m.y[0] + m.y[1] >= 1)
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.x])
    found = of_inputs(
        rules, [0.0, 0.0], 1.0, gradient="vertex", solver=gdpnet.solve.Exact(tie="least_norm")
    )
    assert sum(found) == pytest.approx(-0.5)


def test_the_qp_of_stiff_blocks_has_the_derivative_of_its_point() -> None:
    # The same equality in all products: multipliers of 10 and more that cancel.
    a, b = 0.7 * math.exp(0.42734) + 1.92785, 0.4256499652703745
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(-2, 2))
    y = m.y
    m.equal = pyo.Constraint(expr=a * y[0] + y[1] == 0.276427)
    m.first = Disjunction(
        expr=[
            [0.517717 * y[0] + 1.02531 * y[1] <= 0.458402, 0.792825 * y[1] <= 0.960891],
            [-1.28296 * y[0] + 0.95598 * y[1] >= 1.26805, 0.29197 * y[1] >= -0.5400533],
            [0.702797 * y[1] >= 1.05306, -0.968792 * y[0] + 1.76252 * y[1] <= 0.235587],
        ]
    )
    m.second = Disjunction(
        expr=[
            [1.30185 * y[0] + (0.7 * b + 0.158276) * y[1] >= 0.260174 - 0.253108 * b],
            [0.322875 * y[1] <= -0.286708],
        ]
    )
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    at = torch.tensor([0.81136250692081, 0.51967939739234], dtype=torch.float64)
    for eps in (0.05, 0.2):

        def point(v, eps=eps):
            keywords = {"relaxation": "cnf", "forward": "qp", "gradient": gdpnet.QP(eps)}
            p = gdpnet.project(rules, v, **keywords)
            assert not p.info.capped
            return p.y

        found = torch.autograd.functional.jacobian(point, at)
        step = 1e-4 * torch.eye(2, dtype=torch.float64)
        expected = torch.stack([(point(at + e) - point(at - e)) / 2e-4 for e in step], 1)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_whole_numbers_in_no_row_that_moves_get_no_gradient() -> None:
    rules = whole(lambda m: [m.y >= m.x])
    engine = engine_of(rules)
    assert len(engine.components) == 2
    yhat = torch.tensor([[1.3, 0.4]], dtype=torch.float64, requires_grad=True)
    y = gdpnet.project(rules, yhat, torch.tensor([[1.0]]).double(), gradient="vertex").y
    assert y.tolist() == [[1.0, 1.0]]
    with pytest.warns(gdpnet.errors.ZeroGradientWarning):
        y.sum().backward()
    assert not yhat.grad.any()
