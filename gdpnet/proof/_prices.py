"""What outputs pay."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import torch

from gdpnet.ir.batch import Batch, Origin
from gdpnet.ir.rules import Rules
from gdpnet.projection import project
from gdpnet.proof._instance import RationalInstance
from gdpnet.solve import existence
from gdpnet.solve.extended.cheapest import cheapest


def price_at(
    rules: Rules, instance: RationalInstance, x: torch.Tensor, y: torch.Tensor, tol: float
) -> Fraction:
    """The price of the cheapest choice that holds at outputs; it can be had, whatever is proved.

    With logic or auxiliaries the cheapest choice is that of the projection of y, if it stays where
    it is; else one that holds is taken, which may not be the cheapest.

    Args:
        rules: the rules.
        instance: the same at x.
        x: inputs, `p`.
        y: outputs that satisfy the rules that have to hold, `d`.
        tol: a row holds within this.
    """
    data = rules.data
    if not instance.prices:
        return Fraction(0)
    batch = Batch(x[None], y[None], Origin(torch.Size([1]), y.dtype))
    chosen: np.ndarray | None = None
    if not rules.is_plain:
        found = project(rules, y, x)
        stays = (found.y - y).abs() <= tol * y.abs().clamp(min=1.0)
        if bool(found.answer.answered.all()) and bool(stays.all()):
            chosen = found.answer.assignment[0] == 1
    if chosen is None:
        held = existence.each if rules.is_plain else existence.holding
        price = np.array([[float(price) for price in instance.prices.values()]])
        active = np.array([instance.active])
        chosen = cheapest(rules, active, held(rules, batch, tol), price)[0] == 1
    return sum((instance.prices[k] for k in data.priced if chosen[k]), Fraction(0))
