"""ProgramLayer against cvxpylayers: the programs of the examples in its README, written in Pyomo.

They are a linear program whose numbers are all parameters, one with an equation, and a geometric
program. cvxpylayers has duals as outputs besides, ProgramLayer has not.
"""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import pyomo.environ as pyo
import pytest
import torch
from cvxpylayers.torch import CvxpyLayer

from gdpnet.nn import ProgramLayer

pytestmark = pytest.mark.filterwarnings("ignore")  # of cvxpylayers about numpy

Tensor = torch.Tensor
F64 = torch.float64
EXACT = {"solve_method": "Clarabel", "tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
CLOSE = {"rtol": 1e-6, "atol": 1e-6}


def leaves(*values: Tensor) -> list[Tensor]:
    return [value.clone().requires_grad_() for value in values]


def absolute(n: int, m: int) -> Any:
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


@pytest.mark.parametrize("eps", [0.0, 1e-2])
def test_a_linear_program(eps) -> None:
    n, m = 2, 3
    x, A, b = cp.Variable(n), cp.Parameter((m, n)), cp.Parameter(m)
    problem = cp.Problem(cp.Minimize(0.5 * cp.pnorm(A @ x - b, p=1)), [x >= 0])
    peer = CvxpyLayer(problem, parameters=[A, b], variables=[x])
    model = absolute(n, m)
    layer = ProgramLayer(model, inputs=[model.A, model.b], outputs=[model.x], eps=eps)
    for seed in range(8):
        torch.manual_seed(seed)
        given = torch.randn(m, n, dtype=F64), torch.randn(m, dtype=F64)
        theirs, ours = leaves(*given), leaves(*given)
        (answer,) = peer(*theirs, solver_args=EXACT)
        answer.sum().backward()
        y = layer(ours[0].flatten(), ours[1])
        y.sum().backward()
        torch.testing.assert_close(y, answer, **CLOSE)
        for one, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(one.grad, other.grad, **CLOSE)


@pytest.mark.parametrize("eps", [0.0, 1e-2])
@pytest.mark.parametrize("costs", [(1.0, 2.0), (-0.3, -0.9)])
def test_a_linear_program_with_an_equation(eps, costs) -> None:
    x, c, b = cp.Variable(2), cp.Parameter(2), cp.Parameter()
    problem = cp.Problem(cp.Minimize(c @ x), [cp.sum(x) == b, x >= 0])
    peer = CvxpyLayer(problem, parameters=[c, b], variables=[x])
    model = pyo.ConcreteModel()
    model.c = pyo.Param([0, 1], mutable=True, initialize=1.0)
    model.b = pyo.Param(mutable=True, initialize=1.0)
    model.x = pyo.Var([0, 1], bounds=(0, None))
    model.total = pyo.Constraint(expr=model.x[0] + model.x[1] == model.b)
    model.cost = pyo.Objective(expr=model.c[0] * model.x[0] + model.c[1] * model.x[1])
    layer = ProgramLayer(model, inputs=[model.c, model.b], outputs=[model.x], eps=eps)
    given = torch.tensor(costs, dtype=F64), torch.tensor(1.0, dtype=F64)
    theirs, ours = leaves(*given), leaves(*given)
    (answer,) = peer(*theirs, solver_args=EXACT)
    along = torch.tensor([2.0, -3.0], dtype=F64)
    (answer @ along).backward()
    y = layer(ours[0], ours[1].reshape(1))
    (y @ along).backward()
    torch.testing.assert_close(y, answer, **CLOSE)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one.grad, other.grad, **CLOSE)


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


def test_a_geometric_program() -> None:
    x, y, z = (cp.Variable(pos=True) for _ in range(3))
    a, b = cp.Parameter(pos=True, value=2.0), cp.Parameter(pos=True, value=1.0)
    c = cp.Parameter(value=0.5)
    rows = [a * (x * y + x * z + y * z) <= b, x >= y**c]
    problem = cp.Problem(cp.Minimize(1 / (x * y * z)), rows)
    peer = CvxpyLayer(problem, parameters=[a, b, c], variables=[x, y, z], gp=True)
    theirs = leaves(*(torch.tensor(v, dtype=F64) for v in (2.0, 1.0, 0.5)))
    answer = torch.stack(peer(*theirs, solver_args=EXACT))
    answer.sum().backward()
    m = box()
    layer = ProgramLayer(m, inputs=[[m.a, m.b, m.c]], outputs=[m.u], eps=0)
    ours = torch.tensor([2.0, 1.0, 0.5], dtype=F64, requires_grad=True)
    found = layer(ours).exp()
    found.sum().backward()
    torch.testing.assert_close(found, answer, **CLOSE)
    expected = torch.stack([t.grad for t in theirs])
    torch.testing.assert_close(ours.grad, expected, **CLOSE)
