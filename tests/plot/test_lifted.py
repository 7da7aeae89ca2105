"""Lifted sets of one output, against the paper's example worked by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet.plot import plot_lifted
from gdpnet.plot._polygons import inside
from gdpnet.study import load_model
from tests.plot._axes import legend, polygons

MODELS = Path(__file__).parents[2] / "models"


def toy(name: str) -> gdpnet.RuleModel:
    return load_model(MODELS / "toy").build(name=name)


def corners(points: np.ndarray) -> set[tuple[float, ...]]:
    return {tuple(p) for p in np.round(points, 7).tolist()}


@pytest.mark.parametrize("name", ["one_rule", "two_rules"])
def test_the_papers_example(name: str) -> None:
    ax = plot_lifted(toy(name), yhat=4.5)
    left, right = sorted(polygons(ax, "lifted disjunct"), key=lambda c: c[:, 0].min())
    assert corners(left) == {(0, 4.5), (3, 1.5), (3, 10), (0, 10)}
    assert corners(right) == {(7, 2.5), (10, 5.5), (10, 10), (7, 10)}
    (hull,) = polygons(ax, "lifted hull")
    assert corners(hull) == {(0, 4.5), (3, 1.5), (7, 2.5), (10, 5.5), (10, 10), (0, 10)}
    assert hull[np.argmin(hull[:, 1])].tolist() == pytest.approx([3.0, 1.5])
    assert ax.get_title(loc="left") == "y = 4.5 moves to 3, distance 1.5"
    assert "hull in y alone: accepts 4.5" in legend(ax)


def test_the_cnf_of_two_rules_has_a_lower_point_that_breaks_one() -> None:
    rules = toy("two_rules")
    ax = plot_lifted(rules, yhat=5.2, relaxation="cnf")
    (hull,) = polygons(ax, "lifted hull")
    for piece in polygons(ax, "lifted disjunct"):
        assert inside(hull, piece, 1e-8).all()
    lowest = hull[np.argmin(hull[:, 1])]
    projection = gdpnet.project(rules, np.array([[5.2]]), relaxation="cnf")
    assert lowest[1] == pytest.approx(float(projection.value))
    assert lowest[0] == pytest.approx(float(projection.y))
    assert any("breaks a rule" in text.get_text() for text in ax.texts)


def test_predictions_that_hold_lie_outside_or_have_no_way_out() -> None:
    assert "stays" in plot_lifted(toy("one_rule"), yhat=[8.0]).get_title(loc="left")
    ax = plot_lifted(toy("one_rule"), yhat=12.0)
    assert ax.get_title(loc="left") == (
        "y = 12 moves to 10, distance 2 (drawn from 10, its nearest bound)"
    )
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.gap = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 7))
    m.no = pyo.Constraint(expr=m.y == 5)
    ax = plot_lifted(gdpnet.RuleModel(m, outputs=[m.y]), yhat=4.5)
    assert ax.get_title(loc="left") == "no point satisfies the active rules"
    assert not polygons(ax, "lifted disjunct")


def test_whole_numbers_are_lines() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 3), domain=pyo.Integers)
    ax = plot_lifted(gdpnet.RuleModel(m, outputs=[m.y]), yhat=1.4)
    ends = sorted(tuple(np.unique(np.round(c[:, 0], 9))) for c in polygons(ax, "lifted disjunct"))
    assert ends == [(0.0,), (1.0,), (2.0,), (3.0,)]


def test_bad_arguments() -> None:
    with pytest.raises(gdpnet.errors.InputError, match="plot_region"):
        plot_lifted(toy("figure1"), yhat=[1.0, 2.0])
    with pytest.raises(gdpnet.errors.InputError, match="give a number"):
        plot_lifted(toy("one_rule"))
    with pytest.raises(gdpnet.errors.InputError, match="one prediction, got 2"):
        plot_lifted(toy("one_rule"), yhat=[[1.0], [2.0]])
    with pytest.raises(gdpnet.errors.InputError, match="expected 1 column"):
        plot_lifted(toy("one_rule"), yhat=[1.0, 2.0])
    m = pyo.ConcreteModel()
    m.y = pyo.Var()
    m.gap = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 7))
    with pytest.raises(gdpnet.errors.InputError, match="y has no finite bounds"):
        plot_lifted(gdpnet.RuleModel(m, outputs=[m.y]), yhat=1.0)


def test_an_output_that_cannot_move_has_a_picture() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(2, 2))
    m.gap = Disjunction(expr=[[m.y <= 3], [m.y >= 7]])
    ax = plot_lifted(gdpnet.RuleModel(m, outputs=[m.y]), yhat=2.0)
    assert ax.get_xlim()[0] < 2.0 < ax.get_xlim()[1]
