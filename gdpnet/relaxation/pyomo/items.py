"""Items of a list of Params or Vars: one component, a whole indexed one, or a list of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyomo.environ as pyo
from pyomo.core.base.param import ParamData

from gdpnet.errors import RuleError


def params_of(model: Any, items: Sequence[Any]) -> list[list[Any]]:
    """Mutable Params of each item."""
    listed = _listed(model, items, "inputs", pyo.Param)
    for param in (p for item in listed for p in item):
        if not (isinstance(param, ParamData) and param.parent_component().mutable):
            raise RuleError(f"inputs: '{param}' is no mutable Param.")
    flat = [id(p) for item in listed for p in item]
    if len(set(flat)) < len(flat):
        raise RuleError("inputs: a Param stands twice.")
    return listed


def columns_of(model: Any, items: Sequence[Any]) -> list[list[Any]]:
    """Vars of each item."""
    listed = _listed(model, items, "outputs", pyo.Var)
    if not listed:
        raise RuleError("outputs: expected at least one Var.")
    for variable in (v for item in listed for v in item):
        if variable.fixed:
            raise RuleError(f"outputs: '{variable.name}' is fixed; unfix it.")
    return listed


def _listed(model: Any, items: Sequence[Any], what: str, kind: Any) -> list[list[Any]]:
    if hasattr(items, "ctype"):
        items = [items]
    return [list(_data(model, item, what, kind)) for item in items]


def _data(model: Any, item: Any, what: str, kind: Any) -> Iterable[Any]:
    if isinstance(item, list | tuple):
        for part in item:
            yield from _data(model, part, what, kind)
        return
    if getattr(item, "ctype", None) is not kind:
        raise RuleError(f"{what}: expected a {kind.__name__}, or a list of them, got {item!r}.")
    for data in item.values() if item.is_indexed() else [item]:
        if data.model() is not model.model():
            raise RuleError(f"{what}: '{data.name}' does not belong to '{model.name}'.")
        yield data
