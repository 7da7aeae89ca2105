"""The derivative of a batch of relaxed projections that are conic programs."""

from __future__ import annotations

import numpy as np

from gdpnet.ir.instance import Instance
from gdpnet.relaxation.layouts import Layouts
from gdpnet.relaxation.program import RelaxationProgram
from gdpnet.solve.base import Array, Gradients, Linearisation, Request
from gdpnet.solve.conic.data import ConicData


class ConicLinearisation(Linearisation):
    """The derivative of a batch, put together from groups of samples.

    Args:
        request: the batch.
        layouts: how rules are merged.
        number: layout of each sample, -1 where none was needed, (B,).
        instance: the layouts' rules for the batch.
        start: predictions within the bounds, (B, d).

    Attributes:
        known: samples whose derivative it has, (B,) bool.
        groups: samples, and who knows their derivative; a later group replaces an earlier one.
    """

    def __init__(
        self, request: Request, layouts: Layouts, number: Array, instance: Instance, start: Array
    ) -> None:
        self.request, self.layouts, self.number = request, layouts, number
        self.instance, self.start = instance, start
        self.known: Array = np.zeros(len(request.yhat), dtype=bool)
        self.groups: list[tuple[Array, Linearisation]] = []

    def data(self, program: RelaxationProgram, number: int, samples: Array) -> ConicData:
        """The programs of samples that have the same layout."""
        some, start = self.instance.take(samples), self.start[samples]
        return ConicData(
            program.parameters(some.bound, some.varying, start),
            *(start, self.request.yhat[samples], self.request.settings.weights),
            program.norm,
            *(self.layouts.prices(number, some.price) if some.price.shape[1] else (None, None)),
        )

    def add(self, samples: Array, own: Linearisation) -> None:
        """Note who knows the derivative of samples."""
        self.known[samples] = True
        self.groups.append((samples, own))

    def vjp(self, gradient: Array) -> Gradients:
        """Gradients of a loss from its gradient with respect to y, (B, d); others pass it on."""
        found = Gradients.passing(self.request.rules, gradient)
        m, (_, k, n) = found.bound.shape[1], found.varying.shape
        count = self.instance.price.shape[1]
        price = np.zeros((len(gradient), count)) if count else None
        newest = np.full(len(gradient), -1, dtype=np.int64)
        for place, (samples, _) in enumerate(self.groups):
            newest[samples] = place
        for place, (samples, own) in enumerate(self.groups):
            wanted = newest[samples] == place
            if not wanted.any():
                continue
            there = samples[wanted]
            incoming = np.where(wanted[:, None], gradient[samples], 0.0)
            part = own.vjp(np.ascontiguousarray(incoming))
            # The layouts' rules have further rows and columns behind those of the modeller.
            found.yhat[there] = part.yhat[wanted]
            found.bound[there] = part.bound[wanted, :m]
            found.varying[there] = part.varying[wanted, :k, :n]
            if part.price is not None and price is not None:
                price[there] = part.price[wanted] / self.request.settings.price_unit
        return found._replace(price=price)
