"""Going through the disjunctive parts of a Pyomo model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyomo.environ as pyo
from pyomo.core.base.block import BlockData
from pyomo.core.base.component import ComponentData
from pyomo.gdp import Disjunct, Disjunction
from pyomo.gdp.disjunct import DisjunctData, DisjunctionData

from gdpnet.errors import RuleError


def constraints(block: Any) -> list[Any]:
    """Active constraints of a block or disjunct, those of its disjuncts left out."""
    return list(block.component_data_objects(pyo.Constraint, active=True, descend_into=pyo.Block))


def everywhere(block: Any, kind: Any) -> Iterator[Any]:
    """Active components of a kind, those inside disjuncts included."""
    return block.component_data_objects(kind, active=True, descend_into=(pyo.Block, Disjunct))


def nested(disjunct: DisjunctData) -> list[DisjunctionData]:
    """Active Disjunctions that stand directly in a disjunct."""
    return list(disjunct.component_data_objects(Disjunction, active=True, descend_into=pyo.Block))


def top_level(block: Any) -> list[DisjunctionData]:
    """Active Disjunctions of a block that no disjunct holds, in declaration order."""
    return list(block.component_data_objects(Disjunction, active=True, descend_into=pyo.Block))


def possible(disjunction: DisjunctionData) -> list[DisjunctData]:
    """Disjuncts that may be chosen: active, and not fixed to false."""
    return [
        d
        for d in disjunction.disjuncts
        if d.active and not (d.indicator_var.fixed and not d.indicator_var.value)
    ]


def tree(disjunctions: Iterable[DisjunctionData]) -> Iterator[DisjunctionData]:
    """Disjunctions and all that are nested in their disjuncts, parents first."""
    for disjunction in disjunctions:
        yield disjunction
        for disjunct in disjunction.disjuncts:
            if disjunct.active:
                yield from tree(nested(disjunct))


def enclosing_disjunct(component: Any) -> DisjunctData | None:
    """The innermost Disjunct that a component stands in."""
    block = component.parent_block()
    while block is not None:
        if isinstance(block, DisjunctData):
            return block
        block = block.parent_block()
    return None


def switch_off(disjunctions: Iterable[DisjunctionData]) -> None:
    """Deactivate Disjunctions with their disjuncts; indicators keep their state.

    Pyomo fixes the indicator of a deactivated Disjunct to false, which would be wrong where its
    binary stands in a constraint.
    """
    for disjunction in list(tree(disjunctions)):
        disjunction.deactivate()
        for disjunct in disjunction.disjuncts:
            if not disjunct.active:
                continue
            indicator = disjunct.indicator_var
            fixed, value = indicator.fixed, indicator.value
            disjunct.deactivate()
            if not fixed:
                indicator.unfix()
            indicator.set_value(value)


def disjunctions_of(targets: Any, instance: Any, option: str) -> list[DisjunctionData]:
    """Top-level Disjunctions that targets name, in the order given; each once.

    Args:
        targets: Blocks, Disjunctions, or None for the whole instance.
        instance: what the transformation is applied to.
        option: name of the option, for messages.
    """
    if targets is None:
        return top_level(instance)
    found: dict[int, DisjunctionData] = {}
    for target in targets:
        if isinstance(target, BlockData) or getattr(target, "ctype", None) is pyo.Block:
            blocks = target.values() if target.is_indexed() else [target]
            members = [d for block in blocks if block.active for d in top_level(block)]
        else:
            members = resolve(target, instance, option)
        found.update((id(d), d) for d in members)
    return list(found.values())


def resolve(item: Any, instance: Any, option: str) -> list[DisjunctionData]:
    """The active, not nested DisjunctionDatas that an item of an option stands for.

    Args:
        item: a Disjunction, one of its members, or a name.
        instance: what the transformation is applied to.
        option: name of the option, for messages.
    """
    component = instance.find_component(item) if isinstance(item, str) else item
    if component is None:
        known = ", ".join(d.name for d in top_level(instance)) or "none"
        raise RuleError(
            f"{option}: there is no Disjunction '{item}' in '{instance.name}'. Its active "
            f"Disjunctions: {known}."
        )
    if getattr(component, "ctype", None) is not Disjunction:
        shown = component.name if isinstance(component, ComponentData) else repr(component)
        raise RuleError(f"{option}: '{shown}' is no Disjunction.")
    if component.model() is not instance.model():
        raise RuleError(
            f"{option}: Disjunction '{component.name}' does not belong to the model "
            f"'{instance.model().name}' that is transformed."
        )
    members = list(component.values()) if component.is_indexed() else [component]
    active = [d for d in members if d.active]
    if not active:
        raise RuleError(
            f"{option}: Disjunction '{component.name}' is deactivated. Activate it, or leave it "
            "out."
        )
    for disjunction in active:
        parent = enclosing_disjunct(disjunction)
        if parent is not None:
            raise RuleError(
                f"{option}: Disjunction '{disjunction.name}' is nested in Disjunct "
                f"'{parent.name}'. Name the Disjunction of that Disjunct; what is nested in it "
                "comes along."
            )
    return active
