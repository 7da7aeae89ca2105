"""A projection set up once: keywords checked, ready for batches."""

from __future__ import annotations

import logging
import math
import time
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gdpnet.checks import check_choice, check_count, check_seconds, weights_of
from gdpnet.convexify.plan import Plan
from gdpnet.errors import ConflictError, ConflictWarning, InputError, SolverError
from gdpnet.ir.batch import Batch, as_array, as_batch, name_rows, refuse_nonfinite
from gdpnet.rules.model import RuleModel
from gdpnet.solve import _conflict, _exact, _milp, _relaxed, _returned
from gdpnet.solve._results import NODE_LIMIT, Array, Options, Results
from gdpnet.solve.projection import Projection
from gdpnet.solve.status import Status

if TYPE_CHECKING:
    from gdpnet.sensitivity.gradients import Derivative

logger = logging.getLogger("gdpnet")

# A prediction that satisfies everything within this passes unchanged: what rounding in the
# caller's type leaves of an equality (a float32 softmax misses its sum by 1e-7).
TOLERANCE = {
    torch.float64: 1e-9,
    torch.float32: 1e-6,
    torch.float16: 2e-3,
    torch.bfloat16: 2e-2,
}

# Solvers of a relaxation that is written out as a linear program, and those of the DNF itself.
_WRITTEN_OUT = ("extended", "highs", "gurobi")
_SOLVERS = ("auto", "exact", "milp", "milp:gurobi", *_WRITTEN_OUT)

_MARK = " Mend them, or pass on_invalid='mark' to have only those rows marked."

_TRACED = (
    "torch.jit.trace (and torch.onnx.export with dynamo=False, which calls it) records tensor "
    "operations, and a projection is none: the outputs of the example would become constants. "
    "Trace the network in front of the rules, and project what it returns with gdpnet.project or a "
    "ProjectionLayer; rules that rules.save wrote need no Pyomo there (gdpnet.load_rules)."
)

_RELAXED_BEYOND = 1e-6  # a regularised point breaks a rule beyond this


class Projector:
    """Projects batches in one way; for the keywords see `gdpnet.project`."""

    def __init__(
        self,
        rules: RuleModel,
        *,
        relaxation: str | Plan = "dnf",
        solver: str = "auto",
        gradient: Any = None,
        forward: str = "exact",
        weights: Any = None,
        tie: str = "first",
        strict: bool = False,
        node_limit: int = NODE_LIMIT,
        time_limit: float | None = None,
        threads: int | None = None,
        on_conflict: str = "pass",
        on_invalid: str = "raise",
    ) -> None:
        if not isinstance(rules, RuleModel):
            raise InputError(f"rules: expected a gdpnet.RuleModel, got {type(rules).__name__}.")
        check_choice("solver", solver, _SOLVERS)
        check_choice("forward", forward, ("exact", "qp"))
        check_choice("on_conflict", on_conflict, ("pass", "raise", "nearest"))
        check_choice("on_invalid", on_invalid, ("raise", "mark"))
        check_choice("tie", tie, ("first", "least_norm"))
        check_count("node_limit", node_limit)
        check_seconds("time_limit", time_limit)
        check_count("threads", threads, none=True)
        self.rules = rules
        self.relaxation, self.solver, self.forward = relaxation, solver, forward
        self.strict, self.on_conflict, self.on_invalid = strict, on_conflict, on_invalid
        self.plan = _plan(rules, relaxation, solver)
        without = not _exact.AVAILABLE
        if without:
            _refuse_without_numba(solver, tie, strict, forward)
        if self.plan is not None or solver not in ("auto", "exact"):
            for keyword, chosen, usual in (("tie", tie, "first"), ("strict", strict, False)):
                if chosen != usual:
                    raise InputError(
                        f"{keyword}: only the exact engine knows {keyword}={chosen!r}, not "
                        f"relaxation={relaxation!r} with solver={solver!r}."
                    )
        if forward == "qp" and (strict or tie != "first"):
            raise InputError("forward: 'qp' returns no vertex: it has no strict and no tie.")
        self.sensitivity: Any = None
        if gradient is not None or forward != "exact":
            self.sensitivity = _sensitivity(gradient, forward)
            if without:
                written_out = self.plan is not None
                self.sensitivity = _without_engine(gradient, self.sensitivity, written_out)
        if without and "auto" in (solver, gradient):
            _tell_without_numba()
        self.weights, self._unit = weights_of(weights, rules)
        self._options = Options(
            # Solvers work in units of the heaviest output: their tolerances mean that.
            weights=self.weights if self._unit == 1.0 else self.weights / self._unit,
            node_limit=int(node_limit),
            time_limit=time_limit,
            threads=None if threads is None else int(threads),
            nearest=on_conflict == "nearest",
            tie=tie,
        )
        self._kept: dict[tuple[torch.dtype, bool], Options] = {}

    def __call__(self, yhat: Any, x: Any = None) -> Projection:
        """Project a batch.

        Args:
            yhat: predictions, `... x d`.
            x: inputs, `... x p`, or `p` for all samples.
        """
        started = time.perf_counter()
        if torch.jit.is_tracing():  # type: ignore[attr-defined]
            raise InputError(_TRACED)
        rules, mark = self.rules, self.on_invalid == "mark"
        batch = as_batch(
            x, yhat, rules.input_names, rules.output_names, y_name="yhat", finite=False
        )
        sensitivity = self.sensitivity
        differentiable = sensitivity is not None and _requires_gradient(yhat, x)
        detailed = (differentiable or self.forward == "qp") and sensitivity.needs_dictionaries
        options = self._options_of(batch.dtype, detailed)
        inputs, predictions, invalid = _arrays(batch, mark)
        assembled = time.perf_counter()

        results = self._solve(inputs, predictions, invalid, options, mark)
        if self.strict:
            results.strict = _returned.enforce_strictly(rules, predictions, results, options)
        _returned.settle(rules, inputs, predictions, results, options)
        if np.count_nonzero(invalid):
            results.status[invalid] = Status.ERROR
            results.y = np.where(invalid[:, None], np.nan, results.y)
            results.solver[invalid] = 0
            results.plain = False
        if self.on_conflict == "raise":
            conflict = results.status == Status.CONFLICT
            if conflict.any():
                raise ConflictError(_conflict_message(rules, inputs, conflict))
        elif self.on_conflict == "nearest":
            results.unmendable = _tell_unmendable(rules, inputs, predictions, results)
        derivative = None
        if sensitivity is not None:
            derivative = sensitivity.derivative(
                rules, self.relaxation, inputs, predictions, results, options
            )
            if self.forward == "qp":
                _move_to_regularised(rules, inputs, results, derivative)
        if self._unit != 1.0:
            results.value, results.unit = results.value * self._unit, self._unit
        seconds = {"assemble": assembled - started, "solve": time.perf_counter() - assembled}
        projection = Projection(rules, batch, results, self.weights, seconds, derivative)
        if differentiable:
            projection.attach(yhat, x)
        return projection

    def _options_of(self, dtype: torch.dtype, detailed: bool) -> Options:
        known = self._kept.get((dtype, detailed))
        if known is None:
            tolerance = TOLERANCE.get(dtype, 1e-6)
            known = self._options._replace(tolerance=tolerance, detailed=detailed, dtype=dtype)
            self._kept[dtype, detailed] = known
        return known

    def _solve(
        self, x: Array, yhat: Array, invalid: Array, options: Options, mark: bool
    ) -> Results:
        rules, solver = self.rules, self.solver
        if self.plan is not None:
            if solver == "auto":
                solver = "extended" if _exact.AVAILABLE else "highs"
            merged = None if self.relaxation == "dnf" else self.plan  # all that hangs together
            adaptive = self.relaxation == "adaptive"
            return _relaxed.solve(rules, x, yhat, invalid, options, mark, merged, solver, adaptive)
        if solver == "auto":
            solver = "exact" if _exact.AVAILABLE else "milp"
        if solver == "exact":
            return _exact.solve(rules, x, yhat, invalid, options, mark)
        return _milp.solve(rules, x, yhat, invalid, options, mark, solver)


def _sensitivity(gradient: Any, forward: str) -> Any:
    from gdpnet.sensitivity.gradients import QP, sensitivity_of

    sensitivity = sensitivity_of("qp" if gradient is None else gradient)
    if forward == "qp" and not isinstance(sensitivity, QP):
        raise InputError(
            f"forward: 'qp' returns the point of gradient=gdpnet.QP(eps), got {gradient!r}."
        )
    return sensitivity


def _requires_gradient(yhat: Any, x: Any) -> bool:
    # The prediction of a network does: look at it first.
    return torch.is_grad_enabled() and (
        (isinstance(yhat, torch.Tensor) and yhat.requires_grad)
        or (isinstance(x, torch.Tensor) and x.requires_grad)
    )


def _move_to_regularised(
    rules: RuleModel, x: Array, results: Results, derivative: Derivative
) -> None:
    """Replace the projected points by those of the regularised program."""
    wanted = (results.status == Status.PROJECTED) | (results.status == Status.RELAXED)
    if not wanted.any():
        return
    # Without a solution of the program the vertex stays.
    moved = np.flatnonzero(wanted & ~derivative.backward.missing & ~np.asarray(results.unfinished))
    results.y = results.y.copy()
    results.y[moved] = derivative.backward.y[moved]
    results.status[moved] = Status.PROJECTED
    _relaxed.judge(rules, x, results.instance, results, moved, _RELAXED_BEYOND)


def _arrays(batch: Batch, mark: bool) -> tuple[Array, Array, Array]:
    """Inputs, predictions, and which of them are no finite numbers (those become 0)."""
    inputs, predictions = as_array(batch.x), as_array(batch.y)
    # A sum of squares is cheaper than a mask, and finite only if all its terms are.
    if math.isfinite(np.vdot(inputs, inputs) + np.vdot(predictions, predictions)):
        return inputs, predictions, np.zeros(len(predictions), dtype=bool)
    if not mark:
        refuse_nonfinite(batch.x, "x", _MARK)
        refuse_nonfinite(batch.y, "yhat", _MARK)
    invalid = ~(np.isfinite(inputs).all(1) & np.isfinite(predictions).all(1))
    inputs = np.where(invalid[:, None], 0.0, inputs)
    predictions = np.where(invalid[:, None], 0.0, predictions)
    return inputs, predictions, invalid


def _plan(rules: RuleModel, relaxation: Any, solver: str) -> Plan | None:
    """The plan of a relaxation that is written out; None for the DNF without writing it down."""
    if isinstance(relaxation, Plan):
        plan = relaxation
    else:
        check_choice("relaxation", relaxation, ("dnf", "cnf", "adaptive"))
        if relaxation == "dnf" and solver not in _WRITTEN_OUT:
            return None
        plan = Plan.dnf(rules) if relaxation == "dnf" else Plan.cnf()
    if solver not in ("auto", *_WRITTEN_OUT):
        raise InputError(
            f"solver: {solver!r} solves relaxation='dnf' only; for {relaxation!r} use one of "
            f"{', '.join(map(repr, ('auto', *_WRITTEN_OUT)))}."
        )
    return plan


def _refuse_without_numba(solver: str, tie: str, strict: bool, forward: str) -> None:
    """Raise where a keyword asks for what only numba's kernels can do."""
    instead = {"exact": "milp", "extended": "highs"}
    if solver in instead:
        raise SolverError(
            f"solver={solver!r} needs numba, which is not installed. Install it, or use "
            f"solver={instead[solver]!r}."
        )
    keywords = (("tie", tie, "first"), ("strict", strict, False), ("forward", forward, "exact"))
    for keyword, chosen, usual in keywords:
        if chosen != usual:
            raise SolverError(
                f"{keyword}={chosen!r} needs numba, which is not installed. Install it, or leave "
                f"{keyword}={usual!r}."
            )


def _without_engine(gradient: Any, sensitivity: Any, written_out: bool) -> Any:
    """The sensitivity to use without numba: vertices of a linear program have derivatives."""
    from gdpnet.sensitivity.gradients import QP, StraightThrough, Vertex, parts_of

    if gradient == "auto" and not written_out:
        return StraightThrough(inward=True)
    for part in parts_of(sensitivity):
        if isinstance(part, QP) or (isinstance(part, Vertex) and not written_out):
            also = "" if isinstance(part, QP) else ", or solver='highs', which writes the DNF out"
            raise SolverError(
                f"gradient: {part!r} needs numba, which is not installed. Install it, or use "
                f"gradient='auto' or 'straight_through'{also}."
            )
    return sensitivity


_told: list[str] = []


def _tell_without_numba() -> None:
    if not _told:
        _told.append("numba")
        logger.warning(
            "numba is not installed: projecting by a mixed-integer program a sample (HiGHS), "
            "which is thousands of times slower than the exact engine, onto relaxations by HiGHS "
            "too, and with gradient='auto' as StraightThrough(inward=True). pip install numba"
        )


def _conflict_message(rules: RuleModel, x: np.ndarray, conflict: np.ndarray) -> str:
    first = int(np.flatnonzero(conflict)[0])
    names = rules.explain_conflict(x[first] if rules.input_names else None)
    rows = name_rows(torch.from_numpy(conflict))
    message = (
        f"No output satisfies all active rules in {rows}. In row {first} these "
        f"contradict each other: {', '.join(map(str, names))}. on_conflict='pass' lets such "
        "predictions through, "
    )
    if _conflict.unmendable(rules, x[[first]])[0]:
        return message + "'nearest' too, for breaking rules does not help here."
    return message + "'nearest' breaks the rules as little as possible."


def _tell_unmendable(rules: RuleModel, x: Array, yhat: Array, results: Results) -> Array:
    """Samples for which on_conflict="nearest" has nothing to offer, bool (B,); told once a call."""
    unmendable = (results.status == Status.CONFLICT) & (results.y == yhat).all(1)
    samples = np.flatnonzero(unmendable)
    if len(samples):
        unmendable[samples] = _conflict.unmendable(rules, x[samples])
    if unmendable.any():
        first = int(np.flatnonzero(unmendable)[0])
        evaluated = rules.evaluate(torch.from_numpy(x[[first]]))
        names = _conflict.explain(rules, evaluated, 0, breakable=True)
        warnings.warn(
            f"on_conflict='nearest': {name_rows(torch.from_numpy(unmendable))} passed as "
            f"predicted. In row {first} these contradict each other, whatever rules are broken: "
            f"{', '.join(names)}.",
            ConflictWarning,
            stacklevel=4,
        )
    return unmendable
