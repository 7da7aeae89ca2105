"""gdpnet.project: the nearest outputs that satisfy the rules."""

from __future__ import annotations

import logging
import time
from typing import Any

import numpy as np
import torch

from gdpnet.convexify.plan import Plan
from gdpnet.errors import ConflictError, InputError
from gdpnet.rules._batch import as_batch, name_rows, refuse_nonfinite
from gdpnet.rules.model import RuleModel
from gdpnet.solve import _exact, _milp, _relaxed, _strict
from gdpnet.solve._arguments import check_choice, check_count, check_seconds, weights_of
from gdpnet.solve._results import NODE_LIMIT, Options, Results
from gdpnet.solve.projection import Projection
from gdpnet.solve.status import Status

logger = logging.getLogger("gdpnet")

# A prediction that satisfies everything within this passes unchanged: what rounding in the
# caller's type leaves of an equality (a float32 softmax misses its sum by 1e-7).
_TOLERANCE = {
    torch.float64: 1e-9,
    torch.float32: 1e-6,
    torch.float16: 2e-3,
    torch.bfloat16: 2e-2,
}

# Solvers of a relaxation that is written out as a linear program, and those of the DNF itself.
_WRITTEN_OUT = ("dense", "highs", "gurobi")
_SOLVERS = ("auto", "exact", "milp", "milp:gurobi", *_WRITTEN_OUT)


def project(
    rules: RuleModel,
    yhat: Any,
    x: Any = None,
    *,
    relaxation: str | Plan = "dnf",
    solver: str = "auto",
    weights: Any = None,
    tie: str = "vertex",
    strict: bool = False,
    node_limit: int = NODE_LIMIT,
    time_limit: float | None = None,
    threads: int | None = None,
    on_conflict: str = "pass",
    on_invalid: str = "raise",
) -> Projection:
    """The nearest outputs, in weighted l1 distance, that satisfy the rules.

    Args:
        rules: the rules.
        yhat: predictions, `... x d`. One that satisfies everything within the rounding of its type
            (1e-9 in float64, 1e-6 in float32, 2e-3 in float16, 2e-2 in bfloat16, relative to
            max(|b|, max|a|) of a row) passes unchanged; y is rounded to the type of yhat, so check
            float16 outputs with a tolerance of that size, or use `strict`. Gradients do not pass.
        x: inputs, `... x p`; a single one of shape `p` is used for all samples.
        relaxation: `"dnf"`: exact; `"cnf"`: every rule convexified by itself; a `Plan`: a partial
            DNF, the rules of a cluster merged by basic steps. For the last two `value` is a
            lower bound on the exact distance, and y may break rules: status RELAXED, and
            `disjunct` is -1 for the rules that are broken. `"auto"`: CNF first, then basic steps on
            broken rules, round by round, until all rules hold: the exact answer, or LIMIT where too
            many products would have to be written down (`info.rounds` counts).
        solver: `"exact"`: the exact engine; `"milp"`: a mixed-integer program by HiGHS for each
            sample, slow and certain; `"milp:gurobi"`: by Gurobi. For relaxations written out as a
            linear program: `"dense"`: the engine's own simplex, `"highs"`: HiGHS with the model
            kept and coefficients changed in place, `"gurobi"` likewise. Those two start from the
            last basis, so where several points are equally near, which one they give may depend
            on the samples before. `"auto"`: the exact engine for the DNF (MILP without numba),
            dense for the others.
        weights: positive weight of each output in the distance, `d`; 1 where not given.
        tie: which point where several are equally near in l1. `"vertex"`: a vertex of the nearest
            set, always the same one, chosen by the order of outputs and rules. `"least_norm"`: of
            all nearest points of all combinations of disjuncts the one with the least
            `sum (w (y - yhat))^2`, whatever the order of rules. On a probability simplex nearly
            every nearest point is one of many, and the vertex takes from few coordinates what the
            least norm takes evenly from all. Exact engine only; `info.least_norm` tells where it is
            proved.
        strict: inequalities of the chosen disjuncts, global ones and bounds hold with tolerance 0
            on the y returned, after its rounding to the caller's type, and equalities within a few
            units in the last place. Rows that rounding breaks are tightened by what they were
            broken and half a unit in the last place, so the distance grows by rounding errors
            only, unless the nearest set is so thin that no number of that type lies in it and
            another set is taken. `info.strict` tells for which samples it could be had. Exact
            engine only.
        node_limit: nodes of the exact engine's search for a sample; what is not finished by then
            goes to MILP (`info.solver` tells).
        time_limit: seconds for each sample, for the engine's search and for the MILP that takes
            over; then the best found is returned with status LIMIT.
        threads: samples solved at a time; chosen by the size of the batch where not given. The
            answers do not depend on it.
        on_conflict: for samples whose rules contradict each other: `"pass"` returns the prediction
            unchanged, `"raise"` raises, `"nearest"` keeps bounds and global constraints and breaks
            the rules as little as possible (least sum of scaled violations, then least distance).
        on_invalid: for samples with NaN or infinity: `"raise"`, or `"mark"` (status ERROR, y is
            NaN, the others are untouched).

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
    if not isinstance(rules, RuleModel):
        raise InputError(f"rules: expected a gdpnet.RuleModel, got {type(rules).__name__}.")
    check_choice("solver", solver, _SOLVERS)
    plan = _plan(rules, relaxation, solver)
    check_choice("on_conflict", on_conflict, ("pass", "raise", "nearest"))
    check_choice("on_invalid", on_invalid, ("raise", "mark"))
    check_choice("tie", tie, ("vertex", "least_norm"))
    for keyword, chosen, usual in (("tie", tie, "vertex"), ("strict", strict, False)):
        if chosen != usual and (plan is not None or solver not in ("auto", "exact")):
            raise InputError(
                f"{keyword}: only the exact engine knows {keyword}={chosen!r}, not "
                f"relaxation={relaxation!r} with solver={solver!r}."
            )
    check_count("node_limit", node_limit)
    check_seconds("time_limit", time_limit)
    check_count("threads", threads, none=True)
    started = time.perf_counter()
    mark = on_invalid == "mark"
    batch = as_batch(x, yhat, rules.input_names, rules.output_names, y_name="yhat", finite=False)
    given = weights_of(weights, rules)
    unit = given.max()  # solvers work in units of the heaviest output: their tolerances mean that
    options = Options(
        weights=given / unit,
        tolerance=_TOLERANCE.get(batch.dtype, 1e-6),
        node_limit=int(node_limit),
        time_limit=time_limit,
        threads=None if threads is None else int(threads),
        nearest=on_conflict == "nearest",
        tie=tie,
        dtype=batch.dtype,
    )
    inputs, predictions = _array(batch.x), _array(batch.y)
    invalid = np.zeros(len(predictions), dtype=bool)
    if not (np.isfinite(inputs).all() and np.isfinite(predictions).all()):
        if not mark:
            refuse_nonfinite(batch.x, "x")
            refuse_nonfinite(batch.y, "yhat")
        invalid = ~(np.isfinite(inputs).all(1) & np.isfinite(predictions).all(1))
        inputs = np.where(invalid[:, None], 0.0, inputs)
        predictions = np.where(invalid[:, None], 0.0, predictions)
    assembled = time.perf_counter()

    results = _solve(solver, plan, relaxation, rules, inputs, predictions, invalid, options, mark)
    if strict:
        results.strict = _strict.enforce(rules, predictions, results, options)
    results.value, results.unit = results.value * unit, float(unit)
    if invalid.any():
        results.status[invalid] = Status.ERROR
        results.y[invalid] = np.nan
        results.solver[invalid] = 0
    if on_conflict == "raise":
        conflict = results.status == Status.CONFLICT
        if conflict.any():
            raise ConflictError(_conflict_message(rules, inputs, conflict))
    seconds = {"assemble": assembled - started, "solve": time.perf_counter() - assembled}
    return Projection(rules, batch, results, given, seconds)


def _array(tensor: torch.Tensor) -> np.ndarray:
    return np.ascontiguousarray(tensor.detach().cpu().numpy())


def _plan(rules: RuleModel, relaxation: Any, solver: str) -> Plan | None:
    """The plan of a relaxation that is written out; None for the DNF without writing it down."""
    if isinstance(relaxation, Plan):
        plan = relaxation
    else:
        check_choice("relaxation", relaxation, ("dnf", "cnf", "auto"))
        if relaxation == "dnf" and solver not in _WRITTEN_OUT:
            return None
        plan = Plan.dnf(rules) if relaxation == "dnf" else Plan.cnf()
    if solver not in ("auto", *_WRITTEN_OUT):
        raise InputError(
            f"solver: {solver!r} solves relaxation='dnf' only; for {relaxation!r} use one of "
            f"{', '.join(map(repr, ('auto', *_WRITTEN_OUT)))}."
        )
    return plan


def _solve(
    solver: str,
    plan: Plan | None,
    relaxation: str | Plan,
    rules: RuleModel,
    x: np.ndarray,
    yhat: np.ndarray,
    invalid: np.ndarray,
    options: Options,
    mark: bool,
) -> Results:
    if plan is not None:
        solver = "dense" if solver == "auto" else solver
        merged = None if relaxation == "dnf" else plan  # all that hangs together
        adaptive = relaxation == "auto"
        return _relaxed.solve(rules, x, yhat, invalid, options, mark, merged, solver, adaptive)
    if solver == "auto":
        solver = "exact" if _exact.AVAILABLE else "milp"
        if solver == "milp":
            _tell_without_numba()
    if solver == "exact":
        return _exact.solve(rules, x, yhat, invalid, options, mark)
    return _milp.solve(rules, x, yhat, invalid, options, mark, solver)


_told: list[str] = []


def _tell_without_numba() -> None:
    if not _told:
        _told.append("numba")
        logger.warning(
            "numba is not installed: projecting by a mixed-integer program a sample (HiGHS), "
            "which is thousands of times slower than the exact engine. pip install numba"
        )


def _conflict_message(rules: RuleModel, x: np.ndarray, conflict: np.ndarray) -> str:
    first = int(np.flatnonzero(conflict)[0])
    names = rules.explain_conflict(x[first] if rules.input_names else None)
    rows = name_rows(torch.from_numpy(conflict))
    return (
        f"No output satisfies all active rules in {rows}. In row {first} these "
        f"contradict each other: {', '.join(map(str, names))}. on_conflict='pass' lets such "
        "predictions through, 'nearest' breaks the rules as little as possible."
    )
