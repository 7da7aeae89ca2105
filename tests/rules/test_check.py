"""gdpnet.check says all that RuleModel would refuse, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyomo.environ as pyo
import pytest
from pyomo.gdp import Disjunct, Disjunction

import gdpnet
from gdpnet.errors import RuleError
from gdpnet.testing import PROBLEMS, Problem
from tests.rules import test_pyomo_models as pyomo_models

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:pyomo.*")


def agree(model: Any, outputs: Any, inputs: Any = ()) -> gdpnet.rules.ModelCheck:
    """The check, after comparing it with what RuleModel says."""
    found = gdpnet.check(model, outputs, inputs)
    assert found.ok == bool(found) == (found.problems == ())
    if not found.ok:
        with pytest.raises(RuleError) as caught:
            gdpnet.RuleModel(model, outputs=outputs, inputs=inputs)
        assert str(caught.value).startswith(str(found.problems[0]))
        assert all(p.component and p.reason for p in found.problems)
    else:
        rules = gdpnet.RuleModel(model, outputs=outputs, inputs=inputs)
        data = rules.data
        assert found.sizes.outputs == len(rules.output_names)
        assert found.sizes.auxiliaries == len(rules.auxiliary_names)
        assert found.sizes.inputs == len(rules.input_names)
        assert found.sizes.rules == len(rules.names)
        assert found.sizes.rows == len(data.rows) - len(data.arguments)
        assert found.sizes.disjuncts >= len(rules.names)
    return found


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_bank(problem: Problem) -> None:
    m = problem.build()
    outputs = [m.find_component(name) for name in problem.outputs]
    inputs = [m.find_component(name) for name in problem.inputs]
    assert agree(m, outputs, inputs).ok


@pytest.mark.parametrize(
    "name", [n for n, v in pyomo_models.TABLE.items() if v != pyomo_models.HELPER]
)
@pytest.mark.parametrize("given", [True, False])
def test_models_of_pyomo(name: str, given: bool) -> None:
    build = pyomo_models.functions().get(name)
    if build is None:
        pytest.skip("this Pyomo does not have it")
    model, outputs = pyomo_models.built(build)
    found = agree(model, outputs if given else "continuous")
    if given:
        readable = (pyomo_models.READ, pyomo_models.CONVEX)
        assert found.ok == (pyomo_models.TABLE[name] in readable)


# ---- bad models ---------------------------------------------------------------------------


def two() -> Any:
    m = pyo.ConcreteModel()
    m.T = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var(range(2), bounds=(0, 10))
    m.d = Disjunction(expr=[[m.y[0] <= 3], [m.y[0] >= 7, m.y[1] <= 5]])
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    return m


def everything_wrong() -> Any:
    m = two()
    m.first = pyo.Constraint(expr=m.y[0] * m.y[1] <= 2)
    m.ok = pyo.Constraint(expr=m.y[0] + m.y[1] <= 15)
    m.n = pyo.Var(domain=pyo.Integers)
    m.second = pyo.Constraint(expr=m.n + m.y[0] <= 2)
    m.third = pyo.Constraint(expr=pyo.sin(m.y[0]) <= 2)
    m.sos = pyo.SOSConstraint(var=m.y, sos=1)
    m.active_when[m.ok] = m.y[0] >= 1
    m.lone = Disjunct()
    return m


def no_disjunct() -> Any:
    m = two()
    m.on, m.off = Disjunct(), Disjunct()
    m.rule = Disjunction(expr=[m.on, m.off])
    m.on.deactivate()
    m.off.deactivate()
    m.logic = pyo.LogicalConstraint(expr=m.on.indicator_var)
    m.square = pyo.Constraint(expr=m.y[0] ** 2 >= 2)
    return m


def shared() -> Any:
    m = two()
    m.on, m.off, m.low = Disjunct(), Disjunct(), Disjunct()
    m.one = Disjunction(expr=[m.on, m.off])
    m.other = Disjunction(expr=[m.on, m.low])
    m.on.square = pyo.Constraint(expr=m.y[0] ** 2 >= 2)
    return m


def suffix_wrong() -> Any:
    m = two()
    m.active_when[m.d] = m.y[0] >= 1
    m.active_when[m.y] = m.T >= 1
    return m


def suffix_taken() -> Any:
    m = two()
    m.del_component("active_when")
    m.active_when = pyo.Var(bounds=(0, 1))
    m.square = pyo.Constraint(expr=m.y[0] ** 2 >= 2)
    return m


def foreign() -> Any:
    m, other = two(), two()
    m.row = pyo.Constraint(expr=m.y[0] + other.y[0] <= 2)
    m.again = pyo.Constraint(expr=m.y[0] - other.y[0] <= 2)
    m.active_when[other.d] = m.T >= 1
    object.__setattr__(m, "_kept_alive", other)
    return m


def crossed_bounds() -> Any:
    m = two()
    m.y[0].setlb(11)
    m.y[1].setlb(12)
    return m


def no_value() -> Any:
    m = two()
    m.k = pyo.Param(mutable=True)
    m.row = pyo.Constraint(expr=m.y[0] <= m.k)
    m.more = pyo.Constraint(expr=m.y[0] >= m.k - 1)
    return m


def transformed() -> Any:
    m = two()
    pyo.TransformationFactory("gdp.bigm").apply_to(m)
    return m


BAD = {
    everything_wrong: ["first", "ok", "n", "third", "sos", "lone"],
    no_disjunct: ["rule", "square"],
    shared: ["on.square", "other"],
    suffix_wrong: ["y", "d"],
    suffix_taken: ["active_when", "square"],
    foreign: ["row", "again", "d"],
    crossed_bounds: ["y[0]", "y[1]"],
    no_value: ["row", "more"],
    transformed: ["unknown"],
}


@pytest.mark.parametrize("build", list(BAD), ids=lambda build: build.__name__)
def test_every_obstacle_at_once(build: Callable[[], Any]) -> None:
    m = build()
    found = agree(m, [m.y])
    assert [problem.component for problem in found.problems] == BAD[build]
    text = str(found)
    for problem in found.problems:
        assert problem.reason in text
        assert problem.advice in text


def test_obstacles_in_nested_disjuncts() -> None:
    m = two()
    m.on, m.off = Disjunct(), Disjunct()
    m.on.square = pyo.Constraint(expr=m.y[0] ** 2 >= 2)
    m.on.inner = Disjunction(expr=[[m.y[1] ** 2 >= 2], [m.y[1] >= 3]])
    m.outer = Disjunction(expr=[m.on, m.off])
    m.logic = pyo.LogicalConstraint(expr=pyo.atleast(1.5, m.on.indicator_var))
    found = agree(m, [m.y])
    components = [problem.component for problem in found.problems]
    assert components == ["on.square", "on.inner_disjuncts[0].constraint[1]", "logic"]


def test_arguments() -> None:
    m = two()
    m.H = pyo.Param(initialize=5.0)
    m.other = pyo.Var(bounds=(0, 1))
    found = agree(m, [m.y[0], "y", m.y[0]], [m.H, m.T, m.other])
    assert [problem.component for problem in found.problems] == ["H", "other", "outputs", "y[0]"]
    assert "mutable=True" in found.problems[0].advice
    assert agree(m, []).problems[0].reason == "outputs: expected at least one Var, got none."
    assert not gdpnet.check(m, inputs=[m.T], input_bounds=[(1, 0)])
    assert not gdpnet.check(m, inputs=[m.T], input_bounds={"S": (0, 1)})


def test_no_model_at_all() -> None:
    found = gdpnet.check("model.py")
    assert found.problems[0].reason == ("model: expected a Pyomo ConcreteModel or Block, got str.")
    assert found.sizes == (0, 0, 0, 0, 0, 0)
    assert not gdpnet.check(pyo.AbstractModel())


def test_notes_and_text() -> None:
    m = two()
    m.a = pyo.Var(domain=pyo.NonNegativeReals)
    m.b = pyo.Var()
    m.high = pyo.Constraint(expr=m.a <= m.T)
    m.link = pyo.Constraint(expr=m.b == m.a + m.y[0])
    m.least = pyo.Objective(expr=m.y[0])
    found = gdpnet.check(m, [m.y], [m.T])
    assert found.ok
    assert found.sizes == (2, 2, 1, 1, 2, 5)
    assert [note.split(" ")[:2] for note in found.notes] == [
        ["Objective", "'least'"],
        ["b", "has"],
    ]
    assert str(found).splitlines()[:2] == [
        "gdpnet can use this model.",
        "Read: outputs 2, auxiliaries 2, inputs 1, rules 1, disjuncts 2, rows 5",
    ]


# ---- outputs="continuous" -----------------------------------------------------------------


def many() -> Any:
    m = pyo.ConcreteModel()
    m.on = Disjunct()
    m.on.t = pyo.Var(bounds=(0, 1))
    m.z = pyo.Var(bounds=(0, 1))
    m.n = pyo.Var(domain=pyo.Integers, bounds=(0, 3))
    m.unused = pyo.Var(bounds=(0, 1))
    m.a = pyo.Var(range(2), bounds=(0, 1))
    m.fixed = pyo.Var(bounds=(0, 1), initialize=0.5)
    m.fixed.fix()
    m.off = pyo.Block()
    m.off.w = pyo.Var(bounds=(0, 1))
    m.off.row = pyo.Constraint(expr=m.off.w <= 0.5)
    m.off.deactivate()
    m.rows = pyo.Constraint(expr=m.a[1] + m.a[0] + m.fixed <= 1 + m.n)
    m.on.row = pyo.Constraint(expr=m.z >= m.on.t)
    m.none = Disjunct()
    m.none.row = pyo.Constraint(expr=m.unused >= 0.5)
    m.none.indicator_var.fix(False)
    m.other = Disjunct()
    m.d = Disjunction(expr=[m.on, m.other, m.none])
    return m


def test_continuous_vars_in_declaration_order() -> None:
    rules = gdpnet.RuleModel(many(), outputs="continuous")
    assert rules.output_names == ("z", "a[0]", "a[1]", "on.t")
    assert rules.auxiliary_names == ("n",)
    assert gdpnet.check(many()).sizes.outputs == 4


def test_continuous_is_a_list_like_any_other() -> None:
    m = many()
    same = gdpnet.RuleModel(m, outputs=[m.z, m.a, m.on.t])
    assert gdpnet.RuleModel(m, outputs="continuous").fingerprint == same.fingerprint


def test_no_continuous_var() -> None:
    m = pyo.ConcreteModel()
    m.b = pyo.Var(domain=pyo.Binary)
    m.row = pyo.Constraint(expr=m.b >= 1)
    with pytest.raises(RuleError, match="expected at least one Var, got none"):
        gdpnet.RuleModel(m, outputs="continuous")


def test_other_words_are_refused() -> None:
    m = two()
    with pytest.raises(RuleError, match=r"or 'continuous' for all continuous Vars.*got 'all'"):
        gdpnet.RuleModel(m, outputs="all")
    with pytest.raises(RuleError, match="inputs: expected a list of components, got 'T'"):
        gdpnet.RuleModel(m, outputs=[m.y], inputs="T")
