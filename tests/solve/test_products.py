"""Products within a distance band, against enumeration with a linear program each."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from gdpnet.ir.instance import Instance
from gdpnet.solve.exact.backend import engine_of
from gdpnet.solve.exact.options import SearchOptions
from gdpnet.solve.exact.products import products_within
from gdpnet.testing.problems import reference

SMALL = [case for case in reference.CASES if 0 < len(case["rules"]) and case["dnf_terms"] <= 100]


def distances(case: dict[str, Any], yhat: list[float]) -> dict[tuple[int, ...], float]:
    """Distance of every product that is not empty."""
    d = case["d"]
    found = {}
    for choice in product(*(range(len(rule)) for rule in case["rules"])):
        rows = list(case["globals"])
        for rule, k in zip(case["rules"], choice, strict=True):
            rows += rule[k]
        upper = [r for r in rows if r["s"] != "=="]
        equal = [r for r in rows if r["s"] == "=="]
        sign = [1.0 if r["s"] == "<=" else -1.0 for r in upper]
        # columns: above the prediction, below it
        a_upper = [
            [*(s * np.array(r["a"])), *(-s * np.array(r["a"]))]
            for r, s in zip(upper, sign, strict=True)
        ]
        b_upper = [s * (r["b"] - np.dot(r["a"], yhat)) for r, s in zip(upper, sign, strict=True)]
        bounds = [(0, None)] * (2 * d)
        for j in range(d):
            e = np.eye(d)[j]
            if case["ub"][j] is not None:
                a_upper.append([*e, *-e])
                b_upper.append(case["ub"][j] - yhat[j])
            if case["lb"][j] is not None:
                a_upper.append([*-e, *e])
                b_upper.append(yhat[j] - case["lb"][j])
        answer = linprog(
            np.ones(2 * d),
            A_ub=np.array(a_upper) if a_upper else None,
            b_ub=b_upper or None,
            A_eq=np.array([[*r["a"], *(-np.array(r["a"]))] for r in equal]) if equal else None,
            b_eq=[r["b"] - np.dot(r["a"], yhat) for r in equal] or None,
            bounds=bounds,
        )
        if answer.status == 0:
            found[choice] = answer.fun
    return found


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case["id"])
@pytest.mark.parametrize("band", [1e-6, 0.3])
def test_all_products_of_the_band_are_listed(case: dict[str, Any], band: float) -> None:
    rules = next(p for p in reference.PROBLEMS if p.name == case["id"]).rules()
    engine = engine_of(rules)
    samples = case["expected"][:4]
    yhat = np.array([e["yhat"] for e in samples])
    weights = np.ones(case["d"])
    instance = Instance.of(rules, np.zeros((len(yhat), 0)))
    cap = 128
    optimum = engine.project(instance, yhat, SearchOptions(weights, tolerance=0.0)).distance
    if len(engine.components) > 1:
        pytest.skip("the bands of several components are lists of their own")
    (listed,) = products_within(engine, instance, yhat, weights, optimum[None] + band, cap)
    for s, sample in enumerate(samples):
        every = distances(case, sample["yhat"])
        wanted = {c: v for c, v in every.items() if v <= sample["l1"] + band}
        assert listed.count[s] == len(wanted)
        seen = {}
        for k in range(len(wanted)):
            chosen = tuple(
                int(
                    np.flatnonzero(listed.assignment[s, k][[j - 1 for j in clause.literals]] == 1)[
                        0
                    ]
                )
                for clause in rules.data.clauses
            )
            seen[chosen] = listed.distance[s, k]
        assert seen.keys() == wanted.keys()
        for choice, value in wanted.items():
            assert seen[choice] == pytest.approx(value, abs=1e-8)


def test_more_products_than_the_cap_are_counted_as_more() -> None:
    case = next(c for c in SMALL if c["id"] == "jl_midsize")
    rules = next(p for p in reference.PROBLEMS if p.name == case["id"]).rules()
    engine = engine_of(rules)
    yhat = np.array([case["expected"][0]["yhat"]])
    instance = Instance.of(rules, np.zeros((1, 0)))
    (listed,) = products_within(engine, instance, yhat, np.ones(3), np.full((1, 1), 10.0), 5)
    assert listed.count[0] == 6
    assert np.isfinite(listed.distance[0]).all()
