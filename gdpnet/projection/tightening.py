"""Samples projected again with rows tightened, until the numbers that are returned hold.

The rows that the rounded point breaks are tightened by what they were broken, and half a unit in
the last place of their terms,

    eps / 2 (|b| + sum |a_j y_j|),

until it holds. The distance grows by at most the sum of the tight rows' multipliers times these
margins, unless the nearest set has no inside at all (`c <= 0.4` and `c >= 0.4`, and no number of
the caller's type is 0.4): then the nearest set that has one is taken. Rows of whole numbers need no
margin, and equalities leave no room for one: their columns are rounded to a grid so coarse that
sums are exact, all but one, which is computed from the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gdpnet import core
from gdpnet.projection.residuals import ReturnedCheck
from gdpnet.solve.base import Answer, Array, Request
from gdpnet.solve.exact.linearisation import ExactLinearisation
from gdpnet.solve.exact.options import LOST
from gdpnet.solve.status import Status

_ROUNDS = 8
_ASIDE = 1e-6  # a margin for disjuncts that hold within a tolerance only, relative to their rows


class _Tried(NamedTuple):
    """Points of the search that are to hold as they are returned.

    Attributes:
        samples: which ones, (k,).
        z: all columns, (k, n).
        assignment: truth values, (k, booleans).
        value: what is minimised, (k,).
        margin: by which rows were tightened, (k, m).
    """

    samples: Array
    z: Array
    assignment: Array
    value: Array
    margin: Array

    def of(self, which: Array) -> _Tried:
        return _Tried(*(array[which] for array in self))


def enforce(
    request: Request,
    answer: Answer,
    found: ExactLinearisation,
    rest: Array,
    check: ReturnedCheck,
) -> tuple[Answer, Array, Array]:
    """Make some answers of the exact engine hold on the numbers that are returned.

    Returns:
        The answer, the samples that hold, and by how much the others are broken, (len(rest),).
    """
    d = request.yhat.shape[1]
    answer = answer.replace(y=answer.y.copy())
    z, first = found.solved.z[rest].copy(), answer.assignment[rest]
    z[:, :d] = answer.y[rest]
    inside, residuals = check.mended(rest, check.rounded(z), first)
    # What passed within a tolerance was never solved: that comes before any margin.
    passed = (answer.status[rest] == Status.SATISFIED)[:, None]
    margin = np.where(passed, 0.0, residuals.margin)
    tried = _Tried(rest, inside, first, answer.value[rest], margin)
    answer.y[rest] = inside[:, :d]  # which stays if nothing better is found
    holds = residuals.holds
    _take_over(request, answer, tried.of(holds))
    held, borrowed = [rest[holds]], []
    for some in _tightened(request, found, check, tried.of(~holds)):
        # Margins that another disjunct asked for are more than this one needs: once more without
        # them, that other one being out of reach.
        enforced, given = check.enforced(some.assignment), some.margin > 0.0
        changed = (some.assignment != answer.assignment[some.samples]).any(1)
        changed &= (enforced & given).any(1)
        margin = np.where(given & ~enforced, _ASIDE * check.scale(some.samples), 0.0)
        borrowed.append(some._replace(margin=margin).of(changed))
        held.append(some.samples)
        _take_over(request, answer, some)
    for some in borrowed:
        for again in _tightened(request, found, check, some):
            _take_over(request, answer, again.of(again.value < answer.value[again.samples]))
    done = np.concatenate(held)
    return answer, done, np.where(np.isin(rest, done), 0.0, residuals.size)


def _tightened(
    request: Request, found: ExactLinearisation, check: ReturnedCheck, tried: _Tried
) -> Iterator[_Tried]:
    """Points that hold, of samples searched again with margins that grow until they do."""
    for _ in range(_ROUNDS):
        if not len(tried.samples):
            return
        tried = _searched(request, found, tried)
        rounded = check.rounded(tried.z)
        inside, residuals = check.mended(tried.samples, rounded, tried.assignment)
        holds = residuals.holds
        yield tried._replace(z=inside).of(holds)
        tried = tried._replace(margin=tried.margin + residuals.margin).of(~holds)


def _searched(request: Request, found: ExactLinearisation, tried: _Tried) -> _Tried:
    """The nearest points with the margins given; those that have none are left out."""
    instance, yhat = found.instance.take(tried.samples), request.yhat[tried.samples]
    tightened = instance._replace(bound=instance.bound - tried.margin)
    search = found.search._replace(tolerance=0.0)
    solved = found.engine.project(tightened, yhat, search)
    failed = np.flatnonzero(~_is_found(solved.status))
    if len(failed):  # rounding is forgiven where nothing is found else: margins drown in it
        forgiving = search._replace(lost=LOST)
        again = found.engine.project(tightened.take(failed), yhat[failed], forgiving)
        for name in ("z", "assignment", "distance", "status"):
            getattr(solved, name)[failed] = getattr(again, name)
    some = _is_found(solved.status)
    points = solved.z[some], solved.assignment[some], solved.distance[some]
    return _Tried(tried.samples[some], *points, tried.margin[some])


def _is_found(status: Array) -> Array:
    return np.asarray((status == core.SOLVED) | (status == core.ACCEPTED_AS_IS))


def _take_over(request: Request, answer: Answer, held: _Tried) -> None:
    """Points that hold become the answer."""
    own, yhat = held.samples, request.yhat[held.samples]
    y = held.z[:, : yhat.shape[1]]
    answer.y[own], answer.assignment[own], answer.value[own] = y, held.assignment, held.value
    moved = (y != yhat).any(1)
    settled = answer.status[own] != Status.LIMIT
    answer.status[own[moved & settled]] = Status.PROJECTED
