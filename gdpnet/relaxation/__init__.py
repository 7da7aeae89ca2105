"""The paper's Section 3.2: plans of basic steps, their linear programs, the Pyomo transformations.

| module | what is in it |
|---|---|
| `plan` | which rules are merged |
| `relaxable` | logic and integers as rows |
| `products`, `feasibility` | the products of merged rules, empty ones left out |
| `blocks`, `layouts` | merged rules and their connected components, by active rules |
| `rows`, `sparse` | rows with entries that differ between samples |
| `program`, `sizes` | the program as the Pyomo chain writes it; how large it is |
| `compact` | the same in fewer rows, for solvers |
| `pyomo` | the transformations, and the adapter that reads what they write |

`gdpnet.basic_steps`, `gdpnet.lift_projection` and `gdpnet.hull` are registered with Pyomo's
`TransformationFactory` as soon as both gdpnet and `pyomo.gdp` are imported.
"""

from typing import TYPE_CHECKING

from gdpnet.late import late_names
from gdpnet.relaxation import pyomo as _pyomo  # noqa: F401  # registers
from gdpnet.relaxation.plan import Plan

if TYPE_CHECKING:
    from gdpnet.relaxation.pyomo.chain import convexify, convexify_rules
    from gdpnet.relaxation.pyomo.provenance import (
        get_copies,
        get_products,
        get_src_constraint,
        get_src_disjuncts,
    )
    from gdpnet.relaxation.pyomo.rebuild import pyomo_model
else:
    # What needs Pyomo.
    __getattr__, __dir__ = late_names(
        __name__,
        {
            "convexify": f"{__name__}.pyomo.chain:convexify",
            "convexify_rules": f"{__name__}.pyomo.chain:convexify_rules",
            "get_copies": f"{__name__}.pyomo.provenance:get_copies",
            "get_products": f"{__name__}.pyomo.provenance:get_products",
            "get_src_constraint": f"{__name__}.pyomo.provenance:get_src_constraint",
            "get_src_disjuncts": f"{__name__}.pyomo.provenance:get_src_disjuncts",
            "pyomo_model": f"{__name__}.pyomo.rebuild:pyomo_model",
        },
    )

__all__ = [
    "Plan",
    "convexify",
    "convexify_rules",
    "get_copies",
    "get_products",
    "get_src_constraint",
    "get_src_disjuncts",
    "pyomo_model",
]
