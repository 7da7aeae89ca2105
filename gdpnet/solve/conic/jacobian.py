"""The derivative of batches of relaxed projections that are conic programs.

The point of the program does not depend on c, the prediction within its bounds (see `data`), so in
l2 predictions enter through their costs alone; in l1 c is all there is of them.
"""

from __future__ import annotations

import numpy as np

from gdpnet.lp.conic import ConicSolution
from gdpnet.lp.standard import StandardForm
from gdpnet.relaxation.program import RelaxationProgram
from gdpnet.solve.base import Gradients, Linearisation
from gdpnet.solve.conic.adjoint import adjoint
from gdpnet.solve.conic.data import ConicData

Array = np.ndarray

_WEIGHT = 1e-6  # a copy with less is left out


class ConicJacobian(Linearisation):
    """The derivative of the points of a batch of conic programs, all solved.

    Args:
        program: the program.
        form: its standard form.
        data: the samples.
        square: diagonal of the quadratic term, `n`.
        unit: in which costs were given, `batch`.
        found: what was found.
    """

    def __init__(
        self,
        program: RelaxationProgram,
        form: StandardForm,
        data: ConicData,
        square: Array,
        unit: Array,
        found: list[ConicSolution],
    ) -> None:
        self._program, self._form, self._data = program, form, data
        self._square, self._unit, self._found = square, unit, found

    def vjp(self, gradient: Array) -> Gradients:
        """Gradients of a loss from its gradient with respect to y, (B, d)."""
        program, data, form = self._program, self._data, self._form
        numbers = program.numbers(program.moving_values(data.parameters))
        entries, _ = form.matrices(*numbers)
        to_cost = np.zeros((len(gradient), len(program.lower)))
        to_entries, to_right = np.zeros(entries.shape), np.zeros((len(gradient), form.rows))
        for s, solution in enumerate(self._found):
            along = np.zeros(len(program.lower))
            along[program.outputs] = gradient[s, program.which]
            assert solution.point is not None
            to_cost[s], to_entries[s], to_right[s] = adjoint(
                *(form, entries[s], self._square * self._unit[s], solution, along),
                columns=np.flatnonzero(self._carried(solution.point)),
            )
        to_value, to_bound = form.pull_back(to_entries, to_right)
        to_moving = np.concatenate([to_value, to_bound], 1)[:, program.moving]
        bound, varying, start = program.pull_back(to_moving, gradient, data.parameters)
        price = self._to_prices(to_cost)
        if data.norm == "l1":
            return Gradients(np.where(data.start == data.yhat, start, 0.0), bound, varying, price)
        # An output in no part follows its prediction within its bounds.
        yhat = np.where(data.start == data.yhat, gradient, 0.0)
        square = data.weights[program.which] ** 2
        through = to_cost[:, program.outputs] * self._unit[:, None]
        yhat[:, program.which] = -2.0 * square * through
        return Gradients(yhat, bound, varying, price)

    def _to_prices(self, to_cost: Array) -> Array | None:
        """Gradient with respect to prices, by that of the weights' costs; None without prices."""
        payers = self._data.payers
        if payers is None:
            return None
        columns = np.array(self._program.weights, dtype=np.int64)
        to_products = np.zeros((len(to_cost), len(columns)))
        to_products[:, columns >= 0] = to_cost[:, columns[columns >= 0]] * self._unit[:, None]
        found: Array = to_products @ payers.T
        return found

    def _carried(self, z: Array) -> Array:
        """Columns that are no copies of products without weight, bool `n`."""
        program = self._program
        return np.asarray((program.weight_of < 0) | (z[program.weight_of] > _WEIGHT))
