"""docs/own_gradient.md: gradients of one's own, alone, mixed, and refused where there are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import gdpnet
from gdpnet.errors import InputError
from gdpnet.solve import Answer, Capabilities, Request
from gdpnet.testing import BY_NAME
from tests.test_readme import run_page

PAGE = run_page("docs/own_gradient.md")
Damped: Any = PAGE["Damped"]
Through: Any = PAGE["Through"]


class WithoutDerivative(gdpnet.solve.MILP):
    """A solver that finds points and nothing else."""

    capabilities = Capabilities()

    def solve(self, request: Request) -> Answer:
        return super().solve(request).replace(linearisation=None)


def gradients(gradient: Any, **keywords: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Of a loss with respect to predictions and inputs, and how far each sample was moved."""
    problem = BY_NAME["coefficients"]
    assert problem.x is not None
    yhat, x = problem.yhat.clone().requires_grad_(), problem.x.clone().requires_grad_()
    p = gdpnet.project(problem.rules(), yhat, x, gradient=gradient, **keywords)
    to = torch.linspace(1, 2, p.y.numel(), dtype=torch.float64).reshape(p.y.shape)
    to_yhat, to_x = torch.autograd.grad(p.y, (yhat, x), to)
    return to_yhat, to_x, p.distance


@pytest.mark.parametrize("solver", ["exact", "milp", "highs"])
def test_damped_reaches_predictions_and_inputs(solver: str) -> None:
    keywords = {"solver": solver, "weights": [1.0, 1.37]}
    to_yhat, to_x, moved = gradients(gdpnet.Vertex(), **keywords)
    damped_yhat, damped_x, _ = gradients(Damped(half=0.5), **keywords)
    factor = 1 / (1 + moved / (0.5 * 1.37))[:, None]  # solvers count in the heaviest weight
    assert (moved > 0).sum() >= 3
    assert bool(to_x.abs().sum() > 0)
    assert torch.allclose(damped_yhat, factor * to_yhat)
    assert torch.allclose(damped_x, factor * to_x)


def test_it_is_mixed_as_every_other() -> None:
    parts = gdpnet.Vertex(), Damped(half=0.5)
    first, second = (torch.cat(gradients(part)[:2], 1) for part in parts)
    mixed = torch.cat(gradients(gdpnet.Mixed(*parts, alpha=0.25))[:2], 1)
    assert not torch.allclose(first, second)
    assert torch.allclose(mixed, 0.25 * first + 0.75 * second)


def test_samples_that_are_not_known_pass_the_gradient_unchanged_and_are_told() -> None:
    class Some(Damped):
        def backward(self, request: Request, answer: Answer) -> Any:
            found = super().backward(request, answer)
            found.known, found.complete = np.arange(len(answer.y)) != 0, False
            return found

    problem = BY_NAME["two_boxes"]
    yhat = torch.tensor([[5.0, 2.0], [5.0, 2.0]], dtype=torch.float64, requires_grad=True)
    layer = gdpnet.ProjectionLayer(problem.rules(), gradient=Some())
    p = layer.project(yhat)
    with pytest.warns(gdpnet.errors.IdentityGradientWarning, match="1 of the 2 samples"):
        p.y.sum().backward()
    assert yhat.grad is not None
    assert (p.status == gdpnet.Status.PROJECTED).all()
    assert p.info.identity.tolist() == [True, False]
    assert yhat.grad[0].tolist() == [1.0, 1.0]
    assert yhat.grad[1].tolist() != [1.0, 1.0]


@pytest.mark.parametrize(
    "gradient", [Damped(), gdpnet.Mixed("straight_through", Damped())], ids=["alone", "mixed"]
)
def test_it_is_refused_where_the_solver_has_no_derivative(gradient: Any) -> None:
    rules = BY_NAME["two_boxes"].rules()
    with pytest.raises(InputError, match=r"Damped\(half=1.0\) needs .*WithoutDerivative"):
        gdpnet.ProjectionLayer(rules, gradient=gradient, solver=WithoutDerivative())


@pytest.mark.parametrize(
    "gradient",
    [Through((0,)), gdpnet.Mixed(Through((0,)), gdpnet.StraightThrough())],
    ids=["alone", "mixed"],
)
def test_one_that_asks_nothing_works_with_such_a_solver(gradient: Any) -> None:
    layer = gdpnet.ProjectionLayer(
        BY_NAME["two_boxes"].rules(), gradient=gradient, solver=WithoutDerivative()
    )
    yhat = torch.tensor([[5.0, 2.0]], requires_grad=True)
    layer(yhat).sum().backward()
    assert yhat.grad is not None
    expected = [[1.0, 0.0]] if isinstance(gradient, Through) else [[1.0, 0.75]]
    assert yhat.grad.tolist() == expected


def test_its_name_stands_in_the_layer() -> None:
    layer = gdpnet.ProjectionLayer(BY_NAME["two_boxes"].rules(), gradient=Damped(half=2.0))
    assert "gradient=Damped(half=2.0)" in repr(layer)
