"""The paper's Section 3.2: plans of basic steps, and the Pyomo transformations.

`gdpnet.basic_steps`, `gdpnet.lift_projection` and `gdpnet.hull` are registered with Pyomo's
`TransformationFactory` as soon as both gdpnet and `pyomo.gdp` are imported.
"""

from typing import TYPE_CHECKING

from gdpnet._late import late_names
from gdpnet.convexify import transform as _transform  # noqa: F401  # registers
from gdpnet.convexify.plan import Plan

if TYPE_CHECKING:
    from gdpnet.convexify.transform._chain import convexify, convexify_rules
    from gdpnet.convexify.transform._provenance import (
        get_copies,
        get_products,
        get_src_constraint,
        get_src_disjuncts,
    )
    from gdpnet.convexify.transform._rebuild import pyomo_model
else:
    # What needs Pyomo.
    __getattr__, __dir__ = late_names(
        __name__,
        {
            "convexify": f"{__name__}.transform._chain:convexify",
            "convexify_rules": f"{__name__}.transform._chain:convexify_rules",
            "get_copies": f"{__name__}.transform._provenance:get_copies",
            "get_products": f"{__name__}.transform._provenance:get_products",
            "get_src_constraint": f"{__name__}.transform._provenance:get_src_constraint",
            "get_src_disjuncts": f"{__name__}.transform._provenance:get_src_disjuncts",
            "pyomo_model": f"{__name__}.transform._rebuild:pyomo_model",
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
