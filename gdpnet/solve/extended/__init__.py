"""The extended engine: linear programs of CNF and partial DNF, for a batch with all its patterns.

| module | what is in it |
|---|---|
| `tables` | layouts as flat arrays |
| `engine` | batches and threads |
| `judge` | which rules hold at a point |
"""

from gdpnet.kernels import NO_BLOCK
from gdpnet.solve.extended.engine import ExtendedEngine, ExtendedSolved
from gdpnet.solve.extended.judge import Judge

__all__ = ["NO_BLOCK", "ExtendedEngine", "ExtendedSolved", "Judge"]
