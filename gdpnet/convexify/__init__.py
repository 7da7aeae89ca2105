"""From rules to convex relaxations: plans of basic steps, and the programs they give."""

from gdpnet.convexify.plan import Plan

__all__ = ["Plan"]
