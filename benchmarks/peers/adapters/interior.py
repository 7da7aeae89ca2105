"""Interior-point solvers called directly on the DNF's linear program: Clarabel and PIQP."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csc_array, csc_matrix, csr_array, vstack

from ..problem import Array, Part
from ..program import Program
from ._base import OneByOne


class Stacked:
    """Rows of a program, one above the other, by columns: entries of a sample in that order."""

    def __init__(self, blocks: list[csr_array]) -> None:
        marked, first = [], 1
        for block in blocks:  # numbers instead of entries tell where each goes
            count = len(block.data)
            numbers = np.arange(first, first + count, dtype=float)
            marked.append(csr_array((numbers, block.indices, block.indptr), block.shape))
            first += count
        self.matrix = csc_matrix(vstack(marked, format="csc"))
        self.matrix.sort_indices()
        self.order = self.matrix.data.astype(int) - 1

    def fill(self, values: Array) -> csc_matrix:
        """The matrix with these entries, given block by block."""
        self.matrix.data[:] = values[self.order]
        return self.matrix


class Clarabel(OneByOne):
    """One solver a pattern, its data updated."""

    def make(self, parts: tuple[Part, ...]) -> Any:
        import clarabel

        program = self.program(parts)
        count = len(program.weights)
        signs = csr_array(
            (-np.ones(count), (np.arange(count), program.weights)), shape=(count, program.size)
        )
        stacked = Stacked([program.equal.matrix, program.less.matrix, signs])
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.presolve_enable = False  # it would forbid updates
        settings.max_threads = 1
        some = program.parameters(self.problem.random, np.zeros(1, dtype=int))[0]
        solver = clarabel.DefaultSolver(
            csc_matrix((program.size, program.size)),
            program.cost,
            stacked.fill(self._values(program, some)).copy(),
            np.concatenate([program.equal.right, program.less.right, np.zeros(count)]),
            [
                clarabel.ZeroConeT(len(program.equal.right)),
                clarabel.NonnegativeConeT(len(program.less.right) + count),
            ],
            settings,
        )
        return program, stacked, solver

    def _values(self, program: Program, theta: Array) -> Array:
        signs = -np.ones(len(program.weights))
        return np.concatenate([program.equal.values(theta), program.less.values(theta), signs])

    def program_of(self, made: Any) -> Program:
        return made[0]

    def solution(self, made: Any, theta: Array) -> Array:
        program, stacked, solver = made
        solver.update(A=stacked.fill(self._values(program, theta)).data)
        return np.array(solver.solve().x)


class PIQP(OneByOne):
    """One solver a pattern, its data updated."""

    def make(self, parts: tuple[Part, ...]) -> Any:
        import piqp

        program = self.program(parts)
        less, equal = Stacked([program.less.matrix]), Stacked([program.equal.matrix])
        some = program.parameters(self.problem.random, np.zeros(1, dtype=int))[0]
        lower = np.full(program.size, -np.inf)
        lower[program.weights] = 0.0
        solver = piqp.SparseSolver()
        solver.setup(
            csc_matrix(csc_array((program.size, program.size))),
            program.cost,
            equal.fill(program.equal.values(some)),
            program.equal.right,
            less.fill(program.less.values(some)),
            None,
            program.less.right,
            lower,
            None,
        )
        return program, less, equal, solver

    def program_of(self, made: Any) -> Program:
        return made[0]

    def solution(self, made: Any, theta: Array) -> Array:
        program, less, equal, solver = made
        solver.update(
            A=equal.fill(program.equal.values(theta)), G=less.fill(program.less.values(theta))
        )
        solver.solve()
        return np.array(solver.result.x)
