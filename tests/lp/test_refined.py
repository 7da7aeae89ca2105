"""Linear programs solved again around their answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gdpnet.lp import highs
from gdpnet.lp.clock import UNLIMITED, Clock
from gdpnet.lp.program import LinearProgram, Outcome, Solution, SparseLinearProgram
from gdpnet.lp.refined import refined


def _program(integer: bool = False) -> LinearProgram:
    """x + y >= 1, x + 3 y >= 2: the cheapest point is (1/2, 1/2)."""
    return LinearProgram(
        cost=np.array([1.0, 2.0]),
        matrix=np.array([[1.0, 1.0], [1.0, 3.0]]),
        row_lower=np.array([1.0, 2.0]),
        row_upper=np.full(2, np.inf),
        lower=np.zeros(2),
        upper=np.full(2, 10.0),
        integer=np.full(2, integer),
    )


def _sloppy(program: LinearProgram | SparseLinearProgram, clock: Clock) -> Solution:
    """HiGHS, but every column is 1e-6 too large."""
    found = highs.solve(program, clock)
    if found.point is None:
        return found
    point = found.point + 1e-6
    return replace(found, point=point, bound=float(program.cost @ point))


def test_what_a_tolerance_left_is_found() -> None:
    assert abs(_sloppy(_program(), UNLIMITED).bound - 1.5) > 1e-6
    found = refined(_sloppy)(_program(), UNLIMITED)
    assert found.outcome is Outcome.OPTIMAL
    assert found.point is not None
    np.testing.assert_allclose(found.point, 0.5, rtol=0.0, atol=1e-11)
    assert abs(found.bound - 1.5) < 1e-11


def test_a_contradiction_is_left_as_it_is() -> None:
    empty = replace(_program(), upper=np.full(2, 0.1))
    assert refined(highs.solve)(empty, UNLIMITED).outcome is Outcome.INFEASIBLE


def test_a_magnified_contradiction_is_rounding() -> None:
    calls = 0

    def once(program: LinearProgram | SparseLinearProgram, clock: Clock) -> Solution:
        nonlocal calls
        calls += 1
        return highs.solve(program, clock) if calls == 1 else Solution(Outcome.INFEASIBLE)

    found = refined(once)(_program(), UNLIMITED)
    assert calls == 2
    assert found.outcome is Outcome.OPTIMAL
    assert abs(found.bound - 1.5) < 1e-9


def test_whole_numbers_are_not_magnified() -> None:
    found = refined(_sloppy)(_program(integer=True), UNLIMITED)
    assert found.bound == _sloppy(_program(integer=True), UNLIMITED).bound
