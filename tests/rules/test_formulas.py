"""Formulas mean what their negation normal form with closed atoms means."""

from __future__ import annotations

import itertools
import time
from typing import Any

import pyomo.environ as pyo
import pytest
import torch
import z3
from hypothesis import given, settings
from hypothesis import strategies as st
from pyomo.gdp import Disjunct, Disjunction, GDP_Error

import gdpnet

D = 3
REPRODUCIBLE = settings(derandomize=True, deadline=None, database=None, max_examples=150)

# A formula of the test: ("atom", coefficients, "<=" or ">=", bound), ("range", low, coefficients,
# high), ("any", ...), ("all", ...), ("none", ...), ("implies", p, q).
Ast = tuple[Any, ...]

coefficients = st.lists(st.integers(-3, 3), min_size=D, max_size=D).filter(any).map(tuple)
atoms = st.tuples(st.just("atom"), coefficients, st.sampled_from(["<=", ">="]), st.integers(-4, 4))
ranges = st.builds(
    lambda a, low, width: ("range", low, a, low + width),
    coefficients,
    st.integers(-4, 2),
    st.integers(0, 4),
)


def _layer(inner: st.SearchStrategy[Ast]) -> st.SearchStrategy[Ast]:
    parts = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.builds(lambda ps: ("any", *ps), parts),
        st.builds(lambda ps: ("all", *ps), parts),
        st.builds(lambda ps: ("none", *ps), parts),
        st.builds(lambda p, q: ("implies", p, q), inner, inner),
    )


def formulas(depth: int) -> st.SearchStrategy[Ast]:
    """Formulas nested to `depth` at most, a dozen relations at most."""
    strategy: st.SearchStrategy[Ast] = st.one_of(atoms, ranges)
    for _ in range(depth):
        strategy = st.one_of(atoms, _layer(strategy))
    return strategy.filter(lambda ast: _leaves(ast) <= 12)


def _leaves(ast: Ast) -> int:
    return 1 if ast[0] in ("atom", "range") else sum(_leaves(part) for part in ast[1:])


def holds(ast: Ast, y: tuple[Any, ...], wanted: bool = True) -> Any:
    """Negation normal form with closed atoms, evaluated at y (numbers, or unknowns of z3)."""
    symbolic = isinstance(y[0], z3.ExprRef)
    both, either = (z3.And, z3.Or) if symbolic else (lambda *p: all(p), lambda *p: any(p))
    kind, *parts = ast
    if kind == "atom":
        a, sense, bound = parts
        value = sum(c * v for c, v in zip(a, y, strict=True))
        return value <= bound if (sense == "<=") == wanted else value >= bound
    if kind == "range":
        low, a, high = parts
        value = sum(c * v for c, v in zip(a, y, strict=True))
        if wanted:
            return both(low <= value, value <= high)
        return either(value <= low, high <= value)
    if kind == "implies":
        condition, consequence = parts
        if wanted:
            return either(holds(condition, y, False), holds(consequence, y, True))
        return both(holds(condition, y, True), holds(consequence, y, False))
    if kind == "none":
        values = [holds(part, y, not wanted) for part in parts]
        return both(*values) if wanted else either(*values)
    values = [holds(part, y, wanted) for part in parts]
    return both(*values) if (kind == "all") == wanted else either(*values)


def written(ast: Ast, m: Any) -> Any:
    """The same formula in gdpnet."""
    kind, *parts = ast
    if kind == "atom":
        a, sense, bound = parts
        body = sum(c * m.y[i] for i, c in enumerate(a))
        return body <= bound if sense == "<=" else body >= bound
    if kind == "range":
        low, a, high = parts
        return pyo.inequality(low, sum(c * m.y[i] for i, c in enumerate(a)), high)
    combine = {
        "any": gdpnet.any_of,
        "all": gdpnet.all_of,
        "none": gdpnet.none_of,
        "implies": gdpnet.implies,
    }[kind]
    return combine(*(written(part, m) for part in parts))


def outputs_only(count: int = D) -> Any:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(count))
    return m


def read(ast: Ast) -> gdpnet.RuleModel:
    m = outputs_only()
    m.r = gdpnet.rule(written(ast, m))
    return gdpnet.RuleModel(m, outputs=[m.y])


GRID = list(itertools.product((-2.0, -1.0, 0.0, 1.0, 2.0), repeat=D))


@REPRODUCIBLE
@given(formulas(4), st.integers(0, 2**32 - 1))
def test_satisfied_is_the_negation_normal_form(ast: Ast, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    # Multiples of 1/8 keep every sum exact, so that `tol=0` is right on boundaries too.
    random = torch.randint(-24, 25, (60, D), generator=generator).double() / 8
    y = torch.cat([torch.tensor(GRID, dtype=torch.float64), random])
    expected = [bool(holds(ast, tuple(point))) for point in y.tolist()]
    assert read(ast).satisfied(y, tol=0.0).tolist() == expected


def test_grid_hits_boundaries() -> None:
    """On the boundary both a relation and its negation hold; otherwise exactly one does."""
    atom = ("atom", (1, -2, 1), "<=", 1)
    y = torch.tensor(GRID, dtype=torch.float64)
    positive = read(atom).satisfied(y, tol=0.0)
    negative = read(("none", atom)).satisfied(y, tol=0.0)
    boundary = y @ torch.tensor([1.0, -2.0, 1.0], dtype=torch.float64) == 1.0
    assert 0 < boundary.sum() < len(y)
    assert torch.equal(positive & negative, boundary)
    assert bool((positive | negative).all())


def _z3_of_rules(rules: gdpnet.RuleModel, y: list[Any]) -> Any:
    def row(index: int) -> Any:
        r = rules.data.rows[index]
        left = sum(z3.RealVal(a.number) * y[column] for column, a in r.terms)
        right = z3.RealVal(r.bound.number)
        return left == right if r.equality else left <= right

    return z3.And(
        *(
            z3.Or(
                *(
                    z3.And(*(row(i) for i in rules.data.booleans[literal - 1].true_rows))
                    for literal in rules.data.clauses[rule.clause].literals
                )
            )
            for rule in rules.data.rules
        )
    )


A, B, C, E = (
    ("atom", (1, 0, 0), "<=", 1),
    ("atom", (1, -1, 0), ">=", 0),
    ("atom", (0, 2, -3), "<=", 2),
    ("range", -1, (1, 1, 1), 2),
)


@pytest.mark.parametrize(
    "ast",
    [
        ("implies", ("all", A, B), ("any", C, E)),
        ("none", ("implies", A, ("all", B, ("none", C)))),
        ("any", ("all", A, ("any", B, ("all", C, E))), ("none", ("any", A, E))),
        ("all", ("any", A, B), ("any", ("none", A), C), ("implies", E, B)),
        ("none", ("all", ("any", A, B), ("any", C, E))),
        ("any", A, ("all", A, B), ("all", A, B, C)),
        ("none", ("none", ("none", E))),
    ],
)
def test_equivalent_for_every_point(ast: Ast) -> None:
    """The set that was read is the set that was meant, over all reals."""
    y = [z3.Real(f"y{i}") for i in range(D)]
    meant = holds(ast, tuple(y))
    solver = z3.Solver()
    solver.add(z3.Xor(_z3_of_rules(read(ast), y), meant))
    assert solver.check() == z3.unsat
    # The check itself can fail: a formula with one relation moved is told apart.
    moved = ("all", ast, ("atom", (1, 1, 0), "<=", -7))
    other = z3.Solver()
    other.add(z3.Xor(_z3_of_rules(read(moved), y), meant))
    assert other.check() == z3.sat


def test_conjunction_at_the_top_becomes_several_rules() -> None:
    m = outputs_only()
    m.p = pyo.Param(mutable=True)
    m.r = gdpnet.rule(
        gdpnet.all_of(
            gdpnet.any_of(m.y[0] <= 1, m.y[1] <= 1),
            gdpnet.all_of(m.y[2] >= 0, gdpnet.none_of(m.y[0] >= 5, m.y[1] >= 5)),
        ),
        when=m.p > 2,
    )
    assert isinstance(m.r, Disjunction)
    assert m.r.is_indexed()
    assert [len(m.r[i].disjuncts) for i in m.r] == [2, 1, 1, 1]
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    assert rules.names == ("r[0]", "r[1]", "r[2]", "r[3]")
    assert rules.active([[2.0], [2.5]]).tolist() == [[False] * 4, [True] * 4]
    assert len(rules.data.conditions) == 1


def test_disjunction_at_the_top_is_one_rule() -> None:
    m = outputs_only()
    m.r = gdpnet.rule(gdpnet.any_of(m.y[0] <= 1, gdpnet.all_of(m.y[1] <= 1, m.y[2] <= 1)))
    m.single = gdpnet.rule(m.y[0] <= 9)
    assert not m.r.is_indexed()
    assert not m.single.is_indexed()
    assert gdpnet.RuleModel(m, outputs=[m.y]).names == ("r", "single")


@pytest.mark.parametrize("wrap", [gdpnet.none_of, lambda p: gdpnet.implies(p, p)])
def test_negating_an_equality_is_refused_by_name(wrap: Any) -> None:
    m = pyo.ConcreteModel()
    m.level = pyo.Var()
    with pytest.raises(gdpnet.errors.RuleError, match=r"'level\s+==\s+3' cannot be negated"):
        m.r = gdpnet.rule(wrap(m.level == 3))


def test_equality_in_a_positive_place() -> None:
    m = outputs_only(2)
    m.r = gdpnet.rule(gdpnet.none_of(gdpnet.none_of(m.y[0] == 1), m.y[1] >= 2))
    y = [[1.0, 2.0], [1.0, 3.0], [0.0, 0.0]]
    assert gdpnet.RuleModel(m, outputs=[m.y]).satisfied(y).tolist() == [True, False, False]


def test_ranged_relations() -> None:
    m = outputs_only(1)
    m.inside = gdpnet.rule(pyo.inequality(1, m.y[0], 3))
    inside = gdpnet.RuleModel(m, outputs=[m.y])
    m = outputs_only(1)
    m.outside = gdpnet.rule(gdpnet.none_of(pyo.inequality(1, m.y[0], 3)))
    outside = gdpnet.RuleModel(m, outputs=[m.y])
    y = [[0.0], [1.0], [2.0], [3.0], [4.0]]
    assert inside.satisfied(y, tol=0).tolist() == [False, True, True, True, False]
    assert outside.satisfied(y, tol=0).tolist() == [True, True, False, True, True]


def test_parametric_bounds_are_negated_too() -> None:
    m = outputs_only(1)
    m.p = pyo.Param(mutable=True)
    m.r = gdpnet.rule(gdpnet.none_of(pyo.inequality(m.p, m.y[0], m.p + 2), m.y[0] >= 2 * m.p + 5))
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    x = [[1.0], [1.0], [1.0], [1.0], [-1.0], [-1.0]]
    y = [[1.0], [2.0], [3.0], [7.5], [3.0], [3.5]]
    assert rules.satisfied(y, x, tol=0).tolist() == [True, False, True, False, True, False]


@pytest.mark.parametrize("bad", [True, False, None, 3, "y <= 3"])
@pytest.mark.parametrize(
    "use",
    [
        gdpnet.any_of,
        gdpnet.all_of,
        gdpnet.none_of,
        lambda p: gdpnet.implies(p, p),
        gdpnet.rule,
    ],
)
def test_what_is_no_relation_is_refused(use: Any, bad: Any) -> None:
    with pytest.raises(gdpnet.errors.RuleError, match=r"gdpnet\.\w+: expected a linear relation"):
        use(bad)


@pytest.mark.parametrize("use", [gdpnet.any_of, gdpnet.all_of, gdpnet.none_of])
def test_no_parts_are_refused(use: Any) -> None:
    with pytest.raises(gdpnet.errors.RuleError, match="at least one relation or formula"):
        use()


def test_strict_relations_are_refused() -> None:
    m = pyo.ConcreteModel()
    m.level = pyo.Var()
    with pytest.raises(GDP_Error, match=r"level\s+<\s+3.*strict"):
        m.r = gdpnet.rule(gdpnet.any_of(m.level < 3, m.level >= 7))


def test_a_formula_has_no_truth_value() -> None:
    m = outputs_only(1)
    formula = gdpnet.any_of(m.y[0] <= 3, m.y[0] >= 7)
    with pytest.raises(gdpnet.errors.RuleError, match="no truth value"):
        bool(formula)
    with pytest.raises(gdpnet.errors.RuleError, match="no truth value"):
        assert not formula
    with pytest.raises(gdpnet.errors.RuleError, match="no truth value"):
        assert [True] if formula else []


@pytest.mark.parametrize(("clauses", "size"), [(13, 2), (2, 3000), (1, 5000)])
def test_too_many_disjuncts_are_refused_at_once(clauses: int, size: int) -> None:
    m = outputs_only(1)
    product = gdpnet.all_of(
        *(gdpnet.any_of(*(m.y[0] <= k for k in range(size))) for _ in range(clauses))
    )
    begun = time.perf_counter()
    with pytest.raises(gdpnet.errors.RuleError, match="more than 4096 disjuncts"):
        gdpnet.rule(gdpnet.any_of(product, m.y[0] >= 3))
    assert time.perf_counter() - begun < 10.0
    assert clauses == 1 or len(gdpnet.rule(product).index_set()) == clauses


def test_absorption_keeps_the_meaning() -> None:
    m = outputs_only()
    a, b, c = m.y[0] <= 0, m.y[1] <= 0, m.y[2] <= 0
    formula = gdpnet.any_of(
        gdpnet.all_of(a, gdpnet.any_of(a, b)), gdpnet.all_of(gdpnet.any_of(b, c), b, b)
    )
    m.r = gdpnet.rule(formula)
    assert len(m.r.disjuncts) == 2  # a or b
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    y = torch.tensor(GRID, dtype=torch.float64)
    expected = (y[:, 0] <= 0) | (y[:, 1] <= 0)
    assert torch.equal(rules.satisfied(y, tol=0), expected)


def test_when_joins_an_existing_suffix() -> None:
    m = outputs_only()
    m.p = pyo.Param(mutable=True)
    m.first = Disjunction(expr=[[m.y[0] <= 1], [m.y[1] <= 1]])
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.active_when[m.first] = m.p >= 1
    suffix = m.active_when
    m.second = gdpnet.rule(gdpnet.any_of(m.y[1] <= 1, m.y[2] <= 1), when=m.p < 3)
    m.third = gdpnet.rule(gdpnet.any_of(m.y[1] <= 2, m.y[2] <= 2))
    assert m.active_when is suffix
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    assert rules.names == ("first", "second", "third")
    assert rules.active([[0.0], [1.0], [3.0]]).tolist() == [
        [False, True, True],
        [True, True, True],
        [True, False, True],
    ]


def test_when_may_be_a_function() -> None:
    m = outputs_only()
    m.p = pyo.Param(mutable=True)
    m.r = gdpnet.rule(gdpnet.any_of(m.y[1] <= 1, m.y[2] <= 1), when=lambda x: x[:, 0] > 3)
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    assert rules.active([[3.0], [3.5]]).tolist() == [[False], [True]]


def _on_a_block() -> Any:
    m = outputs_only()
    m.p = pyo.Param(mutable=True)
    m.unit = pyo.Block()
    m.unit.r = gdpnet.rule(
        gdpnet.all_of(gdpnet.any_of(m.y[0] <= 1, m.y[1] <= 1), m.y[2] <= 1), when=m.p >= 2
    )
    return m


def test_rule_on_a_sub_block() -> None:
    m = _on_a_block()
    assert m.component("active_when") is None
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    assert rules.names == ("unit.r[0]", "unit.r[1]")
    assert rules.active([[1.0], [2.0]]).tolist() == [[False, False], [True, True]]
    y = [[2.0, 0.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 2.0]]
    assert rules.satisfied(y, [2.0]).tolist() == [True, False, False]
    assert rules.satisfied(y, [1.0]).tolist() == [True, True, True]


def test_rule_inside_a_disjunct() -> None:
    m = outputs_only()
    m.p = pyo.Param(mutable=True)
    m.left = Disjunct()
    m.left.c = pyo.Constraint(expr=m.y[0] <= 0)
    m.left.inner = gdpnet.rule(gdpnet.any_of(m.y[1] <= 0, m.y[2] <= 0), when=m.p >= 1)
    m.right = Disjunct()
    m.right.c = pyo.Constraint(expr=m.y[0] >= 1)
    m.choice = Disjunction(expr=[m.left, m.right])
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    assert rules.names == ("choice",)
    y = [[0.0, 1.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0], [0.5, 0.0, 0.0]]
    assert rules.satisfied(y, [1.0]).tolist() == [False, True, True, False]
    assert rules.satisfied(y, [0.0]).tolist() == [True, True, True, False]


def test_a_clone_keeps_its_conditions() -> None:
    m = _on_a_block()
    original = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    copy = m.clone()
    cloned = gdpnet.RuleModel(copy, outputs=[copy.y], inputs=[copy.p])
    assert cloned.fingerprint == original.fingerprint
    assert repr(cloned) == repr(original)
    assert cloned.active([[1.0], [2.0]]).tolist() == [[False, False], [True, True]]


def test_rules_of_the_same_formula_are_independent() -> None:
    m = outputs_only(1)
    formula = gdpnet.any_of(m.y[0] <= 3, m.y[0] >= 7)
    m.one, m.two = gdpnet.rule(formula), gdpnet.rule(formula)
    assert gdpnet.RuleModel(m, outputs=[m.y]).names == ("one", "two")
