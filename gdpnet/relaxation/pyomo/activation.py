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
from gdpnet.relaxation.pyomo import prices, walk
from gdpnet.relaxation.pyomo.provenance import note_copy
from gdpnet.rules.associations import representative
from gdpnet.rules.conditions import ACTIVE_WHEN


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
    constraints that hold always. Those inside a disjunct stay rows of it, unless they have a price:
    then they are a rule that is nested there.

    Args:
        model: changed in place, after what does not apply was switched off.

    Returns:
        The rules, by the name of the constraint.
    """
    given = prices.entries(model)
    every = _conditional_constraints(model)
    rules = {}
    for constraint in every.values():
        within, price = walk.enclosing_disjunct(constraint), given.of(constraint)
        if within is not None and price is None:
            continue
        block = model if within is None else within
        if block.component(_RULES) is None:
            block.add_component(_RULES, Disjunction(pyo.Any))
        block.component(_RULES)[constraint.name] = [[constraint.expr]]
        rule = block.component(_RULES)[constraint.name]
        note_copy(rule.disjuncts[0].constraint[1], constraint)
        if price is not None:
            prices.buy_off(rule, price, constraint)
        constraint.deactivate()
        if within is None:
            rules[constraint.name] = rule
    return rules


_RULES = "_gdpnet_conditional"


def conditional_constraints(model: Any) -> dict[str, Any]:
    """Constraints that have a condition, and stand in no disjunct, by name."""
    every = _conditional_constraints(model)
    return {name: c for name, c in every.items() if walk.enclosing_disjunct(c) is None}


def _conditional_constraints(model: Any) -> dict[str, Any]:
    """Active constraints that have a condition, by name."""
    found: dict[str, Any] = {}
    for component, _ in _conditions(model):
        members: list[Any] = []
        if component.ctype is pyo.Constraint:
            members = list(component.values()) if component.is_indexed() else [component]
        elif component.ctype is pyo.Block:
            blocks = component.values() if component.is_indexed() else [component]
            members = [c for block in blocks if block.active for c in walk.constraints(block)]
        for constraint in members:
            if constraint.active:
                found[constraint.name] = constraint
    return found


def _conditions(model: Any) -> list[tuple[Any, Any]]:
    found = []
    blocks = model.block_data_objects(active=True, descend_into=(pyo.Block, Disjunct))
    for block in blocks:
        suffix = block.component(ACTIVE_WHEN)
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
            f"{ACTIVE_WHEN} of '{component.name}': the condition has no value ({error}). Give "
            "every Param in it a value, or pass x."
        ) from None
