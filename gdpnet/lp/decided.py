r"""Whether an interior-point solution says what is tight, and its point to six digits.

To first order a step to the end of the path takes `s / W` of a cone in the tight directions to 0,
and leaves it in the others as it is (Tapia's indicators): where every share of it that goes is 1 or
0, what is tight is decided, whatever units rows are in. The step in the columns is what the point
still misses.
"""

from __future__ import annotations

import numpy as np

from gdpnet.lp.central_path import CentralPath, dense
from gdpnet.lp.conic import ConicSolution
from gdpnet.lp.standard import StandardForm

Array = np.ndarray

_MISSED = 1e-6  # of a column, relative to max(1, column)
_OPEN = 0.05  # of a share that goes, from 0 or 1


def is_decided(
    form: StandardForm,
    entries: Array,
    right: Array,
    cost: Array,
    square: Array,
    found: ConicSolution,
) -> bool:
    """Whether it is; cones are half-lines and second-order ones.

    Args:
        form: the program.
        entries: of A.
        right: b.
        cost: q, `n`.
        square: diagonal of P, `n`.
        found: a solution of the program.
    """
    assert found.point is not None
    assert found.slack is not None
    assert found.dual is not None
    slack = found.slack.copy()
    slack[: form.equal] = 0.0
    # What is lost to rounding are no numbers, or says nothing of the kind.
    with np.errstate(all="ignore"):
        numbers = dense(form, entries), right, cost, square
        path = CentralPath(form, numbers, (found.point, slack, found.dual))
        dz, ds, _ = path.to_the_end()
        scaling, cones = path.scaling, path.cones
        gone = cones.ends(cones.divided(-scaling.over(ds), scaling.times(path.v)))
        is_tight, looks_tight = gone > 0.5, cones.ends(slack - found.dual) <= 0.0
        missed = np.abs(dz) / np.maximum(1.0, np.abs(found.point))
        clear = np.abs(gone - is_tight) <= _OPEN
        # Of a cone it counts how many directions are tight: they come in no common order.
        alike = is_tight.sum(1) == looks_tight.sum(1)
        return bool((missed <= _MISSED).all() and clear.all() and alike.all())
