"""The disjunctive refinement layer (Stoian et al., 2025) for rules of linear real arithmetic.

It stands in the repository of PiShield as `pishield.qflra_requirements`, not in the package 1.0.0
of that name: `run_peers.py --path drl=/path/to/a/clone`. It walks through the columns in an order
and moves each to the nearest end of what earlier ones leave to it, so its point is not the nearest.
It takes a rule as held within 0.01. It knows no inputs, so it is asked about rules without.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import torch
from pishield.qflra_requirements.shield_layer import ShieldLayer

from ..problem import Array, Problem, Samples
from ._base import NotSupportedError, Peer

torch.set_default_dtype(torch.float64)  # it makes tensors without saying of which type


class Refinement(Peer):
    """One layer for all samples."""

    differentiable = True
    whole = True

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        if problem.moving.any():
            raise NotSupportedError("numbers of rules cannot depend on the input")
        lines = ["ordering " + " ".join(f"y_{j}" for j in range(problem.outputs))]
        for i in problem.always:
            lines.append(_at_least(problem, i, 1.0))
            if problem.equality[i]:
                lines.append(_at_least(problem, i, -1.0))
        for rule in problem.rules:
            if any(len(rows) != 1 or problem.equality[rows[0]] for rows in rule):
                raise NotSupportedError("disjuncts of more than one inequality")
            lines.append(" or ".join(_at_least(problem, rows[0], 1.0) for rows in rule))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "requirements.txt"
            path.write_text("\n".join(lines))
            self.inner = ShieldLayer(problem.outputs, str(path))

    def layer(self, yhat: torch.Tensor, samples: Samples, index: Array) -> torch.Tensor:
        del samples, index
        return self.inner(yhat)


def _at_least(problem: Problem, i: int, sign: float) -> str:
    """The row `sign (a y) <= sign b` as `-a y >= -b`, in its words."""
    terms = [(j, -sign * problem.matrix[i, j]) for j in np.flatnonzero(problem.matrix[i])]
    body = " ".join(f"{'+' if a > 0 else '-'} {abs(a):.12f}y_{j}" for j, a in terms)
    return f"{body.removeprefix('+ ')} >= {-sign * problem.random.bound[0, i]:.12f}"
