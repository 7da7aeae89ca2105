"""What is right, found without any solver of gdpnet.

The rules at one x become products: sets of rows, one for each way to choose disjuncts such that
nested Disjunctions and propositions hold. The nearest point is the nearest one of all products, by
a linear program in rational numbers for each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import torch

import gdpnet
from gdpnet.ir.data import RuleData
from tests.fuzz.rational import INF, ZERO, Row, Whole, minimum

Number = Fraction | float
Relaxation = Callable[[int], Fraction]
"""By how much a row is relaxed (tightened where negative), by its index."""

_PRODUCTS = 300


class TooManyProductsError(Exception):
    """More products than can be enumerated: the generator has to draw less."""


@dataclass(frozen=True)
class Problem:
    """The rules at one x.

    Attributes:
        a: coefficients, rows x columns.
        b: right sides.
        equality: which rows are equalities.
        lower: of the columns.
        upper: of the columns.
        integer: which columns are whole numbers.
        d: outputs; they are the first columns.
        products: rows of each product, those that always hold included.
        costs: prices of what is chosen in each of them.
        owner: the rule that a row belongs to, for rows that are no global ones.
    """

    a: np.ndarray
    b: np.ndarray
    equality: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    integer: np.ndarray
    d: int
    products: tuple[tuple[int, ...], ...]
    owner: Mapping[int, int]
    costs: tuple[Fraction, ...]

    @staticmethod
    def of(rules: gdpnet.RuleModel, x: torch.Tensor | None) -> Problem:
        data = rules.data
        inputs = torch.zeros(1, 0, dtype=torch.float64) if x is None else x.double()[None]
        at = rules.evaluate(inputs)
        a = at.rows.shared.dense.clone()
        a[at.rows.varying] = at.rows.coefficients[0]
        active = at.clauses[0].tolist()
        owner = {
            row: r
            for r, rule in enumerate(data.rules)
            if active[rule.clause]
            for row in data.rows_below(rule.clause)
        }
        prices = dict(zip(data.priced, at.prices[0].tolist(), strict=True))
        products = _least_products(_products(data, active, prices))
        return Problem(
            a=a.numpy(),
            b=at.rows.bound[0].numpy().copy(),
            equality=at.rows.equality.numpy(),
            lower=np.array([c.lower for c in data.columns]),
            upper=np.array([c.upper for c in data.columns]),
            integer=np.array([c.integer for c in data.columns]),
            d=data.outputs,
            products=tuple(tuple(sorted(rows)) for rows, _ in products),
            owner=owner,
            costs=tuple(cost for _, cost in products),
        )

    @cached_property
    def rows(self) -> list[tuple[dict[int, Fraction], Fraction]]:
        """Rows as rational numbers."""
        return [
            ({j: Fraction(float(a[j])) for j in np.flatnonzero(a).tolist()}, Fraction(float(b)))
            for a, b in zip(self.a, self.b, strict=True)
        ]

    @cached_property
    def relative(self) -> list[Fraction]:
        """`max(|b|, max|a|)` of each row."""
        return [max([abs(b), *map(abs, a.values())]) for a, b in self.rows]

    @cached_property
    def documented(self) -> list[Fraction]:
        """`max(1, |b|, max|a|)` of each row: what a tolerance is relative to."""
        return [max(Fraction(1), scale) for scale in self.relative]

    def rounded(self, row: int, bound: Fraction) -> Fraction:
        """The least right side that allows the same whole numbers, where a row is over those."""
        a, _ = self.rows[row]
        if not all(self.integer[j] and c.denominator == 1 for j, c in a.items()):
            return bound
        divisor = math.gcd(*(c.numerator for c in a.values()))
        return bound if divisor == 0 else Fraction(bound // divisor * divisor)

    def excess(self, row: int, z: Sequence[Fraction]) -> Fraction:
        """By how much a row is broken; negative where there is room."""
        a, b = self.rows[row]
        over = sum((c * z[j] for j, c in a.items()), -b)
        return abs(over) if self.equality[row] else over


Product = tuple[frozenset[int], Fraction]
"""Rows, and what is paid for them."""


def _products(
    data: RuleData, active: Sequence[bool], prices: Mapping[int, float]
) -> Iterator[Product]:
    """Sets of rows of all ways to satisfy the clauses, and what each costs.

    A boolean is decided only if a clause needs it, or if both of its values have rows; the others
    are false, which says nothing. So a clause whose guard is undecided is not required.
    """
    clauses = [clause for clause, on in zip(data.clauses, active, strict=True) if on]
    forced = [k for k, boolean in enumerate(data.booleans) if boolean.false_rows]
    found: set[Product] = set()
    seen: set[frozenset[int]] = set()
    stack: list[frozenset[int]] = [frozenset()]
    while stack:
        literals = stack.pop()
        if literals in seen:
            continue
        seen.add(literals)
        if len(seen) > 40 * _PRODUCTS or len(found) > _PRODUCTS:
            raise TooManyProductsError
        open_clause = next(
            (
                clause.literals
                for clause in clauses
                if (clause.guard < 0 or clause.guard + 1 in literals)
                and not literals.intersection(clause.literals)
            ),
            None,
        )
        if open_clause is None:
            undecided = [k for k in forced if not literals & {k + 1, -k - 1}]
            if undecided:
                open_clause = (undecided[0] + 1, -undecided[0] - 1)
        if open_clause is not None:
            stack += [literals | {k} for k in open_clause if -k not in literals]
            continue
        rows = set(data.global_rows)
        for literal in literals:
            boolean = data.booleans[abs(literal) - 1]
            rows.update(boolean.true_rows if literal > 0 else boolean.false_rows)
        paid = (Fraction(prices.get(literal - 1, 0.0)) for literal in literals if literal > 0)
        product = frozenset(rows), sum(paid, ZERO)
        if product not in found:
            found.add(product)
            yield product


def _least_products(products: Iterator[Product]) -> list[Product]:
    """Those that hold no other one that is as cheap: more rows allow nothing more."""
    kept: list[Product] = []
    for rows, cost in sorted(products, key=lambda product: (len(product[0]), product[1])):
        if not any(other <= rows and less <= cost for other, less in kept):
            kept.append((rows, cost))
    return kept


class Sample:
    """One prediction under rules at one x.

    Args:
        problem: the rules.
        yhat: prediction, `d`.
        weights: of the outputs, `d`.
    """

    def __init__(self, problem: Problem, yhat: Sequence[float], weights: Sequence[float]) -> None:
        self.problem = problem
        self.yhat = [Fraction(float(v)) for v in yhat]
        self.weights = [Fraction(float(w)) for w in weights]
        clipped = np.clip(np.array(yhat, dtype=float), *self._box[:, : problem.d])
        self.start = [
            *(Fraction(float(v)) for v in clipped),
            *(Fraction(float(v)) for v in np.clip(0.0, *self._box[:, problem.d :])),
        ]
        self.outside = self.distance_of(self.start)
        self._known: dict[object, Number] = {}

    @property
    def _box(self) -> np.ndarray:
        return np.stack([self.problem.lower, self.problem.upper])

    def distance_of(self, y: Sequence[Fraction]) -> Fraction:
        """Weighted l1 distance to the prediction."""
        terms = zip(self.weights, y, self.yhat, strict=False)  # y may have auxiliaries behind it
        return sum((w * abs(v - p) for w, v, p in terms), ZERO)

    @cached_property
    def nearest(self) -> Number:
        """Least distance, and prices, of all products, inf where all are empty."""
        return self.relaxed(lambda row: ZERO, "nearest")

    def relaxed(self, by: Relaxation, key: object) -> Number:
        """The same with relaxed rows.

        An equality that is to be tightened cannot be: its product counts as empty.

        Args:
            by: how much rows are relaxed.
            key: tells relaxations apart.
        """
        if key not in self._known:
            best: Number = INF
            for product, cost in zip(self.problem.products, self.problem.costs, strict=True):
                found = self._product_minimum(product, by, best - cost)
                best = best if found is None else min(best, found + cost)
            self._known[key] = best
        return self._known[key]

    def _product_minimum(
        self, product: Sequence[int], relaxed: Relaxation, best: Number
    ) -> Number | None:
        p = self.problem
        rows: list[Row] = []
        for i in product:
            by = relaxed(i)
            if by < 0 and p.equality[i]:
                return None
            a, b = p.rows[i]
            at_start = self.start_excess(i) + b
            rows.append((_split(a), p.rounded(i, b + by) - at_start))
            if p.equality[i]:
                opposite = {j: -c for j, c in a.items()}
                rows.append((_split(opposite), p.rounded(i, by - b) + at_start))
        cost = [w for w in self.weights for _ in range(2)]
        cost += [ZERO] * (2 * (len(p.lower) - p.d))
        found = minimum(cost, rows, self._bounds, self._whole, best - self.outside)
        return None if found is None else found[0] + self.outside

    def start_excess(self, row: int) -> Fraction:
        """`a start - b` of a row, with its sign."""
        a, b = self.problem.rows[row]
        return sum((c * self.start[j] for j, c in a.items()), -b)

    @cached_property
    def _bounds(self) -> list[Row]:
        return bounds_of(self.problem, self.start, range(len(self.start)))

    @cached_property
    def _whole(self) -> list[Whole]:
        one = Fraction(1)
        return [
            Whole({2 * j: one, 2 * j + 1: -one}, self.start[j])
            for j in np.flatnonzero(self.problem.integer).tolist()
        ]

    def holds(self, y: Sequence[Fraction], allowed: Relaxation) -> bool:
        """Whether y, with some auxiliaries, breaks no row of some product by more than allowed."""
        p = self.problem
        if len(p.lower) == p.d:
            good = {i for i in range(len(p.b)) if p.excess(i, y) <= allowed(i)}
            return any(good.issuperset(product) for product in p.products)
        fixed = [*y, *self.start[p.d :]]
        auxiliaries = range(p.d, len(p.lower))
        bounds = bounds_of(p, fixed, auxiliaries)
        whole = [form for form in self._whole if min(form.coefficients) >= 2 * p.d]
        for product in p.products:
            rows: list[Row] = []
            for i in product:
                a, b = p.rows[i]
                left = {j: c for j, c in a.items() if j >= p.d}
                room = b - sum((c * fixed[j] for j, c in a.items()), ZERO)
                rows.append((_split(left), room + allowed(i)))
                if p.equality[i]:
                    rows.append((_split({j: -c for j, c in left.items()}), allowed(i) - room))
            if minimum([ZERO] * (2 * len(fixed)), rows, bounds, whole) is not None:
                return True
        return False


def _split(a: Mapping[int, Fraction]) -> dict[int, Fraction]:
    """A row over columns as a row over what is added to them and what is taken away."""
    return {2 * j + side: c if side == 0 else -c for j, c in a.items() for side in (0, 1)}


def bounds_of(problem: Problem, start: Sequence[Fraction], columns: Sequence[int]) -> list[Row]:
    """Bounds of columns as rows over what is added to `start` and taken away."""
    rows: list[Row] = []
    for j in columns:
        if np.isfinite(problem.upper[j]):
            rows.append((_split({j: Fraction(1)}), Fraction(float(problem.upper[j])) - start[j]))
        if np.isfinite(problem.lower[j]):
            rows.append((_split({j: Fraction(-1)}), start[j] - Fraction(float(problem.lower[j]))))
    return rows


# ---- rules that contradict each other ----------------------------------------------------------


def least_broken(sample: Sample) -> Number:
    """Least sum over rules of their scaled violation, bounds and globals kept; inf if they alone
    have no solution. In rational numbers.
    """
    best: Number = INF
    for product in sample.problem.products:
        found = _broken_minimum(sample, product, best)
        best = best if found is None else found
    return best


def nearest_broken(sample: Sample, violation: Fraction) -> Number:
    """Least distance of points whose violations add up to no more than that."""
    best: Number = INF
    for product in sample.problem.products:
        found = _broken_minimum(sample, product, best, violation)
        best = best if found is None else found
    return best


def _broken_minimum(
    sample: Sample, product: Sequence[int], best: Number, within: Fraction | None = None
) -> Number | None:
    p = sample.problem
    n = len(p.lower)
    owners = sorted({p.owner[i] for i in product if i in p.owner})
    slack = {r: 2 * n + k for k, r in enumerate(owners)}
    rows: list[Row] = []
    for i in product:
        a, _ = p.rows[i]
        room = -sample.start_excess(i)
        for sign in (1, -1) if p.equality[i] else (1,):
            left = _split({j: sign * c for j, c in a.items()})
            if i in p.owner:
                left[slack[p.owner[i]]] = -p.documented[i]
            rows.append((left, sign * room))
    none, one = [ZERO] * len(owners), [Fraction(1)] * len(owners)
    if within is None:
        cost, offset = [*[ZERO] * (2 * n), *one], ZERO
    else:
        moving = [w for w in sample.weights for _ in range(2)]
        cost, offset = [*moving, *[ZERO] * (2 * (n - p.d)), *none], sample.outside
        rows.append((dict.fromkeys(slack.values(), Fraction(1)), within))
    found = minimum(cost, rows, sample._bounds, sample._whole, best - offset)
    return None if found is None else found[0] + offset


def broken_at(sample: Sample, y: Sequence[Fraction], hard: Relaxation) -> Number:
    """Sum of scaled violations at y, the least of all products; inf where a hard row is broken.

    For models without auxiliaries.
    """
    p = sample.problem
    best: Number = INF
    for product in p.products:
        total: dict[int, Fraction] = {}
        for i in product:
            over = p.excess(i, y)
            if i in p.owner:
                scaled = max(ZERO, over / p.documented[i])
                total[p.owner[i]] = max(total.get(p.owner[i], ZERO), scaled)
            elif over > hard(i):
                break
        else:
            best = min(best, sum(total.values(), ZERO))
    return best
