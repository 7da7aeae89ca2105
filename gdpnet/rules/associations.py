"""BooleanVars that are one variable: those with the same associated binary Var.

`Y.associate_binary_var(b)` says that Y is b; Pyomo's transformations write b wherever Y stands. b
may be the binary of a Disjunct's indicator, or the indicator itself: then Y is that indicator.
"""

from __future__ import annotations

from typing import Any

from pyomo.core.base.boolean_var import BooleanVarData
from pyomo.core.base.var import VarData
from pyomo.gdp.disjunct import AutoLinkedBinaryVar

from gdpnet.errors import RuleError


def binary_of(boolean: BooleanVarData) -> VarData | None:
    """The binary Var that a BooleanVar is, or None where it has none."""
    partner: Any = boolean.get_associated_binary()
    while isinstance(partner, BooleanVarData):
        partner = partner.get_associated_binary()
    if partner is not None and not _is_binary(partner):
        raise RuleError(
            f"BooleanVar '{boolean.name}' is associated with Var '{partner.name}', which is not "
            "binary. Give that Var the domain Binary, or associate another one."
        )
    return partner


def identity(boolean: BooleanVarData) -> Any:
    """What BooleanVars that are one variable have in common: their binary, or else themselves."""
    binary = binary_of(boolean)
    return boolean if binary is None else binary


def representative(boolean: BooleanVarData) -> BooleanVarData:
    """The Disjunct's indicator that a BooleanVar is, or else the BooleanVar."""
    binary = binary_of(boolean)
    return binary.get_associated_boolean() if isinstance(binary, AutoLinkedBinaryVar) else boolean


def known_value(boolean: BooleanVarData) -> bool | None:
    """The value that a BooleanVar is fixed to, by itself or through its binary; None if free."""
    binary = binary_of(boolean)
    known: dict[str, Any] = {}
    if boolean.fixed:
        known[f"BooleanVar '{boolean.name}'"] = boolean.value
    if binary is not None and binary.fixed:
        known[f"Var '{binary.name}'"] = binary.value
    elif binary is not None and (binary.lb > 0 or binary.ub < 1):
        known[f"Var '{binary.name}' (by its bounds)"] = binary.lb > 0
    for name, value in known.items():
        if value is None:
            raise RuleError(f"{name} is fixed but has no value. Give it one, or unfix it.")
    values = {name: value > 0.5 for name, value in known.items()}
    if len(set(values.values())) > 1:
        said = " and ".join(f"{name} is {value}" for name, value in values.items())
        raise RuleError(f"{said}, but they are one variable (associate_binary_var).")
    return next(iter(values.values()), None)


def _is_binary(partner: Any) -> bool:
    if not isinstance(partner, VarData) or partner.is_continuous():
        return False
    return partner.lb is not None and partner.ub is not None and partner.lb >= 0 and partner.ub <= 1
