"""The bank of problems that every relaxation and solver runs through."""

from __future__ import annotations

from tests.problems import auxiliaries, geometry, inputs, logic, reference
from tests.problems._problem import Problem, Sample

PROBLEMS: tuple[Problem, ...] = (
    *reference.PROBLEMS,
    *geometry.PROBLEMS,
    *logic.PROBLEMS,
    *auxiliaries.PROBLEMS,
    *inputs.PROBLEMS,
)

BY_NAME = {problem.name: problem for problem in PROBLEMS}

__all__ = ["BY_NAME", "PROBLEMS", "Problem", "Sample"]
