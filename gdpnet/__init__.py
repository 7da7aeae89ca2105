"""gdpnet: rules about a network's outputs, written as Pyomo Disjunctions, satisfied exactly."""

import logging
from typing import TYPE_CHECKING

from gdpnet import errors as errors
from gdpnet import nn
from gdpnet import rules as rules
from gdpnet import solve as solve
from gdpnet._late import late_names
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
from gdpnet.rules import (
    Formula,
    RuleModel,
    all_of,
    any_of,
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

if TYPE_CHECKING:
    from gdpnet import plan as plan
    from gdpnet import plot as plot
    from gdpnet import proof as proof
    from gdpnet import study as study
    from gdpnet.convexify import convexify_rules as convexify
    from gdpnet.plan import interaction_graph, plan_basic_steps
    from gdpnet.plot import (
        plot_lifted,
        plot_region,
        plot_rule_graph,
        plot_satisfaction,
        plot_sizes,
    )
    from gdpnet.proof import Certificate, Verdict, certify, verify
else:
    # What a projection does not need, imported when it is asked for; type checkers read it above.
    __getattr__, __dir__ = late_names(
        __name__,
        {
            "Certificate": "gdpnet.proof:Certificate",
            "Verdict": "gdpnet.proof:Verdict",
            "certify": "gdpnet.proof:certify",
            "convexify": "gdpnet.convexify.transform._chain:convexify_rules",
            "interaction_graph": "gdpnet.plan:interaction_graph",
            "plan": "gdpnet.plan",
            "plan_basic_steps": "gdpnet.plan:plan_basic_steps",
            "plot": "gdpnet.plot",
            "plot_lifted": "gdpnet.plot:plot_lifted",
            "plot_region": "gdpnet.plot:plot_region",
            "plot_rule_graph": "gdpnet.plot:plot_rule_graph",
            "plot_satisfaction": "gdpnet.plot:plot_satisfaction",
            "plot_sizes": "gdpnet.plot:plot_sizes",
            "proof": "gdpnet.proof",
            "study": "gdpnet.study",
            "verify": "gdpnet.proof:verify",
        },
    )
# The function, not the package of the same name, is the public name.
globals().pop("convexify", None)

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
