"""How the kernels are compiled: once, cached on disk, without the interpreter's lock."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

Array = np.ndarray[Any, Any]


def _without_counting() -> dict[str, Any]:
    """The option that leaves out reference counting, where this numba has it.

    Nothing is allocated inside the kernels, and counting references to the arrays of the workspace
    took ten times as long as the arithmetic on small problems.
    """
    try:
        njit(_nrt=False)(lambda: None)  # type: ignore[call-overload]
    except Exception:  # it is no public option: a later numba may refuse it in any way
        return {}
    return {"_nrt": False}


KERNEL: dict[str, Any] = {"nogil": True, "error_model": "numpy", **_without_counting()}
"""Options of a kernel that allocates nothing."""

_INSIDE: dict[str, Any] = {**KERNEL, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

# Called from kernels only. `inner` is inlined: passing dozens of arrays by value costs more than a
# short function does. `outlined` is for what is long or rarely called, to compile faster.
inner = njit(**_INSIDE, forceinline=True)
outlined = njit(**_INSIDE)

# For kernels that may allocate.
jit = njit(nogil=True, cache=True, error_model="numpy")


def source_stamp(*modules: str) -> int:
    """A number that changes with the sources of a kernel.

    Numba's disk cache looks at the file of the compiled function alone, so an edit of a module it
    calls would go unnoticed. A number that the kernel closes over is part of the cache's key.

    Args:
        *modules: paths within the package, without their ending.
    """
    package = Path(__file__).parents[1]
    return zlib.crc32(b"".join((package / f"{module}.py").read_bytes() for module in modules))
