"""discopt: disjunctions in its own words, as `either_or`, solved by branch and bound.

A new model for every sample, with all numbers written as constants: version 0.8.0 refuses
parameters within disjunctions (its big-M wants bounds of them), and with its hulls calls programs
infeasible that are not. It is given a gap of 1e-9.
"""

from __future__ import annotations

from typing import Any

import discopt.modeling as dm
import numpy as np
import torch

from ..problem import Array, Samples
from ._base import Peer


class Model(Peer):
    """Distances of the norm that is asked for."""

    def layer(self, yhat: torch.Tensor, samples: Samples, index: Array) -> torch.Tensor:
        start = self.problem.start(samples)
        found = [self._nearest(start[s], samples.bound[s], samples.active[s]) for s in index]
        return torch.from_numpy(np.array(found))

    def _nearest(self, yhat: Array, bound: Array, active: Array) -> Array:
        problem, d = self.problem, self.problem.outputs
        m = dm.Model("projection")
        y = m.continuous("y", shape=(d,), lb=problem.lower, ub=problem.upper)

        def relation(i: int) -> Any:
            own = np.flatnonzero(problem.matrix[i]).tolist()
            left = sum(float(problem.matrix[i, j]) * y[j] for j in own)
            right = float(bound[i])
            return left == right if problem.equality[i] else left <= right

        m.subject_to([relation(i) for i in problem.always])
        for rule, on in zip(problem.rules, active, strict=True):
            if on and len(rule) == 1:
                m.subject_to([relation(i) for i in rule[0]])
            elif on:
                m.either_or([[relation(i) for i in rows] for rows in rule])
        at = yhat.tolist()
        if problem.norm == "l1":
            eta = m.continuous("eta", shape=(d,), lb=0.0, ub=problem.upper - problem.lower)
            m.subject_to([y[j] - at[j] <= eta[j] for j in range(d)])
            m.subject_to([at[j] - y[j] <= eta[j] for j in range(d)])
            m.minimize(sum(eta[j] for j in range(d)))
        else:
            m.minimize(sum((y[j] - at[j]) ** 2 for j in range(d)))
        answer = m.solve(gap_tolerance=1e-9, threads=1)
        if answer.x is None:
            raise RuntimeError(f"no solution: {answer.status}")
        return np.asarray(answer.x["y"], dtype=float)
