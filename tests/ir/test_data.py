"""What reading a model says of its rows and clauses, whatever their names."""

from __future__ import annotations

import json
from typing import Any

import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunct, Disjunction

import gdpnet
from gdpnet.ir.data import Kind, Role, RuleData
from gdpnet.relaxation import pyomo_model
from gdpnet.testing import BY_NAME


def kinds(data: RuleData) -> list[tuple[str, Kind, int]]:
    return [(c.name, c.kind, c.source) for c in data.clauses]


def test_roles_of_rows() -> None:
    m = pyo.ConcreteModel()
    m.p = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var(range(2), bounds=(m.p, m.p + 9))
    m.y[1].setlb(0)
    m.c = pyo.Constraint(expr=(1, m.y[0] + m.y[1], 12))
    m.a, m.b = Disjunct(), Disjunct()
    m.a.c = pyo.Constraint(expr=m.y[0] <= 3)
    m.b.c = pyo.Constraint(expr=m.y[0] >= 7)
    m.r = Disjunction(expr=[m.a, m.b])
    m.d = pyo.Constraint(expr=m.y[1] + m.a.binary_indicator_var <= 9)
    rows = gdpnet.RuleModel(m, [m.y], [m.p]).data.rows
    plain, link = Role.CONSTRAINT, Role.LINK
    assert [(row.name, row.role) for row in rows] == [
        ("lower bound of y[0]", Role.LOWER),
        ("upper bound of y[0]", Role.UPPER),
        ("upper bound of y[1]", Role.UPPER),
        *(("c", plain), ("c", plain), ("a.c", plain), ("b.c", plain), ("d", plain)),
        *(("a", link), ("a", link)),
    ]
    assert rows[3].source == rows[4].source  # the two sides of a range
    assert len({row.source for row in rows}) == len(rows) - 1


def named_like_a_bound() -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.p = pyo.Param(mutable=True, initialize=5.0)
    m.y = pyo.Var(bounds=(0, 10))
    m.add_component("upper bound of y", pyo.Constraint(expr=2 * m.y <= m.p))
    m.gap = Disjunction(expr=[[m.y <= 1], [m.y >= 2]])
    return gdpnet.RuleModel(m, [m.y], [m.p], input_bounds=[(0, 10)])


def test_a_constraint_named_like_a_bound_is_none() -> None:
    rules = named_like_a_bound()
    assert [row.role for row in rules.data.rows] == [Role.CONSTRAINT] * 3
    again = pyomo_model(rules)
    assert (again.y.lb, again.y.ub) == (0, 10)
    p = gdpnet.project(rules, [[4.0]], [[5.0]], relaxation="cnf")
    assert p.y.item() == pytest.approx(2.5)


def test_kinds_of_clauses() -> None:
    found = kinds(BY_NAME["fixed_boolean"].rules().data)
    assert ("split[2]", Kind.FIXED, found.index(("split[2]", Kind.DISJUNCTION, 2))) in found
    data = BY_NAME["children_of_an_unchosen_parent"].rules().data
    assert [kind for _, kind, _ in kinds(data)] == [
        *[Kind.DISJUNCTION] * 2, *[Kind.TWIN] * 4, *[Kind.PROPOSITION] * 3, *[Kind.XOR] * 2
    ]  # fmt: skip
    assert {source for _, kind, source in kinds(data) if kind is Kind.PROPOSITION} == {6}
    assert data.twins == {4: 2, 5: 3}
    assert [b.name for b in data.booleans if b.helper] == ["wanted"]
    conditional = BY_NAME["conditions"].rules().data
    assert {c.name for c in conditional.clauses if c.kind is Kind.CONDITIONAL} == {
        c.name
        for c in conditional.clauses
        if conditional.booleans[c.literals[0] - 1].name == c.name
    }


@pytest.mark.parametrize("xor", [True, False])
@pytest.mark.parametrize("logic", [True, False])
def test_xor_is_kept(xor: bool, logic: bool, tmp_path: Any) -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.gap = Disjunction(expr=[[m.y <= 5], [m.y >= 3], [m.y >= 9]], xor=xor)
    if logic:
        m.some = pyo.LogicalConstraint(expr=pyo.lnot(m.gap.disjuncts[2].indicator_var))
    rules = gdpnet.RuleModel(m, [m.y])
    rules.save(tmp_path / "rules.json")
    for one in (rules, gdpnet.load_rules(tmp_path / "rules.json")):
        assert one.data.clauses[0].xor is xor
        assert sum(c.kind is Kind.XOR for c in one.data.clauses) == (3 if xor and logic else 0)
        assert pyomo_model(one).gap.xor is xor


def test_a_conflict_between_things_of_one_name(tmp_path: Any) -> None:
    """Parts of an explanation are told apart by what they are, not by what they are called."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.add_component("bounds of y", pyo.Constraint(expr=m.y <= 4))
    m.add_component("y is whole", Disjunction(expr=[[m.y >= 11], [m.y >= 12]]))
    rules = gdpnet.RuleModel(m, [m.y])
    assert rules.explain_conflict() == ["y is whole", "bounds of y"]
    assert bool((gdpnet.project(rules, [[1.0]]).status == gdpnet.Status.CONFLICT).all())
    m.del_component("bounds of y")
    assert gdpnet.RuleModel(m, [m.y]).explain_conflict() == ["y is whole", "bounds of y"]


def test_rules_without_their_names_give_the_same(tmp_path: Any) -> None:
    """Every name of a file replaced by one and the same: nothing that is computed changes."""
    for name in ("children_of_an_unchosen_parent", "bounds_from_inputs", "conditions", "exclusive",
                 "binary_of_nested_indicator", "fixed_boolean"):  # fmt: skip
        problem = BY_NAME[name]
        rules, path = problem.rules(), tmp_path / f"{name}.json"
        functions = {c.owner: c.function for c in rules.data.conditions if c.tree is None}
        rules.save(path)
        content = json.loads(path.read_text())
        for section in ("rows", "booleans", "clauses"):
            for record in content[section]:
                record["name"] = "z"
        path.write_text(json.dumps(content))
        nameless = gdpnet.load_rules(path, conditions=functions)
        for options in ({}, {"relaxation": "cnf"}, {"solver": "milp"}):
            one, other = (
                gdpnet.project(r, problem.yhat, problem.x, **options) for r in (rules, nameless)
            )
            assert torch.equal(one.status, other.status), (name, options)
            assert torch.allclose(one.y, other.y, rtol=0, atol=0, equal_nan=True), (name, options)
        again = pyomo_model(nameless)
        assert len(list(again.component_data_objects(Disjunction, descend_into=True))) == len(
            list(pyomo_model(rules).component_data_objects(Disjunction, descend_into=True))
        )
