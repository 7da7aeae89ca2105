"""Residuals of rules compared with Pyomo's own values of the constraints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
import torch
from pyomo.gdp import Disjunct

import gdpnet
from gdpnet.ir.data import Row

EVERYWHERE: Any = {"active": True, "descend_into": (pyo.Block, Disjunct)}


def excess(rules: gdpnet.RuleModel, z: np.ndarray, x: np.ndarray) -> dict[str, float]:
    """Left minus right side of each Constraint, the largest of its rows, by name."""
    values = rules.evaluate(torch.from_numpy(x[None])).rows.excess(torch.from_numpy(z[None]))[0]
    found: dict[str, float] = {}
    for i, row in enumerate(rules.data.rows):
        if i in rules.data.arguments or row.is_bound or is_domain(rules, row):
            continue
        value = abs(float(values[i])) if row.equality else float(values[i])
        found[row.name] = max(found.get(row.name, -np.inf), value)
    return found


def is_domain(rules: gdpnet.RuleModel, row: Row) -> bool:
    """Whether a row says where a curve of its Constraint is defined: `-t <= 0`."""
    arguments = [rules.data.rows[i] for i in rules.data.arguments]
    turned = [(j, a.scaled(-1.0)) for j, a in row.terms]
    return not row.curves and any(
        one.source == row.source
        and list(one.terms) == turned
        and one.bound == row.bound.scaled(-1.0)
        for one in arguments
    )


def pyomo_excess(model: Any) -> dict[str, float]:
    """The same by Pyomo, at the values that its Vars and Params have, where these are defined."""
    found = {}
    for data in model.component_data_objects(pyo.Constraint, **EVERYWHERE):
        try:
            body = pyo.value(data.body)
        except (ValueError, TypeError, ZeroDivisionError):
            continue
        if isinstance(body, complex):
            continue
        ends = []
        if data.lower is not None:
            ends.append(pyo.value(data.lower) - body)
        if data.upper is not None:
            ends.append(body - pyo.value(data.upper))
        found[data.name] = abs(ends[0]) if data.equality else max(ends)
        if len(ends) > 1 and not data.equality:  # a side that always holds is not read
            found[data.name] = max(found[data.name], 0.0)
    return found


def assert_as_pyomo(
    model: Any, rules: gdpnet.RuleModel, inputs: list[Any], rng: np.random.Generator
) -> int:
    """Compare at random points where Pyomo has a value; how many were compared."""
    data = rules.data
    variables = [model.find_component(column.name) for column in data.columns]
    compared = 0
    for _ in range(25):
        low = [max(c.lower, -6.0) for c in data.columns]
        high = [min(c.upper, 6.0) if c.upper > -6.0 else c.upper for c in data.columns]
        z = rng.uniform(low, np.maximum(low, high))
        x = np.array([rng.uniform(max(a, -5.0), min(b, 40.0)) for a, b in data.input_bounds])
        for variable, value in zip(variables, z.tolist(), strict=True):
            variable.set_value(value, skip_validation=True)
        for param, value in zip(inputs, x.tolist(), strict=True):
            param.set_value(value)
        found = excess(rules, z, x)
        for name, value in pyomo_excess(model).items():
            if name in found:
                own = max(found[name], 0.0) if value == 0.0 else found[name]
                scale = max(1.0, abs(value), float(np.abs(z).max()) ** 2)
                assert abs(own - value) <= 1e-9 * scale, (name, found[name], value)
                compared += 1
    return compared
