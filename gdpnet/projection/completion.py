"""What goes with outputs that satisfy the rules: auxiliaries, and the truth of indicators.

Once auxiliaries are known every column is: the rules over all columns as outputs decide whether
they hold together, by rows and logic alone.
"""

from __future__ import annotations

import numpy as np

from gdpnet.ir.batch import Batch
from gdpnet.ir.data import Clause
from gdpnet.ir.logic import find_assignment
from gdpnet.ir.rules import Rules
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.solve import existence
from gdpnet.solve.base import Array
from gdpnet.solve.existence import State
from gdpnet.solve.milp import cuts
from gdpnet.solve.milp.sample import RulesAtSample
from gdpnet.solve.witness import filled, over_all_columns


def complete(rules: Rules, batch: Batch, known: Array, assignment: Array, tol: float) -> Array:
    """All columns, (B, n), such that everything holds together; NaN where that cannot be had.

    Args:
        rules: the rules.
        batch: inputs, and outputs that satisfy the rules.
        known: columns that a solver found, (B, n), NaN where it found none.
        assignment: of the booleans that it found, (B, booleans).
        tol: what it found is taken where everything holds within this, scaled.
    """
    d, columns = rules.data.outputs, rules.data.columns
    y = batch.y.detach().numpy()
    z = filled(rules, known, y)
    if d == len(columns):
        return z
    everything = over_all_columns(rules)
    holds = existence.satisfied(everything, Batch.of_arrays(batch.x.numpy(), z), tol).numpy()
    evaluated = rules.evaluate(batch.x)
    for i in np.flatnonzero(~holds):
        sample = RulesAtSample.of(rules, evaluated, int(i))
        # Disjuncts that were reported stay, where some auxiliaries allow it.
        chosen = [Clause("", (k + 1,)) for k in np.flatnonzero(assignment[i] == 1).tolist()]
        found = _find(sample, y[i], chosen, tol)
        if chosen and found is None:
            found = _find(sample, y[i], [], np.inf)
        z[i, d:] = np.nan if found is None else found
    return z


def _find(sample: RulesAtSample, y: Array, chosen: list[Clause], tol: float) -> Array | None:
    """Auxiliaries for which everything holds as well as it can, `n - d`; None beyond `tol`."""
    data = sample.rules.data
    clauses = (*sample.clauses, *chosen)
    program = sample.least_violation(y, clauses, data.global_rows, (), 0.0)
    answer = cuts.solve(program, sample)
    if answer.point is None or answer.point[-1] > tol:
        return None
    z = np.where(sample.integer, np.rint(answer.point[:-1]), answer.point[:-1])
    return np.clip(z, sample.lower, sample.upper)[len(y) :] + 0.0


def truth_values(rules: Rules, at: Batch, assignment: Array) -> Array:
    """Truth of every boolean at a point of all columns, bool (booleans,).

    Of an untied Disjunction one disjunct is true, that of the assignment where it holds; none
    where its rule is inactive or its parent not chosen.

    Args:
        rules: the rules.
        at: inputs and all columns of one sample.
        assignment: of the booleans that a solver found, (booleans,).
    """
    data = rules.data
    everything = over_all_columns(rules)
    each, globally = existence.measure(everything, at)
    level = max(float(globally), float(each.max()) if each.numel() else 0.0)
    level = TOLERANCES.above(level)
    state = State(everything, at)
    may = (state.booleans[0] <= level).tolist()
    clauses = state.clauses_at(level)
    tied = [k for k, boolean in enumerate(data.booleans) if boolean.tied]
    wanted = {k: bool(assignment[k] > 0) for k in tied if assignment[k]}
    found = find_assignment(clauses, wanted) or find_assignment(clauses, {}) or {}
    truth = np.zeros(len(data.booleans), dtype=bool)
    truth[[k for k, value in found.items() if value]] = True
    active = state.evaluated.clauses[0].tolist()
    for clause, on in zip(data.clauses, active, strict=True):
        untied = [k - 1 for k in clause.literals if not data.booleans[abs(k) - 1].tied]
        if not untied or not on or (clause.guard >= 0 and not truth[clause.guard]):
            continue
        if not any(truth[k - 1] for k in clause.literals):
            holding = [k for k in untied if may[k]]
            truth[max(holding, key=lambda k: assignment[k] == 1)] = True
    return truth
