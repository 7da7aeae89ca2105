"""Lower bounds that multipliers prove."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from gdpnet.lp import highs, proof
from gdpnet.lp.program import LinearProgram, Outcome, SparseLinearProgram


def _program(apart: float, upper: float = 10.0) -> SparseLinearProgram:
    """x + y >= 1, x + (1 + apart) y >= 1 + apart / 2: the cheapest point is (1/2, 1/2)."""
    return LinearProgram(
        cost=np.array([1.0, 1.0 + apart / 2]),
        matrix=np.array([[1.0, 1.0], [1.0, 1.0 + apart]]),
        row_lower=np.array([1.0, 1.0 + apart / 2]),
        row_upper=np.full(2, np.inf),
        lower=np.zeros(2),
        upper=np.full(2, upper),
        integer=np.zeros(2, dtype=bool),
    ).sparse()


def _exact(program: SparseLinearProgram, multipliers: np.ndarray) -> Fraction:
    rate = [Fraction(c) for c in program.cost.tolist()]
    total = Fraction(0)
    for i, y in enumerate(multipliers.tolist()):
        side = program.row_lower[i] if y > 0.0 else program.row_upper[i]
        if not np.isfinite(side):
            continue
        total += Fraction(y) * Fraction(float(side))
        for e in range(program.start[i], program.start[i + 1]):
            rate[program.column[e]] -= Fraction(y) * Fraction(float(program.value[e]))
    for j, r in enumerate(rate):
        total += r * Fraction(float(program.lower[j] if r > 0 else program.upper[j]))
    return total


@pytest.mark.parametrize("apart", [0.5, 1e-6])
def test_multipliers_of_an_optimum_prove_its_value(apart: float) -> None:
    program = _program(apart)
    found = highs.solve(program)
    assert found.outcome is Outcome.OPTIMAL
    assert found.multipliers is not None
    bound = proof.proved(program, found.multipliers)
    assert proof.is_proved(bound, found.bound)
    assert bound <= 1.0 + apart / 4 + 1e-12


def test_no_multipliers_prove_more_than_exact_arithmetic_says() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        program = _program(10.0 ** -rng.integers(1, 11))
        multipliers = rng.normal(size=2) * 10.0 ** rng.integers(-2, 11, 2)
        bound, exact = proof.proved(program, multipliers), _exact(program, multipliers)
        assert Fraction(bound) <= exact
        assert float(exact) == pytest.approx(bound, rel=1e-12)


def test_a_value_that_multipliers_do_not_prove_is_refused() -> None:
    program = _program(1e-9)
    wrong = np.array([1e9, 1.0 - 1e9])  # one of them cannot be negative
    assert not proof.is_proved(proof.proved(program, wrong), 1.0)
    assert -1e-300 < proof.proved(program, np.zeros(2)) <= 0.0


def test_bounds_that_columns_lack_are_taken_from_rows() -> None:
    # x + y = 1, z - 2 x <= 0, -z - w <= 4: x, y within [0, 1], z at most 2, w without a bound.
    program = SparseLinearProgram(
        cost=np.array([-1.0, 0.0, -1.0, 0.0]),
        row_lower=np.array([1.0, -np.inf, -np.inf]),
        row_upper=np.array([1.0, 0.0, 4.0]),
        lower=np.array([0.0, 0.0, 0.0, -np.inf]),
        upper=np.full(4, np.inf),
        start=np.array([0, 2, 4, 6]),
        column=np.array([0, 1, 0, 2, 2, 3]),
        value=np.array([1.0, 1.0, -2.0, 1.0, -1.0, -1.0]),
    )
    lower, upper = proof.implied(program)
    assert upper[:3] == pytest.approx([1.0, 1.0, 2.0])
    assert (upper[:3] >= [1.0, 1.0, 2.0]).all()
    assert lower[3] == pytest.approx(-6.0)
    assert upper[3] == np.inf
    assert proof.proved(program, np.zeros(3)) == pytest.approx(-3.0)
    costly = replace(program, cost=np.array([0.0, 0.0, 0.0, -1.0]))
    assert proof.proved(costly, np.zeros(3)) == -np.inf
