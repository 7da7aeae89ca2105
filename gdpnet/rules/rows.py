"""The rows that a model's constraints become."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gdpnet.errors import RuleError
from gdpnet.ir.data import Curve, Role, Row
from gdpnet.ir.linear import LinearForm
from gdpnet.rules.convexity import ConvexReader, CurveDraft, RowDraft
from gdpnet.rules.expressions import ExpressionReader, Nonlinear

Forms = Sequence[tuple[LinearForm, bool] | RowDraft]
"""Of each row what is at most 0, whether it is 0, and its curves, if any."""


class ReadRows:
    """Rows in the order in which they were read.

    Attributes:
        all: the rows; the arguments of curves are rows, too.
        everywhere: numbers of those that always hold.
    """

    def __init__(self, expressions: ExpressionReader, convexity: ConvexReader) -> None:
        self.all: list[Row] = []
        self.everywhere: list[int] = []
        self._expressions = expressions
        self._convexity = convexity

    def read(self, relation: Any, owner: str) -> Forms:
        """A relation as rows: linear, or else convex."""
        try:
            return self._expressions.rows(relation, owner)
        except Nonlinear:
            return self._convexity.rows(relation, owner)

    def add(self, forms: Forms, name: str, role: Role = Role.CONSTRAINT) -> list[int]:
        """Numbers of new rows of one constraint."""
        source, added = len(self.all), []
        for form, equality, *curved in forms:
            bound = form.constant.scaled(-1.0)
            if bound.is_number and not math.isfinite(bound.number):
                if bound.number == math.inf and not equality:
                    continue  # <= inf says nothing
                raise RuleError(f"Constraint '{name}' can never hold: its bound is not finite.")
            if not all(a.is_finite for a in (bound, *form.columns.values())):
                raise RuleError(f"Constraint '{name}' has a coefficient that is not finite.")
            added.append(len(self.all))
            row = Row(name, tuple(sorted(form)), bound, equality, role, source)
            self.all.append(row)
            if curved and curved[0]:
                curves = tuple(self._add_curve(draft, row) for draft in curved[0])
                self.all[added[-1]] = replace(row, curves=curves)
        return added

    def _add_curve(self, draft: CurveDraft, row: Row) -> Curve:
        """A curve of a row: its arguments become rows."""
        first = len(self.all)
        for form in draft.arguments:
            if not all(a.is_finite for a in (form.constant, *form.columns.values())):
                raise RuleError(f"Constraint '{row.name}' has a coefficient that is not finite.")
            bound = form.constant.scaled(-1.0)
            terms = tuple(sorted(form))
            self.all.append(Row(row.name, terms, bound, role=Role.ARGUMENT, source=row.source))
        rows = tuple(range(first, len(self.all)))
        return Curve(draft.shape, draft.weight, rows, draft.exponent)
