"""Rules with prices in relaxations: what a relaxation's point pays, and whether that is the least.

The value of a relaxation is a lower bound on distance and prices together. A point that satisfies
the rules that have to hold is the answer exactly if its distance, and the price of what it
chooses, are no more than that bound. Any other is RELAXED.
"""

from __future__ import annotations

import numpy as np

from gdpnet import core
from gdpnet.ir.data import RuleData
from gdpnet.ir.instance import Instance
from gdpnet.ir.semantics import enforced
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.relaxation.blocks import Layout
from gdpnet.solve.base import Answer, Array, Request
from gdpnet.solve.extended.cheapest import cheapest
from gdpnet.solve.extended.rows_alone import project_onto_rows
from gdpnet.solve.status import Status

# By how much distance and price may be above the bound, relative to it; programs miss 1e-9.
_ABOVE = 1e-7

# Below this a weight is fractional.
_WHOLE = 1.0 - 1e-7


class Pays:
    """What the points of a batch pay.

    Args:
        request: the batch; its rules have prices.
        instance: its rules, prices in units of what is minimised.

    Attributes:
        picked: booleans that a relaxation chose with all weight, (B, booleans) int8.
        decided: samples for which it did so in every block, (B,) bool.
    """

    def __init__(self, request: Request, instance: Instance) -> None:
        self.request, self.instance = request, instance
        size = len(request.yhat)
        self.picked = np.zeros((size, len(request.rules.data.booleans)), dtype=np.int8)
        self.decided = np.zeros(size, dtype=bool)

    def note(self, samples: Array, layout: Layout, weight: Array) -> None:
        """Remember which products have all the weight.

        Args:
            samples: of the batch.
            layout: of all of them.
            weight: of its products, (samples, products).
        """
        if self.request.rules.is_plain:
            return  # what holds at a point tells as much
        self.picked[samples], self.decided[samples] = 0, True
        count, at = self.picked.shape[1], 0
        for part in layout:
            for block in part.blocks:
                own = weight[:, at : at + len(block.products)]
                heavy = own.argmax(1) if own.shape[1] else np.zeros(len(samples), dtype=int)
                self.decided[samples] &= own.max(1, initial=0.0) > _WHOLE
                for k in np.unique(heavy).tolist():
                    there = samples[heavy == k]
                    for n in block.products[k].literals if own.shape[1] else ():
                        if abs(n) <= count:  # behind these stand values of whole numbers
                            self.picked[there, abs(n) - 1] = 1 if n > 0 else -1
                at += len(block.products)

    def judge(self, answer: Answer, samples: Array) -> None:
        """Say of points whether they are the answer: PROJECTED, or SATISFIED, or RELAXED.

        Args:
            answer: the points, with their bounds and what holds there; written into.
            samples: those that were solved.
        """
        paid = self.choose(answer, samples)
        held = answer.status[samples] == Status.PROJECTED
        exact = held & self._reached(answer, samples, paid)
        left = np.flatnonzero(held & ~exact & self.decided[samples])
        if len(left) and core.AVAILABLE:
            exact[left] = self._verified(answer, samples[left])
        answer.status[samples[held & ~exact]] = Status.RELAXED
        self.note_satisfied(answer, samples)

    def note_satisfied(self, answer: Answer, samples: Array) -> None:
        """Where nothing moved and nothing is paid, the prediction passes."""
        still = (answer.y[samples] == self.request.yhat[samples]).all(1)
        free = still & (self._costs(answer, samples) == 0.0)
        exact = answer.status[samples] == Status.PROJECTED
        answer.status[samples[free & exact]] = Status.SATISFIED

    def choose(self, answer: Answer, samples: Array) -> Array:
        """Choose the cheapest of what holds at points, and say what that costs, (samples,).

        Truth values that logic names stay as they are.
        """
        rules = self.request.rules
        holds = answer.assignment[samples] > 0
        active = self.instance.active[samples]
        chosen = cheapest(rules, active, holds, self.instance.price[samples])
        if not rules.is_plain:
            tied = [k for k, boolean in enumerate(rules.data.booleans) if boolean.tied]
            together = answer.status[samples] != Status.RELAXED
            chosen[np.ix_(together, tied)] = holds[np.ix_(together, tied)]
        answer.assignment[samples] = chosen
        return self._costs(answer, samples)

    def _costs(self, answer: Answer, samples: Array) -> Array:
        priced = np.array(self.request.rules.data.priced, dtype=np.int64)
        chosen = answer.assignment[np.ix_(samples, priced)] == 1
        return np.asarray((self.instance.price[samples] * chosen).sum(1))

    def _reached(self, answer: Answer, samples: Array, paid: Array) -> Array:
        """Whether distance and price are no more than the bound."""
        settings = self.request.settings
        away = np.abs(answer.y[samples] - self.request.yhat[samples]) * settings.weights
        cost = (away if settings.norm == "l1" else away**2).sum(1) + paid
        value = answer.value[samples]
        return np.asarray(cost <= value + _ABOVE * np.maximum(1.0, np.abs(value)))

    def _verified(self, answer: Answer, samples: Array) -> Array:
        """Whether points are in the products that the relaxation chose, at their price."""
        data = self.request.rules.data
        before = answer.assignment[samples]
        answer.assignment[samples] = self.picked[samples]
        good = self._reached(answer, samples, self._costs(answer, samples))
        rows = [_rows(data, line) for line in self.picked[samples]]
        request = self.request.take(samples)._replace(yhat=answer.y[samples])
        for own, found in project_onto_rows(request, rows):
            near = np.abs(found.y - request.yhat[own]) <= TOLERANCES.satisfied * np.maximum(
                1.0, np.abs(request.yhat[own])
            )
            good[own] &= found.answered & near.all(1)
            there = samples[own[good[own]]]
            answer.auxiliaries[there] = found.auxiliaries[good[own]]
        answer.assignment[samples[~good]] = before[~good]
        return good


def _rows(data: RuleData, truth: Array) -> tuple[int, ...]:
    """Rows that truth values, 1, -1 or 0 for neither, enforce."""
    literals = [value * (k + 1) for k, value in enumerate(truth.tolist()) if value]
    return tuple(sorted(set(enforced(data.booleans, literals))))
