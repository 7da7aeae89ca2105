"""ProgramLayer: against ProjectionLayer over the bank, exact arithmetic, and differences."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction
from scipy.optimize import minimize

import gdpnet
from gdpnet.errors import ConflictError, InputError, RuleError
from gdpnet.lp import many_digits
from gdpnet.nn import ProgramLayer
from gdpnet.testing import PROBLEMS, Problem
from tests.derivative.exact_oracle import DIGITS, dot, minimised

pytestmark = pytest.mark.filterwarnings("ignore::gdpnet.errors.ZeroGradientWarning")

Tensor = torch.Tensor
F64 = torch.float64


def differences(function: Callable[[Tensor], Tensor], at: Tensor, step: float = 1e-5) -> Tensor:
    """The gradient of the sum of a function, by central differences."""
    found = torch.zeros_like(at)
    for k in range(at.numel()):
        move = torch.zeros_like(at)
        move.view(-1)[k] = step
        with torch.no_grad():
            change = function(at + move).sum() - function(at - move).sum()
        found.view(-1)[k] = change / (2 * step)
    return found


def gradient(function: Callable[[Tensor], Tensor], at: Tensor) -> Tensor:
    leaf = at.clone().requires_grad_()
    function(leaf).sum().backward()
    assert leaf.grad is not None
    return leaf.grad


# ---- the bank ----------------------------------------------------------------------------------


def of_the_bank(problem: Problem, relaxation: str, norm: str) -> list[tuple[Any, ...]]:
    """Outputs and gradients of both layers, for samples that are projected."""
    rules = problem.rules()
    d = rules.data.outputs
    weights = (1 + 0.37 * np.cos(1 + np.arange(d))).tolist()  # then the nearest point is unique
    layer = gdpnet.ProjectionLayer(
        rules, relaxation=relaxation, gradient="qp", weights=weights, norm=norm
    )
    generator, found = np.random.default_rng(0), []
    along = torch.cos(torch.arange(d)).to(F64)
    for sample in problem.samples[:2]:
        yhat = torch.tensor([sample.yhat], dtype=F64) + torch.from_numpy(
            generator.normal(0, 1e-2, (1, d))
        )
        x = [torch.tensor([sample.x], dtype=F64)] if sample.x else []
        status = int(layer.project(yhat, *x).status)
        if status not in (gdpnet.Status.PROJECTED, gdpnet.Status.RELAXED):
            continue
        program = gdpnet.convexify(
            rules, relaxation=relaxation, x=sample.x or None, weights=weights, norm=norm
        )
        inputs: list[Any] = [program.gdpnet_yhat]
        if x:
            inputs.append([program.find_component(name) for name in rules.input_names])
        twin = ProgramLayer(program, inputs=inputs, outputs=[program.gdpnet_y])
        for call in (layer, twin):
            given = [t.clone().requires_grad_() for t in (yhat, *x)]
            y = call(*given)
            (y @ along).sum().backward()
            grads = [torch.zeros_like(t) if t.grad is None else t.grad for t in given]
            found.append((y.detach(), *grads))
    return found


# Whole numbers are relaxed in a program; without bounds there is no hull.
LEFT_OUT = {"unbounded_outputs", "half_bounded_outputs", "nested_unbounded",
            "contradictory_globals", "contradictory_unbounded", "unbounded_auxiliary"}  # fmt: skip
COMPARED = [p for p in PROBLEMS if p.name not in LEFT_OUT]


@pytest.mark.parametrize(
    ("relaxation", "norm", "tol"), [("cnf", "l1", 1e-5), ("dnf", "l1", 1e-5), ("cnf", "l2", 1e-4)]
)
@pytest.mark.parametrize("part", range(4))
def test_a_convexified_program_is_the_projection(part, relaxation, norm, tol) -> None:
    compared = 0
    for problem in COMPARED[part::4]:
        if any(column.integer for column in problem.rules().data.columns):
            continue
        found = of_the_bank(problem, relaxation, norm)
        for own, twin in zip(found[::2], found[1::2], strict=True):
            for a, b in zip(own, twin, strict=True):
                assert torch.allclose(b, a, rtol=tol, atol=tol), problem.name
            compared += 1
    assert compared > 10


BAD_SCALES = [  # a y <= b of the globals and bounds, and of the two disjuncts
    [((-1e6, -1e6), -2e6), ((1e-4, 1e-3), 150), ((1, 0), 2e6), ((-1, 0), 0), ((0, 1), 10),
     ((0, -1), 10)],
    [((1e4, 0), 5e4), ((0, -1), -1)],
    [((-1e-3, 0), -1e3), ((0, 1), -1)],
]  # fmt: skip


def exact_bad_scales(yhat: list[Decimal], weights: list[float], eps: float) -> list[Decimal]:
    """y of the regularised program of `bad_scales`, over (p, q, lambda) of both disjuncts."""
    always, *disjuncts = BAD_SCALES
    zero, d, width = Decimal(0), 2, 5
    rows, limit = [[Decimal(int(j % width == 4)) for j in range(2 * width)]], [Decimal(1)]
    for k, own in enumerate(disjuncts):
        for numbers, bound in [*always, *own]:
            a = [Decimal(v) for v in numbers]
            row = [zero] * (2 * width)
            row[k * width : k * width + 4] = [*a, *(-v for v in a)]
            row[k * width + 4] = dot(a, yhat) - Decimal(bound)
            largest = max(abs(v) for v in a)
            rows.append([v / largest for v in row])
            limit.append(zero)
        for j in range(width):  # signs
            rows.append([Decimal(-int(i == k * width + j)) for i in range(2 * width)])
            limit.append(zero)
    cost = [Decimal(w / max(weights)) for w in [*weights, *weights]] + [zero]
    curvature = [Decimal(eps) * 2] * 4 + [Decimal(eps)]
    x = minimised(cost * 2, curvature * 2, rows, limit, 1)
    return [
        v + sum(x[k * width + j] - x[k * width + d + j] for k in range(2))
        for j, v in enumerate(yhat)
    ]


def by_differences(exact, at, weights, along) -> list[float]:
    """The gradient of `along y` in the prediction, in decimal numbers."""
    step, found = Decimal("1e-20"), []
    with localcontext() as context:
        context.prec = DIGITS
        for j in range(2):
            ends = [[Decimal(v) + (sign * step if i == j else 0) for i, v in enumerate(at)]
                    for sign in (1, -1)]  # fmt: skip
            above, below = (exact(end, weights, 1e-2) for end in ends)
            slope = [(a - b) / (2 * step) for a, b in zip(above, below, strict=True)]
            found.append(float(dot(slope, [Decimal(v) for v in along])))
    return found


# The first is that of the bank; beyond 1e5 both disjuncts have weight, since eps is beside 1e10.
@pytest.mark.parametrize(
    "at",
    [(0.01, -0.02), (1e6, 1.01), (1999999, -1), (5.01, 0), (5e5, 0), (9e5, 2), (999999.99, -3)],
)
def test_numbers_of_very_different_size(at) -> None:
    rules = next(p for p in PROBLEMS if p.name == "bad_scales").rules()
    weights, along = [1.2, 0.85], [1.0, 0.5]
    expected = by_differences(exact_bad_scales, at, weights, along)
    for relaxation in ("cnf", "dnf"):
        program = gdpnet.convexify(rules, relaxation=relaxation, weights=weights)
        twin = ProgramLayer(program, inputs=[program.gdpnet_yhat], outputs=[program.gdpnet_y])
        own = gdpnet.ProjectionLayer(rules, relaxation=relaxation, gradient="qp", weights=weights)
        yhat = torch.tensor([at], dtype=F64)
        torch.testing.assert_close(twin(yhat), own(yhat), rtol=1e-9, atol=1e-9)
        for layer in (own, twin) if relaxation == "dnf" else (twin,):
            found = gradient(lambda t, f=layer: f(t) @ torch.tensor(along, dtype=F64), yhat)
            torch.testing.assert_close(
                found[0], torch.tensor(expected, dtype=F64), rtol=1e-7, atol=1e-8
            )


def exact_bad_scales_in_l2(yhat: list[Decimal], weights: list[float], eps: float) -> list[Decimal]:
    """y of the regularised program: the mean of each disjunct's point, by how near they are."""
    always, *disjuncts = BAD_SCALES
    square = [(Decimal(w) / Decimal(max(weights))) ** 2 for w in weights]
    points, values = [], []
    for own in disjuncts:
        rows = [[Decimal(v) for v in numbers] for numbers, _ in [*always, *own]]
        limit = [Decimal(bound) for _, bound in [*always, *own]]
        cost = [-2 * w * v for w, v in zip(square, yhat, strict=True)]
        points.append(minimised(cost, [2 * w for w in square], rows, limit, 0))
        values.append(dot(square, [(a - b) ** 2 for a, b in zip(points[-1], yhat, strict=True)]))
    share = min(max((1 + (values[1] - values[0]) / Decimal(eps)) / 2, Decimal(0)), Decimal(1))
    return [share * a + (1 - share) * b for a, b in zip(*points, strict=True)]


# At none of them a row begins to be tight. At the last two both disjuncts have weight.
@pytest.mark.parametrize(
    "at",
    [(0.01, -0.02), (4, 4), (1e6 - 1, 1.01), (1e6 + 1, 1.01), (1999999, -1), (5.01, 0), (5e5, 0),
     (9e5, 2), (999999.99, -3), (500002.500000001, 0), (500002.499999999, 0)],
)  # fmt: skip
def test_numbers_of_very_different_size_in_l2(at) -> None:
    rules = next(p for p in PROBLEMS if p.name == "bad_scales").rules()
    weights, along = [1.2, 0.85], [1.0, 0.5]
    expected = by_differences(exact_bad_scales_in_l2, at, weights, along)
    with localcontext() as context:
        context.prec = DIGITS
        nearest = exact_bad_scales_in_l2([Decimal(v) for v in at], weights, 1e-60)
    program = gdpnet.convexify(rules, relaxation="cnf", weights=weights, norm="l2")
    twin = ProgramLayer(program, inputs=[program.gdpnet_yhat], outputs=[program.gdpnet_y])
    own = gdpnet.ProjectionLayer(rules, relaxation="cnf", gradient="qp", weights=weights, norm="l2")
    yhat = torch.tensor([at], dtype=F64)
    y, info = twin(yhat, return_info=True)
    assert not bool(info.doubtful)
    # What Clarabel decides is right to 1e-6, what it leaves open to the last digits.
    expected_y = torch.tensor([[float(v) for v in nearest]], dtype=F64)
    torch.testing.assert_close(y, expected_y, rtol=1e-6, atol=1e-6)
    for layer in (own, twin):
        found = gradient(lambda t, f=layer: f(t) @ torch.tensor(along, dtype=F64), yhat)
        torch.testing.assert_close(
            found[0], torch.tensor(expected, dtype=F64), rtol=1e-7, atol=1e-8
        )


def test_what_stays_open_is_told(monkeypatch) -> None:
    rules = next(p for p in PROBLEMS if p.name == "bad_scales").rules()
    program = gdpnet.convexify(rules, relaxation="cnf", norm="l2")
    twin = ProgramLayer(program, inputs=[program.gdpnet_yhat], outputs=[program.gdpnet_y])
    monkeypatch.setattr(many_digits, "_MOST", 10)  # columns: too large a program for more digits
    yhat = torch.tensor([[999999.99, -3.0], [3.0, 2.0]], dtype=F64, requires_grad=True)
    y, info = twin(yhat, return_info=True)
    assert info.doubtful.tolist() == [True, False]
    with pytest.warns(gdpnet.errors.DoubtfulGradientWarning, match="of 2 samples"):
        y.sum().backward()


def test_pyomos_own_hull() -> None:
    m = pyo.ConcreteModel()
    m.yhat = pyo.Param([1, 2], mutable=True, initialize=0.0)
    m.y = pyo.Var([1, 2], bounds=(0, 10))
    m.rule = Disjunction(expr=[[m.y[1] + m.y[2] <= 3], [m.y[1] >= 7]])
    m.cost = pyo.Objective(expr=pyo.quicksum((m.y[i] - m.yhat[i]) ** 2 for i in (1, 2)))
    pyo.TransformationFactory("gdp.hull").apply_to(m)
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(m)
    layer = ProgramLayer(m, inputs=[m.yhat], outputs=[m.y], eps=0)
    # The hull without the distance in it is that of the points: the corners' convex hull.
    at = torch.tensor([[2.0, 9.0], [1.0, 1.0], [9.0, 3.0]], dtype=F64)
    y = layer(at)
    assert y.shape == at.shape
    torch.testing.assert_close(y[1:], at[1:])
    assert (y[0] - at[0]).norm() > 0.1
    torch.testing.assert_close(gradient(layer, at), differences(layer, at), rtol=1e-4, atol=1e-5)


# ---- quadratic and convex programs -------------------------------------------------------------


def squares() -> Any:
    """Least squares over a simplex, prices in the costs, a matrix and a bound that are Params."""
    m = pyo.ConcreteModel()
    m.A = pyo.Param([1, 2], [1, 2, 3], mutable=True, initialize=1.0)
    m.price = pyo.Param([1, 2, 3], mutable=True, initialize=0.0)
    m.top = pyo.Param(mutable=True, initialize=1.0)
    m.x = pyo.Var([1, 2, 3], bounds=lambda m, j: (0, m.top))
    m.total = pyo.Constraint(expr=m.x[1] + m.x[2] + m.x[3] == 1)
    residual = [sum(m.A[i, j] * m.x[j] for j in (1, 2, 3)) - i for i in (1, 2)]
    m.cost = pyo.Objective(
        expr=residual[0] ** 2
        + residual[1] ** 2
        + 0.1 * (m.x[1] ** 2 + m.x[2] ** 2 + m.x[3] ** 2 + m.x[1] * m.x[2])
        + sum(m.price[j] * m.x[j] for j in (1, 2, 3))
    )
    return m


def test_a_quadratic_program() -> None:
    m = squares()
    layer = ProgramLayer(m, inputs=[[m.A, m.price, m.top]], outputs=[m.x])
    at = torch.randn(6, 10, dtype=F64, generator=torch.Generator().manual_seed(1))
    at[:, 9] = 0.6
    y, info = layer(at, return_info=True)
    for s in range(6):
        A, price, top = at[s, :6].reshape(2, 3).numpy(), at[s, 6:9].numpy(), at[s, 9].item()

        def cost(v: np.ndarray, A: np.ndarray = A, price: np.ndarray = price) -> float:
            quadratic = 0.1 * (v @ v + v[0] * v[1])
            return float(((A @ v - [1.0, 2.0]) ** 2).sum() + quadratic + price @ v)

        simplex = {"type": "eq", "fun": lambda v: v.sum() - 1.0}
        start = np.full(3, 1 / 3)
        found = minimize(cost, start, bounds=[(0, top)] * 3, constraints=[simplex], tol=1e-12)
        torch.testing.assert_close(y[s], torch.from_numpy(found.x), rtol=1e-5, atol=1e-5)
        assert info.value[s].item() == pytest.approx(found.fun, abs=1e-7)
    along = torch.tensor([1.0, -2.0, 0.5], dtype=F64)
    function = lambda a: layer(a) @ along  # noqa: E731
    torch.testing.assert_close(
        gradient(function, at), differences(function, at), rtol=1e-5, atol=1e-5
    )


CURVED: dict[str, Callable[[Any], Any]] = {
    "ball": lambda m: (m.y[1] - m.p[1]) ** 2 + (m.y[2] - m.p[2]) ** 2 <= 1,
    "norm": lambda m: pyo.sqrt((m.y[1] - m.p[1]) ** 2 + (m.y[2] - m.p[2]) ** 2) <= 1 + m.y[1],
    "exp": lambda m: pyo.exp(m.y[1] + m.p[1]) <= m.y[2] + 3 + m.p[2],
    "log": lambda m: pyo.log(m.y[1] + 3 + m.p[1]) >= m.y[2] - m.p[2],
    "power": lambda m: (m.y[1] - m.p[1]) ** 4 <= 2 + m.p[2] - m.y[2],
}


@pytest.mark.parametrize("kind", CURVED)
def test_constraints_that_are_convex(kind) -> None:
    m = pyo.ConcreteModel()
    m.p, m.c = (pyo.Param([1, 2], mutable=True, initialize=0.0) for _ in range(2))
    m.y = pyo.Var([1, 2], bounds=(-2, 5))
    m.row = pyo.Constraint(expr=CURVED[kind](m))
    m.cost = pyo.Objective(
        expr=-m.c[1] * m.y[1] - m.c[2] * m.y[2] + 0.05 * (m.y[1] ** 2 + m.y[2] ** 2)
    )
    layer = ProgramLayer(m, inputs=[[m.p, m.c]], outputs=[m.y], eps=0)
    at = torch.tensor([[0.1, 0.2, 1.0, 0.7], [-0.3, 0.4, 0.6, 1.1]], dtype=F64)
    y, info = layer(at, return_info=True)
    assert (info.status == gdpnet.Status.PROJECTED).all()
    # Clarabel's points on power cones are right to about seven digits: hence the long step.
    torch.testing.assert_close(
        gradient(layer, at), differences(layer, at, 5e-3), rtol=1e-3, atol=3e-4
    )
    for param, value in zip([*m.p.values(), *m.c.values()], at[0].tolist(), strict=True):
        param.set_value(value)
    for variable, value in zip(m.y.values(), y[0].tolist(), strict=True):
        variable.set_value(value)
    assert m.row.slack() == pytest.approx(0.0, abs=1e-6)


def test_maxima_and_what_is_maximised() -> None:
    m = pyo.ConcreteModel()
    m.p = pyo.Param([1, 2], mutable=True, initialize=0.0)
    m.y = pyo.Var(bounds=(-5, 5))
    m.cost = pyo.Objective(
        expr=-gdpnet.maximum(m.y - m.p[1], 2 * (m.p[2] - m.y)) - 3, sense=pyo.maximize
    )
    layer = ProgramLayer(m, inputs=[m.p], outputs=[m.y])
    at = torch.tensor([[1.0, 4.0]], dtype=F64)
    y, info = layer(at, return_info=True)
    assert y.item() == pytest.approx(3.0)  # y - 1 = 2 (4 - y)
    assert info.value.item() == pytest.approx(-2.0 - 3.0)
    torch.testing.assert_close(gradient(layer, at), torch.tensor([[1 / 3, 2 / 3]], dtype=F64))


# ---- a layer among others ----------------------------------------------------------------------


def supply() -> Any:
    m = pyo.ConcreteModel()
    m.price = pyo.Param([1, 2], mutable=True, initialize=1.0)
    m.need = pyo.Param(mutable=True, initialize=1.0)
    m.kept = pyo.Param(mutable=True, initialize=3.0)
    m.y, m.z = pyo.Var([1, 2], bounds=(0, 3)), pyo.Var()
    m.enough = pyo.Constraint(expr=m.y[1] + m.y[2] >= m.need)
    m.double = pyo.Constraint(expr=m.z == 2 * m.y[1] + m.kept)
    m.cost = pyo.Objective(expr=m.price[1] * m.y[1] + m.price[2] * m.y[2])
    return m


def test_shapes_types_and_one_input_for_all() -> None:
    m = supply()
    layer = ProgramLayer(m, inputs=[m.price, m.need], outputs=[m.y, [m.z]])
    prices = torch.tensor([[1.0, 2.0], [3.0, 2.0], [1.0, 2.0], [2.0, 1.0]])
    y, z = layer(prices, torch.tensor([4.0]))
    assert y.tolist() == [[3.0, 1.0], [1.0, 3.0], [3.0, 1.0], [1.0, 3.0]]
    assert z.tolist() == [[9.0], [5.0], [9.0], [5.0]]
    assert y.dtype is torch.float32
    again, info = layer(
        prices.reshape(2, 2, 2).double(), torch.full((2, 2, 1), 4.0), return_info=True
    )
    assert torch.equal(again[0], y.double().reshape(2, 2, 2))
    assert info.status.shape == info.value.shape == (2, 2)
    assert info.value.flatten().tolist() == [5.0, 9.0, 5.0, 5.0]
    assert layer(prices[0], torch.tensor([4.0]))[0].tolist() == [3.0, 1.0]
    assert layer(prices[:0], torch.tensor([4.0]))[0].shape == (0, 2)
    with pytest.raises(InputError, match="expected 2 inputs"):
        layer(prices)
    with pytest.raises(InputError, match=r"input 2.*expected 1 column"):
        layer(prices, prices)
    with pytest.raises(InputError, match="leading shape"):
        layer(prices, torch.ones(3, 1))


def test_samples_without_a_solution_spoil_no_others() -> None:
    m = supply()
    m.y[2].setub(None)
    layer = ProgramLayer(m, inputs=[m.price, m.need], outputs=[m.y], on_invalid="mark")
    prices = torch.tensor([[1.0, 2.0], [1.0, -1.0], [1.0, 2.0], [torch.nan, 1.0]], dtype=F64)
    need = torch.tensor([[4.0], [1.0], [1.0], [1.0]], dtype=F64, requires_grad=True)
    y, info = layer(prices, need, return_info=True)
    names = [gdpnet.Status(int(s)).name for s in info.status]
    assert names == ["PROJECTED", "UNSOLVED", "PROJECTED", "ERROR"]
    assert y[[0, 2]].tolist() == [[3.0, 1.0], [1.0, 0.0]]
    assert y[[1, 3]].isnan().all()
    y[[0, 2]].sum().backward()
    torch.testing.assert_close(need.grad.flatten(), torch.tensor([1.0, 0.0, 1.0, 0.0], dtype=F64))
    m.y[2].setub(1)
    layer = ProgramLayer(m, inputs=[m.price, m.need], outputs=[m.y])
    _, info = layer(prices[:1], torch.tensor([[5.0]]), return_info=True)
    assert info.status.item() == gdpnet.Status.CONFLICT
    with pytest.raises(InputError, match="NaN or infinity in row 3"):
        layer(prices, torch.tensor([1.0]))
    layer = ProgramLayer(m, inputs=[m.price, m.need], outputs=[m.y], on_conflict="raise")
    with pytest.raises(ConflictError, match="sample 0 has no solution: infeasible"):
        layer(prices[:1], torch.tensor([[5.0]]))


def test_copies_training_and_repr() -> None:
    m = supply()
    m.double.deactivate()
    layer = ProgramLayer(m, inputs=[m.price, m.need], outputs=[m.y], eps=0.5)
    prices = torch.tensor([[1.0, 1.1], [2.0, 1.0]], dtype=F64)
    function = lambda a: layer(a, torch.tensor([1.0], dtype=F64))[:, 0]  # noqa: E731
    expected = gradient(function, prices)
    assert expected.any()  # near a tie the vertex does not move, and the gradient tells where to go
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        found = gradient(lambda a, o=other: o(a, torch.tensor([1.0], dtype=F64))[:, 0], prices)
        assert torch.equal(found, expected)
    assert repr(layer) == "ProgramLayer(linear: 2 columns, 1 rows, eps=0.5)"
    assert not layer.state_dict()


@pytest.mark.parametrize(
    ("change", "keywords", "message"),
    [(lambda m: m.cost.deactivate(), {}, "expected one active Objective, got 0"),
     (lambda m: m.y[1].fix(1), {}, r"'y\[1\]' is fixed"),
     (lambda m: setattr(m.y[1], "domain", pyo.Integers), {}, r"Var 'y\[1\]' is not continuous"),
     (lambda m: None, {"eps": -1.0}, "eps: expected a number"),
     (lambda m: None, {"inputs": ["need"]}, "expected a Param"),
     (lambda m: None, {"outputs": []}, "at least one Var"),
     (lambda m: m.cost.set_value(-(m.y[1] ** 2)), {}, "What is minimised must be convex"),
     (lambda m: m.enough.set_value(m.y[1] * m.y[2] >= 1), {}, "Constraint 'enough'"),
     (lambda m: m.add_component("gap", Disjunction(expr=[[m.y[1] <= 1], [m.y[1] >= 2]])), {},
      "'gap' is a Disjunction"),
     (lambda m: m.add_component("one", pyo.SOSConstraint(var=m.y, sos=1)), {},
      "'one' is a SOSConstraint")],
)  # fmt: skip
def test_what_is_no_layer_is_refused(change, keywords, message) -> None:
    m = supply()
    change(m)
    with pytest.raises((InputError, RuleError), match=message):
        ProgramLayer(m, **{"inputs": [m.need], "outputs": [m.y], **keywords})
