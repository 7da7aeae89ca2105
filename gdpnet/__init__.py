"""gdpnet: rules about a network's outputs, written as Pyomo Disjunctions, satisfied exactly."""

__version__ = "0.2.0.dev0"  # compared with that of the compiled core, which is imported below

import logging
from typing import TYPE_CHECKING

from gdpnet import errors as errors
from gdpnet import nn
from gdpnet import rules as rules
from gdpnet import solve as solve
from gdpnet.derivative import QP, Mixed, StraightThrough, Vertex
from gdpnet.errors import GdpnetError
from gdpnet.late import late_names
from gdpnet.model import RuleModel, load_rules
from gdpnet.nn import ProjectionLayer
from gdpnet.projection import Projection, Status, Tracker, project
from gdpnet.relaxation import Plan
from gdpnet.rules import all_of, any_of, check, implies, maximum, minimum, none_of, relu, rule

if TYPE_CHECKING:
    from gdpnet import plan as plan
    from gdpnet import plot as plot
    from gdpnet import proof as proof
    from gdpnet import ray as ray
    from gdpnet import sklearn as sklearn
    from gdpnet import study as study
    from gdpnet import testing as testing
    from gdpnet.relaxation import convexify_rules as convexify
else:
    # What a projection does not need, imported when it is asked for; type checkers read it above.
    __getattr__, __dir__ = late_names(
        __name__,
        {
            "convexify": "gdpnet.relaxation.pyomo.chain:convexify_rules",
            "plan": "gdpnet.plan",
            "plot": "gdpnet.plot",
            "proof": "gdpnet.proof",
            "ray": "gdpnet.ray",
            "sklearn": "gdpnet.sklearn",
            "study": "gdpnet.study",
            "testing": "gdpnet.testing",
        },
    )

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
    "Tracker",
    "Vertex",
    "all_of",
    "any_of",
    "check",
    "convexify",
    "implies",
    "load_rules",
    "maximum",
    "minimum",
    "nn",
    "none_of",
    "project",
    "relu",
    "rule",
]
