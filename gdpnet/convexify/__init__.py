"""The paper's Section 3.2: plans of basic steps, and the Pyomo transformations.

Importing it registers `gdpnet.basic_steps`, `gdpnet.lift_projection` and `gdpnet.hull` with
Pyomo's `TransformationFactory`.
"""

from gdpnet.convexify.plan import Plan

__all__ = ["Plan"]

try:
    from gdpnet.convexify.transform import _basic_steps, _hull, _lift  # noqa: F401
    from gdpnet.convexify.transform._chain import convexify, convexify_rules
    from gdpnet.convexify.transform._provenance import (
        get_copies,
        get_products,
        get_src_constraint,
        get_src_disjuncts,
    )
    from gdpnet.convexify.transform._rebuild import pyomo_model
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
