"""What a node of a certificate may assume, and what a leaf proves, in exact arithmetic.

The coefficients of the rules at x are floating-point numbers, which are rational numbers. All that
is computed with them here is exact, so that no rounding can make a false claim look proved.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
import torch

from gdpnet.ir.compressed import Compressed
from gdpnet.ir.data import Clause, RuleData
from gdpnet.ir.rules import Rules
from gdpnet.ir.semantics import enforced
from gdpnet.proof._tangents import tangent_row
from gdpnet.proof._tree import Touch
from gdpnet.solve.milp.sample import RulesAtSample

Number = Fraction | float
"""A rational number, or an infinity."""

MARGIN = Fraction(1, 10**9)
"""A ray proves that rows contradict each other if its value is more than this, relative to the sum
of its multipliers, each times the size `max(|b|, max|a|)` of its row."""

_NOTHING = Fraction(0)


class RationalInstance:
    """The projection of one prediction, as rational numbers.

    Args:
        rules: the rules.
        x: inputs, `1 x p`, float64.
        yhat: prediction, `d`.
        weights: of the outputs, `d`.
        norm: what is minimised: with "l1" the distance, with "l2" its square.
    """

    def __init__(
        self,
        rules: Rules,
        x: torch.Tensor,
        yhat: np.ndarray,
        weights: np.ndarray,
        norm: str = "l1",
    ) -> None:
        evaluated = rules.evaluate(x.detach().cpu())
        rules.refuse_unusable(evaluated)
        self.data: RuleData = rules.data
        self.norm = norm
        self.sample = RulesAtSample.of(rules, evaluated, 0)
        self.active: list[bool] = evaluated.clauses[0].tolist()
        self.yhat = [Fraction(v) for v in yhat.tolist()]
        self.weights = [Fraction(v) for v in weights.tolist()]
        self.rows = [
            [(j, Fraction(row[j])) for j in map(int, np.flatnonzero(row))]
            for row in self.sample.matrix
        ]
        self.bounds = [Fraction(v) for v in self.sample.bound.tolist()]
        self.equality: list[bool] = self.sample.equality.tolist()
        self.lower = [_exact(column.lower) for column in self.data.columns]
        self.upper = [_exact(column.upper) for column in self.data.columns]
        self.size = [Fraction(v) for v in self.sample.size.tolist()] if self.rows else []
        prices = zip(self.data.priced, evaluated.prices[0].tolist(), strict=True)
        self.prices = {boolean: Fraction(price) for boolean, price in prices}
        self.curved = frozenset(self.data.curved)
        self.tangents: list[Touch] = []

    def touch(self, tangents: Iterable[Touch]) -> None:
        """Further rows: tangents; raises `ValueError` where one is none.

        The size of a tangent is at least that of its row: what breaks the row by a little breaks
        the tangent by no more.
        """
        for tangent in tangents:
            terms, bound, unit = self.tangent(tangent)
            self.tangents.append(tangent)
            self.rows.append(terms)
            self.bounds.append(bound)
            self.equality.append(False)
            size = unit * self.size[tangent.row]
            self.size.append(max(size, abs(bound), *(abs(a) for _, a in terms)))

    def tangent(self, tangent: Touch) -> tuple[list[tuple[int, Fraction]], Fraction, Fraction]:
        """See `tangent_row`."""
        given = len(self.data.rows)
        return tangent_row(self.data, self.rows[:given], self.bounds[:given], tangent)

    def touched(self) -> RulesAtSample:
        """`sample` with the tangents as further rows, rounded: for solvers, not for the check."""
        if not self.tangents:
            return self.sample
        first = len(self.data.rows)
        matrix = np.zeros((len(self.tangents), len(self.lower)))
        for line, terms in zip(matrix, self.rows[first:], strict=True):
            for j, a in terms:
                line[j] = float(a)
        return replace(
            self.sample,
            rows=self.sample.rows.above(Compressed.of(matrix)),
            bound=np.concatenate([self.sample.bound, [float(v) for v in self.bounds[first:]]]),
            equality=np.array(self.equality),
        )

    def forget_tangents(self) -> None:
        """The rows of the rules alone."""
        given = len(self.data.rows)
        for rows in (self.rows, self.bounds, self.equality, self.size):
            del rows[given:]
        self.tangents.clear()

    def linear(self, path: Branch) -> frozenset[int]:
        """Linear rows that hold on a path as they are written, tangents included."""
        if not self.curved:
            return path.upper
        given = len(self.data.rows)
        touched = (given + k for k, t in enumerate(self.tangents) if t.row in path.upper)
        return (path.upper - self.curved).union(touched)

    @cached_property
    def clauses(self) -> dict[int, Clause]:
        """The clauses that apply, by index."""
        return {c: clause for c, clause in enumerate(self.data.clauses) if self.active[c]}

    @cached_property
    def named(self) -> set[int]:
        """Booleans that stand in a clause that applies: only those have a value."""
        literals = {abs(k) - 1 for clause in self.clauses.values() for k in clause.literals}
        return literals | {clause.guard for clause in self.clauses.values() if clause.guard >= 0}

    @cached_property
    def opposite_row(self) -> dict[int, int]:
        """Row of each disjunct that is nothing but one inequality.

        Where that row holds, the disjunct can be taken as true: nothing else follows from it. So
        what remains when it was dealt with lies on the other side of the row, its edge included.
        """
        guards = {clause.guard for clause in self.clauses.values()}
        denied = {-k - 1 for clause in self.clauses.values() for k in clause.literals if k < 0}
        return {
            k: boolean.true_rows[0]
            for k, boolean in enumerate(self.data.booleans)
            if len(boolean.true_rows) == 1
            and not (boolean.tied or boolean.false_rows or k in guards or k in denied)
            and not self.equality[boolean.true_rows[0]]
            and boolean.true_rows[0] not in self.curved  # the other side is not convex
        }

    @cached_property
    def box_cost(self) -> list[Fraction]:
        """What the bounds alone cost each output."""
        return [self.least(j, _NOTHING, w, ROOT)[1] for j, w in enumerate(self.weights)]

    @cached_property
    def is_empty(self) -> bool:
        """Whether the bounds of a column contradict each other."""
        return any(low > high for low, high in zip(self.lower, self.upper, strict=True))

    @cached_property
    def root(self) -> Branch:
        """Where every tree starts: the global rows."""
        return Branch(upper=frozenset(self.data.global_rows))

    @property
    def priced(self) -> bool:
        """Whether rules or disjuncts have prices."""
        return any(clause.breaking >= 0 for clause in self.data.clauses) or bool(self.data.priced)

    def price(self, literal: int) -> Fraction:
        """What choosing a literal costs."""
        return self.prices.get(literal - 1, _NOTHING)

    def paid(self, path: Branch) -> Fraction:
        """What is paid on a path, at the least.

        The price of what is true, and for a rule that is required and of which nothing is true yet
        the least of its prices; a boolean is a literal of one rule only.
        """
        if not self.prices:
            return _NOTHING
        total = sum((self.price(k) for k in path.literals), _NOTHING)
        for clause in self.clauses.values():
            if clause.logic or not path.requires(clause):
                continue
            if path.literals.isdisjoint(clause.literals):
                total += min(map(self.price, path.open_literals(clause)), default=_NOTHING)
        return total

    def told(self, value: Number) -> float:
        """A value or a bound as it is told: the distance, or with prices the value itself."""
        return distance_of(value, "l1" if self.priced else self.norm)

    def away(self, y: Iterable[float]) -> Fraction:
        """How far outputs are: their weighted l1 distance, or the squared l2 one."""
        moves = [w * (Fraction(v) - h) for w, v, h in zip(self.weights, y, self.yhat, strict=True)]
        if self.norm == "l2":
            return sum((move * move for move in moves), _NOTHING)
        return sum((abs(move) for move in moves), _NOTHING)

    def slack(self, y: Iterable[float], tol: float, price: Fraction = _NOTHING) -> Fraction:
        """By how much a bound may fall short of the value of y, with the price that it pays.

        What `tol` relative to the value makes of it or, if that is more, what it costs to move
        one output by `tol`. Only outputs that differ from the prediction count, and no more than
        they differ: the weight of an output that stays says nothing about the others.
        """
        outputs, share = list(y), Fraction(tol)
        moves = [abs(Fraction(v) - h) for v, h in zip(outputs, self.yhat, strict=True)]
        steps = [(w, move, min(move, share)) for w, move in zip(self.weights, moves, strict=True)]
        if self.norm == "l2":
            saved = [w * w * step * (2 * move - step) for w, move, step in steps]
            part = min(share, Fraction(1))
            return max(part * (2 - part) * (self.away(outputs) + price), *saved)
        return max(share * (self.away(outputs) + price), *(w * step for w, _, step in steps))

    def box(self, column: int, path: Branch) -> tuple[Number, Number]:
        """Bounds of a column on a path."""
        return path.boxes.get(column, (self.lower[column], self.upper[column]))

    def least(
        self, column: int, slope: Fraction, weight: Fraction, path: Branch
    ) -> tuple[Number, Fraction]:
        """Least `weight |z - yhat| + slope z` over a column's bounds; l2: `weight^2 (z - yhat)^2`.

        Returns:
            What is infinite (-inf where there is no least value, inf where there is no z, else 0)
            and the finite value.
        """
        low, high = self.box(column, path)
        if low > high:
            return float("inf"), _NOTHING
        if weight and self.norm == "l2":
            at: Number = min(max(self.yhat[column] - slope / (2 * weight * weight), low), high)
        elif slope > weight:
            at = low
        elif slope < -weight:
            at = high
        elif weight:
            at = min(max(self.yhat[column], low), high)
        else:
            return 0.0, _NOTHING  # and slope is 0
        if isinstance(at, float):
            return float("-inf"), _NOTHING
        cost = _NOTHING
        if weight:
            move = weight * abs(at - self.yhat[column])
            cost = move * move if self.norm == "l2" else move
        return 0.0, cost + slope * at

    def bound(
        self, path: Branch, multipliers: Iterable[tuple[int, Fraction]], costs: bool = True
    ) -> Number:
        """Lower bound on what is minimised on a path, by weak duality, with what is paid there.

        The least of `sum w |z - yhat| + sum multiplier (a z - b)` over the bounds on the path, for
        l2 of `sum w^2 (z - yhat)^2 + ...`: column by column, in closed form. No z that satisfies
        the rows makes the second sum positive.

        Args:
            path: what is assumed.
            multipliers: row and multiplier; negative for `a z >= b`.
            costs: whether the first sum counts; without it a positive value proves that nothing
                satisfies the rows.
        """
        if self.is_empty:
            return float("inf")
        slopes: dict[int, Fraction] = {}
        total = _NOTHING
        for row, multiplier in multipliers:
            total -= multiplier * self.bounds[row]
            for j, a in self.rows[row]:
                slopes[j] = slopes.get(j, _NOTHING) + multiplier * a
        infinite: Number = 0.0
        for j in {*slopes, *path.boxes}:
            slope = slopes.get(j, _NOTHING)
            weight = self.weights[j] if costs and j < len(self.weights) else _NOTHING
            endless, value = self.least(j, slope, weight, path)
            if endless == float("inf"):
                return endless
            infinite = min(infinite, endless)
            total += value
        if costs:
            touched = slopes.keys() | path.boxes.keys()
            total += sum((v for j, v in enumerate(self.box_cost) if j not in touched), _NOTHING)
            total += self.paid(path)
        return infinite if infinite else total

    def contradicts(self, path: Branch, multipliers: list[tuple[int, Fraction]]) -> bool:
        """Whether multipliers prove that nothing satisfies the rows on a path."""
        size = sum((abs(v) * self.size[row] for row, v in multipliers), _NOTHING)
        return self.bound(path, multipliers, costs=False) > MARGIN * size

    def enforced(self, path: Branch, multipliers: Iterable[tuple[int, Fraction]]) -> bool:
        """Whether all multipliers belong to sides of rows that hold on a path."""
        upper = self.linear(path)
        return all(
            (row in upper and (value > 0 or self.equality[row]))
            or (value < 0 and row in path.lower)
            for row, value in multipliers
            if value
        )


@dataclass(frozen=True)
class Branch:
    """What is assumed at a node.

    Attributes:
        literals: literals that are true.
        upper: rows that hold as they are written.
        lower: inequalities whose opposite `a z >= b` holds.
        boxes: bounds of the columns that were split.
    """

    literals: frozenset[int] = frozenset()
    upper: frozenset[int] = frozenset()
    lower: frozenset[int] = frozenset()
    boxes: dict[int, tuple[Number, Number]] = field(default_factory=dict)

    def with_literal(self, instance: RationalInstance, literal: int) -> Branch:
        """Further, with a literal true."""
        rows = enforced(instance.data.booleans, [literal])
        upper = self.upper.union(rows) if rows else self.upper
        return replace(self, literals=self.literals | {literal}, upper=upper)

    def children(self, instance: RationalInstance, literals: Sequence[int]) -> list[Branch]:
        """Further, one of some literals being true, for each of them, in this order.

        A child may assume that those before its own do not hold, unless they cost more than its
        own: at a point where both hold, the cheaper one is to be chosen. Where logic makes its own
        true it is paid for whatever is chosen beside it.
        """
        found = []
        for place, literal in enumerate(literals):
            path = self
            tied = instance.data.booleans[abs(literal) - 1].tied
            spared = _NOTHING if tied else instance.price(literal)
            for before in literals[:place]:
                path = path._after(instance, before, spared)
            found.append(path.with_literal(instance, literal))
        return found

    def _after(self, instance: RationalInstance, literal: int, spared: Fraction) -> Branch:
        """Further, when a literal has been dealt with; choosing it would spare a price."""
        if instance.data.booleans[abs(literal) - 1].tied:
            return self.with_literal(instance, -literal)
        row = instance.opposite_row.get(literal - 1)
        if row is None or instance.price(literal) > spared:
            return self
        return replace(self, lower=self.lower | {row})

    def split(self, instance: RationalInstance, column: int, value: int) -> tuple[Branch, Branch]:
        """Further, a whole number at most `value`, and at least `value + 1`."""
        low, high = instance.box(column, self)
        below = (low, min(high, Fraction(value)))
        above = (max(low, Fraction(value + 1)), high)
        return (
            replace(self, boxes={**self.boxes, column: below}),
            replace(self, boxes={**self.boxes, column: above}),
        )

    def requires(self, clause: Clause) -> bool:
        """Whether a clause that applies has to hold here."""
        return clause.guard < 0 or clause.guard + 1 in self.literals

    def open_literals(self, clause: Clause) -> list[int]:
        """Literals that are not known to be false."""
        return [k for k in dict.fromkeys(clause.literals) if -k not in self.literals]


ROOT = Branch()


def distance_of(value: Number, norm: str) -> float:
    """The distance that belongs to a value or a bound; never negative, as distances are not."""
    try:
        found = max(0.0, float(value))
    except OverflowError:
        found = sys.float_info.max if value > 0 else 0.0
    return math.sqrt(found) if norm == "l2" else found


def _exact(value: float) -> Number:
    return Fraction(value) if np.isfinite(value) else float(value)
