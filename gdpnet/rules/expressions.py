"""Pyomo expressions, read into linear forms, conditions and propositions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pyomo.core.expr as expressions
import torch
from pyomo.common.numeric_types import native_logical_types, native_numeric_types
from pyomo.core.base.boolean_var import BooleanVarData
from pyomo.core.base.expression import NamedExpressionData
from pyomo.core.base.param import ParamData
from pyomo.core.base.units_container import _PyomoUnit
from pyomo.core.base.var import VarData
from pyomo.core.expr import logical_expr, numeric_expr, relational_expr
from pyomo.core.expr.numvalue import NumericConstant

from gdpnet.errors import RuleError
from gdpnet.ir import atoms
from gdpnet.ir.atoms import Tree
from gdpnet.ir.linear import Coefficient, LinearForm
from gdpnet.ir.logic import Proposition
from gdpnet.rules import associations


class ExpressionReader:
    """Reads the expressions of one model.

    Args:
        column: column of z for a Var that is not fixed.
        input_column: column of x for a mutable Param, or None where it is not an input.
        boolean: index of the boolean of a BooleanVar that is not fixed.
        fixed: told of every fixed BooleanVar that stands in logic, and its value.
    """

    def __init__(
        self,
        column: Callable[[VarData, str], int],
        input_column: Callable[[ParamData], int | None],
        boolean: Callable[[BooleanVarData, str], int],
        fixed: Callable[[BooleanVarData, bool], None],
    ) -> None:
        self._column = column
        self._input_column = input_column
        self._boolean = boolean
        self._fixed = fixed

    # ---- numbers -------------------------------------------------------------------------

    def linear(self, expression: Any, owner: str) -> LinearForm:
        """An expression that is linear in the variables.

        Args:
            expression: Pyomo expression or number.
            owner: the component it stands in, for messages.
        """
        # With a stack of its own: a balance over thousands of periods is nested as deep.
        waiting: list[tuple[Any, int]] = [(expression, -1)]
        done: list[LinearForm] = []
        while waiting:
            node, parts = waiting.pop()
            if parts < 0:
                leaf = self.leaf(node, owner)
                if leaf is not None:
                    done.append(leaf)
                    continue
                arguments = self.arguments(node, owner)
                waiting.append((node, len(arguments)))
                waiting.extend((argument, -1) for argument in reversed(arguments))
            else:
                forms = done[len(done) - parts :]
                del done[len(done) - parts :]
                done.append(self.node(node, forms, owner))
        return done[0]

    def node(self, expression: Any, forms: list[LinearForm], owner: str) -> LinearForm:
        """An expression whose arguments are read.

        Raises:
            Nonlinear: it is not linear in the variables.
        """
        read = _READERS.get(expression.__class__, ExpressionReader._named)
        return read(self, expression, forms, owner)

    def kind(self, expression: Any) -> str:
        """What is done to the arguments of an expression: "sum", "product", ..., or "named"."""
        return _READERS.get(expression.__class__, ExpressionReader._named).__name__[1:]

    def leaf(self, expression: Any, owner: str) -> LinearForm | None:
        """A number, Var or Param as a form; None for what has arguments."""
        if expression.__class__ in native_numeric_types:
            return LinearForm(Coefficient(float(expression)))
        if isinstance(expression, NumericConstant):  # what an Expression keeps of a number
            return LinearForm(Coefficient(float(expression.value)))
        if isinstance(expression, VarData):
            if expression.fixed:
                return LinearForm(Coefficient(_value(expression, owner)))
            return LinearForm(columns={self._column(expression, owner): Coefficient(1.0)})
        if isinstance(expression, ParamData):
            column = self._input_column(expression)
            if column is None:
                return LinearForm(Coefficient(_value(expression, owner)))
            return LinearForm(Coefficient.of(("input", column)))
        if isinstance(expression, _PyomoUnit):  # as in Pyomo, which converts nothing by itself
            return LinearForm(Coefficient(1.0))
        return None

    def arguments(self, expression: Any, owner: str) -> list[Any]:
        """Arguments that are linear forms themselves."""
        if isinstance(expression, NamedExpressionData):
            if expression.expr is None:
                raise RuleError(f"{owner}: Expression '{expression.name}' has no value.")
            return [expression.expr]
        read = _READERS.get(expression.__class__)
        if read is None:
            raise RuleError(
                f"{owner}: {shown(expression)} is of a kind that rules cannot hold "
                f"({expression.__class__.__name__}). Rules are linear in the outputs; inputs "
                "(mutable Params) may enter through + - * / **, exp, log, abs and the like, "
                "Expr_if, gdpnet.maximum, gdpnet.minimum and gdpnet.relu."
            )
        if read is ExpressionReader._if:
            return list(expression.args[1:])
        return list(expression.args) if read is not ExpressionReader._sum else _terms(expression)

    def _named(self, expression: Any, forms: list[LinearForm], owner: str) -> LinearForm:
        return forms[0]

    def _sum(self, expression: Any, forms: list[LinearForm], owner: str) -> LinearForm:
        # Adding forms one by one would copy the growing sum each time.
        number = 0.0
        atoms: dict[Tree, float] = {}
        columns: dict[int, Coefficient] = {}
        for form in forms:
            number += form.constant.number
            for atom, multiplier in form.constant.atoms.items():
                atoms[atom] = atoms.get(atom, 0.0) + multiplier
            for column, coefficient in form:
                known = columns.get(column)
                columns[column] = coefficient if known is None else known + coefficient
        constant = Coefficient(number, {atom: c for atom, c in atoms.items() if c != 0.0})
        return LinearForm(constant, {c: a for c, a in columns.items() if not a.is_zero})

    def _product(self, expression: Any, forms: list[LinearForm], owner: str) -> LinearForm:
        left, right = forms
        if not left.is_constant:
            left, right = right, left
        if not left.is_constant:
            raise _nonlinear(expression, owner)
        product = right.times(left.constant)
        return product if left.constant.is_number else checked(product, owner)

    def _negation(self, expression: Any, forms: list[LinearForm], owner: str) -> LinearForm:
        return forms[0].times(Coefficient(-1.0))

    def _division(self, expression: Any, forms: list[LinearForm], owner: str) -> LinearForm:
        above, below = forms
        if not below.is_constant:
            raise _nonlinear(expression, owner)
        divisor = below.constant
        if divisor.is_number:
            if divisor.number == 0.0:
                raise RuleError(f"{owner}: {shown(expression)} divides by zero.")
            return above.times(Coefficient(1.0 / divisor.number))

        def divided(coefficient: Coefficient) -> Coefficient:
            if coefficient.is_zero:
                return coefficient
            return Coefficient.of(("divide", coefficient.tree(), divisor.tree()))

        quotient = LinearForm(divided(above.constant), {c: divided(a) for c, a in above})
        return checked(quotient, owner)

    def _power(self, expression: Any, forms: list[LinearForm], owner: str) -> LinearForm:
        base, exponent = forms
        if not exponent.is_constant:
            raise _nonlinear(expression, owner)
        if exponent.constant.is_number and exponent.constant.number in (0.0, 1.0):
            return base if exponent.constant.number else LinearForm(Coefficient(1.0))
        if not base.is_constant:
            raise _nonlinear(expression, owner)
        return _atom(("power", base.constant.tree(), exponent.constant.tree()), owner)

    def _function(self, expression: Any, forms: list[LinearForm], owner: str) -> LinearForm:
        name = expression.getname()
        if name not in atoms.FUNCTIONS:
            raise RuleError(f"{owner}: the function '{name}' of the inputs is not known.")
        return _atom((name, *_constants(expression, forms, owner)), owner)

    def _extreme(self, expression: Any, forms: list[LinearForm], owner: str) -> LinearForm:
        kind = "max" if isinstance(expression, numeric_expr.MaxExpression) else "min"
        return _atom((kind, *_constants(expression, forms, owner)), owner)

    def _if(self, expression: Any, forms: list[LinearForm], owner: str) -> LinearForm:
        condition = self.condition(expression.args[0], owner)
        chosen, other = forms
        if condition in (atoms.TRUE, atoms.FALSE):
            return chosen if condition == atoms.TRUE else other

        # Coefficient by coefficient, so that the branch not taken is not even evaluated: its
        # values may be NaN there.
        def switched(then: Coefficient, otherwise: Coefficient) -> Coefficient:
            if then.is_number and otherwise.is_number and then.number == otherwise.number:
                return then
            return Coefficient.of(("if", condition, then.tree(), otherwise.tree()))

        none = Coefficient()
        form = LinearForm(
            switched(chosen.constant, other.constant),
            {
                column: switched(chosen.columns.get(column, none), other.columns.get(column, none))
                for column in {**chosen.columns, **other.columns}
            },
        )
        return checked(form, owner)

    # ---- relations -----------------------------------------------------------------------

    def rows(self, relation: Any, owner: str) -> list[tuple[LinearForm, bool]]:
        """A relation as forms `form <= 0` (or `== 0` where the flag is set)."""
        if isinstance(relation, relational_expr.EqualityExpression):
            left, right = (self.linear(argument, owner) for argument in relation.args)
            return [(left - right, True)]
        if isinstance(relation, relational_expr.RangedExpression):
            low, body, high = (self.linear(argument, owner) for argument in relation.args)
            return [(low - body, False), (body - high, False)]
        if isinstance(relation, relational_expr.InequalityExpression):
            left, right = (self.linear(argument, owner) for argument in relation.args)
            return [(left - right, False)]
        raise RuleError(
            f"{owner}: expected an equality or inequality, got {shown(relation)} "
            f"({relation.__class__.__name__})."
        )

    def condition(self, expression: Any, owner: str, depth: int = 0) -> Tree:
        """A condition over the inputs, of which `depth` levels were read already."""
        _refuse_deep(depth, owner, "condition")
        if expression.__class__ in native_logical_types:
            return atoms.TRUE if expression else atoms.FALSE
        if isinstance(expression, relational_expr.RangedExpression):
            low, body, high = (self._input_tree(a, owner, expression) for a in expression.args)
            first, second = ("<" if strict else "<=" for strict in _strictness(expression))
            return ("and", _relation(first, low, body), _relation(second, body, high))
        if isinstance(expression, relational_expr.InequalityExpression):
            left, right = (self._input_tree(a, owner, expression) for a in expression.args)
            return _relation("<" if expression.strict else "<=", left, right)
        if isinstance(expression, relational_expr.EqualityExpression):
            left, right = (self._input_tree(a, owner, expression) for a in expression.args)
            return _relation("==", left, right)
        if isinstance(expression, relational_expr.NotEqualExpression):
            left, right = (self._input_tree(a, owner, expression) for a in expression.args)
            return ("not", _relation("==", left, right))
        if isinstance(expression, logical_expr.BooleanExpression):
            parts = [self.condition(argument, owner, depth + 1) for argument in expression.args]
            if isinstance(expression, logical_expr.AndExpression):
                return ("and", *parts)
            if isinstance(expression, logical_expr.OrExpression):
                return ("or", *parts)
            if isinstance(expression, logical_expr.NotExpression):
                return ("not", parts[0])
            if isinstance(expression, logical_expr.ImplicationExpression):
                return ("or", ("not", parts[0]), parts[1])
            if isinstance(expression, logical_expr.EquivalenceExpression):
                return _both_or_neither(*parts)
            if isinstance(expression, logical_expr.XorExpression):
                return ("not", _both_or_neither(*parts))
        raise RuleError(
            f"{owner}: the condition {shown(expression)} ({expression.__class__.__name__}) is "
            "not understood. Write a relation over inputs (m.Ta >= 28), several joined by "
            "pyo.land, pyo.lor, pyo.lnot, or a function x -> bool (batch,)."
        )

    def _input_tree(self, expression: Any, owner: str, relation: Any) -> Tree:
        form = self.linear(expression, owner)
        if not form.is_constant:
            raise RuleError(
                f"{owner}: the condition {shown(relation)} depends on a variable. When a rule "
                "applies is decided by the inputs alone; write what depends on outputs as a "
                "disjunct instead (gdpnet.implies does that)."
            )
        tree = form.constant.tree()
        _refuse_unusable(tree, owner)
        return tree

    # ---- logic ---------------------------------------------------------------------------

    def proposition(self, expression: Any, owner: str, depth: int = 0) -> Proposition:
        """A proposition over indicators and BooleanVars, of which `depth` levels were read."""
        _refuse_deep(depth, owner, "proposition")
        if expression.__class__ in native_logical_types:
            return ("true",) if expression else ("false",)
        if isinstance(expression, BooleanVarData):
            value = associations.known_value(expression)
            if value is None:
                return ("literal", self._boolean(expression, owner) + 1)
            self._fixed(expression, value)
            return ("true",) if value else ("false",)
        if isinstance(expression, NamedExpressionData):
            return self.proposition(expression.expr, owner, depth + 1)
        kind = _LOGIC.get(expression.__class__)
        if kind is None:
            raise RuleError(
                f"{owner}: {shown(expression)} ({expression.__class__.__name__}) cannot stand in "
                "a LogicalConstraint that gdpnet reads. Use indicator_vars and BooleanVars with "
                "land, lor, lnot, implies, equivalent, xor, exactly, atleast, atmost; write "
                "relations over outputs as Disjunctions, and over inputs as active_when."
            )
        arguments = list(expression.args)
        if kind in ("exactly", "atleast", "atmost"):
            count = self.linear(arguments.pop(0), owner)
            whole = count.is_constant and count.constant.is_number
            if not whole or count.constant.number % 1.0 != 0.0:
                raise RuleError(f"{owner}: {kind} needs a whole number as its first argument.")
            parts = [self.proposition(argument, owner, depth + 1) for argument in arguments]
            return (kind, int(count.constant.number), *parts)
        return (kind, *(self.proposition(part, owner, depth + 1) for part in arguments))


_LOGIC = {
    logical_expr.AndExpression: "and",
    logical_expr.OrExpression: "or",
    logical_expr.NotExpression: "not",
    logical_expr.ImplicationExpression: "implies",
    logical_expr.EquivalenceExpression: "iff",
    logical_expr.XorExpression: "xor",
    logical_expr.ExactlyExpression: "exactly",
    logical_expr.AtLeastExpression: "atleast",
    logical_expr.AtMostExpression: "atmost",
}

_Read = Callable[[ExpressionReader, Any, list[LinearForm], str], LinearForm]
_KINDS: dict[str, _Read] = {
    "SumExpression LinearExpression NPV_SumExpression": ExpressionReader._sum,
    "ProductExpression NPV_ProductExpression MonomialTermExpression": ExpressionReader._product,
    "DivisionExpression NPV_DivisionExpression": ExpressionReader._division,
    "NegationExpression NPV_NegationExpression": ExpressionReader._negation,
    "PowExpression NPV_PowExpression": ExpressionReader._power,
    "UnaryFunctionExpression NPV_UnaryFunctionExpression": ExpressionReader._function,
    "AbsExpression NPV_AbsExpression": ExpressionReader._function,
    "MaxExpression NPV_MaxExpression MinExpression NPV_MinExpression": ExpressionReader._extreme,
    "Expr_ifExpression NPV_Expr_ifExpression": ExpressionReader._if,
}
_READERS = {
    getattr(numeric_expr, name): read for names, read in _KINDS.items() for name in names.split()
}
_SUMS = {kind for kind, read in _READERS.items() if read is ExpressionReader._sum}


def _terms(expression: Any) -> list[Any]:
    """Terms of a sum: Pyomo nests a sum of n Params n deep."""
    terms = []
    waiting = [expression]
    while waiting:
        part = waiting.pop()
        if part.__class__ in _SUMS:
            waiting.extend(reversed(part.args))
        else:
            terms.append(part)
    return terms


def _constants(expression: Any, forms: list[LinearForm], owner: str) -> list[Tree]:
    if not all(form.is_constant for form in forms):
        raise _nonlinear(expression, owner)
    return [form.constant.tree() for form in forms]


def _atom(tree: Tree, owner: str) -> LinearForm:
    """A tree as a form; computed at once where no input stands in it."""
    _refuse_unusable(tree, owner)
    if not atoms.inputs_of(tree):
        empty = torch.zeros(1, 0, dtype=torch.float64)
        return LinearForm(Coefficient(float(atoms.Evaluator(empty)(tree)[0])))
    return LinearForm(Coefficient.of(tree))


def checked(form: LinearForm, owner: str) -> LinearForm:
    """A form whose atoms are new; refused where they are too deep or not finite."""
    for coefficient in (form.constant, *form.columns.values()):
        for atom in coefficient.atoms:
            _refuse_unusable(atom, owner)
    return form


def _refuse_unusable(tree: Tree, owner: str) -> None:
    if atoms.too_deep(tree):
        raise _deep(owner, "expression of the inputs")
    if not atoms.is_finite(tree):
        raise RuleError(
            f"{owner}: an expression of the inputs holds infinity or NaN as a constant. Leave out "
            "the bound or condition that says nothing, or write a large number."
        )


def _refuse_deep(depth: int, owner: str, what: str) -> None:
    if depth > atoms.DEEPEST:
        raise _deep(owner, what)


def _deep(owner: str, what: str) -> RuleError:
    instead = {
        "expression of the inputs": "Compute it beforehand and hand over the result as an input "
        "(a mutable Param)",
        "condition": "Compute it beforehand and hand over the result as an input, or write it as "
        "a function x -> bool (batch,)",
        "proposition": "Give its parts names: BooleanVars that are equivalent to them",
    }
    return RuleError(
        f"{owner}: the {what} is nested more than {atoms.DEEPEST} deep. {instead[what]}."
    )


def _relation(kind: str, left: Tree, right: Tree) -> Tree:
    if left[0] == right[0] == "number":
        a, b = left[1], right[1]
        holds = {"<=": a <= b, "<": a < b, "==": a == b}[kind]
        return atoms.TRUE if holds else atoms.FALSE
    return (kind, left, right)


def _both_or_neither(p: Tree, q: Tree) -> Tree:
    return ("or", ("and", p, q), ("and", ("not", p), ("not", q)))


def _strictness(expression: Any) -> tuple[bool, bool]:
    strict = expression.strict
    return tuple(strict) if isinstance(strict, tuple) else (strict, strict)


def _value(component: Any, owner: str) -> float:
    value = component.value if not isinstance(component, ParamData) else _param_value(component)
    if value is None or not math.isfinite(value):
        raise RuleError(
            f"{owner}: '{component.name}' is used as a constant but its value is {value}. "
            "Give it a finite value, or name it in `inputs` (Params) or `outputs` (Vars)."
        )
    return float(value)


def _param_value(param: ParamData) -> float | None:
    try:
        return expressions.value(param, exception=False)
    except ValueError:  # no value was ever given
        return None


def shown(expression: Any) -> str:
    """What the modeller wrote, for messages."""
    text = str(expression)
    return f"'{text}'" if len(text) <= 80 else f"'{text[:77]}...'"


class Nonlinear(RuleError):  # noqa: N818
    """An expression is not linear in the variables."""


def _nonlinear(expression: Any, owner: str) -> Nonlinear:
    return Nonlinear(
        f"{owner}: {shown(expression)} is not linear in the variables. Rules are linear in the "
        "outputs and auxiliaries; split the rule into disjuncts, or bound the term linearly. "
        "If a Var in it is meant as an input, declare it as a mutable Param."
    )
