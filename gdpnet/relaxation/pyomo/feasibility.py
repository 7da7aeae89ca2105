"""Whether rows leave a point, for given Params or for all in a range."""

from __future__ import annotations

import math
from typing import Any

import pyomo.environ as pyo
import torch

from gdpnet.errors import RuleError
from gdpnet.ir import atoms
from gdpnet.ir.intervals import Interval, interval, times
from gdpnet.ir.linear import Coefficient, LinearForm
from gdpnet.lp.feasibility import Row, RowStack
from gdpnet.relaxation.pyomo.symbolic import SymbolicReader
from gdpnet.rules.expressions import Nonlinear


class ConstraintCheck(RowStack[Any]):
    """A linear program that says whether constraints leave a point; they come and go on a stack.

    Params keep the value they have, or, where a range is given, become variables: a sum of them is
    exact, and any other expression of them becomes one variable within its range, the same in all
    rows. So rows that are found contradictory are so for every value in the ranges.

    Args:
        reader: reads the rows.
        ranges: range of Params by id; the others have the value they have now.
    """

    def __init__(self, reader: SymbolicReader, ranges: dict[int, Interval]) -> None:
        super().__init__()
        self._reader = reader
        self._ranges = ranges
        self._rows: dict[int, tuple[Any, list[Row]]] = {}

    # ---- rows as numbers -----------------------------------------------------------------

    def _rows_of(self, item: Any) -> list[Row]:
        known = self._rows.get(id(item))
        if known is None:
            known = self._rows[id(item)] = (item, self._read(item))
        return known[1]

    def _read(self, constraint: Any) -> list[Row]:
        try:
            lower, body, upper = self._reader.sides(constraint)
        except Nonlinear:  # left out: what the other rows exclude stays excluded
            return []
        name = constraint.name
        sides = []
        if lower is not None:
            sides.append((lower, 0.0, math.inf))
        if upper is not None:
            sides.append((upper, -math.inf, 0.0))
        if constraint.equality:
            sides = [(sides[0][0], 0.0, 0.0)]
        rows = []
        for side, low, high in sides:
            terms, constant = self._terms(body - side, name)
            rows.append((low - constant, terms, high - constant))
        return rows

    def _terms(self, form: LinearForm, name: str) -> tuple[dict[int, float], float]:
        terms: dict[int, float] = {}

        def add(column: int, value: float) -> None:
            terms[column] = terms.get(column, 0.0) + value

        constant, varying = self._split(form.constant, name)
        for atom, multiplier in varying.items():
            add(self._atom(atom), multiplier)
        for index, coefficient in form:
            number, varying = self._split(coefficient, name)
            add(self._variable(index), number)
            for atom, multiplier in varying.items():
                add(self._product(atom, index), multiplier)
        return {column: value for column, value in terms.items() if value != 0.0}, constant

    def _split(self, coefficient: Coefficient, name: str) -> tuple[float, dict[Any, float]]:
        """What is known of a coefficient, and the atoms that have a range."""
        number = coefficient.number
        varying = {}
        for atom, multiplier in coefficient.atoms.items():
            inputs = atoms.inputs_of(atom)
            if any(id(self._reader.constants[k]) in self._ranges for k in inputs):
                varying[atom] = multiplier
            else:
                number += multiplier * self._value(atom, inputs, name)
        if not math.isfinite(number):
            raise RuleError(
                f"Constraint '{name}': a coefficient is not finite for the present values of the "
                "Params. Give them values, and check for a division by zero or a logarithm."
            )
        return number, varying

    def _value(self, atom: atoms.Tree, inputs: set[int], name: str) -> float:
        x = torch.zeros(1, len(self._reader.constants), dtype=torch.float64)
        for k in inputs:
            component = self._reader.constants[k]
            value = component.value if component.ctype is pyo.Var else _param_value(component)
            if value is None:
                raise RuleError(
                    f"Constraint '{name}': '{component.name}' has no value. Give it one before "
                    "the transformation."
                )
            x[0, k] = float(value)
        return float(atoms.Evaluator(x)(atom)[0])

    # ---- columns -------------------------------------------------------------------------

    def _variable(self, index: int) -> int:
        return self._column(("variable", index), *self._bounds(index))

    def _bounds(self, index: int) -> Interval:
        """Bounds of a Var; of those that depend on a range, the widest."""
        variable = self._reader.variables[index]
        sides = []
        for bound, unbounded in ((variable.lower, -math.inf), (variable.upper, math.inf)):
            if bound is None:
                sides.append((unbounded, unbounded))
                continue
            form = self._reader.linear(bound, f"Var '{variable.name}'").constant
            number, varying = self._split(form, f"bounds of {variable.name}")
            low = high = number
            for atom, multiplier in varying.items():
                a, b = times(self._interval(atom), (multiplier, multiplier))
                low, high = low + a, high + b
            sides.append((low, high))
        return sides[0][0], sides[1][1]

    def _interval(self, atom: atoms.Tree) -> Interval:
        ranges = []
        for component in self._reader.constants:
            given = self._ranges.get(id(component))
            if given is None:
                value = component.value if component.ctype is pyo.Var else _param_value(component)
                given = (-math.inf, math.inf) if value is None else (float(value), float(value))
            ranges.append(given)
        return interval(atom, ranges)

    def _atom(self, atom: atoms.Tree) -> int:
        return self._column(("atom", atom), *self._interval(atom))

    def _product(self, atom: atoms.Tree, index: int) -> int:
        bounds = times(self._interval(atom), self._bounds(index))
        return self._column(("product", atom, index), *bounds)


def _param_value(param: Any) -> float | None:
    try:
        return pyo.value(param, exception=False)
    except ValueError:  # no value was ever given
        return None
