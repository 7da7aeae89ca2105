"""The hull of convex disjuncts: cones with Params symbolic, against Pyomo's own exact hull."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet.errors import RuleError
from gdpnet.lp.clarabel import KeptProgram
from gdpnet.lp.conic import ConeKind
from gdpnet.lp.program import Outcome
from gdpnet.lp.standard import StandardForm
from gdpnet.relaxation import convexify
from gdpnet.relaxation.pyomo.adapter import Matrices, read_matrices
from gdpnet.testing import BY_NAME

LIFT, HULL = "gdpnet.lift_projection", "gdpnet.hull"


def solved(matrices: Matrices, values: np.ndarray | None = None) -> float:
    """The optimal value of a program by Clarabel; infinite where it is infeasible."""
    form = StandardForm(matrices.structure)
    numbers = matrices.numbers(matrices.values() if values is None else values)
    entries, right = form.matrices(*(n[None] for n in numbers))
    cost = matrices.cost_at(matrices.values())
    given = entries[0], right[0], cost, np.zeros(len(cost))
    found = KeptProgram(form, *given).solve(*given)
    if found.outcome is Outcome.INFEASIBLE:
        return math.inf
    assert found.outcome is Outcome.OPTIMAL
    return found.bound


def gap() -> Any:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.rule = Disjunction(expr=[[m.y <= 3], [m.y >= 7]])
    return m


@pytest.mark.parametrize(("yhat", "value"), [(4.5, 2.25), (6.0, 1.0), (5.0, 4.0), (12.0, 4.0)])
def test_the_distance_is_in_the_disjuncts_before_the_hull_is_taken(
    yhat: float, value: float
) -> None:
    m = gap()
    program = convexify(m, [m.y], yhat=[yhat], norm="l2")
    assert solved(read_matrices(program)) == pytest.approx(value, abs=1e-7)


def test_what_the_lift_and_the_hull_write() -> None:
    m = gap()
    pyo.TransformationFactory(LIFT).apply_to(m, outputs=[m.y], yhat=[4.5], weights=[2], norm="l2")
    row = m.rule.disjuncts[0].gdpnet_epigraph[0]
    assert str(row.expr) == "(y - gdpnet_yhat[0])**2  <=  gdpnet_eta[0]"
    assert m.gdpnet_eta[0].ub is None
    assert str(m.gdpnet_distance.expr) == "4.0*gdpnet_eta[0]"
    hull = pyo.TransformationFactory(HULL)
    hull.apply_to(m)
    (cone,) = hull.get_transformed_constraints(row)
    block = m.rule.disjuncts[0].transformation_block
    assert str(cone.expr) == (
        f"{block.gdpnet_arguments[1].name}**2  <=  "
        f"{hull.get_disaggregated_var(m.gdpnet_eta[0], m.rule.disjuncts[0]).name}"
        f"*{m.rule.disjuncts[0].binary_indicator_var.name}"
    )
    copy = hull.get_disaggregated_var(m.y, m.rule.disjuncts[0]).name
    weight = m.rule.disjuncts[0].binary_indicator_var.name
    argument = block.gdpnet_arguments[1].name
    assert str(block.gdpnet_links[1].expr) == (
        f"{copy} - gdpnet_yhat[0]*{weight} - {argument}  ==  0"
    )
    eta = hull.get_disaggregated_var(m.gdpnet_eta[0], m.rule.disjuncts[0])
    assert (eta.lb, eta.ub) == (0.0, None)
    assert m.gdpnet_eta[0].ub is None


def test_an_unknown_norm_is_refused() -> None:
    m = gap()
    with pytest.raises(gdpnet.errors.InputError, match="norm: expected one of 'l1', 'l2'"):
        convexify(m, [m.y], norm="linf")


def test_predictions_are_set_anew() -> None:
    m = gap()
    once = read_matrices(convexify(m, [m.y], norm="l2"))
    (yhat,) = once.params
    for value in (-1.0, 2.0, 4.5, 5.0, 6.5, 11.0):
        yhat.set_value(value)
        nearest = min(max(0.0 if value >= 0 else -value, value - 3.0), max(7.0 - value, 0.0))
        wanted = nearest**2 if value <= 10 else (value - 10) ** 2
        assert solved(once) == pytest.approx(wanted, abs=1e-6)


# ---- Pyomo's own exact hull at fixed Params -------------------------------------------------


@pytest.fixture(scope="module")
def gurobi() -> Any:
    solver = pyo.SolverFactory("gurobi_direct")
    if not solver.available(exception_flag=False):
        pytest.skip("Gurobi cannot be used here")
    solver.options.update({"NonConvex": 2, "BarQCPConvTol": 1e-9, "FeasibilityTol": 1e-9})
    return solver


def by_pyomo(m: Any, outputs: list[Any], yhat: list[float], solver: Any, **options: Any) -> float:
    """The value of the lifted model under `gdp.hull` with `exact_hull_quadratic`."""
    pyo.TransformationFactory(LIFT).apply_to(m, outputs=outputs, yhat=yhat, norm="l2", **options)
    for eta in m.gdpnet_eta.values():
        eta.setub(1e3)
    pyo.TransformationFactory("gdp.hull").apply_to(m, exact_hull_quadratic=True)
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(m)
    solver.solve(m)
    return float(pyo.value(m.gdpnet_distance))


@pytest.mark.gurobi
@pytest.mark.parametrize("name", ["two_boxes", "jl_stress_3d", "equalities", "duplicate_rows"])
def test_values_are_those_of_pyomos_exact_hull(name: str, gurobi: Any) -> None:
    problem = BY_NAME[name]
    for sample in problem.samples[:3]:
        m, other = problem.build(), problem.build()
        outputs = [other.find_component(o) for o in problem.outputs]
        wanted = by_pyomo(m, [m.find_component(o) for o in problem.outputs],
                          list(sample.yhat), gurobi)  # fmt: skip
        found = solved(read_matrices(convexify(other, outputs, yhat=sample.yhat, norm="l2")))
        assert found == pytest.approx(wanted, abs=1e-5, rel=1e-5)


def discs(x: float = 1.0) -> Any:
    """Within one of two discs, the radius of the second an input; and in one of two strips."""
    m = pyo.ConcreteModel()
    m.x = pyo.Param(mutable=True, initialize=x)
    m.y = pyo.Var(range(2), bounds=(-4, 4))
    m.discs = Disjunction(
        expr=[
            [(m.y[0] + 2) ** 2 + m.y[1] ** 2 <= 1],
            [(m.y[0] - 2) ** 2 + 2 * (m.y[1] - 1) ** 2 + (m.y[0] - 2) * (m.y[1] - 1) <= m.x],
        ]
    )
    m.strips = Disjunction(expr=[[m.y[1] >= 0.5], [m.y[1] + m.y[0] <= -1]])
    m.total = pyo.Constraint(expr=m.y[0] ** 2 + m.y[1] <= 12)
    return m


@pytest.mark.gurobi
@pytest.mark.parametrize("relaxation", ["cnf", "dnf"])
def test_convex_rows_in_disjuncts_are_those_of_pyomos_exact_hull(
    relaxation: str, gurobi: Any
) -> None:
    rng = np.random.default_rng(4)
    base = discs()
    once = None
    for x in (0.5, 1.0, 3.0):
        yhat = rng.uniform(-4, 4, 2).tolist()
        m = discs(x)
        if relaxation == "dnf":
            pyo.TransformationFactory("gdpnet.basic_steps").apply_to(
                m, clusters=[[m.discs, m.strips]], links=False
            )
        wanted = by_pyomo(m, [m.y], yhat, gurobi, weights=[1.0, 2.0])
        if once is None:
            once = read_matrices(
                convexify(
                    base, [base.y], inputs=[base.x], x=[x], clusters=relaxation, norm="l2",
                    weights=[1.0, 2.0], prune=False,
                )
            )  # fmt: skip
        values = {"x": x, "gdpnet_yhat[0]": yhat[0], "gdpnet_yhat[1]": yhat[1]}
        found = solved(once, np.array([values[p.name] for p in once.params]))
        assert found == pytest.approx(wanted, abs=2e-5, rel=1e-5)


# ---- shapes ---------------------------------------------------------------------------------


def one_shape(row: Any) -> Any:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0.01, 20))
    m.t = pyo.Var(bounds=(-20, 20))
    m.rule = Disjunction(expr=[[row(m)], [m.y >= 19, m.t >= 19]])
    return m


@pytest.mark.parametrize(
    ("row", "kind", "edge"),
    [
        (lambda m: (m.y - 3) ** 2 <= 4, ConeKind.ROTATED, 5.0),
        (lambda m: pyo.sqrt((m.y - 3) ** 2 + m.t**2) <= 2, ConeKind.SECOND_ORDER, 5.0),
        (lambda m: pyo.exp(0.5 * m.y) <= 9, ConeKind.EXPONENTIAL, 2 * math.log(9.0)),
        (lambda m: m.y - 4 * pyo.log(m.y) <= 0.5, ConeKind.EXPONENTIAL, None),
        (lambda m: m.y**3 <= 8, ConeKind.POWER, 2.0),
        (lambda m: m.y + 1 / m.y <= 4, ConeKind.POWER, 2 + math.sqrt(3.0)),
        (lambda m: m.y - 3 * m.y**0.5 <= 0, ConeKind.POWER, 9.0),
        (lambda m: (m.y - 1) ** 4 <= 16, ConeKind.POWER, 3.0),
    ],
)
def test_every_shape_has_its_cone(row: Any, kind: ConeKind, edge: float | None) -> None:
    m = one_shape(row)
    matrices = read_matrices(convexify(m, [m.y, m.t], norm="l2", prune=False))
    assert kind in {cone.kind for cone in matrices.cones}
    names = {cone.name for cone in matrices.cones if cone.kind is kind}
    assert "rule_disjuncts[0].constraint[1]" in names
    if edge is None:  # where y - 4 log y is 0.5, on the right
        low, high = 5.0, 20.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if middle - 4 * math.log(middle) <= 0.5 else (low, middle)
        edge = low
    place = {p.name: k for k, p in enumerate(matrices.params)}
    for beyond in (0.5, 1.0):
        values = np.zeros(2)
        values[place["gdpnet_yhat[0]"]] = edge + beyond
        assert solved(matrices, values) == pytest.approx(beyond**2, abs=1e-5)


def test_what_is_not_convex_is_refused_by_name_and_nothing_is_changed() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 1))
    m.rule = Disjunction(expr=[[m.y[0] ** 2 >= 0.5], [m.y[1] <= 0.5]])
    before = len(list(m.component_objects()))
    with pytest.raises(RuleError, match=r"constraint\[1\].*convex as <=, not as >="):
        pyo.TransformationFactory(HULL).apply_to(m)
    assert len(list(m.component_objects())) == before
    assert m.rule.active


def test_a_coefficient_needs_a_range_to_be_convex() -> None:
    def model() -> Any:
        m = pyo.ConcreteModel()
        m.x = pyo.Param(mutable=True, initialize=2.0)
        m.y = pyo.Var(bounds=(0, 4))
        m.rule = Disjunction(expr=[[m.x * m.y**2 <= 2], [m.y >= 3.5]])
        return m

    m = model()
    with pytest.raises(RuleError, match="no sum of squares was found"):
        pyo.TransformationFactory(HULL).apply_to(m)
    m = model()
    ranges = {"x": (0.5, 4.0)}
    program = convexify(m, [m.y], inputs=[m.x], yhat=[2.0], norm="l2", input_bounds=ranges)
    matrices = read_matrices(program)
    for x in (0.5, 1.0, 4.0):
        program.x.set_value(x)
        wanted = min(max(2.0 - math.sqrt(2.0 / x), 0.0), 1.5) ** 2
        assert solved(matrices) == pytest.approx(wanted, abs=1e-6)
