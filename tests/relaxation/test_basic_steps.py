"""gdpnet.basic_steps: products, pruning, logic, where things came from."""

from __future__ import annotations

import itertools
from typing import Any

import pyomo.environ as pyo
import pytest
from pyomo.common.collections import ComponentMap
from pyomo.gdp import Disjunct, Disjunction, GDP_Error

import gdpnet
from gdpnet.relaxation import get_copies, get_products, get_src_constraint, get_src_disjuncts

STEPS = "gdpnet.basic_steps"


def three() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.p = pyo.Param(mutable=True, initialize=4.0)
    m.y = pyo.Var(bounds=(0, 10))
    m.z = pyo.Var(bounds=(0, 10))
    m.one = Disjunction(expr=[[m.y <= 3], [m.y >= 6]])
    m.two = Disjunction(expr=[[m.y <= m.p], [m.y >= m.p + 3]])
    m.many = Disjunction(range(2), rule=lambda m, i: [[m.z <= 1 + i], [m.z >= 5 + i], [m.z == 4]])
    return m


def apply(m: Any, *clusters: Any, **options: Any) -> list[Any]:
    """Merge; the products of every cluster."""
    pyo.TransformationFactory(STEPS).apply_to(m, clusters=list(clusters) or None, **options)
    return [list(block.merged.disjuncts) for block in m._gdpnet_basic_steps.values()]


def labels(products: list[Any]) -> list[Any]:
    return [product.index() for product in products]


def test_all_products_without_pruning() -> None:
    m = three()
    (products,) = apply(m, [m.one, m.two, m.many], prune=False)
    assert labels(products) == list(itertools.product(range(2), range(2), range(3), range(3)))
    assert not m.one.active
    assert not any(d.active for d in m.many[1].disjuncts)
    assert not m.one.disjuncts[0].indicator_var.fixed


def test_without_clusters_all_are_merged() -> None:
    m = three()
    (products,) = apply(m)
    assert labels(products) == [(i, i, j, k) for i in (0, 1) for j, k in ((0, 0), (1, 1), (2, 2))]


def test_names_and_members_may_be_given() -> None:
    m = three()
    first, second = apply(m, ["one", m.many[0]], ["two", "many[1]"], prune=False)
    assert len(first) == len(second) == 6


def test_rules_in_no_cluster_stay() -> None:
    m = three()
    apply(m, [m.one, m.two])
    assert m.many[0].active
    assert all(d.active for d in m.many[0].disjuncts)


def test_empty_products_depend_on_the_params() -> None:
    m = three()
    m.p = 2.0
    (products,) = apply(m, [m.one, m.two])
    assert labels(products) == [(0, 0), (1, 1)]
    m = three()
    m.p = 5.5
    (products,) = apply(m, [m.one, m.two])
    assert labels(products) == [(0, 0), (1, 1)]
    m = three()
    m.p = 7.0
    (products,) = apply(m, [m.one, m.two])
    assert labels(products) == [(0, 0), (1, 0), (1, 1)]


def test_pruning_sees_global_constraints_and_bounds() -> None:
    m = three()
    m.always = pyo.Constraint(expr=m.y + m.z <= 5)
    m.z.setlb(1)
    (products,) = apply(m, [m.one, m.two])
    assert labels(products) == [(0, 0)]


@pytest.mark.parametrize(
    ("bounds", "kept"),
    [
        ((1.0, 5.0), [(0, 0), (1, 1)]),
        ((0.0, 5.0), [(0, 0), (0, 1), (1, 1)]),
        ((1.0, 7.0), [(0, 0), (1, 0), (1, 1)]),
        ((8.0, 9.0), [(0, 0), (1, 0)]),
    ],
)
def test_input_bounds_prune_what_is_always_empty(bounds: Any, kept: Any) -> None:
    m = three()
    (products,) = apply(m, [m.one, m.two], input_bounds=ComponentMap([(m.p, bounds)]))
    assert labels(products) == kept


def nonlinear_in_p(m: Any) -> Any:
    """Rows that are linear in y, and anything but linear in the Params."""
    m.q = pyo.Param(mutable=True, initialize=1.0)
    m.first = Disjunction(expr=[[m.q * m.y <= m.p], [m.y >= pyo.exp(m.q)]])
    m.second = Disjunction(expr=[[m.y >= m.p**2 + 1], [m.y <= abs(m.q - m.p) + 2 / m.p]])
    return m


def test_input_bounds_are_sound_for_any_dependence() -> None:
    """No product is left out that has a point for some value in the ranges."""
    ranges = {"p": (0.5, 1.5), "q": (1.0, 2.0)}
    m = nonlinear_in_p(three())
    (products,) = apply(m, ["first", "second"], input_bounds=ranges)
    kept = set(labels(products))
    possible = set()
    for p, q in itertools.product((0.5, 0.75, 1.0, 1.5), (1.0, 1.3, 2.0)):
        m = nonlinear_in_p(three())
        m.p, m.q = p, q
        (products,) = apply(m, ["first", "second"])
        possible |= set(labels(products))
    assert possible <= kept
    m = nonlinear_in_p(three())
    (products,) = apply(m, ["first", "second"], input_bounds={"p": (4.0, 5.0), "q": (2.0, 2.5)})
    # y >= p**2 + 1 >= 17 does not fit into the box, whatever the other rule says.
    assert all(second == 1 for _, second in labels(products))


def test_contradiction_is_named() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.low = Disjunction(expr=[[m.y <= 2], [m.y <= 3]])
    m.high = Disjunction(expr=[[m.y >= 7]])
    with pytest.raises(gdpnet.errors.ConflictError, match="low, high contradict each other"):
        apply(m, [m.low, m.high])
    assert m.low.active


def test_provenance_both_ways() -> None:
    m = three()
    (products,) = apply(m, [m.one, m.many[1]], prune=False)
    for product in products:
        i, j = product.index()
        sources = get_src_disjuncts(product)
        assert [s.name for s in sources] == [f"one_disjuncts[{i}]", f"many_disjuncts[{3 + j}]"]
        for source in sources:
            assert any(p is product for p in get_products(source))
        for row in product.rows.values():
            source = get_src_constraint(row)
            assert source.name in row.name
            assert any(copy is row for copy in get_copies(source))
    assert len(get_products(m.one.disjuncts[0])) == 3
    with pytest.raises(GDP_Error, match="no product"):
        get_src_disjuncts(m.one.disjuncts[0])


def test_provenance_follows_a_clone() -> None:
    m = three()
    apply(m, [m.one, m.two])
    clone = m.clone()
    product = clone._gdpnet_basic_steps[0].product[1, 1]
    assert [s.model() is clone for s in get_src_disjuncts(product)] == [True, True]
    assert get_src_disjuncts(product)[0] is clone.one.disjuncts[1]
    assert get_products(clone.one.disjuncts[1])[0] is product
    row = next(iter(product.rows.values()))
    assert get_src_constraint(row).model() is clone
    assert get_products(m.one.disjuncts[1])[0].model() is m


def test_create_using() -> None:
    m = three()
    made = pyo.TransformationFactory(STEPS).create_using(m, clusters=[[m.one, m.two]])
    assert m.one.active
    assert m.component("_gdpnet_basic_steps") is None
    assert not made.one.active
    product = made._gdpnet_basic_steps[0].product[0, 0]
    assert get_src_disjuncts(product)[0] is made.one.disjuncts[0]


def test_params_vars_and_expressions_are_not_cloned() -> None:
    """A clone of a Param in a product would not follow the modeller's own."""
    m = three()
    m.a, m.b = Disjunct(), Disjunct()
    m.a.limit = pyo.Param(mutable=True, initialize=2.0)
    m.a.t = pyo.Var(bounds=(0, 1))
    m.a.twice = pyo.Expression(expr=2 * m.a.t)
    m.a.row = pyo.Constraint(expr=m.y == m.a.limit + m.a.twice)
    m.b.part = pyo.Block()
    m.b.part.row = pyo.Constraint(expr=m.y >= 8)
    m.own = Disjunction(expr=[m.a, m.b])
    (products,) = apply(m, [m.one, m.own], prune=False)
    assert len([v for v in m.component_data_objects(pyo.Var, descend_into=(pyo.Block, Disjunct))
                if v.local_name == "t"]) == 1  # fmt: skip
    m.a.limit = 9.0
    m.a.t.set_value(0.25)
    m.y.set_value(9.5)
    row = products[0].rows["a.row"]
    assert pyo.value(row.body) == pytest.approx(pyo.value(row.upper))
    assert set(products[1].rows) == {"one_disjuncts[0].constraint[1]", "b.part.row"}


def test_or_is_taken_as_it_is() -> None:
    m = three()
    m.either = Disjunction(expr=[[m.y <= 5], [m.z <= 5]], xor=False)
    (products,) = apply(m, [m.one, m.either], prune=False)
    assert len(products) == 4
    pyo.TransformationFactory("gdpnet.hull").apply_to(m, targets=m._gdpnet_basic_steps[0].merged)


def test_one_rule_is_flattened() -> None:
    m = three()
    m.a, m.b, m.c = Disjunct(), Disjunct(), Disjunct()
    m.a.row = pyo.Constraint(expr=m.y <= 5)
    m.c.row = pyo.Constraint(expr=m.z <= 1)
    m.a.inner = Disjunction(expr=[[m.z >= 9], [m.z >= 8, m.y >= 2]])
    m.b.inner = Disjunction(expr=[m.c])  # a disjunct that is declared elsewhere
    m.own = Disjunction(expr=[m.a, m.b])
    (products,) = apply(m, [m.own])
    assert [[s.name for s in get_src_disjuncts(p)] for p in products] == [
        ["a", "a.inner_disjuncts[0]"],
        ["a", "a.inner_disjuncts[1]"],
        ["b", "c"],
    ]
    assert not m.c.active


def test_deactivated_and_fixed_disjuncts() -> None:
    m = three()
    m.many[0].disjuncts[1].deactivate()
    m.many[1].disjuncts[2].indicator_var.fix(True)
    (products,) = apply(m, [m.many[0], m.many[1]], prune=False)
    assert labels(products) == [(0, 2), (2, 2)]


def test_rules_on_blocks_and_targets() -> None:
    m = three()
    m.part = pyo.Block(range(2))
    for i in range(2):
        m.part[i].rule = Disjunction(expr=[[m.y <= 3], [m.y >= 6]])
    pyo.TransformationFactory(STEPS).apply_to(m, targets=[m.part[0], m.one])
    assert labels(list(m._gdpnet_basic_steps[0].merged.disjuncts)) == [(0, 0), (1, 1)]
    assert m.part[1].rule.active
    assert m.two.active
    pyo.TransformationFactory(STEPS).apply_to(m, clusters=[["part[1].rule", "two"]])
    assert len(m._gdpnet_basic_steps) == 2
    with pytest.raises(GDP_Error, match=r"'many.*' is not among the targets"):
        pyo.TransformationFactory(STEPS).apply_to(m, targets=m.part, clusters=[["many[0]"]])


def logical(xor: bool = True) -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(3), bounds=(0, 1))
    m.low, m.high = Disjunct(range(3)), Disjunct(range(3))
    for i in range(3):
        m.low[i].row = pyo.Constraint(expr=m.y[i] <= 0.3)
        m.high[i].row = pyo.Constraint(expr=m.y[i] >= 0.7)
    m.rule = Disjunction(range(3), rule=lambda m, i: [m.low[i], m.high[i]], xor=xor)
    return m


def test_logic_within_a_cluster_deletes_products() -> None:
    m = logical()
    m.one = pyo.LogicalConstraint(expr=pyo.exactly(1, *(m.high[i].indicator_var for i in range(3))))
    (products,) = apply(m, [m.rule])
    assert labels(products) == [(0, 0, 1), (0, 1, 0), (1, 0, 0)]
    assert not m.one.active
    assert m.component("_gdpnet_logic") is None


@pytest.mark.parametrize("partner", ["indicator_var", "binary_indicator_var"])
def test_logic_through_associated_booleans_deletes_products(partner: str) -> None:
    m = logical()
    m.Y = pyo.BooleanVar(range(3))
    for i in range(3):
        m.Y[i].associate_binary_var(getattr(m.high[i], partner))
    m.one = pyo.LogicalConstraint(expr=pyo.exactly(1, m.Y[0], m.Y[1], m.high[2].indicator_var))
    m.Y[2].fix(False)
    m.not_last = pyo.LogicalConstraint(expr=m.Y[2].implies(m.Y[1]))
    (products,) = apply(m, [m.rule])
    assert labels(products) == [(0, 1, 0), (1, 0, 0)]


def test_logic_through_associated_booleans_across_clusters() -> None:
    m = logical()
    m.Y = pyo.BooleanVar()
    m.Y.associate_binary_var(m.high[1].indicator_var)
    m.tie = pyo.LogicalConstraint(expr=m.high[0].indicator_var.implies(m.Y))
    apply(m, [m.rule[0]], [m.rule[1]])
    (row,) = m._gdpnet_logic[0].rows.values()
    assert "high[1].binary_indicator_var" in str(row.expr)


def test_logic_with_or_chooses_subsets() -> None:
    m = logical(xor=False)
    m.both = pyo.LogicalConstraint(expr=pyo.land(m.low[0].indicator_var, m.high[0].indicator_var))
    with pytest.raises(gdpnet.errors.ConflictError):
        apply(m, [m.rule[0]])
    (products,) = apply(m, [m.rule[0]], prune=False)
    assert [[s.name for s in get_src_disjuncts(p)] for p in products] == [["low[0]", "high[0]"]]


def test_logic_across_clusters_becomes_rows() -> None:
    m = logical()
    m.tie = pyo.LogicalConstraint(
        expr=m.high[0].indicator_var.implies(
            pyo.lor(m.high[1].indicator_var, m.low[2].indicator_var)
        )
    )
    first, _ = apply(m, [m.rule[0], m.rule[1]], [m.rule[2]])
    assert len(first) == 4
    assert not m.tie.active
    rows = list(m._gdpnet_logic[0].rows.values())
    assert len(rows) == 1
    # Every product says which binaries it means.
    assert "low[2].binary_indicator_var" in str(rows[0].expr)
    assert pyo.value(first[0].rows["high[0].binary_indicator_var"].upper) == 0
    m = logical()
    m.tie = pyo.LogicalConstraint(expr=m.high[0].indicator_var.implies(m.high[1].indicator_var))
    apply(m, [m.rule[0]], [m.rule[1]], logic="drop")
    assert not m.tie.active
    assert m.component("_gdpnet_logic") is None


def test_logic_elsewhere_stays() -> None:
    m = logical()
    m.tie = pyo.LogicalConstraint(expr=m.high[0].indicator_var.implies(m.high[1].indicator_var))
    apply(m, [m.rule[2]])
    assert m.tie.active


def test_the_merged_model_is_still_a_gdp() -> None:
    """Pyomo's own big-M solves it, with the same answer as before, links or not."""
    values = []
    for merge in (False, True):
        m = logical()
        m.tie = pyo.LogicalConstraint(expr=m.high[0].indicator_var.implies(m.high[1].indicator_var))
        m.cost = pyo.Objective(expr=-3 * m.y[0] + 2 * m.y[1] + m.y[2])
        if merge:
            apply(m, [m.rule[0]], [m.rule[1], m.rule[2]])
        pyo.TransformationFactory("gdp.bigm").apply_to(m)
        pyo.SolverFactory("appsi_highs").solve(m)
        values.append(pyo.value(m.cost))
    assert values[0] == pytest.approx(values[1])
    assert values[0] == pytest.approx(-1.6)


def wrong_twice(m: Any) -> Any:
    return [[m.one, m.two], ["one"]]


def wrong_twice_in_one(m: Any) -> Any:
    return [[m.one, "one"]]


def wrong_unknown(m: Any) -> Any:
    return [["one", "nothing"]]


def wrong_empty(m: Any) -> Any:
    return [[]]


def wrong_deactivated(m: Any) -> Any:
    m.two.deactivate()
    return [[m.one, m.two]]


def wrong_kind(m: Any) -> Any:
    return [[m.y]]


def wrong_shape(m: Any) -> Any:
    return [m.one]


def wrong_nested(m: Any) -> Any:
    m.a = Disjunct()
    m.a.inner = Disjunction(expr=[[m.y <= 1]])
    m.own = Disjunction(expr=[m.a])
    return [[m.a.inner]]


def wrong_model(m: Any) -> Any:
    return [[three().one]]


@pytest.mark.parametrize(
    ("clusters", "message"),
    [
        (wrong_twice, "'one' stands in two clusters"),
        (wrong_twice_in_one, "'one' stands twice"),
        (wrong_unknown, "no Disjunction or Constraint 'nothing'.*one, two, many"),
        (wrong_empty, "cluster 0 is empty"),
        (wrong_deactivated, "'two' is deactivated"),
        (wrong_kind, "expected a Disjunction or Constraint, got the Var 'y'"),
        (wrong_shape, "'one' by itself"),
        (wrong_nested, "'a.inner' is nested in Disjunct 'a'"),
        (wrong_model, "'one' does not belong"),
    ],
)
def test_wrong_clusters_are_named(clusters: Any, message: str) -> None:
    m = three()
    with pytest.raises(gdpnet.errors.RuleError, match=message):
        pyo.TransformationFactory(STEPS).apply_to(m, clusters=clusters(m))
    assert m.one.active
    assert m.component("_gdpnet_basic_steps") is None


def test_too_many_products() -> None:
    m = three()
    with pytest.raises(GDP_Error, match=r"more than 5 products \(up to 36\).*gdpnet.project"):
        apply(m, [m.one, m.two, m.many], prune=False, max_products=5)


def test_coefficients_that_are_not_finite() -> None:
    m = three()
    m.p = 0.0
    m.bad = Disjunction(expr=[[m.y / m.p <= 1], [m.y >= 2]])
    with pytest.raises(gdpnet.errors.RuleError, match=r"bad_disjuncts\[0\].*not finite"):
        apply(m, [m.one, m.bad])
