"""The sensitivities a user chooses from."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np
import torch

from gdpnet.errors import IdentityGradientWarning, InputError, ZeroGradientWarning
from gdpnet.ir.instance import Instance
from gdpnet.ir.rules import Rules
from gdpnet.projection.operator import Solution
from gdpnet.relaxation.plan import Plan
from gdpnet.solve.exact.backend import engine_of
from gdpnet.solve.gradients import Gradients
from gdpnet.solve.milp.jacobian import ActiveJacobian
from gdpnet.solve.results import SOLVER_NAMES, Array, Options, Results
from gdpnet.solve.status import Status

if TYPE_CHECKING:
    from gdpnet.solve.exact.engine import ExactEngine, Solved


_PROJECTED = int(Status.PROJECTED)
_PASSED = np.zeros(len(Status), dtype=bool)  # by status: y is the prediction, or breaks rules
_PASSED[[Status.SATISFIED, Status.CONFLICT, Status.UNSOLVED]] = True
_EXACT = SOLVER_NAMES.index("exact")


class Projected(NamedTuple):
    """A batch that was projected: what a sensitivity looks at.

    Attributes:
        rules: the rules.
        relaxation: as asked for.
        x: inputs, (B, p).
        yhat: predictions as given, (B, d).
        results: what was found.
        options: how it was found.
    """

    rules: Rules
    relaxation: str | Plan
    x: Array
    yhat: Array
    results: Results
    options: Options


class Backward(Protocol):
    """Derivative of a batch of projections."""

    def vjp(self, gradient: Array) -> Gradients:
        """Gradients of a loss from its gradient with respect to y, (B, d)."""


class Sensitivity(ABC):
    """How gradients pass a projection."""

    needs_dictionaries: ClassVar[bool] = True
    """Whether the solver has to keep its final bases."""

    @abstractmethod
    def backward(self, projected: Projected) -> Backward:
        """The derivative of a batch."""

    def derivative(self, *projected: Any) -> Derivative:
        """The derivative of a batch, made when it is needed; arguments as of `Projected`."""
        return Derivative(self, Projected(*projected))


@dataclass(frozen=True)
class Vertex(Sensitivity):
    """The exact Jacobian of the projection, from the final basis of the solver.

    The identity where an output follows its prediction, minus the tableau where tight rows
    determine it, zero where it rests on a bound. Outputs that rules hold in place get no gradient.

    Example:
        >>> import pyomo.environ as pyo, gdpnet, torch
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var([1, 2], bounds=(0, 1))
        >>> m.total = pyo.Constraint(expr=m.y[1] + 2 * m.y[2] <= 1)
        >>> rules = gdpnet.RuleModel(m, outputs=[m.y])
        >>> yhat = torch.tensor([[0.6, 0.6]], requires_grad=True)
        >>> gdpnet.project(rules, yhat, gradient=gdpnet.Vertex()).y.sum().backward()
        >>> yhat.grad.tolist()
        [[0.5, 0.0]]
    """

    def backward(self, projected: Projected) -> Backward:
        """The derivative of a batch."""
        results = projected.results
        written_out = results.derivative  # of the very vertex that was returned
        if projected.relaxation != "dnf" or written_out is not None:
            return written_out
        own = None
        if results.solved is not None:
            engine, instance, solved = exact_solution(projected)
            own = engine.jacobian(instance, solved, projected.yhat, projected.options)
        others = (results.status == _PROJECTED) & (results.solver != _EXACT)
        if own is not None and not others.any():
            return own
        points = np.empty((len(others), 0)) if results.points is None else results.points
        return ActiveJacobian(
            *(projected.rules, projected.x, projected.yhat, points, results.assignment),
            *(np.flatnonzero(others & (results.points is not None)), own),
        )


@dataclass(frozen=True)
class QP(Sensitivity):
    """The gradient of the same program with a quadratic term `eps / 2` on its variables.

    The paper's. Where the nearest point is unique and no other disjunct is about as near it is the
    gradient of `Vertex`; near a tie between disjuncts it lets the loss feel both sides, with a
    slope of about 0.2 / eps, and where many points are equally near it shares the gradient among
    them. The output itself is never regularised (but see `forward="qp"` of `gdpnet.project`).

    For the DNF the program is that of the products of disjuncts within the band that can have
    weight; where there are more than `cap` of them the nearest distinct ones are taken, and
    `info.capped` tells. For CNF and partial DNF it is that of all products of the clusters.
    Distances count in units of the heaviest output's weight.

    Args:
        eps: size of the quadratic term.
        cap: most products of a sample.

    Example:
        >>> import pyomo.environ as pyo, gdpnet, torch
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var(bounds=(0, 10))
        >>> m.gap = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 7))
        >>> rules = gdpnet.RuleModel(m, outputs=[m.y])
        >>> yhat = torch.tensor([[4.999]], dtype=torch.float64, requires_grad=True)
        >>> gdpnet.project(rules, yhat, gradient=gdpnet.QP(1e-2)).y.sum().backward()
        >>> bool(yhat.grad > 1)
        True
    """

    eps: float = 1e-2
    cap: int = 64

    def __post_init__(self) -> None:
        _check_positive("QP: eps", self.eps)
        if not isinstance(self.cap, int) or isinstance(self.cap, bool) or self.cap < 1:
            raise InputError(f"QP: cap: expected a whole number >= 1, got {self.cap!r}.")

    def backward(self, projected: Projected) -> Any:
        """The derivative of a batch; `y` is the regularised point, `capped` and so on tell more."""
        if projected.relaxation != "dnf":
            from gdpnet.derivative.qp.layouts import RelaxedQPs

            return RelaxedQPs(
                projected.results.derivative, projected.options.weights, float(self.eps)
            )
        from gdpnet.derivative.qp.dnf import solve_qp

        engine, instance, solved = exact_solution(projected)
        return solve_qp(
            *(engine, instance, projected.yhat, projected.options, solved),
            *(float(self.eps), self.cap),
        )


@dataclass(frozen=True)
class StraightThrough(Sensitivity):
    """The identity: the gradient passes as if nothing had been projected.

    A loss that wants an output beyond what the rules allow then drives the prediction ever further
    away, step after step. With `inward` the gradient of a coordinate that was moved passes only
    where a step against it brings the prediction nearer to the output.

    Args:
        inward: drop what would drive predictions further away from the rules.

    Example:
        >>> import gdpnet
        >>> gdpnet.StraightThrough()
        StraightThrough(inward=False)
    """

    inward: bool = False

    needs_dictionaries: ClassVar[bool] = False

    def backward(self, projected: Projected) -> Backward:
        """The derivative of a batch."""
        beyond = projected.yhat - projected.results.y if self.inward else None
        return _Identity(projected.rules, beyond)


@dataclass(frozen=True)
class Mixed(Sensitivity):
    """`alpha` times one sensitivity plus `1 - alpha` times another.

    Args:
        first: a sensitivity, or its name.
        second: a sensitivity, or its name.
        alpha: share of the first, from 0 to 1.

    Example:
        >>> import gdpnet
        >>> gdpnet.Mixed("qp", "straight_through", 0.25)
        Mixed(first=QP(eps=0.01, cap=64), second=StraightThrough(inward=False), alpha=0.25)
    """

    first: Sensitivity
    second: Sensitivity = field(default_factory=StraightThrough)
    alpha: float = 0.25

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", sensitivity_of(self.first, "Mixed: first"))
        object.__setattr__(self, "second", sensitivity_of(self.second, "Mixed: second"))
        if not isinstance(self.alpha, Real) or not 0 <= self.alpha <= 1:
            raise InputError(f"Mixed: alpha: expected a number from 0 to 1, got {self.alpha!r}.")

    def backward(self, projected: Projected) -> Backward:
        """The derivative of a batch."""
        parts = self.first.backward(projected), self.second.backward(projected)
        return _Sum(*parts, float(self.alpha))


def exact_solution(projected: Projected) -> tuple[ExactEngine, Instance, Solved]:
    """The exact engine's own answer with its dictionaries, solved for where it was not asked."""
    engine, results = engine_of(projected.rules), projected.results
    instance, solved = results.instance, results.dictionaries()
    if instance is None or solved is None:
        instance = Instance.of(projected.rules, projected.x)
        solved = engine.project(instance, projected.yhat, projected.options, True)
    return engine, instance, solved


class _Identity:
    answered = True

    def __init__(self, rules: Rules, beyond: Array | None) -> None:
        self._rules = rules
        self._beyond = beyond

    def vjp(self, gradient: Array) -> Gradients:
        if self._beyond is not None:
            gradient = np.where(self._beyond * gradient < 0.0, 0.0, gradient)
        data, size = self._rules.data, len(gradient)
        k = len(self._rules.table.varying)
        rows = np.zeros((size, len(data.rows)))
        return Gradients(gradient.copy(), rows, np.zeros((size, k, len(data.columns))))


class _Sum:
    def __init__(self, first: Backward, second: Backward, alpha: float) -> None:
        self._first, self._second, self._alpha = first, second, alpha
        # Where one of the two takes some of the products only.
        self.capped = getattr(first, "capped", getattr(second, "capped", None))
        self.answered = _answered(first) & _answered(second)

    def vjp(self, gradient: Array) -> Gradients:
        pairs = zip(self._first.vjp(gradient), self._second.vjp(gradient), strict=True)
        return Gradients(*(self._alpha * a + (1 - self._alpha) * b for a, b in pairs))


def _answered(backward: Backward) -> Any:
    """Samples that the engine left to another solver, whose derivative is known all the same."""
    return getattr(backward, "answered", False)


class Derivative:
    """The derivative of a batch, made when it is first needed.

    Where no rule moved the prediction, the rules contradict each other, or another solver finished
    (`identity`), the gradient passes unchanged; a sample that could not be used gets none.

    Args:
        sensitivity: how gradients pass.
        projected: the batch.
    """

    def __init__(self, sensitivity: Sensitivity, projected: Projected) -> None:
        self.sensitivity = sensitivity
        self.projected = projected
        self._backward: Any = None

    @property
    def available(self) -> bool:
        """Whether the batch was solved so that derivatives are known."""
        projected = self.projected
        return projected.relaxation == "dnf" or projected.results.derivative is not None

    @property
    def backward(self) -> Any:
        """What the sensitivity makes of the batch."""
        if self._backward is None:  # a cached_property would take a lock
            self._backward = self.sensitivity.backward(self.projected)
        return self._backward

    @property
    def identity(self) -> Array:
        """Samples that were moved, whose derivative is not known and taken for the identity, (B,).

        Those that a fallback solved or a limit stopped; none where the sensitivity asks nothing of
        the solver.
        """
        results = self.projected.results
        if not self.sensitivity.needs_dictionaries:
            return np.zeros(len(results.y), dtype=bool)
        unknown = results.unfinished | (results.status == Status.LIMIT)
        unknown &= ~(_PASSED[results.status] | results.unusable)
        if unknown.any():
            unknown &= ~np.asarray(_answered(self.backward))
        return np.asarray(unknown)

    def attach(self, y: torch.Tensor, yhat: Any, x: Any, seconds: dict[str, float]) -> torch.Tensor:
        """Outputs as a function of prediction and inputs in torch's graph.

        Args:
            y: outputs in the caller's shape and type.
            yhat: prediction as given, `... x d`.
            x: inputs as given, `... x p` or `p`; None where there are none.
            seconds: where the time of the backward pass is added.
        """
        return Solution(self.projected.rules, y, self, seconds).attach(yhat, x)

    def vjp(self, gradient: Array) -> Gradients:
        """Gradients of a loss from its gradient with respect to y, (B, d)."""
        results = self.projected.results
        if results.plain:
            plain: Gradients = self.backward.vjp(gradient)
            return plain
        status, identity = results.status, self.identity
        unusable = results.unusable
        passed = _PASSED[status] | unusable | identity
        if unusable.any():
            gradient = np.where(unusable[:, None], 0.0, gradient)
        found: Gradients = self.backward.vjp(gradient)
        if passed.any():
            found.yhat[passed] = gradient[passed]
            found.bound[passed] = 0.0
            found.varying[passed] = 0.0
        if identity.any():
            self._warn_of_identity(identity)
        return found

    def _warn_of_identity(self, identity: Array) -> None:
        def tell(_: Rules) -> None:
            warnings.warn(
                f"The gradient passes {np.count_nonzero(identity)} of the {len(identity)} samples "
                "of a batch unchanged, as 'straight_through' would: a fallback solved them, of "
                "which no derivative is known (info.identity tells which, info.solver who solved "
                "them). A larger node_limit or time_limit lets the exact engine finish more. "
                "This is told once for these rules.",
                IdentityGradientWarning,
                stacklevel=2,
            )

        self.projected.rules.kept("told of identity", tell)

    def warn_of_zeros(self, incoming: Array, outgoing: Array) -> None:
        """Warn where the gradient of a whole batch is lost, and say what would let it through.

        Args:
            incoming: of a loss with respect to y, (B, d).
            outgoing: with respect to the prediction, (B, d).
        """
        if np.count_nonzero(outgoing):
            return
        usable = ~self.projected.results.unusable
        if not np.count_nonzero(incoming[usable]):
            return
        if any(isinstance(part, StraightThrough) for part in parts_of(self.sensitivity)):
            why = (
                ", and the loss would drive every prediction further away from them. "
                "gradient='straight_through' lets everything through."
            )
        else:
            why = (
                ". gradient='auto' lets through what brings predictions nearer to the rules, "
                "gradient='straight_through' everything."
            )
        warnings.warn(
            f"The gradient of all {len(outgoing)} samples of a batch is zero behind the "
            f"projection: the rules hold every output in place{why}",
            ZeroGradientWarning,
            stacklevel=2,
        )


def parts_of(sensitivity: Sensitivity) -> list[Sensitivity]:
    """What a sensitivity is mixed of."""
    if not isinstance(sensitivity, Mixed):
        return [sensitivity]
    return parts_of(sensitivity.first) + parts_of(sensitivity.second)


def sensitivity_of(gradient: Any, what: str = "gradient") -> Sensitivity:
    """A sensitivity from what a user may write: an object, or the name of one."""
    if isinstance(gradient, Sensitivity):
        return gradient
    if isinstance(gradient, str) and gradient in _NAMES:
        return _NAMES[gradient]
    raise InputError(
        f"{what}: expected one of {', '.join(map(repr, _NAMES))} or an object such as "
        f"gdpnet.QP(eps=1e-2), got {gradient!r}."
    )


def _check_positive(what: str, value: Any) -> None:
    good = isinstance(value, Real) and not isinstance(value, bool)
    if not good or not 0 < float(value) < math.inf:
        raise InputError(f"{what}: expected a positive number, got {value!r}.")


_NAMES: dict[str, Sensitivity] = {
    "auto": Mixed(Vertex(), StraightThrough(inward=True), 0.5),  # benchmarks/gradients.py
    "qp": QP(),
    "vertex": Vertex(),
    "straight_through": StraightThrough(),
}
