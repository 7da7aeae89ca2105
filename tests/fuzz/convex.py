"""Rules with convex rows, drawn so that they can be written twice: for Pyomo and for Clarabel.

A set is a list of pieces `slope z + shape(matrix z - at) <= bound` over the columns z, outputs and
auxiliaries. Nothing goes through the reader of gdpnet on its way to the judge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyomo.environ as pyo
import torch
from pyomo.gdp import Disjunction

import gdpnet

Array = np.ndarray
Rng = np.random.Generator

_LEAST = 1e-300
_REACH = 4.0  # of columns with bounds


@dataclass(frozen=True)
class Piece:
    """`slope z + weight shape(matrix z - at) <= bound`.

    Attributes:
        shape: `"linear"`, `"squares"`, `"norm"`, `"exp"`, `"log"` (minus the logarithm), or
            `"power"` (of a negative exponent or one between 0 and 1: of arguments from 0 on; minus
            the power between 0 and 1).
        slope: (n,).
        bound: right side.
        matrix: (k, n); one line but for squares and norms.
        at: (k,).
        exponent: of a power.
        weight: above 0.
    """

    shape: str
    slope: Array
    bound: float
    matrix: Array
    at: Array
    exponent: float = 1.0
    weight: float = 1.0

    @property
    def size(self) -> float:
        """What the documented tolerance is relative to."""
        return max(1.0, abs(self.bound), float(np.abs(self.slope).max(initial=0.0)))

    def relaxed(self, by: float) -> Piece:
        """Relaxed by as many times its size; tightened where negative."""
        return replace(self, bound=self.bound + by * self.size)

    def times(self, factor: float) -> Piece:
        """The same set, in other numbers."""
        return replace(
            self, slope=self.slope * factor, bound=self.bound * factor, weight=self.weight * factor
        )

    def excess(self, z: Array) -> float:
        """By how much it is broken; infinite outside of its domain."""
        return float(self.slope @ z) - self.bound + self._curve(self.matrix @ z - self.at)

    def _curve(self, t: Array) -> float:
        if self.shape == "linear":
            return 0.0
        if self.shape == "squares":
            return self.weight * float(t @ t)
        if self.shape == "norm":
            return self.weight * float(np.linalg.norm(t))
        (one,) = t.tolist()
        if self.shape == "exp":
            with np.errstate(over="ignore"):  # far outside of the set
                return self.weight * float(np.exp(one))
        even = self.shape == "power" and self.exponent > 0.0 and self.exponent % 2.0 == 0.0
        if not even:
            if one < -1e-9:
                return np.inf
            one = max(one, _LEAST)
        if self.shape == "log":
            return -self.weight * float(np.log(one))
        sign = -1.0 if 0.0 < self.exponent < 1.0 else 1.0
        return sign * self.weight * float(one**self.exponent)

    def written(self, columns: Sequence[Any]) -> Any:
        """As a Pyomo relation."""

        def affine(line: Array, shift: float) -> Any:
            terms = sum(float(a) * v for a, v in zip(line, columns, strict=True) if a != 0.0)
            return terms - shift

        inner = [affine(line, float(t)) for line, t in zip(self.matrix, self.at, strict=True)]
        linear = affine(self.slope, self.bound)
        if self.shape == "linear":
            return linear <= 0
        if self.shape == "squares":
            return linear + self.weight * sum(t**2 for t in inner) <= 0
        if self.shape == "norm":
            return linear + self.weight * pyo.sqrt(sum(t**2 for t in inner)) <= 0
        if self.shape == "exp":
            return linear + self.weight * pyo.exp(inner[0]) <= 0
        if self.shape == "log":
            return linear - self.weight * pyo.log(inner[0]) <= 0
        if 0.0 < self.exponent < 1.0:
            return linear - self.weight * inner[0] ** self.exponent <= 0
        return linear + self.weight * inner[0] ** self.exponent <= 0


@dataclass(frozen=True)
class ConvexCase:
    """Rules in both forms, and predictions.

    Attributes:
        rules: as gdpnet reads them.
        disjuncts: of each rule, lists of pieces.
        always: pieces that hold everywhere.
        lower: of the columns.
        upper: of the columns.
        whole: which columns are whole numbers.
        thin: whether a set without an interior is among them.
        yhat: `batch x d`.
        weights: of the outputs, (d,).
    """

    rules: gdpnet.RuleModel
    disjuncts: tuple[tuple[tuple[Piece, ...], ...], ...]
    always: tuple[Piece, ...]
    lower: Array
    upper: Array
    whole: Array
    thin: bool
    yhat: torch.Tensor
    weights: Array


class _Draw:
    """Random pieces around points."""

    def __init__(self, rng: Rng, d: int, n: int) -> None:
        self.rng, self.d, self.n = rng, d, n
        self.thin = self.unbounded = False

    def disjunct(self, point: Array, thin: float) -> tuple[Piece, ...]:
        if self.rng.random() < thin:
            self.thin = True
            return self._without_interior(point)
        count = 1 if self.rng.random() < 0.6 else 2
        return tuple(self.piece(point) for _ in range(count))

    def piece(self, point: Array) -> Piece:
        """A piece that holds at a point, with room."""
        draw: list[Callable[[Array], Piece]] = [
            self._squares,
            self._norm,
            self._function,
            self._function,
            self._linear,
        ]
        found = draw[int(self.rng.integers(len(draw)))](point)
        return found.times(float(10.0 ** self.rng.uniform(-2, 2)) if self._seldom() else 1.0)

    def _seldom(self) -> bool:
        return bool(self.rng.random() < 0.25)

    def _with_room(self, piece: Piece, point: Array) -> Piece:
        return replace(piece, bound=piece.excess(point) + float(self.rng.uniform(0.05, 1.0)))

    def _line(self) -> Array:
        line = self.rng.normal(size=self.n)
        line[self.rng.random(self.n) < 0.3] = 0.0
        if not line.any():
            line[int(self.rng.integers(self.n))] = 1.0
        return line / max(1.0, float(np.linalg.norm(line)))

    def _linear(self, point: Array) -> Piece:
        empty = np.zeros((0, self.n)), np.zeros(0)
        return self._with_room(Piece("linear", self._line(), 0.0, *empty), point)

    def _squares(self, point: Array) -> Piece:
        lines = int(self.rng.integers(1, self.n + 1))
        matrix = self.rng.normal(size=(lines, self.n)) / np.sqrt(self.n)
        at = matrix @ (point + 0.5 * self.rng.normal(size=self.n))
        slope = 0.5 * self._line() if self._seldom() else np.zeros(self.n)
        return self._with_room(Piece("squares", slope, 0.0, matrix, at), point)

    def _norm(self, point: Array) -> Piece:
        slope = 0.6 * self._line() if self.rng.random() < 0.5 else np.zeros(self.n)
        return self._with_room(
            replace(self._squares(point), shape="norm", slope=slope, bound=0.0), point
        )

    def _function(self, point: Array) -> Piece:
        shape, exponent, inside = [
            ("exp", 1.0, 0.0),
            ("log", 1.0, 1.5),
            ("power", 0.5, 1.5),
            ("power", 1.5, 1.0),
            ("power", -1.0, 1.5),
            ("power", 4.0, 0.0),
        ][int(self.rng.integers(6))]
        line = self._line()
        slope = 0.4 * self._line() if self.rng.random() < 0.8 else np.zeros(self.n)
        if self.unbounded:  # else a nearest point at the end of a domain need not exist
            slope[self.d :] = 0.0
        at = np.array([float(line @ point) - inside])
        if exponent < 0.0:  # bounds have to keep the base on one side of 0
            line, at = np.eye(self.n)[int(self.rng.integers(self.d))], np.array([-_REACH - 0.01])
        return self._with_room(Piece(shape, slope, 0.0, line[None], at, exponent), point)

    def _without_interior(self, point: Array) -> tuple[Piece, ...]:
        one, none = np.eye(self.n), np.zeros(self.n)
        which = int(self.rng.integers(3))
        if which == 0:
            shape = str(self.rng.choice(["squares", "norm"]))
            return (Piece(shape, none, 0.0, one, point),)
        away = self.rng.normal(size=self.n)
        away /= np.linalg.norm(away)
        if which == 1:  # balls that touch
            r, s = (float(v) for v in self.rng.uniform(0.4, 1.2, 2))
            return (
                Piece("squares", none, r**2, one, point - r * away),
                Piece("norm", none, s, one, point + s * away),
            )
        flat = Piece("squares", none, 0.0, away[None], np.array([float(away @ point)]))
        return flat, Piece("norm", none, 1.0, one, point)


def convex_case(rng: Rng, thin: float = 0.1) -> ConvexCase:
    """One or two rules over 1 to 5 outputs, with auxiliaries, whole numbers, large predictions."""
    d = int(rng.integers(1, 6))
    extra = int(rng.choice([0, 0, 0, 1, 2]))
    n = d + extra
    draw = _Draw(rng, d, n)
    lower, upper = np.full(n, -_REACH), np.full(n, _REACH)
    draw.unbounded = bool(extra) and bool(rng.random() < 0.4)
    if draw.unbounded:
        lower[d:], upper[d:] = -np.inf, np.inf
    whole = np.zeros(n, dtype=bool)
    if rng.random() < 0.15:
        whole[int(rng.integers(d))] = True
    points = rng.uniform(-2.5, 2.5, (3, n))
    points[:, whole] = np.rint(points[:, whole])
    disjuncts = tuple(
        tuple(draw.disjunct(point, thin) for point in points[: int(rng.integers(1, 4))])
        for _ in range(int(rng.integers(1, 3)))
    )
    always = [_ball(points)] if rng.random() < 0.3 else []
    for j in range(d, n):  # an auxiliary that is at least a square, and costs
        if rng.random() < 0.5:
            slope, line = np.zeros(n), np.zeros(n)
            slope[j], line[int(rng.integers(d))] = -1.0, 1.0
            highest = float(max(points[:, j].max(), (points @ line).max() ** 2)) + 0.1
            always.append(Piece("squares", slope, highest, line[None], np.zeros(1)))
    size = 3.0 if rng.random() < 0.85 else float(10.0 ** rng.uniform(1, 12))
    yhat = torch.from_numpy(rng.normal(size=(4, d)) * size)
    if rng.random() < 0.3:
        yhat[:2] = torch.round(yhat[:2])
    weights = 10.0 ** rng.uniform(-1, 1, d) if rng.random() < 0.3 else np.ones(d)
    m = pyo.ConcreteModel()
    m.z = pyo.Var(range(n), domain=lambda _, j: pyo.Integers if whole[j] else pyo.Reals)
    for j in range(n):
        m.z[j].setlb(lower[j] if np.isfinite(lower[j]) else None)
        m.z[j].setub(upper[j] if np.isfinite(upper[j]) else None)
    columns = list(m.z.values())
    m.always = pyo.ConstraintList()
    for piece in always:
        m.always.add(piece.written(columns))
    for r, terms in enumerate(disjuncts):
        written = [[piece.written(columns) for piece in pieces] for pieces in terms]
        m.add_component(f"rule{r}", Disjunction(expr=written, xor=False))
    rules = gdpnet.RuleModel(m, outputs=columns[:d])
    return ConvexCase(
        rules, disjuncts, tuple(always), lower, upper, whole, draw.thin, yhat, weights
    )


def _ball(points: Array) -> Piece:
    """That holds all of them."""
    n, centre = points.shape[1], points.mean(0)
    reach = float(np.linalg.norm(points - centre, axis=1).max()) + 1.0
    return Piece("squares", np.zeros(n), reach**2, np.eye(n), centre)
