"""The layer in torch.func, in forward mode, and differentiated twice: against differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction
from torch import func
from torch.autograd import forward_ad

import gdpnet
from gdpnet.errors import InputError

Tensor = torch.Tensor

pytestmark = [
    # torch's own, when it first differentiates forwards.
    pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning"),
    # A Jacobian asks for the gradient of one output of one sample, which may well be 0.
    pytest.mark.filterwarnings("ignore::gdpnet.errors.ZeroGradientWarning"),
]


@pytest.fixture(scope="module")
def rules() -> gdpnet.RuleModel:
    """Right sides and coefficients that depend on x."""
    m = pyo.ConcreteModel()
    m.t = pyo.Param([1, 2], mutable=True, initialize=1.0)
    m.y = pyo.Var([1, 2, 3], bounds=(-10, 10))
    m.total = pyo.Constraint(expr=m.y[1] + m.t[1] * m.y[2] <= m.t[2] ** 2)
    m.gap = Disjunction(expr=[[m.y[3] <= 1 + m.t[1]], [m.y[3] >= 6, m.y[1] <= 0.5 * m.t[2]]])
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t])


@pytest.fixture(scope="module")
def batch() -> tuple[Tensor, Tensor]:
    """Samples that no step of the differences below takes to another face."""
    yhat = torch.tensor([[2.0, 1.0, 3.1], [0.4, 2.5, 5.7], [0.1, 0.2, 0.3], [3.0, -1.0, 8.0]])
    x = torch.tensor([[1.1, 0.9], [0.7, 1.2], [1.3, 2.0], [0.9, 1.4]])
    return yhat.double(), x.double()


def differences(function: Callable[[Tensor], Tensor], at: Tensor, step: float = 1e-6) -> Tensor:
    """The Jacobian by central differences, `outputs x inputs`."""
    columns = []
    for k in range(at.numel()):
        move = torch.zeros(at.numel(), dtype=at.dtype)
        move[k] = step
        move = move.reshape(at.shape)
        columns.append((function(at + move) - function(at - move)).flatten() / (2 * step))
    return torch.stack(columns, 1)


def flat(jacobian: Tensor, inputs: Tensor) -> Tensor:
    return jacobian.reshape(-1, inputs.numel())


JACOBIANS: dict[str, Callable[[Callable[[Tensor], Tensor], Tensor], Tensor]] = {
    "jacrev": lambda f, at: func.jacrev(f)(at),
    "jacfwd": lambda f, at: func.jacfwd(f)(at),
    "loop": torch.autograd.functional.jacobian,
    "vectorize": lambda f, at: torch.autograd.functional.jacobian(f, at, vectorize=True),
    "forward-mode": lambda f, at: torch.autograd.functional.jacobian(
        f, at, vectorize=True, strategy="forward-mode"
    ),
}


@pytest.mark.parametrize("how", JACOBIANS)
@pytest.mark.parametrize("keywords", [{}, {"norm": "l2"}], ids=["l1", "l2"])
def test_jacobians_are_those_of_differences(rules, batch, how, keywords) -> None:
    layer = gdpnet.ProjectionLayer(rules, gradient="vertex", **keywords)
    yhat, x = batch
    of_yhat, of_x = lambda a: layer(a, x), lambda a: layer(yhat, a)
    for function, at in ((of_yhat, yhat), (of_x, x)):
        found = flat(JACOBIANS[how](function, at), at)
        torch.testing.assert_close(found, differences(function, at), rtol=1e-6, atol=1e-6)
    assert not torch.equal(layer(yhat, x), yhat)


@pytest.mark.parametrize("gradient", ["auto", "qp", "straight_through"])
@pytest.mark.parametrize("how", JACOBIANS)
def test_jacobians_of_other_gradients_are_those_of_a_loop(rules, batch, how, gradient) -> None:
    layer = gdpnet.ProjectionLayer(rules, gradient=gradient)
    yhat, x = batch
    for function, at in ((lambda a: layer(a, x), yhat), (lambda a: layer(yhat, a), x)):
        expected = torch.autograd.functional.jacobian(function, at)
        torch.testing.assert_close(JACOBIANS[how](function, at), expected)


@pytest.mark.parametrize("dims", [(0, 0), (1, 1), (0, None), (None, 0)])
def test_vmap(rules, batch, dims) -> None:
    layer = gdpnet.ProjectionLayer(rules)
    yhat, x = (t if d is not None else t[0] for t, d in zip(batch, dims, strict=True))
    expected = torch.stack(
        [
            layer(yhat if dims[0] is None else yhat[i], x if dims[1] is None else x[i])
            for i in range(4)
        ]
    )
    given = [t.T if d == 1 else t for t, d in zip((yhat, x), dims, strict=True)]
    assert torch.equal(func.vmap(layer, in_dims=dims)(*given), expected)
    outside = func.vmap(layer, in_dims=dims, out_dims=1)(*given)
    assert torch.equal(outside, expected.T)


def test_vmap_within_vmap(rules, batch) -> None:
    layer = gdpnet.ProjectionLayer(rules)
    yhat, x = batch
    each = func.vmap(func.vmap(layer, in_dims=(0, None)), in_dims=(None, 0))
    found = each(yhat, x)
    for i in range(4):
        assert torch.equal(found[i], layer(yhat, x[i]))
    folded = func.vmap(layer)(yhat.reshape(2, 2, 3), x.reshape(2, 2, 2))
    assert torch.equal(folded, layer(yhat, x).reshape(2, 2, 3))


@pytest.mark.parametrize("jacobian", [func.jacrev, func.jacfwd])
def test_the_jacobian_of_each_sample(rules, batch, jacobian) -> None:
    layer = gdpnet.ProjectionLayer(rules, gradient="vertex")
    yhat, x = batch
    of_yhat, of_x = func.vmap(jacobian(layer, argnums=(0, 1)))(yhat, x)
    for i in range(4):
        expected = differences(lambda a, i=i: layer(a, x[i]), yhat[i])
        torch.testing.assert_close(of_yhat[i], expected, rtol=1e-6, atol=1e-6)
        expected = differences(lambda a, i=i: layer(yhat[i], a), x[i])
        torch.testing.assert_close(of_x[i], expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("gradient", ["auto", "vertex", "qp", "straight_through"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_grad_is_that_of_backward(rules, batch, gradient, dtype) -> None:
    layer = gdpnet.ProjectionLayer(rules, gradient=gradient)
    yhat, x = (t.to(dtype) for t in batch)
    loss = lambda a, b: layer(a, b).square().sum()  # noqa: E731
    found = func.grad(loss, argnums=(0, 1))(yhat, x)
    leaves = yhat.clone().requires_grad_(), x.clone().requires_grad_()
    loss(*leaves).backward()
    for one, leaf in zip(found, leaves, strict=True):
        assert torch.equal(one, leaf.grad)
    each = func.vmap(func.grad(loss, argnums=(0, 1)))(yhat, x)
    for one, leaf in zip(each, leaves, strict=True):
        torch.testing.assert_close(one, leaf.grad)


def test_functional_call_and_gradients_of_each_sample(rules, batch) -> None:
    torch.manual_seed(0)

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.layer = torch.nn.Linear(2, 3), gdpnet.ProjectionLayer(rules)

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(5 * self.body(x), x)

    network, x = Network().double(), batch[1]
    parameters = {name: p.detach() for name, p in network.named_parameters()}

    def loss(values: dict[str, Tensor], x: Tensor) -> Tensor:
        return func.functional_call(network, values, (x,)).square().sum()

    whole = func.grad(loss)(parameters, x)
    each = func.vmap(func.grad(loss), in_dims=(None, 0))(parameters, x)
    network(x).square().sum().backward()
    for name, p in network.named_parameters():
        assert torch.equal(whole[name], p.grad)
        torch.testing.assert_close(each[name].sum(0), p.grad)


def test_what_else_is_known_inside_of_a_transform(rules, batch) -> None:
    layer = gdpnet.ProjectionLayer(rules)
    yhat, x = batch

    def loss(a: Tensor) -> Any:
        y, info = layer(a, x, return_info=True)
        return y.sum(), info.status

    _, status = func.grad(loss, has_aux=True)(yhat)
    assert torch.equal(status, layer.project(yhat, x).status)
    plain = func.grad(lambda a: gdpnet.project(rules, a, x).y.sum() + a.sum())(yhat)
    assert torch.equal(plain, torch.ones_like(yhat))  # without a gradient nothing passes


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("relaxation", ["dnf", "cnf"])
def test_prices_and_auxiliaries_are_known_inside_of_a_transform(norm, relaxation) -> None:
    """They are computed when they are asked for, from tensors that torch.func would wrap."""
    m = pyo.ConcreteModel()
    m.y, m.power = pyo.Var(bounds=(0, 10)), pyo.Var(bounds=(0, 20))
    m.k = pyo.Param(mutable=True, initialize=1.0)
    m.total = pyo.Constraint(expr=m.power == m.k * m.y)
    price = m.k if relaxation == "dnf" else None
    m.gap = gdpnet.rule(gdpnet.any_of(m.power <= 3, m.power >= 7), price=price)
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.k])
    yhat, x = torch.tensor([[3.5], [5.0], [8.0]]).double(), torch.ones(3, 1).double()

    def known(a: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        p = gdpnet.project(rules, a, x, norm=norm, relaxation=relaxation, gradient="vertex")
        told = {"value": p.value, "price": p.price, "broken": p.broken, "disjunct": p.disjunct}
        tight = dict(zip(("rows", "multipliers"), p.info.tight, strict=True))
        return p.y.sum(), told | tight | p.auxiliaries | {"distance": p.distance}

    _, inside = func.grad(known, has_aux=True)(yhat)
    for name, found in known(yhat)[1].items():
        torch.testing.assert_close(inside[name], found, equal_nan=True)
        assert not inside[name].requires_grad


def test_forward_mode_by_itself(rules, batch) -> None:
    layer = gdpnet.ProjectionLayer(rules, gradient="vertex")
    yhat, x = batch
    along = torch.linspace(-1, 1, yhat.numel(), dtype=yhat.dtype).reshape(yhat.shape)
    with forward_ad.dual_level(), torch.no_grad():
        y = layer(forward_ad.make_dual(yhat, along), x)
        tangent = forward_ad.unpack_dual(y).tangent
    expected = differences(lambda a: layer(a, x), yhat) @ along.flatten()
    torch.testing.assert_close(tangent.flatten(), expected, rtol=1e-6, atol=1e-6)


def test_batches_of_gradients(rules, batch) -> None:
    layer = gdpnet.ProjectionLayer(rules)
    yhat, x = (t.clone().requires_grad_() for t in batch)
    y = layer(yhat, x)
    several = torch.randn(5, *y.shape, dtype=y.dtype, generator=torch.Generator().manual_seed(0))
    found = torch.autograd.grad(y, (yhat, x), several, is_grads_batched=True, retain_graph=True)
    for i in range(5):
        expected = torch.autograd.grad(y, (yhat, x), several[i], retain_graph=True)
        for one, other in zip(found, expected, strict=True):
            assert torch.equal(one[i], other)


# ---- twice -----------------------------------------------------------------------------------


@pytest.mark.parametrize("gradient", ["auto", "vertex", "straight_through"])
def test_second_derivatives_of_linear_rules(rules, batch, gradient) -> None:
    layer = gdpnet.ProjectionLayer(rules, gradient=gradient)
    yhat, x = batch[0].clone().requires_grad_(), batch[1]
    (first,) = torch.autograd.grad(layer(yhat, x).sum(), yhat, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), yhat)
    assert not second.any()
    assert first.any()


def test_the_second_derivative_of_a_curved_loss(rules, batch) -> None:
    layer = gdpnet.ProjectionLayer(rules, gradient="vertex")
    yhat, x = batch[0].clone().requires_grad_(), batch[1]
    function = lambda a: layer(a, x).pow(3).sum()  # noqa: E731
    (first,) = torch.autograd.grad(function(yhat), yhat, create_graph=True)
    found = torch.autograd.grad(first, yhat, torch.ones_like(yhat))[0]

    def of_first(a: Tensor) -> Tensor:
        leaf = a.requires_grad_()
        return torch.autograd.grad(function(leaf), leaf)[0]

    expected = differences(of_first, batch[0].clone()).T @ torch.ones(12, dtype=yhat.dtype)
    torch.testing.assert_close(found.flatten(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "hessian",
    [torch.autograd.functional.hessian, lambda f, a: func.hessian(f)(a),
     lambda f, a: func.jacrev(func.jacrev(f))(a), lambda f, a: func.jacfwd(func.jacfwd(f))(a)],
    ids=["loop", "hessian", "reverse", "forward"],
)  # fmt: skip
def test_hessians(rules, batch, hessian) -> None:
    layer = gdpnet.ProjectionLayer(rules, gradient="vertex")
    yhat, x = batch
    jacobian = differences(lambda a: layer(a, x), yhat)
    weight = 6 * layer(yhat, x).flatten()
    found = flat(hessian(lambda a: layer(a, x).pow(3).sum(), yhat), yhat)
    expected = jacobian.T @ (weight[:, None] * jacobian)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def curved() -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([1, 2, 3], bounds=(-10, 10))
    m.ball = pyo.Constraint(expr=m.y[1] ** 2 + m.y[2] ** 2 <= 1)
    return gdpnet.RuleModel(m, outputs=[m.y])


@pytest.mark.parametrize(
    ("keywords", "why"),
    [({"gradient": "qp"}, "QP"), ({"relaxation": "cnf"}, "relaxation"),
     ({"gradient": gdpnet.Mixed("qp")}, "QP")],
)  # fmt: skip
def test_second_derivatives_that_are_refused(rules, batch, keywords, why) -> None:
    layer = gdpnet.ProjectionLayer(rules, **keywords)
    yhat, x = batch[0].clone().requires_grad_(), batch[1]
    (first,) = torch.autograd.grad(layer(yhat, x).square().sum(), yhat, create_graph=True)
    with pytest.raises(InputError, match=f"second derivative.*{why}"):
        first.sum().backward()


def test_second_derivatives_through_inputs_and_convex_rows_are_refused(rules, batch) -> None:
    layer = gdpnet.ProjectionLayer(rules, gradient="vertex")
    yhat, x = batch[0], batch[1].clone().requires_grad_()
    (first,) = torch.autograd.grad(layer(yhat, x).square().sum(), x, create_graph=True)
    with pytest.raises(InputError, match="rows that depend on x"):
        first.sum().backward()
    with pytest.raises(InputError, match="rows that depend on x"):
        func.hessian(lambda a: layer(yhat, a).square().sum())(batch[1])
    layer = gdpnet.ProjectionLayer(curved(), norm="l2", gradient="vertex")
    with pytest.raises(InputError, match="Constraint 'ball' is not linear"):
        func.hessian(lambda a: layer(a).square().sum())(batch[0])


def test_inputs_that_stand_in_no_row_have_no_second_derivative(batch) -> None:
    m = pyo.ConcreteModel()
    m.t = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var([1, 2, 3], bounds=(-10, 10))
    m.gap = Disjunction(expr=[[m.y[3] <= 1], [m.y[1] + m.y[2] <= 1]])
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.active_when[m.gap] = m.t >= 0
    layer = gdpnet.ProjectionLayer(
        gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t]), gradient="vertex"
    )
    yhat, x = batch[0].clone().requires_grad_(), torch.ones(4, 1, requires_grad=True)
    (first,) = torch.autograd.grad(layer(yhat, x).sum(), yhat, create_graph=True)
    assert not torch.autograd.grad(first.sum(), yhat)[0].any()
