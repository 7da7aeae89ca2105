"""Rules in torch: the layer, losses and metrics."""

from typing import TYPE_CHECKING

from gdpnet.late import late_names
from gdpnet.nn._with_rules import WithRules, with_rules
from gdpnet.nn.layer import ProjectionLayer
from gdpnet.nn.penalty import RulePenalty
from gdpnet.nn.program import ProgramLayer

if TYPE_CHECKING:
    from gdpnet.nn._satisfaction import RuleSatisfaction
else:
    # torchmetrics is optional, and its import takes as long as torch's own.
    __getattr__, __dir__ = late_names(
        __name__, {"RuleSatisfaction": "gdpnet.nn._satisfaction:RuleSatisfaction"}
    )

__all__ = [
    "ProgramLayer",
    "ProjectionLayer",
    "RulePenalty",
    "RuleSatisfaction",
    "WithRules",
    "with_rules",
]
