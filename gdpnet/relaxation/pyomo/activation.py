"""Switching off what does not apply at given inputs."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo
import torch
from pyomo.core.base.boolean_var import BooleanVarData
from pyomo.core.expr.visitor import identify_components
from pyomo.gdp import Disjunct, Disjunction
from pyomo.gdp.disjunct import DisjunctionData

from gdpnet.errors import RuleError
from gdpnet.ir.rules import called_condition
from gdpnet.relaxation.pyomo import walk
from gdpnet.relaxation.pyomo.provenance import note_copy
from gdpnet.rules.associations import representative

SUFFIX = "active_when"


def switch_off_inactive(model: Any, inputs: list[Any]) -> list[DisjunctionData]:
    """Deactivate what `active_when` says does not apply at the values the Params have.

    Rules go with their disjuncts, and with the propositions that name their indicators.

    Args:
        model: changed in place.
        inputs: Params that a condition given as a function expects as columns of x.

    Returns:
        The Disjunctions that were switched off, nested ones included.
    """
    off: dict[int, DisjunctionData] = {}
    others = []
    for component, condition in _conditions(model):
        if _holds(component, condition, inputs):
            continue
        if component.ctype is Disjunction:
            rules = component.values() if component.is_indexed() else [component]
            off.update((id(rule), rule) for rule in rules)
            continue
        others.append(component)
        if component.ctype is pyo.Block:
            blocks = component.values() if component.is_indexed() else [component]
            for block in blocks:
                off.update((id(rule), rule) for rule in walk.top_level(block))
    switched = {id(rule): rule for rule in walk.tree(off.values())}
    indicators = {id(d.indicator_var) for rule in switched.values() for d in rule.disjuncts}
    for constraint in list(walk.everywhere(model, pyo.LogicalConstraint)):
        named = identify_components(constraint.expr, _BOOLEANS)
        if any(id(representative(b)) in indicators for b in named):
            constraint.deactivate()
    walk.switch_off(off.values())
    for component in others:
        component.deactivate()
    return list(switched.values())


_BOOLEANS = {pyo.BooleanVar, BooleanVarData}


def as_rules(model: Any) -> dict[str, DisjunctionData]:
    """Turn constraints that have a condition into rules of one disjunct.

    That is what they are: convexified by themselves, or merged with other rules, unlike
    constraints that hold always. Those inside a disjunct stay rows of it.

    Args:
        model: changed in place, after what does not apply was switched off.

    Returns:
        The rules, by the name of the constraint.
    """
    outside = [c for c in conditional_constraints(model).values() if c.active]
    if not outside:
        return {}
    model._gdpnet_conditional = Disjunction(pyo.Any)
    rules = {}
    for constraint in outside:
        model._gdpnet_conditional[constraint.name] = [[constraint.expr]]
        rules[constraint.name] = rule = model._gdpnet_conditional[constraint.name]
        note_copy(rule.disjuncts[0].constraint[1], constraint)
        constraint.deactivate()
    return rules


def conditional_constraints(model: Any) -> dict[str, Any]:
    """Constraints that have a condition, and stand in no disjunct, by name."""
    found: dict[str, Any] = {}
    for component, _ in _conditions(model):
        members: list[Any] = []
        if component.ctype is pyo.Constraint:
            members = list(component.values()) if component.is_indexed() else [component]
        elif component.ctype is pyo.Block:
            blocks = component.values() if component.is_indexed() else [component]
            members = [c for block in blocks if block.active for c in walk.constraints(block)]
        for constraint in members:
            if constraint.active and walk.enclosing_disjunct(constraint) is None:
                found[constraint.name] = constraint
    return found


def _conditions(model: Any) -> list[tuple[Any, Any]]:
    found = []
    blocks = model.block_data_objects(active=True, descend_into=(pyo.Block, Disjunct))
    for block in blocks:
        suffix = block.component(SUFFIX)
        if suffix is not None and suffix.ctype is pyo.Suffix:
            found += list(suffix.items())
    return found


def _holds(component: Any, condition: Any, inputs: list[Any]) -> bool:
    if callable(condition) and not hasattr(condition, "is_expression_type"):
        values = [float(pyo.value(param)) for param in inputs]
        x = torch.tensor([values], dtype=torch.float64)
        return bool(called_condition(component.name, condition, x)[0])
    try:
        return bool(pyo.value(condition))
    except (ValueError, TypeError) as error:
        raise RuleError(
            f"{SUFFIX} of '{component.name}': the condition has no value ({error}). Give every "
            "Param in it a value, or pass x."
        ) from None
