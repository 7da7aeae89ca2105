"""One mixed-integer program a sample, then checked. Slow and certain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import torch

from gdpnet.checks import check_choice
from gdpnet.ir.batch import Batch
from gdpnet.ir.prices import unbroken
from gdpnet.ir.rules import Rules
from gdpnet.ir.steps import smallest_row
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.lp.clock import Clock
from gdpnet.lp.solvers import SOLVERS
from gdpnet.solve import existence
from gdpnet.solve.base import Answer, Array, Backend, Capabilities, Request, Settings
from gdpnet.solve.milp import l1, l2
from gdpnet.solve.milp.found import Found, Incumbent, limited
from gdpnet.solve.milp.jacobian import ActiveJacobian
from gdpnet.solve.milp.sample import RulesAtSample
from gdpnet.solve.status import Status
from gdpnet.threads import map_in_threads, workers_of

_TRUSTED = 1e9  # with numbers beyond this, solvers' tolerances decide what they prove

MILP_NODES = 5_000
"""Nodes of a mixed-integer program that takes over from the engine, where time is not limited."""


class Limits(NamedTuple):
    """What a sample may take.

    Attributes:
        seconds: or None.
        nodes: of each mixed-integer program, or None.
    """

    seconds: float | None = None
    nodes: int | None = None


NO_LIMITS = Limits()


class MILP(Backend):
    """A mixed-integer program for each sample.

    Without a `time_limit` it takes as long as it takes.

    Args:
        solver: `"highs"` or `"gurobi"`.

    Example:
        >>> import gdpnet
        >>> gdpnet.solve.MILP("gurobi").name
        'milp:gurobi'
    """

    capabilities = Capabilities(linearisation=True, nearest=True, prices=True)

    def __init__(self, solver: str = "highs") -> None:
        check_choice("MILP: solver", solver, tuple(SOLVERS))
        self.solver = solver

    @property
    def name(self) -> str:
        """What `info.solver` calls it."""
        return "milp" if self.solver == "highs" else f"milp:{self.solver}"

    @property
    def description(self) -> str:
        """How it solves."""
        return f"a mixed-integer program by {SOLVERS[self.solver].title}"

    def available(self) -> str | None:
        """Why it cannot be used here; None where it can."""
        return SOLVERS[self.solver].unavailable()

    def solve(self, request: Request) -> Answer:
        """Project a flat batch."""
        return self.within(request, Limits(request.settings.time_limit))

    def within(self, request: Request, limits: Limits) -> Answer:
        """Project a flat batch within limits for each sample."""
        rules = request.rules
        evaluated = rules.evaluate(torch.from_numpy(request.x))
        unusable = evaluated.unusable().numpy()
        if unusable.any():
            if not request.mark:
                rules.refuse_unusable(evaluated)
            request.invalid[unusable] = True
        answer = Answer.passed(request, evaluated.rules.numpy(), self.name)
        usable = np.flatnonzero(~request.invalid)
        rest = usable[~self._accept(request, usable, answer)] if len(usable) else usable
        vertices = finish(request, rest, answer, self, limits=limits)
        return answer.replace(linearisation=ActiveJacobian(request, answer, vertices))

    def _accept(self, request: Request, usable: Array, answer: Answer) -> Array:
        """Which samples pass unchanged, bool `usable`; notes which disjuncts hold there."""
        rules, settings = request.rules.cache[_without_prices], request.settings
        if rules is None:
            return np.zeros(len(usable), dtype=bool)
        batch = Batch.of_arrays(request.x[usable], request.yhat[usable])
        holds = existence.satisfied(
            rules, batch, settings.tolerance * rules.cache[smallest_row]
        ).numpy()
        holds &= (batch.y.numpy() == whole_outputs(rules, batch.y.numpy())).all(1)
        accepted = usable[holds]
        if len(accepted):
            part = Batch.of_arrays(request.x[accepted], request.yhat[accepted])
            true = existence.holding(rules, part, settings.tolerance)
            answer.assignment[accepted] = true.astype(np.int8)
        return np.asarray(holds)


def _without_prices(rules: Rules) -> Rules | None:
    """What a prediction has to satisfy to pass at once; None where that may cost something."""
    if rules.data.prices_disjuncts:
        return None
    return rules if all(c.breaking < 0 for c in rules.data.clauses) else Rules(unbroken(rules.data))


def integer_outputs(rules: Rules) -> Array | None:
    """Which outputs are integers, (d,) bool; None where none is."""
    integer = np.array([column.integer for column in rules.data.columns[: rules.data.outputs]])
    return integer if integer.any() else None


def whole_outputs(rules: Rules, y: Array, within: float = np.inf) -> Array:
    """Outputs, whole where they must be and are as near to it as `within`."""
    integer = rules.cache[integer_outputs]
    if integer is None:
        return y
    whole = np.rint(y)
    return np.where(integer & (np.abs(y - whole) <= within), whole, y)


def finish(
    request: Request,
    samples: Array,
    answer: Answer,
    backend: MILP,
    *,
    incumbents: Mapping[int, Incumbent] = MappingProxyType({}),
    limits: Limits = NO_LIMITS,
) -> Array:
    """Project some samples of a batch, written into an answer.

    Args:
        request: the batch.
        samples: which ones.
        answer: whose arrays are written into; its solvers include the backend's name.
        backend: which solver.
        incumbents: points already known to satisfy the rules.
        limits: for each sample.

    Returns:
        The samples that got a vertex of the rows that were chosen.
    """
    if not len(samples):
        return samples
    rules, settings = request.rules, request.settings
    evaluated = rules.evaluate(torch.from_numpy(request.x[samples]))
    project = l1.project if settings.norm == "l1" else l2.project
    clocks: list[Clock] = []
    workers = min(len(samples), workers_of(settings.threads))

    def one(place: int) -> Found:
        index = int(samples[place])
        yhat = request.yhat[index]
        solver, known = SOLVERS[backend.solver].solve, incumbents.get(index)
        if request.clock.over:
            return limited(known, yhat)
        sample = RulesAtSample.of(rules, evaluated, place)
        # An even share of what is left, by those that work at once.
        parts = max(1.0, (len(samples) - len(clocks)) / workers)
        clock = Clock(request.clock.share(parts, limits.seconds), limits.nodes)
        clocks.append(clock)
        start = None if request.start is None else request.start[index]
        found = project(sample, yhat, solver, settings, known, clock, start)
        if found.status is Status.PROJECTED and _unmoved(sample, found, yhat, settings):
            # Auxiliaries, or logic, were needed to see that it holds as it is.
            return replace(found, status=Status.SATISFIED, y=yhat.copy(), value=0.0)
        doubted = sample.largest(yhat, found.status is Status.CONFLICT) > _TRUSTED
        return _doubted(found) if doubted else found

    def cancel() -> None:
        for clock in clocks:
            clock.cancel()

    code = answer.solvers.index(backend.name)
    vertices = []
    each = map_in_threads(one, range(len(samples)), settings.threads, cancel)
    for index, found in zip(samples.tolist(), each, strict=True):
        answer.status[index] = found.status
        answer.y[index] = found.y
        answer.value[index] = found.value
        answer.nodes[index] += found.nodes
        answer.solver[index] = code
        answer.assignment[index] = 0
        answer.auxiliaries[index] = np.nan
        free = found.status is Status.PROJECTED and found.value == 0.0
        if free and (found.y == request.yhat[index]).all():
            # It was not seen at once: what it is bought off with costs nothing.
            answer.status[index] = Status.SATISFIED
        if found.point is not None:
            vertices.append(index)
            answer.auxiliaries[index] = found.point[len(found.y) :]
        if found.status is Status.CONFLICT and settings.nearest:
            at = Batch.of_arrays(request.x[[index]], answer.y[[index]])
            answer.assignment[index] = existence.each(rules, at, TOLERANCES.satisfied)[0]
        for literal in () if found.status is Status.CONFLICT else found.literals:
            answer.assignment[index, abs(literal) - 1] = np.sign(literal)
    return np.array(vertices, dtype=np.int64)


def _unmoved(sample: RulesAtSample, found: Found, yhat: Array, settings: Settings) -> bool:
    """Whether a prediction passes as it is and for nothing, as the engine sees it."""
    whole = sample.integer[: len(yhat)].any()
    paid = any(sample.prices.get(literal - 1, 0.0) for literal in found.literals if literal > 0)
    moved = np.abs(found.y - yhat).max(initial=0.0)
    return not paid and bool(moved <= (0.0 if whole else settings.tolerance))


def _doubted(found: Found) -> Found:
    """The same, where numbers are too large for a solver's proofs."""
    doubts = {Status.PROJECTED: Status.LIMIT, Status.CONFLICT: Status.UNSOLVED}
    status = doubts.get(found.status, found.status)
    value = found.value if found.status is Status.LIMIT else 0.0
    return replace(found, status=status, value=value)
