"""The border to the compiled core: arrays in, arrays out.

Other rooms take from here what they need. Nothing below knows of rules, of torch or of Pyomo; what
is in `core/` at the top of the repository is compiled into `gdpnet.core._native`.

Some parts are compiled for several CPUs, and the widest that the CPU at hand has is used:
`VARIANT`. The environment variable `GDPNET_CPU` forces one of them. Answers are the same in all.
"""

from __future__ import annotations

import os

from gdpnet.errors import InputError

try:
    from gdpnet.core._native import *  # noqa: F403
    from gdpnet.core._native import cpu_variant, cpu_variants, use_cpu_variant
except ImportError:
    AVAILABLE = False
else:
    AVAILABLE = True


def _variant() -> str:
    """The variant that is used from now on: the one that the user forces, or the widest."""
    wanted = os.environ.get("GDPNET_CPU")
    if wanted:
        try:
            use_cpu_variant(wanted)
        except ValueError as error:
            usable = ", ".join(cpu_variants())
            raise InputError(f"GDPNET_CPU={wanted}: {error}. Here can be used: {usable}.") from None
    return cpu_variant()


VARIANT: str = _variant() if AVAILABLE else ""
"""For which CPU the core at work was compiled: baseline, avx2 or avx512."""
