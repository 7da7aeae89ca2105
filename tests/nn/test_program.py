"""ProgramLayer: against ProjectionLayer over the bank, cvxpylayers, and differences."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction
from scipy.optimize import minimize

import gdpnet
from gdpnet.errors import ConflictError, InputError, RuleError
from gdpnet.nn import ProgramLayer
from gdpnet.testing import PROBLEMS, Problem

pytestmark = pytest.mark.filterwarnings("ignore::gdpnet.errors.ZeroGradientWarning")

Tensor = torch.Tensor
F64 = torch.float64


def norm_1(n: int, m: int) -> Any:
    """`minimise |A x - b|_1 / 2, x >= 0`."""
    model = pyo.ConcreteModel()
    model.I, model.J = pyo.RangeSet(m), pyo.RangeSet(n)
    model.A = pyo.Param(model.I, model.J, mutable=True, initialize=1.0)
    model.b = pyo.Param(model.I, mutable=True, initialize=0.0)
    model.x, model.t = pyo.Var(model.J, bounds=(0, None)), pyo.Var(model.I)

    def residual(i: int) -> Any:
        return sum(model.A[i, j] * model.x[j] for j in model.J) - model.b[i]

    model.above = pyo.Constraint(model.I, rule=lambda m, i: residual(i) <= m.t[i])
    model.below = pyo.Constraint(model.I, rule=lambda m, i: -m.t[i] <= residual(i))
    model.cost = pyo.Objective(expr=0.5 * pyo.quicksum(model.t[i] for i in model.I))
    return model


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


# Whole numbers are relaxed in a program; without bounds there is no hull. Numbers of bad_scales are
# 1e9 apart, and what eps means for both is too little beside the tolerance of Clarabel.
LEFT_OUT = {"bad_scales", "unbounded_outputs", "half_bounded_outputs", "nested_unbounded",
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


# ---- cvxpylayers -------------------------------------------------------------------------------

EXACT = {"solve_method": "Clarabel", "tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}


@pytest.mark.filterwarnings("ignore")  # of cvxpylayers about numpy
@pytest.mark.parametrize("eps", [0.0, 1e-2])
def test_the_first_example_of_cvxpylayers(eps) -> None:
    cp = pytest.importorskip("cvxpy")
    peers = pytest.importorskip("cvxpylayers.torch")
    n, m = 2, 3
    x, A, b = cp.Variable(n), cp.Parameter((m, n)), cp.Parameter(m)
    problem = cp.Problem(cp.Minimize(0.5 * cp.pnorm(A @ x - b, p=1)), [x >= 0])
    peer = peers.CvxpyLayer(problem, parameters=[A, b], variables=[x])
    model = norm_1(n, m)
    layer = ProgramLayer(model, inputs=[model.A, model.b], outputs=[model.x], eps=eps)
    for seed in range(8):
        torch.manual_seed(seed)
        a, c = torch.randn(m, n, dtype=F64), torch.randn(m, dtype=F64)
        theirs = a.clone().requires_grad_(), c.clone().requires_grad_()
        (answer,) = peer(*theirs, solver_args=EXACT)
        answer.sum().backward()
        ours = a.clone().requires_grad_(), c.clone().requires_grad_()
        y = layer(ours[0].flatten(), ours[1])
        y.sum().backward()
        torch.testing.assert_close(y, answer, rtol=1e-6, atol=1e-6)
        for one, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(one.grad, other.grad, rtol=1e-6, atol=1e-6)


def box() -> Any:
    """The geometric program of a box in logarithms: `1 / (x y z)`, faces and a ratio bounded."""
    m = pyo.ConcreteModel()
    m.a, m.b, m.c = (pyo.Param(mutable=True, initialize=v) for v in (2.0, 1.0, 0.5))
    m.u = pyo.Var([0, 1, 2])
    pairs = ((0, 1), (0, 2), (1, 2))
    m.faces = pyo.Constraint(
        expr=sum(pyo.exp(m.u[i] + m.u[j] + pyo.log(m.a) - pyo.log(m.b)) for i, j in pairs) <= 1
    )
    m.ratio = pyo.Constraint(expr=m.u[0] >= m.c * m.u[1])
    m.volume = pyo.Objective(expr=m.u[0] + m.u[1] + m.u[2], sense=pyo.maximize)
    return m


@pytest.mark.filterwarnings("ignore")
def test_the_geometric_program_of_cvxpylayers() -> None:
    cp = pytest.importorskip("cvxpy")
    peers = pytest.importorskip("cvxpylayers.torch")
    x, y, z = (cp.Variable(pos=True) for _ in range(3))
    a, b = cp.Parameter(pos=True, value=2.0), cp.Parameter(pos=True, value=1.0)
    c = cp.Parameter(value=0.5)
    rows = [a * (x * y + x * z + y * z) <= b, x >= y**c]
    problem = cp.Problem(cp.Minimize(1 / (x * y * z)), rows)
    peer = peers.CvxpyLayer(problem, parameters=[a, b, c], variables=[x, y, z], gp=True)
    theirs = [torch.tensor(v, dtype=F64, requires_grad=True) for v in (2.0, 1.0, 0.5)]
    answer = torch.stack(peer(*theirs, solver_args=EXACT))
    answer.sum().backward()
    m = box()
    layer = ProgramLayer(m, inputs=[[m.a, m.b, m.c]], outputs=[m.u], eps=0)
    ours = torch.tensor([2.0, 1.0, 0.5], dtype=F64, requires_grad=True)
    found = layer(ours).exp()
    found.sum().backward()
    torch.testing.assert_close(found, answer, rtol=1e-6, atol=1e-6)
    expected = torch.stack([t.grad for t in theirs])
    torch.testing.assert_close(ours.grad, expected, rtol=1e-6, atol=1e-6)


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
     (lambda m: m.enough.set_value(m.y[1] * m.y[2] >= 1), {}, "Constraint 'enough'")],
)  # fmt: skip
def test_what_is_no_layer_is_refused(change, keywords, message) -> None:
    m = supply()
    change(m)
    with pytest.raises((InputError, RuleError), match=message):
        ProgramLayer(m, **{"inputs": [m.need], "outputs": [m.y], **keywords})
