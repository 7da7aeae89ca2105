"""Rules whose numbers are at hand, as data: for what is solved on the way to an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from gdpnet.ir.data import Boolean, Clause, Column, Curve, Role, Row, RuleData
from gdpnet.ir.linear import Coefficient
from gdpnet.ir.rules import Rules


def rules_of(
    matrix: np.ndarray,
    bound: np.ndarray,
    equality: np.ndarray,
    columns: Sequence[Column],
    outputs: int,
    *,
    global_rows: Sequence[int] = (),
    booleans: Sequence[Boolean] = (),
    clauses: Sequence[Clause] = (),
    curves: Mapping[int, tuple[Curve, ...]] | None = None,
) -> Rules:
    """Rules without inputs; every clause applies.

    Args:
        matrix: coefficients, `rows x n`.
        bound: right sides, `rows`.
        equality: bool `rows`.
        columns: all columns.
        outputs: how many of them are outputs, the first ones.
        global_rows: rows that always hold.
        booleans: all booleans.
        clauses: their conditions are left out.
        curves: of rows that are convex.

    Example:
        >>> import numpy as np
        >>> from gdpnet.ir.data import Column
        >>> from gdpnet.ir.written import rules_of
        >>> columns = [Column("y[0]", 0.0, 9.0), Column("y[1]", 0.0, 9.0)]
        >>> rules = rules_of(np.ones((1, 2)), np.ones(1), np.zeros(1, bool), columns, 2)
        >>> rules.output_names
        ('y[0]', 'y[1]')
    """
    curves = curves or {}
    arguments = {k for several in curves.values() for curve in several for k in curve.arguments}
    rows = tuple(
        Row(
            name=f"row {i}",
            terms=tuple((j, Coefficient(float(line[j]))) for j in np.flatnonzero(line).tolist()),
            bound=Coefficient(float(right)),
            equality=bool(equal),
            role=Role.ARGUMENT if i in arguments else Role.CONSTRAINT,
            curves=curves.get(i, ()),
        )
        for i, (line, right, equal) in enumerate(zip(matrix, bound, equality, strict=True))
    )
    return Rules(
        RuleData(
            inputs=(),
            input_bounds=(),
            outputs=outputs,
            columns=tuple(columns),
            rows=rows,
            global_rows=tuple(global_rows),
            booleans=tuple(booleans),
            clauses=tuple(replace(clause, conditions=()) for clause in clauses),
            rules=(),
            conditions=(),
        )
    )
