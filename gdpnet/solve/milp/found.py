"""What is found for a sample, and known of it before: points that satisfy the rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gdpnet.ir.semantics import enforced
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.solve.base import Array
from gdpnet.solve.milp.disjunctive import DisjunctiveAnswer
from gdpnet.solve.milp.sample import RulesAtSample
from gdpnet.solve.status import Status


@dataclass(frozen=True)
class Found:
    """What was found for one sample.

    Attributes:
        status: what became of it.
        y: outputs, `d`.
        value: proved lower bound on the distance, in l2 its square, and what is paid.
        literals: literals that are true at y.
        nodes: programs solved.
        point: y and the auxiliaries, where it is the nearest in the rows that were chosen.
    """

    status: Status
    y: Array
    value: float
    literals: frozenset[int]
    nodes: int
    point: Array | None = None


class Incumbent(NamedTuple):
    """A point that is known to satisfy the rules.

    Attributes:
        y: outputs, `d`.
        distance: of y, in l2 its square, and what is paid.
        literals: literals that are true at y.
        point: y and the auxiliaries, where they are known.
    """

    y: Array
    distance: float
    literals: frozenset[int]
    point: Array | None = None


def literals_of(assignment: Array) -> frozenset[int]:
    """Literals of the booleans that are known to be true or false."""
    return frozenset(int(assignment[k]) * (int(k) + 1) for k in np.flatnonzero(assignment))


def nothing(yhat: Array, nodes: int) -> Found:
    """Nothing was found and nothing excluded: the prediction passes, at an infinite distance."""
    return Found(Status.UNSOLVED, yhat, 0.0, frozenset(), nodes)


def limited(known: Incumbent | None, yhat: Array) -> Found:
    """What there is when the time of the batch is over before a sample has begun."""
    if known is None:
        return nothing(yhat, 0)
    return Found(Status.LIMIT, known.y, 0.0, known.literals, 0)


def nearer(one: Incumbent | None, other: Incumbent | None) -> Incumbent | None:
    """The nearer of two that may be missing."""
    if one is None or other is None:
        return one or other
    return one if one.distance <= other.distance else other


def outputs_of(sample: RulesAtSample, answer: DisjunctiveAnswer) -> Array:
    """The outputs of an answer, within their bounds and whole where they must be."""
    assert answer.point is not None
    d = sample.rules.data.outputs
    y = np.clip(answer.point[:d], sample.lower[:d], sample.upper[:d])
    return np.where(sample.integer[:d], np.rint(y), y) + 0.0


def holds(sample: RulesAtSample, answer: DisjunctiveAnswer, y: Array) -> bool:
    """Whether the point, auxiliaries included, satisfies the rows that were chosen."""
    assert answer.point is not None
    z = answer.point[: len(sample.lower)].copy()
    z[: len(y)] = y
    data = sample.rules.data
    rows = [*data.global_rows, *enforced(data.booleans, answer.literals)]
    excess = sample.rows.take(rows).times(z) - sample.bound[rows]
    excess = np.where(sample.equality[rows], np.abs(excess), excess)
    return bool((excess <= TOLERANCES.holds * sample.size[rows]).all())
