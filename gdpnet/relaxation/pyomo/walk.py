"""Going through the disjunctive parts of a Pyomo model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyomo.environ as pyo
from pyomo.core.base.block import BlockData
from pyomo.gdp import Disjunct, Disjunction
from pyomo.gdp.disjunct import DisjunctData, DisjunctionData

from gdpnet.errors import RuleError

LINKS = "_gdpnet_links"
"""Rows of `gdpnet.basic_steps` that give source indicators their values, and say nothing else."""


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
        if is_block(target):
            members = [d for block in active_blocks(target) for d in top_level(block)]
        else:
            members = resolve(target, instance, option)
        found.update((id(d), d) for d in members)
    return list(found.values())


def is_block(target: Any) -> bool:
    """Whether a target is a Block, a member of one, or a model."""
    return isinstance(target, BlockData) or getattr(target, "ctype", None) is pyo.Block


def active_blocks(target: Any) -> list[Any]:
    """The active members of a Block."""
    return [b for b in (target.values() if target.is_indexed() else [target]) if b.active]


def resolve(
    item: Any, instance: Any, option: str, kinds: Sequence[type] = (Disjunction,)
) -> list[Any]:
    """The active members, in no disjunct, that an item of an option stands for.

    Args:
        item: a component of one of the kinds, one of its members, or a name.
        instance: what the transformation is applied to.
        option: name of the option, for messages.
        kinds: what is expected: Disjunction, or Constraint as well.
    """
    expected = " or ".join(kind.__name__ for kind in kinds)
    component = instance.find_component(item) if isinstance(item, str) else item
    if component is None:
        known = [c for kind in kinds for c in instance.component_objects(kind, active=True)]
        raise RuleError(
            f"{option}: there is no {expected} '{item}' in '{instance.name}'. It has "
            f"{_listed([c.name for c in known])}."
        )
    kind: Any = getattr(component, "ctype", None)
    if kind not in kinds:
        raise RuleError(f"{option}: expected a {expected}, got {described(component)}.")
    what = f"{kind.__name__} '{component.name}'"
    if component.model() is not instance.model():
        raise RuleError(
            f"{option}: {what} does not belong to the model '{instance.model().name}' that is "
            "transformed."
        )
    members = list(component.values()) if component.is_indexed() else [component]
    active = [member for member in members if member.active]
    if not active:
        state = "is deactivated. Activate it" if members else "has no members. Give it some"
        raise RuleError(f"{option}: {what} {state}, or leave it out.")
    for member in active:
        parent = enclosing_disjunct(member)
        if parent is not None:
            raise RuleError(
                f"{option}: {kind.__name__} '{member.name}' is nested in Disjunct "
                f"'{parent.name}'. Name the Disjunction of that Disjunct; what is nested in it "
                "comes along."
            )
    return active


def described(item: Any) -> str:
    """What someone gave, for messages: components by name, expressions as they are written."""
    kind = getattr(item, "ctype", None)
    if kind is not None:
        return f"the {kind.__name__} '{item.name}'"
    written = hasattr(item, "is_expression_type") or isinstance(item, str | int | float)
    return f"'{item}' ({type(item).__name__})" if written else f"a {type(item).__name__}"


def _listed(names: Sequence[str]) -> str:
    return (", ".join(names[:12]) or "none") + (", ..." if len(names) > 12 else "")
