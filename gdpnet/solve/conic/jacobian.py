r"""Derivatives of conic programs at their solutions, from the conditions of optimality.

With slack s, multipliers v and u = s - v, the solution of

    minimise z P z / 2 + q z    subject to    A z + s = b, s in K

is a zero of F(z, u) = (P z + q + A' (Pi(u) - u),  A z + Pi(u) - b), Pi being the projection onto K.
Its derivative D is 1 for a row that is not tight and 0 for one that is; on the boundary of a
cone it is a matrix. Copies without weight stay at 0 and are left out. With the loss's
gradient g with respect to z and

    [ P   A' (D - 1) ]'   [ w ]   [ g ]
    [ A   D          ]    [ r ] = [ 0 ]

the loss gets -w from q, r from b and -(v_i w_j + r_i z_j) from the entry of A in row i and column
j. Where tight rows depend on each other the multipliers are not unique, and w is; the solution of
least norm is taken.

The point of the program does not depend on c, the prediction within its bounds (see `data`), so in
l2 predictions enter through their costs alone; in l1 c is all there is of them.
"""

from __future__ import annotations

import numpy as np

from gdpnet.lp.conic import ConeKind, ConicSolution
from gdpnet.lp.standard import StandardForm
from gdpnet.relaxation.program import RelaxationProgram
from gdpnet.solve.base import Gradients, Linearisation
from gdpnet.solve.conic.curved import of_curved_cone
from gdpnet.solve.conic.data import ConicData

Array = np.ndarray

_WEIGHT = 1e-6  # a copy with less is left out
_RANK = 1e-7  # relative to the largest, of singular values that count: points are good to 1e-8


class ConicJacobian(Linearisation):
    """The derivative of the points of a batch of conic programs, all solved.

    Args:
        program: the program.
        form: its standard form.
        data: the samples.
        square: diagonal of the quadratic term, `n`.
        unit: in which costs were given, `batch`.
        found: what was found.
    """

    def __init__(
        self,
        program: RelaxationProgram,
        form: StandardForm,
        data: ConicData,
        square: Array,
        unit: Array,
        found: list[ConicSolution],
    ) -> None:
        self._program, self._form, self._data = program, form, data
        self._square, self._unit, self._found = square, unit, found

    def vjp(self, gradient: Array) -> Gradients:
        """Gradients of a loss from its gradient with respect to y, (B, d)."""
        program, data, form = self._program, self._data, self._form
        numbers = program.numbers(program.moving_values(data.parameters))
        entries, _ = form.matrices(*numbers)
        to_cost = np.zeros((len(gradient), len(program.lower)))
        to_entries, to_right = np.zeros(entries.shape), np.zeros((len(gradient), form.rows))
        for s, solution in enumerate(self._found):
            along = np.zeros(len(program.lower))
            along[program.outputs] = gradient[s, program.which]
            to_cost[s], to_entries[s], to_right[s] = self._one(s, solution, entries[s], along)
        to_value, to_bound = form.pull_back(to_entries, to_right)
        to_moving = np.concatenate([to_value, to_bound], 1)[:, program.moving]
        bound, varying, start = program.pull_back(to_moving, gradient, data.parameters)
        if data.norm == "l1":
            return Gradients(np.where(data.start == data.yhat, start, 0.0), bound, varying)
        # An output in no part follows its prediction within its bounds.
        yhat = np.where(data.start == data.yhat, gradient, 0.0)
        square = data.weights[program.which] ** 2
        through = to_cost[:, program.outputs] * self._unit[:, None]
        yhat[:, program.which] = -2.0 * square * through
        return Gradients(yhat, bound, varying)

    def _one(
        self, s: int, solution: ConicSolution, entries: Array, along: Array
    ) -> tuple[Array, Array, Array]:
        """Gradients with respect to costs, entries of A and right sides."""
        from scipy.sparse import csc_array  # late: its import takes a while

        form = self._form
        z, slack, dual = solution.point, solution.slack, solution.dual
        assert z is not None
        assert slack is not None
        assert dual is not None
        columns = np.flatnonzero(self._carried(z))
        shape = form.rows, len(z)
        matrix = csc_array((entries, form.indices, form.indptr), shape=shape)[:, columns]
        rows, derivative = _tight(form, slack, dual, np.unique(matrix.indices[matrix.data != 0.0]))
        tight = matrix.tocsr()[rows].toarray()
        n, m = len(columns), len(rows)
        system = np.zeros((n + m, n + m))
        system[:n, :n] = np.diag(self._square[columns] * self._unit[s])
        system[:n, n:] = tight.T @ (derivative - np.eye(m))
        system[n:, :n] = tight
        system[n:, n:] = derivative
        given = np.concatenate([along[columns], np.zeros(m)])
        solved = np.linalg.lstsq(system.T, given, rcond=_RANK)[0]
        w, r = np.zeros(len(z)), np.zeros(form.rows)
        w[columns], r[rows] = solved[:n], solved[n:]
        to_entries = -(dual[form.indices] * w[form.column_of] + r[form.indices] * z[form.column_of])
        return -w, to_entries, r

    def _carried(self, z: Array) -> Array:
        """Columns that are no copies of products without weight, bool `n`."""
        program = self._program
        return np.asarray((program.weight_of < 0) | (z[program.weight_of] > _WEIGHT))


def _tight(form: StandardForm, slack: Array, dual: Array, rows: Array) -> tuple[Array, Array]:
    """Rows that are not slack, and the derivative of the projection onto their cones there.

    Args:
        form: the standard form.
        slack: of each row.
        dual: its multiplier.
        rows: those that matter.
    """
    u = slack - dual
    matter = np.zeros(form.rows, dtype=bool)
    matter[rows] = True
    plain = np.arange(form.equal + form.less)
    kept = list(plain[matter[plain] & ((plain < form.equal) | (u[plain] <= 0.0))])
    blocks: list[tuple[int, Array]] = []
    for span in form.cones:
        inside = slice(span.first, span.first + span.size)
        if not matter[inside].any():
            continue
        if span.kind is ConeKind.SECOND_ORDER:
            block = _of_second_order(u[inside])
        else:
            block = of_curved_cone(span, slack[inside], dual[inside])
        if block is not None:
            blocks.append((len(kept), block))
            kept += range(span.first, span.first + span.size)
    derivative = np.zeros((len(kept), len(kept)))
    for at, block in blocks:
        derivative[at : at + len(block), at : at + len(block)] = block
    return np.array(kept, dtype=np.int64), derivative


def _of_second_order(u: Array) -> Array | None:
    """Derivative of the projection onto a cone; None inside of it, where it is the identity."""
    t, x = float(u[0]), u[1:]
    length = float(np.linalg.norm(x))
    if length <= t:
        return None
    if length <= -t:
        return np.zeros((len(u), len(u)))
    along, ratio = x / length, t / length
    found = np.empty((len(u), len(u)))
    found[0, 0] = 1.0
    found[0, 1:] = found[1:, 0] = along
    found[1:, 1:] = (1.0 + ratio) * np.eye(len(x)) - ratio * np.outer(along, along)
    return 0.5 * found
