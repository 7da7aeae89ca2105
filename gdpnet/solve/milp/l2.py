"""The l2-nearest point of a sample, by mixed-integer linear programs: outer approximation.

Squared distances are there by tangents (`squares`), so the least value of a program is a bound. The
disjuncts that it chooses are fixed, and the nearest point in them is found by the core, exactly: an
incumbent. Tangents at both points join the program, until bound and incumbent meet. At the nearest
point of some disjuncts the tangents leave nothing nearer in them, so no choice is met twice in vain
(Duran and Grossmann, 1986).

Everything is measured by the first incumbent, which costs 1: what programs lose by their
tolerances is relative to it.
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np

from gdpnet.lp import highs
from gdpnet.lp.clock import Clock
from gdpnet.lp.options import LINEAR
from gdpnet.lp.persistent import PersistentHighs
from gdpnet.lp.program import Outcome, Solution, Solver
from gdpnet.solve.base import Array, Settings
from gdpnet.solve.milp import l1
from gdpnet.solve.milp.chosen import nearest_in_chosen
from gdpnet.solve.milp.found import Found, Incumbent, nearer, nothing
from gdpnet.solve.milp.sample import RulesAtSample
from gdpnet.solve.milp.started import nearest_literals
from gdpnet.solve.milp.written import Written
from gdpnet.solve.status import Status

# What may be missing from the bound of a distance: of it, or of a move by 1 where that costs least.
_CLOSED = 1e-8
_SLIPPED = 1e-7  # the same where a program is solved and no tangent is missing
_LINEAR_ROUNDS = 12  # linear programs at most, before whole numbers are looked for
_ROUNDS = 50  # mixed-integer programs at most
_COARSE, _FINE = 1e-3, 1e-9  # what all squares together may be short of, in either
_FIRST = 0.5  # of the time, for a first point where none is known


def project(
    sample: RulesAtSample,
    yhat: Array,
    solver: Solver,
    settings: Settings,
    known: Incumbent | None,
    clock: Clock,
    given: Array | None = None,
) -> Found:
    """The nearest point of a sample, or what is found of it by a limit.

    Args:
        sample: the rules.
        yhat: prediction, `d`.
        solver: looks for a first point where none is known.
        settings: weights, and what prices are in.
        known: a point that satisfies the rules.
        clock: when to stop.
        given: outputs to start from, `d`; they may break rules.
    """
    nodes = 0
    if given is not None and np.isfinite(given).all():
        guess = nearest_literals(sample, given)
        if guess is not None:
            nodes += 1
            known = nearer(known, nearest_in_chosen(sample, yhat, settings, guess, clock))
    if known is None:
        # The disjuncts of an l1-nearest point are somewhere to begin.
        own = settings._replace(norm="l1", nearest=False)
        first = l1.project(sample, yhat, solver, own, None, clock.part(_FIRST))
        nodes += first.nodes
        if first.status not in (Status.PROJECTED, Status.LIMIT):
            return replace(first, nodes=nodes)
        point, literals = first.point, first.literals
        known = nearest_in_chosen(sample, yhat, settings, literals, clock, point)
        if known is None:
            return nothing(yhat, nodes)
    found = _Approximation(sample, yhat, settings, known).run(clock)
    return replace(found, nodes=found.nodes + nodes)


class _Approximation:
    """A program, its tangents, and the best point and bound by now."""

    def __init__(
        self, sample: RulesAtSample, yhat: Array, settings: Settings, known: Incumbent
    ) -> None:
        self._sample, self._yhat, self._settings = sample, yhat, settings
        self._known, self._bound, self._nodes = known, 0.0, 0
        self._centre = sample.near(yhat)
        self._unit = self._far()
        self._proved = self._within(_CLOSED)
        if self._proved:
            return
        program = sample.squared(
            yhat, settings.weights, unit=self._unit, price_unit=settings.price_unit
        )
        assert program.squares is not None
        self._squares = program.squares
        self._program = l1.bounded(program, self._centre, settings.weights, self._unit)
        self._touch(known.y)

    def run(self, clock: Clock) -> Found:
        """Until it is proved, or a limit is reached."""
        self._prove(clock)
        known = self._known
        if self._proved:
            status, value = Status.PROJECTED, known.distance
        else:
            outside = self._settings.weights * (self._centre - self._yhat)
            bound = self._bound * self._unit**2 + float(outside @ outside)
            status, value = Status.LIMIT, min(bound, known.distance)
        return Found(status, known.y, value, known.literals, self._nodes, point=known.point)

    def _prove(self, clock: Clock) -> None:
        written = None if self._proved else self._linear(clock)
        left = clock.nodes
        for _ in range(_ROUNDS):
            if written is None or self._proved or clock.over or left == 0:
                return
            limited = clock.part(1.0)
            limited.nodes = left
            found = highs.prove(written.with_guess(self._known.literals), limited)
            self._nodes += 1
            left = None if left is None else max(0, left - max(1, found.nodes))
            if not self._learn(written, found, clock):
                return
            written = self._written()

    def _learn(self, written: Written, found: Solution, clock: Clock) -> bool:
        """Take a bound, a point and tangents from a solved program; False where it is the last."""
        self._raise(found.bound)
        if found.point is None:
            return False
        point, literals = written.point(found.point), written.literals(found.point)
        own = nearest_in_chosen(self._sample, self._yhat, self._settings, literals, clock, point)
        self._nodes += 1
        before = self._squares
        if own is not None:
            self._known = nearer(self._known, own) or own
            self._touch(own.y)
        self._raise(found.bound)
        squares = self._squares
        missing = _FINE / len(self._yhat)
        self._squares = squares.touching(squares.moves(point), point[squares.away], missing)
        if self._squares is not before:
            return found.outcome is Outcome.OPTIMAL
        # Nothing is left to be learnt: what is missing is a matter of tolerances.
        self._proved |= found.outcome is Outcome.OPTIMAL and self._within(_SLIPPED)
        return False

    def _linear(self, clock: Clock) -> Written | None:
        """The program with tangents where its relaxation needs them; None where it has no form."""
        for _ in range(_LINEAR_ROUNDS):
            written = self._written()
            if written is None:
                return None
            model = PersistentHighs(replace(written.linear, integer=None), LINEAR)
            outcome = model.run_within(clock)
            self._nodes += 1
            if outcome is not Outcome.OPTIMAL:
                break
            self._raise(float(written.linear.cost @ model.point))
            point, squares = written.point(model.point), self._squares
            missing = _COARSE / len(self._yhat)
            self._squares = squares.touching(squares.moves(point), point[squares.away], missing)
            if self._proved or self._squares is squares:
                break
        return self._written()

    def _written(self) -> Written | None:
        written = Written(replace(self._program, squares=self._squares))
        return written if written.possible else None

    def _touch(self, y: Array) -> None:
        """Tangents at outputs."""
        moves = self._settings.weights * (y - self._centre) / self._unit
        self._squares = self._squares.touching(moves, missing=_FINE / len(y))

    def _raise(self, bound: float) -> None:
        self._bound = max(self._bound, bound)
        self._proved |= self._within(_CLOSED)

    def _within(self, share: float) -> bool:
        far = self._far()
        least = float(self._settings.weights.min())
        return far - self._unit * sqrt(self._bound) <= share * max(least, far)

    def _far(self) -> float:
        """The root of what the best point costs more than `near` the prediction."""
        weights, moved = self._settings.weights, self._known.y - self._centre
        beyond = 2.0 * (self._centre - self._yhat) + moved
        paid = self._sample.paid(self._known.literals) / self._settings.price_unit
        return sqrt(float((weights * moved) @ (weights * beyond)) + paid)
