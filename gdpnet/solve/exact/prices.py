"""What holds a projection where it is: multipliers of its rows and bounds.

At the nearest point the slope of half the squared distance is balanced by the rows and bounds that
are just met,

    w^2 (y - yhat) + sum_i m_i a_i = 0,   m_i >= 0 for inequalities.

A convex row counts with its tangent. With the l1 norm, asked for where rows are convex, the slope
is w sign(y - yhat), and anything between where an output did not move.

Where more of them are met than are needed the multipliers are not unique; some that do it are
found, of rows that do not depend on each other. The distance itself, the root, falls by m_i divided
by it per unit that the right side of row i grows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gdpnet.core import TIGHT
from gdpnet.ir.compressed import Compressed
from gdpnet.ir.instance import Instance
from gdpnet.ir.rules import Rules
from gdpnet.ir.semantics import enforced as rows_of
from gdpnet.solve.base import Array
from gdpnet.solve.milp.cuts import tangent_at
from gdpnet.solve.milp.found import literals_of
from gdpnet.solve.milp.sample import RulesAtSample

if TYPE_CHECKING:
    from gdpnet.solve.exact.engine import Solved
    from gdpnet.solve.exact.options import SearchOptions

_STILL = 1e-6  # an output that moved by less did not, with the l1 norm
_BALANCED = 1e-6  # of the slope: what tangents at a point near the nearest one may leave of it


def balance(rows: Array, free: Array, slope: Array, unit: Array) -> Array:
    """Multipliers m, `k`, with `rows' m + slope = 0`, as nearly as there are any.

    Args:
        rows: `k x n`.
        free: those whose multiplier may have either sign, bool `k`.
        slope: `n`.
        unit: what an error in each of the n equations is measured in.
    """
    from scipy.optimize import nnls

    size = np.abs(rows / unit).max(1, initial=0.0)
    usable = np.flatnonzero(size > 0.0)
    found = np.zeros(len(rows))
    wanted = -slope / unit
    most = np.abs(wanted).max(initial=0.0)
    if not len(usable) or most == 0.0:
        return found
    # One column a row, and for those of either sign one more.
    columns = (rows[usable] / unit / size[usable, None]).T
    signed = np.flatnonzero(free[usable])
    matrix = np.hstack([columns, -columns[:, signed]])
    # nnls counts its steps, and stops where it took three times as many as there are columns.
    parts, _ = nnls(matrix, wanted / most, maxiter=30 * matrix.shape[1])
    share = parts[: len(usable)]
    share[signed] -= parts[len(usable) :]
    chosen = np.flatnonzero(share)
    # What it chose, once more and at once: its own arithmetic goes step by step.
    again = np.linalg.lstsq(columns[:, chosen], wanted / most, rcond=None)[0]
    if (free[usable[chosen]] | (again >= 0.0)).all():
        share[chosen] = again
    found[usable] = share * most / size[usable]
    return found


def bounds_met(z: Array, lower: Array, upper: Array) -> Array:
    """Rows of the bounds that a point is just at, `k x n`."""
    unit = np.eye(len(z))
    return np.vstack(
        [
            sign * unit[np.isfinite(side) & (np.abs(z - side) <= TIGHT * np.maximum(1, abs(side)))]
            for sign, side in ((1.0, upper), (-1.0, lower))
        ]
    )


def prices(
    rules: Rules,
    instance: Instance,
    solved: Solved,
    yhat: Array,
    search: SearchOptions,
    known: Array,
) -> tuple[Array, Array]:
    """Tight rows, and what the distance falls by per unit of their right sides, each (B, k).

    -1 and 0 beyond their number, and for samples that are not known. Not known is what tangents do
    not balance: at the apex of a norm, or of a set without an interior.

    Args:
        rules: the rules.
        instance: the rules of the batch.
        solved: what was found.
        yhat: predictions, (B, d).
        search: norm and weights.
        known: the samples to look at, (B,) bool.
    """
    data, table = rules.data, rules.table
    size, d = yhat.shape
    weights, euclidean = search.weights, search.norm == "l2"
    varying = table.varying.numpy()
    matrix, scale = table.shared.numpy().copy(), instance.scale(table)
    equality = np.array([row.equality for row in data.rows], dtype=bool)
    column = _ColumnEnds(rules, weights)
    rows: list[Array] = []
    rates: list[Array] = []
    for i in range(size):
        rows.append(np.zeros(0, dtype=np.int64))
        rates.append(np.zeros(0))
        z, slope = np.nan_to_num(solved.z[i]), np.zeros(len(data.columns))  # NaN stands in no row
        moved = z[:d] - yhat[i]
        slope[:d] = weights**2 * moved if euclidean else weights * np.sign(moved)
        far = float(np.linalg.norm(moved * weights))
        if not known[i] or far == 0.0:
            continue
        matrix[:] = table.shared.numpy()
        matrix[varying] = instance.varying[i]
        bound = instance.bound[i].copy()
        chosen = literals_of(solved.assignment[i])
        enforced = np.array(sorted({*data.global_rows, *rows_of(data.booleans, chosen)}), dtype=int)
        sample = RulesAtSample(rules, Compressed.of(matrix), instance.bound[i], equality, ())
        for row in set(enforced.tolist()) & set(data.curved):
            tangent = tangent_at(sample, row, z)
            matrix[row], bound[row] = tangent.slope, tangent.bound
        off = np.abs(matrix[enforced] @ z - bound[enforced])
        tight = enforced[off <= TIGHT * scale[i, enforced]]
        held, free = column.held(z)
        if not euclidean:
            stayed = np.flatnonzero(np.abs(moved) <= _STILL * np.maximum(1.0, np.abs(yhat[i])))
            slope[stayed] = 0.0
            held = np.vstack([held, np.eye(len(z))[stayed]])
            free = np.concatenate([free, np.ones(len(stayed), dtype=bool)])
        every = np.vstack([matrix[tight], held])
        found = balance(every, np.concatenate([equality[tight], free]), slope, column.unit)
        left = np.abs(slope + found @ every) / column.unit
        if data.curved and left.max() > _BALANCED * np.abs(slope / column.unit).max():
            continue
        rows[i], rates[i] = tight, found[: len(tight)] / (far if euclidean else 1.0)
    width = max(map(len, rows), default=0)
    filled = np.full((size, width), -1, dtype=np.int64)
    priced = np.zeros((size, width))
    for i, (own, rate) in enumerate(zip(rows, rates, strict=True)):
        filled[i, : len(own)], priced[i, : len(own)] = own, rate
    return filled, priced


class _ColumnEnds:
    """What the columns themselves hold a point by: bounds, and that it is whole."""

    def __init__(self, rules: Rules, weights: Array) -> None:
        columns = rules.data.columns
        self.lower = np.array([c.lower for c in columns])
        self.upper = np.array([c.upper for c in columns])
        self.integer = np.array([c.integer for c in columns], dtype=bool)
        size = np.abs(rules.table.shared.numpy()).max(0, initial=0.0)
        self.unit = np.where(size > 0.0, size, 1.0)
        self.unit[: len(weights)] = weights

    def held(self, z: Array) -> tuple[Array, Array]:
        """Rows of the bounds that are met and of whole numbers, `k x n`; which have either sign."""
        bounds = bounds_met(z, self.lower, self.upper)
        rows = np.vstack([np.eye(len(z))[self.integer], bounds])
        free = np.zeros(len(rows), dtype=bool)
        free[: len(rows) - len(bounds)] = True
        return rows, free
