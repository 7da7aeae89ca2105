"""The rows of a component, as the kernels read them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import typeof

from gdpnet.kernels._jit import Array


class Prepared(NamedTuple):
    """What all samples of a component share; rows are scaled by powers of two.

    Attributes:
        outputs: number of outputs, the first columns.
        lower: (n,).
        upper: (n,).
        integer: (n,) bool.
        start: entries of each row, (m + 1,).
        column: (entries,).
        coefficient: (entries,), scaled; those of varying rows are filled in for each sample.
        largest: largest coefficient of each row before scaling, (m,).
        scale: (m,).
        equality: (m,) bool.
        varying: rows whose coefficients depend on x, (k,).
        global_rows: rows that always hold, (g,).
        plain: whether a prediction can be accepted by looking at rows alone.
    """

    outputs: int
    lower: Array
    upper: Array
    integer: Array
    start: Array
    column: Array
    coefficient: Array
    largest: Array
    scale: Array
    equality: Array
    varying: Array
    global_rows: Array
    plain: bool


NO_ROWS = Prepared(
    outputs=0,
    lower=np.zeros(0),
    upper=np.zeros(0),
    integer=np.zeros(0, dtype=np.bool_),
    start=np.zeros(1, dtype=np.int64),
    column=np.zeros(0, dtype=np.int64),
    coefficient=np.zeros(0),
    largest=np.zeros(0),
    scale=np.zeros(0),
    equality=np.zeros(0, dtype=np.bool_),
    varying=np.zeros(0, dtype=np.int64),
    global_rows=np.zeros(0, dtype=np.int64),
    plain=False,
)


PREPARED = typeof(NO_ROWS)
