"""The 13 reference models with 153 proved distances, as Pyomo models."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pyomo.environ as pyo
from pyomo.gdp import Disjunction

from gdpnet.testing._problem import Problem, Sample

CASES: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("reference.json").read_text(encoding="utf-8")
)


def build(case: dict[str, Any]) -> pyo.ConcreteModel:
    m = pyo.ConcreteModel(name=case["id"])
    bounds = list(zip(case["lb"], case["ub"], strict=True))
    m.y = pyo.Var(range(case["d"]), bounds=lambda _, i: bounds[i])

    def relation(row: dict[str, Any]) -> Any:
        body = sum(a * m.y[i] for i, a in enumerate(row["a"]) if a)
        return {"<=": body <= row["b"], ">=": body >= row["b"], "==": body == row["b"]}[row["s"]]

    m.always = pyo.ConstraintList()
    for row in case["globals"]:
        m.always.add(relation(row))
    names = case["rule_names"] or [f"rule{k}" for k in range(len(case["rules"]))]
    for name, rule in zip(names, case["rules"], strict=True):
        terms = [[relation(row) for row in disjunct] for disjunct in rule]
        m.add_component(name, Disjunction(expr=terms))
    return m


PROBLEMS = [
    Problem(
        case["id"],
        partial(build, case),
        tuple(
            Sample(tuple(e["yhat"]), distance=e["l1"], tie=e.get("tie", False))
            for e in case["expected"]
        ),
    )
    for case in CASES
]
