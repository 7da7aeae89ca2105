r"""Quadratic programs by a dual active-set method, for numbers of very different size.

    minimise    v P v / 2 + q v    subject to    A v = b in the first rows, A v <= b in the others

An interior-point method stops where its gap is small beside what is minimised. With numbers of 1e6
that is large beside columns of size 1, and which rows are tight is guessed. Here rows are brought
in one by one, each time the one that is broken most, and the tight ones are known in the end.

It is the method of Goldfarb and Idnani (1983), on what the equations leave free, in coordinates in
which P is the identity.
"""

from __future__ import annotations

import numpy as np

from gdpnet.lp.conic import ConicSolution
from gdpnet.lp.program import Outcome

Array = np.ndarray

_ROUNDS = 50  # times rows that are brought in, at most
_BROKEN = 1e-12  # by which a row counts as broken, relative to the point
_NOTHING = 1e-9  # length of what tight rows leave of another one of length 1, if it depends on them
_RANK = 1e-10  # of the equations, relative
_MENDED = 20  # rows that are exchanged at the end, at most
_HOLDS = 1e-9  # of rows and multipliers at the end, relative to their terms


def solve(
    square: Array, cost: Array, matrix: Array, right: Array, equal: int
) -> ConicSolution | None:
    """The solution with the rows that hold it; None where none is found and proved.

    Args:
        square: diagonal of P, `n`, positive along what the equations leave free.
        cost: q, `n`.
        matrix: A, `rows x n`, dense.
        right: b, `rows`.
        equal: how many rows are equations.
    """
    try:
        tight = _tight_rows(square, cost, matrix, right, equal)
        held = None if tight is None else _mended(square, cost, matrix, right, equal, tight)
    except np.linalg.LinAlgError:
        return None
    if held is None:
        return None
    tight, point, dual = held
    multiplier = np.zeros(len(right))
    multiplier[tight] = dual
    multiplier[equal:] = np.maximum(multiplier[equal:], 0.0)
    # What is not tight does not look like it.
    slack = np.maximum(right - matrix @ point, np.finfo(float).tiny)
    slack[tight] = 0.0
    value = float(point @ (0.5 * square * point + cost))
    return ConicSolution(Outcome.OPTIMAL, point, value, slack, multiplier)


def _mended(
    square: Array, cost: Array, matrix: Array, right: Array, equal: int, tight: list[int]
) -> tuple[list[int], Array, Array] | None:
    """Tight rows, their point and their multipliers, all right; None where that does not come out.

    The search goes by a point that it moves, and rounding may have cost it a row. Here the point is
    solved for each time.
    """
    equation = np.arange(len(right)) < equal
    for _ in range(_MENDED):
        point, dual = _held(square, cost, matrix[tight], right[tight])
        slack = right - matrix @ point
        size = np.maximum(1.0, np.abs(matrix) @ np.abs(point) + np.abs(right))
        over = np.where(equation, np.abs(slack), -slack) / size
        pull = dual[equal:] / max(1.0, float(np.abs(dual).max(initial=0.0)))
        if len(pull) and pull.min() < -_HOLDS:
            del tight[equal + int(pull.argmin())]
        elif over.max(initial=0.0) > _HOLDS:
            worst = int(over.argmax())
            if worst in tight:
                return None
            tight = [*tight, worst]
        else:
            return tight, point, dual
    return None


def _tight_rows(
    square: Array, cost: Array, matrix: Array, right: Array, equal: int
) -> list[int] | None:
    """The equations, and rows independent of each other that hold the solution."""
    start, free = _solutions(matrix[:equal], right[:equal])
    lower = np.linalg.cholesky(free.T @ (square[:, None] * free))
    first = -np.linalg.solve(lower, free.T @ (square * start + cost))
    rows = np.linalg.solve(lower, (matrix[equal:] @ free).T).T
    limit = right[equal:] - matrix[equal:] @ start
    length = np.linalg.norm(rows, axis=1)
    implied = length <= _BROKEN * np.abs(matrix[equal:]).max(1, initial=0.0)  # by the equations
    length[implied] = 1.0
    rows, limit = rows / length[:, None], limit / length
    w, tight, multiplier = first, list[int](), np.zeros(0)
    for _ in range(_ROUNDS * max(1, len(rows))):
        over = np.where(implied, -np.inf, rows @ w - limit)
        over[tight] = -np.inf
        worst = int(over.argmax()) if len(over) else -1
        if worst < 0 or not over[worst] > _BROKEN * max(1.0, np.abs(w).max(initial=0.0)):
            return [*range(equal), *(equal + i for i in tight)]
        brought = _bring_in(rows, limit, worst, w, tight, multiplier)
        if brought is None:
            return None
        w, tight, multiplier = brought
    return None


def _solutions(equations: Array, right: Array) -> tuple[Array, Array]:
    """One solution of equations, and a basis of what they leave free."""
    left, singular, basis = np.linalg.svd(equations, full_matrices=True)
    rank = int(np.count_nonzero(singular > _RANK * singular.max(initial=0.0)))
    start = basis[:rank].T @ ((left[:, :rank].T @ right) / singular[:rank])
    return start, basis[rank:].T


def _bring_in(
    rows: Array, limit: Array, row: int, w: Array, tight: list[int], multiplier: Array
) -> tuple[Array, list[int], Array] | None:
    """The point that a broken row and those that stay tight hold; None where there is none.

    Tight rows whose multipliers would become negative on the way are let go.
    """
    tight, normal, own = list(tight), rows[row], 0.0
    for _ in range(len(tight) + 1):
        share, step = np.zeros(0), normal
        if tight:
            basis, triangle = np.linalg.qr(rows[tight].T)
            share = np.linalg.solve(triangle, basis.T @ normal)
            step = normal - basis @ (basis.T @ normal)
            step -= basis @ (basis.T @ step)  # once more, for the digits that were lost
        length = float(step @ step)
        falls = share > _BROKEN
        ratio = np.full(len(tight), np.inf)
        ratio[falls] = multiplier[falls] / share[falls]
        leaving = int(ratio.argmin()) if len(ratio) else -1
        until = float(ratio[leaving]) if leaving >= 0 else np.inf
        whole = float((normal @ w - limit[row]) / length) if length > _NOTHING**2 else np.inf
        by = min(until, whole)
        if not np.isfinite(by):
            return None
        if np.isfinite(whole):
            w = w - by * step
        multiplier, own = multiplier - by * share, own + by
        if whole <= until:
            return w, [*tight, row], np.append(multiplier, own)
        del tight[leaving]
        multiplier = np.delete(multiplier, leaving)
    return None


def _held(square: Array, cost: Array, rows: Array, right: Array) -> tuple[Array, Array]:
    """The point that tight rows hold and their multipliers, from the conditions of optimality."""
    n, m = len(cost), len(right)
    system = np.zeros((n + m, n + m))
    system[np.arange(n), np.arange(n)] = square
    system[:n, n:], system[n:, :n] = rows.T, rows
    target = np.concatenate([-cost, right])
    scale = np.ones(n + m)
    for _ in range(4):  # rows and columns alike, of largest entry about 1
        scale /= np.sqrt(np.abs(system * scale * scale[:, None]).max(1))
    scaled = system * scale * scale[:, None]
    found = np.zeros(n + m)
    for _ in range(3):
        missing = target - np.asarray(system @ found.astype(np.longdouble), dtype=float)
        found += scale * np.linalg.lstsq(scaled, scale * missing, rcond=_RANK * _RANK)[0]
    return found[:n], found[n:]
