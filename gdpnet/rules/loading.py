"""Values of a projection, put back into a Pyomo model by the names of its components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyomo.environ as pyo
from pyomo.core.base.block import BlockData
from pyomo.gdp import Disjunct

from gdpnet.errors import InputError
from gdpnet.ir.data import RuleData
from gdpnet.rules.associations import binary_of, identity

_EVERYWHERE: Any = {"descend_into": (pyo.Block, Disjunct)}


def load(
    model: Any, data: RuleData, x: Sequence[float], z: Sequence[float], truth: Sequence[bool]
) -> None:
    """Set inputs, outputs, auxiliaries, indicators and BooleanVars; what is fixed stays.

    Args:
        model: the model, or a Block of it.
        data: the rules that were read from it.
        x: inputs, `p`.
        z: outputs and auxiliaries, `n`.
        truth: of the booleans.
    """
    if not isinstance(model, BlockData):
        raise InputError(
            f"model: expected a Pyomo ConcreteModel or Block, got {type(model).__name__}."
        )
    root = model.model()
    params = _named(root, data.inputs, pyo.Param)
    variables = _named(root, [column.name for column in data.columns], pyo.Var)
    for name, value in zip(data.inputs, x, strict=True):
        params[name].set_value(value)
    for column, value in zip(data.columns, z, strict=True):
        variable = variables[column.name]
        if not variable.fixed:
            # As it was returned, which may be beyond a bound by a rounding error.
            variable.set_value(round(value) if column.integer else value, skip_validation=True)
    _load_booleans(root, {b.name: bool(t) for b, t in zip(data.booleans, truth, strict=True)})


def _named(root: Any, names: Sequence[str], kind: Any) -> dict[str, Any]:
    """Components of a kind by their names."""
    found: dict[str, Any] = {}
    for component in root.component_objects(kind, **_EVERYWHERE):
        if kind is pyo.Var:
            found.update((data.name, data) for data in component.values())
        elif component.mutable:  # its data is made when it is asked for
            found.update((component[i].name, component[i]) for i in component.index_set())
    for name in names:
        if name not in found:
            raise InputError(
                f"model: '{root.name}' has no {kind.__name__} '{name}'. Load into the model that "
                "the rules were read from, or into one with the same names."
            )
    return found


def _load_booleans(root: Any, truth: Mapping[str, bool]) -> None:
    """Indicators and BooleanVars; those that are one variable have one value.

    Where an indicator stands in logic a boolean of the same name, which comes later, has its
    value there; and so in `truth`.
    """
    booleans = list(root.component_data_objects(pyo.BooleanVar, **_EVERYWHERE))
    disjuncts = root.component_data_objects(Disjunct, **_EVERYWHERE)
    named = {disjunct.name: disjunct.indicator_var for disjunct in disjuncts}
    named.update((boolean.name, boolean) for boolean in booleans)
    values = {id(identity(named[n])): value for n, value in truth.items() if n in named}
    for boolean in booleans:
        binary = binary_of(boolean)
        value = values.get(id(identity(boolean)))
        if value is None and binary is not None and binary.value is not None:
            value = binary.value > 0.5
        if value is None or boolean.fixed:
            continue
        boolean.set_value(value)
        if binary is not None and not binary.fixed:
            binary.set_value(int(value))
