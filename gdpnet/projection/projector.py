"""gdpnet.project, and the projector behind it: keywords checked once, ready for batches."""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import Any

import numpy as np
import torch

from gdpnet import core
from gdpnet.checks import check_choice, check_count, check_seconds, weights_of
from gdpnet.derivative.gradients import QP, Derivative, Sensitivity, sensitivity_of
from gdpnet.errors import InputError, SolverError
from gdpnet.ir.batch import read_arrays
from gdpnet.ir.rules import Rules
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.lp.clock import UNLIMITED, Clock
from gdpnet.projection import postprocessing
from gdpnet.projection.operator import has_tangent, is_recorded, is_transformed, transformed
from gdpnet.projection.projection import Projection
from gdpnet.projection.returned import Reach, hold_rounded, hold_strictly
from gdpnet.relaxation.plan import Plan
from gdpnet.solve.base import Backend, Request, Settings
from gdpnet.solve.conic.backend import Conic
from gdpnet.solve.exact.backend import Exact
from gdpnet.solve.extended.backend import Extended
from gdpnet.solve.milp.backend import MILP
from gdpnet.solve.registry import BACKENDS, backend_of, names

logger = logging.getLogger("gdpnet")

_MOST_PROJECTORS = 64  # kept for the keywords of `project`

_TRACED = (
    "torch.jit.trace (and torch.onnx.export with dynamo=False, which calls it) records tensor "
    "operations, and a projection is none: the outputs of the example would become constants. "
    "Trace the network in front of the rules, and project what it returns with gdpnet.project or a "
    "ProjectionLayer; rules that rules.save wrote need no Pyomo there (gdpnet.load_rules)."
)


_RECORDED = (
    "make_fx records tensor operations, and a projection is none: the outputs of the example would "
    "become constants. torch.export and torch.compile keep a ProjectionLayer whole."
)
# As torch.jit.is_tracing, in half of its time; and how many there are of what else may record.
_is_tracing = torch._C._is_tracing
_modes = torch._C._len_torch_dispatch_stack


def project(
    rules: Rules,
    yhat: Any,
    x: Any = None,
    *,
    norm: str = "l1",
    weights: Any = None,
    relaxation: str | Plan = "dnf",
    solver: str | Backend = "auto",
    gradient: Any = None,
    forward: str = "exact",
    strict: bool = False,
    time_limit: float | None = None,
    deadline: float | None = None,
    threads: int | None = None,
    on_conflict: str = "pass",
    on_invalid: str = "raise",
    start: Any = None,
) -> Projection:
    """The nearest outputs, in a weighted distance, that satisfy the rules.

    Args:
        rules: the rules.
        yhat: predictions, `... x d`. One that satisfies everything within the rounding of its type
            (1e-9 in float64, 1e-6 in float32, 2e-3 in float16, 2e-2 in bfloat16, relative to
            max(|b|, max|a|) of a row) passes unchanged. y is rounded to the type of yhat and holds
            within the same tolerance then, relative to max(1, |b|, max|a|); where no number of
            that type does, the status is ERROR and `info.rounding` tells by how much.
        x: inputs, `... x p`; a single one of shape `p` is used for all samples.
        norm: of the distance: `"l1"`, the sum of `w |y - yhat|`, or `"l2"`, the root of the sum of
            `(w (y - yhat))^2`. With `"l2"` the nearest point inside a disjunct is unique, and
            `value` is the squared distance; what the exact engine's limits leave unfinished is
            LIMIT or UNSOLVED. What does not know a norm refuses it (`docs/norms.md`).
        weights: positive weight of each output in the distance, `d`; 1 where not given.
        relaxation: `"dnf"`: exact; `"cnf"`: every rule convexified by itself; a `Plan`, `"pdnf:K"`
            or `"plan:BUDGET"` (see `Plan.parse`): a partial DNF, the rules of a cluster merged by
            basic steps. For these `value` is a lower bound on the exact distance, and y may break
            rules: status RELAXED, and `disjunct` is -1 for the rules that are broken.
            `"adaptive"`: CNF first, then basic steps on broken rules, round by round, until all
            rules hold: the exact answer, or RELAXED where too many products would have to be
            written down (`info.rounds` counts).
        solver: a backend of `gdpnet.solve`, which has options of its own, or its name: `"exact"`,
            `"milp"` and `"milp:gurobi"` for the DNF; `"extended"`, `"highs"` and `"gurobi"` for
            relaxations and the DNF, written out as linear programs, `"clarabel"` as conic ones.
            `"auto"`: `Exact()` for the DNF (`MILP()` without the compiled core), for the others
            `Conic()` with norm="l2" or convex rows, else `Extended()` (HiGHS without the core).
        gradient: how gradients pass to yhat, and through the rules' coefficients to x: `"qp"`,
            `"vertex"`, `"straight_through"`, `"auto"`, `"mixed:0.25"` (a quarter of qp, the rest
            straight through), or an object of `gdpnet.derivative`. None: y carries no gradient.
            Which rules apply is a step in x and contributes nothing.
        forward: `"exact"`: y is the nearest point. `"qp"`: y is the point of the regularised
            program whose gradient `gradient=QP(eps)` is; it may break rules (RELAXED). For study.
        strict: inequalities of the chosen disjuncts, global ones and bounds hold with tolerance 0
            on the y returned, after its rounding to the caller's type, and equalities within a few
            units in the last place. Rows that rounding breaks are tightened by what they were
            broken and half a unit in the last place, so the distance grows by rounding errors
            only, unless the nearest set is so thin that no number of that type lies in it and
            another set is taken. `info.strict` tells for which samples it could be had. Exact
            engine only.
        time_limit: seconds for each sample, all solvers together (half of it for the engine's
            search before MILP takes over); then the best found is returned with status LIMIT, or
            the prediction with UNSOLVED where nothing was found.
        deadline: seconds for the whole batch, shared out evenly: the engine's search may take for
            a sample what half of the deadline gives to each (all of it where no MILP takes over),
            and each sample that is left then its share of what is left; those that are not reached
            are LIMIT or UNSOLVED. Where no share is used up the answers are those without it.
            Relaxations have no search, and neither limit.
        threads: samples solved at a time; where not given chosen by the size of the batch, within
            the affinity mask of the process and `torch.get_num_threads()`. The answers do not
            depend on it.
        on_conflict: for samples whose rules contradict each other: `"pass"` returns the prediction
            unchanged, `"raise"` raises, `"nearest"` keeps bounds and global constraints and breaks
            the rules as little as possible (least sum of scaled violations, then least distance).
            `"drop"` leaves out the cheapest set of hard rules, by their importances, and of several
            such sets that with the nearest point (`info.dropped`). The status stays CONFLICT.
            Where bounds, globals and logic contradict each other by themselves, no rule is to
            blame: the prediction passes, `info.unmendable` tells where, a `ConflictWarning` why.
        on_invalid: for samples with NaN or infinity: `"raise"`, or `"mark"` (status ERROR, y is
            NaN, the others are untouched).
        start: outputs to start from, `... x d` as yhat, or a `Projection`, such as that of the step
            before; a single point of shape `d` is used for all samples. They may break rules, and
            samples with NaN have none. What the engine does not finish by itself begins with the
            nearest point in their disjuncts, so there is an answer where a limit is reached. With
            norm="l1"; see also `gdpnet.Tracker`.

    Example:
        >>> import pyomo.environ as pyo, gdpnet, torch
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var(bounds=(0, 10))
        >>> m.gap = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 7))
        >>> rules = gdpnet.RuleModel(m, outputs=[m.y])
        >>> p = gdpnet.project(rules, torch.tensor([[4.5], [8.0]]))
        >>> p.y.tolist(), p.distance.tolist()
        ([[3.0], [8.0]], [1.5, 0.0])
        >>> [gdpnet.Status(s).name for s in p.status.tolist()]
        ['PROJECTED', 'SATISFIED']
    """
    keywords = (
        norm,
        weights,
        relaxation,
        solver,
        gradient,
        forward,
        strict,
        time_limit,
        deadline,
        threads,
        on_conflict,
        on_invalid,
    )
    if weights is not None or not isinstance(solver, str) or not isinstance(rules, Rules):
        return _new_projector(rules, keywords)(yhat, x, start)
    # Of equal keywords True and 1 are two, and a name may be registered anew.
    key = *keywords, type(threads), type(time_limit), type(deadline), BACKENDS.get(solver)
    known = rules.cache[_projectors]
    try:
        projector = known.get(key)
    except TypeError:  # what is no keyword at all: nothing to find it by
        return _new_projector(rules, keywords)(yhat, x, start)
    if projector is None:
        projector = _new_projector(rules, keywords)
        if len(known) >= _MOST_PROJECTORS:
            known.clear()
        known[key] = projector
    return projector(yhat, x, start)


_KEYWORDS = tuple(name for name in project.__kwdefaults__ or {} if name != "start")


def _new_projector(rules: Rules, keywords: tuple[Any, ...]) -> Projector:
    return Projector(rules, **dict(zip(_KEYWORDS, keywords, strict=True)))


def _projectors(_: Rules) -> dict[tuple[Any, ...], Projector]:
    """Projectors by their keywords: checking those would cost more than projecting."""
    return {}


class Projector:
    """Projects batches in one way; for the keywords see `gdpnet.project`."""

    def __init__(
        self,
        rules: Rules,
        *,
        norm: str = "l1",
        weights: Any = None,
        relaxation: str | Plan = "dnf",
        solver: str | Backend = "auto",
        gradient: Any = None,
        forward: str = "exact",
        strict: bool = False,
        time_limit: float | None = None,
        deadline: float | None = None,
        threads: int | None = None,
        on_conflict: str = "pass",
        on_invalid: str = "raise",
    ) -> None:
        if not isinstance(rules, Rules):
            raise InputError(f"rules: expected a gdpnet.RuleModel, got {type(rules).__name__}.")
        check_choice("forward", forward, ("exact", "qp"))
        check_choice("on_conflict", on_conflict, ("pass", "raise", "nearest", "drop"))
        check_choice("on_invalid", on_invalid, ("raise", "mark"))
        check_seconds("time_limit", time_limit)
        check_seconds("deadline", deadline)
        check_count("threads", threads, none=True)
        self.rules, self.deadline = rules, deadline
        self.relaxation, self.forward = relaxation, forward
        self.strict, self.on_conflict, self.on_invalid = strict, on_conflict, on_invalid
        plan = _plan(rules, relaxation)
        self.backend = _backend(solver, relaxation, plan, norm == "l2" or bool(rules.data.curved))
        can = self.backend.capabilities
        self.backend.refuse_norm(norm)
        self.backend.refuse_rows(rules)
        self.backend.refuse_prices(rules)
        if on_conflict == "nearest" and not can.nearest:
            raise InputError(
                f"on_conflict: solver {self.backend!r} does not know 'nearest'; use 'pass' or "
                "'raise', or another solver."
            )
        if on_conflict == "drop":
            reason = core.unavailable("on_conflict='drop'", "on_conflict='pass'")
            if reason is not None:
                raise SolverError(reason)
            if plan is not None:
                raise InputError(
                    "on_conflict: 'drop' is known for relaxation='dnf' only; use 'pass' or 'raise'."
                )
        if strict and not can.strict:
            reason = core.unavailable("strict=True", "strict=False")
            if reason is not None:
                raise SolverError(reason)
            raise InputError(
                f"strict: only the exact engine can tighten its answers, not "
                f"relaxation={relaxation!r} with solver={self.backend!r}."
            )
        self.sensitivity = _sensitivity(gradient, forward)
        if self.sensitivity is not None:
            self.sensitivity.refuse(self.backend)
            self.sensitivity.refuse_norm(norm)
            self.sensitivity.refuse_rows(rules)
            self.sensitivity.refuse_prices(rules, self.backend)
        if forward == "qp" and (strict or getattr(self.backend, "tie", "first") != "first"):
            raise InputError("forward: 'qp' returns no vertex: it has no strict and no tie.")
        self.weights, self._unit = weights_of(weights, rules)
        self._settings = Settings(
            # Solvers work in units of the heaviest output: their tolerances mean that.
            weights=self.weights if self._unit == 1.0 else self.weights / self._unit,
            norm=norm,
            plan=plan,
            adaptive=relaxation == "adaptive",
            time_limit=time_limit,
            threads=None if threads is None else int(threads),
            nearest=on_conflict == "nearest",
            unit=self._unit,
        )
        self._known: dict[tuple[torch.dtype, bool], tuple[Settings, bool]] = {}

    def __call__(self, yhat: Any, x: Any = None, start: Any = None) -> Projection:
        """Project a batch.

        Args:
            yhat: predictions, `... x d`.
            x: inputs, `... x p`, or `p` for all samples.
            start: outputs to start from, `... x d`, or `d` for all samples; None for nowhere.
        """
        if _is_tracing():
            raise InputError(_TRACED)
        if _modes() and is_recorded():
            raise InputError(_RECORDED)
        if is_transformed():
            return transformed(
                self.rules, partial(self.solve, differentiable=True, start=start), yhat, x
            )
        differentiable = self.sensitivity is not None and (
            (
                torch.is_grad_enabled()
                and (
                    # The prediction of a network does: look at it first.
                    (isinstance(yhat, torch.Tensor) and yhat.requires_grad)
                    or (isinstance(x, torch.Tensor) and x.requires_grad)
                )
            )
            or has_tangent(yhat, x)
        )
        projection = self.solve(yhat, x, differentiable, start)
        if differentiable:
            projection.attach(yhat, x)
        if self.rules.data.priced:
            projection.follow_prices(x)
        return projection

    def solve(self, yhat: Any, x: Any, differentiable: bool, start: Any = None) -> Projection:
        """Project a batch, outside of torch's graph.

        Args:
            yhat: predictions, `... x d`.
            x: inputs, `... x p`, or `p` for all samples.
            differentiable: whether the derivative will be asked for.
            start: outputs to start from, `... x d`, or `d` for all samples; None for nowhere.
        """
        started = time.perf_counter()
        rules, mark, sensitivity = self.rules, self.on_invalid == "mark", self.sensitivity
        inputs, predictions, invalid, origin = read_arrays(
            yhat, x, rules.input_names, rules.output_names, mark
        )
        linearise = False
        if sensitivity is not None:
            wanted = differentiable or self.forward == "qp"
            linearise = wanted and sensitivity.needs_linearisation
        key = origin.dtype, linearise
        settings, harmless = self._known.get(key) or self._settings_for(*key)
        clock = UNLIMITED if self.deadline is None else Clock(self.deadline)
        request = Request(rules, inputs, predictions, invalid, settings, mark, clock)
        if start is not None:
            request = request._replace(start=_start(start, predictions.shape, origin.shape))
        assembled = time.perf_counter()

        answer = self.backend.solve(request)
        if np.count_nonzero(invalid):
            answer = postprocessing.mark_invalid(request, answer)
        if self.strict:
            answer = hold_strictly(request, answer)
        if not harmless:
            answer = hold_rounded(request, answer)
        if self.on_conflict == "raise":
            postprocessing.raise_conflict(request, answer)
        elif self.on_conflict == "nearest":
            answer = postprocessing.note_unmendable(request, answer)
        elif self.on_conflict == "drop":
            answer = postprocessing.drop_rules(request, answer)
        derivative = None
        if sensitivity is not None:
            derivative = Derivative(sensitivity, request, answer)
            if self.forward == "qp":
                answer = derivative.answer = postprocessing.move_to_regularised(request, derivative)
        if self._unit != 1.0:
            answer = answer.replace(value=answer.value * self._settings.price_unit)
        seconds = {"assemble": assembled - started, "solve": time.perf_counter() - assembled}
        return Projection(request, origin, answer, self.weights, self._unit, seconds, derivative)

    @property
    def unusual(self) -> dict[str, Any]:
        """Keywords that are not as usual, of those that say how answers are treated."""
        usual = Projector.__init__.__kwdefaults__ or {}
        return {key: value for key, value in self._treatment.items() if value != usual[key]}

    @property
    def keywords(self) -> dict[str, Any]:
        """Keywords that make the same projector again, from the same rules."""
        plan = self._settings.plan
        exact_or_adaptive = self.relaxation if isinstance(self.relaxation, str) else "dnf"
        weights = None if (self.weights == 1.0).all() else self.weights.tolist()
        return self._treatment | {
            "weights": weights,
            "relaxation": exact_or_adaptive if plan is None or self._settings.adaptive else plan,
            "solver": self.backend,
            "gradient": self.sensitivity,
        }

    @property
    def _treatment(self) -> dict[str, Any]:
        return {
            "norm": self._settings.norm,
            "forward": self.forward,
            "strict": self.strict,
            "time_limit": self._settings.time_limit,
            "deadline": self.deadline,
            "threads": self._settings.threads,
            "on_conflict": self.on_conflict,
            "on_invalid": self.on_invalid,
        }

    def _settings_for(self, dtype: torch.dtype, linearise: bool) -> tuple[Settings, bool]:
        """Settings for a type of predictions, and whether rounding to it can do no harm."""
        tolerance = TOLERANCES.of(dtype)
        settings = self._settings._replace(tolerance=tolerance, dtype=dtype, linearise=linearise)
        known = settings, self.rules.cache[Reach].harmless(settings)
        self._known[dtype, linearise] = known
        return known


def _start(given: Any, flat: tuple[int, ...], shape: Any) -> np.ndarray:
    """Outputs to start from, as a flat batch."""
    y = torch.as_tensor(given.y if isinstance(given, Projection) else given)
    if tuple(y.shape) not in ((*shape, flat[1]), flat[1:]):
        raise InputError(
            f"start: expected outputs of the shape of yhat, {(*shape, flat[1])}, a single point of "
            f"shape {flat[1:]} for all samples, or a Projection, got {tuple(y.shape)}."
        )
    points = y.detach().cpu().double().numpy()
    return np.broadcast_to(points, flat) if points.ndim == 1 else points.reshape(flat)


def _plan(rules: Rules, relaxation: Any) -> Plan | None:
    """Which rules are merged; None for the DNF."""
    adaptive = isinstance(relaxation, str) and relaxation == "adaptive"
    return Plan.cnf() if adaptive else Plan.of(relaxation, rules)


def _backend(solver: Any, relaxation: Any, plan: Plan | None, conic: bool) -> Backend:
    """Who solves: as asked for, or the fastest there is."""
    if isinstance(solver, str) and solver == "auto":
        if plan is None:
            backend: Backend = Exact() if core.AVAILABLE else MILP()
        elif conic:
            backend = Conic()
        else:
            backend = Extended("simplex" if core.AVAILABLE else "highs")
        if not core.AVAILABLE:
            _tell_without_core()
    else:
        backend = backend_of(solver)
    if plan is not None and not backend.capabilities.relaxations:
        able = [name for name in names() if backend_of(name).capabilities.relaxations]
        raise InputError(
            f"solver: {backend!r} solves relaxation='dnf' only; for {relaxation!r} use one of "
            f"{', '.join(map(repr, ('auto', *able)))}."
        )
    backend.refuse_unavailable()
    return backend


def _sensitivity(gradient: Any, forward: str) -> Sensitivity | None:
    if gradient is None and forward == "exact":
        return None
    sensitivity = sensitivity_of("qp" if gradient is None else gradient)
    if forward == "qp" and not isinstance(sensitivity, QP):
        raise InputError(
            f"forward: 'qp' returns the point of gradient=gdpnet.QP(eps), got {gradient!r}."
        )
    return sensitivity


_told: list[str] = []


def _tell_without_core() -> None:
    if not _told:
        _told.append("core")
        logger.warning(
            "Projecting by a mixed-integer program a sample (HiGHS), which is thousands of times "
            "slower than the exact engine, and onto relaxations by HiGHS too. %s",
            core.WHY_MISSING,
        )
