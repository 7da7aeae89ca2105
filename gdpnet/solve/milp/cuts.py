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
from gdpnet.ir.data import Curve, Shape
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.solve.milp import disjunctive
from gdpnet.solve.milp.disjunctive import DisjunctiveAnswer, DisjunctiveProgram
from gdpnet.solve.milp.sample import RulesAtSample

_ROUNDS = 200
# Beside the end of a domain there is no slope: tangents are taken so far inside, the first that
# cuts off the point.
_INSIDE = (1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 1e-14)

By = Callable[[DisjunctiveProgram], DisjunctiveAnswer]


def to_a_vertex(program: DisjunctiveProgram) -> DisjunctiveAnswer:
    """By MILP or search, then once more with what was chosen fixed."""
    return disjunctive.polish(program, disjunctive.solve(program))


def solve(
    program: DisjunctiveProgram, sample: RulesAtSample, by: By = to_a_vertex
) -> DisjunctiveAnswer:
    """Solve a program whose rows may be convex.

    Args:
        program: of the sample.
        sample: the rules that its curves belong to.
        by: solves what is linear.

    Raises:
        SolverError: the tangents do not settle.
    """
    if not program.curved:
        return by(program)
    tangents: list[_Tangent] = []
    start = np.clip(0.0, program.lower, program.upper)
    for row in program.curved:
        tangents += _at(program, sample, row, start)
    for _ in range(_ROUNDS):
        answer = by(_with(program, tangents))
        if answer.point is None:
            return answer
        held = {*program.global_rows, *program.rows_of(sorted(answer.literals))}
        broken = [row for row in program.curved if row in held]
        found = [t for row in broken for t in _at(program, sample, row, answer.point)]
        if not found:
            return answer
        tangents += found
    raise SolverError(
        f"{_ROUNDS} rounds of tangents did not settle the convex rows of a sample. Give its Vars "
        "tighter bounds, or use fewer Vars that are no outputs."
    )


@dataclass(frozen=True)
class _Tangent:
    """`slope v <= bound`, instead of a row."""

    row: int
    slope: np.ndarray
    bound: float


def _with(program: DisjunctiveProgram, tangents: Sequence[_Tangent]) -> DisjunctiveProgram:
    """The program with tangents instead of what is not linear."""
    first = len(program.bound)
    instead: dict[int, list[int]] = {row: [] for row in program.curved}
    for k, tangent in enumerate(tangents):
        instead[tangent.row].append(first + k)

    def written(rows: Sequence[int]) -> tuple[int, ...]:
        return tuple(k for row in rows for k in instead.get(row, [row]))

    return replace(
        program,
        matrix=np.vstack([program.matrix, *(t.slope[None] for t in tangents)]),
        bound=np.concatenate([program.bound, [t.bound for t in tangents]]),
        equality=np.concatenate([program.equality, np.zeros(len(tangents), dtype=bool)]),
        global_rows=written(program.global_rows),
        booleans=tuple(replace(b, true_rows=written(b.true_rows)) for b in program.booleans),
        curved={},
    )


def _at(
    program: DisjunctiveProgram, sample: RulesAtSample, row: int, point: np.ndarray
) -> list[_Tangent]:
    """The tangent that cuts off a point, where the row does not hold there."""
    size = max(1.0, abs(program.bound[row]), np.abs(program.matrix[row]).max())
    for inside in _INSIDE:
        tangent = _tangent(program, sample, row, point, inside)
        if tangent.slope @ point > tangent.bound + TOLERANCES.holds * size:
            return [tangent]
    return []


def _tangent(
    program: DisjunctiveProgram,
    sample: RulesAtSample,
    row: int,
    point: np.ndarray,
    inside: float,
) -> _Tangent:
    source, factor = program.curved[row]
    n = sample.matrix.shape[1]
    slope, bound = program.matrix[row].copy(), float(program.bound[row])
    for curve in sample.rules.data.rows[source].curves:
        arguments = list(curve.arguments)
        matrix, constant = sample.matrix[arguments], sample.bound[arguments]
        at = _moved_inside(curve, matrix @ point[:n] - constant, inside)
        value, steep = _value(curve, at)
        weight = factor * curve.weight
        slope[:n] += weight * (steep @ matrix)
        bound -= weight * (value - steep @ (at + constant))
    return _Tangent(row, slope, bound)


def _moved_inside(curve: Curve, t: np.ndarray, inside: float) -> np.ndarray:
    """Arguments at which a curve has a slope."""
    if curve.shape is Shape.LOG or (curve.shape is Shape.POWER and curve.exponent < 1.0):
        return np.maximum(t, inside)
    if curve.shape is Shape.POWER and curve.exponent % 2.0 != 0.0:
        return np.maximum(t, 0.0)
    return np.minimum(t, 300.0) if curve.shape is Shape.EXP else t


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
