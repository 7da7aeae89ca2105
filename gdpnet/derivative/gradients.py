"""The sensitivities a user chooses from."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from gdpnet import core
from gdpnet.derivative.passing import Identity, WeightedSum
from gdpnet.derivative.regularised import Regularised
from gdpnet.errors import IdentityGradientWarning, InputError, SolverError, ZeroGradientWarning
from gdpnet.ir.rules import Rules
from gdpnet.solve.base import Answer, Array, Backend, Gradients, Linearisation, Request
from gdpnet.solve.conic.linearisation import ConicLinearisation
from gdpnet.solve.exact.backend import Exact
from gdpnet.solve.exact.linearisation import ExactLinearisation
from gdpnet.solve.extended.jacobian import RelaxedJacobian
from gdpnet.solve.status import Status

_PASSED = np.zeros(len(Status), dtype=bool)  # by status: y is the prediction, or breaks rules
_PASSED[[Status.SATISFIED, Status.CONFLICT, Status.UNSOLVED]] = True


class Sensitivity(ABC):
    """How gradients pass a projection. Subclass it for a gradient of your own.

    Attributes:
        needs_linearisation: whether it asks the backend for the derivative of its answers.
    """

    needs_linearisation: ClassVar[bool] = True

    @abstractmethod
    def backward(self, request: Request, answer: Answer) -> Linearisation:
        """What becomes of gradients, for a batch.

        Args:
            request: inputs and predictions.
            answer: what was found, with the derivative at the points that were found.
        """

    def refuse(self, backend: Backend) -> None:
        """Raise where it cannot be had of a backend: before anything is trained."""
        if self.needs_linearisation and not backend.capabilities.linearisation:
            raise InputError(
                f"gradient: {self!r} needs the derivative of the answers, and solver {backend!r} "
                "has none. Use gradient='straight_through' or another solver."
            )

    def refuse_norm(self, norm: str) -> None:  # noqa: B027
        """Raise where it cannot be had of projections in a norm; most do not ask."""

    def refuse_rows(self, rules: Rules) -> None:  # noqa: B027
        """Raise where it does not know a kind of row; most do not ask."""


@dataclass(frozen=True)
class Vertex(Sensitivity):
    """The exact Jacobian of the projection, from the final basis of the solver.

    The identity where an output follows its prediction, minus the tableau where tight rows
    determine it, zero where it rests on a bound. Outputs that rules hold in place get no gradient.
    With norm="l2" it is the orthogonal projector, in the weighted metric, onto the face on which
    the point lies.

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

    def backward(self, request: Request, answer: Answer) -> Linearisation:
        """The derivative of the very points that were returned."""
        assert answer.linearisation is not None
        return answer.linearisation


@dataclass(frozen=True)
class QP(Sensitivity):
    """The gradient of the same program with a quadratic term `eps / 2` on its variables.

    The paper's. Where the nearest point is unique and no other disjunct is about as near it is the
    gradient of `Vertex`; near a tie between disjuncts it lets the loss feel both sides, with a
    slope of about 0.2 / eps, and where many points are equally near it shares the gradient among
    them. The output itself is never regularised (but see `forward="qp"` of `gdpnet.project`).

    For the DNF the program is that of the products of disjuncts within the band that can have
    weight; where there are more than `cap` of them the nearest distinct ones are taken, and
    `info.capped` tells. The work for a sample is limited (counted, not by the clock): where it is
    not enough the gradient is that of `Vertex`, `info.capped` tells which samples those are, and a
    `WorkLimitWarning` once. For CNF and partial DNF it is that of all products of the clusters.
    Distances count in units of the heaviest output's weight.

    With norm="l2", and with convex rows, the term stands on the weights of the products alone: y is
    a mean of the nearest points of the products whose value (the squared distance, or the l1
    distance) is within eps of the least.

    Prices are part of a product's value, and y follows them through the weights.

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

    def refuse(self, backend: Backend) -> None:
        """Raise where it cannot be had: the regularised program has kernels of its own."""
        reason = core.unavailable(f"gradient: {self!r}", "gradient='auto' or 'straight_through'")
        if reason:
            raise SolverError(reason)
        super().refuse(backend)

    def backward(self, request: Request, answer: Answer) -> Regularised:
        """The derivative of the regularised program, and its point."""
        from gdpnet.derivative.qp.dnf import solve_qp
        from gdpnet.derivative.qp.instead import VertexInstead
        from gdpnet.derivative.qp.layouts import RelaxedQPs

        found, settings = answer.linearisation, request.settings
        if isinstance(found, ConicLinearisation):
            from gdpnet.derivative.qp.conic import ConicQPs

            return ConicQPs(found, float(self.eps))
        if settings.norm == "l2" or request.rules.data.curved:
            from gdpnet.derivative.qp.weighted import WeightedQPs

            return WeightedQPs(request, answer, float(self.eps), self.cap)
        if isinstance(found, RelaxedJacobian):
            return RelaxedQPs(found, settings, float(self.eps))
        vertex, rules = answer.linearisation, request.rules
        if vertex is not None and not Exact().searches(request):
            none = np.zeros(len(answer.y), dtype=bool)
            return VertexInstead(rules, None, vertex, answer.y, finished=none)
        if not isinstance(found, ExactLinearisation):
            # The program is that of the rules, whoever found the point.
            found = Exact().search(request)
            found.unfinished = answer.status == Status.LIMIT
        solved = solve_qp(
            *(found.engine, found.instance, found.yhat, found.search),
            *(found.dictionaries(), float(self.eps), self.cap),
            known=found.finished,
        )
        finished = np.broadcast_to(found.finished, len(answer.y))
        if vertex is None or not (finished & solved.missing).any():
            return solved
        return VertexInstead(rules, solved, vertex, answer.y, finished=finished)


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

    needs_linearisation: ClassVar[bool] = False

    def backward(self, request: Request, answer: Answer) -> Linearisation:
        """The identity."""
        return Identity(request.rules, request.yhat - answer.y if self.inward else None)


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

    def refuse(self, backend: Backend) -> None:
        """Raise where one of the two cannot be had."""
        self.first.refuse(backend)
        self.second.refuse(backend)

    def refuse_norm(self, norm: str) -> None:
        """Raise where one of the two cannot be had."""
        self.first.refuse_norm(norm)
        self.second.refuse_norm(norm)

    def refuse_rows(self, rules: Rules) -> None:
        """Raise where one of the two does not know a kind of row."""
        self.first.refuse_rows(rules)
        self.second.refuse_rows(rules)

    def backward(self, request: Request, answer: Answer) -> Linearisation:
        """The weighted mean."""
        return WeightedSum(
            self.first.backward(request, answer),
            self.second.backward(request, answer),
            float(self.alpha),
        )


class Derivative:
    """The derivative of a batch, made when it is first needed.

    Where no rule moved the prediction, the rules contradict each other, or nobody knows the
    derivative (`identity`), the gradient passes unchanged; a sample that could not be used gets
    none.

    Args:
        sensitivity: how gradients pass.
        request: the batch.
        answer: what is returned.
    """

    def __init__(self, sensitivity: Sensitivity, request: Request, answer: Answer) -> None:
        self.sensitivity, self.request, self.answer = sensitivity, request, answer
        self._backward: Linearisation | None = None

    @property
    def available(self) -> bool:
        """Whether the batch was solved so that derivatives are known."""
        needed = self.sensitivity.needs_linearisation
        return self.answer.linearisation is not None or not needed

    @property
    def backward(self) -> Linearisation:
        """What the sensitivity makes of the batch."""
        if self._backward is None:  # a cached_property would take a lock
            self._backward = self.sensitivity.backward(self.request, self.answer)
        return self._backward

    @property
    def identity(self) -> Array:
        """Samples that were moved, whose derivative is not known and taken for the identity, (B,).

        Those that a fallback solved or a limit stopped; none where the sensitivity asks nothing of
        the solver.
        """
        answer = self.answer
        moved = ~(_PASSED[answer.status] | answer.unusable)
        if not self.sensitivity.needs_linearisation or not moved.any():
            return np.zeros(len(moved), dtype=bool)
        return np.asarray(moved & ~np.asarray(self.backward.known))

    def decided(self, gradient: Array) -> Derivative:
        """The same as a linear function; see `Linearisation.decided`."""
        made = Derivative(self.sensitivity, self.request, self.answer)
        made._backward = self.backward.decided(gradient)
        return made

    @property
    def changing(self) -> str | None:
        """Why the derivative is not constant near these points; None where it is."""
        settings, rules = self.request.settings, self.request.rules
        if settings.plan is not None:
            return "it is that of a relaxation, whose rows depend on the prediction"
        if rules.data.curved:
            return f"Constraint '{rules.data.rows[rules.data.curved[0]].name}' is not linear"
        for part in parts_of(self.sensitivity):
            if not isinstance(part, Vertex | StraightThrough):
                return f"gradient={part!r} changes with the prediction"
        return None

    def vjp(self, gradient: Array) -> Gradients:
        """Gradients of a loss from its gradient with respect to y, (B, d)."""
        answer, backward = self.answer, self.backward
        if backward.complete and answer.ordinary:
            return backward.vjp(gradient)
        identity, unusable = self.identity, answer.unusable
        passed = _PASSED[answer.status] | unusable | identity
        if unusable.any():
            gradient = np.where(unusable[:, None], 0.0, gradient)
        found = backward.vjp(gradient)
        if passed.any():
            found.yhat[passed] = gradient[passed]
            found.bound[passed] = 0.0
            found.varying[passed] = 0.0
            if found.price is not None:
                found.price[passed] = 0.0
        if identity.any():
            self._warn_of_identity(identity)
        return found

    def vjp_yhat(self, gradient: Array) -> Array:
        """That of the predictions alone, (B, d)."""
        backward = self.backward
        if backward.complete and self.answer.ordinary:
            return backward.vjp_yhat(gradient)
        return self.vjp(gradient).yhat

    def _warn_of_identity(self, identity: Array) -> None:
        told = self.request.rules.cache[_told_of_identity]
        if not told:
            told.append(True)
            warnings.warn(
                f"The gradient passes {np.count_nonzero(identity)} of the {len(identity)} samples "
                "of a batch unchanged, as 'straight_through' would: no derivative of them is "
                "known. Either a fallback solved them, and a larger time_limit, or node_limit of "
                "gdpnet.solve.Exact, lets the engine finish more; or the program of gradient='qp' "
                "could not be solved, which 'vertex' and 'auto' do not need. info.identity tells "
                "which samples, info.solver who solved them. This is told once for these rules.",
                IdentityGradientWarning,
                stacklevel=2,
            )

    def warn_of_zeros(self, incoming: Array, outgoing: Array) -> None:
        """Warn where the gradient of a whole batch is lost, and say what would let it through.

        Args:
            incoming: of a loss with respect to y, (B, d).
            outgoing: with respect to the prediction, (B, d).
        """
        if np.count_nonzero(outgoing):
            return
        usable = ~self.answer.unusable
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


def _told_of_identity(_: Rules) -> list[bool]:
    """Whether somebody was told; empty where nobody was."""
    return []


def parts_of(sensitivity: Sensitivity) -> list[Sensitivity]:
    """What a sensitivity is mixed of."""
    if not isinstance(sensitivity, Mixed):
        return [sensitivity]
    return parts_of(sensitivity.first) + parts_of(sensitivity.second)


def sensitivity_of(gradient: Any, what: str = "gradient") -> Sensitivity:
    """A sensitivity from what a user may write: an object, or the name of one.

    `"mixed:ALPHA"` is the paper's mixture, `Mixed(QP(), StraightThrough(), ALPHA)`: ALPHA is the
    share of the KKT gradient, the rest is the loss's own.
    """
    if isinstance(gradient, Sensitivity):
        return gradient
    if isinstance(gradient, str):
        if gradient in _NAMES:
            return _NAMES[gradient]
        if gradient.startswith("mixed:"):
            return Mixed(QP(), StraightThrough(), _share(gradient.removeprefix("mixed:"), what))
    raise InputError(
        f"{what}: expected one of {', '.join(map(repr, _NAMES))}, 'mixed:0.25' (so much of qp, the "
        f"rest straight through) or an object such as gdpnet.QP(eps=1e-2), got {gradient!r}."
    )


def _share(text: str, what: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not 0 <= share <= 1:
        raise InputError(
            f"{what}: 'mixed:ALPHA' needs a number from 0 (straight_through) to 1 (qp), such as "
            f"'mixed:0.25', got {'mixed:' + text!r}."
        )
    return share


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
