"""gdpnet.project: the nearest outputs that satisfy the rules."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from gdpnet.errors import ConflictError, InputError
from gdpnet.rules._batch import Batch, as_batch, name_rows
from gdpnet.rules.model import Evaluated, RuleModel
from gdpnet.solve.status import Status

# A prediction that satisfies everything within this passes unchanged: what rounding in the
# caller's type leaves of an equality (a float32 softmax misses its sum by 1e-7).
_TOLERANCE = {
    torch.float64: 1e-9,
    torch.float32: 1e-6,
    torch.float16: 2e-3,
    torch.bfloat16: 2e-2,
}

_RELAXATIONS = ("dnf",)
_SOLVERS = ("auto", "milp", "milp:gurobi")


@dataclass(frozen=True)
class ProjectionInfo:
    """How the projection went.

    Attributes:
        nodes: programs or nodes solved for each sample, `...`.
        bound: proved lower bound on each distance, `...`.
        solver: which solver finished.
        seconds: time of each stage.
    """

    nodes: torch.Tensor
    bound: torch.Tensor
    solver: str
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Projection:
    """Projected outputs, and what became of each sample.

    Attributes:
        y: outputs, `... x d`, in the type and on the device of the prediction.
        value: optimal value of the relaxation, a lower bound on the distance, `...`.
        distance: weighted l1 distance of y to the prediction as given, `...`; inf on CONFLICT, and
            where a limit was reached before anything was found (y is the prediction then).
        status: codes of `Status`, int8 `...`.
        disjunct: index in the source Disjunction of the disjunct that holds, `... x rules`;
            -1 where the rule is inactive or broken.
        info: nodes, bound, solver, timing.
    """

    y: torch.Tensor
    value: torch.Tensor
    distance: torch.Tensor
    status: torch.Tensor
    disjunct: torch.Tensor
    info: ProjectionInfo

    def __repr__(self) -> str:
        codes, counts = self.status.unique(return_counts=True)
        told = ", ".join(
            f"{count} {Status(code).name}"
            for code, count in zip(codes.tolist(), counts.tolist(), strict=True)
        )
        return f"Projection(y: {tuple(self.y.shape)}, {told}, solver: {self.info.solver})"


def project(
    rules: RuleModel,
    yhat: Any,
    x: Any = None,
    *,
    relaxation: str = "dnf",
    solver: str = "auto",
    weights: Any = None,
    time_limit: float | None = None,
    threads: int | None = None,
    on_conflict: str = "pass",
    on_invalid: str = "raise",
) -> Projection:
    """The nearest outputs, in weighted l1 distance, that satisfy the rules.

    Args:
        rules: the rules.
        yhat: predictions, `... x d`.
        x: inputs, `... x p`; a single one of shape `p` is used for all samples.
        relaxation: `"dnf"`: exact.
        solver: `"milp"`: a mixed-integer program by HiGHS for each sample; `"milp:gurobi"`: by
            Gurobi; `"auto"` chooses.
        weights: positive weight of each output in the distance, `d`; 1 where not given.
        time_limit: seconds for each sample; then the best found is returned with status LIMIT.
        threads: samples solved at a time; one a core where not given.
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
    _choice("relaxation", relaxation, _RELAXATIONS)
    _choice("solver", solver, _SOLVERS)
    _choice("on_conflict", on_conflict, ("pass", "raise", "nearest"))
    _choice("on_invalid", on_invalid, ("raise", "mark"))
    _positive("time_limit", time_limit)
    _positive("threads", threads)
    started = time.perf_counter()
    batch = as_batch(
        *(x, yhat, rules.input_names, rules.output_names),
        y_name="yhat",
        finite=on_invalid == "raise",
    )
    device = batch.y.device
    weight = _weights(weights, rules)
    work, evaluated, invalid = _prepare(rules, batch, on_invalid)
    assembled = time.perf_counter()

    result = _Result(rules, work, evaluated, weight)
    result.status[invalid] = Status.ERROR
    tol = _TOLERANCE.get(batch.dtype, 1e-6)
    holds, usable = np.zeros(len(invalid), dtype=bool), np.flatnonzero(~invalid)
    if len(usable):
        holds[usable] = rules.satisfied(work.x[usable], work.y[usable], tol).cpu().numpy()
    result.accept(np.flatnonzero(holds), tol)

    from gdpnet.solve import _milp

    name = "milp" if solver == "auto" else solver
    rest = np.flatnonzero(~holds & ~invalid)
    found = _milp.project(
        *(rules, evaluated, result.yhat, weight, rest, name, time_limit, threads),
        nearest=on_conflict == "nearest",
    )
    for index, one in zip(rest.tolist(), found, strict=True):
        result.put(index, one)
    result.y[invalid] = np.nan

    conflict = torch.from_numpy(result.status == Status.CONFLICT)
    if on_conflict == "raise" and bool(conflict.any()):
        raise ConflictError(_conflict_message(rules, work, conflict))
    solved = time.perf_counter()
    return result.finish(
        batch,
        device,
        name,
        {"assemble": assembled - started, "solve": solved - assembled},
    )


class _Result:
    """Arrays that are filled sample by sample."""

    def __init__(
        self, rules: RuleModel, batch: Batch, evaluated: Evaluated, weights: np.ndarray
    ) -> None:
        size = len(batch.y)
        self.rules, self.batch, self.evaluated, self.weights = rules, batch, evaluated, weights
        self.yhat = batch.y.detach().cpu().numpy()
        self.y = self.yhat.copy()
        self.status = np.full(size, Status.SATISFIED, dtype=np.int8)
        self.value = np.zeros(size)
        self.nodes = np.zeros(size, dtype=np.int64)
        self.missing = np.zeros(size, dtype=bool)
        self.disjunct = np.full((size, len(rules.names)), -1, dtype=np.int64)

    def accept(self, samples: np.ndarray, tol: float) -> None:
        """Predictions that already satisfy everything: only their disjuncts are looked up."""
        if not len(samples) or not self.rules.names:
            return
        index = torch.from_numpy(samples)
        part = Batch(self.batch.x[index], self.batch.y[index], self.batch.shape, self.batch.dtype)
        self.disjunct[samples] = _holding(self.rules, part, tol)

    def put(self, index: int, found: Any) -> None:
        """One sample that a solver projected."""
        self.status[index] = found.status
        self.y[index] = found.y
        self.value[index] = found.value
        self.nodes[index] = found.nodes
        self.missing[index] = not found.found
        active = self.evaluated.rules[index].tolist()
        for r, rule in enumerate(self.rules.data.rules):
            if active[r] and found.status in (Status.PROJECTED, Status.LIMIT):
                literals = self.rules.data.clauses[rule.clause].literals
                chosen = [p for p, k in zip(rule.positions, literals, strict=True)
                          if k in found.literals]  # fmt: skip
                self.disjunct[index, r] = chosen[0] if chosen else -1

    def finish(
        self, batch: Batch, device: torch.device, solver: str, seconds: dict[str, float]
    ) -> Projection:
        """The result in the caller's shape, type and device."""
        distance = np.abs(self.y - batch.y.detach().cpu().numpy()) @ self.weights
        distance[(self.status == Status.CONFLICT) | self.missing] = np.inf
        self.value[self.status == Status.ERROR] = np.nan
        y = torch.from_numpy(self.y).to(device, batch.dtype)
        unmoved = torch.from_numpy(self.status == Status.SATISFIED)
        # Exactly the caller's numbers, not those that went through a conversion.
        y = torch.where(unmoved.to(device)[:, None], batch.y.to(batch.dtype), y)

        def restored(array: np.ndarray, dtype: torch.dtype | None = None) -> torch.Tensor:
            return batch.restore(torch.from_numpy(array).to(device, dtype))

        return Projection(
            y=batch.restore(y),
            value=restored(self.value, batch.dtype),
            distance=restored(distance, batch.dtype),
            status=restored(self.status),
            disjunct=restored(self.disjunct),
            info=ProjectionInfo(restored(self.nodes), restored(self.value), solver, seconds),
        )


def _prepare(
    rules: RuleModel, batch: Batch, on_invalid: str
) -> tuple[Batch, Evaluated, np.ndarray]:
    """Rows of the batch, and which samples cannot be used (replaced by harmless ones)."""
    bad = ~(batch.x.isfinite().all(1) & batch.y.isfinite().all(1))
    x, y = torch.where(bad[:, None], 0.0, batch.x), torch.where(bad[:, None], 0.0, batch.y)
    evaluated = rules.evaluate(x)
    if on_invalid == "raise":
        rules.refuse_unusable(evaluated.rows)
    else:
        usable = ~(bad | evaluated.rows.unusable())
        if not bool(usable.all()):
            # Evaluate again with every unusable sample replaced by a usable one.
            if bool(usable.any()):
                x = torch.where(usable[:, None], x, x[usable][:1])
                evaluated = rules.evaluate(x)
            bad = ~usable
    return Batch(x, y, batch.shape, batch.dtype), evaluated, bad.cpu().numpy()


def _holding(rules: RuleModel, batch: Batch, tol: float) -> np.ndarray:
    """First disjunct of each active rule that holds, `batch x rules`; -1 where inactive."""
    from gdpnet.solve import _existence

    evaluated = rules.evaluate(batch.x)
    holds = np.zeros((len(batch.y), len(rules.data.booleans)), dtype=bool)
    if rules.auxiliary_names:
        for i, literals in enumerate(_existence.true_literals(rules, batch)):
            holds[i, [k - 1 for k in literals if k > 0]] = True
    else:
        residual = evaluated.rows.residual(batch.y)
        booleans = rules.satisfaction.of_booleans(residual, evaluated.clauses)
        holds[:] = (booleans <= tol).cpu().numpy()
        if not rules.is_plain:
            for i, values in enumerate(_existence.truth_values(rules, batch, tol)):
                for boolean, value in (values or {}).items():
                    holds[i, boolean] = value
    active = evaluated.rules.cpu().numpy()
    chosen = np.full((len(batch.y), len(rules.names)), -1, dtype=np.int64)
    for r, rule in enumerate(rules.data.rules):
        columns = [k - 1 for k in rules.data.clauses[rule.clause].literals]
        first = np.asarray(rule.positions)[holds[:, columns].argmax(1)]
        chosen[:, r] = np.where(active[:, r] & holds[:, columns].any(1), first, -1)
    return chosen


def _weights(weights: Any, rules: RuleModel) -> np.ndarray:
    d = len(rules.output_names)
    if weights is None:
        return np.ones(d)
    try:
        array = np.asarray(weights, dtype=float)
    except (TypeError, ValueError):
        array = np.asarray(weights, dtype=object)
    if array.dtype == object or array.shape != (d,) or not (np.isfinite(array) & (array > 0)).all():
        raise InputError(
            f"weights: expected {d} positive numbers, one an output "
            f"({', '.join(rules.output_names[:8])}), got {array!r}."
        )
    return array


def _choice(name: str, value: Any, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InputError(f"{name}: expected one of {', '.join(map(repr, known))}, got {value!r}.")


def _positive(name: str, value: Any) -> None:
    if value is not None and not (isinstance(value, int | float) and value > 0):
        raise InputError(f"{name}: expected a positive number or None, got {value!r}.")


def _conflict_message(rules: RuleModel, batch: Batch, conflict: torch.Tensor) -> str:
    first = int(conflict.nonzero()[0])
    names = rules.explain_conflict(batch.x[first] if rules.input_names else None)
    return (
        f"No output satisfies all active rules in {name_rows(conflict)}. In row {first} these "
        f"contradict each other: {', '.join(map(str, names))}. on_conflict='pass' lets such "
        "predictions through, 'nearest' breaks the rules as little as possible."
    )
