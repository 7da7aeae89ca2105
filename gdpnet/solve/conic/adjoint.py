r"""Derivatives of conic programs at their solutions, from the conditions of optimality.

With slack s, multipliers v and u = s - v, the solution of

    minimise z P z / 2 + q z    subject to    A z + s = b, s in K

is a zero of F(z, u) = (P z + q + A' (Pi(u) - u),  A z + Pi(u) - b), Pi being the projection onto K.
Its derivative D is 1 for a row that is not tight and 0 for one that is; on the boundary of a
second-order cone it is a matrix. Copies without weight stay at 0 and are left out. With the loss's
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
from gdpnet.lp.standard import Span, StandardForm

Array = np.ndarray

_RANK = 1e-9  # relative to the largest, of singular values that count
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
        block = _of_projection(span, slack[inside], dual[inside])
        if block is not None:
            blocks.append((len(kept), block))
            kept += range(span.first, span.first + span.size)
    derivative = np.zeros((len(kept), len(kept)))
    for at, block in blocks:
        derivative[at : at + len(block), at : at + len(block)] = block
    return np.array(kept, dtype=np.int64), derivative


def _of_projection(span: Span, slack: Array, dual: Array) -> Array | None:
    """Derivative of the projection onto a cone; None inside of it, where it is the identity."""
    if span.kind is not ConeKind.SECOND_ORDER:
        return _of_smooth_projection(span, slack, dual)
    u = slack - dual
    t, x = float(u[0]), u[1:]
    length = float(np.linalg.norm(x))
    if length <= t:
        return None
    if length <= -t:
        return np.zeros((span.size, span.size))
    along, ratio = x / length, t / length
    found = np.empty((span.size, span.size))
    found[0, 0] = 1.0
    found[0, 1:] = found[1:, 0] = along
    found[1:, 1:] = (1.0 + ratio) * np.eye(len(x)) - ratio * np.outer(along, along)
    return 0.5 * found


def _of_smooth_projection(span: Span, slack: Array, dual: Array) -> Array | None:
    """The same where the boundary is that of a function, `g(s) <= 0`.

    With normal n = g'(s), dual = -mu n and H = 1 + mu g''(s) it is H^-1 without its part along n.
    """
    if np.abs(dual).max() <= _RANK * max(1.0, np.abs(slack).max()):
        return None
    normal, curvature = _boundary(span, slack)
    if not (np.isfinite(normal).all() and np.isfinite(curvature).all()):
        return np.zeros((span.size, span.size))  # where the cone has an edge
    mu = float(np.linalg.norm(dual) / np.linalg.norm(normal))
    inverse = np.linalg.inv(np.eye(span.size) + mu * curvature)
    along = inverse @ normal
    return np.asarray(inverse - np.outer(along, along) / (normal @ along))


def _boundary(span: Span, s: Array) -> tuple[Array, Array]:
    """Gradient and matrix of second derivatives of the function that bounds a cone."""
    with np.errstate(all="ignore"):
        if span.kind is ConeKind.EXPONENTIAL:  # (r, q, p): q exp(r / q) - p
            r, q, _ = s
            ratio = r / q
            e = np.exp(ratio)
            normal = np.array([e, e * (1.0 - ratio), -1.0])
            bent = np.array([1.0, -ratio, 0.0])
            return normal, e / q * np.outer(bent, bent)
        p, q, r = s  # |r| - p^a q^(1 - a)
        a, power = span.exponent, p**span.exponent * q ** (1.0 - span.exponent)
        normal = np.array([-a * power / p, (a - 1.0) * power / q, np.sign(r)])
        bent = np.array([1.0 / p, -1.0 / q, 0.0])
        return normal, a * (1.0 - a) * power * np.outer(bent, bent)
