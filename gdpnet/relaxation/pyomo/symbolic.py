"""Rows whose coefficients keep the Params they were written with, and back to Pyomo."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyomo.environ as pyo
from pyomo.common.numeric_types import native_numeric_types
from pyomo.core.base.boolean_var import BooleanVarData
from pyomo.core.base.param import ParamData
from pyomo.core.base.var import VarData
from pyomo.core.expr.numeric_expr import (
    LinearExpression,
    MonomialTermExpression,
    NPV_Expr_ifExpression,
    SumExpression,
)

from gdpnet.ir.atoms import Tree
from gdpnet.ir.linear import Coefficient, LinearForm
from gdpnet.rules.associations import binary_of, identity, representative
from gdpnet.rules.expressions import ExpressionReader
from gdpnet.rules.functions import maximum, minimum


class SymbolicReader(ExpressionReader):
    """Reads linear expressions; every mutable Param, and every fixed Var, is a symbol.

    Args:
        fixed_are_constants: whether a fixed Var counts as a constant (whose value may be changed
            later) or as a variable.

    Attributes:
        variables: Var of each column of the forms.
        constants: Param or fixed Var of each input of the atoms.
        booleans: BooleanVar of each literal, of those that are one the first; None for a helper.
        fixed: literals of fixed BooleanVars whose binary is not, since it was last cleared.
    """

    def __init__(self, fixed_are_constants: bool = True) -> None:
        super().__init__(self.column, self._constant, self.boolean, self._note_fixed)
        self._fixed_are_constants = fixed_are_constants
        self.variables: list[VarData] = []
        self.constants: list[Any] = []
        self.booleans: list[BooleanVarData | None] = []
        self.fixed: dict[int, None] = {}
        self._columns: dict[int, int] = {}
        self._constants_of: dict[int, int] = {}
        self._boolean_of: dict[int, int] = {}
        self._written: dict[Tree, Any] = {}

    # The lists keep what they are keyed by alive, so an id is never used twice.

    def column(self, variable: VarData, owner: str = "") -> int:
        """Column of a Var."""
        return _number(self._columns, self.variables, variable)

    def boolean(self, variable: BooleanVarData, owner: str = "") -> int:
        """Index of a BooleanVar; one for all that are one variable."""
        key = id(identity(variable))
        if key not in self._boolean_of:
            self._boolean_of[key] = len(self.booleans)
            self.booleans.append(representative(variable))
        return self._boolean_of[key]

    def _note_fixed(self, variable: BooleanVarData, value: bool) -> None:
        binary = binary_of(variable)
        if binary is not None and not binary.fixed:
            literal = self.boolean(variable) + 1
            self.fixed[literal if value else -literal] = None

    def new_helper(self, name: str = "") -> int:
        """Index of a boolean that no component stands for."""
        self.booleans.append(None)
        return len(self.booleans) - 1

    def _constant(self, component: Any) -> int:
        return _number(self._constants_of, self.constants, component)

    def leaf(self, expression: Any, owner: str) -> LinearForm | None:
        """As in `ExpressionReader`, with Params, and fixed Vars, as inputs."""
        if isinstance(expression, VarData) and expression.fixed:
            if self._fixed_are_constants:
                return LinearForm(Coefficient.of(("input", self._constant(expression))))
            return LinearForm(columns={self.column(expression): Coefficient(1.0)})
        if isinstance(expression, ParamData):
            return LinearForm(Coefficient.of(("input", self._constant(expression))))
        return super().leaf(expression, owner)

    def sides(self, constraint: Any) -> tuple[LinearForm | None, LinearForm, LinearForm | None]:
        """Lower side, body and upper side of a ConstraintData; None where there is no side."""
        owner = f"Constraint '{constraint.name}'"
        lower, upper = constraint.lower, constraint.upper
        return (
            None if lower is None else self.linear(lower, owner),
            self.linear(constraint.body, owner),
            None if upper is None else self.linear(upper, owner),
        )

    def variables_of(self, constraint: Any) -> list[VarData]:
        """Vars of a constraint, in the order of its terms."""
        return [self.variables[column] for column, _ in self.sides(constraint)[1]]

    def written(self, coefficient: Coefficient) -> Any:
        """A coefficient as a Pyomo expression, or a number."""
        total: Any = coefficient.number
        for atom, multiplier in coefficient.atoms.items():
            if atom not in self._written:
                self._written[atom] = pyomo_expression(atom, self.constants)
            term = self._written[atom]
            if multiplier == -1.0:
                term = -term
            elif multiplier != 1.0:
                term = multiplier * term
            total = term if total.__class__ is float and total == 0.0 else total + term
        return total


def _number(known: dict[int, int], listed: list[Any], component: Any) -> int:
    index = known.get(id(component))
    if index is None:
        index = known[id(component)] = len(listed)
        listed.append(component)
    return index


def linear_expression(terms: Iterable[tuple[Any, Any]]) -> Any:
    """`sum(coefficient * variable)`, kept as a sum even where it has one term or none.

    Args:
        terms: coefficients (numbers, or expressions of Params and fixed Vars) and Vars.
    """
    summands = []
    plain = True
    for coefficient, variable in terms:
        if coefficient.__class__ in native_numeric_types or not (
            coefficient.is_potentially_variable()
        ):
            summands.append(MonomialTermExpression((coefficient, variable)))
        else:  # a fixed Var as a coefficient
            summands.append(coefficient * variable)
            plain = False
    return LinearExpression(summands) if plain else SumExpression(summands)


def pyomo_expression(tree: Tree, inputs: Sequence[Any]) -> Any:
    """A tree of `gdpnet.ir.atoms` as a Pyomo expression.

    Args:
        tree: an expression or condition over the inputs.
        inputs: Param (or other component) of each input.
    """
    kind = tree[0]
    if kind == "number":
        return tree[1]
    if kind == "input":
        return inputs[tree[1]]
    if kind in ("true", "false"):
        return kind == "true"
    parts = [pyomo_expression(part, inputs) for part in tree[1:]]
    write = _WRITERS.get(kind)
    if write is not None:
        return write(*parts)
    return getattr(pyo, kind)(*parts)  # exp, log, ...


def _sum(*parts: Any) -> Any:
    return sum(parts[1:], parts[0])


def _product(*parts: Any) -> Any:
    value = parts[0]
    for part in parts[1:]:
        value = value * part
    return value


def _if(test: Any, then: Any, other: Any) -> Any:
    # pyo.Expr_if makes an expression that counts as variable, and solver interfaces then refuse
    # it as a coefficient.
    branches = (part for part in (then, other) if part.__class__ not in native_numeric_types)
    if any(part.is_potentially_variable() for part in branches):
        return pyo.Expr_if(IF=test, THEN=then, ELSE=other)
    return NPV_Expr_ifExpression((test, then, other))


_WRITERS: dict[str, Any] = {
    "sum": _sum,
    "product": _product,
    "divide": lambda a, b: a / b,
    "power": lambda a, b: a**b,
    "abs": abs,
    "max": maximum,
    "min": minimum,
    "if": _if,
    "<=": lambda a, b: a <= b,
    "<": lambda a, b: a < b,
    "==": lambda a, b: a == b,
    "and": lambda *parts: pyo.land(*parts),
    "or": lambda *parts: pyo.lor(*parts),
    "not": lambda part: pyo.lnot(part),
}
