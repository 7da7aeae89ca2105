"""The y that the caller gets: rounded to the caller's type, does it hold?

A point on the boundary of a row, rounded to the caller's type, may lie beyond it: a hair beyond it
with numbers around 1, far beyond it with pressures of 2e5 in float32 or predictions of 1e16. So
where rounding can matter the rows are looked at once more with the numbers that are returned.
Where one is broken the sample is projected again with rows tightened (`tightening.py`), until the
rounded point holds.

With strict=True rows hold with tolerance 0 (equalities within a few units in the last place), else
within the tolerance of the type.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from gdpnet import core
from gdpnet.ir.batch import Batch
from gdpnet.ir.compressed import Compressed
from gdpnet.ir.rules import Rules
from gdpnet.ir.slopes import steepest
from gdpnet.projection.residuals import ReturnedCheck
from gdpnet.projection.tightening import enforce
from gdpnet.solve import existence
from gdpnet.solve.base import Answer, Array, Request, Settings
from gdpnet.solve.exact.backend import Exact
from gdpnet.solve.exact.linearisation import ExactLinearisation
from gdpnet.solve.status import Status

_DROWNING = 1e12  # predictions beside which rows are forgiven so much that none may hold


def hold_strictly(request: Request, answer: Answer) -> Answer:
    """Make an answer hold without tolerance, where that can be had (`notes["strict"]`).

    Args:
        request: the batch.
        answer: of the exact engine; y becomes numbers of the caller's type.
    """
    found = answer.linearisation
    strict = np.zeros(len(answer.y), dtype=bool)
    if not isinstance(found, ExactLinearisation):
        return answer.noting(strict=strict)
    proved = (answer.status == Status.SATISFIED) | (answer.status == Status.PROJECTED)
    samples = np.flatnonzero(proved & answer.finished_by("exact"))
    check = _check_of(request, found, strict=True)
    answer, held, _ = enforce(request, answer, found, samples, check)
    strict[held] = True
    return answer.noting(strict=strict)


def hold_rounded(request: Request, answer: Answer) -> Answer:
    """See to it that what is returned holds within the tolerance of its type.

    What rounding alone prevents is mended, or becomes ERROR with `notes["rounding"]`.

    Args:
        request: the batch.
        answer: that claims to satisfy the rules.
    """
    reach, settings, yhat = request.rules.cache[Reach], request.settings, request.yhat
    size = np.nan_to_num(np.abs(answer.columns()))
    # The search had to do with the prediction's size as well.
    size[:, : yhat.shape[1]] = np.maximum(size[:, : yhat.shape[1]], np.abs(yhat))
    at_risk = reach.at_risk(size, settings) & answer.answered
    if "strict" in answer.notes:
        at_risk &= ~answer.notes["strict"]
    if not at_risk.any():
        return answer
    broken = np.zeros(len(yhat))
    samples = np.flatnonzero(at_risk)
    found = answer.linearisation
    if isinstance(found, ExactLinearisation):
        finished = answer.finished_by("exact")[samples]
        own = samples[finished]
        if len(own):
            check = _check_of(request, found)
            answer, _, broken[own] = enforce(request, answer, found, own, check)
        # Beside predictions that drown rows in rounding, which disjuncts hold was forgiven as well.
        lost = own[(np.abs(yhat[own]).max(1) > _DROWNING) & (broken[own] == 0.0)]
        if len(lost):
            violation = _violation(request, lost, answer.y[lost])
            broken[lost] = np.where(violation > settings.tolerance, violation, 0.0)
        samples = samples[~finished]
        if settings.dtype is torch.float64:
            # Not rounded, and what MILP found was checked on these very numbers.
            proved = answer.status[samples] == Status.PROJECTED
            samples = samples[~(proved & answer.finished_by("milp")[samples])]
    if len(samples):
        answer, broken[samples] = _mended_otherwise(request, answer, samples)
    if not broken.any():
        return answer
    answer.status[broken > 0.0] = Status.ERROR
    return answer.noting(rounding=broken)


def _check_of(request: Request, found: ExactLinearisation, strict: bool = False) -> ReturnedCheck:
    settings = request.settings
    return ReturnedCheck(
        request.rules, found.instance, settings.dtype, settings.tolerance, strict=strict
    )


def _mended_otherwise(request: Request, answer: Answer, samples: Array) -> tuple[Answer, Array]:
    """The same for points of other solvers, whose auxiliaries are not known."""
    settings = request.settings
    answer = answer.replace(y=answer.y.copy())
    rounded = _rounded(answer.y[samples], settings.dtype)
    violation = _violation(request, samples, rounded)
    wrong = violation > settings.tolerance
    answer.y[samples] = rounded
    if settings.plan is not None:  # a relaxation's point may break rules
        answer.status[samples[wrong]] = Status.RELAXED
        return answer, np.zeros(len(samples))
    if wrong.any() and core.AVAILABLE and Exact().searches(request):
        # The engine knows how to mend what it finds itself.
        some = samples[wrong]
        part = request.take(some)
        again = Exact().solve(part)
        found = again.linearisation
        assert isinstance(found, ExactLinearisation)
        own = np.flatnonzero(again.answered & again.finished_by("exact"))
        again, good, _ = enforce(part, again, found, own, _check_of(part, found))
        for name in ("y", "status", "value", "assignment"):
            getattr(answer, name)[some[good]] = getattr(again, name)[good]
        violation[np.flatnonzero(wrong)[good]] = 0.0
    return answer, np.where(violation > settings.tolerance, violation, 0.0)


def _violation(request: Request, samples: Array, y: Array) -> Array:
    """How far outputs are from what has to hold, (samples,)."""
    each, globally = existence.measure(request.rules, Batch.of_arrays(request.x[samples], y))
    return np.asarray(request.rules.satisfaction.worst(each, globally).numpy())


def _rounded(y: Array, dtype: torch.dtype) -> Array:
    """Numbers of a type, the largest instead of infinity."""
    most = torch.finfo(dtype).max
    return torch.from_numpy(y).to(dtype).double().clamp(-most, most).numpy()


class Reach:
    """How far rounding can move the rows of a rule model.

    Args:
        rules: the rules.
    """

    def __init__(self, rules: Rules) -> None:
        data, table = rules.data, rules.table
        self.outputs = data.outputs
        entries, number = table.entries, len(data.rows)
        bound = np.array(
            [abs(r.bound.number) if r.bound.is_number else 0.0 for r in data.rows], dtype=float
        )
        scale = np.maximum(1.0, np.maximum(bound, entries.largest))
        varying = np.zeros(number, dtype=bool)
        varying[table.varying.numpy()] = True
        # At most 1 after scaling where they depend on x, whatever x is.
        value = np.where(varying[entries.row], 1.0, np.abs(entries.value) / scale[entries.row])
        size = replace(entries, value=value)
        steep = [steepest(data, i) / scale[i] for i in data.curved]
        if steep:
            curved = size.take(data.curved).dense() + np.stack(steep)
            size = size.take([i for i in range(number) if i not in set(data.curved)])
            size = size.above(Compressed.of(curved))
        # A bound of a column is a row of its own.
        lower = np.array([column.lower for column in data.columns])
        upper = np.array([column.upper for column in data.columns])
        ends = 1.0 / np.maximum(1.0, _least_size(lower, upper))
        every = np.arange(len(ends) + 1)
        self.rows = size.above(Compressed(every, every[:-1], ends, len(ends)))
        self.largest = np.maximum(np.abs(lower), np.abs(upper))
        self._harmless: dict[torch.dtype, bool] = {}

    def harmless(self, settings: Settings) -> bool:
        """Whether no output within its bounds can be rounded beyond the tolerance."""
        known = self._harmless.get(settings.dtype)
        if known is None:
            known = bool(np.isfinite(self.largest).all()) and not bool(
                self.at_risk(self.largest[None], settings)[0]
            )
            self._harmless[settings.dtype] = known
        return known

    def at_risk(self, z: Array, settings: Settings) -> Array:
        """Which points can be rounded beyond the tolerance, (B,) bool.

        Args:
            z: all columns, or the outputs alone, (B, n).
            settings: type and tolerance.
        """
        n = z.shape[1]
        exact = float(np.finfo(float).eps) * (n + 2)  # what adding up a row loses
        eps = np.full(n, exact)
        if settings.dtype is not torch.float64:
            eps[: self.outputs] += 0.5 * float(torch.finfo(settings.dtype).eps)
        with np.errstate(invalid="ignore"):  # infinitely steep curves: not to be excluded
            missing = np.zeros((len(z), self.rows.columns - n))  # of no size
            lost = self.rows.times(np.hstack([np.abs(z) * eps, missing]))
        return np.asarray(~(lost.max(1, initial=0.0) <= 0.5 * settings.tolerance))


def _least_size(lower: Array, upper: Array) -> Array:
    """The smaller of a column's finite bounds in size."""
    low, high = np.abs(lower), np.abs(upper)
    return np.where(np.isfinite(np.minimum(low, high)), np.minimum(low, high), 1.0)
