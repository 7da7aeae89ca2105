"""Propositions: clauses, truth assignments, and logic read from Pyomo models."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pyomo.environ as pyo
import pytest
import torch
import z3
from hypothesis import given, settings
from hypothesis import strategies as st
from pyomo.gdp import Disjunct, Disjunction

import gdpnet
from gdpnet.ir.logic import ClauseWriter, Proposition, find_assignment
from gdpnet.rules._logic_text import propositions as recovered

REPRODUCIBLE = settings(derandomize=True, deadline=None, database=None, max_examples=200)
VARIABLES = 6


def truth(p: Proposition, values: tuple[bool, ...]) -> bool:
    """Direct evaluation."""
    kind, *parts = p
    if kind == "literal":
        return values[abs(parts[0]) - 1] == (parts[0] > 0)
    if kind in ("true", "false"):
        return kind == "true"
    if kind in ("atleast", "atmost", "exactly"):
        count = sum(truth(q, values) for q in parts[1:])
        return {
            "atleast": count >= parts[0],
            "atmost": count <= parts[0],
            "exactly": count == parts[0],
        }[kind]
    below = [truth(q, values) for q in parts]
    meaning: dict[str, Callable[[], bool]] = {
        "and": lambda: all(below),
        "or": lambda: any(below),
        "not": lambda: not below[0],
        "implies": lambda: (not below[0]) or below[1],
        "iff": lambda: below[0] == below[1],
        "xor": lambda: below[0] != below[1],
    }
    return meaning[kind]()


def written(p: Proposition, variables: int) -> list[tuple[int, ...]]:
    """Clauses of a proposition; helpers are numbered from `variables`."""
    made = itertools.count(variables)
    return ClauseWriter(lambda name: next(made)).clauses(p, "p")


def check_all_assignments(p: Proposition, variables: int) -> None:
    clauses = written(p, variables)
    for values in itertools.product((False, True), repeat=variables):
        found = find_assignment(clauses, dict(enumerate(values)))
        assert (found is not None) == truth(p, values), (p, values)
        if found is not None:
            assert all(any(found.get(abs(k) - 1) == (k > 0) for k in clause) for clause in clauses)


literals = st.integers(1, VARIABLES).flatmap(
    lambda k: st.sampled_from([("literal", k), ("literal", -k)])
)
leaves = st.one_of(literals, literals, literals, st.sampled_from([("true",), ("false",)]))


def _layer(inner: st.SearchStrategy[Proposition]) -> st.SearchStrategy[Proposition]:
    several = st.lists(inner, min_size=1, max_size=5)
    return st.one_of(
        st.builds(lambda k, ps: (k, *ps), st.sampled_from(["and", "or"]), several),
        st.builds(lambda p: ("not", p), inner),
        st.builds(
            lambda k, p, q: (k, p, q), st.sampled_from(["implies", "iff", "xor"]), inner, inner
        ),
        st.builds(
            lambda k, n, ps: (k, n, *ps),
            st.sampled_from(["atleast", "atmost", "exactly"]),
            st.integers(-1, 6),
            several,
        ),
    )


propositions = st.recursive(leaves, _layer, max_leaves=12)


@REPRODUCIBLE
@given(propositions)
def test_clauses_hold_where_the_proposition_does(p: Proposition) -> None:
    check_all_assignments(p, VARIABLES)


def check_recovered(p: Proposition, variables: int) -> list[Proposition]:
    """What is shown of the clauses means the same as the proposition."""
    clauses = written(p, variables)
    helpers = {abs(k) - 1 for clause in clauses for k in clause if abs(k) > variables}
    said = recovered(clauses, helpers)
    assert said is not None
    for values in itertools.product((False, True), repeat=variables):
        assert all(truth(q, values) for q in said) == truth(p, values), (p, said)
    return said


@REPRODUCIBLE
@given(propositions)
def test_clauses_are_shown_as_what_they_mean(p: Proposition) -> None:
    check_recovered(p, VARIABLES)


@pytest.mark.parametrize("kind", ["atleast", "atmost", "exactly"])
@pytest.mark.parametrize("size", [3, 4, 5, 10])
def test_counts_are_shown_as_counts(kind: str, size: int) -> None:
    for least in range(1, size):
        p = (kind, least, *(("literal", k) for k in range(1, size + 1)))
        said = check_recovered(p, size)
        assert len(said) <= 2
        assert all(
            q[0] in ("or", "and", "not", "implies", "atleast", "atmost", "exactly") for q in said
        )
    assert check_recovered(("exactly", 1, *p[2:]), size)[0][:2] == ("exactly", 1)


def test_a_count_of_other_logic_is_shown_or_left() -> None:
    several = [("or", ("literal", k), ("literal", -k - 1)) for k in range(1, 12)]
    clauses = written(("atleast", 7, *several), 12)
    helpers = {abs(k) - 1 for clause in clauses for k in clause if abs(k) > 12}
    assert helpers
    assert recovered(clauses, helpers) is None
    parts = [("literal", k) for k in range(1, 10)]
    (said,) = check_recovered(("implies", ("literal", 10), ("atleast", 4, *parts)), 10)
    assert said == ("implies", ("literal", 10), ("atleast", 4, *parts))


@pytest.mark.parametrize("kind", ["atleast", "atmost", "exactly"])
@pytest.mark.parametrize("count", [0, 1, 2, 5, 9, 10, 11])
def test_large_cardinalities(kind: str, count: int) -> None:
    parts = [("literal", k if k % 3 else -k) for k in range(1, 11)]
    check_all_assignments((kind, count, *parts), 10)


def test_the_running_count_is_used_and_right() -> None:
    """Five of twelve are not written out as 495 clauses."""
    p = ("atleast", 5, *(("literal", k) for k in range(1, 13)))
    clauses = written(p, 12)
    assert max(abs(k) for clause in clauses for k in clause) > 12
    assert len(clauses) < 150
    check_all_assignments(p, 12)


def test_a_count_inside_other_logic() -> None:
    parts = [("literal", k) for k in range(1, 10)]
    count = ("exactly", 4, *parts)
    check_all_assignments(("or", ("not", count), ("and", parts[0], parts[8])), 9)
    check_all_assignments(("iff", count, ("literal", -3)), 9)
    nested = [("or", ("literal", k), ("literal", -k - 1)) for k in range(1, 9)]
    check_all_assignments(("atleast", 4, *nested), 9)
    check_all_assignments(("atmost", 3, *nested, ("true",), ("false",)), 9)


def test_small_cardinalities_need_no_helpers() -> None:
    for kind in ("atleast", "atmost", "exactly"):
        p = (kind, 1, *(("literal", k) for k in range(1, 7)))
        assert all(abs(k) <= 6 for clause in written(p, 6) for k in clause)


def test_constants() -> None:
    assert written(("true",), 1) == []
    assert written(("false",), 1) == [()]
    assert find_assignment([()], {}) is None
    assert find_assignment([], {}) == {}


def test_what_is_no_proposition_is_refused() -> None:
    with pytest.raises(ValueError, match="not a proposition: 'nand'"):
        written(("nand", ("literal", 1)), 1)


random_cnf = st.lists(
    st.lists(st.integers(1, 9).flatmap(lambda k: st.sampled_from([k, -k])), max_size=3).map(tuple),
    max_size=45,
)


@settings(REPRODUCIBLE, max_examples=100)
@given(random_cnf, st.dictionaries(st.integers(0, 8), st.booleans(), max_size=3))
def test_find_assignment_agrees_with_z3(
    clauses: list[tuple[int, ...]], fixed: dict[int, bool]
) -> None:
    clauses = [clause for clause in clauses if clause]
    unknowns = [z3.Bool(f"b{k}") for k in range(9)]
    solver = z3.Solver()
    for clause in clauses:
        solver.add(z3.Or(*(unknowns[k - 1] if k > 0 else z3.Not(unknowns[-k - 1]) for k in clause)))
    for k, value in fixed.items():
        solver.add(unknowns[k] == value)
    found = find_assignment(clauses, fixed)
    assert (found is not None) == (solver.check() == z3.sat)
    if found is not None:
        assert fixed.items() <= found.items()
        assert all(any(found.get(abs(k) - 1) == (k > 0) for k in clause) for clause in clauses)


def test_hard_random_cnfs_agree_with_z3() -> None:
    """Near the threshold of 4.26 clauses a variable both answers occur."""
    generator = torch.Generator().manual_seed(5)
    seen = set()
    for _ in range(30):
        clauses = []
        for _ in range(51):
            chosen = torch.randperm(12, generator=generator)[:3] + 1
            signs = torch.randint(0, 2, (3,), generator=generator) * 2 - 1
            clauses.append(tuple((chosen * signs).tolist()))
        solver = z3.Solver()
        unknowns = {k: z3.Bool(f"b{k}") for k in range(1, 13)}
        for clause in clauses:
            solver.add(z3.Or(*(unknowns[k] if k > 0 else z3.Not(unknowns[-k]) for k in clause)))
        expected = solver.check() == z3.sat
        assert (find_assignment(clauses, {}) is not None) == expected
        seen.add(expected)
    assert seen == {False, True}


# ---- through Pyomo ---------------------------------------------------------------------------

RULES = 4


def choices(xor: bool = True) -> Any:
    """Rule i: on (y[i] in [0, 1]) or off (y[i] in [1, 2]); both hold at y[i] = 1."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(RULES), bounds=(-1, 3))
    m.on = Disjunct(range(RULES))
    m.off = Disjunct(range(RULES))
    for i in range(RULES):
        m.on[i].c = pyo.Constraint(expr=pyo.inequality(0, m.y[i], 1))
        m.off[i].c = pyo.Constraint(expr=pyo.inequality(1, m.y[i], 2))
    m.choice = Disjunction(range(RULES), rule=lambda m, i: [m.on[i], m.off[i]], xor=xor)
    return m


# 0.5: on only; 1: either; 1.5: off only; 2.5: neither.
POINTS = [*itertools.product((0.5, 1.0, 1.5), repeat=RULES), (0.5, 1.0, 1.5, 2.5)]


def brute_force(y: tuple[float, ...], logic: Callable[..., bool], xor: bool = True) -> bool:
    """Some truth values of the indicators enforce only what holds, and satisfy the logic."""
    allowed = [(True, False), (False, True)] + ([] if xor else [(True, True)])
    for pairs in itertools.product(allowed, repeat=RULES):
        if all(
            (not on or 0 <= v <= 1) and (not off or 1 <= v <= 2)
            for v, (on, off) in zip(y, pairs, strict=True)
        ) and logic(*(on for on, _ in pairs), *(off for _, off in pairs)):
            return True
    return False


def indicators(m: Any) -> list[Any]:
    return [m.on[i].indicator_var for i in range(RULES)] + [
        m.off[i].indicator_var for i in range(RULES)
    ]


LOGIC: dict[str, tuple[Callable[..., Any], Callable[..., bool]]] = {
    "exactly": (lambda *b: pyo.exactly(2, *b[:4]), lambda *b: sum(b[:4]) == 2),
    "exactly none": (lambda *b: pyo.exactly(0, *b[:4]), lambda *b: sum(b[:4]) == 0),
    "atleast": (lambda *b: pyo.atleast(3, *b[:4]), lambda *b: sum(b[:4]) >= 3),
    "atmost": (lambda *b: pyo.atmost(1, *b[:4]), lambda *b: sum(b[:4]) <= 1),
    "atleast of both": (lambda *b: pyo.atleast(5, *b), lambda *b: sum(b) >= 5),
    "xor": (lambda *b: pyo.xor(b[0], b[1]), lambda *b: b[0] != b[1]),
    "equivalent": (lambda *b: pyo.equivalent(b[0], b[3]), lambda *b: b[0] == b[3]),
    "implies": (
        lambda *b: pyo.implies(pyo.land(b[0], b[1]), b[2]),
        lambda *b: not (b[0] and b[1]) or b[2],
    ),
    "implies not": (
        lambda *b: b[0].implies(pyo.lnot(pyo.lor(b[1], b[6]))),
        lambda *b: not b[0] or not (b[1] or b[6]),
    ),
    "nested": (
        lambda *b: pyo.equivalent(pyo.xor(b[0], b[1]), pyo.atleast(1, b[2], pyo.land(b[3], b[0]))),
        lambda *b: (b[0] != b[1]) == (b[2] or (b[3] and b[0])),
    ),
    "impossible": (
        lambda *b: pyo.land(b[0], pyo.lnot(b[0])),
        lambda *b: False,
    ),
}


@pytest.mark.parametrize("xor", [True, False])
@pytest.mark.parametrize("name", LOGIC)
def test_logical_constraints_against_brute_force(name: str, xor: bool) -> None:
    write, logic = LOGIC[name]
    m = choices(xor)
    m.logic = pyo.LogicalConstraint(expr=write(*indicators(m)))
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    expected = [brute_force(y, logic, xor) for y in POINTS]
    assert rules.satisfied(POINTS).tolist() == expected
    assert not any(expected) or not all(expected[:-1])


@pytest.mark.parametrize("named", [True, False])
def test_a_proposition_that_can_never_hold(named: bool) -> None:
    """Also where no indicator is left in it."""
    m = choices()
    m.b = pyo.BooleanVar()
    m.b.fix(False)
    count = pyo.atleast(2, m.on[0].indicator_var)
    m.never = pyo.LogicalConstraint(expr=count if named else pyo.lor(m.b, m.b))
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    assert not bool(rules.satisfied(POINTS).any())
    assert gdpnet.project(rules, [POINTS[0]]).status.tolist() == [gdpnet.Status.CONFLICT]
    assert rules.explain_conflict() == ["never"]


def test_without_logic_overlap_is_fine() -> None:
    m = choices()
    expected = [max(y) <= 2 for y in POINTS]
    assert gdpnet.RuleModel(m, outputs=[m.y]).satisfied(POINTS).tolist() == expected


def test_boolean_vars() -> None:
    """A free BooleanVar takes whatever value helps; one for all propositions."""
    m = choices()
    m.b = pyo.BooleanVar()
    m.first = pyo.LogicalConstraint(expr=m.b.equivalent_to(m.on[0].indicator_var))
    m.second = pyo.LogicalConstraint(expr=m.b.implies(m.on[1].indicator_var))
    m.third = pyo.LogicalConstraint(expr=pyo.lor(m.b, m.off[2].indicator_var))
    rules = gdpnet.RuleModel(m, outputs=[m.y])

    def logic(*b: bool) -> bool:
        return any(v == b[0] and (not v or b[1]) and (v or b[6]) for v in (False, True))

    expected = [brute_force(y, logic) for y in POINTS]
    assert rules.satisfied(POINTS).tolist() == expected
    assert {*expected[:-1]} == {False, True}


@pytest.mark.parametrize("value", [True, False])
def test_fixed_boolean_vars(value: bool) -> None:
    m = choices()
    m.b = pyo.BooleanVar()
    m.b.fix(value)
    m.logic = pyo.LogicalConstraint(expr=m.b.equivalent_to(m.on[0].indicator_var))
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    expected = [brute_force(y, lambda *b: b[0] == value) for y in POINTS]
    assert rules.satisfied(POINTS).tolist() == expected


@pytest.mark.parametrize("value", [True, False])
def test_fixed_indicators(value: bool) -> None:
    m = choices()
    m.on[0].indicator_var.fix(value)
    m.logic = pyo.LogicalConstraint(expr=m.on[0].indicator_var.implies(m.off[1].indicator_var))
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    expected = [brute_force(y, lambda *b: b[0] == value and (not value or b[5])) for y in POINTS]
    assert rules.satisfied(POINTS).tolist() == expected


def test_logic_inside_a_disjunct_holds_where_it_is_chosen() -> None:
    m = choices()
    m.on[0].inside = pyo.LogicalConstraint(
        expr=pyo.land(m.off[1].indicator_var, m.on[2].indicator_var)
    )
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    expected = [brute_force(y, lambda *b: not b[0] or (b[5] and b[2])) for y in POINTS]
    assert rules.satisfied(POINTS).tolist() == expected
    assert {*expected[:-1]} == {False, True}


def test_logic_that_names_an_inactive_rule_is_dropped() -> None:
    m = choices()
    m.p = pyo.Param(mutable=True)
    m.first = pyo.LogicalConstraint(expr=pyo.lnot(m.on[0].indicator_var))
    m.second = pyo.LogicalConstraint(expr=pyo.xor(m.on[1].indicator_var, m.on[2].indicator_var))
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.active_when[m.choice[1]] = m.p >= 1
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    both = [brute_force(y, lambda *b: not b[0] and b[1] != b[2]) for y in POINTS]
    assert rules.satisfied(POINTS, [1.0]).tolist() == both
    # Rule 1 and the proposition that names it are gone, the others stay.
    expected = [brute_force((y[0], 1.0, *y[2:]), lambda *b: not b[0]) for y in POINTS]
    assert rules.satisfied(POINTS, [0.0]).tolist() == expected
    assert expected != both


def test_a_condition_on_a_logical_constraint() -> None:
    m = choices()
    m.p = pyo.Param(mutable=True)
    m.logic = pyo.LogicalConstraint(expr=pyo.atleast(3, *indicators(m)[:4]))
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.active_when[m.logic] = m.p > 1
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    assert rules.names == tuple(f"choice[{i}]" for i in range(RULES))
    with_logic = [brute_force(y, lambda *b: sum(b[:4]) >= 3) for y in POINTS]
    without = [brute_force(y, lambda *b: True) for y in POINTS]
    assert rules.satisfied(POINTS, [2.0]).tolist() == with_logic
    assert rules.satisfied(POINTS, [1.0]).tolist() == without


def test_binary_indicator_in_a_constraint() -> None:
    """As Pyomo's own models do: a sum of binary indicators bounds how many are chosen."""
    m = choices()
    m.most = pyo.Constraint(expr=sum(m.on[i].binary_indicator_var for i in range(RULES)) <= 2)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    expected = [brute_force(y, lambda *b: sum(b[:4]) <= 2) for y in POINTS]
    assert rules.satisfied(POINTS).tolist() == expected
    assert {*expected[:-1]} == {False, True}


def test_binary_indicator_with_an_output() -> None:
    """A fixed charge: y[3] is at least the number of rules that are on."""
    m = choices()
    m.cost = pyo.Constraint(
        expr=m.y[3] >= 0.5 * (m.on[0].binary_indicator_var + m.on[1].binary_indicator_var)
    )
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    expected = [
        any(brute_force(y, lambda *b, n=n: b[0] + b[1] == n) and y[3] >= 0.5 * n for n in range(3))
        for y in POINTS
    ]
    assert rules.satisfied(POINTS).tolist() == expected
    assert {*expected[:-1]} == {False, True}


def test_associated_binary_of_a_boolean_var() -> None:
    m = choices()
    m.b = pyo.BooleanVar()
    m.z = pyo.Var(domain=pyo.Binary)
    m.b.associate_binary_var(m.z)
    m.link = pyo.LogicalConstraint(expr=m.b.equivalent_to(m.on[0].indicator_var))
    m.cost = pyo.Constraint(expr=m.y[1] >= 1.2 * m.z)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    expected = [brute_force(y, lambda *b, y=y: y[1] >= 1.2 * b[0]) for y in POINTS]
    assert rules.satisfied(POINTS).tolist() == expected
    assert {*expected[:-1]} == {False, True}


@settings(REPRODUCIBLE, max_examples=25)
@given(st.recursive(literals, _layer, max_leaves=6))
def test_random_logic_through_pyomo(p: Proposition) -> None:
    m = choices()
    m.b = pyo.BooleanVar(range(VARIABLES))
    names = [*indicators(m)[:4], m.b[0], m.b[1]]

    def expression(q: Proposition) -> Any:
        kind, *parts = q
        if kind == "literal":
            indicator = names[abs(parts[0]) - 1]
            return indicator if parts[0] > 0 else pyo.lnot(indicator)
        if kind in ("atleast", "atmost", "exactly"):
            write = {"atleast": pyo.atleast, "atmost": pyo.atmost, "exactly": pyo.exactly}[kind]
            return write(parts[0], *(expression(part) for part in parts[1:]))
        below = [expression(part) for part in parts]
        write = {"and": pyo.land, "or": pyo.lor, "not": pyo.lnot, "implies": pyo.implies}
        write |= {"iff": pyo.equivalent, "xor": pyo.xor}
        return write[kind](*below)

    m.logic = pyo.LogicalConstraint(expr=expression(p))
    rules = gdpnet.RuleModel(m, outputs=[m.y])

    def logic(*b: bool) -> bool:
        free = itertools.product((False, True), repeat=2)
        return any(truth(p, (*b[:4], *values)) for values in free)

    points = POINTS[::3]
    expected = [brute_force(y, logic) for y in points]
    assert rules.satisfied(points).tolist() == expected
