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
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

import numpy as np

from gdpnet import core
from gdpnet.ir.data import RuleData
from gdpnet.projection.residuals import ReturnedCheck
from gdpnet.solve.base import Answer, Array, Request
from gdpnet.solve.exact.linearisation import ExactLinearisation
from gdpnet.solve.exact.options import LOST
from gdpnet.solve.status import Status

_ROUNDS = 8
_ROUNDED = 32.0  # units in the last place that rounding a point may break of a row
_PRODUCTS = 64  # looked at for a sample, at most
_OUT_OF_REACH = 1e12  # a margin that nothing satisfies, relative to the row


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
    # What passed within a tolerance, of acceptance or of the search, was never solved to the last
    # digits: that comes before any margin.
    passed = answer.status[rest] == Status.SATISFIED
    passed |= (residuals.margin > _ROUNDED * check.eps * check.scale(rest)).any(1)
    margin = np.where(passed[:, None], 0.0, residuals.margin)
    tried = _Tried(rest, inside, first, answer.value[rest], margin)
    answer.y[rest] = inside[:, :d]  # which stays if nothing better is found
    holds = residuals.holds
    _take_over(request, answer, tried.of(holds))
    held, borrowed = [rest[holds]], []
    for some in _tightened(request, found, check, tried.of(~holds)):
        # Margins that another product asked for are more than this one needs.
        changed = (some.assignment != answer.assignment[some.samples]).any(1)
        changed &= (check.enforced(some.assignment) & (some.margin > 0.0)).any(1)
        borrowed.extend(some.samples[changed].tolist())
        held.append(some.samples)
        _take_over(request, answer, some)
    for sample in borrowed:
        for nearer in _by_products(request, found, check, sample, float(answer.value[sample])):
            _take_over(request, answer, nearer)
    done = np.concatenate(held)
    return answer, done, np.where(np.isin(rest, done), 0.0, residuals.size)


def _by_products(
    request: Request, found: ExactLinearisation, check: ReturnedCheck, sample: int, best: float
) -> Iterator[_Tried]:
    """Points of one sample that hold, each nearer than the one before and than `best`.

    Products of disjuncts are looked at in the order of their distance, each tightened by itself.
    What is left without one of them falls into parts: the first k choices as there, the next one
    another. Disjuncts are left out by rows that nothing can satisfy.
    """
    samples, choices = np.array([sample]), _choices(request.rules.data)
    scale, width = check.scale(samples), len(request.rules.data.booleans)
    true_rows = [list(boolean.true_rows) for boolean in request.rules.data.booleans]

    def without(left_out: frozenset[int]) -> _Tried:
        margin = np.zeros_like(scale)
        for k in left_out:
            margin[:, true_rows[k]] = _OUT_OF_REACH * scale[:, true_rows[k]]
        return _Tried(samples, np.empty((1, 0)), np.zeros((1, width)), np.empty(1), margin)

    order = count()  # of equally near ones the first
    waiting: list[tuple[float, int, frozenset[int]]] = [(0.0, next(order), frozenset())]
    for _ in range(_PRODUCTS):
        if not waiting or waiting[0][0] >= best:
            return
        left_out = heappop(waiting)[2]
        nearest = _searched(request, found, without(left_out))
        if not len(nearest.samples) or nearest.value[0] >= best:
            continue
        chosen = [next((k for k in some if nearest.assignment[0, k] == 1), -1) for some in choices]
        others = [
            frozenset(some) - {k} if k >= 0 else frozenset[int]()
            for some, k in zip(choices, chosen, strict=True)
        ]
        for point in _tightened(request, found, check, without(left_out.union(*others))):
            if point.samples.size and point.value[0] < best:
                best = float(point.value[0])
                yield point
        for k, rest in zip(chosen, others, strict=True):
            if rest:
                bound = float(nearest.value[0])
                heappush(waiting, (bound, next(order), left_out | {k}))
            left_out |= rest


def _choices(data: RuleData) -> list[list[int]]:
    """Disjuncts of each rule that applies whatever others say, and can be left out by its rows."""
    clauses = [c.literals for c in data.clauses if c.guard < 0 and min(c.literals, default=0) > 0]
    choices = [[k - 1 for k in literals] for literals in clauses]
    return [some for some in choices if all(data.booleans[k].true_rows for k in some)]


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
    solved = found.engine.project(tightened, yhat, search._replace(fine=True))
    # Rounding is forgiven where nothing is found else: margins drown in it.
    for forgiving in (search, search._replace(lost=LOST)):
        failed = np.flatnonzero(~_is_found(solved.status))
        if not len(failed):
            break
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
