"""Projection: what `gdpnet.project` returns."""

from __future__ import annotations

from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
import torch

from gdpnet.derivative.gradients import Derivative
from gdpnet.errors import InputError, SolverError
from gdpnet.ir.batch import Batch, Origin
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.projection import completion
from gdpnet.projection.node import OperatorNode
from gdpnet.projection.operator import aside, attach
from gdpnet.projection.paying import Paying
from gdpnet.relaxation.layouts import layouts_of
from gdpnet.relaxation.program import Sizes
from gdpnet.solve.base import Answer, Request
from gdpnet.solve.exact.linearisation import ExactLinearisation
from gdpnet.solve.status import Status

_PROVED = torch.tensor([Status.SATISFIED, Status.PROJECTED], dtype=torch.int8)


class Projection:
    """Projected outputs, and what became of each sample.

    Attributes are made when they are first looked at, so that a single prediction costs no more
    than its projection. `answer` is what the backend found: numpy arrays over the flat batch, in
    float64, before they are rounded to the caller's type.

    Args:
        request: what was asked of the backend.
        origin: what the caller gave, and wants back.
        answer: what it found.
        weights: of the outputs, `d`.
        unit: the heaviest of them, which backends count distances in.
        seconds: time of each stage.
        derivative: how gradients pass, where that was asked for.
    """

    def __init__(
        self,
        request: Request,
        origin: Origin,
        answer: Answer,
        weights: np.ndarray,
        unit: float,
        seconds: dict[str, float],
        derivative: Derivative | None = None,
    ) -> None:
        self.request = request
        self._rules = request.rules
        self.origin = origin
        self.answer = answer
        self._weights = weights
        self._unit = unit
        self.times = seconds
        self.derivative = derivative
        self._y: torch.Tensor | None = None
        self._yhat: torch.Tensor | None = None
        self._x: torch.Tensor | None = None
        self._numbers = False

    @property
    def y(self) -> torch.Tensor:
        """Outputs, `... x d`, in the type and on the device of the prediction.

        They carry gradients where a gradient was named and prediction or inputs require one.
        """
        if self._y is None:  # a cached_property would take a lock
            self._y = self.outputs()
        return self._y

    def attach(self, yhat: Any, x: Any) -> None:
        """Make `y` a function of prediction and inputs in torch's graph."""
        assert self.derivative is not None
        y = self.outputs()
        self._y = attach(self.node(y), yhat, x)
        self._yhat = yhat if isinstance(yhat, torch.Tensor) else None

    def follow_prices(self, x: Any) -> None:
        """Make `price` a function of inputs in torch's graph, where they require a gradient."""
        if isinstance(x, torch.Tensor) and x.requires_grad and torch.is_grad_enabled():
            self._x = x

    def node(self, y: torch.Tensor | None = None) -> OperatorNode:
        """What knows the derivative; `y` are outputs that it gives away."""
        assert self.derivative is not None
        return OperatorNode(self._rules, y, self.derivative, self.times)

    def with_outputs(self, y: torch.Tensor) -> Projection:
        """The same, and `y` the outputs that are shown; nothing else carries a derivative."""
        self._y, self._numbers = y, True
        return self

    def outputs(self) -> torch.Tensor:
        """Outputs in memory of their own, which the caller may write into.

        Distances and gradients are made of the solver's, later. No view either: torch lets nobody
        write into one that a Function returns.
        """
        y, origin = self.answer.y, self.origin
        if len(origin.shape) != 1:
            y = y.reshape(*origin.shape, y.shape[1])
        if origin.device is None:  # numpy converts in a third of torch's time, what it knows
            if origin.dtype is torch.float64:
                return torch.from_numpy(y.copy())
            if origin.dtype is torch.float32:
                return torch.from_numpy(y.astype(np.float32))
        return origin.put(torch.from_numpy(y), origin.dtype)

    @cached_property
    @aside
    def value(self) -> torch.Tensor:
        """Optimum of what is minimised, or a lower bound on it, `...`.

        With norm="l1" that is the distance, with norm="l2" its square, and in both cases what is
        paid (`price`); of a relaxation the optimal value.

        Of rules with prices it carries gradients where `y` or `price` do: those of the distance of
        y, and of the prices that are paid. Of other rules it carries none; see `distance`.
        """
        value = np.where(self.answer.unusable, np.nan, self.answer.value)
        found = self._tensor(value, self.origin.dtype)
        if self._numbers or not self._rules.data.priced:
            return found
        slope = self._paying.slope(self.y, self._yhat, self._weights, self.price)
        return found if slope is None else found + slope.to(found.dtype)

    @cached_property
    def _paying(self) -> Paying:
        return Paying(self.request, self.origin, self.answer)

    @cached_property
    @aside
    def price(self) -> torch.Tensor:
        """What is paid beside the distance, for chosen disjuncts and broken rules, `...`.

        It is in units of what is minimised. Where x requires a gradient and a price depends on it,
        it carries that of the prices that are paid.
        """
        return self._paying.price(self._x)

    @cached_property
    @aside
    def broken(self) -> torch.Tensor:
        """Which rules were bought off at their price, bool `... x rules`.

        Such a rule is active, and `disjunct` is -1 there.

        Example:
            >>> import pyomo.environ as pyo, gdpnet
            >>> m = pyo.ConcreteModel()
            >>> m.y = pyo.Var(bounds=(0, 10))
            >>> m.gap = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 7), price=1.2)
            >>> p = gdpnet.project(gdpnet.RuleModel(m, outputs=[m.y]), [[4.0], [4.5]])
            >>> p.y.tolist(), p.broken.tolist(), p.price.tolist()
            ([[3.0], [4.5]], [[False], [True]], [0.0, 1.2])
        """
        return self._tensor(self._paying.broken())

    @cached_property
    def distance(self) -> torch.Tensor:
        """Weighted distance of y to the prediction as given, `...`.

        With norm="l1" the sum of w |y - yhat|, with norm="l2" the root of the sum of
        (w (y - yhat))^2.

        inf on CONFLICT, and where a limit was reached before anything was found (y is the
        prediction then).

        It is a number: no gradient passes. One that is to be minimised is computed from y, and
        with gradient="vertex" has its exact gradient (`docs/gradients.md`).

        Example:
            >>> import pyomo.environ as pyo, gdpnet, torch
            >>> m = pyo.ConcreteModel()
            >>> m.y = pyo.Var(bounds=(0, 10))
            >>> m.gap = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 7))
            >>> rules = gdpnet.RuleModel(m, outputs=[m.y])
            >>> yhat = torch.tensor([[4.5]], requires_grad=True)
            >>> p = gdpnet.project(rules, yhat, gradient="vertex")
            >>> distance = (p.y - yhat).abs().sum(-1)
            >>> p.distance.requires_grad, torch.autograd.grad(distance, yhat)[0].item()
            (False, 1.0)
        """
        answer = self.answer
        if self.request.settings.norm == "l2":
            distance = np.linalg.norm((answer.y - self.request.yhat) * self._weights, axis=1)
        else:
            distance = np.abs(answer.y - self.request.yhat) @ self._weights
        nothing = (answer.status == Status.CONFLICT) | (answer.status == Status.UNSOLVED)
        distance[nothing] = np.inf
        return self._tensor(distance, self.origin.dtype)

    @cached_property
    def status(self) -> torch.Tensor:
        """Codes of `Status`, int8 `...`."""
        return self._tensor(self.answer.status.copy())

    @cached_property
    @aside
    def disjunct(self) -> torch.Tensor:
        """Index in the source Disjunction of the disjunct that holds, `... x rules`.

        -1 where the rule is inactive or broken.
        """
        return self._tensor(self.answer.disjunct(self._rules, self._paying.payment))

    @cached_property
    @aside
    def auxiliaries(self) -> dict[str, torch.Tensor]:
        """Values of the Vars that are no outputs, by name, each float64 `...`.

        Everything holds together with y and `disjunct`. Where a solver found none (a prediction
        that passed as it is, a point that was moved by rounding) they are looked for when this is
        first asked for, by a small program a sample. NaN for samples without an answer: RELAXED,
        whose y breaks rules, CONFLICT, UNSOLVED and ERROR.

        Example:
            >>> import pyomo.environ as pyo, gdpnet
            >>> m = pyo.ConcreteModel()
            >>> m.f, m.P = pyo.Var(bounds=(0, 1)), pyo.Var(bounds=(0, 10))
            >>> m.power = pyo.Constraint(expr=m.P == 2 * m.f)
            >>> m.limit = gdpnet.rule(gdpnet.any_of(m.P <= 0.5, m.P >= 1.5))
            >>> p = gdpnet.project(gdpnet.RuleModel(m, outputs=[m.f]), [[0.3], [0.7]])
            >>> p.auxiliaries["P"].tolist()
            [0.5, 1.5]
        """
        columns = self._columns(np.arange(len(self.answer.y)))
        d = self._rules.data.outputs
        return {
            name: self._tensor(columns[:, d + k].copy())
            for k, name in enumerate(self._rules.auxiliary_names)
        }

    def _columns(self, samples: np.ndarray) -> np.ndarray:
        """Outputs and auxiliaries of some samples, `samples x n`; NaN without an answer."""
        answer, rules = self.answer, self._rules
        columns = np.full((len(samples), len(rules.data.columns)), np.nan)
        answered = answer.answered[samples]
        some = samples[answered]
        if len(some) and columns.shape[1]:
            y = torch.from_numpy(answer.y).to(self.origin.dtype).double().numpy()
            batch = Batch.of_arrays(self.request.x[some], y[some])
            columns[answered] = completion.complete(
                rules,
                batch,
                answer.columns()[some],
                answer.assignment[some],
                max(TOLERANCES.of(torch.float64), 2 * torch.finfo(self.origin.dtype).eps),
            )
        return columns

    def load_into(self, model: Any, sample: int = 0) -> None:
        """Put one sample's solution into the Pyomo model: everything that stands in the rules.

        Inputs, outputs, auxiliaries, the indicators of Disjuncts and BooleanVars, by name, so that
        rules that were loaded from a file do as well. Of a Disjunction the disjunct in `disjunct`
        is true; those of an inactive rule are all false. Vars and BooleanVars that are fixed, and
        Vars that stand in no rule, are left as they are.

        Args:
            model: the model that the rules were read from, or one with the same names.
            sample: which one, counted over the flattened batch.

        Example:
            >>> import pyomo.environ as pyo, gdpnet
            >>> from pyomo.gdp import Disjunction
            >>> m = pyo.ConcreteModel()
            >>> m.y = pyo.Var(bounds=(0, 10))
            >>> m.gap = Disjunction(expr=[[m.y <= 3], [m.y >= 7]])
            >>> rules = gdpnet.RuleModel(m, outputs=[m.y])
            >>> gdpnet.project(rules, [[4.5], [6.0]]).load_into(m, sample=1)
            >>> m.y.value, [d.indicator_var.value for d in m.gap.disjuncts]
            (7.0, [False, True])
        """
        from gdpnet.rules.loading import load  # needs Pyomo

        index = self._index(sample)
        status = Status(int(self.answer.status[index]))
        if not self.answer.answered[index]:
            raise InputError(
                f"sample: {sample} has no solution to load, it is {status.name}: {status.message}."
            )
        z = self._columns(np.array([index]))[0]
        if np.isnan(z).any():
            raise SolverError(
                f"sample: HiGHS found no values of the auxiliaries of sample {sample}."
            )
        at = Batch.of_arrays(self.request.x[[index]], z[None])
        truth = completion.truth_values(self._rules, at, self.answer.assignment[index])
        load(model, self._rules.data, at.x[0].tolist(), z.tolist(), truth.tolist())

    def _index(self, sample: Any) -> int:
        size = len(self.answer.y)
        if not isinstance(sample, Integral) or not -size <= int(sample) < size:
            raise InputError(f"sample: expected a whole number below {size}, got {sample!r}.")
        return int(sample) % size

    @cached_property
    def info(self) -> ProjectionInfo:
        """Nodes, bound, tight rows, solver, timing."""
        return ProjectionInfo(self)

    def _tensor(self, array: np.ndarray, dtype: torch.dtype | None = None) -> torch.Tensor:
        return self.origin.restore(torch.from_numpy(array), dtype)

    def __repr__(self) -> str:
        codes, counts = np.unique(self.answer.status, return_counts=True)
        told = ", ".join(
            f"{count} {Status(int(code)).name}" for code, count in zip(codes, counts, strict=True)
        )
        shape = (*self.origin.shape, len(self._weights))
        solver = self.info.solver if len(codes) else "none"
        return f"Projection(y: {tuple(shape)}, {told or 'no samples'}, solver: {solver})"


class ProjectionInfo:
    """How a projection went.

    Args:
        projection: what it tells of.
    """

    def __init__(self, projection: Projection) -> None:
        self._projection = projection
        self._answer = projection.answer

    @property
    def status(self) -> torch.Tensor:
        """As `Projection.status`."""
        return self._projection.status

    @property
    def value(self) -> torch.Tensor:
        """As `Projection.value`."""
        return self._projection.value

    @property
    def distance(self) -> torch.Tensor:
        """As `Projection.distance`."""
        return self._projection.distance

    @property
    def disjunct(self) -> torch.Tensor:
        """As `Projection.disjunct`."""
        return self._projection.disjunct

    @cached_property
    def nodes(self) -> torch.Tensor:
        """Nodes of the search, or programs solved, for each sample, `...`."""
        return self._projection._tensor(self._answer.nodes)

    @cached_property
    def bound(self) -> torch.Tensor:
        """Proved lower bound on what is minimised, as `Projection.value`, float64 `...`."""
        return self._projection._tensor(self._answer.value.copy())

    @cached_property
    def gap(self) -> torch.Tensor:
        """How far what is minimised may be from the least, relative to it, float64 `...`.

        `(value of y - bound) / max(value of y, 1e-9)`: 0 where y is proved nearest, inf where there
        is no y that satisfies the rules.
        """
        projection = self._projection
        value = projection.distance.double()
        if projection.request.settings.norm == "l2":
            value = value * value
        gap = (value - self.bound).clamp(min=0.0) / value.clamp(min=1e-9)
        proved = torch.isin(self.status, _PROVED)
        return torch.where(proved, 0.0, torch.where(value.isinf(), value, gap))

    @cached_property
    def solver(self) -> str | list[str]:
        """Which solver finished: one name, or one for each sample where they differ.

        "none" where the sample could not be used.
        """
        solvers, each = self._answer.solvers, self._answer.solver
        codes = np.unique(each)
        if len(codes) == 1:
            return solvers[int(codes[0])]
        return [solvers[int(code)] for code in each]

    @cached_property
    @aside
    def tight(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows that hold each point where it is, and their multipliers, each `... x k`.

        Rows are indices into `rules.data.rows` (whose names are those of the constraints), -1
        beyond their number. The distance falls by the multiplier per unit that the row's right
        side grows. Known for samples that the exact engine projected; with norm="l2" they are
        computed when asked for, sample by sample.
        """
        projection, found = self._projection, self._answer.linearisation
        size = len(self._answer.y)
        rows, multipliers = np.full((size, 0), -1, dtype=np.int64), np.zeros((size, 0))
        if isinstance(found, ExactLinearisation):
            rows, multipliers = found.tight(projection._rules, self._answer)
        return projection._tensor(rows), projection._tensor(multipliers * projection._unit)

    @cached_property
    def rounds(self) -> torch.Tensor | None:
        """Rounds of basic steps that relaxation="adaptive" took, `...`; else None."""
        return self._note("rounds")

    @cached_property
    def sizes(self) -> Sizes | None:
        """Sizes of the largest relaxation of the batch; None where none was written out.

        In the form that `gdpnet.convexify` writes. With relaxation="adaptive" of the last round.
        """
        if "layout" not in self._answer.notes:
            return None
        layouts = layouts_of(self._projection._rules)
        used = [k for k in np.unique(self._answer.notes["layout"]).tolist() if k >= 0]
        norm = self._projection.request.settings.norm
        sizes = [layouts.sizes(k, norm) for k in used if not layouts.contradictory[k]]
        return max(sizes, key=lambda s: s.nonzeros, default=None)

    @cached_property
    def unpruned(self) -> torch.Tensor | None:
        """Samples outside `input_bounds`, whose empty products were kept, bool `...`; else None."""
        return self._note("unpruned")

    @cached_property
    def least_norm(self) -> torch.Tensor | None:
        """Where y is proved to be the nearest point of least norm, bool `...`; else None."""
        return self._note("least_norm")

    @cached_property
    def rounding(self) -> torch.Tensor:
        """By how much rules are broken that no output of the prediction's type satisfies, `...`.

        Scaled by max(1, |b|, max|a|) of the row; 0 elsewhere. The status is ERROR there, and y the
        nearest point, rounded.
        """
        rounding = self._note("rounding")
        return torch.zeros_like(self.bound) if rounding is None else rounding

    @cached_property
    def strict(self) -> torch.Tensor | None:
        """Which samples hold without any tolerance, bool `...`; None where not asked for."""
        return self._note("strict")

    @cached_property
    def unmendable(self) -> torch.Tensor | None:
        """Where "nearest" or "drop" have nothing to offer, bool `...`; None where not asked for.

        Bounds, global constraints and logic, which it never breaks, contradict each other there:
        no rule is to blame, and y is the prediction.
        """
        return self._note("unmendable")

    @cached_property
    def dropped(self) -> list[tuple[str, ...]] | None:
        """Rules that `on_conflict="drop"` left out, by name, for each sample of the flat batch.

        None where that was not asked for.

        Example:
            >>> import pyomo.environ as pyo, gdpnet
            >>> m = pyo.ConcreteModel()
            >>> m.y = pyo.Var(bounds=(0, 10))
            >>> m.low = gdpnet.rule(m.y <= 3, importance=2)
            >>> m.high = gdpnet.rule(m.y >= 7)
            >>> rules = gdpnet.RuleModel(m, outputs=[m.y])
            >>> p = gdpnet.project(rules, [[5.0]], on_conflict="drop")
            >>> p.y.tolist(), p.info.dropped
            ([[3.0]], [('high',)])
        """
        noted = self._answer.notes.get("dropped")
        if noted is None:
            return None
        names = self._projection._rules.names
        return [tuple(n for n, out in zip(names, one, strict=True) if out) for one in noted]

    @cached_property
    def capped(self) -> torch.Tensor | None:
        """Where the gradient is not that of the whole program, bool `...`; else None.

        The QP takes some of the products only, or could not be solved; or MILP returned no vertex.
        """
        derivative = self._projection.derivative
        if derivative is None or not derivative.available:
            return None
        capped = derivative.backward.capped
        return None if capped is None else self._projection._tensor(capped)

    @cached_property
    def identity(self) -> torch.Tensor | None:
        """Samples that were moved and whose gradient passes unchanged all the same, bool `...`.

        A fallback solved them, or the QP was not solved: no derivative is known. None where y has
        no gradient.
        """
        derivative = self._projection.derivative
        return None if derivative is None else self._projection._tensor(derivative.identity)

    def _note(self, name: str) -> torch.Tensor | None:
        noted = self._answer.notes.get(name)
        return None if noted is None else self._projection._tensor(noted)

    @property
    def seconds(self) -> dict[str, float]:
        """Time of each stage: "assemble", "solve" and, once it ran, "backward"."""
        return dict(self._projection.times)

    def __repr__(self) -> str:
        times = ", ".join(f"{name} {1e3 * t:.3g} ms" for name, t in self.seconds.items())
        return f"ProjectionInfo(solver: {self.solver}, nodes: {self.nodes.sum().item()}, {times})"
