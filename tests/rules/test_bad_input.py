"""Bad input: each an error that names the component and says what to do."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunct, Disjunction, GDP_Error
from pyomo.mpec import Complementarity, complements
from pyomo.network import Arc, Port

import gdpnet


def base() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel(name="plant")
    m.Ta = pyo.Param(mutable=True, initialize=20.0)
    m.y = pyo.Var(range(2), bounds=(0, 1))
    m.hot = Disjunction(expr=[[m.y[0] >= 0.4], [m.y[1] >= 0.7]])
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    return m


def refused(read: Callable[[], Any], *told: str) -> None:
    """Reading raises a GDP_Error of gdpnet's own whose message holds all of `told`."""
    with pytest.raises(GDP_Error) as caught:
        read()
    assert isinstance(caught.value, gdpnet.GdpnetError)
    for part in told:
        assert part in str(caught.value)


def reading(m: Any, outputs: Any = None, inputs: Any = None) -> Callable[[], Any]:
    return lambda: gdpnet.RuleModel(
        m,
        outputs=[m.y] if outputs is None else outputs,
        inputs=[m.Ta] if inputs is None else inputs,
    )


# ---- constraints --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        lambda m: m.y[0] * m.y[1],
        lambda m: -(m.y[0] ** 2),
        lambda m: -pyo.exp(m.y[0]),
        lambda m: -abs(m.y[0]),
        lambda m: -(2 ** m.y[1]),
        lambda m: gdpnet.minimum(m.y[0], m.y[1]) - 1,
    ],
)
def test_nonconvex_constraint(body: Callable[[Any], Any]) -> None:
    m = base()
    m.curve = pyo.Constraint(expr=body(m) <= -0.5)
    refused(reading(m), "Constraint 'curve'", "convex")


def test_constraint_whose_sign_an_input_decides() -> None:
    m = base()
    m.curve = pyo.Constraint(expr=m.Ta / m.y[0] <= 1)
    refused(reading(m), "Constraint 'curve'", "'Ta/y[0]'", "nonnegative", "input_bounds")


def test_nonlinear_constraint_in_a_disjunct() -> None:
    m = base()
    m.rule = Disjunction(expr=[[m.y[0] * m.y[1] <= 0.2], [m.y[0] <= 0.5]])
    refused(reading(m), "rule_disjuncts[0].constraint[1]", "y[0]*y[1]", "neither convex")


def test_expr_if_over_outputs() -> None:
    m = base()
    m.switch = pyo.Constraint(expr=pyo.Expr_if(IF=m.y[0] >= 0.5, THEN=m.y[1], ELSE=0) <= 0.3)
    refused(reading(m), "Constraint 'switch'", "depends on a variable", "gdpnet.implies")


def test_var_of_another_model() -> None:
    other = pyo.ConcreteModel()
    other.foreign = pyo.Var(bounds=(0, 1))
    m = base()
    m.mixed = pyo.Constraint(expr=m.y[0] + other.foreign <= 1)
    refused(reading(m), "Constraint 'mixed'", "Var 'foreign'", "Use Vars of the model")
    m.mixed.deactivate()
    refused(reading(m, outputs=[m.y, other.foreign]), "outputs", "'foreign'", "Use Vars of the")


def test_constant_without_a_value() -> None:
    m = base()
    m.limit = pyo.Param(mutable=True, within=pyo.Any)
    m.row = pyo.Constraint(expr=m.y[0] <= 2 * m.limit)
    refused(reading(m), "Constraint 'row'", "'limit'", "name it in `inputs`")


def test_fixed_var_without_a_value() -> None:
    m = base()
    m.z = pyo.Var()
    m.z.fixed = True
    m.row = pyo.Constraint(expr=m.y[0] <= m.z)
    refused(reading(m), "Constraint 'row'", "'z'", "Give it a finite value")


def test_division_by_zero_when_reading() -> None:
    m = base()
    m.zero = pyo.Param(mutable=True, initialize=0.0)
    m.row = pyo.Constraint(expr=m.y[0] / m.zero <= 1)
    refused(reading(m), "Constraint 'row'", "divides by zero")


def test_external_function() -> None:
    m = base()
    m.twice = pyo.ExternalFunction(lambda v: 2 * v)
    m.row = pyo.Constraint(expr=m.twice(m.y[0]) <= 1)
    refused(reading(m), "Constraint 'row'", "linear in the outputs")


# ---- outputs and inputs -------------------------------------------------------------------------


def test_outputs_that_are_no_vars() -> None:
    m = base()
    m.e = pyo.Expression(expr=m.y[0] + m.y[1])
    m.flag = pyo.BooleanVar()
    refused(reading(m, outputs=[m.y, m.Ta]), "outputs: expected a Var", "'Ta'")
    refused(reading(m, outputs=[m.e]), "outputs: expected a Var", "'e' (Expression)")
    refused(reading(m, outputs=[m.flag]), "outputs: expected a Var", "'flag' (BooleanVar)")
    refused(reading(m, outputs=["y"]), "outputs: expected a Var", "'y'")
    refused(reading(m, outputs=[m.hot]), "outputs: expected a Var", "'hot' (Disjunction)")
    refused(reading(m, outputs=[]), "outputs: expected at least one Var")


def test_the_same_var_twice() -> None:
    m = base()
    refused(reading(m, outputs=[m.y, m.y[1]]), "outputs: 'y[1]' is listed twice", "List each once")
    refused(reading(m, inputs=[m.Ta, m.Ta]), "inputs: 'Ta' is listed twice", "List each once")


def test_immutable_param_as_input() -> None:
    m = base()
    m.scalar = pyo.Param(initialize=3.0)
    m.indexed = pyo.Param([1, 2], initialize=3.0)
    refused(reading(m, inputs=[m.scalar]), "'scalar' (Param)", "mutable=True")
    refused(reading(m, inputs=[m.indexed]), "'indexed' (Param)", "mutable=True")
    # One entry of an immutable Param is a number to Pyomo: there is no name to tell.
    refused(reading(m, inputs=[m.indexed[1]]), "inputs: expected a mutable Param", "mutable=True")


def test_var_as_input() -> None:
    m = base()
    m.z = pyo.Var()
    refused(reading(m, inputs=[m.z]), "inputs: expected a mutable Param", "'z' (Var)", "Param(mut")
    m.w = pyo.Var([1, 2])
    refused(reading(m, inputs=[m.w[1]]), "inputs: expected a mutable Param", "'w[1]'", "Param(mut")


def test_param_of_another_model_as_input() -> None:
    other = pyo.ConcreteModel()
    other.far = pyo.Param(mutable=True, initialize=1.0)
    m = base()
    refused(reading(m, inputs=[other.far]), "inputs", "'far'", "does not belong to the model")


@pytest.mark.parametrize(
    ("bounds", "told"),
    [
        ({"Tb": (0, 1)}, ("'Tb'", "not among the inputs (Ta)")),
        ({"Ta": (1, 0)}, ("'Ta'", "empty")),
        ({"Ta": 3}, ("'Ta'", "pair (low, high)")),
        ({"Ta": (0, math.nan)}, ("'Ta'", "empty")),
        ([(0, 1), (0, 1)], ("expected 1 pairs", "got 2")),
    ],
)
def test_input_bounds(bounds: Any, told: tuple[str, ...]) -> None:
    m = base()
    refused(
        lambda: gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.Ta], input_bounds=bounds),
        "input_bounds",
        *told,
    )


# ---- the model ----------------------------------------------------------------------------------


def test_unfinished_abstract_model() -> None:
    m = pyo.AbstractModel(name="draft")
    m.y = pyo.Var()
    refused(lambda: gdpnet.RuleModel(m, outputs=[m.y]), "draft", "create_instance()")


def test_not_a_model() -> None:
    m = base()
    refused(lambda: gdpnet.RuleModel("plant", outputs=[m.y]), "ConcreteModel", "got str")  # type: ignore[arg-type]


def test_integer_without_bounds() -> None:
    m = base()
    m.n = pyo.Var(domain=pyo.NonNegativeIntegers)
    m.row = pyo.Constraint(expr=m.y[0] == 0.1 * m.n)
    refused(reading(m), "Var 'n' is integer without finite bounds", "Give it bounds")


def test_bounds_that_contain_nothing() -> None:
    m = base()
    m.n = pyo.Var(domain=pyo.Integers, bounds=(0.2, 0.8))
    refused(reading(m, outputs=[m.n]), "Var 'n'", "no whole number")
    m.z = pyo.Var(bounds=(2, 1))
    refused(reading(m, outputs=[m.z]), "Var 'z'", "lower bound 2 is above its upper 1")


def test_odd_domain() -> None:
    m = base()
    m.level = pyo.Var(domain=pyo.Set(initialize=[0, 2, 5]))
    refused(reading(m, outputs=[m.level]), "Var 'level'", "Disjunctions of equalities")


def test_components_that_are_not_understood() -> None:
    m = base()
    m.p, m.q = pyo.Var(), pyo.Var()
    m.port1, m.port2 = Port(initialize=[m.p]), Port(initialize=[m.q])
    m.arc = Arc(source=m.port1, destination=m.port2)
    refused(reading(m), "'arc'", "Arc", "network.expand_arcs")
    m = base()
    m.sos = pyo.SOSConstraint(var=m.y, sos=1)
    refused(reading(m), "'sos'", "SOSConstraint", "Write it with Constraints and Disjunctions")
    m = base()
    m.either = Complementarity(expr=complements(m.y[0] >= 0, m.y[1] >= 0))
    refused(reading(m), "'either'", "Complementarity", "Write it with Constraints")


def test_objectives_are_ignored() -> None:
    m = base()
    m.cost = pyo.Objective(expr=m.y[0] ** 2 + pyo.exp(m.y[1]))
    assert reading(m)().names == ("hot",)


# ---- disjunctions -------------------------------------------------------------------------------


def test_disjunct_in_two_disjunctions() -> None:
    m = base()
    m.d = Disjunct(range(3))
    for k in range(3):
        m.d[k].row = pyo.Constraint(expr=m.y[0] >= 0.1 * k)
    m.one = Disjunction(expr=[m.d[0], m.d[1]])
    m.two = Disjunction(expr=[m.d[1], m.d[2]])
    refused(reading(m), "Disjunct 'd[1]' stands in 'one' and 'two'", "write a second Disjunct")


def test_rule_without_disjunct() -> None:
    m = base()
    m.hot.disjuncts[0].deactivate()
    m.hot.disjuncts[1].indicator_var.fix(False)
    refused(reading(m), "Disjunction 'hot' has no active disjunct", "deactivate the Disjunction")
    m = base()
    m.none = Disjunction(expr=[])
    refused(reading(m), "Disjunction 'none' has no active disjunct")


def test_disjunct_in_no_disjunction() -> None:
    m = base()
    m.lonely = Disjunct()
    m.lonely.row = pyo.Constraint(expr=m.y[0] >= 0.5)
    refused(reading(m), "Disjunct 'lonely'", "Deactivate it too, or add it to one")
    m = base()
    m.hot.deactivate()
    refused(reading(m), "Disjunct 'hot_disjuncts[0]'", "Deactivate it too")


def test_logic_over_an_indicator_without_disjunction() -> None:
    m = base()
    m.off = Disjunct()
    m.off.deactivate()
    m.off.indicator_var.unfix()
    m.tie = pyo.LogicalConstraint(
        expr=m.hot.disjuncts[0].indicator_var.implies(m.off.indicator_var)
    )
    refused(reading(m), "LogicalConstraint 'tie'", "Disjunct 'off'", "Fix the indicator")


def test_relations_in_logic() -> None:
    m = base()
    flag = m.hot.disjuncts[0].indicator_var
    m.tie = pyo.LogicalConstraint(expr=pyo.implies(m.y[0] >= 0.5, flag))
    refused(reading(m), "LogicalConstraint 'tie'", "write relations over outputs as Disjunctions")


# ---- activation ---------------------------------------------------------------------------------


def test_activation_that_depends_on_outputs() -> None:
    m = base()
    m.active_when[m.hot] = m.y[0] + m.Ta >= 0.5
    refused(reading(m), "active_when of 'hot'", "depends on a variable", "gdpnet.implies")


@pytest.mark.parametrize("condition", [3, "hot", None])
def test_activation_that_is_no_condition(condition: Any) -> None:
    m = base()
    m.active_when[m.hot] = condition
    refused(reading(m), "active_when of 'hot'", "Write a relation over inputs")


def test_activation_of_an_indicator() -> None:
    m = base()
    m.active_when[m.hot] = pyo.land(m.hot.disjuncts[0].indicator_var, m.Ta >= 3)
    refused(reading(m), "active_when of 'hot'", "Write a relation over inputs")


def test_active_when_on_something_odd() -> None:
    m = base()
    m.active_when[m.y] = m.Ta >= 28
    refused(reading(m), "active_when: 'y'", "is not a Disjunction, Constraint")
    m = base()
    m.active_when[m.hot.disjuncts[0]] = m.Ta >= 28
    refused(reading(m), "active_when: 'hot_disjuncts[0]'", "is not a Disjunction, Constraint")


def test_active_when_of_the_whole_model() -> None:
    m = base()
    m.active_when[None] = m.Ta >= 28
    refused(reading(m), "active_when: 'None'", "is not a Disjunction, Constraint")


def test_active_when_that_is_no_suffix() -> None:
    m = base()
    m.del_component("active_when")
    m.active_when = pyo.Param(initialize=1)
    refused(reading(m), "'active_when' is a Param", "Rename it")


def test_active_when_twice() -> None:
    m = base()
    m.b = pyo.Block()
    m.b.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.active_when[m.hot] = m.Ta >= 28
    m.b.active_when[m.hot] = m.Ta <= 40
    refused(reading(m), "active_when: 'hot' has two conditions", "pyo.land")


def test_active_when_of_another_model() -> None:
    other, m = base(), base()
    m.active_when[other.hot] = m.Ta >= 28
    refused(reading(m), "active_when: 'hot' is no active part", "no effect")


# ---- batches ------------------------------------------------------------------------------------


def rules() -> gdpnet.RuleModel:
    m = base()
    m.row = pyo.Constraint(expr=m.y[0] / (m.Ta - 10) <= 3)
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.Ta])


def calls(x: Any, y: Any) -> list[Callable[[], Any]]:
    return [
        lambda: rules().satisfied(y, x),
        lambda: rules().violation(y, x),
        lambda: rules().global_violation(y, x),
        lambda: gdpnet.project(rules(), y, x),
    ]


X, Y = torch.full((3, 1), 20.0), torch.full((3, 2), 0.5)


@pytest.mark.parametrize("which", range(4))
class TestBatches:
    def test_width(self, which: int) -> None:
        refused(calls(X, torch.ones(3, 4))[which], "expected 2 columns (y[0], y[1])", "(3, 4)")
        refused(calls(torch.ones(3, 2), Y)[which], "x: expected 1 column (Ta)", "(3, 2)")
        refused(calls(X, torch.tensor(0.5))[which], "expected 2 columns", "got shape ()")
        refused(calls(None, Y)[which], "x: these rules have inputs (Ta)", "pass x")

    def test_leading_shape(self, which: int) -> None:
        refused(calls(torch.ones(5, 1), Y)[which], "leading shape (5,)", "single x")

    @pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
    def test_dtype(self, which: int, dtype: torch.dtype) -> None:
        name = str(dtype)
        refused(calls(X, torch.ones(3, 2).to(dtype))[which], "expected a floating-point", name)
        refused(calls(torch.ones(3, 1).to(dtype), Y)[which], "x: expected a floating-point", name)

    def test_not_numbers(self, which: int) -> None:
        refused(calls(X, [["a", "b"]])[which], "expected a tensor or an array of numbers", "list")
        refused(calls("20", Y)[which], "x: expected a tensor or an array of numbers", "str")
        refused(calls(X, np.array([["a", "b"]]))[which], "array of numbers", "ndarray")
        refused(calls(X, np.ones((3, 2), dtype=complex))[which], "expected real numbers")
        refused(calls(X, {"y": 1})[which], "array of numbers", "dict")

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    def test_not_finite(self, which: int, value: float) -> None:
        y, x = Y.clone(), X.clone()
        y[2, 1] = x[1, 0] = value
        refused(calls(X, y)[which], "NaN or infinity in row 2")
        refused(calls(x, Y)[which], "x: NaN or infinity in row 1")

    def test_division_by_zero_at_some_input(self, which: int) -> None:
        x = torch.tensor([[20.0], [10.0], [12.0]])
        refused(calls(x, Y)[which], "row are not finite for row 1", "division by zero")


def test_active_and_explain_conflict_check_x() -> None:
    for call in (rules().active, rules().explain_conflict):
        refused(lambda call=call: call(torch.ones(3, 2)), "x: expected 1 column (Ta)")
        refused(lambda call=call: call(torch.full((1, 1), math.nan)), "x: NaN or infinity in row 0")
        refused(lambda call=call: call(torch.ones(3, 1).int()), "x: expected a floating-point")
        refused(lambda call=call: call(None), "x: these rules have inputs (Ta)")
    refused(lambda: rules().explain_conflict([10.0]), "row are not finite for row 0")


@pytest.mark.parametrize("tol", [-1e-6, math.nan, math.inf, "1e-6", None])
def test_tolerance(tol: Any) -> None:
    refused(lambda: rules().satisfied(Y, X, tol=tol), "tol: expected a finite number >= 0")


@pytest.mark.parametrize(
    "condition",
    [
        lambda x: x >= 28,
        lambda x: (x[:, 0] >= 28)[:-1],
        lambda x: True,
        lambda x: x[:, 0],
        lambda x: x[:, 0].tolist(),
        lambda x: None,
    ],
)
def test_condition_of_the_wrong_shape_or_type(condition: Callable[[Any], Any]) -> None:
    m = base()
    m.active_when[m.hot] = condition
    read = reading(m)()
    refused(lambda: read.active(X), "'hot'", "bool", "(3,)")


def test_condition_that_fails() -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        raise KeyError("weather")

    m = base()
    m.active_when[m.hot] = broken
    read = reading(m)()
    with pytest.raises(Exception, match="weather"):
        read.active(X)


# ---- constants that are no numbers ---------------------------------------------------------------


@pytest.mark.parametrize("constant", [float("inf"), float("-inf"), float("nan")])
def test_constants_that_are_not_finite(constant: float) -> None:
    m = base()
    m.bad = pyo.Constraint(expr=m.y[0] * constant + m.y[1] <= 3)
    refused(reading(m), "'bad'")
    m = base()
    m.bad = pyo.Constraint(expr=m.y[0] <= pyo.Expr_if(m.Ta >= 1, constant, 3))
    refused(reading(m), "'bad'", "infinity or NaN as a constant")
    m = base()
    m.active_when[m.hot] = m.Ta <= constant
    refused(reading(m), "'hot'", "infinity or NaN as a constant")
