"""Which rules interact, and which of them to merge by basic steps."""

from gdpnet.plan.graph import interaction_graph
from gdpnet.plan.planner import plan_basic_steps

__all__ = ["interaction_graph", "plan_basic_steps"]
