"""Ranges of Params, as options of the transformations give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyomo.environ as pyo

from gdpnet.errors import RuleError
from gdpnet.ir.intervals import Interval
from gdpnet.rules.arguments import range_of


def param_ranges(given: Any, instance: Any) -> dict[int, Interval]:
    """Ranges of Params by the id of each member.

    Args:
        given: a mapping from Params, or their names, to pairs (low, high); None for none.
        instance: the model.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping) and not hasattr(given, "items"):
        raise RuleError("input_bounds: expected a mapping of Params to pairs (low, high).")
    ranges: dict[int, Interval] = {}
    for key, pair in given.items():
        component = instance.find_component(key) if isinstance(key, str) else key
        if getattr(component, "ctype", None) is not pyo.Param:
            raise RuleError(f"input_bounds: '{key}' is no mutable Param of the model.")
        ends = range_of(pair, str(key))
        indexed = component.is_indexed()
        members = [component[i] for i in component.index_set()] if indexed else [component]
        ranges.update((id(member), ends) for member in members)
    return ranges
