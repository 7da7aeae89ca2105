"""gdpnet: rules about a network's outputs, written as Pyomo Disjunctions, satisfied exactly."""

import contextlib
import logging

from gdpnet import errors, nn, plan, plot, proof
from gdpnet.convexify import Plan
from gdpnet.errors import GdpnetError
from gdpnet.nn import ProjectionLayer
from gdpnet.rules import (
    RuleModel,
    all_of,
    any_of,
    check,
    implies,
    load_rules,
    maximum,
    minimum,
    none_of,
    relu,
    rule,
)
from gdpnet.sensitivity import QP, Mixed, StraightThrough, Vertex
from gdpnet.solve import Projection, Status, project, warmup

# The function, not the package of the same name, is the public name. A machine that only runs saved
# rules has no Pyomo, and no function either.
with contextlib.suppress(ImportError):
    from gdpnet.convexify import convexify_rules as convexify

__version__ = "0.1.0"

logging.getLogger("gdpnet").addHandler(logging.NullHandler())

__all__ = [
    "QP",
    "GdpnetError",
    "Mixed",
    "Plan",
    "Projection",
    "ProjectionLayer",
    "RuleModel",
    "Status",
    "StraightThrough",
    "Vertex",
    "all_of",
    "any_of",
    "check",
    "convexify",
    "errors",
    "implies",
    "load_rules",
    "maximum",
    "minimum",
    "nn",
    "none_of",
    "plan",
    "plot",
    "project",
    "proof",
    "relu",
    "rule",
    "warmup",
]
