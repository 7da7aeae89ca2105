"""What is done to an answer before it is returned."""

from __future__ import annotations

import warnings

import numpy as np
import torch

from gdpnet.derivative.gradients import Derivative
from gdpnet.derivative.regularised import Regularised
from gdpnet.errors import ConflictError, ConflictWarning
from gdpnet.ir.batch import name_rows
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.projection import contradiction
from gdpnet.solve.base import Answer, Request
from gdpnet.solve.exact.backend import Exact
from gdpnet.solve.exact.linearisation import ExactLinearisation
from gdpnet.solve.extended.judge import judge
from gdpnet.solve.status import Status


def mark_invalid(request: Request, answer: Answer) -> Answer:
    """Samples that could not be used: ERROR, and no output."""
    invalid = request.invalid
    answer.status[invalid] = Status.ERROR
    answer.solver[invalid] = 0
    return answer.replace(y=np.where(invalid[:, None], np.nan, answer.y))


def raise_conflict(request: Request, answer: Answer) -> None:
    """Raise where the rules of a sample contradict each other, and say which."""
    conflict = answer.status == Status.CONFLICT
    if not conflict.any():
        return
    first = int(np.flatnonzero(conflict)[0])
    x = request.x[[first]]
    named = contradiction.explain_all(request.rules, torch.from_numpy(x))[0]
    message = (
        f"No output satisfies all active rules in {name_rows(torch.from_numpy(conflict))}. In row "
        f"{first} these contradict each other: {', '.join(named)}. on_conflict='pass' lets such "
        "predictions through"
    )
    if contradiction.unmendable(request.rules, x)[0]:
        raise ConflictError(message + "; breaking rules does not help here.")
    message += (
        ", 'drop' leaves out the least important rules, 'nearest' breaks the rules as little as "
        "possible"
    )
    raise ConflictError(message + ".")


def drop_rules(request: Request, answer: Answer) -> Answer:
    """Leave out the cheapest set of hard rules where they contradict each other."""
    rules = request.rules
    dropped = np.zeros((len(answer.y), len(rules.data.rules)), dtype=bool)
    unmendable = np.zeros(len(answer.y), dtype=bool)
    samples = np.flatnonzero(answer.status == Status.CONFLICT)
    if len(samples):
        from gdpnet.solve.exact.dropping import Droppable

        y, assignment = answer.y.copy(), answer.assignment.copy()
        options = Exact().options(request.take(samples))._replace(tolerance=0.0)
        instance = request.take(samples).evaluate()
        found = rules.cache[Droppable].drop(instance, request.yhat[samples], options)
        unmendable[samples] = found.hopeless
        known = np.isfinite(found.value)
        some = samples[known]
        y[some] = found.z[known, : y.shape[1]]
        assignment[some] = found.assignment[known]
        dropped[some] = found.rules[known]
        answer = answer.replace(y=y, assignment=assignment)
        _warn_unmendable(request, unmendable, "drop")
    return answer.noting(dropped=dropped, unmendable=unmendable)


def note_unmendable(request: Request, answer: Answer) -> Answer:
    """Note for which samples on_conflict="nearest" has nothing to offer; told once a call."""
    unmendable = (answer.status == Status.CONFLICT) & (answer.y == request.yhat).all(1)
    samples = np.flatnonzero(unmendable)
    if len(samples):
        unmendable[samples] = contradiction.unmendable(request.rules, request.x[samples])
    _warn_unmendable(request, unmendable, "nearest")
    return answer.noting(unmendable=unmendable)


def _warn_unmendable(request: Request, unmendable: np.ndarray, mode: str) -> None:
    rules, x = request.rules, request.x
    if unmendable.any():
        first = int(np.flatnonzero(unmendable)[0])
        evaluated = rules.evaluate(torch.from_numpy(x[[first]]))
        named = contradiction.explain(rules, evaluated, 0, breakable=True)
        warnings.warn(
            f"on_conflict={mode!r}: {name_rows(torch.from_numpy(unmendable))} passed as "
            f"predicted. In row {first} these contradict each other, whatever rules are broken: "
            f"{', '.join(named)}.",
            ConflictWarning,
            stacklevel=5,
        )


def move_to_regularised(request: Request, derivative: Derivative) -> Answer:
    """Replace the projected points by those of the regularised program."""
    answer = derivative.answer
    wanted = (answer.status == Status.PROJECTED) | (answer.status == Status.RELAXED)
    if not wanted.any():
        return answer
    backward = derivative.backward
    assert isinstance(backward, Regularised)
    # Without a solution of the program the vertex stays.
    moved = np.flatnonzero(wanted & ~backward.missing & np.asarray(backward.known))
    answer = answer.replace(y=answer.y.copy())
    answer.y[moved] = backward.y[moved]
    answer.status[moved] = Status.PROJECTED
    found = answer.linearisation
    instance = found.instance if isinstance(found, ExactLinearisation) else request.evaluate()
    judge(request.rules, request.x, instance, answer, moved, TOLERANCES.satisfied)
    return answer
