"""Rules in torch: the layer, losses and metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gdpnet.nn._penalty import RulePenalty
from gdpnet.nn._with_rules import WithRules, with_rules
from gdpnet.nn.layer import ProjectionLayer

if TYPE_CHECKING:
    from gdpnet.nn._satisfaction import RuleSatisfaction

__all__ = ["ProjectionLayer", "RulePenalty", "RuleSatisfaction", "WithRules", "with_rules"]


def __getattr__(name: str) -> Any:
    # torchmetrics is optional, and its import takes as long as torch's own.
    if name != "RuleSatisfaction":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gdpnet.nn._satisfaction import RuleSatisfaction

    return RuleSatisfaction
