"""PiShield's layer for linear requirements.

It has no disjunctions (its other layer is for propositions over labels), and numbers cannot depend
on the input. So it is told what it can be told: the rows of the first product that is not empty,
and right sides that depend on the input as further variables, which come first in its order. The
rules should then hold, but the output is not the nearest point. Where coefficients are not 1 they
do not hold either: when version 1.0.0 eliminates a variable, it scales a row but not its right
side.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pishield.linear_requirements.shield_layer import ShieldLayer

from ..problem import Array, Part, Samples
from ._base import ByPattern


class Shield(ByPattern):
    """One layer a pattern."""

    differentiable = True

    def make(self, parts: tuple[Part, ...]) -> Any:
        problem, d = self.problem, self.problem.outputs
        rows = [i for part in parts for i in part.rows]
        rows += [i for part in parts for block in part.blocks for i in block[0]]
        rows = list(dict.fromkeys(rows))
        moving = [i for i in rows if problem.moving[i]]
        variables = [*range(d, d + len(moving)), *range(d)]
        lines = ["ordering " + " ".join(f"y_{j}" for j in variables)]
        for j in range(d):
            lines.append(f"y_{j} >= {problem.lower[j]:.12f}")
            lines.append(f"-y_{j} >= {-problem.upper[j]:.12f}")
        for i in rows:
            for sign in (1.0, -1.0) if problem.equality[i] else (1.0,):
                terms = [
                    (j, -sign * problem.matrix[i, j]) for j in np.flatnonzero(problem.matrix[i])
                ]
                right = -sign * problem.random.bound[0, i]
                if problem.moving[i]:
                    terms.append((d + moving.index(i), sign))
                    right = 0.0
                body = " ".join(f"{'+' if a > 0 else '-'} {abs(a):.12f}y_{j}" for j, a in terms)
                lines.append(f"{body.removeprefix('+ ')} >= {right:.12f}")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "requirements.txt"
            path.write_text("\n".join(lines) + "\n")
            layer = ShieldLayer(d + len(moving), str(path))
        return layer, np.array(moving, dtype=int)

    def solve(self, made: Any, yhat: torch.Tensor, samples: Samples, index: Array) -> torch.Tensor:
        layer, moving = made
        bound = torch.from_numpy(samples.bound[np.ix_(index, moving)])
        return layer(torch.cat([yhat, bound], 1))[:, : self.problem.outputs]
