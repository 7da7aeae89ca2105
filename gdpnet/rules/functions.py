"""Functions of inputs that Python's own max and min cannot write for a Pyomo Param."""

from __future__ import annotations

from typing import Any

from gdpnet.extras import need


def maximum(first: Any, *others: Any) -> Any:
    """The largest of several expressions of the inputs, as a Pyomo expression.

    Args:
        first: expression or number.
        *others: further ones.

    Example:
        >>> import pyomo.environ as pyo, gdpnet
        >>> m = pyo.ConcreteModel()
        >>> m.Ta = pyo.Param(mutable=True, initialize=26.0)
        >>> pyo.value(gdpnet.maximum(0, m.Ta - 20))
        6.0
    """
    need("pyomo.gdp", None, "gdpnet.maximum needs")
    from pyomo.core.expr.numeric_expr import NPV_MaxExpression

    return _extreme(NPV_MaxExpression, max, (first, *others))


def minimum(first: Any, *others: Any) -> Any:
    """The smallest of several expressions of the inputs, as a Pyomo expression.

    Args:
        first: expression or number.
        *others: further ones.

    Example:
        >>> import pyomo.environ as pyo, gdpnet
        >>> m = pyo.ConcreteModel()
        >>> m.Ta = pyo.Param(mutable=True, initialize=26.0)
        >>> pyo.value(gdpnet.minimum(30, m.Ta))
        26.0
    """
    need("pyomo.gdp", None, "gdpnet.minimum needs")
    from pyomo.core.expr.numeric_expr import NPV_MinExpression

    return _extreme(NPV_MinExpression, min, (first, *others))


def relu(expression: Any) -> Any:
    """`max(0, expression)` of an expression of the inputs, as a Pyomo expression.

    Args:
        expression: expression or number.

    Example:
        >>> import pyomo.environ as pyo, gdpnet
        >>> m = pyo.ConcreteModel()
        >>> m.Ta = pyo.Param(mutable=True, initialize=14.0)
        >>> pyo.value(gdpnet.relu(m.Ta - 20))
        0
    """
    return maximum(0, expression)


def _extreme(npv: type, of_numbers: Any, arguments: tuple[Any, ...]) -> Any:
    from pyomo.common.numeric_types import native_numeric_types
    from pyomo.core.expr import numeric_expr

    if all(argument.__class__ in native_numeric_types for argument in arguments):
        return of_numbers(arguments)
    if any(getattr(a, "is_potentially_variable", bool)() for a in arguments):
        # Variables stand in it; RuleModel refuses it with the constraint's name.
        kind = {"NPV_MaxExpression": "MaxExpression", "NPV_MinExpression": "MinExpression"}
        return getattr(numeric_expr, kind[npv.__name__])(arguments)
    return npv(arguments)
