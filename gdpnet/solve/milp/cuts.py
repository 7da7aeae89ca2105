"""Disjunctive programs with convex rows, by tangents.

A convex row holds where all of its tangents do. So the rows that are not linear are left out at
first; where the point that is found breaks one, its tangent there becomes a row, until none is
broken. What the program without some tangents cannot satisfy, the rows cannot: a proof that there
is no point stands, and a least violation is never overstated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gdpnet.errors import SolverError
from gdpnet.ir.compressed import Compressed
from gdpnet.ir.data import Curve, Shape
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.solve.milp import disjunctive
from gdpnet.solve.milp.disjunctive import DisjunctiveAnswer, DisjunctiveProgram
from gdpnet.solve.milp.sample import RulesAtSample

_ROUNDS = 200
# Beside the end of a domain there is no slope: tangents are taken so far inside, the first that
# cuts off the point.
_INSIDE = (1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 1e-14)
# Of what is outside of a domain no tangent is steep enough; beyond this slope solvers fail.
_STEEPEST = 2e7
# Of what is added up in a tangent, solvers tell no less apart.
_LOST = 1e-9

By = Callable[[DisjunctiveProgram], DisjunctiveAnswer]


def to_a_vertex(program: DisjunctiveProgram) -> DisjunctiveAnswer:
    """By MILP or search, then once more with what was chosen fixed."""
    return disjunctive.polish(program, disjunctive.solve(program))


def solve(
    program: DisjunctiveProgram,
    sample: RulesAtSample,
    by: By = to_a_vertex,
    enough: float = float("inf"),
) -> DisjunctiveAnswer:
    """Solve a program whose rows may be convex.

    Args:
        program: of the sample.
        sample: the rules that its curves belong to.
        by: solves what is linear.
        enough: no more tangents are needed where the last column is beyond this.

    Raises:
        SolverError: the tangents do not settle.
    """
    if not program.curved:
        return by(program)
    tangents: list[Tangent] = []
    start = np.clip(0.0, program.lower, program.upper)
    for row in program.curved:
        tangents += _at(_Line.of(program, row), sample, start)
    before: np.ndarray | None = None
    for _ in range(_ROUNDS):
        answer = by(_with(program, tangents))
        if answer.point is None or answer.point[-1] > enough:
            return answer
        held = {*program.global_rows, *program.rows_of(sorted(answer.literals))}
        broken = [row for row in program.curved if row in held]
        found = [t for row in broken for t in _at(_Line.of(program, row), sample, answer.point)]
        if not found or (_same(answer.point, before) and _rounded(found, answer.point)):
            return answer
        before = answer.point
        tangents += found
    raise SolverError(
        f"{_ROUNDS} rounds of tangents did not settle the convex rows of a sample. Give its Vars "
        "tighter bounds, or use fewer Vars that are no outputs."
    )


@dataclass(frozen=True)
class Tangent:
    """`slope v <= bound`, instead of a row."""

    row: int
    slope: np.ndarray
    bound: float


def broken_tangents(sample: RulesAtSample, rows: Sequence[int], z: np.ndarray) -> list[Tangent]:
    """Tangents that cut off a point, one for each convex row that it breaks.

    Args:
        sample: the rules at one input.
        rows: rows that are to hold.
        z: values of all columns, `n`.
    """
    curved = [i for i in rows if sample.rules.data.rows[i].curves]
    found = []
    for i in curved:
        found += _at(_Line(i, sample.matrix[i], float(sample.bound[i]), i, 1.0), sample, z)
    return found


def tangent_at(sample: RulesAtSample, row: int, z: np.ndarray) -> Tangent:
    """The tangent of a convex row at a point.

    Args:
        sample: the rules at one input.
        row: the row.
        z: values of all columns, `n`.
    """
    line = _Line(row, sample.matrix[row], float(sample.bound[row]), row, 1.0)
    return _tangent(line, sample, z, _INSIDE[-1])


def _same(point: np.ndarray, before: np.ndarray | None) -> bool:
    """Whether the tangents of the last round changed nothing, as those of this one will."""
    return before is not None and bool(np.array_equal(point, before))


def _rounded(tangents: Sequence[Tangent], point: np.ndarray) -> bool:
    """Whether a point breaks tangents by no more than solvers round, steep ones in particular."""
    return all(
        t.slope @ point - t.bound
        <= 10 * TOLERANCES.holds * max(1.0, abs(t.bound), np.abs(t.slope).max())
        for t in tangents
    )


@dataclass(frozen=True)
class _Line:
    """`slope v + factor * curves of a source <= bound`."""

    row: int
    slope: np.ndarray
    bound: float
    source: int
    factor: float

    @staticmethod
    def of(program: DisjunctiveProgram, row: int) -> _Line:
        return _Line(row, program.matrix[row], float(program.bound[row]), *program.curved[row])


def _with(program: DisjunctiveProgram, tangents: Sequence[Tangent]) -> DisjunctiveProgram:
    """The program with tangents instead of what is not linear."""
    first = len(program.bound)
    instead: dict[int, list[int]] = {row: [] for row in program.curved}
    for k, tangent in enumerate(tangents):
        instead[tangent.row].append(first + k)

    def written(rows: Sequence[int]) -> tuple[int, ...]:
        return tuple(k for row in rows for k in instead.get(row, [row]))

    slopes = Compressed.of(np.array([t.slope for t in tangents]).reshape(-1, program.rows.columns))
    return replace(
        program,
        rows=program.rows.above(slopes),
        bound=np.concatenate([program.bound, [t.bound for t in tangents]]),
        equality=np.concatenate([program.equality, np.zeros(len(tangents), dtype=bool)]),
        global_rows=written(program.global_rows),
        booleans=tuple(replace(b, true_rows=written(b.true_rows)) for b in program.booleans),
        curved={},
    )


def _at(line: _Line, sample: RulesAtSample, point: np.ndarray) -> list[Tangent]:
    """The tangent that cuts off a point, where the row does not hold there."""
    size = max(1.0, abs(line.bound), np.abs(line.slope).max())
    for inside in _INSIDE:
        tangent = _tangent(line, sample, point, inside)
        lost = _LOST * max(abs(tangent.bound), np.abs(tangent.slope * point).max())
        if tangent.slope @ point > tangent.bound + max(TOLERANCES.holds * size, lost):
            return [tangent]
    return []


def _tangent(line: _Line, sample: RulesAtSample, point: np.ndarray, inside: float) -> Tangent:
    n = sample.matrix.shape[1]
    slope, bound = line.slope.copy(), line.bound
    for curve in sample.rules.data.rows[line.source].curves:
        arguments = list(curve.arguments)
        matrix, constant = sample.matrix[arguments], sample.bound[arguments]
        at = _moved_inside(curve, matrix @ point[:n] - constant, inside)
        value, steep = _value(curve, at)
        weight = line.factor * curve.weight
        slope[:n] += weight * (steep @ matrix)
        bound -= weight * (value - steep @ (at + constant))
    return Tangent(line.row, slope, float(bound))


def _moved_inside(curve: Curve, t: np.ndarray, inside: float) -> np.ndarray:
    """Arguments at which a curve has a slope."""
    if curve.shape is Shape.LOG or (curve.shape is Shape.POWER and curve.exponent < 1.0):
        return np.where(t < 0.0, max(inside, _steepest_at(curve)), np.maximum(t, inside))
    if curve.shape is Shape.POWER and curve.exponent % 2.0 != 0.0:
        return np.maximum(t, 0.0)
    return np.minimum(t, 300.0) if curve.shape is Shape.EXP else t


def _steepest_at(curve: Curve) -> float:
    """Where a curve that is steeper the nearer it is to 0 has the largest slope allowed."""
    power = 0.0 if curve.shape is Shape.LOG else curve.exponent
    return float((_STEEPEST / (abs(power) or 1.0)) ** (1.0 / (power - 1.0)))


def _value(curve: Curve, t: np.ndarray) -> tuple[float, np.ndarray]:
    """Value and slopes of a curve without its weight."""
    if curve.shape is Shape.SQUARES:
        return float(t @ t), 2.0 * t
    if curve.shape is Shape.NORM:
        norm = float(np.linalg.norm(t))
        return norm, t / norm if norm > 0.0 else t
    if curve.shape is Shape.EXP:
        return float(np.exp(t[0])), np.exp(t)
    if curve.shape is Shape.LOG:
        return float(-np.log(t[0])), -1.0 / t
    power = curve.exponent
    sign = -1.0 if 0.0 < power < 1.0 else 1.0
    return float(sign * t[0] ** power), sign * power * t ** (power - 1.0)
