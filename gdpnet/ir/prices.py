"""What choosing booleans costs, for batches of inputs."""

from __future__ import annotations

import torch

from gdpnet.ir.atoms import Evaluator
from gdpnet.ir.data import RuleData


class PriceTable:
    """Prices of booleans as tensors.

    Args:
        data: the rules.
    """

    def __init__(self, data: RuleData) -> None:
        self.booleans = data.priced
        prices = [data.booleans[k].price for k in self.booleans]
        self._number = torch.tensor([price.number for price in prices], dtype=torch.float64)
        self._terms = [
            (column, atom, multiplier)
            for column, price in enumerate(prices)
            for atom, multiplier in price.atoms.items()
        ]
        self._required = [torch.tensor([*data.required_by(k)]) for k in self.booleans]

    def __len__(self) -> int:
        return len(self.booleans)

    def evaluate(self, x: torch.Tensor, active: torch.Tensor) -> torch.Tensor:
        """Prices, differentiable in x; 0 of a boolean whose rule does not apply.

        Args:
            x: inputs, `batch x p`, float64.
            active: which clauses apply, bool `batch x clauses`.

        Returns:
            `batch x priced`, in the order of `RuleData.priced`.
        """
        price = self._number.to(x.device).expand(len(x), -1)
        if not self.booleans:
            return price
        if self._terms:
            evaluate = Evaluator(x)
            to = torch.tensor([column for column, _, _ in self._terms], device=x.device)
            moving = torch.stack([evaluate(atom) * by for _, atom, by in self._terms], 1)
            price = price.index_add(1, to, moving)
        applies = torch.stack([active[:, clauses].all(1) for clauses in self._required], 1)
        return torch.where(applies, price, 0.0)


def usable(price: torch.Tensor) -> torch.Tensor:
    """Which prices are numbers from 0 on, bool of their shape."""
    return price.isfinite() & (price >= 0.0)
