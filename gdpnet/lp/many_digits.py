r"""Conic programs to many digits, for numbers of very different size.

Squares of 1e12 beside a weight of 1 leave an interior-point method in double precision no digits:
what is tight is guessed, and with it the derivative. Here the same kind of method, with Mehrotra's
steps, works on decimal numbers, down to a gap at which nothing is to be guessed. It is a thousand
times slower, and so for small programs only.

The derivative is that of the path at its end, where no row has to be chosen. Where it is not unique
it is one of those there are.
"""

from __future__ import annotations

from decimal import Decimal, DecimalException, localcontext

import numpy as np

from gdpnet.lp.central_path import CentralPath, decimals, dense
from gdpnet.lp.conic import ConicSolution
from gdpnet.lp.program import Outcome
from gdpnet.lp.standard import StandardForm

Array = np.ndarray

_DIGITS = 150
_ROUNDS = 250
_ASIDE = Decimal("1e-15")  # of the path that the end may be, relative to the gap
_BEGINNING = Decimal("1e14")  # slacks and multipliers there, relative to the numbers
_GAP = Decimal("1e-30")  # of a cone, and what an equation may miss, relative to the numbers
_REACH = Decimal("1e20")  # no sum of a solution's numbers is more
_SHORT = Decimal("0.99")  # of the way to the boundary
_MOST = 90  # columns and equations together: the work goes with the third power


def solve(
    form: StandardForm, entries: Array, right: Array, cost: Array, square: Array
) -> ConicSolution | None:
    """The solution, or that there is none; None where neither is found or a program is too large.

    It is for half-lines and second-order cones.

    Args:
        form: the program.
        entries: of A.
        right: b.
        cost: q, `n`.
        square: diagonal of P, `n`.
    """
    if len(cost) + form.equal > _MOST:
        return None
    with localcontext() as context:
        context.prec = _DIGITS
        size = Decimal(max(1.0, float(np.abs(right).max()), float(np.abs(cost).max())))
        numbers = [decimals(v) for v in (dense(form, entries), right, cost, square)]
        try:
            path = _end_of_path(form, numbers, size)
        except DecimalException:  # no point of the interior: the numbers have left all sense
            return None
        if path is None:
            return None
        if path.proves_empty(_REACH):
            return ConicSolution(Outcome.INFEASIBLE)
        point, slack, dual = (np.array(part, dtype=float) for part in (path.z, path.s, path.v))
        exact = ManyDigits(form, path)
        return ConicSolution(Outcome.OPTIMAL, point, float(path.value), slack, dual, exact)


class ManyDigits:
    """A solution in decimal numbers.

    Args:
        form: the program.
        path: at its end.
    """

    def __init__(self, form: StandardForm, path: CentralPath) -> None:
        self._form, self._path = form, path

    def adjoint(self, along: Array) -> tuple[Array, Array, Array]:
        """Gradients with respect to costs, entries of A and right sides.

        Args:
            along: gradient with respect to the columns, `n`.
        """
        row, column, path = self._form.indices, self._form.column_of, self._path
        with localcontext() as context:
            context.prec = _DIGITS
            w, r = path.solved(decimals(along), path.v * 0)
            found = -w, -(path.v[row] * w[column] + r[row] * path.z[column]), r
            to_cost, to_entries, to_right = (np.array(part, dtype=float) for part in found)
        return to_cost, to_entries, to_right


def _end_of_path(form: StandardForm, numbers: list[Array], size: Decimal) -> CentralPath | None:
    """The path of a program, followed to its end or to a proof that there is none.

    None where neither is reached.
    """
    path = CentralPath.beginning(form, numbers, size * _BEGINNING)
    for _ in range(_ROUNDS):
        off = max(abs(v) for part in path.broken() for v in part)
        is_end = max(path.gap, off) <= _GAP * size
        if (is_end and path.aside <= _ASIDE) or path.proves_empty(_REACH):
            return path
        _go_on(path, centring=is_end)
    return None


def _go_on(path: CentralPath, centring: bool) -> None:
    """A step along the path; or only to the path, at the same gap."""
    cones, scaling, (dual, primal) = path.cones, path.scaling, path.broken()
    middle = scaling.times(path.v)
    wanted, share = -cones.product(middle, middle), Decimal(1)
    if not centring:
        _, ds, dv = path.to_the_end()
        share = (1 - min(cones.reach(path.s, ds), cones.reach(path.v, dv))) ** 3
        wanted = wanted - cones.product(scaling.over(ds), scaling.times(dv))
        dual, primal = dual * (1 - share), primal * (1 - share)
    wanted = cones.divided(wanted + cones.one * (share * path.gap), middle)
    dz, ds, dv = path.direction(dual, primal, scaling.times(wanted))
    far = min(cones.reach(path.s, ds), cones.reach(path.v, dv))
    far = far if far == 1 else _SHORT * far
    path.move(far * dz, far * ds, far * dv)
