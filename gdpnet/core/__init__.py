"""The border to the compiled core: arrays in, arrays out.

Other rooms take from here what they need. Nothing below knows of rules, of torch or of Pyomo; what
is in `core/` at the top of the repository is compiled into `gdpnet.core._native`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

try:
    from gdpnet.core._native import *  # noqa: F403
except ImportError:
    AVAILABLE = False
else:
    AVAILABLE = True
