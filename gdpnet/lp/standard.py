"""Conic programs in the standard form of interior-point solvers.

    minimise    v P v / 2 + q v
    subject to  A v + s = b,  s in a product of cones: zero, nonnegative, then the others

Where a number of the program stands in A and b is found once; the numbers of a batch are then two
sparse products.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gdpnet.lp.conic import Cone, ConeKind, ConicStructure, part_of_no_cone

Array = np.ndarray


@dataclass(frozen=True)
class Span:
    """Rows of the standard form that are one cone.

    Attributes:
        kind: of the cone; None for plain rows.
        first: its first row.
        size: its rows.
        exponent: of a power cone.
    """

    kind: ConeKind | None
    first: int
    size: int
    exponent: float = 0.5


class StandardForm:
    """Where numbers of a program stand in its standard form.

    A rotated cone is written as a second-order one: `(p + q, p - q, 2 r)`.

    Args:
        structure: the program.

    Attributes:
        equal, less: number of rows in the zero and the nonnegative cone.
        cones: the other cones, in order; rotated ones as second-order ones.
        indptr, indices: columns of A, compressed.
        rows: number of rows.
    """

    def __init__(self, structure: ConicStructure) -> None:
        from scipy.sparse import coo_array  # late: its import takes a while

        self.structure = structure
        count, n = len(structure.start) - 1, len(structure.lower)
        linear = part_of_no_cone(count, structure.cones)
        fixed = np.flatnonzero(structure.lower == structure.upper)
        apart = structure.lower != structure.upper
        low = np.flatnonzero(np.isfinite(structure.lower) & apart)
        high = np.flatnonzero(np.isfinite(structure.upper) & apart)
        equalities = np.flatnonzero(linear & structure.equality)
        less = np.flatnonzero(linear & ~structure.equality)
        self.equal = len(equalities) + len(fixed)
        self.less = len(less) + len(low) + len(high)
        # (row of the standard form, row of the program, factor)
        places = [(r, int(i), 1.0) for r, i in enumerate(equalities)]
        places += [(self.equal + r, int(i), 1.0) for r, i in enumerate(less)]
        at = self.equal + self.less
        self.cones: tuple[Span, ...] = ()
        for cone in structure.cones:
            places += _placed(cone, at)
            kind = ConeKind.SECOND_ORDER if cone.kind is ConeKind.ROTATED else cone.kind
            self.cones += (Span(kind, at, cone.size, cone.exponent),)
            at += cone.size
        self.rows = at
        target = np.array([t for t, _, _ in places], dtype=np.int64)
        source = np.array([s for _, s, _ in places], dtype=np.int64)
        factor = np.array([f for _, _, f in places])
        self._right = coo_array((factor, (target, source)), shape=(at, count)).tocsr()
        self._fixed_right = np.zeros(at)
        bounds: list[tuple[int, int, float]] = []
        row = len(equalities)
        for columns, side, sign in (
            (fixed, structure.upper, 1.0),
            (low, structure.lower, -1.0),
            (high, structure.upper, 1.0),
        ):
            if columns is low:
                row = self.equal + len(less)
            for j in columns.tolist():
                bounds.append((row, j, sign))
                self._fixed_right[row] = sign * side[j]
                row += 1
        # Entries: which number of the program goes where, and the ones of the bounds.
        length = np.diff(structure.start)[source]
        entry = np.concatenate(
            [np.zeros(0, dtype=np.int64)]
            + [np.arange(structure.start[s], structure.start[s + 1]) for s in source.tolist()]
        )
        to_row = np.repeat(target, length)
        to_factor = np.repeat(factor, length)
        rows = np.concatenate([to_row, [b[0] for b in bounds]]).astype(np.int64)
        columns = np.concatenate([structure.column[entry], [b[1] for b in bounds]]).astype(np.int64)
        place, which = np.unique(columns * at + rows, return_inverse=True)
        self.indices, column_of = place % at if at else place, place // max(at, 1)
        self.indptr = np.searchsorted(column_of, np.arange(n + 1))
        self.column_of = column_of
        shape = (len(place), len(structure.column))
        self._entries = coo_array((to_factor, (which[: len(entry)], entry)), shape=shape).tocsr()
        self._fixed_entries = np.zeros(len(place))
        np.add.at(self._fixed_entries, which[len(entry) :], [b[2] for b in bounds])

    def matrices(self, value: Array, bound: Array) -> tuple[Array, Array]:
        """Entries of A, `batch x entries`, and b, `batch x rows`.

        Args:
            value: of the program's entries, `batch x entries`.
            bound: right sides of its rows, `batch x rows`.
        """
        entries = (self._entries @ value.T).T + self._fixed_entries
        right = (self._right @ bound.T).T + self._fixed_right
        return np.ascontiguousarray(entries), np.ascontiguousarray(right)

    def pull_back(self, to_entries: Array, to_right: Array) -> tuple[Array, Array]:
        """Gradients with respect to the program's entries and right sides.

        Args:
            to_entries: gradient with respect to the entries of A, `batch x entries`.
            to_right: with respect to b, `batch x rows`.
        """
        return (self._entries.T @ to_entries.T).T, (self._right.T @ to_right.T).T


def _placed(cone: Cone, at: int) -> list[tuple[int, int, float]]:
    """Rows of the standard form, rows of the program and factors of a cone; `s = a v - bound`."""
    first = cone.first
    if cone.kind is not ConeKind.ROTATED:
        # Solvers order the exponential cone (r, q, p).
        order = range(cone.size)
        if cone.kind is ConeKind.EXPONENTIAL:
            order = range(cone.size - 1, -1, -1)
        return [(at + k, first + i, -1.0) for k, i in enumerate(order)]
    halves = [(at, first, -1.0), (at, first + 1, -1.0), (at + 1, first, -1.0)]
    halves.append((at + 1, first + 1, 1.0))
    return halves + [(at + k, first + k, -2.0) for k in range(2, cone.size)]
