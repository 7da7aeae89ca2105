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
"""

from __future__ import annotations

import numpy as np

from gdpnet.lp.conic import ConeKind, ConicSolution
from gdpnet.lp.standard import StandardForm
from gdpnet.solve.conic.curved import of_curved_cone

Array = np.ndarray

_RANK = 1e-7  # relative to the largest, of singular values that count: points are good to 1e-8
_LARGE = 1e7  # of a solution beside its right side, which only singular matrices give


def adjoint(
    form: StandardForm,
    entries: Array,
    square: Array,
    solution: ConicSolution,
    along: Array,
    columns: Array,
) -> tuple[Array, Array, Array]:
    """Gradients with respect to costs, entries of A and right sides.

    Args:
        form: the program.
        entries: of A.
        square: diagonal of P, `n`.
        solution: what was found.
        along: gradient with respect to the columns, `n`.
        columns: those that count; the others stay as they are.
    """
    if solution.exact is not None:
        return solution.exact.adjoint(along)
    from scipy.sparse import csc_array  # late: its import takes a while

    z, slack, dual = solution.point, solution.slack, solution.dual
    assert z is not None
    assert slack is not None
    assert dual is not None
    shape = form.rows, len(z)
    matrix = csc_array((entries, form.indices, form.indptr), shape=shape)[:, columns]
    rows, derivative = _tight(form, slack, dual, np.unique(matrix.indices[matrix.data != 0.0]))
    tight = matrix.tocsr()[rows].toarray()
    n, m = len(columns), len(rows)
    system = np.zeros((n + m, n + m))
    system[:n, :n] = np.diag(square[columns])
    system[:n, n:] = tight.T @ (derivative - np.eye(m))
    system[n:, :n] = tight
    system[n:, n:] = derivative
    right = np.concatenate([along[columns], np.zeros(m)])
    solved = None if form.cones else _eliminated(system.T, right)
    if solved is None:
        solved = np.linalg.lstsq(system.T, right, rcond=_RANK)[0]
    w, r = np.zeros(len(z)), np.zeros(form.rows)
    w[columns], r[rows] = solved[:n], solved[n:]
    to_entries = -(dual[form.indices] * w[form.column_of] + r[form.indices] * z[form.column_of])
    return -w, to_entries, r


def _eliminated(system: Array, right: Array) -> Array | None:
    """The only solution; None where tight rows seem to depend on each other."""
    try:
        found = np.linalg.solve(system, right)
    except np.linalg.LinAlgError:
        return None
    # A matrix that is nearly singular gives large numbers.
    size = np.abs(found).max(initial=0.0) * np.abs(system).max(initial=0.0)
    return found if size <= _LARGE * np.abs(right).max(initial=0.0) else None


def _tight(form: StandardForm, slack: Array, dual: Array, rows: Array) -> tuple[Array, Array]:
    """Rows that are not slack, and the derivative of the projection onto their cones there.

    Args:
        form: the standard form.
        slack: of each row.
        dual: multiplier of each row.
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
