"""Which components a model may hold besides what is read, and what to do about others."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo
from pyomo.core.base.set import RangeSet, Set
from pyomo.gdp import Disjunct
from pyomo.network import Port

from gdpnet.errors import RuleError

PASSIVE = {
    *(pyo.Var, pyo.Param, Set, RangeSet, pyo.Expression, pyo.BooleanVar, pyo.Suffix),
    *(pyo.BuildAction, pyo.BuildCheck, pyo.ExternalFunction, Port, Disjunct),
}
"""What a block may hold without changing the meaning of its constraints."""

# What to do with components of Pyomo's packages beside the core.
_FIRST = {
    "Arc": "Expand it first: pyo.TransformationFactory('network.expand_arcs').apply_to(model).",
    **dict.fromkeys(
        ("ContinuousSet", "DerivativeVar", "Integral"),
        "Discretise it first: pyo.TransformationFactory('dae.finite_difference') or "
        "pyo.TransformationFactory('dae.collocation'), .apply_to(model).",
    ),
}


def is_passive(component: Any) -> bool:
    """Whether a component asks for nothing: by its kind, or since it is switched off."""
    kind = component.ctype
    if kind in PASSIVE or (hasattr(component, "active") and not component.active):
        return True
    # A Set of the points that it was given.
    return kind.__name__ == "ContinuousSet" and bool(component.get_discretization_info())


def not_understood(component: Any) -> RuleError:
    """What to say of an active component of another kind."""
    kind = component.ctype.__name__
    article = "an" if kind[0] in "AEIO" else "a"
    instead = _FIRST.get(kind, "Write it with Constraints and Disjunctions, or deactivate it.")
    return RuleError(
        f"'{component.name}' is {article} {kind}, which gdpnet does not understand. {instead}"
    )
