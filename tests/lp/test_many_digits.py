"""Conic programs to many digits: against exact arithmetic, and where Clarabel's are enough."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest

from gdpnet.lp import many_digits
from gdpnet.lp.central_path import dense
from gdpnet.lp.clarabel import KeptProgram
from gdpnet.lp.conic import Cone, ConeKind, ConicStructure
from gdpnet.lp.decided import is_decided
from gdpnet.lp.options import CLARABEL_CLOSE
from gdpnet.lp.program import Outcome
from gdpnet.lp.standard import StandardForm
from tests.derivative.exact_oracle import DIGITS, minimised


def structure(n: int, equal: int, less: int, upper: float = np.inf) -> ConicStructure:
    """Dense rows, equations first; columns from -1 on."""
    rows = equal + less
    return ConicStructure(
        np.full(n, -1.0), np.full(n, upper), start=np.arange(rows + 1) * n,
        column=np.tile(np.arange(n), rows), equality=np.arange(rows) < equal, cones=(),
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_quadratic_programs_of_very_different_numbers(seed) -> None:
    generator = np.random.default_rng(seed)
    n, equal, less = 4, 1, 3
    form = StandardForm(structure(n, equal, less))
    size = 10.0 ** generator.integers(-3, 7, (equal + less, 1))
    entries, right = form.matrices(
        (generator.normal(size=(equal + less, n)) * size).reshape(1, -1),
        np.abs(generator.normal(size=(1, equal + less))) * size.T,
    )
    cost, square = generator.normal(size=n) * 10.0 ** generator.integers(0, 6), np.full(n, 0.01)
    found = many_digits.solve(form, entries[0], right[0], cost, square)
    assert found is not None
    along = generator.normal(size=n)
    assert found.exact is not None
    to_cost, _, to_right = found.exact.adjoint(along)
    step = Decimal("1e-20")
    with localcontext() as context:
        context.prec = DIGITS
        rows = [[Decimal(v) for v in row] for row in dense(form, entries[0]).tolist()]
        exact = [[Decimal(v) for v in part.tolist()] for part in (cost, right[0], square)]

        def value(which: int, place: int, by: Decimal) -> list[Decimal]:
            moved = [list(part) for part in exact]
            moved[which][place] += by
            return minimised(moved[0], moved[2], rows, moved[1], form.equal)

        np.testing.assert_allclose(
            found.point, np.array(value(0, 0, Decimal(0)), dtype=float), rtol=1e-12, atol=1e-12
        )
        for which, slopes in ((0, to_cost), (1, to_right)):
            for place, slope in enumerate(slopes.tolist()):
                ends = value(which, place, step), value(which, place, -step)
                expected = sum(
                    Decimal(a) * (b - c) for a, b, c in zip(along.tolist(), *ends, strict=True)
                ) / (2 * step)
                assert slope == pytest.approx(float(expected), rel=1e-8, abs=1e-12)


def test_what_is_empty_is_proved() -> None:
    form = StandardForm(structure(2, 0, 1, upper=2e6))
    entries, right = form.matrices(np.array([[1.0, 1e-3]]), np.array([[-1.1]]))
    free = np.zeros(2)
    found = many_digits.solve(form, entries[0], right[0], free, np.ones(2))
    assert found is not None
    assert found.outcome is Outcome.INFEASIBLE
    _, right = form.matrices(np.array([[1.0, 1e-3]]), np.array([[-1.0]]))  # just not
    found = many_digits.solve(form, entries[0], right[0], free, np.ones(2))
    assert found is not None
    assert found.outcome is Outcome.OPTIMAL
    nearest = -np.array([1.0, 1e-3]) / (1.0 + 1e-6)
    np.testing.assert_allclose(found.point, nearest, rtol=1e-14, atol=0.0)


@pytest.mark.parametrize(("right", "decided"), [(1.0, True), (3.0, True), (2.0, False)])
def test_whether_tight_rows_are_decided(right, decided) -> None:
    """The point of |z - (2, 0)| least in a disc: on its boundary, inside, and where it begins."""
    disc = Cone(ConeKind.SECOND_ORDER, 0, 3)
    form = StandardForm(
        ConicStructure(
            np.full(2, -np.inf), np.full(2, np.inf), np.array([0, 0, 1, 2]), np.array([0, 1]),
            np.zeros(3, dtype=bool), (disc,),
        )
    )  # fmt: skip
    entries, bound = form.matrices(np.ones((1, 2)), np.array([[-right, 0.0, 0.0]]))
    given = entries[0], bound[0], np.array([-2.0, 0.0]), np.ones(2)
    found = KeptProgram(form, *given, options=CLARABEL_CLOSE).solve(*given)
    np.testing.assert_allclose(found.point, [min(right, 2.0), 0.0], atol=1e-4)
    assert is_decided(form, *given, found) is decided
