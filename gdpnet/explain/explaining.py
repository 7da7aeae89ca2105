"""What moved a prediction: the projection, told by rule."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from gdpnet.checks import weights_of
from gdpnet.explain.explanation import ActiveRule, Explanation, Move, TightRow
from gdpnet.ir.atoms import format_number
from gdpnet.ir.batch import Batch
from gdpnet.ir.prices import unbroken
from gdpnet.ir.rules import Rules
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.projection import Projection, contradiction, project
from gdpnet.rules import describe
from gdpnet.solve import existence
from gdpnet.solve.status import Status

# Relative to max(1, |bound|): what counts as being at a bound, or at a row.
_AT = 1e-7


def explain(rules: Rules, yhat: Any, x: Any, weights: Any, norm: str) -> list[Explanation]:
    """One explanation for each sample of the flattened batch."""
    p = project(rules, yhat, x, weights=weights, norm=norm)
    told = _Teller(rules, p, weights_of(weights, rules)[0])
    told.hold(weights)
    return [told.sample(i) for i in range(len(told.y))]


class _Teller:
    """A projected batch, and what is needed to tell of its samples."""

    def __init__(self, rules: Rules, p: Projection, weights: np.ndarray) -> None:
        self.rules = rules
        self.weights = weights
        self.norm = p.request.settings.norm
        answer = p.answer
        batch = Batch.of_arrays(p.request.x, p.request.yhat)
        self.x, self.yhat = batch.x, p.request.yhat
        self.y = answer.y  # before it was rounded to the caller's type
        self.columns = np.nan_to_num(answer.columns())  # auxiliaries where they are known
        self.distance = p.distance.reshape(-1).tolist()
        self.status = [Status(code) for code in answer.status.tolist()]
        self.tolerance = TOLERANCES.of(p.origin.dtype)
        self.violation = existence.measure(rules, batch)[0].tolist()
        shape = len(self.y), len(rules.names)
        self.disjunct = p.disjunct.reshape(shape).cpu().numpy()
        self.bought = p.broken.reshape(shape).cpu().numpy()
        self.value, self.price = (v.double().reshape(-1).cpu().numpy() for v in (p.value, p.price))
        self.holding: dict[tuple[int, int], tuple[float, float]] = {}
        self.active = answer.active
        self.values = rules.evaluate(self.x).rows
        # A vertex of the exact engine comes with its multipliers, other answers do not.
        self.known = (answer.status == Status.PROJECTED) & answer.finished_by("exact")
        self.tight = [
            each.reshape(len(self.y), each.shape[-1]).cpu().numpy() for each in p.info.tight
        ]
        self.rule_of = {
            row: r
            for r, rule in enumerate(rules.data.rules)
            for row in rules.data.rows_below(rule.clause)
        }

    def hold(self, weights: Any) -> None:
        """Find what holding each broken rule would have cost: projected again, it being hard."""
        prices = self.rules.evaluate(self.x).prices
        for r in np.flatnonzero(self.bought.any(0)).tolist():
            samples = np.flatnonzero(self.bought[:, r])
            hard = Rules(unbroken(self.rules.data, [r]))
            held = project(
                hard, self.yhat[samples], self.x[samples], weights=weights, norm=self.norm
            )
            breaking = self.rules.data.clauses[self.rules.data.rules[r].clause].breaking
            for i, value in zip(samples.tolist(), held.value.tolist(), strict=True):
                price = 0.0
                if breaking in self.rules.data.priced:
                    price = float(prices[i, self.rules.data.priced.index(breaking)])
                self.holding[i, r] = value - (float(self.value[i]) - price), price

    def sample(self, i: int) -> Explanation:
        status = self.status[i]
        rows = list(self._rows(i))
        conflict: tuple[str, ...] = ()
        if status is Status.CONFLICT:
            conflict = tuple(contradiction.explain_all(self.rules, self.x[i : i + 1])[0])
        always = [row for k, row in rows if k not in self.rule_of and row.rate != 0.0]
        return Explanation(
            status=status.name,
            message=status.message,
            distance=self.distance[i],
            price=float(self.price[i]),
            y=tuple(self.y[i].tolist()),
            moved=self._moves(i),
            rules=tuple(
                self._rule(i, r, [row for k, row in rows if self.rule_of.get(k) == r])
                for r in np.flatnonzero(self.active[i]).tolist()
            ),
            always=(*always, *self._bounds(i, rows)),
            conflict=conflict,
        )

    def _moves(self, i: int) -> tuple[Move, ...]:
        pairs = zip(self.rules.output_names, self.yhat[i].tolist(), self.y[i].tolist(), strict=True)
        moves = [Move(name, before, after) for name, before, after in pairs if before != after]
        return tuple(sorted(moves, key=lambda move: -abs(move.after - move.before)))

    def _rule(self, i: int, r: int, tight: list[TightRow]) -> ActiveRule:
        data = self.rules.data
        rule = data.rules[r]
        position = int(self.disjunct[i, r])
        name = None
        if position >= 0:
            literal = data.clauses[rule.clause].literals[rule.positions.index(position)]
            name = data.booleans[literal - 1].name
        violation = self.violation[i][r]
        holding, price = self.holding.get((i, r), (None, None))
        broken = violation > self.tolerance
        return ActiveRule(rule.name, violation, broken, name, tuple(tight), price, holding)

    def _multipliers(self, i: int) -> Iterator[tuple[int, float]]:
        if self.known[i]:
            rows, rates = self.tight
            yield from zip(rows[i][rows[i] >= 0].tolist(), rates[i].tolist(), strict=False)

    def _rows(self, i: int) -> Iterator[tuple[int, TightRow]]:
        """Tight rows, by their index."""
        data = self.rules.data
        for row, rate in self._multipliers(i):
            a, b = self._row(i, row)
            outputs, auxiliaries = a[: data.outputs], a[data.outputs :]
            excess = math.nan
            if not auxiliaries.any():
                excess = float(outputs @ self.yhat[i] - b)
                if abs(outputs @ self.y[i] - b) > _AT * max(1.0, abs(b), np.abs(a).max()):
                    continue  # tight before a whole number was reached
            text = describe.row_text(data, data.rows[row])
            yield row, TightRow(data.rows[row].name, text, rate, excess)

    def _row(self, i: int, row: int) -> tuple[np.ndarray, float]:
        """Coefficients and right side; of a convex row those of its tangent at y."""
        values = self.values
        if self.rules.data.rows[row].curves:
            return self._tangent(i, row)
        place = (values.varying == row).nonzero().flatten().tolist()
        if place:
            a = values.coefficients[i, place[0]]
        else:
            a = values.shared.of_rows(torch.tensor([row]))[0]
        return a.cpu().numpy(), float(values.bound[i, row])

    def _tangent(self, i: int, row: int) -> tuple[np.ndarray, float]:
        z = torch.from_numpy(self.columns[i : i + 1]).requires_grad_()
        excess = (self.rules.evaluate(self.x[i : i + 1]).rows.excess(z))[0, row]
        (slope,) = torch.autograd.grad(excess, z)
        return slope[0].numpy(), float((slope @ z.detach().T - excess).detach())

    def _bounds(self, i: int, rows: list[tuple[int, TightRow]]) -> Iterator[TightRow]:
        """Bounds and whole numbers that hold an output back.

        At an output that moved, the slope of the distance is balanced by the tight rows and by what
        bounds the output; what the rows leave of it is the bound's.
        """
        if not self.known[i]:
            return
        slope, least = self._slope(i)
        left = -slope
        for k, row in rows:
            left -= row.rate * self._row(i, k)[0][: len(slope)]
        for j in np.flatnonzero(np.abs(left) > least).tolist():
            column, after = self.rules.data.columns[j], float(self.y[i, j])
            excess, rate = float(self.yhat[i, j]) - after, float(left[j])
            name = f"bounds of {column.name}"
            if rate > 0.0 and _near(after, column.upper):
                text = f"{column.name} <= {format_number(column.upper)}"
                yield TightRow(name, text, rate, excess)
            elif rate < 0.0 and _near(after, column.lower):
                text = f"{column.name} >= {format_number(column.lower)}"
                yield TightRow(name, text, -rate, -excess)
            elif column.integer:
                text = f"{column.name} == {format_number(after)}"
                yield TightRow(f"{column.name} is whole", text, rate, excess)

    def _slope(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Slope of the distance in each output, and below what a rest of it is rounding."""
        moves = self.y[i] - self.yhat[i]
        if self.norm == "l1":  # an output that stays has a kink, which balances whatever is left
            return np.sign(moves) * self.weights, np.where(moves == 0, np.inf, _AT * self.weights)
        return self.weights**2 * moves / (self.distance[i] or 1.0), _AT * self.weights


def _near(value: float, bound: float) -> bool:
    return abs(value - bound) <= _AT * max(1.0, abs(bound))
