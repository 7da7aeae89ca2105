"""Random rules with ellipsoids and cones, and their projections by enumeration with Clarabel.

    python -m tests.solve.convex_oracle [--count 5000] [--norm l2] [--first 0]

compares the exact engine with it on as many problems and prints what differs. A tenth of the
disjuncts have no interior: there the engine is right to 1e-6, or says that it has not finished;
elsewhere it is right to 1e-7. What such a disjunct consists of is known, one point, and Clarabel is
not asked for it: of touching balls it finds points in between that are up to 1e-4 away.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import clarabel
import numpy as np
from scipy import sparse

from gdpnet import core
from gdpnet.ir.data import Boolean, Clause, Column, Curve, Role, Row, Rule, RuleData, Shape
from gdpnet.ir.instance import Instance
from gdpnet.ir.linear import Coefficient
from gdpnet.ir.rules import Rules
from gdpnet.solve.exact.engine import ExactEngine
from gdpnet.solve.exact.options import SearchOptions

Array = np.ndarray


@dataclass
class Draft:
    """Rules in the making, over `d` outputs in a box."""

    d: int
    reach: float = 5.0
    thin: bool = False
    rows: list[Row] = field(default_factory=list)
    booleans: list[Boolean] = field(default_factory=list)
    clauses: list[Clause] = field(default_factory=list)
    global_rows: list[int] = field(default_factory=list)
    points: dict[int, Array] = field(default_factory=dict)  # all of a set, by its first row

    def row(self, a: Array, b: float, *curves: Curve, role: Role = Role.CONSTRAINT) -> int:
        terms = tuple((j, Coefficient(float(v))) for j, v in enumerate(a) if v != 0.0)
        name = f"row{len(self.rows)}"
        self.rows.append(Row(name, terms, Coefficient(float(b)), role=role, curves=curves))
        return len(self.rows) - 1

    def curved(
        self, shape: Shape, matrix: Array, at: Array, a: Array, b: float, weight: float = 1.0
    ) -> int:
        """`a y + weight shape(matrix y - at) <= b`."""
        arguments = tuple(
            self.row(line, t, role=Role.ARGUMENT) for line, t in zip(matrix, at, strict=True)
        )
        return self.row(a, b, Curve(shape, weight, arguments))

    def rule(self, disjuncts: Iterable[list[int]]) -> None:
        literals = []
        for rows in disjuncts:
            self.booleans.append(Boolean(f"disjunct{len(self.booleans)}", tuple(rows)))
            literals.append(len(self.booleans))
        self.clauses.append(Clause(f"rule{len(self.clauses)}", tuple(literals)))

    def data(self) -> RuleData:
        columns = [Column(f"y[{j}]", -self.reach, self.reach) for j in range(self.d)]
        rules = [
            Rule(clause.name, c, tuple(range(len(clause.literals))))
            for c, clause in enumerate(self.clauses)
        ]
        return RuleData(
            *((), (), self.d, tuple(columns), tuple(self.rows), tuple(self.global_rows)),
            *(tuple(self.booleans), tuple(self.clauses), tuple(rules), ()),
        )


def random_draft(rng: np.random.Generator, d: int, thin: float = 0.1) -> Draft:
    """One or two rules whose disjuncts are ellipsoids, cones and half spaces.

    Args:
        rng: random numbers.
        d: number of outputs.
        thin: share of disjuncts that are a point, or balls that touch.
    """
    draft, none = Draft(d), np.zeros(d)

    def around() -> int:
        kind = rng.choice(["ellipsoid", "written out", "norm", "cone"])
        centre = rng.normal(size=d) * 2.5 / np.sqrt(d)
        matrix = rng.normal(size=(d, d)) / np.sqrt(d) + 0.7 * np.eye(d)
        weight, radius, at = rng.uniform(0.5, 2.0), rng.uniform(0.5, 1.5), matrix @ centre
        if kind == "ellipsoid":
            return draft.curved(Shape.SQUARES, matrix, at, none, weight * radius**2, weight)
        if kind == "written out":
            slope, shift = -2.0 * weight * matrix.T @ at, weight * (radius**2 - at @ at)
            return draft.curved(Shape.SQUARES, matrix, none, slope, shift, weight)
        if kind == "norm":
            return draft.curved(Shape.NORM, matrix, at, none, weight * radius, weight)
        slope, few = 1.2 * rng.normal(size=d) / np.sqrt(d), max(1, d - 1)
        room = float(-slope @ centre + rng.choice([0.0, 0.3]))
        return draft.curved(Shape.NORM, 0.6 * matrix[:few], 0.6 * at[:few], -slope, room)

    def without_interior() -> list[int]:
        draft.thin = True
        centre, one = rng.normal(size=d) * 2.0 / np.sqrt(d), np.eye(d)
        if rng.random() < 0.5:
            shape = Shape.SQUARES if rng.random() < 0.5 else Shape.NORM
            rows = [draft.curved(shape, one, centre, none, 0.0)]
            draft.points[rows[0]] = centre
            return rows
        away, (r, s) = rng.normal(size=d), rng.uniform(0.4, 1.0, 2)
        away /= np.linalg.norm(away)
        other = centre + (r + s) * away
        rows = [
            draft.curved(Shape.SQUARES, one, centre, none, r**2),
            draft.curved(Shape.NORM, one, other, none, s),
        ]
        draft.points[rows[0]] = centre + r * away
        return rows

    def disjunct() -> list[int]:
        if rng.random() < thin:
            return without_interior()
        cut = [draft.row(rng.normal(size=d), rng.normal() + 0.5)] if rng.random() < 0.4 else []
        return [around(), *cut]

    for _ in range(int(rng.integers(1, 3))):
        draft.rule([disjunct() for _ in range(int(rng.integers(1, 4)))])
    if rng.random() < 0.5:
        draft.global_rows.append(draft.curved(Shape.SQUARES, np.eye(d), none, none, 16.0))
    return draft


# ---- enumeration --------------------------------------------------------------------------------


def numbers(data: RuleData, row: int) -> tuple[Array, float]:
    """Coefficients, by column, and right side."""
    a = np.zeros(len(data.columns))
    for j, coefficient in data.rows[row].terms:
        a[j] = coefficient.number
    return a, data.rows[row].bound.number


def excess(data: RuleData, row: int, y: Array) -> float:
    """By how much a row is broken, relative to `max(1, |b|, max|a|)`."""
    a, b = numbers(data, row)
    total = float(a @ y) - b
    for curve in data.rows[row].curves:
        t = np.array([numbers(data, i)[0] @ y - numbers(data, i)[1] for i in curve.arguments])
        total += curve.weight * float(t @ t if curve.shape is Shape.SQUARES else np.linalg.norm(t))
    return total / max(1.0, abs(b), float(np.abs(a).max()))


def project_onto(data: RuleData, rows: Iterable[int], yhat: Array, norm: str) -> float:
    """The least l1 distance, or squared l2 distance, to points of some rows; inf where none is."""
    n = len(yhat)
    matrix, right, cones = [np.eye(n), -np.eye(n)], [], []
    right += [np.array([c.upper for c in data.columns]), -np.array([c.lower for c in data.columns])]
    balls = []
    for i in rows:
        a, b = numbers(data, i)
        if not data.rows[i].curves:
            matrix.append(a[None])
            right.append(np.array([b]))
            continue
        (curve,) = data.rows[i].curves
        inner = np.array([numbers(data, k)[0] for k in curve.arguments])
        at = np.array([numbers(data, k)[1] for k in curve.arguments])
        if curve.shape is Shape.NORM:
            balls.append((np.vstack([-a, curve.weight * inner]), np.r_[b, -curve.weight * at]))
        elif not a.any():
            root = np.sqrt(max(b, 0.0) / curve.weight)
            balls.append((np.vstack([0.0 * a, inner]), np.r_[root, -at]))
        else:
            root = 2.0 * np.sqrt(curve.weight)
            balls.append((np.vstack([-a, -a, root * inner]), np.r_[b + 1.0, b - 1.0, -root * at]))
    quadratic, cost = sparse.csc_matrix(2.0 * np.eye(n)), -2.0 * yhat
    wide = n
    if norm == "l1":
        wide, one = 2 * n, np.eye(n)
        quadratic, cost = sparse.csc_matrix((wide, wide)), np.r_[np.zeros(n), np.ones(n)]
    lines = [np.hstack([part, np.zeros((len(part), wide - n))]) for part in matrix]
    if norm == "l1":
        lines += [np.hstack([one, -one]), np.hstack([-one, -one])]
        right += [yhat, -yhat]
    cones.append(clarabel.NonnegativeConeT(sum(map(len, right))))
    for part, shift in balls:
        lines.append(np.hstack([-part, np.zeros((len(part), wide - n))]))
        right.append(shift)
        cones.append(clarabel.SecondOrderConeT(len(shift)))
    best, settings = np.inf, clarabel.DefaultSettings()
    settings.verbose = False
    for accuracy in (1e-11, 1e-9):  # what is too much for it is asked for less
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = accuracy
        program = quadratic, cost, sparse.csc_matrix(np.vstack(lines)), np.concatenate(right)
        found = clarabel.DefaultSolver(*program, cones, settings).solve()
        status = str(found.status)
        if "Infeasible" in status:
            return np.inf
        y = np.array(found.x)[:n]
        best = float(np.abs(y - yhat).sum() if norm == "l1" else ((y - yhat) ** 2).sum())
        if status == "Solved":
            break
    return best


def least(draft: Draft, yhat: Array, norm: str) -> float:
    """The least of what is minimised, over all choices of disjuncts."""
    data = draft.data()

    def of(rows: list[int]) -> float:
        for point in (draft.points[i] for i in rows if i in draft.points):
            if any(excess(data, i, point) > 1e-9 for i in rows):
                return np.inf
            away = point - yhat
            return float(np.abs(away).sum() if norm == "l1" else away @ away)
        return project_onto(data, rows, yhat, norm)

    choices = itertools.product(*(clause.literals for clause in data.clauses))
    return min(
        of([*data.global_rows, *(i for k in choice for i in data.booleans[k - 1].true_rows)])
        for choice in choices
    )


# ---- comparison ---------------------------------------------------------------------------------


def compare(seed: int, norm: str, most: int = 20) -> tuple[int, str | None]:
    """Project a random prediction and compare: the outcome, and what is wrong, or None."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, most + 1))
    draft = random_draft(rng, d)
    data, yhat = draft.data(), 3.0 * rng.normal(size=d)
    rules = Rules.from_data(data)
    options = SearchOptions(np.ones(d), norm=norm)
    solved = ExactEngine(rules).project(Instance.of(rules, np.zeros((1, 0))), yhat[None], options)
    status, y, value = int(solved.status[0]), solved.z[0], float(solved.distance[0])
    wanted = least(draft, yhat, norm)
    if status == core.NO_SOLUTION:
        return status, None if wanted == np.inf else f"no solution, Clarabel {wanted}"
    if status not in (core.SOLVED, core.ACCEPTED_AS_IS):
        # Sets without an interior may be left open, and are counted as such.
        honest = draft.thin and (value == np.inf or value >= wanted - 1e-6 * max(1.0, wanted))
        return status, None if honest else f"outcome {status}, found {value}, Clarabel {wanted}"
    chosen = [k for k, value in enumerate(solved.assignment[0]) if value == 1]
    rows = {*data.global_rows, *(i for k in chosen for i in data.booleans[k].true_rows)}
    worst = max(excess(data, i, y) for i in rows)
    if worst > 1e-9:
        return status, f"a row is broken by {worst}"
    if not all(any(k - 1 in chosen for k in clause.literals) for clause in data.clauses):
        return status, "a rule has no disjunct"
    off = abs(value - wanted) / max(1.0, wanted)
    if off > (1e-6 if draft.thin else 1e-7):
        return status, f"{value}, Clarabel {wanted}, {off:.1e} apart{', thin' * draft.thin}"
    return status, None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--norm", default="l2")
    arguments = parser.parse_args()
    began, wrong = time.perf_counter(), 0
    outcomes: Counter[int] = Counter()
    for seed in range(arguments.first, arguments.first + arguments.count):
        outcome, message = compare(seed, arguments.norm)
        outcomes[outcome] += 1
        if message is not None:
            wrong += 1
            print(f"seed {seed}: {message}", flush=True)
    seconds = time.perf_counter() - began
    print(f"{arguments.count} problems, {wrong} differ, {dict(outcomes)}, {seconds:.0f} s")


if __name__ == "__main__":
    main()
