"""What a projection costs beside the distance: prices paid, rules broken, and their gradient."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch

from gdpnet.ir.batch import Origin, flat
from gdpnet.ir.prices import Payment
from gdpnet.solve.base import Answer, Array, Request


class Paying:
    """What is paid for an answer.

    Args:
        request: what was asked of the backend.
        origin: what the caller gave.
        answer: what was found.
    """

    def __init__(self, request: Request, origin: Origin, answer: Answer) -> None:
        self._request, self._origin, self._answer = request, origin, answer
        self._rules = request.rules

    @cached_property
    def payment(self) -> Payment:
        """Which literals are chosen, and what they cost."""
        answer, request = self._answer, self._request
        prices = np.zeros((len(answer.y), len(self._rules.prices)))
        if prices.shape[1]:
            usable = ~answer.unusable
            x = torch.from_numpy(request.x[usable])
            prices[usable] = self._rules.evaluate(x).prices.numpy()
        return Payment(self._rules.data, answer.assignment, prices)

    @cached_property
    def _chose(self) -> Array:
        """Samples for which disjuncts were chosen, (B,) bool."""
        dropped = self._answer.notes.get("dropped")
        answered = self._answer.answered
        return answered if dropped is None else answered | dropped.any(1)

    def price(self, x: torch.Tensor | None) -> torch.Tensor:
        """Sum of the prices that are paid, in the caller's shape and type.

        Args:
            x: inputs as given, where the sum is to carry their gradient.
        """
        origin, answer = self._origin, self._answer
        paid = self.payment.paid() & self._chose[:, None]
        if x is None or not paid.shape[1]:
            found = np.where(paid, self.payment.price, 0.0).sum(1)
            found = np.where(answer.unusable, np.nan, found)
            return origin.restore(torch.from_numpy(found), origin.dtype)
        own = x if x.shape[:-1] == origin.shape else x.reshape(-1).expand(*origin.shape, -1)
        used = torch.from_numpy(paid.any(1))
        prices = self._rules.evaluate(flat(own.cpu())[used]).prices
        summed = (prices * torch.from_numpy(paid[used.numpy()])).sum(1)
        total = torch.zeros(len(used), dtype=torch.float64).index_put((used,), summed)
        return origin.restore(total, origin.dtype)

    def broken(self) -> Array:
        """Which rules were bought off, (B, rules) bool."""
        answer, data = self._answer, self._rules.data
        broken = np.zeros((len(answer.y), len(data.rules)), dtype=bool)
        for r, rule in enumerate(data.rules):
            if data.clauses[rule.clause].breaking >= 0:
                last = self.payment.chosen(rule.clause) == len(rule.positions) - 1
                broken[:, r] = self._chose & answer.active[:, r] & last
        return broken

    def slope(
        self, y: torch.Tensor, yhat: torch.Tensor | None, weights: Array, price: torch.Tensor
    ) -> torch.Tensor | None:
        """0, with the gradient of what is minimised; None where nothing carries one.

        Args:
            y: outputs, `... x d`.
            yhat: predictions as given, where they were a tensor.
            weights: of the outputs, `d`.
            price: what is paid, `...`.
        """
        parts = [price] if price.requires_grad else []
        if y.requires_grad:
            given = torch.from_numpy(self._request.yhat) if yhat is None else yhat
            moved = (y - given.reshape(y.shape).to(y)) * torch.from_numpy(weights).to(y)
            squared = self._request.settings.norm == "l2"
            parts.append((moved**2 if squared else moved.abs()).sum(-1))
        if not parts:
            return None
        cost = torch.stack([part.double() for part in parts]).sum(0)
        known = self._origin.restore(torch.from_numpy(self._answer.answered))
        return torch.where(known, cost - cost.detach(), 0.0)
