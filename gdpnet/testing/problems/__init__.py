"""The bank of problems that every relaxation and solver runs through."""

from __future__ import annotations

from gdpnet.testing._problem import Problem
from gdpnet.testing.problems import (
    auxiliaries,
    convex,
    geometry,
    inputs,
    logic,
    reference,
    stress,
    toy,
)

PROBLEMS: tuple[Problem, ...] = (
    *reference.PROBLEMS,
    *geometry.PROBLEMS,
    *logic.PROBLEMS,
    *auxiliaries.PROBLEMS,
    *inputs.PROBLEMS,
    *toy.PROBLEMS,
    *stress.PROBLEMS,
)
"""Small problems, each of them solved in milliseconds."""

CONVEX: tuple[Problem, ...] = tuple(convex.PROBLEMS)
"""Small problems with rows that are convex and not linear: no part of `PROBLEMS`."""

BY_NAME = {problem.name: problem for problem in (*PROBLEMS, *CONVEX)}
"""The same by name."""

__all__ = ["BY_NAME", "CONVEX", "PROBLEMS"]
