"""When rules apply: `active` equals the evaluation of the condition by Pyomo."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pyomo.environ as pyo
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pyomo.gdp import Disjunct, Disjunction

import gdpnet

REPRODUCIBLE = settings(derandomize=True, deadline=None, database=None, max_examples=150)
P = 3
# Thresholds and points are multiples of 1/4, so that equality is exact and often met.
VALUES = [-1.0, -0.25, 0.0, 0.25, 0.5, 1.0]
GRID = list(itertools.product(VALUES, repeat=P))


def base() -> Any:
    m = pyo.ConcreteModel()
    m.p = pyo.Param(range(P), mutable=True)
    m.y = pyo.Var(range(2), bounds=(0, 10))
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    return m


def with_condition(write: Callable[[Any], Any]) -> Any:
    m = base()
    m.r = Disjunction(expr=[[m.y[0] <= 3], [m.y[1] <= 3]])
    m.active_when[m.r] = write(m)
    return m


def read(m: Any) -> gdpnet.RuleModel:
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])


def by_pyomo(m: Any, condition: Any, points: list[Any]) -> list[bool]:
    found = []
    for point in points:
        for i, value in enumerate(point):
            m.p[i] = value
        found.append(bool(pyo.value(condition)))
    return found


CONDITIONS: dict[str, Callable[[Any], Any]] = {
    ">=": lambda m: m.p[0] >= 0.25,
    ">": lambda m: m.p[0] > 0.25,
    "<=": lambda m: m.p[0] <= 0.25,
    "<": lambda m: m.p[0] < 0.25,
    "==": lambda m: m.p[0] == 0.25,
    "number first": lambda m: 0.25 < m.p[0],
    "between inputs": lambda m: m.p[0] > m.p[1],
    "== between inputs": lambda m: m.p[0] == m.p[1] + 0.5,
    "ranged": lambda m: pyo.inequality(-0.25, m.p[1], 0.5),
    "ranged strict": lambda m: pyo.inequality(-0.25, m.p[1], 0.5, strict=True),
    "ranged by inputs": lambda m: pyo.inequality(m.p[0], m.p[1], m.p[2]),
    "arithmetic": lambda m: 2 * m.p[0] - m.p[1] * m.p[2] >= 0.5,
    "functions": lambda m: gdpnet.maximum(abs(m.p[0]), m.p[1]) > gdpnet.relu(m.p[2]),
    "land": lambda m: pyo.land(m.p[0] >= 0, m.p[1] > 0, m.p[2] < 1),
    "lor": lambda m: pyo.lor(m.p[0] > 0.5, m.p[1] == 0.25, m.p[2] <= -1),
    "lnot": lambda m: pyo.lnot(m.p[0] >= 0.25),
    "implies": lambda m: pyo.implies(m.p[0] >= 0.25, m.p[1] >= 0.25),
    "equivalent": lambda m: pyo.equivalent(m.p[0] >= 0.25, m.p[1] >= 0.25),
    "xor": lambda m: pyo.xor(m.p[0] >= 0.25, m.p[1] >= 0.25),
    "nested": lambda m: pyo.lor(
        pyo.land(m.p[0] > 0, pyo.lnot(m.p[1] == 0)), pyo.implies(m.p[2] < 0, m.p[0] == m.p[1])
    ),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_active_equals_pyomo(name: str) -> None:
    m = with_condition(CONDITIONS[name])
    expected = by_pyomo(m, CONDITIONS[name](m), GRID)
    assert {*expected} == {False, True}
    assert read(m).active(GRID).flatten().tolist() == expected


def test_strict_and_not_strict_differ_at_the_threshold_only() -> None:
    above = read(with_condition(lambda m: m.p[0] > 0.25)).active(GRID).flatten()
    not_below = read(with_condition(lambda m: m.p[0] >= 0.25)).active(GRID).flatten()
    at = torch.tensor([point[0] == 0.25 for point in GRID])
    assert torch.equal(above ^ not_below, at)


numbers = st.sampled_from(VALUES)
terms = st.one_of(
    st.integers(0, P - 1).map(lambda i: lambda m: m.p[i]),
    st.builds(lambda i, j: lambda m: m.p[i] * m.p[j], st.integers(0, P - 1), st.integers(0, P - 1)),
    st.builds(
        lambda i, j, c: lambda m: m.p[i] - m.p[j] + c,
        st.integers(0, P - 1),
        st.integers(0, P - 1),
        numbers,
    ),
    st.integers(0, P - 1).map(lambda i: lambda m: abs(m.p[i])),
)
relations = st.builds(
    lambda sign, a, c: (
        lambda m: {
            "<=": lambda: a(m) <= c,
            "<": lambda: a(m) < c,
            ">=": lambda: a(m) >= c,
            ">": lambda: a(m) > c,
            "==": lambda: a(m) == c,
            "range": lambda: pyo.inequality(c - 0.5, a(m), c),
        }[sign]()
    ),
    st.sampled_from(["<=", "<", ">=", ">", "==", "range"]),
    terms,
    numbers,
)


def _layer(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=2, max_size=3)
    return st.one_of(
        st.builds(lambda ps: lambda m: pyo.land(*(p(m) for p in ps)), several),
        st.builds(lambda ps: lambda m: pyo.lor(*(p(m) for p in ps)), several),
        st.builds(lambda p: lambda m: pyo.lnot(p(m)), inner),
        st.builds(lambda p, q: lambda m: pyo.implies(p(m), q(m)), inner, inner),
        st.builds(lambda p, q: lambda m: pyo.equivalent(p(m), q(m)), inner, inner),
        st.builds(lambda p, q: lambda m: pyo.xor(p(m), q(m)), inner, inner),
    )


@REPRODUCIBLE
@given(st.recursive(relations, _layer, max_leaves=8), st.integers(0, 2**31))
def test_random_conditions_equal_pyomo(write: Callable[[Any], Any], seed: int) -> None:
    m = with_condition(write)
    generator = torch.Generator().manual_seed(seed)
    random = torch.randn(10, P, generator=generator, dtype=torch.float64).tolist()
    on_grid = [GRID[k] for k in torch.randint(0, len(GRID), (40,), generator=generator).tolist()]
    points = on_grid + random
    assert read(m).active(points).flatten().tolist() == by_pyomo(m, write(m), points)


@pytest.mark.parametrize("value", [True, False])
def test_constant_conditions(value: bool) -> None:
    m = with_condition(lambda m: value)
    assert read(m).active([[0.0] * P]).tolist() == [[value]]


def test_functions() -> None:
    seen = []

    def warm(x: torch.Tensor) -> torch.Tensor:
        seen.append((tuple(x.shape), x.dtype, x.requires_grad))
        return x.sum(1) > 0.5

    rules = read(with_condition(lambda m: warm))
    x = torch.tensor(GRID, dtype=torch.float32, requires_grad=True)
    assert torch.equal(rules.active(x).flatten(), x.double().sum(1) > 0.5)
    assert seen == [((len(GRID), P), torch.float64, False)]
    assert "warm(x)" in repr(rules)


@pytest.mark.parametrize(
    "answer", [lambda x: x[:, 0], lambda x: x > 0, lambda x: True, lambda x: torch.ones(1) > 0]
)
def test_functions_that_answer_wrongly_are_refused(answer: Any) -> None:
    rules = read(with_condition(lambda m: answer))
    with pytest.raises(
        gdpnet.errors.RuleError, match=r"active_when of 'r'.*bool tensor of shape \(2,\)"
    ):
        rules.active([[0.0] * P] * 2)


def test_a_whole_indexed_disjunction() -> None:
    m = base()
    m.r = Disjunction(range(3), rule=lambda m, i: [[m.y[0] <= i], [m.y[1] <= i]])
    m.active_when[m.r] = m.p[0] >= 0
    m.active_when[m.r[1]] = m.p[1] > 0
    rules = read(m)
    assert rules.names == ("r[0]", "r[1]", "r[2]")
    x = [[-1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    assert rules.active(x).tolist() == [[False] * 3, [True, False, True], [True] * 3]


def test_one_index_of_a_disjunction() -> None:
    m = base()
    m.r = Disjunction(range(2), rule=lambda m, i: [[m.y[0] <= i], [m.y[1] <= i]])
    m.active_when[m.r[1]] = m.p[1] > 0
    assert read(m).active([[0.0, 0.0, 0.0]]).tolist() == [[True, False]]


def test_a_block_with_all_it_holds() -> None:
    m = base()
    m.unit = pyo.Block()
    m.unit.r = Disjunction(expr=[[m.y[0] <= 3], [m.y[1] <= 3]])
    m.unit.c = pyo.Constraint(expr=m.y[0] + m.y[1] <= 12)
    m.unit.inner = pyo.Block([1, 2])
    m.unit.inner[2].c = pyo.Constraint(expr=m.y[0] >= 1)
    m.always = pyo.Constraint(expr=m.y[1] >= 1)
    m.active_when[m.unit] = m.p[0] >= 0
    m.active_when[m.unit.inner[2].c] = m.p[1] >= 0
    rules = read(m)
    assert rules.names == ("unit.r", "unit.c", "unit.inner[2].c")
    x = [[-1.0, 1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 1.0, 0.0]]
    assert rules.active(x).tolist() == [[False] * 3, [True, True, False], [True] * 3]
    y = [[9.0, 9.0], [0.0, 2.0], [0.0, 2.0]]
    assert rules.satisfied(y, x).tolist() == [True, True, False]
    assert rules.satisfied([[0.0, 0.0]] * 3, x).tolist() == [False] * 3


def test_an_indexed_block() -> None:
    m = base()
    m.unit = pyo.Block([1, 2])
    for i in m.unit:
        m.unit[i].r = Disjunction(expr=[[m.y[0] <= i], [m.y[1] <= i]])
    m.active_when[m.unit] = m.p[0] >= 0
    m.active_when[m.unit[2]] = m.p[1] >= 0
    assert read(m).active([[0.0, -1.0, 0.0], [-1.0, 0.0, 0.0]]).tolist() == [
        [True, False],
        [False, False],
    ]


def test_a_constraint_is_a_rule_with_one_disjunct() -> None:
    m = base()
    m.c = pyo.Constraint(expr=pyo.inequality(2, m.y[0], 3))
    m.d = pyo.Constraint([0, 1], rule=lambda m, i: m.y[i] >= 1)
    m.active_when[m.c] = m.p[0] > 0
    m.active_when[m.d[1]] = m.p[1] > 0
    rules = read(m)
    assert rules.names == ("c", "d[1]")
    x = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]]
    assert rules.active(x).tolist() == [[a > 0, b > 0] for a, b, _ in x]
    assert rules.satisfied([[5.0, 0.0]] * 4, x).tolist() == [True, False, False, False]
    assert rules.satisfied([[2.5, 0.0]] * 4, x).tolist() == [True, True, False, False]
    assert rules.satisfied([[0.5, 5.0]] * 4, x).tolist() == [False] * 4  # d[0] holds always


def nested() -> Any:
    m = base()
    m.a = Disjunct()
    m.a.c = pyo.Constraint(expr=m.y[0] <= 3)
    m.a.inner = Disjunction(expr=[[m.y[1] <= 2], [m.y[1] >= 8]])
    m.b = Disjunct()
    m.b.c = pyo.Constraint(expr=m.y[0] >= 7)
    m.r = Disjunction(expr=[m.a, m.b])
    return m


@pytest.mark.parametrize("on_the_disjunct", [False, True])
def test_a_nested_disjunction(on_the_disjunct: bool) -> None:
    m = nested()
    if on_the_disjunct:
        m.a.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
        m.a.active_when[m.a.inner] = m.p[0] >= 0
    else:
        m.active_when[m.a.inner] = m.p[0] >= 0
    m.active_when[m.r] = m.p[1] >= 0
    rules = read(m)
    assert rules.names == ("r",)
    y = [[1.0, 5.0], [1.0, 1.0], [8.0, 5.0], [5.0, 1.0]]
    assert rules.active([0.0, 0.0, 0.0]).tolist() == [True]
    assert rules.satisfied(y, [0.0, 0.0, 0.0]).tolist() == [False, True, True, False]
    assert rules.satisfied(y, [-1.0, 0.0, 0.0]).tolist() == [True, True, True, False]
    assert rules.satisfied(y, [0.0, -1.0, 0.0]).tolist() == [True] * 4


def test_a_constraint_inside_a_disjunct() -> None:
    m = nested()
    m.active_when[m.b.c] = m.p[0] >= 0
    rules = read(m)
    assert rules.names == ("r",)
    assert rules.satisfied([[5.0, 5.0]], [0.0] * P).tolist() == [False]
    assert rules.satisfied([[5.0, 5.0]], [-1.0, 0.0, 0.0]).tolist() == [True]


def test_a_suffix_on_a_sub_block() -> None:
    m = base()
    m.unit = pyo.Block()
    m.unit.r = Disjunction(expr=[[m.y[0] <= 3], [m.y[1] <= 3]])
    m.unit.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.unit.active_when[m.unit.r] = m.p[0] > 0
    m.other = Disjunction(expr=[[m.y[0] <= 3], [m.y[1] <= 3]])
    assert read(m).active([[0.0] * P, [1.0] * P]).tolist() == [[False, True], [True, True]]


def test_two_conditions_on_one_component_are_refused() -> None:
    m = base()
    m.unit = pyo.Block()
    m.unit.r = Disjunction(expr=[[m.y[0] <= 3], [m.y[1] <= 3]])
    m.unit.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.unit.active_when[m.unit.r] = m.p[0] > 0
    m.active_when[m.unit.r] = m.p[1] > 0
    with pytest.raises(gdpnet.errors.RuleError, match=r"'unit\.r' has two conditions"):
        read(m)


def test_a_deactivated_rule_keeps_its_condition_unread() -> None:
    m = with_condition(lambda m: m.p[0] > 0)
    m.other = Disjunction(expr=[[m.y[0] <= 3], [m.y[1] <= 3]])
    m.r.deactivate()
    for disjunct in m.r.disjuncts:
        disjunct.deactivate()
    assert read(m).active([[0.0] * P]).tolist() == [[True]]


def test_leading_shapes_and_float32_thresholds() -> None:
    rules = read(with_condition(lambda m: m.p[0] >= 0.25))
    x = torch.tensor(GRID, dtype=torch.float32).reshape(6, 36, P)
    got = rules.active(x)
    assert got.shape == (6, 36, 1)
    assert got.dtype == torch.bool
    assert torch.equal(got[..., 0], x[..., 0] >= 0.25)
    assert rules.active([0.25, 0.0, 0.0]).tolist() == [True]
