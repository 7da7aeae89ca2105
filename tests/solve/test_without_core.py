"""What works without the compiled core, in a process without it; compared with this one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet.ir.instance import Instance
from gdpnet.testing import random_predictions, random_rules

ROOT = Path(__file__).parents[2]


def model() -> gdpnet.RuleModel:
    """Conditions, a coefficient and a bound that depend on the input, rules that interact."""
    m = pyo.ConcreteModel()
    m.t = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var([1, 2, 3], bounds=(0, 10))
    m.total = pyo.Constraint(expr=m.y[1] + m.t * m.y[2] >= 3 * m.t)
    m.a = gdpnet.rule(gdpnet.any_of(m.y[1] <= 3, m.y[1] >= 7))
    m.b = gdpnet.rule(gdpnet.any_of(m.y[1] + m.y[2] <= 4, m.y[1] + m.y[2] >= 9 + m.t))
    m.c = Disjunction(expr=[[m.y[3] <= 3], [m.y[3] >= 7]])
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.active_when[m.c] = m.t >= 1
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t], input_bounds=[(0.5, 1.5)])


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    yhat = 12 * torch.rand(12, 3, generator=generator, dtype=torch.float64) - 1
    return yhat, 0.5 + torch.rand(12, 1, generator=generator, dtype=torch.float64)


KEYWORDS: dict[str, dict[str, Any]] = {
    "dnf": {},
    "milp": {"solver": "milp"},
    "highs": {"solver": "highs"},
    "cnf": {"relaxation": "cnf"},
    "cnf by highs": {"relaxation": "cnf", "solver": "highs"},
    "adaptive": {"relaxation": "adaptive"},
    "plan": {"relaxation": gdpnet.Plan((("a", "b"),))},
}


def told(rules: gdpnet.RuleModel) -> dict[str, Any]:
    """What is asked of both processes."""
    yhat, x = batch()
    found: dict[str, Any] = {}
    for name, keywords in KEYWORDS.items():
        p = gdpnet.project(rules, yhat, x, **keywords)
        found[name] = [p.value.tolist(), p.status.tolist()]
    small = slice(0, 4)
    graph = gdpnet.plan.interaction_graph(rules, yhat[small], x[small])
    found["graph"] = nx.node_link_data(graph, edges="edges")
    plan = gdpnet.plan.choose(rules, 4, yhat[small], x[small])
    found["plan of basic steps"] = [[list(c) for c in plan.clusters], plan.exact]
    tight = gdpnet.plan.choose(rules, 3, yhat[small], x[small])
    found["plan within less"] = [[list(c) for c in tight.clusters], tight.exact]
    found["satisfied"] = rules.satisfied(yhat, x).tolist()
    found["violation"] = rules.violation(yhat, x).tolist()
    found["explain"] = [one.distance for one in rules.explain(yhat, x)]
    found["conflict"] = rules.explain_conflict(x[0])
    program = gdpnet.convexify(rules, x=x[0], yhat=yhat[0])
    found["convexify"] = len(list(program.component_data_objects(pyo.Constraint, active=True)))
    return found


def straight(rules: gdpnet.RuleModel, keywords: dict[str, Any]) -> list[list[list[float]]]:
    """Outputs and gradients of a layer; HiGHS starts afresh."""
    yhat, x = batch()
    layer = gdpnet.ProjectionLayer(gdpnet.RuleModel.from_data(rules.data), **keywords)
    yhat.requires_grad_()
    x.requires_grad_()
    y = layer(yhat, x)
    (y * torch.arange(1.0, 4.0)).sum().backward()
    return [y.tolist(), yhat.grad.tolist(), x.grad.tolist()]


# Keywords of a layer, and of one here that should do the same.
LAYERS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"solver": "milp", "gradient": "auto"}),
    ({"gradient": "vertex"}, {"solver": "milp", "gradient": "vertex"}),
    ({"gradient": "straight_through"}, {"solver": "milp", "gradient": "straight_through"}),
    ({"relaxation": "cnf"}, {"relaxation": "cnf", "solver": "highs"}),
    ({"solver": "highs", "gradient": "vertex"}, {"solver": "highs", "gradient": "vertex"}),
]

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"solver": "exact"}, "solver='exact' needs the compiled core; solver='milp' does not. "
     "The compiled core is not built. Build it: "),
    ({"relaxation": "cnf", "solver": "extended"}, "solver='extended' needs the compiled core; "
     "solver='highs' does not. "),
    ({"gradient": gdpnet.Mixed("qp")}, "gradient: QP(eps=0.01, cap=64) needs the compiled core; "
     "gradient='auto' or 'straight_through' does not. "),
    ({"relaxation": "cnf", "gradient": "qp"}, "gradient: QP(eps=0.01, cap=64) needs the compiled"),
    ({"solver": gdpnet.solve.Exact(tie="least_norm")}, "solver='exact' needs the compiled core"),
    ({"strict": True}, "strict=True needs the compiled core; strict=False does not. "),
    ({"forward": "qp", "gradient": "qp"}, "gradient: QP(eps=0.01, cap=64) needs the compiled core"),
]  # fmt: skip


def other_process() -> dict[str, Any]:
    """Runs there."""
    rules = model()
    found: dict[str, Any] = {"told": told(rules)}
    found["layers"] = [straight(rules, keywords) for keywords, _ in LAYERS]
    found["repr"] = repr(gdpnet.ProjectionLayer(rules))
    found["refused"] = []
    for keywords, _ in REFUSED:
        try:
            gdpnet.ProjectionLayer(rules, **keywords)
        except gdpnet.errors.SolverError as error:
            found["refused"].append(str(error))
    from tests.cli._calls import run

    doctor = run("doctor")
    found["doctor"] = [doctor.exit_code, doctor.stdout]
    return found


@pytest.fixture(scope="module")
def there() -> Any:
    code = """
import json, logging, sys
sys.modules["gdpnet.core._native"] = None
logging.getLogger("gdpnet").addHandler(logging.StreamHandler(sys.stderr))
from tests.solve.test_without_core import other_process
print(json.dumps(other_process()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("The compiled core is not built. Build it: ") == 1
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def here() -> Any:
    return told(model())


@pytest.mark.parametrize("name", KEYWORDS)
def test_projections(there, here, name) -> None:
    (value, status), (expected, expected_status) = there["told"][name], here[name]
    assert value == pytest.approx(expected, abs=1e-7)
    assert status == expected_status


@pytest.mark.parametrize("name", ["satisfied", "violation", "conflict", "convexify"])
def test_measuring_and_convexifying(there, here, name) -> None:
    assert there["told"][name] == here[name]


def test_explanations(there, here) -> None:
    assert there["told"]["explain"] == pytest.approx(here["explain"], abs=1e-7)


def test_the_rule_graph(there, here) -> None:
    one, other = there["told"]["graph"], here["graph"]
    assert one["nodes"] == other["nodes"]
    assert other["edges"]
    for edge, expected in zip(one["edges"], other["edges"], strict=True):
        assert edge == {
            key: pytest.approx(value, abs=1e-7) if isinstance(value, float) else value
            for key, value in expected.items()
        }


def test_plans(there, here) -> None:
    assert (
        there["told"]["plan of basic steps"] == here["plan of basic steps"] == [[["a", "b"]], True]
    )
    assert there["told"]["plan within less"] == here["plan within less"]


@pytest.mark.parametrize("number", range(len(LAYERS)))
def test_layers_go_forward_and_backward(there, number) -> None:
    expected = straight(model(), LAYERS[number][1])
    for found, wanted in zip(there["layers"][number], expected, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-7)


def test_who_solves_is_shown(there) -> None:
    assert "solver=MILP()" in there["repr"]


def test_what_needs_the_core_is_refused_when_the_layer_is_made(there) -> None:
    assert len(there["refused"]) == len(REFUSED)
    for message, (_, expected) in zip(there["refused"], REFUSED, strict=True):
        assert message.startswith(expected)


def test_doctor(there) -> None:
    code, text = there["doctor"]
    assert code == 0
    assert "no compiled core is not built. Build it: " in " ".join(text.split())
    assert "All that gdpnet needs works." in text


# ---- in this process ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_graphs_of_random_rules(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    rules = random_rules(rng)
    yhat = torch.from_numpy(random_predictions(rng, len(rules.output_names)))
    graphs = []
    for available in (True, False):
        monkeypatch.setattr("gdpnet.core.AVAILABLE", available)
        graphs.append(gdpnet.plan.interaction_graph(gdpnet.RuleModel.from_data(rules.data), yhat))
    assert list(graphs[0].edges) == list(graphs[1].edges)
    for one, other in zip(graphs[0].edges.values(), graphs[1].edges.values(), strict=True):
        assert one["empty"] == other["empty"]
        assert one["gain"] == pytest.approx(other["gain"], abs=1e-7)


@pytest.mark.parametrize("available", [True, False])
def test_evaluating_one_sample_leaves_the_rules_alone(
    available: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gdpnet.core.AVAILABLE", available)
    m = pyo.ConcreteModel()
    m.t = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var(bounds=(0, 10))
    m.least = pyo.Constraint(expr=m.y / m.t >= 5)
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t])
    instance = Instance.of(rules, np.zeros((1, 1)))
    assert instance.unusable().all()
    instance.bound[:] = 0.0
    assert Instance.of(rules, np.ones((1, 1))).bound.tolist() == [[-5.0]]
