"""Rows of Pyomo models that are convex and not linear: read with their Params, written as cones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyomo.environ as pyo

from gdpnet.ir.data import Shape
from gdpnet.ir.intervals import EVERYTHING, Interval
from gdpnet.ir.linear import Coefficient, LinearForm
from gdpnet.lp.conic import ConeKind
from gdpnet.relaxation.cones import Perspective, perspective
from gdpnet.relaxation.pyomo.provenance import note_cone, note_copy, note_head
from gdpnet.relaxation.pyomo.symbolic import SymbolicReader, linear_expression
from gdpnet.rules.convexity import ConvexReader, CurveDraft, RowDraft
from gdpnet.rules.expressions import Nonlinear


class CurvedReader:
    """Reads rows of a model, linear or convex.

    Args:
        reader: reads what is linear, and numbers Vars and Params.
        ranges: ranges of Params, by id.
    """

    def __init__(
        self, reader: SymbolicReader, ranges: Mapping[int, Interval] | None = None
    ) -> None:
        self.reader, self._ranges = reader, ranges or {}
        self._convex = ConvexReader(reader, self._inputs, self._column)

    def rows(self, constraint: Any) -> list[RowDraft] | None:
        """The rows of a constraint that is not linear; None where it is."""
        try:
            self.reader.sides(constraint)
        except Nonlinear:
            return self._convex.rows(constraint.expr, f"Constraint '{constraint.name}'")
        return None

    def minimised(self, objective: Any, sign: Coefficient, owner: str) -> list[RowDraft]:
        """What an Objective minimises, as a row without its sense, and rows of its domain.

        Args:
            objective: the Objective.
            sign: -1 where it is maximised.
            owner: what to call it.
        """
        return self._convex.minimised(objective.expr, sign, owner, self._top_column)

    def top(self) -> Any:
        """A Var for what has no other name: it is minimised, and stands above the rest."""
        top = pyo.Var()
        top.construct()
        return top

    def _top_column(self) -> int:
        return self.reader.column(self.top())

    def _inputs(self) -> list[Interval]:
        return [self._ranges.get(id(c), EVERYTHING) for c in self.reader.constants]

    def _column(self, column: int) -> Interval:
        variable = self.reader.variables[column]
        lower, upper = variable.lb, variable.ub
        return (-math.inf if lower is None else lower, math.inf if upper is None else upper)


def columns_of(rows: list[RowDraft]) -> set[int]:
    """Columns of rows and of the arguments of their curves."""
    forms = [form for form, _, _ in rows]
    forms += [form for _, _, curves in rows for curve in curves for form in curve.arguments]
    return {column for form in forms for column in form.columns}


def plain_head(row: RowDraft) -> int | None:
    """The column that bounds a single sum of squares by itself: `sum(t**2) <= column`."""
    form, _, curves = row
    if len(curves) != 1 or curves[0].shape is not Shape.SQUARES or len(form.columns) != 1:
        return None
    ((column, a),) = form
    alone = form.constant.is_zero and a.is_number and a.number == -curves[0].weight
    return column if alone else None


@dataclass(frozen=True)
class Place:
    """Where the rows of a disjunct are written, and with what.

    Attributes:
        reader: numbered the Vars and Params.
        block: gets variables and rows.
        weight: of the disjunct.
        copies: of each Var, by id.
        source: the constraint that is written.
    """

    reader: SymbolicReader
    block: Any
    weight: Any
    copies: Mapping[int, Any]
    source: Any

    def form(self, form: LinearForm) -> list[tuple[Any, Any]]:
        """Coefficients and Vars of `form` in the copies, its constant times the weight."""
        written, variables = self.reader.written, self.reader.variables
        terms = [(written(a), self.copies[id(variables[column])]) for column, a in form]
        if not form.constant.is_zero:
            terms.append((written(form.constant), self.weight))
        return terms

    def write(self, row: RowDraft, into: Any = None) -> None:
        """Write a row and the cones of its curves.

        Args:
            row: what is `<= 0`, or `== 0`.
            into: a Constraint that gets the row; a new one where it is None.
        """
        form, equality, curves = row
        terms = self.form(form)
        plain = plain_head(row)
        if plain is not None:
            self._cone(curves[0], self.copies[id(self.reader.variables[plain])], into)
            return
        for curve in curves:
            shape = perspective(curve.shape, curve.exponent)
            bounds = (None, None) if shape.signed else (0, None)
            head = self._component("gdpnet_heads", pyo.VarList).add()
            head.setlb(bounds[0])
            note_head(head, self.source)
            terms.append((curve.weight, head))
            self._cone(curve, head)
        total = linear_expression(terms)
        self._set(into, "gdpnet_rows", total == 0 if equality else total <= 0)

    def _cone(self, curve: CurveDraft, head: Any, into: Any = None) -> None:
        shape = perspective(curve.shape, curve.exponent)
        arguments = []
        for form in curve.arguments:
            argument = self._component("gdpnet_arguments", pyo.VarList).add()
            terms = [*self.form(form), (-1.0, argument)]
            link = self._component("gdpnet_links", pyo.ConstraintList).add(
                linear_expression(terms) == 0
            )
            note_copy(link, self.source)
            arguments.append((argument, linear_expression(self.form(form))))
        relation = _relation(shape, head, self.weight, [a for a, _ in arguments])
        row = self._set(into, "gdpnet_cones", relation)
        members = shape.members(head, self.weight, [e for _, e in arguments], lambda m: -m)
        note_cone(row, shape.kind, tuple(members), shape.exponent)

    def _set(self, into: Any, name: str, relation: Any) -> Any:
        if into is not None:
            into.set_value(relation)
            return into
        row = self._component(name, pyo.ConstraintList).add(relation)
        note_copy(row, self.source)
        return row

    def _component(self, name: str, kind: Any) -> Any:
        if self.block.component(name) is None:
            self.block.add_component(name, kind())
        return self.block.component(name)


def _relation(shape: Perspective, head: Any, weight: Any, arguments: list[Any]) -> Any:
    """The cone as Pyomo says it, with products and functions; at weight 0 its limit is meant."""
    if shape.kind is ConeKind.ROTATED:
        return pyo.quicksum(t**2 for t in arguments) <= head * weight
    if shape.kind is ConeKind.SECOND_ORDER:
        return pyo.quicksum(t**2 for t in arguments) <= head**2
    (t,) = arguments
    p, q, r = shape.members(head, weight, [t], lambda m: -m)
    if shape.kind is ConeKind.EXPONENTIAL:
        return q * pyo.exp(r / q) <= p
    return r <= p**shape.exponent * q ** (1.0 - shape.exponent)
