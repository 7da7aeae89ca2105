"""Whether a relaxation's points satisfy the rules."""

from __future__ import annotations

import numpy as np

from gdpnet import kernels
from gdpnet.ir.batch import Batch
from gdpnet.ir.instance import Instance
from gdpnet.ir.rules import Rules
from gdpnet.solve import existence
from gdpnet.solve.base import Answer, Array
from gdpnet.solve.status import Status


def judge(
    rules: Rules,
    x: Array,
    instance: Instance | None,
    answer: Answer,
    samples: Array,
    tol: float,
    *,
    violation: Array | None = None,
) -> Array:
    """Which samples satisfy the rules; notes which disjuncts hold, and RELAXED where not.

    Args:
        rules: the rules.
        x: inputs, (B, p).
        instance: the rules of the batch; None where nobody has them.
        answer: the points, written into.
        samples: those to look at.
        tol: a rule, a row or a bound holds within this.
        violation: gets the violation of each rule where the rules are plain, (B, rules).
    """
    if not len(samples):
        return np.zeros(0, dtype=bool)
    if rules.is_plain and instance is not None and kernels.AVAILABLE:
        from gdpnet.solve.extended.judge import Judge

        measured = np.empty(answer.active.shape) if violation is None else violation
        held = rules.cached(Judge)(
            *(samples, instance, answer.active, answer.y, tol, answer.assignment, measured)
        )
        answer.status[samples[~held]] = Status.RELAXED
        return held
    batch = Batch.of_arrays(x[samples], answer.y[samples])
    holds = existence.satisfied(rules, batch, tol).numpy()
    answer.status[samples[~holds]] = Status.RELAXED
    if violation is not None and rules.is_plain:
        violation[samples] = existence.measure(rules, batch)[0].numpy()
    for group, look in ((samples[holds], existence.holding), (samples[~holds], existence.each)):
        if len(group):
            part = Batch.of_arrays(x[group], answer.y[group])
            answer.assignment[group] = look(rules, part, tol).astype(np.int8)
    return holds
