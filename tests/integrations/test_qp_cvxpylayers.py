"""The regularised QP against cvxpylayers on the same program: points and gradients.

diffcp writes squares as cones and is itself accurate to a few 1e-6, hence the tolerance of 1e-5.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import torch
from cvxpylayers.torch import CvxpyLayer

from gdpnet.core import SOLVED
from gdpnet.testing import BY_NAME
from tests.derivative.qp_oracle import terms
from tests.derivative.test_qp import Case, of_problem, of_seed

pytestmark = pytest.mark.filterwarnings("ignore")  # of cvxpylayers about numpy

EXACT = {"solve_method": "Clarabel", "tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}


def layer(given: Case, sample: int) -> tuple[torch.Tensor, torch.Tensor] | None:
    """y and the gradient of `sum(cos(k) y_k)` with respect to yhat, for one component."""
    (component,) = given.engine.components
    found = terms(given.engine.rules, component, given.instance, sample, 12)
    if found is None:
        return None
    d, n = len(component.outputs), len(component.columns)
    yhat = cp.Parameter(d)
    y = cp.Variable(d)
    rows, cost, copies, weights = [], 0, [], []
    for term in found:
        z, a = cp.Variable(d), cp.Variable(max(n - d, 1))
        eta, weight = cp.Variable(d), cp.Variable(nonneg=True)
        point = z + weight * yhat
        upper = term.upper[:, :d] @ point
        equal = term.equal[:, :d] @ point
        if n > d:
            upper, equal = upper + term.upper[:, d:] @ a, equal + term.equal[:, d:] @ a
        rows += [upper <= term.limit * weight, z <= eta, -z <= eta]
        if len(term.equal):
            rows.append(equal == term.right * weight)
        squares = cp.sum_squares(z) + cp.sum_squares(eta) + cp.square(weight) + cp.sum_squares(a)
        cost += given.weights @ eta + given.eps / 2 * squares
        copies.append(z)
        weights.append(weight)
    rows += [sum(weights) == 1, y == yhat + sum(copies)]
    program = cp.Problem(cp.Minimize(cost), rows)
    made = CvxpyLayer(program, parameters=[yhat], variables=[y])
    prediction = torch.tensor(given.yhat[sample], requires_grad=True)
    (answer,) = made(prediction, solver_args=EXACT)
    (torch.cos(torch.arange(d)).double() @ answer).backward()
    assert prediction.grad is not None
    return answer.detach(), prediction.grad


def compare(given: Case, gradients: bool) -> int:
    """How many samples were compared."""
    if len(given.engine.components) != 1:
        return 0
    d = given.yhat.shape[1]
    found, projected = given.solved(), given.projected()
    gradient = found.vjp(np.tile(np.cos(np.arange(d)), (len(given.yhat), 1))).yhat
    columns = given.engine.data.columns[:d]
    lower, upper = np.array([c.lower for c in columns]), np.array([c.upper for c in columns])
    inside = ((lower < given.yhat) & (given.yhat < upper)).all(1)
    compared = 0
    for s in np.flatnonzero((projected.status == SOLVED) & inside):
        answer = layer(given, s)
        if answer is None:
            continue
        np.testing.assert_allclose(found.y[s], answer[0], rtol=1e-5, atol=1e-5)
        if gradients:
            np.testing.assert_allclose(gradient[s], answer[1], rtol=1e-5, atol=1e-5)
        compared += 1
    return compared


@pytest.mark.parametrize(
    "name",
    ["paper_one_rule", "paper_two_rule", "jl_wrapper_basic", "jl_differentiation", "equalities",
     "coupled_by_auxiliary", "coefficients", "implication"],
)  # fmt: skip
def test_bank_equals_cvxpylayers(name: str) -> None:
    assert compare(of_problem(BY_NAME[name], 1e-1, jitter=1e-2), gradients=True) > 0


def test_random_rules_equal_cvxpylayers() -> None:
    seeds = [s for s in range(30) if not has_integers(of_seed(s))]
    # Points only: with dependent rows diffcp's iterative gradients are off by up to 3e-3, where
    # ours are the finite differences (test_qp.py).
    assert sum(compare(of_seed(seed, jitter=1e-2), gradients=False) for seed in seeds) > 10


def has_integers(given: Case) -> bool:
    return any(c.prepared.integer.any() for c in given.engine.components)
