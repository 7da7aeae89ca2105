"""A projection set up once: keywords checked, ready for batches."""

from __future__ import annotations

import logging
import math
import time
from typing import Any

import numpy as np
import torch

from gdpnet import kernels
from gdpnet.checks import check_choice, check_count, check_seconds, weights_of
from gdpnet.derivative.gradients import QP, Derivative, Sensitivity, sensitivity_of
from gdpnet.errors import InputError, SolverError
from gdpnet.ir.batch import Batch, as_array, as_batch, refuse_nonfinite
from gdpnet.ir.rules import Rules
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.projection import after
from gdpnet.projection.projection import Projection
from gdpnet.projection.returned import hold_rounded, hold_strictly
from gdpnet.relaxation.plan import Plan
from gdpnet.solve.base import Array, Backend, Request, Settings
from gdpnet.solve.exact.backend import Exact
from gdpnet.solve.extended.backend import Extended
from gdpnet.solve.milp.backend import MILP
from gdpnet.solve.registry import backend_of, names

logger = logging.getLogger("gdpnet")

_MARK = " Mend them, or pass on_invalid='mark' to have only those rows marked."

_TRACED = (
    "torch.jit.trace (and torch.onnx.export with dynamo=False, which calls it) records tensor "
    "operations, and a projection is none: the outputs of the example would become constants. "
    "Trace the network in front of the rules, and project what it returns with gdpnet.project or a "
    "ProjectionLayer; rules that rules.save wrote need no Pyomo there (gdpnet.load_rules)."
)


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
        threads: int | None = None,
        on_conflict: str = "pass",
        on_invalid: str = "raise",
    ) -> None:
        if not isinstance(rules, Rules):
            raise InputError(f"rules: expected a gdpnet.RuleModel, got {type(rules).__name__}.")
        check_choice("forward", forward, ("exact", "qp"))
        check_choice("on_conflict", on_conflict, ("pass", "raise", "nearest"))
        check_choice("on_invalid", on_invalid, ("raise", "mark"))
        check_seconds("time_limit", time_limit)
        check_count("threads", threads, none=True)
        self.rules = rules
        self.relaxation, self.forward = relaxation, forward
        self.strict, self.on_conflict, self.on_invalid = strict, on_conflict, on_invalid
        plan = _plan(rules, relaxation)
        self.backend = _backend(solver, relaxation, plan)
        can = self.backend.capabilities
        if norm not in can.norms:
            known = ", ".join(map(repr, sorted(can.norms)))
            raise InputError(f"norm: solver {self.backend!r} knows {known}, got {norm!r}.")
        if strict and not can.strict:
            reason = kernels.unavailable("strict=True", "strict=False")
            if reason is not None:
                raise SolverError(reason)
            raise InputError(
                f"strict: only the exact engine can tighten its answers, not "
                f"relaxation={relaxation!r} with solver={self.backend!r}."
            )
        self.sensitivity = _sensitivity(gradient, forward)
        if self.sensitivity is not None:
            self.sensitivity.refuse(self.backend)
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
        )
        self._settings_of: dict[tuple[torch.dtype, bool], Settings] = {}

    def __call__(self, yhat: Any, x: Any = None) -> Projection:
        """Project a batch.

        Args:
            yhat: predictions, `... x d`.
            x: inputs, `... x p`, or `p` for all samples.
        """
        started = time.perf_counter()
        if torch.jit.is_tracing():  # type: ignore[attr-defined]
            raise InputError(_TRACED)
        rules, mark, sensitivity = self.rules, self.on_invalid == "mark", self.sensitivity
        batch = as_batch(
            x, yhat, rules.input_names, rules.output_names, y_name="yhat", finite=False
        )
        differentiable = sensitivity is not None and _requires_gradient(yhat, x)
        wanted = differentiable or self.forward == "qp"
        linearise = wanted and sensitivity is not None and sensitivity.needs_linearisation
        inputs, predictions, invalid = _arrays(batch, mark)
        settings = self._settings_for(batch.dtype, linearise)
        request = Request(rules, inputs, predictions, invalid, settings, mark)
        assembled = time.perf_counter()

        answer = self.backend.solve(request)
        if self.strict:
            answer = hold_strictly(request, answer)
        answer = hold_rounded(request, answer)
        if np.count_nonzero(invalid):
            answer = after.mark_invalid(request, answer)
        if self.on_conflict == "raise":
            after.raise_conflict(request, answer)
        elif self.on_conflict == "nearest":
            answer = after.note_unmendable(request, answer)
        derivative = None
        if sensitivity is not None:
            derivative = Derivative(sensitivity, request, answer)
            if self.forward == "qp":
                answer = derivative.answer = after.move_to_regularised(request, derivative)
        if self._unit != 1.0:
            answer = answer._replace(value=answer.value * self._unit)
        seconds = {"assemble": assembled - started, "solve": time.perf_counter() - assembled}
        projection = Projection(
            request, batch, answer, self.weights, self._unit, seconds, derivative
        )
        if differentiable:
            projection.attach(yhat, x)
        return projection

    @property
    def unusual(self) -> dict[str, Any]:
        """Keywords that are not as usual, of those that say how answers are treated."""
        usual = Projector.__init__.__kwdefaults__ or {}
        chosen = {
            "forward": self.forward,
            "strict": self.strict,
            "time_limit": self._settings.time_limit,
            "threads": self._settings.threads,
            "on_conflict": self.on_conflict,
            "on_invalid": self.on_invalid,
        }
        return {key: value for key, value in chosen.items() if value != usual[key]}

    def _settings_for(self, dtype: torch.dtype, linearise: bool) -> Settings:
        known = self._settings_of.get((dtype, linearise))
        if known is None:
            tolerance = TOLERANCES.of(dtype)
            known = self._settings._replace(tolerance=tolerance, dtype=dtype, linearise=linearise)
            self._settings_of[dtype, linearise] = known
        return known


def _plan(rules: Rules, relaxation: Any) -> Plan | None:
    """Which rules are merged; None for the DNF."""
    if isinstance(relaxation, Plan):
        return relaxation
    if relaxation == "dnf":
        return None
    if relaxation == "adaptive":
        return Plan.cnf()
    return Plan.parse(relaxation, rules)


def _backend(solver: Any, relaxation: Any, plan: Plan | None) -> Backend:
    """Who solves: as asked for, or the fastest there is."""
    if isinstance(solver, str) and solver == "auto":
        if plan is None:
            backend: Backend = Exact() if kernels.AVAILABLE else MILP()
        else:
            backend = Extended("simplex" if kernels.AVAILABLE else "highs")
        if not kernels.AVAILABLE:
            _tell_without_kernels()
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


def _requires_gradient(yhat: Any, x: Any) -> bool:
    # The prediction of a network does: look at it first.
    return torch.is_grad_enabled() and (
        (isinstance(yhat, torch.Tensor) and yhat.requires_grad)
        or (isinstance(x, torch.Tensor) and x.requires_grad)
    )


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


_told: list[str] = []


def _tell_without_kernels() -> None:
    if not _told:
        _told.append("numba")
        logger.warning(
            "numba is not installed: projecting by a mixed-integer program a sample (HiGHS), "
            "which is thousands of times slower than the exact engine, and onto relaxations by "
            "HiGHS too. pip install numba"
        )
