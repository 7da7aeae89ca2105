"""Clarabel: an interior-point method for cones; programs kept, and numbers changed in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from gdpnet.errors import MissingPackageError
from gdpnet.extras import need
from gdpnet.lp.conic import ConeKind, ConicSolution
from gdpnet.lp.options import CLARABEL, CLARABEL_CAREFUL, Options
from gdpnet.lp.program import Outcome
from gdpnet.lp.standard import Span, StandardForm

Array = np.ndarray


def unavailable() -> str | None:
    """Why it cannot be used here, None where it can."""
    try:
        package()
    except MissingPackageError as error:
        return str(error)
    return None


def package() -> Any:
    """clarabel, imported late: importing gdpnet starts no solver."""
    return need("clarabel", "conic", "Relaxations with norm='l2', or of convex rows, need")


class KeptProgram:
    """A conic program in Clarabel: its structure is set up once, its numbers change.

    Clarabel scales a program by the numbers it is set up with. Those are the same whatever is
    solved, so that answers do not depend on what was solved before.

    Args:
        form: the program in its standard form.
        numbers: entries of A, b, q and the diagonal of P to set it up with; where P is not 0 stays.
        options: of Clarabel.
    """

    def __init__(self, form: StandardForm, *numbers: Array, options: Options = CLARABEL) -> None:
        self.form = form
        self._solver = self._new(options, *numbers)

    def solve(self, entries: Array, right: Array, cost: Array, square: Array) -> ConicSolution:
        """Solve for one sample.

        Args:
            entries: of A, as `StandardForm.matrices` has them.
            right: b, likewise.
            cost: q, `n`.
            square: diagonal of P, `n`.
        """
        self._solver.update(q=cost, A=entries, b=right, P=square[square != 0.0])
        found = _read(self._solver.solve())
        if found.known:
            return found
        # Once more, scaled by its own numbers.
        return _read(self._new(CLARABEL_CAREFUL, entries, right, cost, square).solve())

    def _new(
        self, options: Options, entries: Array, right: Array, cost: Array, square: Array
    ) -> Any:
        from scipy.sparse import csc_matrix

        form, n = self.form, len(cost)
        matrix = csc_matrix((entries, form.indices, form.indptr), shape=(form.rows, n))
        curved = np.flatnonzero(square)
        quadratic = csc_matrix((square[curved], (curved, curved)), shape=(n, n))
        cones = [package().ZeroConeT(form.equal), package().NonnegativeConeT(form.less)]
        cones += [_cone(span) for span in form.cones]
        settings = package().DefaultSettings()
        for option, value in options.items():
            setattr(settings, option, value)
        return package().DefaultSolver(quadratic, cost, matrix, right, cones, settings)


def _read(found: Any) -> ConicSolution:
    """What Clarabel says; a point is one only where all of its numbers are."""
    outcome = _outcome(str(found.status))
    if outcome is not Outcome.OPTIMAL:
        return ConicSolution(outcome)
    point, slack, dual = np.array(found.x), np.array(found.s), np.array(found.z)
    if not (np.isfinite(point).all() and np.isfinite(dual).all()):
        return ConicSolution(Outcome.FAILED)
    return ConicSolution(outcome, point, min(found.obj_val, found.obj_val_dual), slack, dual)


def _cone(span: Span) -> Any:
    if span.kind is ConeKind.EXPONENTIAL:
        return package().ExponentialConeT()
    if span.kind is ConeKind.POWER:
        return package().PowerConeT(span.exponent)
    return package().SecondOrderConeT(span.size)


def _outcome(status: str) -> Outcome:
    if status in ("Solved", "AlmostSolved"):
        return Outcome.OPTIMAL
    if status == "PrimalInfeasible":
        return Outcome.INFEASIBLE
    if status == "DualInfeasible":
        return Outcome.UNBOUNDED
    return Outcome.LIMIT if status in ("MaxIterations", "MaxTime") else Outcome.FAILED
