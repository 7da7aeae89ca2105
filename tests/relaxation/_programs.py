"""Linear programs as plain numbers, to compare and to solve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyomo.environ as pyo
from pyomo.common.collections import ComponentSet
from pyomo.core.expr.visitor import identify_variables
from pyomo.repn import generate_standard_repn

from gdpnet.testing.oracles import solved


def value_at(lp: Any, yhat: Sequence[float]) -> float:
    """Optimal value for a prediction; inf where the program is infeasible."""
    for j, value in enumerate(yhat):
        lp.gdpnet_yhat[j] = value
    return float(pyo.value(lp.gdpnet_distance)) if solved(lp) else math.inf


def variables(lp: Any) -> ComponentSet:
    found = ComponentSet()
    for row in lp.component_data_objects(pyo.Constraint, active=True):
        found.update(identify_variables(row.expr, include_fixed=False))
    return found


def sizes(lp: Any) -> tuple[int, int]:
    """Variables and rows."""
    return len(variables(lp)), len(list(lp.component_data_objects(pyo.Constraint, active=True)))


def matrix(lp: Any) -> dict[tuple[str, str], float]:
    """Every number of a linear program, by names."""
    entries: dict[tuple[str, str], float] = {}
    for row in lp.component_data_objects(pyo.Constraint, active=True):
        form = generate_standard_repn(row.body, compute_values=True)
        assert form.is_linear(), row.name
        for coefficient, variable in zip(form.linear_coefs, form.linear_vars, strict=True):
            entries[row.name, variable.name] = coefficient
        for side, bound in (("lower", row.lb), ("upper", row.ub)):
            if bound is not None:
                entries[row.name, side] = bound - form.constant
    for variable in variables(lp):
        for side, bound in (("lower", variable.lb), ("upper", variable.ub)):
            if bound is not None:
                entries[side, variable.name] = bound
    return {key: value for key, value in entries.items() if value != 0.0}


def assert_same(one: Any, other: Any) -> None:
    first, second = matrix(one), matrix(other)
    assert first.keys() == second.keys()
    for key, value in first.items():
        assert math.isclose(value, second[key], rel_tol=1e-12, abs_tol=1e-12), key
