"""What a backend is: a request in, an answer out, and the derivative of that very answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from inspect import signature
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch

from gdpnet.errors import InputError, SolverError
from gdpnet.ir.instance import Instance
from gdpnet.ir.prices import Payment
from gdpnet.ir.rules import Rules, refuse_curved, refuse_priced
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.lp.clock import UNLIMITED, Clock
from gdpnet.relaxation.plan import Plan
from gdpnet.solve.status import Status

Array = np.ndarray

_ANSWERED = np.zeros(len(Status), dtype=bool)  # by status: y is said to satisfy the rules
_ANSWERED[[Status.SATISFIED, Status.PROJECTED, Status.LIMIT]] = True
_ORDINARY = np.zeros(len(Status), dtype=bool)
_ORDINARY[[Status.SATISFIED, Status.PROJECTED]] = True


class Settings(NamedTuple):
    """What holds for every batch that a projector sends.

    Attributes:
        weights: of the outputs in the distance, (d,), the heaviest being 1.
        norm: of the distance.
        plan: which rules are merged; None for the DNF.
        adaptive: the plan is where basic steps start from, sample by sample.
        tolerance: predictions that satisfy everything within it pass unchanged.
        dtype: type of the caller's predictions.
        time_limit: seconds for a sample, or None.
        threads: samples at a time, or None to choose.
        nearest: where rules contradict each other, break them as little as possible.
        linearise: a derivative will be asked for.
        unit: what the weights were divided by.
    """

    weights: Array
    norm: str = "l1"
    plan: Plan | None = None
    adaptive: bool = False
    tolerance: float = TOLERANCES.of(torch.float64)
    dtype: torch.dtype = torch.float64
    time_limit: float | None = None
    threads: int | None = None
    nearest: bool = False
    linearise: bool = False
    unit: float = 1.0

    @property
    def price_unit(self) -> float:
        """What prices are divided by, so that they are in units of what is minimised."""
        return self.unit if self.norm == "l1" else self.unit**2


class Request(NamedTuple):
    """A flat batch to project.

    Attributes:
        rules: the rules.
        x: inputs, (B, p) float64.
        yhat: predictions, (B, d) float64, finite.
        invalid: samples that cannot be used, (B,) bool; a backend may find more of them.
        settings: how to project.
        mark: whether samples with unusable coefficients are marked as invalid, else they raise.
        clock: what is left for the whole batch.
        start: outputs to start from, (B, d), NaN where there are none; None for no sample. They may
            break rules.
    """

    rules: Rules
    x: Array
    yhat: Array
    invalid: Array
    settings: Settings
    mark: bool = False
    clock: Clock = UNLIMITED
    start: Array | None = None

    def evaluate(self, rules: Rules | None = None) -> Instance:
        """The rules for these inputs.

        Coefficients of samples that cannot be used become 0, so that solvers meet numbers only.

        Args:
            rules: others over the same inputs, where a backend has rewritten them.
        """
        rules = rules or self.rules
        instance = Instance.of(rules, self.x)
        if not instance.finite:
            self.clear_unusable(rules, instance)
        return instance

    def clear_unusable(self, rules: Rules, instance: Instance) -> None:
        """Mark samples whose coefficients are no numbers, or raise, and make those 0."""
        unusable = instance.unusable()
        if unusable.any():
            if not self.mark:
                rules.refuse_unusable(rules.evaluate(torch.from_numpy(self.x)))
            self.invalid[unusable] = True
            instance.bound[unusable] = 0.0
            instance.varying[unusable] = 0.0
            instance.price[unusable] = 0.0

    def take(self, samples: Array) -> Request:
        """Some of the samples, all of them usable."""
        none = np.zeros(len(samples), dtype=bool)
        start = None if self.start is None else self.start[samples]
        return self._replace(x=self.x[samples], yhat=self.yhat[samples], invalid=none, start=start)


class Gradients(NamedTuple):
    """Gradients of a loss with respect to everything that a projection depends on.

    Attributes:
        yhat: predictions, (B, d).
        bound: right sides of the rows, (B, m).
        varying: coefficients of the rows that depend on x, (B, k, n).
        price: of the booleans that have one, (B, priced); None where y does not follow prices, as
            the point of a disjunct does not.
    """

    yhat: Array
    bound: Array
    varying: Array
    price: Array | None = None

    @staticmethod
    def passing(rules: Rules, gradient: Array) -> Gradients:
        """Those of the identity.

        Args:
            rules: the rules.
            gradient: of the loss with respect to y, (B, d).
        """
        size, data = len(gradient), rules.data
        varying = np.zeros((size, len(rules.table.varying), len(data.columns)))
        return Gradients(gradient.copy(), np.zeros((size, len(data.rows))), varying)


class Linearisation(ABC):
    """The derivative of a batch of answers.

    Attributes:
        known: samples whose derivative it has, (B,) bool, or True for all of them.
        capped: samples of which it is not that of the whole program, (B,) bool; None where that
            cannot be.
        complete: it is right also of samples whose prediction passed unchanged.
    """

    known: Array | bool = True
    capped: Array | None = None
    complete: bool = False

    @abstractmethod
    def vjp(self, gradient: Array) -> Gradients:
        """Gradients of a loss from its gradient with respect to y, (B, d)."""

    def vjp_yhat(self, gradient: Array) -> Array:
        """That of the predictions alone, (B, d), in memory of its own: what training asks for."""
        return self.vjp(gradient).yhat

    def decided(self, gradient: Array) -> Linearisation:
        """The same as a linear function, where it is none: what signs decide, these have decided.

        Args:
            gradient: of a loss with respect to y, (B, d).
        """
        return self


@dataclass(slots=True, eq=False)
class Answer:
    """What a backend found for a flat batch.

    Attributes:
        y: outputs, (B, d); the prediction where nothing was found.
        status: code of `Status`, (B,) int8.
        value: proved lower bound on what is minimised, the l1 distance or the squared l2 one, (B,).
        assignment: of the booleans: 1 true, -1 false, 0 not asked for, (B, booleans) int8.
        active: which rules apply, (B, rules) bool.
        nodes: of the search, or programs solved, (B,).
        solver: who finished, as index into `solvers`, (B,) int8.
        solvers: names, "none" being the first.
        auxiliaries: (B, n - d), NaN where they are not known.
        linearisation: the derivative at these very points, or None.
        notes: more about samples, (B, ...) each; `Projection.info` shows those whose names it
            knows, `Projection.answer` has all.
    """

    y: Array
    status: Array
    value: Array
    assignment: Array
    active: Array
    nodes: Array
    solver: Array
    solvers: tuple[str, ...]
    auxiliaries: Array
    linearisation: Linearisation | None = None
    notes: Mapping[str, Array] = field(default_factory=dict)

    @staticmethod
    def passed(request: Request, active: Array, *solvers: str) -> Answer:
        """Every prediction unchanged, finished by the first of the solvers; to be written into."""
        size, data = len(request.yhat), request.rules.data
        return Answer(
            y=request.yhat.copy(),
            status=np.full(size, Status.SATISFIED, dtype=np.int8),
            value=np.zeros(size),
            assignment=np.zeros((size, len(data.booleans)), dtype=np.int8),
            active=active,
            nodes=np.zeros(size, dtype=np.int64),
            solver=np.ones(size, dtype=np.int8),
            solvers=("none", *solvers),
            auxiliaries=np.full((size, len(data.columns) - data.outputs), np.nan),
        )

    @property
    def unusable(self) -> Array:
        """Samples that could not be used at all, (B,) bool."""
        error = self.status == Status.ERROR
        rounding = self.notes.get("rounding")
        return error if rounding is None else error & (rounding == 0.0)

    @property
    def answered(self) -> Array:
        """Samples whose y satisfies the rules, (B,) bool."""
        return _ANSWERED[self.status]

    def finished_by(self, solver: str) -> Array:
        """Samples that a solver of this name finished, (B,) bool."""
        if solver not in self.solvers:
            return np.zeros(len(self.solver), dtype=bool)
        return self.solver == self.solvers.index(solver)

    def columns(self) -> Array:
        """Outputs and auxiliaries, (B, n), NaN where they are not known."""
        return np.concatenate([self.y, self.auxiliaries], 1)

    def noting(self, **notes: Array) -> Answer:
        """The same with more notes."""
        return self.replace(notes={**self.notes, **notes})

    def replace(self, **changes: Any) -> Answer:
        """The same with other attributes."""
        return Answer(**{name: getattr(self, name) for name in _ATTRIBUTES} | changes)

    @property
    def ordinary(self) -> bool:
        """Whether every sample is projected, or was right as it was."""
        return bool(_ORDINARY.take(self.status).all())

    def disjunct(self, rules: Rules, payment: Payment | None = None) -> Array:
        """Index in the source Disjunction of the disjunct that holds, (B, rules); else -1.

        Args:
            rules: the rules.
            payment: what the assignment costs, where rules have prices.
        """
        chosen = np.full((len(self.y), len(rules.names)), -1, dtype=np.int64)
        payment = payment or Payment.free(rules.data, self.assignment)
        answered = ~((self.status == Status.UNSOLVED) | self.unusable)
        for r, rule in enumerate(rules.data.rules):
            place = payment.chosen(rule.clause)
            known = answered & self.active[:, r] & (place >= 0)
            chosen[:, r] = np.where(known, np.asarray(rule.positions)[place], -1)
        return chosen


_ATTRIBUTES = tuple(attribute.name for attribute in fields(Answer))


@dataclass(frozen=True)
class Capabilities:
    """What a backend can do; the projector asks for these, never for a name.

    Attributes:
        norms: of the distance.
        relaxations: CNF and partial DNF, not the DNF alone.
        linearisation: its answers come with their derivative.
        strict: its answers can be tightened until they hold without tolerance.
        nearest: where rules contradict each other it breaks them as little as possible.
        convex: rows may be convex, and need not be linear.
        prices: rules and disjuncts may have prices.
    """

    norms: frozenset[str] = frozenset({"l1"})
    relaxations: bool = False
    linearisation: bool = False
    strict: bool = False
    nearest: bool = False
    convex: bool = False
    prices: bool = False


class Backend(ABC):
    """Solves projections. Options of its own are arguments of its constructor.

    Subclass it, and pass an object as `solver=` to `gdpnet.project` or a layer; `register` gives it
    a name. `gdpnet.testing.BackendContract` tests it.

    Attributes:
        capabilities: what it can do.
    """

    capabilities: ClassVar[Capabilities] = Capabilities()

    @property
    @abstractmethod
    def name(self) -> str:
        """What `info.solver` calls it."""

    @property
    def description(self) -> str:
        """How it solves, for readers of a table, as the end of a sentence."""
        return f"solved by {self!r}"

    def available(self) -> str | None:
        """Why it cannot be used here, in one sentence that says what to do; None where it can."""
        return None

    @abstractmethod
    def solve(self, request: Request) -> Answer:
        """Project a flat batch."""

    def refuse_unavailable(self) -> None:
        """Raise where it cannot be used here."""
        reason = self.available()
        if reason is not None:
            raise SolverError(reason)

    def refuse_norm(self, norm: str) -> None:
        """Raise where it does not know a norm, as it is set up."""
        if norm not in self.capabilities.norms:
            known = ", ".join(map(repr, sorted(self.capabilities.norms)))
            raise InputError(f"norm: solver {self!r} knows {known}, got {norm!r}.")

    def refuse_rows(self, rules: Rules) -> None:
        """Raise where it does not know a kind of row."""
        if not self.capabilities.convex:
            refuse_curved(rules, f"solver: {self!r}")

    def refuse_prices(self, rules: Rules) -> None:
        """Raise where it knows no prices, and the rules have some."""
        if not self.capabilities.prices:
            refuse_priced(rules.data, f"solver: {self!r}")

    def __repr__(self) -> str:
        usual = signature(type(self)).parameters
        options = [
            f"{key}={value!r}"
            for key, value in vars(self).items()
            if key in usual and repr(value) != repr(usual[key].default)  # arrays are not compared
        ]
        return f"{type(self).__name__}({', '.join(options)})"
