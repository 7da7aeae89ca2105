"""Models of the literature with convex rows: projections as SCIP finds them on Pyomo's big-M."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
import torch

import gdpnet
from tests.rules.public_models import MODELS

pytest.importorskip("pyscipopt")


def nearest_by_scip(build: Any, names: tuple[str, ...], yhat: np.ndarray, norm: str) -> float:
    """What is minimised at the nearest point: the distance, or with l2 its square."""
    m = build()
    columns = [m.find_component(name) for name in names]
    for objective in m.component_data_objects(pyo.Objective):
        objective.deactivate()
    if norm == "l1":
        m.gdpnet_t = pyo.Var(range(len(columns)), bounds=(0, None))
        m.gdpnet_rows = pyo.ConstraintList()
        for j, column in enumerate(columns):
            m.gdpnet_rows.add(column - float(yhat[j]) <= m.gdpnet_t[j])
            m.gdpnet_rows.add(float(yhat[j]) - column <= m.gdpnet_t[j])
        m.gdpnet_least = pyo.Objective(expr=sum(m.gdpnet_t[j] for j in range(len(columns))))
    else:
        away = sum((column - float(yhat[j])) ** 2 for j, column in enumerate(columns))
        m.gdpnet_least = pyo.Objective(expr=away)
    pyo.TransformationFactory("gdp.bigm").apply_to(m)
    solver = pyo.SolverFactory("scip_direct")
    # With a feasibility of 1e-9 SCIP's simplex does not end on some of these.
    solver.options.update({"display/verblevel": 0, "numerics/feastol": 1e-8, "limits/time": 60})
    found = solver.solve(m, load_solutions=True)
    assert found.solver.termination_condition == pyo.TerminationCondition.optimal
    return float(pyo.value(m.gdpnet_least))


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("name", MODELS)
def test_nearest_points_are_those_of_scip(name: str, norm: str) -> None:
    rules = gdpnet.RuleModel(MODELS[name](), outputs="continuous")
    rng = np.random.default_rng(5)
    lower, upper = rules.lower.numpy(), rules.upper.numpy()
    width = np.minimum(upper - lower, 50.0)
    yhat = rng.uniform(lower - 0.5 * width, lower + 1.5 * width, (3, len(lower)))
    p = gdpnet.project(rules, torch.from_numpy(yhat), norm=norm)
    solved = p.status == gdpnet.Status.PROJECTED
    assert solved.any() or (p.status == gdpnet.Status.SATISFIED).all()
    assert rules.satisfied(p.y[solved], tol=1e-9).all()
    for s in np.flatnonzero(solved.numpy()).tolist():
        expected = nearest_by_scip(MODELS[name], rules.output_names, yhat[s], norm)
        assert float(p.value[s]) == pytest.approx(expected, rel=1e-6, abs=1e-6)
