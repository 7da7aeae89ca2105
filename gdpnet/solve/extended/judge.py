"""Which rules hold at the points of a batch.

Where rows alone decide, `Judge` takes the same measure as `rules.violation`, for which torch needs
some thirty operations a batch: a few samples would wait for those longer than for their program.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gdpnet import core
from gdpnet.ir.batch import Batch
from gdpnet.ir.instance import Instance
from gdpnet.ir.rules import Rules
from gdpnet.solve import existence
from gdpnet.solve.base import Answer, Array
from gdpnet.solve.status import Status


class Judge:
    """Says of points which rules hold.

    Args:
        rules: rules that are plain: no auxiliaries, no logic over indicators, no curved rows.
    """

    def __init__(self, rules: Rules) -> None:
        data, table = rules.data, rules.table
        shared = np.ascontiguousarray(table.shared.numpy())
        place = np.full(len(data.rows), -1, dtype=np.int64)
        place[table.varying.numpy()] = np.arange(len(table.varying))
        nested = [
            (index, clause)
            for index, clause in enumerate(data.clauses)
            if clause.guard >= 0 and not clause.logic
        ][::-1]
        outputs = data.columns[: data.outputs]
        self._native = core.Judge(
            shared,
            np.abs(shared).max(1, initial=1.0),
            place,
            np.ascontiguousarray(table.equality.numpy()),
            _ragged(boolean.true_rows for boolean in data.booleans),
            np.array([index for index, _ in nested], dtype=np.int64),
            np.array([clause.guard for _, clause in nested], dtype=np.int64),
            _ragged([k - 1 for k in clause.literals] for _, clause in nested),
            _ragged([k - 1 for k in data.clauses[r.clause].literals] for r in data.rules),
            np.array(data.global_rows, dtype=np.int64),
            np.array([column.lower for column in outputs], dtype=float),
            np.array([column.upper for column in outputs], dtype=float),
            np.array([column.integer for column in outputs], dtype=np.bool_),
        )

    def __call__(
        self,
        samples: Array,
        instance: Instance,
        active: Array,
        y: Array,
        tolerance: float,
        assignment: Array,
        violation: Array,
    ) -> Array:
        """Which of some samples satisfy everything, bool (samples,).

        Args:
            samples: indices into the batch.
            instance: the rules of the batch; further rows and columns are ignored.
            active: which rules apply, (B, rules) bool.
            y: points, (B, d).
            tolerance: a rule, a row or a bound holds within this.
            assignment: gets 1 where a boolean's rows hold and 0 elsewhere, (B, booleans) int8.
            violation: gets the violation of each rule, (B, rules).
        """
        holds = np.empty(len(samples), dtype=np.bool_)
        self._native.judge(
            *(samples, instance.bound, instance.varying, instance.active),
            *(np.ascontiguousarray(active), np.ascontiguousarray(y), tolerance),
            *(assignment, violation, holds),
        )
        return holds


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
    linear = rules.is_plain and not rules.data.curved
    if linear and instance is not None and core.AVAILABLE:
        measured = np.empty(answer.active.shape) if violation is None else violation
        held = rules.cache[Judge](
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


def _ragged(lists: Iterable[Iterable[int]]) -> tuple[Array, Array]:
    """Lists behind each other: where each starts, and their entries."""
    arrays = [np.array(list(entries), dtype=np.int64) for entries in lists]
    start = np.cumsum([0, *map(len, arrays)], dtype=np.int64)
    return start, np.concatenate([np.zeros(0, dtype=np.int64), *arrays])
