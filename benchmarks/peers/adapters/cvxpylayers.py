"""cvxpylayers on the DNF's program: with diffcp (Clarabel or SCS) and with MOREAU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cvxpy as cp
import numpy as np
import torch
from cvxpylayers.torch import CvxpyLayer
from diffcp import cone_program
from scipy.sparse import csr_array

from ..problem import Array, Part, Samples
from ..program import Rows
from ._base import Batched, NotSupportedError

# One core: the layer has no option for it, and diffcp else starts a thread for every core there is.
cone_program.mp.cpu_count = lambda: 1

LARGEST = 20_000  # variables and rows for which the layer is compiled within the time of a cell


class Cvxpy(Batched):
    """One layer a pattern, compiled once, written in vectors."""

    options: Mapping[str, Any]

    def make(self, parts: tuple[Part, ...]) -> Any:
        program = self.program(parts)
        count = program.size + len(program.less.right) + len(program.equal.right)
        if count > LARGEST:
            raise NotSupportedError(f"too large: {count} variables and rows to compile")
        v = cp.Variable(program.size)
        used = np.unique(np.concatenate([program.less.source, program.equal.source]))
        theta = cp.Parameter(len(used))
        constraints = [v[program.weights] >= 0]
        constraints += [left <= right for left, right in _sides(program.less, v, theta, used)]
        constraints += [left == right for left, right in _sides(program.equal, v, theta, used)]
        objective = program.cost @ v
        if self.eps:
            objective += self.eps / 2 * cp.sum_squares(v)
        chosen = cp.Problem(cp.Minimize(objective), constraints)
        layer = CvxpyLayer(chosen, parameters=[theta], variables=[v], **self.options)
        return layer, torch.from_numpy(used), torch.from_numpy(program.output.toarray().T)

    def solve(self, made: Any, yhat: torch.Tensor, samples: Samples, index: Array) -> torch.Tensor:
        layer, used, output = made
        (v,) = layer(self.parameters(yhat, samples, index)[:, used])
        return self.start(yhat) + v @ output


def _sides(
    rows: Rows, v: cp.Variable, theta: cp.Parameter, used: Array
) -> list[tuple[cp.Expression, Array]]:
    """Left and right sides: rows that never change, and rows with one moving entry each."""
    plain = np.setdiff1d(np.arange(len(rows.right)), rows.row)
    found = []
    if len(plain):
        found.append((rows.matrix[plain] @ v, rows.right[plain]))
    if len(rows.row):
        count = len(rows.row)
        at = np.arange(count)
        parameter = csr_array(
            (rows.sign, (at, np.searchsorted(used, rows.source))), shape=(count, len(used))
        )
        weight = csr_array((np.ones(count), (at, rows.column)), shape=(count, v.size))
        moving = cp.multiply(parameter @ theta, weight @ v)
        found.append((rows.matrix[rows.row] @ v + moving, rows.right[rows.row]))
    return found


_CLARABEL = {"solver_args": {"solve_method": "Clarabel"}}
_MOREAU = {"solver": "MOREAU"}
_SCS = {"solver_args": {"solve_method": "SCS"}}


class ClarabelLP(Cvxpy):
    """diffcp, the linear program."""

    options, eps, form = _CLARABEL, 0.0, "dnf"


class FullClarabelLP(ClarabelLP):
    """All products, also those that are empty."""

    form = "full"


class ClarabelQP(Cvxpy):
    """diffcp, the quadratic program."""

    options = _CLARABEL


class ScsLP(Cvxpy):
    """diffcp with its default solver."""

    options, eps, form = _SCS, 0.0, "dnf"


class MoreauLP(Cvxpy):
    """MOREAU, the linear program."""

    options, eps, form = _MOREAU, 0.0, "dnf"


class FullMoreauLP(MoreauLP):
    """All products, also those that are empty."""

    form = "full"


class MoreauQP(Cvxpy):
    """MOREAU, the quadratic program."""

    options = _MOREAU
