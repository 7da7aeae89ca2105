"""The border to the compiled core: arrays in, arrays out.

Other rooms take from here what they need. Nothing below knows of rules, of torch or of Pyomo; what
is in `core/` at the top of the repository is compiled into `gdpnet.core._native`. Without that
module all that other solvers can do still works. Some parts are compiled for several CPUs, and the
widest that the CPU at hand has is used (`VARIANT`); `GDPNET_CPU` forces one. Answers are the same.

A name of the module stands once more below, for type checkers and for readers; a test compares.

| module | what is in it |
|---|---|
| `_load` | finding the module: why there is none, whether it is older than its sources |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gdpnet.core import _load

Array = np.ndarray[Any, Any]

_native, WHY_MISSING = _load.load()

AVAILABLE = _native is not None
"""Whether the core is there; where it is not, `WHY_MISSING` is a sentence on why and what to do."""


def unavailable(what: str, instead: str) -> str | None:
    """Why something cannot be had without the core, and what to use instead; None where it can."""
    if AVAILABLE:
        return None
    return f"{what} needs the compiled core; {instead} does not. {WHY_MISSING}"


def out_of_date() -> str | None:
    """That the core is older than its sources or of another version; None where it is not."""
    if _native is None:
        return None
    return _load.stale(_native) or _load.other_version(_native)


VARIANT = "" if _native is None else _load.variant(_native)
"""For which CPU the parts at work were compiled: baseline, avx2 or avx512."""


if TYPE_CHECKING:
    from gdpnet.core._native import ACCEPTED as ACCEPTED
    from gdpnet.core._native import ACCEPTED_AS_IS as ACCEPTED_AS_IS
    from gdpnet.core._native import COMPILER as COMPILER
    from gdpnet.core._native import DETERMINED as DETERMINED
    from gdpnet.core._native import NO_BLOCK as NO_BLOCK
    from gdpnet.core._native import NO_SOLUTION as NO_SOLUTION
    from gdpnet.core._native import NODE_LIMIT as NODE_LIMIT
    from gdpnet.core._native import NUMERICAL as NUMERICAL
    from gdpnet.core._native import OPERATIONS as OPERATIONS
    from gdpnet.core._native import SOLVED as SOLVED
    from gdpnet.core._native import TIGHT as TIGHT
    from gdpnet.core._native import VERSION as VERSION
    from gdpnet.core._native import Band as Band
    from gdpnet.core._native import BandSolver as BandSolver
    from gdpnet.core._native import BlockPart as BlockPart
    from gdpnet.core._native import Component as Component
    from gdpnet.core._native import EuclideanSearch as EuclideanSearch
    from gdpnet.core._native import Extended as Extended
    from gdpnet.core._native import ExtendedSources as ExtendedSources
    from gdpnet.core._native import ExtendedTables as ExtendedTables
    from gdpnet.core._native import Found as Found
    from gdpnet.core._native import Judge as Judge
    from gdpnet.core._native import LeastNorm as LeastNorm
    from gdpnet.core._native import Logic as Logic
    from gdpnet.core._native import Rows as Rows
    from gdpnet.core._native import Search as Search
    from gdpnet.core._native import Sets as Sets
    from gdpnet.core._native import Tape as Tape
    from gdpnet.core._native import all_finite as all_finite
    from gdpnet.core._native import cpu_variant as cpu_variant
    from gdpnet.core._native import cpu_variants as cpu_variants
    from gdpnet.core._native import find_euclidean as find_euclidean
    from gdpnet.core._native import find_nearest as find_nearest
    from gdpnet.core._native import same_rules as same_rules
    from gdpnet.core._native import use_cpu_variant as use_cpu_variant
    from gdpnet.core._native import vjp_face as vjp_face
    from gdpnet.core._native import vjp_vertex as vjp_vertex
elif _native is not None:
    globals().update(_load.public_names(_native))
else:

    def __getattr__(name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        raise ImportError(f"No gdpnet.core.{name}. {WHY_MISSING}", name=__name__)


__all__ = ["AVAILABLE", "VARIANT", "WHY_MISSING", "Array", "out_of_date", "unavailable"]
