"""gdpnet.lift_projection: the distance inside every disjunct."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo
import pytest
from pyomo.gdp import Disjunct, Disjunction

import gdpnet
from gdpnet.relaxation import get_copies, get_src_constraint
from gdpnet.testing.oracles import solved

LIFT = "gdpnet.lift_projection"


def model() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(4), bounds=(0, 10))
    m.sum = pyo.Constraint(expr=m.y[0] + m.y[1] <= 12)
    m.other = pyo.Constraint(expr=m.y[3] >= 1)
    m.gap = Disjunction(expr=[[m.y[0] <= 3], [m.y[0] >= 7]])
    m.far = Disjunction(expr=[[m.y[2] <= 3], [m.y[2] >= 7]])
    return m


def finish(m: Any) -> None:
    pyo.TransformationFactory("gdpnet.hull").apply_to(m)
    for variable in m.component_data_objects(pyo.Var, descend_into=(pyo.Block, Disjunct)):
        if variable.is_binary():
            variable.domain = pyo.UnitInterval


def test_each_disjunction_gets_what_hangs_together_with_it() -> None:
    m = model()
    pyo.TransformationFactory(LIFT).apply_to(m, outputs=m.y)
    gap, far = m.gap.disjuncts[0], m.far.disjuncts[1]
    assert list(gap.gdpnet_epigraph) == [(0, "above"), (0, "below"), (1, "above"), (1, "below")]
    assert list(gap.gdpnet_always) == ["sum"]
    assert list(far.gdpnet_epigraph) == [(2, "above"), (2, "below")]
    assert far.component("gdpnet_always") is None
    # What hangs together with no rule stays outside.
    assert list(m.gdpnet_epigraph) == [(3, "above"), (3, "below")]
    assert not m.sum.active
    assert m.other.active
    assert get_src_constraint(gap.gdpnet_always["sum"]) is m.sum
    assert len(get_copies(m.sum)) == 2


def test_the_prediction_can_be_anything_any_time() -> None:
    """Eta is bounded by the box, and yet a prediction far outside of it is projected."""
    m = model()
    m.old = pyo.Objective(expr=m.y[0])
    pyo.TransformationFactory(LIFT).apply_to(
        m, outputs=[m.y[2], m.y[0]], weights=[2, 0.5], yhat=[4.5, 5.5]
    )
    assert not m.old.active
    assert m.gdpnet_eta[0].ub == 10
    finish(m)
    for yhat, y, distance in (
        ((4.5, 5.5), (3, 7), 2 * 1.5 + 0.5 * 1.5),
        ((400.0, -70.0), (10, 0), 2 * 390 + 0.5 * 70),
        ((8.0, 2.0), (8, 2), 0.0),
    ):
        m.gdpnet_yhat[0], m.gdpnet_yhat[1] = yhat
        assert solved(m)
        assert [v.value for v in m.gdpnet_y.values()] == pytest.approx(y)
        assert pyo.value(m.gdpnet_distance) == pytest.approx(distance)


def test_clipping_may_be_left_to_the_caller() -> None:
    m = model()
    pyo.TransformationFactory(LIFT).apply_to(m, outputs=[m.y[0]], yhat=[4.5], clip=False)
    assert str(m.gap.disjuncts[0].gdpnet_epigraph[0, "above"].expr) == (
        "y[0] - gdpnet_yhat[0]  <=  gdpnet_eta[0]"
    )


def test_a_model_without_rules_is_a_plain_lp() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2))
    m.sum = pyo.Constraint(expr=m.y[0] + m.y[1] == 3)
    pyo.TransformationFactory(LIFT).apply_to(m, outputs=m.y, yhat=[5, -4])
    assert solved(m)
    assert pyo.value(m.gdpnet_distance) == pytest.approx(2.0)


def test_rows_on_weights_of_disjuncts_stay_outside() -> None:
    m = model()
    binaries = [d.disjuncts[0].binary_indicator_var for d in (m.gap, m.far)]
    m.cap = pyo.Constraint(expr=sum(binaries) <= 1)
    pyo.TransformationFactory(LIFT).apply_to(m, outputs=m.y)
    assert m.cap.active


def test_targets_leave_the_originals() -> None:
    m = model()
    pyo.TransformationFactory(LIFT).apply_to(m, outputs=m.y, targets=[m.gap])
    assert m.sum.active
    assert m.far.disjuncts[0].component("gdpnet_epigraph") is None
    assert m.gap.disjuncts[0].component("gdpnet_epigraph") is not None


def test_create_using_leaves_the_model() -> None:
    m = model()
    made = pyo.TransformationFactory(LIFT).create_using(m, outputs=[m.y])
    assert m.component("gdpnet_yhat") is None
    assert made.gdpnet_y[1] is made.y[1]


def test_nested_disjuncts_are_lifted_too() -> None:
    m = model()
    m.a, m.b = Disjunct(), Disjunct()
    m.a.inner = Disjunction(expr=[[m.y[3] <= 2], [m.y[3] >= 8]])
    m.b.row = pyo.Constraint(expr=m.y[3] == 5)
    m.own = Disjunction(expr=[m.a, m.b])
    pyo.TransformationFactory(LIFT).apply_to(m, outputs=m.y, yhat=[0, 0, 0, 3.9])
    assert list(m.a.inner.disjuncts[0].gdpnet_epigraph) == [(3, "above"), (3, "below")]
    finish(m)
    assert solved(m)
    assert pyo.value(m.gdpnet_distance) == pytest.approx(1.1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "outputs: expected the Vars"),
        ({"outputs": []}, "at least one"),
        ({"outputs": [3]}, "expected a Var, got 3"),
        ({"outputs": "twice"}, "listed twice"),
        ({"outputs": "all", "weights": [1, 2]}, "weights: expected 4"),
        ({"outputs": "all", "weights": [1, 2, 0, 1]}, "positive"),
        ({"outputs": "all", "yhat": [1, 2, 3, float("nan")]}, "yhat: expected 4 finite"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    m = model()
    named = {"twice": [m.y[0], m.y], "all": m.y}
    if isinstance(options.get("outputs"), str):
        options = options | {"outputs": named[options["outputs"]]}
    with pytest.raises(gdpnet.GdpnetError, match=message):
        pyo.TransformationFactory(LIFT).apply_to(m, **options)


def test_a_model_is_lifted_once() -> None:
    m = model()
    pyo.TransformationFactory(LIFT).apply_to(m, outputs=m.y)
    with pytest.raises(gdpnet.errors.RuleError, match="lifted once"):
        pyo.TransformationFactory(LIFT).apply_to(m, outputs=m.y)
