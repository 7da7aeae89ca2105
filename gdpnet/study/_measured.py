"""One relaxation measured on a batch: sizes, times, tightness, satisfaction."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gdpnet.errors import GdpnetError
from gdpnet.model import RuleModel
from gdpnet.projection.projection import Projection
from gdpnet.projection.projector import Projector
from gdpnet.relaxation.layouts import layouts_of
from gdpnet.relaxation.plan import Plan
from gdpnet.solve.base import Array
from gdpnet.solve.status import Status
from gdpnet.study._relaxations import Relaxation
from gdpnet.study.samples import what_holds

# A batch that takes less than this is solved again for as long, at least and at most so often; the
# median time counts.
_SHORT, _FEWEST, _MOST = 0.3, 5, 50

# Samples that are planned on before the clock starts, one after the other.
_WARM_UP = (1, 16)

# Progress is told about so often, in seconds. Where nothing is known of the time that samples take,
# so many are tried first, and from one piece to the next there are at most so many times more.
_TICK, _TRIED, _GROWTH = 0.5, 16, 8.0

NOTHING = float("nan")


@dataclass(frozen=True)
class Spread:
    """Mean and largest of a number that each sample has; NaN where no sample has it."""

    mean: float = NOTHING
    most: float = NOTHING

    @staticmethod
    def of(values: Array, counts: Array | None = None) -> Spread:
        """Of values, each met so often."""
        if not values.size:
            return Spread()
        return Spread(float(np.average(values, weights=counts)), float(values.max()))


@dataclass(frozen=True)
class Measured:
    """What a relaxation does on a batch; the fields are explained by `Comparison.table`.

    Attributes:
        relaxation: which one.
        plan: the clusters that were merged, where a plan was made.
        solver: which solver finished, several joined by `+`.
        variables: of the linear program.
        rows: of the linear program.
        disjuncts: terms of its disjunctions after the basic steps.
        nonzeros: of its matrix.
        compile_seconds: made ready for all patterns of active rules.
        seconds_per_sample: once that is done.
        value: mean optimal value of the relaxation, over conflict-free samples.
        distance: mean distance of its point to the prediction, over conflict-free samples.
        gap: by how much the value stays below the exact optimum.
        gaps: the same, of each sample for which it is known.
        csat: share of samples that satisfy everything.
        csat_conflict_free: the same of conflict-free samples.
        priced_held: share of the rules with a price that hold where they apply, over
            conflict-free samples.
        price: mean price paid, over samples that have an answer.
        held: whether each rule, the global constraints and all together hold, bool
            `batch x (rules + 2)`.
        statuses: how many samples have each.
        note: why it could not be measured, where it could not.
    """

    relaxation: Relaxation
    plan: Plan | None = None
    solver: str = ""
    variables: Spread = Spread()
    rows: Spread = Spread()
    disjuncts: Spread = Spread()
    nonzeros: Spread = Spread()
    compile_seconds: float = NOTHING
    seconds_per_sample: float = NOTHING
    value: float = NOTHING
    distance: float = NOTHING
    gap: Spread = Spread()
    gaps: Array = field(default_factory=lambda: np.zeros(0), repr=False)
    csat: float = NOTHING
    csat_conflict_free: float = NOTHING
    priced_held: float = NOTHING
    price: float = NOTHING
    held: Array | None = field(default=None, repr=False)
    statuses: dict[Status, int] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class Samples:
    """What relaxations are compared on.

    Attributes:
        rules: the rules.
        x: inputs, float64 `batch x p`.
        yhat: predictions, `batch x d`.
        weights: of the outputs in the distance, or None.
        tolerance: a rule holds within it.
        exact: the exact projections.
        norm: of the distance.
    """

    rules: RuleModel
    x: Tensor
    yhat: Tensor
    weights: Any
    tolerance: float
    exact: Joined
    norm: str = "l1"

    def __len__(self) -> int:
        return len(self.yhat)

    @property
    def conflict_free(self) -> Array:
        """Samples for which some output satisfies everything, bool `batch`."""
        return np.isfinite(self.exact.distance)

    @property
    def optimum(self) -> Array:
        """What is minimised at the exact answer, the distance or its square and prices, `batch`."""
        distance, paid = self.exact.distance, self.exact.price
        return np.asarray((distance**2 if self.norm == "l2" else distance) + paid)

    @property
    def proved(self) -> Array:
        """Samples whose exact distance is known, bool `batch`."""
        status = self.exact.status
        return (status == Status.SATISFIED) | (status == Status.PROJECTED)

    @property
    def priced(self) -> Array:
        """Rules with a price that apply to conflict-free samples, bool `batch x rules`."""
        soft = ~np.array(self.rules.data.hard, dtype=bool)
        return self.rules.active(self.x).numpy() & soft & self.conflict_free[:, None]

    def held(self, y: Tensor) -> Array:
        """Whether each rule, the global constraints and all together hold at points."""
        return what_holds(self.rules, self.x, y, self.tolerance).numpy()


def measure(
    samples: Samples,
    relaxation: Relaxation,
    threads: int | None,
    tick: Callable[[float], None],
) -> Measured:
    """Measure one relaxation.

    Args:
        samples: what it is measured on.
        relaxation: which one.
        threads: of the solver.
        tick: told which share of the work is done.
    """
    tick(0.0)
    # Nothing that another relaxation has made ready counts for this one.
    rules = _fresh(samples.rules)
    try:
        if relaxation.kind == "plan":
            for few in _WARM_UP:
                relaxation.resolve(_fresh(rules), samples.yhat[:few], samples.x[:few])
        started = time.perf_counter()
        chosen = relaxation.resolve(rules, samples.yhat, samples.x)
        planning = time.perf_counter() - started if relaxation.kind == "plan" else 0.0
        keywords = {
            "relaxation": chosen,
            "solver": relaxation.solver,
            "norm": samples.norm,
            "weights": samples.weights,
            "threads": threads,
        }
        projector = Projector(rules, **keywords)
        first = _one_of_each_pattern(samples)
        # Imports of solvers are no part of any relaxation. Single samples and several may go by
        # different ways; adaptive steps are taken only where the CNF breaks a rule.
        other = Projector(_fresh(rules), **keywords)
        several = first if relaxation.kind == "adaptive" else first[[0, 0]]
        tell = _share(tick, 1 + len(several) + 2 * len(first) + len(samples))
        for some in (first[:1], several):
            _in_pieces(other, samples.yhat[some], samples.x[some], tell)
        of_patterns = samples.yhat[first], samples.x[first], tell
        cold, _ = _in_pieces(projector, *of_patterns)
        warm, _ = _in_pieces(projector, *of_patterns)
        seconds, done = _timed(projector, samples, warm / len(first), tell)
    except GdpnetError as error:
        tick(1.0)
        return Measured(relaxation, note=str(error))
    free = samples.conflict_free & np.isfinite(done.value)
    known = samples.proved & np.isfinite(done.value)
    gaps = samples.optimum[known] - done.value[known]
    held = samples.held(done.y)
    # Linear programs are those of l1.
    sizes = _sizes(rules, chosen, samples.x, done.layout) if samples.norm == "l1" else {}
    return Measured(
        relaxation,
        plan=chosen if isinstance(chosen, Plan) else None,
        solver=done.solver,
        **sizes,  # type: ignore[arg-type]
        compile_seconds=planning + max(0.0, cold - warm),
        seconds_per_sample=seconds / len(samples),
        value=_mean(done.value[free]),
        distance=_mean(done.distance[free]),
        gap=Spread.of(gaps),
        gaps=gaps,
        csat=_mean(held[:, -1]),
        csat_conflict_free=_mean(held[samples.conflict_free, -1]),
        priced_held=_mean(held[:, :-2][samples.priced]),
        price=_mean(done.price[done.answered]),
        held=held,
        statuses={status: int((done.status == status).sum()) for status in Status},
    )


def _fresh(rules: RuleModel) -> RuleModel:
    """The same rules, with nothing made ready yet."""
    return RuleModel.from_data(rules.data)


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else NOTHING


class Joined:
    """The results of a batch that was projected in pieces: arrays over the batch.

    Args:
        parts: the projections of the pieces, in their order.
    """

    def __init__(self, parts: list[Projection]) -> None:
        self.y = torch.cat([part.y for part in parts])
        self.value = np.concatenate([part.value.double().numpy() for part in parts])
        self.distance = np.concatenate([part.distance.double().numpy() for part in parts])
        self.price = np.concatenate([part.price.double().numpy() for part in parts])
        self.answered = np.concatenate([part.answer.answered for part in parts])
        self.status = np.concatenate([part.status.numpy() for part in parts])
        layouts = [part.answer.notes.get("layout") for part in parts]
        written = [one for one in layouts if one is not None]
        self.layout = np.concatenate(written) if written else np.zeros(0, dtype=np.int64)
        names: set[str] = set()
        for part in parts:
            solver = part.info.solver
            names |= {solver} if isinstance(solver, str) else set(solver)
        self.solver = "+".join(sorted(names))


def _one_of_each_pattern(samples: Samples) -> Array:
    """Indices of samples, one for every pattern of active rules, whose predictions are broken."""
    moved = np.flatnonzero(samples.exact.status != Status.SATISFIED)
    if not len(moved):
        return np.arange(1)
    active = samples.rules.active(samples.x[moved]).numpy()
    return moved[np.unique(active, axis=0, return_index=True)[1]]


def _share(tick: Callable[[float], None], whole: int) -> Callable[[int], None]:
    """What is told how many samples were done, and passes on which share of all that is so far."""
    done = 0

    def tell(samples: int) -> None:
        nonlocal done
        done += samples
        tick(done / whole)

    return tell


def _nobody(_: int) -> None:
    """Nobody is told."""


def projected(
    projector: Projector, yhat: Tensor, x: Tensor, tick: Callable[[float], None]
) -> Joined:
    """A batch, projected.

    Args:
        projector: what projects.
        yhat: predictions, `batch x d`.
        x: inputs, `batch x p`.
        tick: told which share of the batch is done.
    """
    tick(0.0)
    return Joined(_in_pieces(projector, yhat, x, _share(tick, len(yhat)))[1])


def _in_pieces(
    projector: Projector, yhat: Tensor, x: Tensor, tell: Callable[[int], None], size: int = _TRIED
) -> tuple[float, list[Projection]]:
    """Project a batch in as few pieces as progress can be told by.

    Args:
        projector: what projects.
        yhat: predictions, `batch x d`.
        x: inputs, `batch x p`.
        tell: told how many samples each piece had.
        size: of the first piece; each of the others is as large as the one before it took time.

    Returns:
        Seconds, and the projections of the pieces.
    """
    seconds, parts, at = 0.0, [], 0
    while at < len(yhat):
        piece = slice(at, at + size)
        started = time.perf_counter()
        parts.append(projector(yhat[piece], x[piece]))
        taken = time.perf_counter() - started
        seconds += taken
        at += size
        tell(len(parts[-1].status))
        size = max(1, int(size * min(_GROWTH, _TICK / max(taken, 1e-9))))
    return seconds, parts


def _timed(
    projector: Projector, samples: Samples, each: float, tell: Callable[[int], None]
) -> tuple[float, Joined]:
    """Seconds for all samples, and their results; `each` is what one is expected to take."""
    whole = samples.yhat, samples.x
    size = len(samples) if each * len(samples) < _TICK else max(1, int(_TICK / each))
    seconds, parts = _in_pieces(projector, *whole, tell, size)
    if seconds < _SHORT:
        # The first time some layouts of adaptive steps were still to be made.
        repeats = min(_MOST, max(_FEWEST, int(_SHORT / max(seconds, 1e-9))))
        seconds = statistics.median(
            _in_pieces(projector, *whole, _nobody, len(samples))[0] for _ in range(repeats)
        )
    return seconds, Joined(parts)


def _sizes(rules: RuleModel, relaxation: str | Plan, x: Tensor, solved: Array) -> dict[str, Spread]:
    """Sizes over all samples, whether or not a program had to be solved for them.

    Adaptive steps have the program of their last round; where none was solved, the CNF.
    """
    plan = Plan.of("cnf" if relaxation == "adaptive" else relaxation, rules)
    names = ("variables", "rows", "disjuncts", "nonzeros")
    try:
        layouts = layouts_of(rules)
        active = layouts.ready.rules.evaluate(x).clauses.numpy()
        pruned = layouts.within_input_bounds(x.numpy())
        first, which = layouts.patterns(active, pruned)
        planned = [layouts.planned(plan, active[s], bool(pruned[s])) for s in first.tolist()]
        numbers = np.array(planned, dtype=np.int64)[which]
        if relaxation == "adaptive":
            numbers = np.where(solved >= 0, solved, numbers)
        used, counts = np.unique(numbers, return_counts=True)
        # Where rules contradict each other whatever the inputs, there is no program.
        there = ~np.array(layouts.contradictory)[used]
        sizes = [layouts.sizes(number) for number in used[there].tolist()]
    except GdpnetError:  # no hull: an output without bounds, or too many products
        return dict.fromkeys(names, Spread())
    return {
        name: Spread.of(np.array([getattr(s, name) for s in sizes], float), counts[there])
        for name in names
    }
