"""The regularised programs of relaxed projections that are conic programs.

As in `weighted`, with the quadratic term `eps / 2` on the weights of all products of all blocks;
the conic program is solved by Clarabel, and differentiated at its solution.
"""

from __future__ import annotations

import numpy as np

from gdpnet.derivative.regularised import Regularised
from gdpnet.lp.program import Outcome
from gdpnet.solve.base import Array, Gradients
from gdpnet.solve.conic.linearisation import ConicLinearisation
from gdpnet.solve.conic.written import Programs


class ConicQPs(Regularised):
    """The regularised program of every sample, over the products of its own layout.

    Args:
        relaxed: the relaxed projections.
        eps: the regularisation.

    Attributes:
        y: the regularised point, (B, d); the prediction where there is none.
        capped: samples whose program could not be solved, whose gradient passes, and those whose
            gradient may be wrong, since numbers of different size leave open what is tight, (B,)
            bool.
        known: those whose program was solved, (B,) bool.
    """

    def __init__(self, relaxed: ConicLinearisation, eps: float) -> None:
        request, numbers = relaxed.request, relaxed.number
        self.y = np.where(numbers[:, None] >= 0, relaxed.start, request.yhat)
        self._missing = np.ones(len(numbers), dtype=bool)
        self._jacobian = ConicLinearisation(
            request, relaxed.layouts, numbers, relaxed.instance, relaxed.start
        )
        doubtful = np.zeros(len(numbers), dtype=bool)
        programs = request.rules.cache[Programs]
        for number in np.unique(numbers[numbers >= 0]).tolist():
            if relaxed.layouts.contradictory[number]:
                continue
            samples = np.flatnonzero(numbers == number)
            written = programs.of(number, request.settings.norm, eps)
            if not written.differentiable:
                continue
            data = relaxed.data(written.program, number, samples)
            found = written.solve(data)
            good = np.flatnonzero(found.outcome == Outcome.OPTIMAL)
            there = np.ix_(samples[good], written.program.which)
            self.y[there] = found.points[np.ix_(good, written.program.outputs)]
            self._missing[samples[good]] = False
            doubtful[samples] = [one.doubtful for one in found.found]
            self._jacobian.add(samples[good], written.jacobian(data, found, good))
        self.capped = (self._missing & (numbers >= 0)) | doubtful
        self.known = ~self._missing

    @property
    def missing(self) -> Array:
        """Samples without a regularised point, (B,) bool."""
        return self._missing

    def vjp(self, gradient: Array) -> Gradients:
        """Gradients of a loss from its gradient with respect to y, (B, d)."""
        return self._jacobian.vjp(gradient)
