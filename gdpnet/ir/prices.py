"""What choosing booleans costs, for batches of inputs, and what is paid for a choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from gdpnet.ir.atoms import Evaluator
from gdpnet.ir.data import RuleData
from gdpnet.ir.linear import Coefficient


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


class Payment:
    """Which literals of rules are chosen, and what of them is paid for.

    Of an untied Disjunction the cheapest disjunct that is true is chosen, the first of several; of
    one that logic names every true disjunct is paid for.

    Args:
        data: the rules.
        assignment: of the booleans: 1 true, else not, `batch x booleans`.
        price: of those that have one, `batch x priced`.
    """

    def __init__(self, data: RuleData, assignment: np.ndarray, price: np.ndarray) -> None:
        self.data = data
        self._true = assignment == 1
        self.price = price
        self._each = np.zeros(assignment.shape)
        self._each[:, data.priced] = price

    @staticmethod
    def free(data: RuleData, assignment: np.ndarray) -> Payment:
        """The same where nothing costs anything."""
        return Payment(data, assignment, np.zeros((len(assignment), len(data.priced))))

    def chosen(self, clause: int) -> np.ndarray:
        """Place of the chosen literal in a rule's clause, `batch`; -1 where none is true."""
        booleans = [literal - 1 for literal in self.data.clauses[clause].literals]
        true = self._true[:, booleans]
        cheapest = np.where(true, self._each[:, booleans], np.inf).argmin(1)
        return np.where(true.any(1), cheapest, -1)

    def paid(self) -> np.ndarray:
        """Which prices are paid, bool `batch x priced`."""
        data = self.data
        paid = np.zeros((len(self._true), len(data.priced)), dtype=bool)
        place = {k: column for column, k in enumerate(data.priced)}
        for index in sorted({data.owner[k] for k in data.priced}):
            clause = data.clauses[index]
            chosen = self.chosen(index)
            for position, literal in enumerate(clause.literals):
                k = literal - 1
                if k in place:
                    tied = data.booleans[k].tied
                    paid[:, place[k]] = self._true[:, k] if tied else chosen == position
                    if clause.guard >= 0:
                        paid[:, place[k]] &= self._true[:, clause.guard]
        return paid


def unbroken(data: RuleData, rules: Sequence[int] | None = None) -> RuleData:
    """The same rules, of which some that may be broken at a price have to hold.

    Args:
        data: the rules.
        rules: which; all where not given, and those nested in others.
    """
    hard = range(len(data.clauses)) if rules is None else [data.rules[r].clause for r in rules]
    held = {k for k in hard if data.clauses[k].breaking >= 0}
    free = {data.clauses[k].breaking for k in held}
    return replace(
        data,
        clauses=tuple(c.unbroken if k in held else c for k, c in enumerate(data.clauses)),
        booleans=tuple(
            replace(b, price=Coefficient()) if k in free else b for k, b in enumerate(data.booleans)
        ),
        rules=tuple(
            replace(r, positions=r.positions[:-1]) if r.clause in held else r for r in data.rules
        ),
    )


def usable(price: torch.Tensor) -> torch.Tensor:
    """Which prices are numbers from 0 on, bool of their shape."""
    return price.isfinite() & (price >= 0.0)
