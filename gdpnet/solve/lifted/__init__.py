"""The lifted engine: linear programs of CNF and partial DNF, for a batch with all its patterns.

| module | what is in it |
|---|---|
| `_tables` | layouts as flat arrays |
| `_program` | the program of a part as sparse rows, written for one sample |
| `_kernel` | the loop over samples |
| `_engine` | batches and threads |
| `_jacobian` | derivatives from the final basis |
| `_judge` | which rules hold at a point |
"""

from gdpnet.solve.lifted._engine import LiftedEngine, LiftedSolved
from gdpnet.solve.lifted._judge import Judge
from gdpnet.solve.lifted._kernel import NO_BLOCK

__all__ = ["NO_BLOCK", "Judge", "LiftedEngine", "LiftedSolved"]
