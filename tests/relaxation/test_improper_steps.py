"""gdpnet.basic_steps with Constraints, and the indicators of its sources: Pyomo is the oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.gdp import Disjunct, Disjunction
from pyomo.gdp.basic_step import apply_basic_step

import gdpnet
from gdpnet.relaxation import get_copies, get_src_constraint, get_src_disjuncts

STEPS = "gdpnet.basic_steps"


def job_shop() -> pyo.ConcreteModel:
    """Three jobs on three machines, one at a time on each; the shortest makespan is 11."""
    times = {"A": (5, 0, 3), "B": (0, 3, 2), "C": (2, 4, 0)}
    m = pyo.ConcreteModel()
    m.start = pyo.Var("ABC", bounds=(0, 19))
    m.makespan = pyo.Var(bounds=(0, 19))
    m.Feas = pyo.Constraint("ABC", rule=lambda m, j: m.makespan >= m.start[j] + sum(times[j]))
    m.order = Disjunct([("A", "B", 2), ("B", "A", 2), ("A", "C", 0), ("C", "A", 0),
                        ("B", "C", 1), ("C", "B", 1)])  # fmt: skip
    for first, second, stage in m.order:
        m.order[first, second, stage].row = pyo.Constraint(
            expr=m.start[first] + sum(times[first][: stage + 1])
            <= m.start[second] + sum(times[second][:stage])
        )
    pairs = [("A", "B", 2), ("A", "C", 0), ("B", "C", 1)]
    m.clash = Disjunction(pairs, rule=lambda m, i, j, s: [m.order[i, j, s], m.order[j, i, s]])
    m.cost = pyo.Objective(expr=m.makespan)
    return m


def strip_packing() -> pyo.ConcreteModel:
    """Three rectangles on a strip of width 10: left, right, above or below each other."""
    lengths, heights = (6, 3, 4), (6, 4, 5)
    m = pyo.ConcreteModel()
    m.length = pyo.Var(bounds=(0, 13))
    m.x = pyo.Var(range(3), bounds=lambda m, i: (0, 13 - lengths[i]))
    m.y = pyo.Var(range(3), bounds=lambda m, i: (heights[i], 10))
    m.end = pyo.Constraint(range(3), rule=lambda m, i: m.length >= m.x[i] + lengths[i])

    def apart(m: Any, i: int, j: int) -> list[Any]:
        beside = [[m.x[i] + lengths[i] <= m.x[j]], [m.x[j] + lengths[j] <= m.x[i]]]
        return [*beside, [m.y[i] - heights[i] >= m.y[j]], [m.y[j] - heights[j] >= m.y[i]]]

    m.apart = Disjunction([(0, 1), (0, 2), (1, 2)], rule=apart)
    m.cost = pyo.Objective(expr=m.length)
    return m


def random_model(seed: int) -> pyo.ConcreteModel:
    """Rules and constraints (one of them ranged, one an equality) around a point that fits all."""
    rng = np.random.default_rng(seed)
    point = rng.uniform(2, 8, 3)
    m = pyo.ConcreteModel()
    m.z = pyo.Var(range(3), bounds=(0, 10))

    def row(slack: float) -> Any:
        a = rng.integers(-3, 4, 3)
        return sum(int(a[j]) * m.z[j] for j in range(3)) + 0 * m.z[0] <= float(a @ point) + slack

    def terms(m: Any, i: int) -> list[Any]:
        return [[row(0.5), row(0.5)], [row(-1.0)], [row(-2.0)]][: 2 + i % 2]

    m.rules = Disjunction(range(3), rule=terms)
    m.rows = pyo.ConstraintList()
    m.rows.add(row(0.2))
    m.rows.add(pyo.inequality(-1.0, m.z[0] - m.z[1] - float(point[0] - point[1]), 0.5))
    m.rows.add(m.z[1] + 2 * m.z[2] == float(point[1] + 2 * point[2]))
    m.cost = pyo.Objective(expr=sum(float(c) * m.z[j] for j, c in enumerate(rng.normal(size=3))))
    return m


def hull_value(m: Any, hull: str = "gdp.hull") -> float:
    pyo.TransformationFactory(hull).apply_to(m)
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(m)
    return solved(m)


def solved(m: Any) -> float:
    pyo.SolverFactory("appsi_highs").solve(m)
    return float(pyo.value(m.cost))


def merge(m: Any, *members: Any, **options: Any) -> Any:
    pyo.TransformationFactory(STEPS).apply_to(m, clusters=[list(members)], **options)
    return m


def as_pyomo(m: Any, members: list[Any]) -> Any:
    """The same basic step by Pyomo, which takes members of Disjunctions only."""
    single = [list(c.values()) if c.is_indexed() else [c] for c in members]
    m.step = apply_basic_step([member for group in single for member in group])
    return m


@pytest.mark.parametrize("hull", ["gdp.hull", "gdpnet.hull"])
def test_job_shop_needs_its_constraints(hull: str) -> None:
    """The objective is tied to the rules by Feas: without it, merging brings nothing."""
    assert hull_value(job_shop(), hull) == pytest.approx(62 / 7)
    assert hull_value(merge(job_shop(), "clash"), hull) == pytest.approx(62 / 7)
    m = merge(job_shop(), "clash", "Feas")
    assert not any(row.active for row in m.Feas.values())
    assert hull_value(m, hull) == pytest.approx(11.0)


def first_clashes(m: Any) -> list[Any]:
    return [m.clash["A", "B", 2], m.clash["B", "C", 1]]


@pytest.mark.parametrize("hull", ["gdp.hull", "gdpnet.hull"])
@pytest.mark.parametrize(
    ("build", "members"),
    [
        (job_shop, lambda m: [m.clash, m.Feas]),
        (job_shop, lambda m: [m.clash, m.Feas["A"], m.Feas["C"]]),
        (job_shop, lambda m: [*first_clashes(m), m.Feas]),
        (job_shop, first_clashes),
        (strip_packing, lambda m: [m.apart, m.end]),
        (strip_packing, lambda m: [m.apart[0, 1], m.end[1], m.end[2], m.apart[0, 2]]),
        *((lambda k=k: random_model(k), lambda m: [m.rules, m.rows]) for k in range(4)),
        *((lambda k=k: random_model(k), lambda m: [m.rules, m.rows[2]]) for k in range(4)),
    ],
)
def test_hull_is_that_of_pyomos_basic_step(
    build: Callable[[], Any], members: Callable[[Any], list[Any]], hull: str
) -> None:
    """All products give the same value; fewer can only be tighter, up to the exact one."""
    oracle, every, pruned, exact = build(), build(), build(), build()
    expected = hull_value(as_pyomo(oracle, members(oracle)))
    found = hull_value(merge(every, *members(every), prune=False), hull)
    assert found == pytest.approx(expected, abs=1e-7)
    pyo.TransformationFactory("gdp.bigm").apply_to(exact)
    tighter = hull_value(merge(pruned, *members(pruned)), hull)
    assert expected - 1e-7 <= tighter <= solved(exact) + 1e-7


def test_members_by_name_and_targets() -> None:
    m = merge(job_shop(), "clash", "Feas[A]", "Feas[B]", "Feas[C]")
    for product in m._gdpnet_basic_steps[0].product.values():
        assert {"Feas[A]", "Feas[B]", "Feas[C]"} <= set(product.rows)
    source = m.Feas["B"]
    copy = next(iter(m._gdpnet_basic_steps[0].product.values())).rows["Feas[B]"]
    assert get_src_constraint(copy) is source
    assert any(row is copy for row in get_copies(source))
    m = job_shop()
    pyo.TransformationFactory(STEPS).apply_to(m, targets=[m.clash, m.Feas])
    assert hull_value(m) == pytest.approx(11.0)


def test_a_constraint_may_hold_in_several_clusters() -> None:
    m = job_shop()
    clusters = [[m.clash["A", "B", 2], m.Feas], [m.clash["A", "C", 0], "Feas"]]
    pyo.TransformationFactory(STEPS).apply_to(m, clusters=clusters)
    for block in m._gdpnet_basic_steps.values():
        assert all("Feas[A]" in product.rows for product in block.product.values())
    pyo.TransformationFactory("gdp.bigm").apply_to(m)
    assert solved(m) == pytest.approx(11.0)


@pytest.mark.parametrize("reformulation", ["gdp.bigm", "gdp.hull", "gdpnet.hull"])
@pytest.mark.parametrize("build", [job_shop, strip_packing])
def test_source_indicators_say_what_was_chosen(
    build: Callable[[], Any], reformulation: str
) -> None:
    m = build()
    rules, rows = (m.clash, m.Feas) if build is job_shop else (m.apart, m.end)
    merge(m, rules, rows)
    pyo.TransformationFactory(reformulation).apply_to(m)
    solved(m)
    for rule in rules.values():
        assert [d.indicator_var.value for d in rule.disjuncts].count(True) == 1
        for disjunct in rule.disjuncts:
            assert disjunct.indicator_var.value is not None
            if disjunct.indicator_var.value:
                for row in disjunct.component_data_objects(pyo.Constraint):
                    assert row.slack() >= -1e-6


def test_source_indicators_of_two_steps() -> None:
    """Products that are merged again pass on what was chosen, and are not decided by rows."""
    m = job_shop()
    merge(m, *first_clashes(m))
    merge(m, m._gdpnet_basic_steps[0].merged, m.clash["A", "C", 0], m.Feas)
    for product in m._gdpnet_basic_steps[1].product.values():
        assert not any("binary_indicator_var" in name for name in product.rows)
    assert hull_value(m) == pytest.approx(11.0)
    chosen = [d.name for d in m.order.values() if d.indicator_var.value]
    assert len(chosen) == 3
    (product,) = [p for p in m._gdpnet_basic_steps[1].product.values() if p.indicator_var.value]
    inner, last = get_src_disjuncts(product)
    assert sorted(chosen) == sorted([*(d.name for d in get_src_disjuncts(inner)), last.name])


def test_source_indicators_with_nesting_pruning_and_fixed() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.z = pyo.Var(bounds=(0, 10))
    m.low, m.high = Disjunct(), Disjunct()
    m.low.row = pyo.Constraint(expr=m.y <= 2)
    m.high.row = pyo.Constraint(expr=m.y >= 5)
    m.high.inner = Disjunction(expr=[[m.z <= 1], [m.z >= 8]])
    m.outer = Disjunction(expr=[m.low, m.high])
    m.never = Disjunction(expr=[[m.y >= 4, m.z >= 3], [m.y >= 20], [m.y <= 1]])
    m.never.disjuncts[2].indicator_var.fix(False)
    m.cost = pyo.Objective(expr=m.y + m.z)
    merge(m, "outer", "never")
    pyo.TransformationFactory("gdp.bigm").apply_to(m)
    assert solved(m) == pytest.approx(13.0)
    values = [d.indicator_var.value for rule in (m.outer, m.high.inner, m.never)
              for d in rule.disjuncts]  # fmt: skip
    assert values == [False, True, False, True, True, False, False]


def test_links_are_an_option() -> None:
    m = merge(job_shop(), "clash", "Feas", links=False)
    assert list(m._gdpnet_basic_steps[0].component_map(pyo.Constraint)) == []
    assert hull_value(m) == pytest.approx(11.0)
    m = merge(job_shop(), "clash")
    assert len(m._gdpnet_basic_steps[0]._gdpnet_links) == 6  # one for each source disjunct


def test_lift_leaves_links_outside() -> None:
    """They say something about all products at once, so they belong into none."""
    values = []
    for options in ({}, {"links": False}):
        m = merge(job_shop(), "clash", **options)
        lift = pyo.TransformationFactory("gdpnet.lift_projection")
        lift.apply_to(m, outputs=[m.start], yhat=[1.0, 2.0, 3.0])
        pyo.TransformationFactory("gdpnet.hull").apply_to(m)
        pyo.TransformationFactory("core.relax_integer_vars").apply_to(m)
        pyo.SolverFactory("appsi_highs").solve(m)
        values.append(pyo.value(m.gdpnet_distance))
    assert values == [pytest.approx(values[1]), pytest.approx(exact_distance())]


def exact_distance() -> float:
    m = job_shop()
    rules = gdpnet.RuleModel(m, outputs=[m.start])
    return float(gdpnet.project(rules, [[1.0, 2.0, 3.0]]).distance[0])


@pytest.mark.parametrize(
    ("clusters", "message"),
    [
        (
            lambda m: [[m.clash, m.start]],
            "expected a Disjunction or Constraint, got the Var 'start'",
        ),
        (lambda m: [[m.clash, m.cost]], "got the Objective 'cost'"),
        (lambda m: [[m.clash, m.start["A"] <= 3]], r"got 'start\[A\]  <=  3' \(Inequality"),
        (lambda m: [[[m.clash]]], "expected a Disjunction or Constraint, got a list"),
        (lambda m: [[m.clash, "Fees"]], "no Disjunction or Constraint 'Fees'.* clash, Feas"),
        (lambda m: [[m.Feas]], "cluster 0 has Constraints only"),
        (lambda m: [[m.clash, m.Feas, "Feas[A]"]], r"Constraint 'Feas\[A\]' stands twice"),
        (lambda m: [[m.clash, m.order["A", "B", 2].row]], r"'order\[A,B,2\].row' is nested in"),
        (lambda m: m.clash, "got the Disjunction 'clash' by itself"),
        (lambda m: [3], r"got '3' \(int\) by itself"),
    ],
)
def test_wrong_members_are_named(clusters: Callable[[Any], Any], message: str) -> None:
    m = job_shop()
    with pytest.raises(gdpnet.errors.RuleError, match=message) as caught:
        pyo.TransformationFactory(STEPS).apply_to(m, clusters=clusters(m))
    assert "object at 0x" not in str(caught.value)
    assert all(row.active for row in m.Feas.values())


def test_constraints_off_or_outside_the_targets() -> None:
    m = job_shop()
    m.Feas.deactivate()
    with pytest.raises(gdpnet.errors.RuleError, match="Constraint 'Feas' is deactivated"):
        merge(m, m.clash, m.Feas)
    m = job_shop()
    with pytest.raises(
        gdpnet.errors.RuleError, match=r"Constraint 'Feas\[A\]' is not among the targets"
    ):
        merge(m, m.clash, m.Feas, targets=[m.clash])


def test_hull_speaks_of_linear_rows_only() -> None:
    doc = type(pyo.TransformationFactory("gdpnet.hull")).__doc__
    assert "assume_fixed_vars_permanent" in doc
    assert "perspective" not in doc
    assert len(doc.splitlines()) < 50
