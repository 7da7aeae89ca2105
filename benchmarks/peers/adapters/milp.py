"""The big-M formulation, and scipy.optimize.milp on it."""

from __future__ import annotations

import numpy as np
import torch
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from ..problem import Array, Problem, Samples
from ._base import Peer


class BigM:
    """y, eta, and one binary a disjunct; an inactive rule has right side 0 instead of 1.

    Only right sides depend on the sample. With the Euclidean norm there is no eta, and the cost is
    the caller's.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        d = problem.outputs
        binaries = sum(len(rule) for rule in problem.rules)
        distances = d if problem.norm == "l1" else 0
        self.size = d + distances + binaries
        self.matrix_rows: list[Array] = []
        equal: list[bool] = []
        # Right side of each row: +-bound of a row plus a constant, +-yhat, or a rule's activity.
        self._kinds: list[tuple[str, int, float, float]] = []

        def add(entries: dict[int, float], kind: tuple[str, int, float, float], same: bool) -> None:
            row = np.zeros(self.size)
            for j, value in entries.items():
                row[j] = value
            self.matrix_rows.append(row)
            self._kinds.append(kind)
            equal.append(same)

        for i in problem.always:
            own = dict(enumerate(problem.matrix[i]))
            add(own, ("bound", i, 1.0, 0.0), bool(problem.equality[i]))
        for j in range(distances):
            add({j: 1.0, d + j: -1.0}, ("yhat", j, 1.0, 0.0), False)
            add({j: -1.0, d + j: -1.0}, ("yhat", j, -1.0, 0.0), False)
        at = d + distances
        for r, rule in enumerate(problem.rules):
            add({at + k: -1.0 for k in range(len(rule))}, ("active", r, -1.0, 0.0), False)
            for rows in rule:
                for i in rows:
                    signs = (1.0, -1.0) if problem.equality[i] else (1.0,)
                    for sign in signs:
                        a = sign * problem.matrix[i]
                        most = np.where(a > 0, problem.upper, problem.lower) @ a
                        big = most - (sign * problem.random.bound[:, i]).min()
                        entries = {**dict(enumerate(a)), at: max(big, 0.0)}
                        add(entries, ("bound", i, sign, max(big, 0.0)), False)
                at += 1
        self.matrix = csr_array(np.array(self.matrix_rows))
        self.equal = np.array(equal)
        self.cost = np.zeros(self.size)
        self.cost[d : d + distances] = 1.0
        self.integer = np.arange(self.size) >= d + distances
        self.lower = np.concatenate([problem.lower, np.zeros(distances + binaries)])
        width = (problem.upper - problem.lower)[:distances]
        self.upper = np.concatenate([problem.upper, width, np.ones(binaries)])
        kinds = [kind for kind, _, _, _ in self._kinds]
        self._where = {k: np.array([kind == k for kind in kinds]) for k in ("bound", "yhat")}
        self._where["active"] = ~(self._where["bound"] | self._where["yhat"])
        self._index = np.array([i for _, i, _, _ in self._kinds])
        self._sign = np.array([sign for _, _, sign, _ in self._kinds])
        self._plus = np.array([plus for _, _, _, plus in self._kinds])

    def right(self, samples: Samples, s: int) -> Array:
        """Right sides of a sample."""
        start = np.clip(samples.yhat[s], self.problem.lower, self.problem.upper)
        source = {"bound": samples.bound[s], "yhat": start, "active": samples.active[s]}
        found = np.empty(len(self._index))
        for kind, where in self._where.items():
            found[where] = source[kind][self._index[where]]
        return self._sign * found + self._plus


class Scipy(Peer):
    """scipy.optimize.milp, which is HiGHS, called anew for every sample."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.form = BigM(problem)
        self.bounds = Bounds(self.form.lower, self.form.upper)

    def layer(self, yhat: torch.Tensor, samples: Samples, index: Array) -> torch.Tensor:
        form, found = self.form, []
        for s in index:
            right = form.right(samples, s)
            rows = LinearConstraint(form.matrix, np.where(form.equal, right, -np.inf), right)
            answer = milp(
                form.cost,
                integrality=form.integer.astype(int),
                bounds=self.bounds,
                constraints=rows,
                options={"mip_rel_gap": 0.0},
            )
            if answer.x is None:
                raise RuntimeError(answer.message)
            found.append(answer.x[: self.problem.outputs])
        return torch.from_numpy(np.array(found))
