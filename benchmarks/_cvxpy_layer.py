"""The same relaxation written for cvxpylayers: what a user would build without gdpnet."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import torch
from cvxpylayers.torch import CvxpyLayer

import gdpnet
from gdpnet.relaxation.blocks import layout


class CvxpyProjection:
    """One pattern of active rules, as a layer `(yhat, x) -> y`.

    Args:
        rules: the rules.
        clusters: rules merged in each disjunction.
        active: which clauses apply.
        eps: size of the quadratic term; 0 for the linear program itself.
        solver: "DIFFCP" (with Clarabel) or "MOREAU".
    """

    def __init__(
        self,
        rules: gdpnet.RuleModel,
        clusters: list[list[int]],
        active: list[bool],
        eps: float,
        solver: str,
    ) -> None:
        data = rules.data
        d = data.outputs
        if len(data.columns) != d:
            raise ValueError("written for rules without auxiliaries")
        self.rules, self.d = rules, d
        self.shared = rules.table.shared
        slack = cp.Parameter(len(data.rows))
        below, above = cp.Parameter(d), cp.Parameter(d)  # bounds relative to the prediction
        z = cp.Variable(d)
        eta = cp.Variable(d)
        constraints, quadratic = [], []
        parts = layout(data, clusters, active)
        free = set(range(d)) - {j for part in parts for j in part.columns}
        constraints += [z[j] == 0 for j in sorted(free)] + [eta[j] == 0 for j in sorted(free)]
        for part in parts:
            own = list(part.columns)
            for block in part.blocks:
                copies, sizes, weights = [], [], []
                for product in block.products:
                    u, size = cp.Variable(len(own)), cp.Variable(len(own))
                    weight = cp.Variable(nonneg=True)
                    for i in dict.fromkeys((*part.rows, *product.rows)):
                        left, right = self.shared[i].numpy()[own] @ u, weight * slack[i]
                        equal = data.rows[i].equality
                        constraints.append(left == right if equal else left <= right)
                    constraints += [u <= size, -u <= size]
                    constraints += [u >= weight * below[own], u <= weight * above[own]]
                    copies.append(u)
                    sizes.append(size)
                    weights.append(weight)
                    quadratic += [cp.sum_squares(u), cp.sum_squares(size), cp.square(weight)]
                constraints += [sum(copies) == z[own], sum(sizes) == eta[own], sum(weights) == 1]
        objective = cp.sum(eta)
        if eps:
            objective += eps / 2 * sum(quadratic)
        problem = cp.Problem(cp.Minimize(objective), constraints)
        chosen: dict[str, Any] = {"solver_args": {"solve_method": "Clarabel"}}
        if solver == "MOREAU":
            chosen = {"solver": "MOREAU"}
        self.layer = CvxpyLayer(problem, [slack, below, above], [z], **chosen)

    def __call__(self, yhat: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        lower, upper = self.rules.lower, self.rules.upper
        start = torch.minimum(torch.maximum(yhat, lower), upper)
        bound = self.rules.table.evaluate(x).bound
        slack = bound - start @ self.shared[:, : self.d].T
        (z,) = self.layer(slack, lower - start, upper - start)
        return start + z
