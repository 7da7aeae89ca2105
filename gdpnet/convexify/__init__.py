"""The paper's Section 3.2: plans of basic steps, and the Pyomo transformations."""

from gdpnet.convexify.plan import Plan

try:  # registers the transformations by name
    from gdpnet.convexify import _basic_steps, _chain, _hull, _lift  # noqa: F401
except ModuleNotFoundError as error:  # a machine that only runs saved rules
    if error.name is None or error.name.partition(".")[0] != "pyomo":
        raise

__all__ = ["Plan"]
