"""Rules in torch: losses and metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gdpnet.nn._penalty import RulePenalty

if TYPE_CHECKING:
    from gdpnet.nn._satisfaction import RuleSatisfaction

__all__ = ["RulePenalty", "RuleSatisfaction"]


def __getattr__(name: str) -> Any:
    # torchmetrics is optional, and its import takes as long as torch's own.
    if name != "RuleSatisfaction":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gdpnet.nn._satisfaction import RuleSatisfaction

    return RuleSatisfaction
