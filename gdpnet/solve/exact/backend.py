"""Projection by the exact engine; what it cannot finish goes to MILP."""

from __future__ import annotations

import time
import warnings
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from gdpnet import core
from gdpnet.checks import check_choice, check_count
from gdpnet.errors import InputError, SolverError, WorkLimitWarning
from gdpnet.ir.rules import Rules, refuse_curved, refuse_priced
from gdpnet.lp.clock import UNLIMITED
from gdpnet.solve.base import Answer, Array, Backend, Capabilities, Request, Settings
from gdpnet.solve.exact import margin
from gdpnet.solve.exact.answer import ExactAnswer
from gdpnet.solve.exact.linearisation import ExactLinearisation
from gdpnet.solve.exact.options import (
    LOST,
    MOST_COLUMNS,
    MOST_NODES,
    NODE_LIMIT,
    SearchOptions,
    patience_of,
)
from gdpnet.solve.milp.backend import MILP, MILP_NODES, Limits, finish
from gdpnet.solve.milp.found import Incumbent, literals_of
from gdpnet.solve.milp.jacobian import ActiveJacobian
from gdpnet.solve.status import Status
from gdpnet.threads import FEW, workers_of

if TYPE_CHECKING:
    from gdpnet.solve.exact.engine import ExactEngine

_ENGINE_SHARE = 0.5  # of a sample's time limit; the rest is for the MILP that takes over
_LARGE = 1e5  # predictions beside which rounding may keep rows from holding

# By outcome of the engine: solved, no solution, node limit, numerical trouble, accepted as it is.
_OPEN = np.array([False, True, True, True, False])


def engine_of(rules: Rules) -> ExactEngine:
    """The engine of the rules, made when first needed."""
    return rules.cache[_new_engine]


def _new_engine(rules: Rules) -> ExactEngine:
    reason = Exact().available()
    if reason is not None:
        raise SolverError(reason)
    from gdpnet.solve.exact.engine import ExactEngine

    return ExactEngine(rules)


def _widest(rules: Rules) -> int:
    """Columns of the largest component."""
    if len(rules.data.columns) <= MOST_COLUMNS:
        return len(rules.data.columns)
    return max((len(component.columns) for component in engine_of(rules).components), default=0)


class Exact(Backend):
    """The exact engine: a search over broken rules, without writing down the DNF.

    Args:
        tie: which point where several are equally near in l1. `"first"`: a vertex of the nearest
            set, always the same one, chosen by the order of outputs and rules. `"least_norm"`: of
            all nearest points of all combinations of disjuncts the one with the least
            `sum (w (y - yhat))^2`, whatever the order of rules. On a probability simplex nearly
            every nearest point is one of many, and the vertex takes from few coordinates what the
            least norm takes evenly from all. `info.least_norm` tells where it is proved. With
            norm="l2" there is nothing to choose: inside a disjunct the nearest point is unique,
            and of equally near disjuncts the first in the order of the model is taken.
        node_limit: nodes of the search for a sample; what is not finished by then goes to MILP
            (`info.solver` tells), with convex rows it is LIMIT or UNSOLVED. Where not given, the
            search hands over once it does not keep pace with its work (counted, not by the clock:
            `docs/coupled.md`); with convex rows or a tie it has 100,000.
        milp_nodes: nodes of the mixed-integer program that takes over, with norm="l2" of all of
            them together; then the best found is LIMIT, and a `WorkLimitWarning` tells once. With
            a `time_limit` there is no other.

    Example:
        >>> import gdpnet
        >>> gdpnet.solve.Exact(tie="least_norm")
        Exact(tie='least_norm')
    """

    capabilities = Capabilities(
        norms=frozenset({"l1", "l2"}),
        linearisation=True,
        strict=True,
        nearest=True,
        convex=True,
        prices=True,
    )
    name = "exact"
    description = "the exact engine searches it without writing it down"

    def __init__(
        self, *, tie: str = "first", node_limit: int | None = None, milp_nodes: int = MILP_NODES
    ) -> None:
        check_choice("Exact: tie", tie, ("first", "least_norm"))
        check_count("Exact: node_limit", node_limit, none=True)
        check_count("Exact: milp_nodes", milp_nodes)
        self.tie, self.node_limit, self.milp_nodes = tie, node_limit, int(milp_nodes)
        self._last: tuple[Settings, SearchOptions] | None = None
        self._told = False

    def available(self) -> str | None:
        """Why it cannot be used here; None where it can."""
        return core.unavailable("solver='exact'", "solver='milp'")

    def refuse_norm(self, norm: str) -> None:
        """Raise where it does not know a norm; ties inside a disjunct are those of l1."""
        super().refuse_norm(norm)
        if norm != "l1" and self.tie != "first":
            raise InputError(
                f"norm: {norm!r} leaves no tie to tie={self.tie!r}: inside a disjunct the nearest "
                "point is unique. Use Exact() without tie."
            )

    def refuse_rows(self, rules: Rules) -> None:
        """Raise where it does not know a kind of row, as it is set up."""
        if self.tie != "first":
            refuse_curved(
                *(rules, f"solver: tie={self.tie!r}"),
                "Equally near points of a convex set touch it from one side: they have no interior "
                "in which a least norm could be told from rounding. Use norm='l2', where the "
                "nearest point of a disjunct is unique, or weights that differ.",
            )
            refuse_priced(rules.data, f"solver: tie={self.tie!r}")

    def options(self, request: Request) -> SearchOptions:
        """How the engine searches for a request."""
        settings = request.settings
        if request.clock is not UNLIMITED:
            return self._shared(request)
        last = self._last
        if last is None or last[0] is not settings:
            columns = len(request.rules.data.columns)
            last = self._last = settings, self._options(settings, _alone(request), columns)
        return last[1]

    def _options(self, settings: Settings, alone: bool, columns: int) -> SearchOptions:
        limit = settings.time_limit
        hands_over = self._hands_over(alone)
        nodes = self.node_limit or (MOST_NODES if hands_over else NODE_LIMIT)
        return SearchOptions(
            settings.weights,
            settings.tolerance,
            nodes,
            None if limit is None else limit * (1.0 if alone else _ENGINE_SHARE),
            settings.threads,
            self.tie,
            norm=settings.norm,
            price_unit=settings.price_unit,
            patience=patience_of(columns, settings.norm) if hands_over else inf,
        )

    def _shared(self, request: Request) -> SearchOptions:
        """The same with a batch's time shared out evenly to its samples and their components."""
        columns = len(request.rules.data.columns)
        options = self._options(request.settings, _alone(request), columns)
        size, parts = len(request.yhat), len(engine_of(request.rules).components)
        workers = 1 if size <= FEW else workers_of(options.threads)
        share = (1.0 if _alone(request) else _ENGINE_SHARE) * workers / max(1, size * parts)
        return options._replace(time_limit=request.clock.share(1 / share, options.time_limit))

    def searches(self, request: Request) -> bool:
        """Whether the engine takes part; what is too large for it is MILP's from the start.

        Args:
            request: the batch.
        """
        if not self._hands_over(_alone(request)) or request.settings.norm != "l1":
            return True
        return request.rules.cache[_widest] <= MOST_COLUMNS

    def _hands_over(self, alone: bool) -> bool:
        # A search whose ties are settled afterwards has to be finished by itself.
        return self.node_limit is None and not alone and self.tie == "first"

    def solve(self, request: Request) -> Answer:
        """Project a flat batch."""
        if not self.searches(request):
            return self._by_milp(request)
        started = time.monotonic()
        linearisation = self.search(request)
        found = ExactAnswer(request, linearisation)
        answer: Answer = found
        rest: Array | bool = False
        if not found.proved:
            answer, rest = self._finish(request, found, linearisation, started)
        if self.tie != "first":
            unproved = linearisation.solved.unproved
            assert unproved is not None
            answer = answer.noting(least_norm=~(unproved | rest | request.invalid))
        return answer

    def _by_milp(self, request: Request) -> Answer:
        """What no search is worth beginning for."""
        limit = request.settings.time_limit
        timed = limit is not None or request.clock is not UNLIMITED
        answer = MILP().within(request, Limits(limit, None if timed else self.milp_nodes))
        if not timed:
            self._tell_limit(answer, np.arange(len(answer.y)))
        return answer

    def search(self, request: Request) -> ExactLinearisation:
        """What the engine finds by itself, whatever it leaves open."""
        options, engine = self.options(request), request.rules.cache[_new_engine]
        yhat, detailed = request.yhat, request.settings.linearise
        found = engine.find(request.x, yhat, options, detailed)
        if found is not None:
            return ExactLinearisation(engine, yhat, options, found=found)
        instance = request.evaluate()
        solved = engine.project(instance, yhat, options, detailed)
        return ExactLinearisation(engine, yhat, options, solved=(instance, solved))

    def _finish(
        self, request: Request, answer: Answer, linearisation: ExactLinearisation, started: float
    ) -> tuple[Answer, Array]:
        """What the search left open: searched again, doubted, or given to MILP.

        Returns:
            The answer, and which samples the search left open.
        """
        yhat, invalid, settings = request.yhat, request.invalid, request.settings
        solved = linearisation.solved
        rest = _OPEN.take(solved.status)
        forgiven = _forgive_rounding(linearisation, answer, rest)
        rest &= ~forgiven
        linearisation.unfinished = forgiven
        if not rest.any():
            return answer, rest
        left_open = rest.copy()
        answer = answer.replace(y=np.where(rest[:, None], yhat, answer.y))
        conflict = (answer.status == Status.CONFLICT) & ~invalid
        rest &= ~(conflict | invalid)
        search = linearisation.search
        close = margin.doubtful(request.rules, request.x, np.flatnonzero(conflict), search)
        conflict[close] = False
        rest[close] = True
        linearisation.unfinished = forgiven | rest
        alone, euclidean = _alone(request), settings.norm != "l1"
        if settings.nearest and (alone or euclidean):
            self._break(request, answer, conflict, search)
            conflict[:] = False
        if alone:
            linearisation.unfinished = forgiven | (rest & ~np.isfinite(solved.distance))
            return _left_open(answer, linearisation, rest), left_open
        if conflict.any() and settings.nearest:
            from gdpnet.solve.exact.breaking import break_batch

            broken = break_batch(request, answer, np.flatnonzero(conflict), search)
            conflict[:] = False
            conflict[broken] = True
        again = np.flatnonzero(rest | (conflict if settings.nearest else False))
        if not len(again):
            return answer, left_open
        incumbents = {
            int(i): Incumbent(
                solved.z[i, : yhat.shape[1]].copy(),
                float(solved.distance[i]),
                literals_of(solved.assignment[i]),
                solved.z[i].copy() if euclidean else None,
            )
            for i in np.flatnonzero(rest & np.isfinite(solved.distance))
        }
        left = None
        if settings.time_limit is not None and search.time_limit is not None:
            left = settings.time_limit - min(search.time_limit, time.monotonic() - started)
        proved = np.where(solved.status == core.NODE_LIMIT, solved.bound, 0.0)
        timed = left is not None or request.clock is not UNLIMITED
        limits = Limits(left, None if timed else self.milp_nodes)
        known = finish(request, again, answer, MILP(), incumbents=incumbents, limits=limits)
        if euclidean:
            # Points are the nearest in what was chosen, and so is their derivative.
            solved.z[known], solved.assignment[known] = (
                answer.columns()[known],
                answer.assignment[known],
            )
            linearisation.unfinished[known] = False
            if settings.nearest:
                self._break(request, answer, (answer.status == Status.CONFLICT) & rest, search)
        else:
            linearisation.others = ActiveJacobian(request, answer, known)
        # What the search had proved by then holds whatever came after it.
        limited = answer.status == Status.LIMIT
        answer.value[limited] = np.maximum(answer.value, proved)[limited]
        if not timed:
            self._tell_limit(answer, again[solved.status[again] == core.NODE_LIMIT])
        return answer, left_open

    def _break(
        self, request: Request, answer: Answer, conflict: Array, search: SearchOptions
    ) -> None:
        """Where rules contradict each other, and nobody else does it: break as little as possible.

        Args:
            request: the batch.
            answer: to be written into.
            conflict: such samples, (B,) bool.
            search: how they were searched.
        """
        if conflict.any():
            from gdpnet.solve.exact.breaking import break_rules

            break_rules(request, answer, np.flatnonzero(conflict), search)

    def _tell_limit(self, answer: Answer, samples: Array) -> None:
        """Say once that the limit of work ended some searches."""
        open_ones = np.isin(answer.status[samples], (Status.LIMIT, Status.UNSOLVED)).sum()
        if not open_ones or self._told:
            return
        self._told = True
        warnings.warn(
            f"{open_ones} of {len(answer.status)} samples are not proved nearest: the search and "
            f"{self.milp_nodes} nodes of a mixed-integer program were not enough, which is the "
            "limit where no time_limit is given (status LIMIT, info.gap; UNSOLVED where nothing "
            "was found). Give a time_limit, a start, or "
            "solver=gdpnet.solve.Exact(milp_nodes=...). This is told once.",
            WorkLimitWarning,
            stacklevel=2,
        )


def _alone(request: Request) -> bool:
    """Whether nobody takes over what the engine leaves open: MILP knows linear rows."""
    return bool(request.rules.data.curved)


def _left_open(answer: Answer, linearisation: ExactLinearisation, rest: Array) -> Answer:
    """What no other solver takes over: the best point found, or none.

    Args:
        answer: to be written into; y is the prediction where a sample is open.
        linearisation: what the search found.
        rest: the samples that are open, (B,) bool.
    """
    solved = linearisation.solved
    found = rest & np.isfinite(solved.distance)
    answer.y[found] = solved.z[found, : answer.y.shape[1]]
    answer.status[rest] = Status.UNSOLVED
    answer.status[found] = Status.LIMIT
    answer.value[rest] = np.where(solved.status == core.NODE_LIMIT, solved.bound, 0.0)[rest]
    return answer


def _forgive_rounding(linearisation: ExactLinearisation, answer: Answer, rest: Array) -> Array:
    """Search again where arithmetic failed beside large numbers, rounding forgiven.

    What comes out is judged on the numbers that are returned, as all of them are.

    Returns:
        The samples for which something came out, (B,) bool.
    """
    solved, yhat = linearisation.solved, linearisation.yhat
    forgiven = np.zeros(len(rest), dtype=bool)
    failed = (solved.status == core.NUMERICAL) & (np.abs(yhat).max(1) > _LARGE)
    samples = np.flatnonzero(failed)
    if not len(samples):
        return forgiven
    search = linearisation.search._replace(lost=LOST, tie="first")
    instance = linearisation.instance.take(samples)
    again = linearisation.engine.project(instance, yhat[samples], search)
    found = again.status == core.SOLVED
    own = samples[found]
    solved.z[own], answer.value[own] = again.z[found], again.distance[found]
    answer.assignment[own] = again.assignment[found]
    answer.status[own] = Status.PROJECTED
    forgiven[own] = True
    return forgiven
