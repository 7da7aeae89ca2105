"""The paper's Section 3.2: plans of basic steps, their linear programs, the Pyomo transformations.

| module | what is in it |
|---|---|
| `plan` | which rules are merged |
| `relaxable` | logic and integers as rows |
| `products`, `feasibility`, `intervals` | the products of merged rules, empty ones left out |
| `blocks`, `layouts` | merged rules and their connected components, by active rules |
| `rows`, `sparse` | rows with entries that differ between samples |
| `program`, `sizes` | the program as the Pyomo chain writes it; how large it is |
| `compact` | the same in fewer rows, for solvers |
| `pyomo` | the transformations, and the adapter that reads what they write |

Importing it registers `gdpnet.basic_steps`, `gdpnet.lift_projection` and `gdpnet.hull` with
Pyomo's `TransformationFactory`.
"""

from gdpnet.relaxation.plan import Plan

__all__ = ["Plan"]

try:
    from gdpnet.relaxation.pyomo import (
        basic_steps,  # noqa: F401
        hull,  # noqa: F401
        lift,  # noqa: F401
    )
    from gdpnet.relaxation.pyomo.chain import convexify, convexify_rules
    from gdpnet.relaxation.pyomo.provenance import (
        get_copies,
        get_products,
        get_src_constraint,
        get_src_disjuncts,
    )
    from gdpnet.relaxation.pyomo.rebuild import pyomo_model
except ModuleNotFoundError as error:  # a machine that only runs saved rules has no Pyomo
    if error.name is None or error.name.partition(".")[0] != "pyomo":
        raise
else:
    __all__ += [
        "convexify",
        "convexify_rules",
        "get_copies",
        "get_products",
        "get_src_constraint",
        "get_src_disjuncts",
        "pyomo_model",
    ]
