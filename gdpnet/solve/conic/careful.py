"""What Clarabel's digits do not decide: the same program by other means."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gdpnet.lp import active_set, many_digits
from gdpnet.lp.central_path import dense, has_scaling
from gdpnet.lp.conic import ConicSolution
from gdpnet.lp.decided import is_decided
from gdpnet.lp.program import Outcome
from gdpnet.lp.standard import StandardForm

Array = np.ndarray

_LARGE = 1e3  # beyond, what is right to twelve digits of the cost is not in columns of size 1


def careful(
    form: StandardForm, given: tuple[Array, Array, Array, Array], found: ConicSolution
) -> ConicSolution:
    """The solution; a better one where Clarabel failed, or numbers are too large for it.

    By tight rows where there are no cones but half-lines; then, where what was found leaves open
    what is tight, in more digits. What stays open is marked as doubtful. Exponential and power
    cones are not looked at.

    Args:
        form: the program.
        given: entries of A, b, q and the diagonal of P.
        found: what Clarabel found.
    """
    small = found.point is not None and np.abs(found.point).max(initial=0.0) <= _LARGE
    if not form.cones:
        if small or found.outcome is Outcome.INFEASIBLE:
            return found
        entries, right, cost, square = given
        by_rows = active_set.solve(square, cost, dense(form, entries), right, form.equal)
        if by_rows is not None:
            return by_rows
    uneven = _uneven(form, given[0])
    if not has_scaling(form) or (small and not uneven):
        return found
    if found.point is None:
        if not uneven and found.outcome in (Outcome.INFEASIBLE, Outcome.UNBOUNDED):
            return found
    elif is_decided(form, *given, found):
        return found
    return many_digits.solve(form, *given) or replace(found, doubtful=True)


def _uneven(form: StandardForm, entries: Array) -> bool:
    """Whether numbers of one row are of very different size."""
    size = np.abs(entries)
    largest, least = np.zeros(form.rows), np.full(form.rows, np.inf)
    np.maximum.at(largest, form.indices, size)
    np.minimum.at(least, form.indices, np.where(size > 0.0, size, np.inf))
    return bool((largest > _LARGE * least).any())
