r"""The path that interior-point methods follow, and the system of equations along it.

    minimise    z P z / 2 + q z    subject to    A z + s = b, s in K

A step from a point inside, with the scaling W of Nesterov and Todd there, solves

    P dz + A' dv = first,    A dz - W W dv = second

On the path s = W W v, and the same matrix gives the derivative: `first = -dq - dA' v` and
`second = db - dA z`. Numbers are floats or decimals.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from gdpnet.lp._cones import Cones, Scaling
from gdpnet.lp.conic import ConeKind
from gdpnet.lp.standard import StandardForm

Array = np.ndarray

_APART = Decimal("1e-80")  # what equations that depend on each other are kept apart by


def decimals(numbers: Array) -> Array:
    """The same numbers as decimals, to their last digit."""
    found = np.empty(np.shape(numbers), dtype=object)
    found.ravel()[:] = [Decimal(v) for v in np.asarray(numbers, dtype=float).ravel().tolist()]
    return found


def has_scaling(form: StandardForm) -> bool:
    """Whether every cone of a program has the scaling of Nesterov and Todd."""
    return all(span.kind is ConeKind.SECOND_ORDER for span in form.cones)


def dense(form: StandardForm, entries: Array) -> Array:
    """A, `rows x n`."""
    found = np.zeros((form.rows, len(form.indptr) - 1))
    found[form.indices, form.column_of] = entries
    return found


class CentralPath:
    """A program, and a point inside its cones.

    Args:
        form: the program.
        numbers: dense A, b, q and the diagonal of P, all of them floats or decimals.
        point: z, s and v.

    Attributes:
        z, s, v: the point, slacks and multipliers of its rows.
        cones: K.
        scaling: W at the point.
    """

    def __init__(
        self, form: StandardForm, numbers: Sequence[Array], point: Sequence[Array]
    ) -> None:
        self._equal = slice(0, form.equal)
        self.cones = self._cones(form)
        self._a, self._b, self._q, self._p = numbers
        self.z, self.s, self.v = point
        self._renew()

    @classmethod
    def beginning(cls, form: StandardForm, numbers: Sequence[Array], size: Any) -> CentralPath:
        """A program at the middle of its cones.

        Args:
            form: the program.
            numbers: dense A, b, q and the diagonal of P.
            size: of slacks and multipliers.
        """
        one = CentralPath._cones(form).one * size
        return cls(form, numbers, (numbers[2] * 0, one, one))

    @staticmethod
    def _cones(form: StandardForm) -> Cones:
        return Cones(form.equal, form.less, [span.size for span in form.cones])

    @property
    def value(self) -> Any:
        """What is minimised."""
        return (self._p * self.z * self.z).sum() / 2 + self._q @ self.z

    @property
    def gap(self) -> Any:
        """Slack times multiplier, of a cone."""
        return self.s @ self.v / max(1, self.cones.degree)

    @property
    def aside(self) -> Any:
        """How far from the path the point is, relative to the gap; 0 on it."""
        middle = self.scaling.times(self.v)
        off = self.cones.product(middle, middle) / self.gap - self.cones.one
        return np.abs(off).max(initial=0)

    def proves_empty(self, reach: Any) -> bool:
        """Whether the multipliers prove that no z with numbers of a sum up to a reach is feasible.

        With `A' v = 0` a feasible z would have `0 <= v s = v b`.
        """
        return bool(np.abs(self._a.T @ self.v).max(initial=0) * reach < -(self._b @ self.v))

    def broken(self) -> tuple[Array, Array]:
        """By how much the conditions of optimality in q, and the rows, are missed."""
        dual = self._p * self.z + self._q + self._a.T @ self.v
        return dual, self._a @ self.z + self.s - self._b

    def move(self, dz: Array, ds: Array, dv: Array) -> None:
        """Go to another point inside."""
        self.z, self.s, self.v = self.z + dz, self.s + ds, self.v + dv
        self._renew()

    def to_the_end(self) -> tuple[Array, Array, Array]:
        """The changes of z, s and v by which, to first order, no gap is left."""
        return self.direction(*self.broken(), -self.s)

    def direction(self, dual: Array, primal: Array, moved: Array) -> tuple[Array, Array, Array]:
        """The changes that mend what is broken, with `ds + W W dv = moved`.

        Args:
            dual: what conditions in q are missed by, or a part of it.
            primal: likewise of the rows.
            moved: of each row.
        """
        dz, dv = self.solved(-dual, -primal - moved)
        return dz, moved - self.scaling.times(self.scaling.times(dv)), dv

    def solved(self, first: Array, second: Array) -> tuple[Array, Array]:
        """Dz and dv of the system."""
        n, over = len(self.z), self.scaling.over
        # Squares of equations curve columns that stand in nothing else, and change no solution.
        equal = self._equal
        right = first + self._a.T @ over(over(second)) + self._a[equal].T @ second[equal]
        found = _substituted(self._factors, np.concatenate([right, second[equal]]))
        dv = over(over(self._a @ found[:n] - second))
        dv[equal] = found[n:]
        return found[:n], dv

    def _renew(self) -> None:
        """The scaling of the point, and the factors of the system."""
        self.scaling = Scaling(self.cones, self.s, self.v)
        n, equations = len(self.z), self._a[self._equal]
        system = np.zeros((n + len(equations),) * 2, dtype=self._a.dtype)
        system[:n, :n] = self.scaling.gram(self._a) + equations.T @ equations
        system[np.arange(n), np.arange(n)] += self._p
        system[n:, :n], system[:n, n:] = equations, equations.T
        last = np.arange(n, len(system))
        system[last, last] = np.array([-_APART] * len(equations), dtype=system.dtype)
        self._factors = _factored(system)


def _factored(system: Array) -> Array:
    """L below the diagonal and D on it, of `L D L'`: any quasidefinite matrix has them."""
    found = system.copy()
    for k in range(len(found)):
        filled = k + 1 + np.flatnonzero(found[k + 1 :, k] != 0)
        column = found[filled, k]
        share = column / found[k, k]
        found[np.ix_(filled, filled)] -= np.outer(share, column)
        found[filled, k] = share
    return found


def _substituted(factors: Array, right: Array) -> Array:
    found = right.copy()
    for k in range(len(found)):
        found[k + 1 :] -= factors[k + 1 :, k] * found[k]
    found = found / np.diag(factors)
    for k in reversed(range(len(found))):
        found[k] -= factors[k + 1 :, k] @ found[k + 1 :]
    return found
