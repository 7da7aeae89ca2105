"""The border to the compiled core: arrays in, arrays out.

Other rooms take from here what they need. Nothing below knows of rules, of torch or of Pyomo; what
is in `core/` at the top of the repository is compiled into `gdpnet.core._native`. Without that
module all that other solvers can do still works.

A name of the module stands once more below, for type checkers and for readers; a test compares.

| module | what is in it |
|---|---|
| `_load` | finding the module: why there is none, whether it is older than its sources |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gdpnet.core._load import load, public_names, stale

Array = np.ndarray[Any, Any]

_native, WHY_MISSING = load()

AVAILABLE = _native is not None
"""Whether the core is there; where it is not, `WHY_MISSING` is a sentence on why and what to do."""


def unavailable(what: str, instead: str) -> str | None:
    """Why something cannot be had without the core, and what to use instead; None where it can."""
    if AVAILABLE:
        return None
    return f"{what} needs the compiled core; {instead} does not. {WHY_MISSING}"


if TYPE_CHECKING:
    from gdpnet.core._native import ACCEPTED as ACCEPTED
    from gdpnet.core._native import ACCEPTED_AS_IS as ACCEPTED_AS_IS
    from gdpnet.core._native import COMPILER as COMPILER
    from gdpnet.core._native import DETERMINED as DETERMINED
    from gdpnet.core._native import NO_SOLUTION as NO_SOLUTION
    from gdpnet.core._native import NODE_LIMIT as NODE_LIMIT
    from gdpnet.core._native import NUMERICAL as NUMERICAL
    from gdpnet.core._native import OPERATIONS as OPERATIONS
    from gdpnet.core._native import SOLVED as SOLVED
    from gdpnet.core._native import TIGHT as TIGHT
    from gdpnet.core._native import VERSION as VERSION
    from gdpnet.core._native import Component as Component
    from gdpnet.core._native import EuclideanSearch as EuclideanSearch
    from gdpnet.core._native import Judge as Judge
    from gdpnet.core._native import LeastNorm as LeastNorm
    from gdpnet.core._native import Logic as Logic
    from gdpnet.core._native import Rows as Rows
    from gdpnet.core._native import Search as Search
    from gdpnet.core._native import Tape as Tape
    from gdpnet.core._native import vjp_face as vjp_face
    from gdpnet.core._native import vjp_vertex as vjp_vertex
elif _native is not None:
    globals().update(public_names(_native))
else:

    def __getattr__(name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        raise ImportError(f"No gdpnet.core.{name}. {WHY_MISSING}", name=__name__)


__all__ = ["AVAILABLE", "WHY_MISSING", "Array", "stale", "unavailable"]
