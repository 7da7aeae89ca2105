"""Saved rules loaded and projected where packages are missing; what needs them says so.

    python smoke.py pyomo,highspy

The answers are known by hand: rules.json has a fan and a chiller, of which one must be on where it
is hot. Runs without pytest.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

RULES = Path(__file__).with_name("rules.json")
# A process that loads saved rules and projects imports none of them, installed or not.
NOT_NEEDED = (
    *("pyomo", "networkx", "scipy", "highspy", "gurobipy", "clarabel", "matplotlib"),
    *("typer", "rich", "pandas", "torchmetrics", "sklearn", "ray"),
)


def main(absent: list[str]) -> None:
    for package in absent:
        try:
            importlib.import_module(package)
        except ModuleNotFoundError:
            continue
        raise AssertionError(f"{package} is not missing")
    project_saved_rules()
    imported = [package for package in NOT_NEEDED if sys.modules.get(package)]
    assert not imported, f"imported without need: {imported}"
    for package in absent:
        # Relaxations need both; HiGHS is missed first.
        if package in MESSAGES and not (package == "scipy" and "highspy" in absent):
            call, told = MESSAGES[package]
            said = message_of(call)
            assert told in said, f"{package}: {said}"
    print("fine without", ", ".join(absent))


def project_saved_rules() -> None:
    import torch

    import gdpnet

    rules = gdpnet.load_rules(RULES)
    x = torch.tensor([[20.0], [30.0]], dtype=torch.float64)
    yhat = torch.tensor([[0.6, 0.1], [0.6, 0.1]], dtype=torch.float64)
    p = gdpnet.project(rules, yhat, x)
    assert torch.allclose(p.y, torch.tensor([[0.6, 0.1], [0.75, 0.1]], dtype=torch.float64))
    assert p.info.solver == "exact"
    assert rules.active(x).tolist() == [[False], [True]]
    # The fan of the second sample is held by a rule: it does not follow the prediction.
    for gradient, expected in (
        ("vertex", [[1.0, 1.0], [0.0, 1.0]]),
        ("straight_through", [[1.0, 1.0], [1.0, 1.0]]),
    ):
        prediction = yhat.clone().requires_grad_()
        gdpnet.ProjectionLayer(rules, gradient=gradient)(prediction, x).sum().backward()
        assert prediction.grad is not None
        assert prediction.grad.tolist() == expected


def message_of(call: Callable[[Any, Any], object]) -> str:
    import gdpnet

    rules = gdpnet.load_rules(RULES)
    try:
        call(gdpnet, rules)
    except (gdpnet.GdpnetError, ImportError, SystemExit) as error:
        return str(error)
    return "nothing is missed"


def command(*_: object) -> None:
    from gdpnet.cli import main

    main()


# For a package: what needs it, and what is said then.
MESSAGES: dict[str, tuple[Callable[[Any, Any], object], str]] = {
    "pyomo": (
        lambda gdpnet, rules: gdpnet.convexify(rules, yhat=[0.6, 0.1]),
        "gdpnet.convexify needs pyomo, which is not installed. pip install pyomo",
    ),
    "scipy": (
        lambda gdpnet, rules: gdpnet.project(rules, [[0.6, 0.1]], [[30.0]], solver="highs"),
        "Relaxations written out need scipy, which is not installed. pip install scipy",
    ),
    "networkx": (
        lambda gdpnet, _: gdpnet.plan,
        "gdpnet.plan needs networkx, which is not installed. pip install networkx",
    ),
    "highspy": (
        lambda gdpnet, rules: gdpnet.project(rules, [[0.6, 0.1]], [[30.0]], solver="milp"),
        "HiGHS was asked for, but highspy is not installed. pip install highspy",
    ),
    "gurobipy": (
        lambda gdpnet, rules: gdpnet.project(rules, [[0.6, 0.1]], [[30.0]], solver="milp:gurobi"),
        "gurobipy is not installed. pip install 'gdpnet[gurobi]', or use HiGHS.",
    ),
    "matplotlib": (
        lambda gdpnet, rules: gdpnet.plot.plot_region(rules, x=[30.0]),
        "Pictures need matplotlib, which is not installed. pip install 'gdpnet[plot]'",
    ),
    "typer": (
        command,
        "The command gdpnet needs typer, which is not installed. pip install 'gdpnet[cli]'",
    ),
    "rich": (
        command,
        "The command gdpnet needs rich, which is not installed. pip install 'gdpnet[cli]'",
    ),
    "sklearn": (
        lambda gdpnet, _: gdpnet.sklearn,
        "gdpnet.sklearn needs sklearn, which is not installed. pip install 'gdpnet[sklearn]'",
    ),
    "ray": (
        lambda gdpnet, _: next(gdpnet.ray.Tasks().run(list, [[1]])),
        "Clusters need ray, which is not installed. pip install 'gdpnet[ray]'",
    ),
    "torchmetrics": (
        lambda gdpnet, rules: gdpnet.nn.RuleSatisfaction(rules),
        "gdpnet.nn.RuleSatisfaction needs torchmetrics: pip install 'gdpnet[metrics]'",
    ),
}

if __name__ == "__main__":
    main(sys.argv[1].split(","))
