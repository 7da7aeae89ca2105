"""The same relaxation written for cvxpylayers: what a user would build without gdpnet."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import torch
from cvxpylayers.torch import CvxpyLayer

import gdpnet
from gdpnet.convexify.program._blocks import layout


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
        (part,) = layout(rules, clusters, active)
        data = rules.data
        d = data.outputs
        if len(part.columns) != d:
            raise ValueError("written for rules without auxiliaries in one component")
        self.rules, self.d = rules, d
        self.shared = rules.table.shared
        slack = cp.Parameter(len(data.rows))
        below, above = cp.Parameter(d), cp.Parameter(d)  # bounds relative to the prediction
        z = cp.Variable(d)
        eta = cp.Variable(d)
        constraints, quadratic = [], []
        for block in part.blocks:
            copies, sizes, weights = [], [], []
            for product in block.products:
                u, size, weight = cp.Variable(d), cp.Variable(d), cp.Variable(nonneg=True)
                for i in dict.fromkeys((*part.rows, *product.rows)):
                    row = self.shared[i].numpy()
                    left, right = row @ u, weight * slack[i]
                    constraints.append(left == right if data.rows[i].equality else left <= right)
                constraints += [u <= size, -u <= size, u >= weight * below, u <= weight * above]
                copies.append(u)
                sizes.append(size)
                weights.append(weight)
                quadratic += [cp.sum_squares(u), cp.sum_squares(size), cp.square(weight)]
            constraints += [sum(copies) == z, sum(sizes) == eta, sum(weights) == 1]
        objective = cp.sum(eta)
        if eps:
            objective += eps / 2 * sum(quadratic)
        problem = cp.Problem(cp.Minimize(objective), constraints)
        chosen: dict[str, Any] = {"solver": cp.CLARABEL} if solver == "DIFFCP" else {}
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


def as_array(values: torch.Tensor) -> np.ndarray:
    """Values without their graph."""
    return values.detach().numpy()
