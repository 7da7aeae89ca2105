"""The columns that a model's Vars become."""

from __future__ import annotations

import math
from typing import Any

import pyomo.environ as pyo
from pyomo.core.base.var import VarData
from pyomo.gdp import Disjunct

from gdpnet.errors import RuleError
from gdpnet.ir.data import Column, Role
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.rules.expressions import ExpressionReader
from gdpnet.rules.obstacles import Obstacles
from gdpnet.rules.rows import ReadRows


class ReadColumns:
    """Columns in the order in which their Vars were met; outputs are met first.

    Attributes:
        all: the columns.
    """

    def __init__(
        self, model: Any, expressions: ExpressionReader, rows: ReadRows, obstacles: Obstacles
    ) -> None:
        self.all: list[Column] = []
        self._model = model
        self._expressions = expressions
        self._rows = rows
        self._obstacles = obstacles
        self._of: dict[int, int] = {}
        self._variables: list[VarData] = []  # kept alive: `_of` is keyed by id

    def of(self, variable: VarData, owner: str) -> int:
        """The column of a Var; a new one where it was not met yet."""
        column = self._of.get(id(variable))
        return self.add(variable, owner) if column is None else column

    def known(self, variable: VarData) -> int | None:
        """The column of a Var; None where it was not met."""
        return self._of.get(id(variable))

    def add(self, variable: VarData, owner: str) -> int:
        """A new column, with the bounds of its Var."""
        if variable.model() is not self._model.model():
            raise RuleError(
                f"{owner}: Var '{variable.name}' does not belong to the model "
                f"'{self._model.name}'. Use Vars of the model that holds the rules."
            )
        index = len(self.all)
        self._of[id(variable)] = index
        self._variables.append(variable)
        self.all.append(Column(variable.name, -math.inf, math.inf))
        with self._obstacles.at(variable):
            self.all[index] = self._with_bounds(variable)
        return index

    def range(self, column: int) -> tuple[float, float]:
        """Its bounds, as far as they are numbers."""
        return self.all[column].lower, self.all[column].upper

    def continuous(self) -> list[VarData]:
        """The continuous Vars that were met, in declaration order."""
        met = {id(v) for v in self._variables if v.is_continuous()}
        found: dict[int, VarData] = {}
        everywhere: Any = {"descend_into": (pyo.Block, Disjunct)}
        for variable in self._model.model().component_data_objects(pyo.Var, **everywhere):
            if id(variable) in met:
                found[id(variable)] = variable
        return list(found.values())

    def _with_bounds(self, variable: VarData) -> Column:
        name = f"Var '{variable.name}'"
        if not (variable.is_continuous() or variable.is_integer() or variable.is_binary()):
            raise RuleError(
                f"{name}: the domain {variable.domain} is not understood. Use Reals, Integers, "
                "Binary or an interval of them; other sets are Disjunctions of equalities."
            )
        integer = not variable.is_continuous()
        if variable.fixed:  # only an output comes here fixed
            lower = upper = self._expressions.linear(variable, name).constant.number
        else:
            lower = self._bound(variable, variable.lower, -1.0, name)
            upper = self._bound(variable, variable.upper, 1.0, name)
        if lower > upper:
            raise RuleError(f"{name}: its lower bound {lower:g} is above its upper {upper:g}.")
        if integer:
            if not (math.isfinite(lower) and math.isfinite(upper)):
                raise RuleError(
                    f"{name} is integer without finite bounds. Give it bounds: they make the "
                    "search for its value finite."
                )
            off = TOLERANCES.integer
            lower, upper = math.ceil(lower - off), math.floor(upper + off)
            if lower > upper:
                raise RuleError(f"{name}: no whole number lies within its bounds.")
        return Column(variable.name, float(lower), float(upper), integer)

    def _bound(self, variable: VarData, bound: Any, side: float, name: str) -> float:
        """A bound as a number; one that depends on the inputs becomes a global row instead."""
        unbounded = side * math.inf
        if bound is None:
            return unbounded
        form = self._expressions.linear(bound, name)
        if not form.is_constant:
            raise RuleError(f"{name}: its bound depends on another variable.")
        if form.constant.is_number:
            return form.constant.number
        role = Role.UPPER if side > 0 else Role.LOWER
        variable_form = self._expressions.linear(variable, name)
        row = variable_form - form if side > 0 else form - variable_form
        name = f"{role} bound of {variable.name}"
        self._rows.everywhere += self._rows.add([(row, False)], name, role)
        return unbounded
