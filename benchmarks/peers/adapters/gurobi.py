"""Gurobi with the size-limited licence that comes with it: linear program, and big-M MILP."""

from __future__ import annotations

from typing import Any

import gurobipy
import numpy as np
import torch
from scipy.sparse import vstack

from ..problem import Array, Part, Problem, Samples
from ..program import Program
from ._base import NotSupportedError, OneByOne, Peer
from .milp import BigM

LIMIT = 2000  # variables, and constraints, that the licence allows


def environment() -> gurobipy.Env:
    """Silent, one thread, tight tolerances."""
    env = gurobipy.Env(params={"OutputFlag": 0})
    for name in ("FeasibilityTol", "OptimalityTol", "IntFeasTol"):
        env.setParam(name, 1e-9)
    env.setParam("Threads", 1)
    return env


def refuse_large(variables: int, rows: int) -> None:
    if max(variables, rows) > LIMIT:
        raise NotSupportedError(f"licence: {variables} variables and {rows} rows, {LIMIT} allowed")


class InPlace(OneByOne):
    """One model a pattern; a sample changes coefficients and starts from the last basis."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.env = environment()

    def make(self, parts: tuple[Part, ...]) -> Any:
        program = self.program(parts)
        refuse_large(program.size, len(program.less.right) + len(program.equal.right))
        model = gurobipy.Model(env=self.env)
        model.Params.Method = 1
        lower = np.full(program.size, -np.inf)
        lower[program.weights] = 0.0
        v = model.addMVar(program.size, lb=lower, obj=program.cost)
        both = vstack([program.less.matrix, program.equal.matrix], format="csr")
        sense = "<" * len(program.less.right) + "=" * len(program.equal.right)
        right = np.concatenate([program.less.right, program.equal.right])
        model.addMConstr(both, v, np.array(list(sense)), right)
        model.update()
        rows, columns = model.getConstrs(), model.getVars()
        first = len(program.less.right)
        moving = [(rows[i], columns[j]) for i, j in _places(program.less)]
        moving += [(rows[i + first], columns[j]) for i, j in _places(program.equal)]
        return program, model, moving, columns

    def program_of(self, made: Any) -> Program:
        return made[0]

    def solution(self, made: Any, theta: Array) -> Array:
        program, model, moving, columns = made
        values = np.concatenate(
            [r.sign * theta[r.source] for r in (program.less, program.equal)]
        ).tolist()
        for (row, column), value in zip(moving, values, strict=True):
            model.chgCoeff(row, column, value)
        model.optimize()
        return np.array(model.getAttr("X", columns))


def _places(rows: Any) -> list[tuple[int, int]]:
    return list(zip(rows.row.tolist(), rows.column.tolist(), strict=True))


class MixedInteger(Peer):
    """Big-M, one model for all samples: only right sides change."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.form = BigM(problem)
        refuse_large(self.form.size, len(self.form.matrix_rows))
        self.model = gurobipy.Model(env=environment())
        self.model.Params.MIPGap = 0.0
        self.model.Params.MIPGapAbs = 0.0
        kinds = np.where(self.form.integer, "B", "C")
        v = self.model.addMVar(
            self.form.size, lb=self.form.lower, ub=self.form.upper, obj=self.form.cost, vtype=kinds
        )
        sense = np.where(self.form.equal, "=", "<")
        self.rows = self.model.addMConstr(self.form.matrix, v, sense, np.zeros(len(sense)))
        self.model.update()
        self.columns = self.model.getVars()[: problem.outputs]

    def layer(self, yhat: torch.Tensor, samples: Samples, index: Array) -> torch.Tensor:
        found = []
        for s in index:
            self.rows.RHS = self.form.right(samples, s)
            self.model.optimize()
            if not self.model.SolCount:
                raise RuntimeError(f"no solution, status {self.model.Status}")
            found.append(self.model.getAttr("X", self.columns))
        return torch.from_numpy(np.array(found))
