"""Solvers of a projection: what a backend is, those there are, and their names.

| backend | what it does |
|---|---|
| `Exact` | the exact engine, with MILP for what it cannot finish |
| `MILP` | one mixed-integer program a sample |
| `Extended` | linear programs of CNF, partial DNF and DNF |
| `Conic` | conic programs of the same, with norm="l2" |

`register` gives a backend of your own a name.
"""

from functools import partial

from gdpnet.lp.solvers import SOLVERS
from gdpnet.solve.base import (
    Answer,
    Backend,
    Capabilities,
    Gradients,
    Linearisation,
    Request,
    Settings,
)
from gdpnet.solve.conic.backend import Conic
from gdpnet.solve.exact.backend import Exact
from gdpnet.solve.extended.backend import Extended
from gdpnet.solve.milp.backend import MILP
from gdpnet.solve.registry import backend_of, names, register

__all__ = [
    "MILP",
    "Answer",
    "Backend",
    "Capabilities",
    "Conic",
    "Exact",
    "Extended",
    "Gradients",
    "Linearisation",
    "Request",
    "Settings",
    "backend_of",
    "names",
    "register",
]

register("exact", Exact)
register("extended", Extended)
for _solver in SOLVERS:
    register(_solver, partial(Extended, _solver))
register("clarabel", Conic)
for _solver in SOLVERS:
    register(MILP(_solver).name, partial(MILP, _solver))
