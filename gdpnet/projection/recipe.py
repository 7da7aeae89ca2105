"""A projector as text: what an exported program says of the projections in it.

The text is JSON: the fingerprint of the rules, and the keywords of `gdpnet.project`, objects by the
name of their class and their options. Solvers and gradients of one's own have a number instead,
which means something in this process alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from inspect import signature
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from gdpnet.derivative.gradients import QP, Mixed, Sensitivity, StraightThrough, Vertex
from gdpnet.errors import InputError
from gdpnet.ir.rules import Rules
from gdpnet.projection.projector import Projector
from gdpnet.relaxation.plan import Plan
from gdpnet.rules import files
from gdpnet.solve.base import Backend
from gdpnet.solve.conic.backend import Conic
from gdpnet.solve.exact.backend import Exact
from gdpnet.solve.extended.backend import Extended
from gdpnet.solve.milp.backend import MILP

_CLASSES: dict[str, type] = {
    kind.__name__: kind
    for kind in (Exact, Extended, Conic, MILP, Vertex, QP, StraightThrough, Mixed)
}
_LIVING: WeakValueDictionary[str, Projector] = WeakValueDictionary()
_MADE: dict[str, Projector] = {}  # from recipes: nobody else holds them
_NUMBERS: WeakKeyDictionary[Projector, int] = WeakKeyDictionary()
_NEXT = count()


def recipe_of(projector: Projector) -> str:
    """The text of a projector, which is found by it as long as it lives."""
    rules = projector.rules
    keywords = {
        name: _written(value, projector)
        for name, value in projector.keywords.items()
        if value is not None
    }
    text = json.dumps({"rules": files.fingerprint(rules.data)} | keywords, sort_keys=True)
    _LIVING[text] = projector
    return text


def projector_of(recipe: str, rules: bytes) -> Projector:
    """The projector of a text: one that lives, or a new one.

    Args:
        recipe: the text.
        rules: the rules, packed.
    """
    found = _LIVING.get(recipe)
    if found is None:
        found = _MADE[recipe] = _LIVING[recipe] = _made(json.loads(recipe), rules)
    return found


def _made(keywords: dict[str, Any], content: bytes) -> Projector:
    fingerprint = keywords.pop("rules")
    known = {name: _read(value) for name, value in keywords.items()}
    rules = Rules(files.unpacked(content, "the exported program"))
    if files.fingerprint(rules.data) != fingerprint:
        raise InputError(
            "gdpnet::project: the rules in this program are not those it was exported with "
            f"(fingerprint {fingerprint[:12]}...). Export it again."
        )
    return Projector(rules, **known)


def _written(value: Any, projector: Projector) -> Any:
    if isinstance(value, Plan):
        return {"class": "Plan", "clusters": value.clusters}
    if not isinstance(value, Backend | Sensitivity):
        return value
    kind = type(value)
    if _CLASSES.get(kind.__name__) is not kind:
        number = _NUMBERS.setdefault(projector, next(_NEXT))
        return {"class": kind.__name__, "own": number}
    names = (
        [field.name for field in fields(value)]
        if is_dataclass(value)
        else [name for name in signature(kind).parameters if hasattr(value, name)]
    )
    return {"class": kind.__name__} | {
        name: _written(getattr(value, name), projector) for name in names
    }


def _read(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    options = {name: _read(option) for name, option in value.items() if name != "class"}
    name = value["class"]
    if name == "Plan":
        return Plan(tuple(tuple(cluster) for cluster in value["clusters"]))
    if name not in _CLASSES or "own" in options:
        raise InputError(
            f"gdpnet::project: {name} is no class of gdpnet, and the layer with it that was "
            "exported does not live in this process. Build that layer here before the exported "
            "program is called, or export with a solver and a gradient of gdpnet."
        )
    return _CLASSES[name](**options)
