"""Pyomo transformations, and the chain of them that makes a linear program.

| module | what is in it |
|---|---|
| `basic_steps`, `alternatives`, `propositions` | `gdpnet.basic_steps`: merged rules |
| `ranges` | ranges of Params, of which transformations take account |
| `feasibility` | which products are empty |
| `lift`, `components` | `gdpnet.lift_projection`: distance and globals in every disjunct |
| `hull`, `curves`, `symbolic` | `gdpnet.hull`: Params stay symbolic, squares become cones |
| `chain`, `activation` | `gdpnet.convexify`: all of them on a clone |
| `adapter` | the chain's program as parametric sparse matrices |
| `rebuild` | a Pyomo model of rules that were loaded from a file |
| `prices` | what rules and disjuncts cost |
| `provenance`, `walk` | where things came from; how a model is walked through |
"""

from __future__ import annotations

import importlib
from typing import Any

from gdpnet.late import after_pyomo_gdp

# By module: the class, its name in Pyomo's factory, and what the factory says about it.
_TRANSFORMATIONS = {
    "basic_steps": (
        "BasicSteps",
        "gdpnet.basic_steps",
        "Merge Disjunctions and Constraints into one Disjunction of their products.",
    ),
    "lift": (
        "LiftProjection",
        "gdpnet.lift_projection",
        "Weighted distance to a prediction, with its epigraph inside every disjunct.",
    ),
    "hull": (
        "Hull",
        "gdpnet.hull",
        "Hull reformulation of convex disjuncts that keeps mutable Params symbolic.",
    ),
}


class _Late:
    """The class of a transformation, imported when it is used.

    `pyomo.gdp` is imported in the midst of `pyomo.environ`, which the classes need whole.
    """

    __slots__ = ("_module", "_name")

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name

    def _load(self) -> Any:
        return getattr(importlib.import_module(f"{__name__}.{self._module}"), self._name)

    def __call__(self, **keywords: Any) -> Any:
        return self._load()(**keywords)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._load(), name)


def _register() -> None:
    from pyomo.core.base.transformation import TransformationFactory

    for module, (cls, name, doc) in _TRANSFORMATIONS.items():
        TransformationFactory.register(name, doc=doc)(_Late(module, cls))


after_pyomo_gdp(_register)
