"""HiGHS on the DNF's linear program: simplex, one thread."""

from __future__ import annotations

from typing import Any

import highspy
import numpy as np
from scipy.sparse import vstack

from ..problem import Array, Part
from ..program import Program
from ._base import OneByOne


class InPlace(OneByOne):
    """One model a pattern; a sample changes coefficients and starts from the last basis."""

    def make(self, parts: tuple[Part, ...]) -> Any:
        program = self.program(parts)
        solver = new_solver()
        solver.passModel(model(program, program.less.matrix.data, program.equal.matrix.data))
        return program, solver

    def program_of(self, made: Any) -> Program:
        return made[0]

    def solution(self, made: Any, theta: Array) -> Array:
        program, solver = made
        first = 0
        for rows in (program.less, program.equal):
            values = rows.sign * theta[rows.source]
            for i, j, value in zip(
                (rows.row + first).tolist(), rows.column.tolist(), values.tolist(), strict=True
            ):
                solver.changeCoeff(i, j, value)
            first += len(rows.right)
        solver.run()
        return answer(solver)


class Full(InPlace):
    """All products, also those that are empty."""

    form = "full"


class ConjunctiveInPlace(InPlace):
    """The CNF's program."""

    form = "cnf"


class Cold(OneByOne):
    """A new solver for every sample."""

    def make(self, parts: tuple[Part, ...]) -> Any:
        return self.program(parts)

    def program_of(self, made: Any) -> Program:
        return made

    def solution(self, made: Any, theta: Array) -> Array:
        solver = new_solver()
        solver.passModel(model(made, made.less.values(theta), made.equal.values(theta)))
        solver.run()
        return answer(solver)


def new_solver() -> highspy.Highs:
    """A silent simplex with one thread."""
    solver = highspy.Highs()
    for option, value in {"output_flag": False, "threads": 1, "solver": "simplex"}.items():
        solver.setOptionValue(option, value)
    return solver


def model(program: Program, less: Array, equal: Array) -> highspy.HighsLp:
    """The program with these entries."""
    both = vstack([program.less.matrix, program.equal.matrix], format="csr")
    right = np.concatenate([program.less.right, program.equal.right])
    left = right.copy()
    left[: len(program.less.right)] = -np.inf
    lower = np.full(program.size, -np.inf)
    lower[program.weights] = 0.0
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = program.size, len(right)
    lp.col_cost_, lp.col_lower_ = program.cost, lower
    lp.col_upper_ = np.full(program.size, np.inf)
    lp.row_lower_, lp.row_upper_ = left, right
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = both.indptr.astype(np.int32)
    lp.a_matrix_.index_ = both.indices.astype(np.int32)
    lp.a_matrix_.value_ = np.concatenate([less, equal])
    return lp


def answer(solver: highspy.Highs) -> Array:
    """Its solution, whatever it says of it."""
    return np.array(solver.getSolution().col_value)
