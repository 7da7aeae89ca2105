"""Certificates: proofs, checked without solving anything, that no output is nearer.

A certificate is a tree. An inner node names a rule that has to hold and has a child for each of
its disjuncts, or splits a whole number, or tells what follows if an indicator is true and if it is
false. A leaf holds one multiplier a row, and weak duality makes of them a lower bound on the
distance of all points that satisfy what was assumed on the way down; in the Euclidean norm on the
squared distance, which is a rational number where its root is none. Where rules or disjuncts have
prices, what is bounded is distance and price together: a leaf adds the price of what was assumed,
and the least price of every rule that is still open.

A convex row stands in a leaf as tangents: linear rows that everything satisfies that satisfies it.
A certificate names where the row was touched, and the check computes the tangent from the rules.
Tangents come near, and do not end: a bound falls short of the distance by 2e-8 of it, or 5e-7.

Nothing in a certificate is trusted. What each node may assume follows from the rules and x, and the
bounds are computed anew, in exact rational arithmetic. What `tol` allows for is that y itself is a
floating-point number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import torch

from gdpnet.checks import check_choice, check_count, check_seconds, check_tolerance, weights_of
from gdpnet.errors import InputError, SolverError
from gdpnet.ir.batch import Batch, Origin, as_batch, as_tensor, refuse_nonfinite
from gdpnet.ir.rules import Rules
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.projection import project
from gdpnet.proof._check import UnprovedError, walk
from gdpnet.proof._instance import Number, RationalInstance, distance_of
from gdpnet.proof._prices import price_at
from gdpnet.proof._tree import Certificate
from gdpnet.solve import existence
from gdpnet.solve.status import Status

__all__ = ["Certificate", "Verdict", "certify", "verify"]

_INF = float("inf")

NODE_LIMIT = 100_000
"""Nodes of a certificate's tree."""

# Residual, relative to max(|b|, max|a|) of a row, up to which the engine's point proves that y is
# not the nearest.
_FOUND = 1e-8


@dataclass(frozen=True)
class Verdict:
    """What `verify` found; true where everything was proved.

    Attributes:
        ok: y satisfies the rules and nothing nearer does; or nothing does, where that is claimed.
        feasible: y satisfies the rules.
        covered: every disjunct is dealt with by a leaf, and every leaf proves something.
        bound: proved lower bound on the value of any output that satisfies the rules.
        value: of y, what is minimised: the distance, with norm="l2" its square, and the price of
            the cheapest choice that holds at y; inf where there is none.
        distance: of y; inf where there is none.
        reason: a sentence.
    """

    ok: bool
    feasible: bool
    covered: bool
    bound: float
    value: float
    distance: float
    reason: str

    def __bool__(self) -> bool:
        return self.ok


def certify(
    rules: Rules,
    yhat: Any,
    x: Any = None,
    y: Any = None,
    *,
    norm: str = "l1",
    weights: Any = None,
    time_limit: float | None = None,
    node_limit: int = NODE_LIMIT,
) -> Certificate:
    """A proof that no output that satisfies the rules is nearer to a prediction.

    Where the rules contradict each other it proves that. Rows may be convex.

    Args:
        rules: the rules.
        yhat: prediction, `d`.
        x: inputs of one sample, `p`, or None where there are none.
        y: nearest outputs, `d`; projected where not given.
        norm: of the distance, `"l1"` or `"l2"`. With `"l2"` the bound of a certificate is that of
            the squared distance.
        weights: positive weight of each output in the distance, `d`; 1 where not given.
        time_limit: seconds; then SolverError is raised.
        node_limit: nodes of the tree; then SolverError is raised.

    Raises:
        InputError: y does not satisfy the rules, or is not the nearest.
        RuleError: a row has a curve without rational tangents.
        SolverError: a limit was reached, or a bound is lost in rounding errors; convex rows that
            leave a set without an interior can do that.

    Example:
        >>> import pyomo.environ as pyo, gdpnet
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var(bounds=(0, 10))
        >>> m.gap = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 7))
        >>> rules = gdpnet.RuleModel(m, outputs=[m.y])
        >>> certificate = gdpnet.proof.certify(rules, [4.5])
        >>> certificate
        Certificate(2 leaves, depth 1, bound 1.5)
        >>> gdpnet.proof.verify(rules, [4.5], [3.0], certificate=certificate).ok
        True
    """
    # HiGHS is needed to make a certificate, not to check one.
    from gdpnet.proof import _search

    check_choice("norm", norm, ("l1", "l2"))
    check_seconds("time_limit", time_limit)
    check_count("node_limit", node_limit)
    instance, inputs, prediction = _instance(rules, x, yhat, weights, norm)
    known = None if y is None else _outputs(rules, y)
    if known is not None and not _satisfies(rules, inputs, known, TOLERANCES.satisfied):
        raise InputError("y: it does not satisfy the rules; pass the outputs that project returns.")
    return _search.certificate(
        rules, instance, inputs, prediction, known, time_limit=time_limit, node_limit=node_limit
    )


def verify(
    rules: Rules,
    yhat: Any,
    y: Any,
    x: Any = None,
    certificate: Certificate | None = None,
    *,
    norm: str = "l1",
    weights: Any = None,
    tol: float = TOLERANCES.satisfied,
) -> Verdict:
    """Check that outputs satisfy the rules and that no nearer ones do.

    With a certificate nothing is solved for the second part: its leaves must cover all disjuncts
    and the bound of each, in exact arithmetic, must reach the distance of y. A leaf that proves
    that its rows contradict each other must do so by more than 1e-9, relative to the sum of its
    multipliers times the sizes `max(|b|, max|a|)` of their rows. Without a certificate a
    mixed-integer program is solved; an output that the exact engine finds counts as well, so that
    y is refused if either knows a nearer one. With norm="l2", and for convex rows, a certificate is
    made instead.

    Args:
        rules: the rules.
        yhat: prediction, `d`.
        y: outputs, `d`; None to claim that no output satisfies the rules. Ignored where the
            certificate claims that.
        x: inputs of one sample, `p`, or None where there are none.
        certificate: what `certify` made.
        norm: of the distance, as in `certify`.
        weights: positive weight of each output in the distance, `d`; 1 where not given.
        tol: by how much y may break a row, relative to its size `max(|b|, max|a|)`. That is the
            exact engine's measure; `RuleModel.satisfied` takes at least 1 for the size, and so
            lets rows of small numbers pass. Also by how much the bound may fall short: relative
            to the distance or, if that is more, what it costs to move one of the outputs by `tol`
            that differ from the prediction, and by no more than it differs. Where an output of a
            large weight moves far, pass a smaller `tol` to see what the light ones do.

    Example:
        >>> import pyomo.environ as pyo, gdpnet
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var(bounds=(0, 10))
        >>> m.gap = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 7))
        >>> rules = gdpnet.RuleModel(m, outputs=[m.y])
        >>> certificate = gdpnet.proof.certify(rules, [4.5])
        >>> gdpnet.proof.verify(rules, [4.5], [3.0], certificate=certificate).reason
        'y satisfies the rules, and none of the 2 leaves has anything nearer than 1.5.'
        >>> gdpnet.proof.verify(rules, [4.5], [7.0], certificate=certificate).reason
        'An output nearer than y may exist: y is at 2.5, only 1.5 is proved.'
        >>> gdpnet.proof.verify(rules, [4.5], [4.5], certificate=certificate).reason
        'y does not satisfy the rules.'
    """
    check_choice("norm", norm, ("l1", "l2"))
    check_tolerance(tol)
    instance, inputs, prediction = _instance(rules, x, yhat, weights, norm)
    outputs = None if y is None else _outputs(rules, y)
    if certificate is None and (norm == "l2" or instance.curved):
        proof = _by_certifying(rules, instance, inputs, prediction)
    elif certificate is None:
        proof = _by_solving(rules, instance, inputs, prediction, weights)
    elif isinstance(certificate, Certificate):
        proof = _by_certificate(instance, certificate)
    else:
        raise InputError(f"certificate: expected a Certificate, got {type(certificate).__name__}.")
    feasible = outputs is not None and _satisfies(rules, inputs, outputs, tol)
    price = Fraction(0)
    if outputs is not None and feasible:
        price = price_at(rules, instance, inputs, outputs, tol)
    claims_conflict = y is None or (certificate is not None and certificate.bound == _INF)
    if outputs is None or claims_conflict:
        return _judged_conflict(proof, feasible, instance)
    return _judged(proof, feasible, instance, (outputs.tolist(), price), float(tol))


@dataclass(frozen=True)
class _Proof:
    """What is proved.

    Attributes:
        bound: on what is minimised.
        covered: whether the proof is complete.
        how: ends the sentence on a bound that is reached, or says what is missing.
    """

    bound: Number
    covered: bool
    how: str


def _judged(
    proof: _Proof,
    feasible: bool,
    instance: RationalInstance,
    found: tuple[list[float], Fraction],
    tol: float,
) -> Verdict:
    y, price = found
    value = instance.away(y) + price
    reached = proof.bound >= value - instance.slack(y, tol, price)
    bound, far = (instance.told(v) for v in (proof.bound, value))
    nearer, at = ("cheaper", "costs") if instance.priced else ("nearer", "is at")
    if not feasible:
        reason = "y does not satisfy the rules."
    elif not proof.covered:
        reason = proof.how
    elif not reached:
        reason = (
            f"An output {nearer} than y may exist: y {at} {far:.9g}, only {bound:.9g} is proved."
        )
    else:
        told = f"{bound:.9g}"
        reason = f"y satisfies the rules, and {proof.how} {nearer} than {told}."
        if told != f"{far:.9g}":
            reason = f"{reason[:-1]}; y {at} {far:.9g}, the same within tol."
    ok = feasible and proof.covered and reached
    proved = distance_of(proof.bound, "l1")
    away = distance_of(instance.away(y), instance.norm)
    return Verdict(ok, feasible, proof.covered, proved, float(value), away, reason)


def _judged_conflict(proof: _Proof, feasible: bool, instance: RationalInstance) -> Verdict:
    ok = proof.covered and proof.bound == _INF
    bound = distance_of(proof.bound, "l1")
    if ok:
        reason = f"No output satisfies the rules: {proof.how}."
    elif not proof.covered:
        reason = proof.how
    else:
        reason = (
            "It is not proved that no output satisfies the rules, only that none is nearer than "
            f"{instance.told(proof.bound):.9g}."
        )
    return Verdict(ok, feasible, proof.covered, bound, _INF, _INF, reason)


def _by_solving(
    rules: Rules, instance: RationalInstance, x: torch.Tensor, yhat: torch.Tensor, weights: Any
) -> _Proof:
    """What a mixed-integer program proves, unless the exact engine knows better."""
    found = project(rules, yhat, x, solver="milp", weights=weights)
    status = Status(int(found.status))
    if status not in (Status.SATISFIED, Status.PROJECTED, Status.CONFLICT):
        return _Proof(0.0, False, f"The mixed-integer program was not solved: {status.message}")
    if status is not Status.CONFLICT and not _satisfies(rules, x, found.y, TOLERANCES.satisfied):
        told = "The mixed-integer program's point does not satisfy the rules: pass a certificate."
        return _Proof(0.0, False, told)
    value = float(found.value)
    bound: Number = Fraction(value) if math.isfinite(value) else value
    other = project(rules, yhat, x, weights=weights)
    if _satisfies(rules, x, other.y, _FOUND):
        price = price_at(rules, instance, x, other.y, _FOUND)
        bound = min(bound, instance.away(other.y.tolist()) + price)
    return _Proof(bound, True, "a mixed-integer program, solved without a certificate, has nothing")


def _by_certifying(
    rules: Rules, instance: RationalInstance, x: torch.Tensor, yhat: torch.Tensor
) -> _Proof:
    """What a certificate proves that is made for the purpose: no solver here knows the program."""
    from gdpnet.proof import _search

    try:
        made = _search.certificate(
            rules, instance, x, yhat, None, time_limit=None, node_limit=NODE_LIMIT
        )
    except (InputError, SolverError) as error:
        return _Proof(0.0, False, f"No certificate could be made: {error}")
    proof = _by_certificate(instance, made)
    return replace(proof, how="a certificate, made for the purpose, has nothing")


def _satisfies(rules: Rules, x: torch.Tensor, y: torch.Tensor, tol: float) -> bool:
    batch = Batch(x[None], y[None], Origin(torch.Size([1]), y.dtype))
    return bool(existence.satisfied(rules, batch, tol, by_own_size=True))


def _by_certificate(instance: RationalInstance, certificate: Certificate) -> _Proof:
    try:
        bound = walk(instance, certificate.nodes, certificate.tangents)
    except UnprovedError as error:
        return _Proof(0.0, False, f"The certificate proves nothing: {error}.")
    leaves = certificate.leaves
    return _Proof(bound, True, f"none of the {leaves} leaves has anything")


# ---- arguments ----------------------------------------------------------------------------


def _instance(
    rules: Rules, x: Any, yhat: Any, weights: Any, norm: str
) -> tuple[RationalInstance, torch.Tensor, torch.Tensor]:
    """The problem, and x and yhat as float64 tensors `p` and `d`."""
    if not isinstance(rules, Rules):
        raise InputError(f"rules: expected a gdpnet.RuleModel, got {type(rules).__name__}.")
    batch = as_batch(x, yhat, rules.input_names, rules.output_names, y_name="yhat")
    if shape := batch.origin.shape:
        raise InputError(f"yhat: expected one sample, got leading shape {tuple(shape)}.")
    prediction: np.ndarray = batch.y[0].detach().cpu().numpy()
    instance = RationalInstance(rules, batch.x, prediction, weights_of(weights, rules)[0], norm)
    return instance, batch.x[0].detach(), batch.y[0].detach()


def _outputs(rules: Rules, y: Any) -> torch.Tensor:
    outputs = as_tensor(y, rules.output_names, "y").detach().double()
    if outputs.ndim != 1:
        raise InputError(f"y: expected one sample, got shape {tuple(outputs.shape)}.")
    refuse_nonfinite(outputs[None], "y")
    return outputs
