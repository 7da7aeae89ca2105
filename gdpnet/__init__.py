"""gdpnet: rules about a network's outputs, written as Pyomo Disjunctions, satisfied exactly."""

import contextlib
import logging

from gdpnet import nn
from gdpnet.convexify import Plan
from gdpnet.errors import (
    ConflictError,
    ConflictWarning,
    GdpnetError,
    IdentityGradientWarning,
    InputError,
    ModelFileError,
    RuleError,
    SolverError,
    ZeroGradientWarning,
)
from gdpnet.nn import ProjectionLayer
from gdpnet.plan.graph import interaction_graph
from gdpnet.plan.planner import plan_basic_steps
from gdpnet.plot import (
    plot_lifted,
    plot_region,
    plot_rule_graph,
    plot_satisfaction,
    plot_sizes,
)
from gdpnet.proof import Certificate, Verdict, certify, verify
from gdpnet.rules import (
    Formula,
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
from gdpnet.solve import Projection, ProjectionInfo, Status, project, warmup

# The function, not the package of the same name, is the public name. A machine that only runs saved
# rules has no Pyomo, and no function either.
with contextlib.suppress(ImportError):
    from gdpnet.convexify import convexify_rules as convexify

__version__ = "0.1.0"

logging.getLogger("gdpnet").addHandler(logging.NullHandler())

__all__ = [
    "QP",
    "Certificate",
    "ConflictError",
    "ConflictWarning",
    "Formula",
    "GdpnetError",
    "IdentityGradientWarning",
    "InputError",
    "Mixed",
    "ModelFileError",
    "Plan",
    "Projection",
    "ProjectionInfo",
    "ProjectionLayer",
    "RuleError",
    "RuleModel",
    "SolverError",
    "Status",
    "StraightThrough",
    "Verdict",
    "Vertex",
    "ZeroGradientWarning",
    "all_of",
    "any_of",
    "certify",
    "check",
    "convexify",
    "implies",
    "interaction_graph",
    "load_rules",
    "maximum",
    "minimum",
    "nn",
    "none_of",
    "plan_basic_steps",
    "plot_lifted",
    "plot_region",
    "plot_rule_graph",
    "plot_satisfaction",
    "plot_sizes",
    "project",
    "relu",
    "rule",
    "verify",
    "warmup",
]
