"""Which rules interact, and which of them to merge by basic steps."""

from gdpnet.plan.graph import interaction_graph
from gdpnet.plan.planner import choose

__all__ = ["choose", "interaction_graph"]
