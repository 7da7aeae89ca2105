"""Pictures of the rule graph."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path

import networkx as nx
import pyomo.environ as pyo
import pytest
import torch
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.patches import Polygon

import gdpnet
from gdpnet import Plan
from gdpnet.plot import plot_rule_graph
from gdpnet.study import load_model

MODELS = Path(__file__).parents[2] / "models"


def graph_of(folder: str, **arguments: object) -> nx.Graph:
    return gdpnet.plan.interaction_graph(load_model(MODELS / folder).build(**arguments))


def labels(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def explained(ax: Axes) -> list[str]:
    legend = ax.get_legend()
    return [text.get_text() for text in legend.get_texts()] if legend else []


def check_layout(ax: Axes) -> None:
    """Labels stay apart from each other and from the discs, and inside the picture."""
    ax.figure.canvas.draw()
    whole = ax.figure.bbox
    boxes = [text.get_window_extent() for text in ax.texts if text.get_rotation() == 0]
    for box in boxes:
        assert whole.x0 <= box.x0 < box.x1 <= whole.x1
        assert whole.y0 <= box.y0 < box.y1 <= whole.y1
    for one, other in combinations(boxes, 2):
        assert not one.overlaps(other)


def test_cooling() -> None:
    graph = graph_of("cooling")
    ax = plot_rule_graph(graph)
    for name, node in graph.nodes(data=True):
        assert f"{name}\nactive {100 * node['active']:.0f} %" in labels(ax)
    assert labels(ax).count("2") == 7
    heaviest = max(ax.lines, key=lambda line: line.get_linewidth())
    a, b, _ = max(graph.edges(data="weight"), key=lambda edge: edge[2])
    assert heaviest.get_linestyle() == "-"
    assert {a, b} == {near(ax, x, y) for x, y in heaviest.get_xydata()}
    never = sum(not together for *_, together in graph.edges(data="together"))
    assert never > 0
    dots = [line for line in ax.lines if line._unscaled_dash_pattern == (0, (1, 3))]
    assert len(dots) == never
    assert "never active together" in explained(ax)
    check_layout(ax)


def near(ax: Axes, x: float, y: float) -> str:
    """The rule whose label is nearest to a point, going outwards."""
    names = [text for text in ax.texts if "\n" in text.get_text()]
    places = {t.get_text().split("\n")[0]: t.get_position() for t in names}
    return min(places, key=lambda name: math.dist(places[name], (1.2 * x, 1.2 * y)))


def test_stress_with_eight_rules_and_a_plan() -> None:
    graph = graph_of("stress", k=8)
    plan = Plan((("rule[0]", "rule[3]", "rule[6]"), ("rule[1]", "rule[2]")))
    ax = plot_rule_graph(graph, plan=plan)
    hulls = [patch for patch in ax.patches if isinstance(patch, Polygon) and patch.get_hatch()]
    assert len({hull.get_hatch() for hull in hulls}) == len(hulls) == 2
    assert len({to_rgba(hull.get_edgecolor()) for hull in hulls}) == 2
    inside = {
        text.get_text()
        for text in ax.texts
        for hull in hulls
        if hull.get_path().contains_point(text.get_position())
    }
    assert inside == {"2"}  # the discs of five rules, no name
    assert [line for line in explained(ax) if line.startswith("merged")] == [
        "merged: 3 rules",
        "merged: 2 rules",
    ]
    check_layout(ax)


@pytest.mark.parametrize("k", [2, 3, 5, 12, 20])
def test_any_number_of_rules(k: int) -> None:
    ax = plot_rule_graph(graph_of("stress", k=k))
    assert ax.get_title(loc="left").startswith(f"{k} rules")
    assert sum("rule[" in text for text in labels(ax)) == k
    check_layout(ax)


def test_one_rule_and_none() -> None:
    ax = plot_rule_graph(graph_of("toy", name="one_rule"))
    assert labels(ax) == ["2", "rule\nactive 100 %"]
    assert not ax.lines
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 1))
    ax = plot_rule_graph(gdpnet.plan.interaction_graph(gdpnet.RuleModel(m, outputs=[m.y])))
    assert labels(ax) == ["no rules"]
    assert ax.get_title(loc="left") == "0 rules, 0 interactions"


def test_the_picture_goes_where_it_is_told_and_is_always_the_same() -> None:
    graph = graph_of("cooling")
    _, axes = pyplot.subplots(1, 2)
    assert plot_rule_graph(graph, axes[1]) is axes[1]
    assert not axes[0].lines
    assert len(pyplot.get_fignums()) == 1
    again = pyplot.subplots(1, 2)[1][1]
    plot_rule_graph(graph, again)
    places = [[text.get_position() for text in ax.texts] for ax in (axes[1], again)]
    assert places[0] == places[1]


def test_a_graph_without_gains_can_be_drawn() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2))
    m.a = gdpnet.rule(gdpnet.any_of(m.y[0] <= 3, m.y[1] >= 7))
    m.b = gdpnet.rule(gdpnet.any_of(m.y[0] >= 4, m.y[1] >= 9))
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    ax = plot_rule_graph(
        gdpnet.plan.interaction_graph(rules, yhat=torch.full((4, 2), 3.5).double())
    )
    assert "active together, nothing gained" in explained(ax)


def test_bad_arguments() -> None:
    graph = graph_of("toy", name="two_rules")
    with pytest.raises(gdpnet.errors.InputError, match="interaction_graph"):
        plot_rule_graph([1, 2])  # type: ignore[arg-type]
    with pytest.raises(gdpnet.errors.RuleError, match="'hot' is no rule"):
        plot_rule_graph(graph, plan=Plan((("rule1", "hot"),)))
