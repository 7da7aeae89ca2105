"""Derivatives of the optimal vertices of written-out programs, from the solver's final bases.

The columns outside of the basis rest on bounds, which are numbers, and the tight rows R determine
the others, C:

    A[R, C] z_C = b_R - A[R, N] z_N

With g the loss's gradient with respect to z and prices A[R, C]' p = g_C, it gets p_i from the right
side of row i and -p_i z_j from its entry in column j.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gdpnet.relaxation.sparse import SparseProgram
from gdpnet.solve.base import Gradients

Array = np.ndarray


@dataclass(frozen=True)
class WrittenVertex:
    """An optimal vertex of a program.

    Attributes:
        point: values of all columns.
        columns: those that are in the basis.
        rows: those that hold with equality, as many.
    """

    point: Array
    columns: Array
    rows: Array


class WrittenJacobian:
    """The Jacobian of a batch of solved programs.

    Args:
        program: the program.
        parameters: what samples differ in, `batch x parameters`.
        vertices: what was found; None where nothing was.
    """

    def __init__(
        self, program: SparseProgram, parameters: Array, vertices: list[WrittenVertex | None]
    ) -> None:
        self.program, self.parameters, self.vertices = program, parameters, vertices

    def vjp(self, gradient: Array) -> Gradients:
        """Gradients of a loss from its gradient with respect to y; unsolved samples pass it on.

        Args:
            gradient: (B, d).
        """
        moving = self.program.moving_values(self.parameters)
        to_moving = np.zeros(moving.shape)
        solved = np.zeros(len(gradient), dtype=bool)
        for s, vertex in enumerate(self.vertices):
            if vertex is not None:
                prices = self._prices(moving[s], vertex, gradient[s])
                if prices is not None:
                    solved[s] = True
                    to_moving[s] = self.program.through_rows(prices, vertex.point)
        bound, varying, start = self.program.pull_back(to_moving, gradient, self.parameters)
        return Gradients(np.where(solved[:, None], start, gradient), bound, varying)

    def _prices(self, moving: Array, vertex: WrittenVertex, gradient: Array) -> Array | None:
        """Of all rows; None where the basis is singular."""
        from scipy.sparse import csr_array  # late: its import takes a while
        from scipy.sparse.linalg import splu

        program = self.program
        value = program.at(moving).value
        shape = len(program.bound), len(program.lower)
        matrix = csr_array((value, program.column, program.start), shape=shape)
        along = np.zeros(shape[1])
        along[program.outputs] = gradient[program.which]
        prices = np.zeros(shape[0])
        if not len(vertex.columns):
            return prices
        basis = matrix[vertex.rows][:, vertex.columns]
        try:
            prices[vertex.rows] = splu(basis.T.tocsc()).solve(along[vertex.columns])
        except RuntimeError:  # what SuperLU says of a singular matrix
            return None
        return prices if np.isfinite(prices).all() else None
