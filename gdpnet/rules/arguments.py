"""What is handed over beside a model: its outputs, its inputs, and the ranges of these."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyomo.environ as pyo
from pyomo.core.base.param import Param, ParamData
from pyomo.core.base.var import VarData

from gdpnet.errors import RuleError
from gdpnet.rules.obstacles import Obstacles

CONTINUOUS = "continuous"
"""As `outputs`: all continuous Vars that stand in rules or constraints."""


def read_outputs(given: Any, obstacles: Obstacles) -> list[VarData]:
    """The Vars of `outputs`, whole indexed ones too, in the given order."""
    return _expand(given, "outputs", _as_variables, obstacles)


def read_inputs(given: Any, model: Any, obstacles: Obstacles) -> list[ParamData]:
    """The Params of `inputs`, whole indexed ones too, in the given order."""
    params: list[ParamData] = _expand(given, "inputs", _as_params, obstacles)
    for param in params:
        with obstacles.at(param):
            if param.model() is not model.model():
                raise RuleError(
                    f"inputs: Param '{param.name}' does not belong to the model "
                    f"'{model.name}'. Use Params of the model that holds the rules."
                )
    return params


def read_input_bounds(given: Any, params: Sequence[ParamData]) -> tuple[tuple[float, float], ...]:
    """A range for each input: a mapping names some of them, a sequence has all."""
    bounds = [(-math.inf, math.inf)] * len(params)
    if given is None:
        return tuple(bounds)
    if isinstance(given, Mapping) or hasattr(given, "items"):
        names = {param.name: j for j, param in enumerate(params)}
        for key, pair in given.items():
            keys = [key] if isinstance(key, str) else [p.name for p in _as_params(key) or ()]
            for name in keys or [str(key)]:
                if name not in names:
                    raise RuleError(
                        f"input_bounds: '{name}' is not among the inputs "
                        f"({', '.join(names) or 'there are none'})."
                    )
                bounds[names[name]] = range_of(pair, name)
        return tuple(bounds)
    pairs = list(given)
    if len(pairs) != len(bounds):
        listed = ", ".join(param.name for param in params) or "there are none"
        raise RuleError(
            f"input_bounds: expected {len(bounds)} pairs (low, high), one for each input "
            f"({listed}), got {len(pairs)} entries."
        )
    return tuple(range_of(pair, param.name) for pair, param in zip(pairs, params, strict=True))


def _expand(
    given: Any, what: str, expand: Callable[[Any], list[Any] | None], obstacles: Obstacles
) -> list[Any]:
    """Components and whole indexed components as one list of data, in the given order."""
    found: list[Any] = []
    seen: set[int] = set()
    kind = {"outputs": "a Var", "inputs": "a mutable Param"}[what]
    for item in _listed(given, what, obstacles):
        with obstacles.at(item if hasattr(item, "name") else what):
            data = expand(item)
            if data is None:
                raise RuleError(f"{what}: expected {kind}, got {_called(item)}.{_hint(item, what)}")
            for one in data:
                if id(one) in seen:
                    raise RuleError(f"{what}: '{one.name}' is listed twice. List each once.")
                seen.add(id(one))
                found.append(one)
    return found


def _listed(given: Any, what: str, obstacles: Obstacles) -> list[Any]:
    if hasattr(given, "ctype"):  # a single component instead of a list
        return [given]
    with obstacles.at(what):
        if isinstance(given, str) and what == "outputs":
            raise RuleError(
                f"outputs: expected a list of Vars, or {CONTINUOUS!r} for all continuous Vars "
                f"that stand in rules or constraints, got {given!r}."
            )
        if not isinstance(given, Iterable) or isinstance(given, str):
            raise RuleError(f"{what}: expected a list of components, got {given!r}.")
        return list(given)
    return []


def _as_variables(item: Any) -> list[Any] | None:
    if isinstance(item, VarData):
        return [item]
    if getattr(item, "ctype", None) is pyo.Var:
        return list(item.values())
    return None


def _as_params(item: Any) -> list[Any] | None:
    if isinstance(item, ParamData):
        container = item.parent_component()
        return [item] if container.mutable else None
    if getattr(item, "ctype", None) is Param and item.mutable:
        return [item[index] for index in item.index_set()]
    return None


def _called(item: Any) -> str:
    name = getattr(item, "name", None)
    kind = getattr(getattr(item, "ctype", None), "__name__", type(item).__name__)
    return f"{item!r} ({kind})" if name is None else f"'{name}' ({kind})"


def _hint(item: Any, what: str) -> str:
    kind = getattr(item, "ctype", None)
    if what == "inputs" and (kind is Param or isinstance(item, int | float)):
        return " Declare the Param with mutable=True: an immutable one is a number to Pyomo."
    if what == "inputs" and kind is pyo.Var:
        return " An input is data, not a decision: declare it as Param(mutable=True)."
    if isinstance(item, str):
        return f" Pass the component itself, such as m.{item}, not its name."
    return ""


def range_of(pair: Any, name: str) -> tuple[float, float]:
    """The two ends that `input_bounds` has for a Param."""
    try:
        low, high = (float(end) for end in pair)
    except (TypeError, ValueError):
        raise RuleError(
            f"input_bounds: expected a pair (low, high) for '{name}', got {pair!r}."
        ) from None
    if not low <= high:
        raise RuleError(f"input_bounds: the range of '{name}' is empty: {low:g} to {high:g}.")
    return low, high
