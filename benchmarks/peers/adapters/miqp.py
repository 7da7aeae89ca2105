"""The Euclidean norm: mixed-integer quadratic programs by big-M, in DAQP and Gurobi."""

from __future__ import annotations

import daqp
import gurobipy
import numpy as np
import torch

from ..problem import Array, Problem, Samples
from ._base import Peer
from .gurobi import environment, refuse_large
from .milp import BigM

SMALL = 1e-3  # curvature that DAQP wants of binaries; c (z^2 - z) costs nothing at 0 and 1


class DAQP(Peer):
    """One program for all samples; its own branch and bound."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        form = self.form = BigM(problem)
        d, rows = problem.outputs, form.matrix.toarray()
        self.equal = np.concatenate([np.zeros(form.size, dtype=bool), form.equal])
        binary = np.concatenate([form.integer, np.zeros(len(rows), dtype=bool)])
        self.sense = np.where(binary, 16, np.where(self.equal, 5, 0)).astype(np.int32)
        self.cost = np.where(form.integer, -0.5 * SMALL, 0.0)
        right = form.right(problem.random, 0)
        self.upper = np.concatenate([form.upper, right])
        self.lower = np.concatenate([form.lower, np.full(len(rows), -1e30)])
        self.lower[self.equal] = self.upper[self.equal]
        self.model, self.d = daqp.Model(), d
        curvature = np.diag(np.where(form.integer, SMALL, 1.0))
        self.model.setup(curvature, self.cost, rows, self.upper, self.lower, self.sense)

    def layer(self, yhat: torch.Tensor, samples: Samples, index: Array) -> torch.Tensor:
        start, found = self.problem.start(samples), []
        for s in index:
            self.cost[: self.d] = -start[s]
            self.upper[self.form.size :] = self.form.right(samples, s)
            self.lower[self.equal] = self.upper[self.equal]
            self.model.update(f=self.cost, bupper=self.upper, blower=self.lower, sense=self.sense)
            y, _, flag, _ = self.model.solve()
            if flag <= 0:
                raise RuntimeError(f"exit flag {flag}")
            found.append(np.array(y[: self.d]))
        return torch.from_numpy(np.array(found))


class Gurobi(Peer):
    """One model for all samples, gap 0."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        form = self.form = BigM(problem)
        refuse_large(form.size, len(form.matrix_rows))
        self.model = gurobipy.Model(env=environment())
        self.model.Params.MIPGap = self.model.Params.MIPGapAbs = 0.0
        kinds = np.where(form.integer, "B", "C")
        v = self.model.addMVar(form.size, lb=form.lower, ub=form.upper, vtype=kinds)
        sense = np.where(form.equal, "=", "<")
        self.rows = self.model.addMConstr(form.matrix, v, sense, np.zeros(len(sense)))
        self.y = v[: problem.outputs]
        self.model.setObjective(self.y @ self.y)
        self.model.update()

    def layer(self, yhat: torch.Tensor, samples: Samples, index: Array) -> torch.Tensor:
        start, found = self.problem.start(samples), []
        for s in index:
            self.rows.RHS = self.form.right(samples, s)
            self.y.Obj = -2.0 * start[s]
            self.model.optimize()
            if not self.model.SolCount:
                raise RuntimeError(f"no solution, status {self.model.Status}")
            found.append(self.y.X)
        return torch.from_numpy(np.array(found))
