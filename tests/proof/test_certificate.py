"""Certificates: made for every problem of the bank, and refused when anything in them is wrong."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from fractions import Fraction
from functools import cache
from types import SimpleNamespace
from typing import Any

import pyomo.environ as pyo
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyomo.gdp import Disjunct, Disjunction

import gdpnet
from gdpnet import Status
from gdpnet.errors import InputError, SolverError
from gdpnet.proof import _search
from gdpnet.proof._tree import BooleanNode, ClauseNode, ColumnNode, Leaf
from gdpnet.proof.certificate import Certificate, certify, verify
from gdpnet.testing import BY_NAME, PROBLEMS, Problem

INF = float("inf")
SEEDS = st.integers(0, 2**32 - 1)
RANDOM = settings(
    max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


@cache
def projected(name: str) -> tuple[gdpnet.RuleModel, gdpnet.Projection]:
    problem = BY_NAME[name]
    rules = problem.rules()
    return rules, gdpnet.project(rules, problem.yhat, problem.x, solver="exact")


def case(name: str, k: int = 0) -> tuple[gdpnet.RuleModel, torch.Tensor, Any, torch.Tensor | None]:
    """Rules, yhat, x and the nearest y (None on conflict) of a sample of the bank."""
    problem = BY_NAME[name]
    rules, p = projected(name)
    x = None if problem.x is None else problem.x[k]
    return rules, problem.yhat[k], x, None if p.status[k] == Status.CONFLICT else p.y[k]


def gap() -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.gap = Disjunction(expr=[[m.y <= 3], [m.y >= 7]])
    return gdpnet.RuleModel(m, outputs=[m.y])


# ---- what holds is proved -----------------------------------------------------------------


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_bank_is_certified(problem: Problem) -> None:
    for k in range(len(problem.samples)):
        rules, yhat, x, y = case(problem.name, k)
        certificate = certify(rules, yhat, x, y)
        verdict = verify(rules, yhat, y, x, certificate)
        assert verdict, verdict.reason
        assert verdict.covered
        assert verdict.feasible == (y is not None)
        if y is None:
            assert verdict.bound == verdict.distance == certificate.bound == INF
        else:
            scale = max(1.0, verdict.distance)
            assert verdict.bound == pytest.approx(verdict.distance, abs=1e-7 * scale)
            assert certificate.bound == verdict.bound
        read = Certificate.from_json(certificate.to_json())
        assert read == certificate
        assert verify(rules, yhat, y, x, read) == verdict


def test_y_is_projected_where_not_given() -> None:
    for name in ("jl_largesize", "two_boxes", "contradictory_rules"):
        rules, yhat, x, y = case(name)
        certificate = certify(rules, yhat, x)
        assert verify(rules, yhat, y, x, certificate)


def test_conflict_ignores_y() -> None:
    rules, yhat, x, _ = case("contradictory_rules")
    certificate = certify(rules, yhat, x)
    verdict = verify(rules, yhat, yhat, x, certificate)
    assert verdict.ok
    assert not verdict.feasible
    assert "No output satisfies the rules" in verdict.reason
    rules, yhat, x, _ = case("two_boxes")
    assert not verify(rules, yhat, None, x, certificate)


def test_weights_count() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 10))
    m.rule = Disjunction(expr=[[m.y[0] >= 6], [m.y[1] >= 6]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    yhat, weights = [4.0, 3.0], [10.0, 1.0]
    certificate = certify(rules, yhat, y=[4.0, 6.0], weights=weights)
    assert certificate.bound == 3.0
    assert verify(rules, yhat, [4.0, 6.0], certificate=certificate, weights=weights)
    assert not verify(rules, yhat, [4.0, 6.0], certificate=certificate)  # y[0] = 6 is nearer then
    with pytest.raises(InputError, match="not the nearest"):
        certify(rules, yhat, y=[4.0, 6.0])


def heavy_and_light() -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.u, m.v = pyo.Var(bounds=(0, 10)), pyo.Var(bounds=(0, 10))
    m.gap = Disjunction(expr=[[m.v <= 3], [m.v >= 7]])
    return gdpnet.RuleModel(m, outputs=[m.u, m.v])


@pytest.mark.parametrize("proved", [True, False], ids=["certificate", "without"])
@pytest.mark.parametrize("heavy", [1.0, 1e4, 1e8])
def test_weight_of_an_output_that_stays_excuses_nothing(heavy: float, proved: bool) -> None:
    rules, yhat, weights = heavy_and_light(), [0.0, 4.5], [heavy, 1.0]
    certificate = certify(rules, yhat, weights=weights) if proved else None
    assert verify(rules, yhat, [0.0, 3.0], certificate=certificate, weights=weights)
    for v in (7.0, 10.0, 3.0 - 1e-4):
        verdict = verify(rules, yhat, [0.0, v], certificate=certificate, weights=weights)
        assert not verdict
        assert verdict.feasible
        assert verdict.bound == pytest.approx(1.5)
        assert verdict.reason.endswith("only 1.5 is proved.")
    # An output that moved by a hair excuses a hair.
    assert verify(rules, yhat, [1e-7, 3.0], certificate=certificate, weights=weights)
    for moved in ([1e-8, 10.0], [1e-5, 3.0]):
        assert not verify(rules, yhat, moved, certificate=certificate, weights=weights), moved


def test_tolerance_where_all_weights_are_small() -> None:
    """A unit of distance is no measure where a unit of an output costs 1e-12."""
    rules, yhat, weights = heavy_and_light(), [0.0, 4.5], [1e-12, 1e-12]
    certificate = certify(rules, yhat, weights=weights)
    assert certificate.bound == pytest.approx(1.5e-12, rel=1e-6)
    assert verify(rules, yhat, [0.0, 3.0], certificate=certificate, weights=weights)
    assert not verify(rules, yhat, [0.0, 7.0], certificate=certificate, weights=weights)
    with pytest.raises(InputError, match="not the nearest"):
        certify(rules, yhat, y=[0.0, 7.0], weights=weights)


def test_reason_tells_both_distances_where_they_differ() -> None:
    rules = gap()
    certificate = certify(rules, [4.5])
    verdict = verify(rules, [4.5], [3.0 - 1e-6], certificate=certificate)
    assert verdict
    assert (verdict.bound, verdict.distance) == (1.5, 4.5 - (3.0 - 1e-6))
    assert verdict.reason == (
        "y satisfies the rules, and none of the 2 leaves has anything nearer than 1.5; y is at "
        "1.500001, the same within tol."
    )


def small_rows(k: float, form: str) -> gdpnet.RuleModel:
    """y <= 3 or y >= 7, all times k: by rows, with logic, or by an auxiliary."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.low, m.high = Disjunct(), Disjunct()
    m.gap = Disjunction(expr=[m.low, m.high])
    z: Any = m.y
    if form == "auxiliary":
        m.z = pyo.Var(bounds=(-20, 20))
        m.same = pyo.Constraint(expr=k * m.z == k * m.y)
        z = m.z
    if form == "logic":
        m.some = pyo.LogicalConstraint(expr=pyo.lor(m.low.indicator_var, m.high.indicator_var))
    m.low.row = pyo.Constraint(expr=k * z <= 3 * k)
    m.high.row = pyo.Constraint(expr=k * z >= 7 * k)
    return gdpnet.RuleModel(m, outputs=[m.y])


@pytest.mark.parametrize("form", ["rows", "logic", "auxiliary"])
@pytest.mark.parametrize("k", [1.0, 1e-5, 1e-7, 1e-9, 1e-12])
def test_rows_of_small_numbers_count_like_others(k: float, form: str) -> None:
    rules = small_rows(k, form)
    certificate = certify(rules, [4.5], y=[3.0])
    verdict = verify(rules, [4.5], [3.0], certificate=certificate)
    assert verdict, verdict.reason
    assert verdict.bound == pytest.approx(1.5)
    for proof in (certificate, None):
        for y in (4.5, 3.0 + 1e-4):
            broken = verify(rules, [4.5], [y], certificate=proof)
            assert not broken
            assert not broken.feasible
        assert not verify(rules, [4.5], [7.0], certificate=proof)
    with pytest.raises(InputError, match="does not satisfy"):
        certify(rules, [4.5], y=[4.5])


def test_single_precision() -> None:
    rules, yhat, x, _ = case("jl_largesize", 3)
    single = yhat.float()
    y = gdpnet.project(rules, single).y
    certificate = certify(rules, single, x, y)
    assert verify(rules, single, y, x, certificate)


def kinds(certificate: Certificate) -> set[type]:
    return {type(node) for node in certificate.nodes}


def test_kinds_of_nodes() -> None:
    """The bank reaches them all: whole numbers, indicators decided by themselves, rays."""
    assert ColumnNode in kinds(certify(*case("whole_outputs")))
    assert ColumnNode in kinds(certify(*case("plain_milp")))
    nested = certify(*case("nested"))
    clauses = [node.clause for node in nested.nodes if isinstance(node, ClauseNode)]
    guards = [case("nested")[0].data.clauses[c].guard for c in clauses]
    assert any(guard >= 0 for guard in guards)
    leaves = certify(*case("contradictory_logic")).nodes
    assert all(leaf.ray for leaf in leaves if isinstance(leaf, Leaf))


def with_binary() -> gdpnet.RuleModel:
    """An OR, and a row with the binary of the first indicator; y <= 0.1 where that is false."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 1))
    m.a, m.b = Disjunct(), Disjunct()
    m.a.row = pyo.Constraint(expr=m.y >= 0.8)
    m.b.row = pyo.Constraint(expr=m.y <= 0.9)
    m.rule = Disjunction(expr=[m.a, m.b], xor=False)
    m.high = pyo.Constraint(expr=m.y <= 0.1 + 0.9 * m.a.binary_indicator_var)
    return gdpnet.RuleModel(m, outputs=[m.y])


def test_indicator_true_or_false(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the child of the second disjunct, the first one may still be true or false."""

    def second_first(search: Any, path: Any, clauses: list[int]) -> tuple[int, list[int]]:
        literals = path.open_literals(search.instance.data.clauses[clauses[0]])
        return clauses[0], sorted(literals, reverse=True)

    rules = with_binary()
    best = gdpnet.project(rules, torch.tensor([0.5], dtype=torch.float64), solver="milp")
    assert float(best.distance) == pytest.approx(0.3)
    assert BooleanNode not in kinds(certify(rules, [0.5], y=best.y))
    monkeypatch.setattr(_search._CertificateSearch, "_promising", second_first)
    certificate = certify(rules, [0.5], y=best.y)
    assert BooleanNode in kinds(certificate)
    verdict = verify(rules, [0.5], best.y, certificate=Certificate.from_json(certificate.to_json()))
    assert verdict, verdict.reason
    place = next(k for k, n in enumerate(certificate.nodes) if isinstance(n, BooleanNode))
    node = certificate.nodes[place]
    assert isinstance(node, BooleanNode)
    swapped = replace(node, children=(node.children[1], node.children[0]))
    assert not verify(rules, [0.5], best.y, certificate=tampered(certificate, place, swapped))


def test_repr() -> None:
    assert repr(certify(gap(), [4.5])) == "Certificate(2 leaves, depth 1, bound 1.5)"


# ---- without a certificate ----------------------------------------------------------------


def test_without_certificate() -> None:
    rules = gap()
    assert verify(rules, [4.5], [3.0])
    assert "mixed-integer program" in verify(rules, [4.5], [3.0]).reason
    far = verify(rules, [4.5], [7.0])
    assert not far
    assert far.feasible
    assert far.bound == pytest.approx(1.5)
    assert not verify(rules, [4.5], [4.5])
    assert not verify(rules, [4.5], None)
    rules, yhat, x, _ = case("contradictory_globals")
    assert verify(rules, yhat, None, x)


def instead_of_milp(monkeypatch: pytest.MonkeyPatch, y: float, value: float) -> None:
    """A mixed-integer program that gives a wrong answer; other solvers are left alone."""
    wrong = SimpleNamespace(
        status=Status.PROJECTED, value=value, y=torch.tensor([y], dtype=torch.float64)
    )

    def project(*arguments: Any, solver: str = "auto", **options: Any) -> Any:
        return wrong if solver == "milp" else gdpnet.project(*arguments, **options)

    monkeypatch.setattr("gdpnet.proof.certificate.project", project)


def test_without_certificate_the_engine_may_know_better(monkeypatch: pytest.MonkeyPatch) -> None:
    instead_of_milp(monkeypatch, 7.0, 2.5)
    verdict = verify(gap(), [4.5], [7.0])
    assert not verdict
    assert verdict.reason == "An output nearer than y may exist: y is at 2.5, only 1.5 is proved."
    assert not verify(gap(), [4.5], None)


def test_without_certificate_a_broken_point_proves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    instead_of_milp(monkeypatch, 4.5, 0.0)
    verdict = verify(gap(), [4.5], [3.0])
    assert not verdict
    assert not verdict.covered
    assert "pass a certificate" in verdict.reason


# ---- what does not hold is refused --------------------------------------------------------


def test_worse_or_infeasible_outputs() -> None:
    rules = gap()
    certificate = certify(rules, [4.5])
    worse = verify(rules, [4.5], [7.0], certificate=certificate)
    assert not worse.ok
    assert worse.feasible
    assert worse.covered
    assert worse.reason == "An output nearer than y may exist: y is at 2.5, only 1.5 is proved."
    broken = verify(rules, [4.5], [3.1], certificate=certificate)
    assert not broken.ok
    assert not broken.feasible
    assert broken.reason == "y does not satisfy the rules."
    slightly = verify(rules, [4.5], [3.0 - 1e-4], certificate=certificate)
    assert not slightly
    assert verify(rules, [4.5], [3.0 - 1e-4], certificate=certificate, tol=1e-3)
    with pytest.raises(InputError, match=r"not the nearest.*1\.5"):
        certify(rules, [4.5], y=[7.0])
    with pytest.raises(InputError, match="does not satisfy"):
        certify(rules, [4.5], y=[4.5])


def test_other_prediction_and_other_inputs() -> None:
    rules = gap()
    certificate = certify(rules, [4.5])
    assert not verify(rules, [5.5], [3.0], certificate=certificate)
    # The multipliers happen to prove this one too.
    assert verify(rules, [4.0], [3.0], certificate=certificate)
    rules, yhat, _, _ = case("strictly_hot", 1)
    hot = certify(rules, yhat, [30.0])
    y = gdpnet.project(rules, yhat, torch.tensor([10.0], dtype=torch.float64)).y
    cold = verify(rules, yhat, y, [10.0], hot)
    assert not cold
    assert "does not apply" in cold.reason


def tampered(certificate: Certificate, index: int, node: Any) -> Certificate:
    nodes = list(certificate.nodes)
    nodes[index] = node
    return Certificate(tuple(nodes), certificate.bound)


SPLIT, LOW, HIGH = 0, 1, 2
TREE = Certificate(
    (ClauseNode(0, ((1, LOW), (2, HIGH))), Leaf(((0, 1.0),)), Leaf(((1, 1.0),))), 1.5
)


@pytest.mark.parametrize(
    ("index", "node", "reason"),
    [
        (SPLIT, ClauseNode(0, ((1, 1),)), "1 too few"),
        (SPLIT, ClauseNode(0, ((2, 2),)), "1 too few"),
        (SPLIT, ClauseNode(0, ()), "2 too few"),
        (SPLIT, ClauseNode(0, ((1, 1), (1, 2))), "1 too few"),
        (SPLIT, ClauseNode(0, ((1, 1), (2, 2), (2, 2))), "0 too few"),
        (SPLIT, ClauseNode(0, ((1, 1), (2, 1))), "not enforced"),
        (SPLIT, ClauseNode(0, ((1, 0), (2, 2))), "two parents"),
        (SPLIT, ClauseNode(0, ((1, 1), (-2, 2))), "no such literals"),
        (SPLIT, ClauseNode(0, ((1, 1), (2.0, 2))), "no such literals"),  # type: ignore[arg-type]
        (SPLIT, ClauseNode(0, ((1, 1), (2, 9))), "no node 9"),
        (SPLIT, ClauseNode(0, ((1, 1), (2, -1))), "no node -1"),
        (SPLIT, ClauseNode(0, ((1, 1), (2, True))), "no node True"),
        (SPLIT, ClauseNode(1, ((1, 1), (2, 2))), "no clause 1"),
        (SPLIT, ClauseNode(-1, ((1, 1), (2, 2))), "no clause -1"),
        (SPLIT, ClauseNode(0, None), "malformed"),  # type: ignore[arg-type]
        (SPLIT, ColumnNode(0, 5, (1, 2)), "no whole number"),
        (SPLIT, BooleanNode(0, (1, 2)), "means nothing"),
        (SPLIT, BooleanNode(7, (1, 2)), "does not stand"),
        (SPLIT, Leaf(((0, 1.0),)), "not enforced"),
        (SPLIT, "node", "no node"),
        (LOW, Leaf(((0, math.nan),)), "no multiplier"),
        (LOW, Leaf(((0, INF),)), "no multiplier"),
        (LOW, Leaf(((0, "1"),)), "no multiplier"),  # type: ignore[arg-type]
        (LOW, Leaf(((0, True),)), "no multiplier"),
        (LOW, Leaf(((0, -1.0),)), "not enforced"),
        (LOW, Leaf(((1, 1.0),)), "not enforced"),
        (LOW, Leaf(((2, 1.0),)), "no row 2"),
        (LOW, Leaf(((-1, 1.0),)), "no row -1"),
        (LOW, Leaf(((0, 1.0),), ray=True), "do not contradict"),
        (LOW, Leaf((), ray=True), "do not contradict"),
        (LOW, Leaf(((0, 0.9),)), "only 1.35 is proved"),
        (LOW, Leaf(((0, 2.0),)), "is proved"),
        (LOW, Leaf(((0, 1e300),)), "is proved"),
        (LOW, Leaf(()), "only 0 is proved"),
    ],
)
def test_tampered_trees(index: int, node: Any, reason: str) -> None:
    rules = gap()
    assert verify(rules, [4.5], [3.0], certificate=TREE)
    verdict = verify(rules, [4.5], [3.0], certificate=tampered(TREE, index, node))
    assert not verdict
    assert reason in verdict.reason
    assert verdict.bound <= 1.5


def test_later_children_may_assume_the_other_side() -> None:
    """Not without the child that deals with it, and not before it."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.rule = Disjunction(expr=[[m.y <= 3], [m.y <= 5]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    near, far = Leaf(((1, 1.0),)), Leaf(((0, 1.0),))
    order = Certificate((ClauseNode(0, ((1, 1), (2, 2))), far, near), 3.0)
    assert verify(rules, [8.0], [5.0], certificate=order)
    # y <= 5 was dealt with, so that y <= 3 may assume y >= 5: a contradiction.
    ray = Leaf(((0, 1.0), (1, -1.0)), ray=True)
    assert verify(rules, [8.0], [5.0], certificate=Certificate((order_of(2, 1), near, ray), 3.0))
    assert not verify(
        rules, [8.0], [5.0], certificate=Certificate((order_of(1, 2), ray, near), 3.0)
    )


def order_of(first: int, second: int) -> ClauseNode:
    return ClauseNode(0, ((first, 1), (second, 2)))


def test_equalities_and_nested_disjuncts_have_no_other_side() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.left, m.right = Disjunct(), Disjunct()
    m.left.row = pyo.Constraint(expr=m.y <= 5)
    m.left.split = Disjunction(expr=[[m.y <= 1], [m.y >= 9]])
    m.right.row = pyo.Constraint(expr=m.y <= 3)
    m.rule = Disjunction(expr=[m.left, m.right])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    rows = {name: k for k, name in enumerate(row.name for row in rules.data.rows)}
    booleans = {b.name: k + 1 for k, b in enumerate(rules.data.booleans)}
    # y <= 5 does not mean that left holds: y = 3 is only right.
    ray = Leaf(((rows["right.row"], 1.0), (rows["left.row"], -1.0)), ray=True)
    near = Leaf(((rows["left.row"], 1.0),))
    top = ClauseNode(
        next(c for c, clause in enumerate(rules.data.clauses) if clause.guard < 0),
        ((booleans["left"], 1), (booleans["right"], 2)),
    )
    verdict = verify(rules, [8.0], [3.0], certificate=Certificate((top, near, ray), 5.0))
    assert not verdict
    assert "not enforced" in verdict.reason


def test_nested_rule_needs_its_parent() -> None:
    rules, yhat, x, y = case("nested")
    inner = next(c for c, clause in enumerate(rules.data.clauses) if clause.guard >= 0)
    literals = rules.data.clauses[inner].literals
    children = tuple((literal, place + 1) for place, literal in enumerate(literals))
    leaves = [Leaf() for _ in literals]
    verdict = verify(rules, yhat, y, x, Certificate((ClauseNode(inner, children), *leaves), 0.0))
    assert not verdict
    assert "nested in what is not chosen" in verdict.reason


def test_whole_numbers() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(domain=pyo.Integers, bounds=(0, 10))
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    whole = Certificate((ColumnNode(0, 4, (1, 2)), Leaf(), Leaf()), 0.4)
    assert verify(rules, [4.4], [4.0], certificate=whole)
    for value in (3, 5, 4.5, True, "4", None, 10**400):
        assert not verify(
            rules, [4.4], [4.0], certificate=tampered(whole, 0, ColumnNode(0, value, (1, 2)))
        )
    assert not verify(rules, [4.4], [4.0], certificate=tampered(whole, 0, ColumnNode(0, 4, (1,))))  # type: ignore[arg-type]
    assert not verify(rules, [4.4], [4.0], certificate=tampered(whole, 0, ColumnNode(1, 4, (1, 2))))


def test_deep_and_empty_trees() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(domain=pyo.Integers, bounds=(0, 10))
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    nodes: list[Any] = []
    for k in range(12_000):
        nodes += [ColumnNode(0, 4, (2 * k + 1, 2 * k + 2)), Leaf()]
    chain = Certificate((*nodes, Leaf()), 0.4)
    deep = verify(rules, [4.4], [4.0], certificate=chain)
    assert not deep
    assert "deeper" in deep.reason
    assert "12000" in repr(chain)
    assert not verify(rules, [4.4], [4.0], certificate=Certificate((), 0.4))
    loop = Certificate((ColumnNode(0, 4, (0, 0)),), 0.4)
    assert not verify(rules, [4.4], [4.0], certificate=loop)
    assert repr(loop)


def test_large_multipliers_that_cancel() -> None:
    """In floating point the sum of these multipliers would prove anything."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.t = pyo.Var()
    m.rows = pyo.ConstraintList()
    for _ in range(3):
        m.rows.add(m.t == 0.1 + m.y)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    big = 1e22
    for rows in (((0, big), (1, -big)), ((0, big), (1, big), (2, -2 * big - 1e8))):
        verdict = verify(rules, [4.0], [5.0], certificate=Certificate((Leaf(rows),), 1.0))
        assert verdict.bound == 0.0
        assert not verdict
        for sign in (1, -1):
            ray = Leaf(tuple((row, sign * v) for row, v in rows), ray=True)
            assert not verify(rules, [4.0], None, certificate=Certificate((ray,), INF))


def test_text_that_is_no_certificate() -> None:
    text = TREE.to_json()
    for broken in (text[:-1], text[: len(text) // 2], "", "[]", "{}", "null", "1", "[" * 100_000):
        with pytest.raises(InputError, match="certificate"):
            Certificate.from_json(broken)
    given = json.loads(text)
    for change in ({"format": "other"}, {"nodes": [{}]}, {"nodes": 1}, {"bound": "far"}):
        with pytest.raises(InputError, match="certificate"):
            Certificate.from_json(json.dumps({**given, **change}))
    for number in ("1e999999999", "1/0", "9" * 5000 + "/1", "nan", ""):
        nodes = [given["nodes"][0], {"rows": [[0, number]]}, given["nodes"][2]]
        with pytest.raises(InputError, match="certificate"):
            Certificate.from_json(json.dumps({**given, "nodes": nodes}))


def test_arguments() -> None:
    rules = gap()
    with pytest.raises(InputError, match="one sample"):
        certify(rules, [[4.5]])
    with pytest.raises(InputError, match="one sample"):
        verify(rules, [4.5], [[3.0]], certificate=TREE)
    with pytest.raises(InputError, match="NaN"):
        verify(rules, [4.5], [math.nan], certificate=TREE)
    with pytest.raises(InputError, match="tol"):
        verify(rules, [4.5], [3.0], certificate=TREE, tol=-1.0)
    with pytest.raises(InputError, match="Certificate"):
        verify(rules, [4.5], [3.0], certificate=TREE.to_json())  # type: ignore[arg-type]
    with pytest.raises(InputError, match="node_limit"):
        certify(rules, [4.5], node_limit=0)
    assert not verify(rules, [4.5], [3.0], certificate=Certificate(None, 1.5))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="RuleModel"):
        verify(None, [4.5], [3.0], certificate=TREE)  # type: ignore[arg-type]


def test_limits() -> None:
    rules, yhat, x, y = case("jl_largesize")
    with pytest.raises(SolverError, match="2 nodes"):
        certify(rules, yhat, x, y, node_limit=2)
    with pytest.raises(SolverError, match="time limit"):
        certify(rules, yhat, x, y, time_limit=1e-9)


# ---- random problems ----------------------------------------------------------------------


def random_rules(seed: int) -> tuple[gdpnet.RuleModel, list[float]]:
    """Up to three outputs and rules; some with whole numbers, auxiliaries, nesting or logic."""
    r = random.Random(seed)
    d = r.randint(1, 3)
    m = pyo.ConcreteModel()
    bounded = r.random() < 0.7
    m.y = pyo.Var(range(d), bounds=(-4, 4) if bounded else (None, None))
    if bounded and r.random() < 0.3:
        m.y[0].domain = pyo.Integers
    terms = list(m.y.values())
    if r.random() < 0.4:
        m.t = pyo.Var(bounds=r.choice([(None, None), (0, None), (-3, 3)]))
        terms.append(m.t)
        m.link = pyo.Constraint(expr=m.t == 0.3 * m.y[0] + r.choice([0.1, -0.7]))

    def row() -> Any:
        numbers = [r.choice([-1, -0.3, 0, 0.1, 1, 2]) for _ in terms]
        if not any(numbers):
            numbers[0] = 1
        body = sum(a * v for a, v in zip(numbers, terms, strict=True) if a)
        right = r.choice([-3, -1.1, 0, 0.7, 2])
        return body == right if r.random() < 0.1 else body <= right

    m.d = Disjunct(range(9))
    used = 0
    m.rules = pyo.Block()
    for k in range(r.randint(1, 3)):
        chosen = []
        for _ in range(r.randint(1, 3)):
            disjunct = m.d[used]
            used += 1
            disjunct.rows = pyo.ConstraintList()
            for _ in range(r.choice([1, 1, 1, 2])):
                disjunct.rows.add(row())
            if r.random() < 0.15:
                disjunct.inner = Disjunction(expr=[[row()], [row()]])
            chosen.append(disjunct)
        m.rules.add_component(f"rule{k}", Disjunction(expr=chosen, xor=r.random() < 0.7))
    for k in range(used, 9):
        m.d[k].deactivate()
    if used > 2 and r.random() < 0.3:
        one, other = r.sample(range(used), 2)
        m.logic = pyo.LogicalConstraint(
            expr=m.d[one].indicator_var.implies(pyo.lnot(m.d[other].indicator_var))
        )
    return gdpnet.RuleModel(m, outputs=[m.y]), [round(r.uniform(-5, 5), 2) for _ in range(d)]


@RANDOM
@given(SEEDS)
def test_random_problems(seed: int) -> None:
    rules, yhat = random_rules(seed)
    p = gdpnet.project(rules, torch.tensor(yhat, dtype=torch.float64), solver="exact")
    y = None if p.status == Status.CONFLICT else p.y
    certificate = certify(rules, yhat, y=y)
    verdict = verify(rules, yhat, y, certificate=Certificate.from_json(certificate.to_json()))
    assert verdict, verdict.reason
    assert verdict.bound == pytest.approx(float(p.distance), abs=1e-7, rel=1e-7)


def changed_number(r: random.Random, value: Any) -> Any:
    return r.choice([-value, value * 2, value * 1e8, value + 1, r.uniform(-3, 3), Fraction(1, 3)])


def mutated(r: random.Random, certificate: Certificate, rules: gdpnet.RuleModel) -> Certificate:
    """One to four changes: of literals, clauses, children, rows, multipliers, rays, splits."""
    nodes = list(certificate.nodes)
    for _ in range(r.randint(1, 4)):
        index = r.randrange(len(nodes))
        node = nodes[index]
        if isinstance(node, Leaf):
            pairs = list(node.multipliers)
            if rules.data.rows and r.random() < 0.4:
                pairs.append((r.randrange(len(rules.data.rows)), r.uniform(-3, 3)))
            elif pairs:
                k = r.randrange(len(pairs))
                pairs[k] = (pairs[k][0], changed_number(r, pairs[k][1]))
            ray = node.ray if r.random() < 0.7 else not node.ray
            nodes[index] = r.choice([Leaf(tuple(pairs), ray), nodes[r.randrange(len(nodes))]])
        elif isinstance(node, ClauseNode):
            children = list(node.children)
            r.shuffle(children)
            if children and r.random() < 0.5:
                children.pop()
            clause = node.clause if r.random() < 0.6 else r.randrange(len(rules.data.clauses))
            nodes[index] = ClauseNode(clause, tuple(children))
        elif isinstance(node, ColumnNode):
            nodes[index] = replace(node, value=node.value + r.choice([-1, 1]))
    return Certificate(tuple(nodes), certificate.bound)


@RANDOM
@given(SEEDS)
def test_nothing_false_is_ever_proved(seed: int) -> None:
    """Mutations of certificates, for outputs that are too far, and for conflicts that are none."""
    rules, yhat = random_rules(seed)
    start = torch.tensor(yhat, dtype=torch.float64)
    p = gdpnet.project(rules, start, solver="exact")
    if p.status == Status.CONFLICT:
        return
    r = random.Random(seed)
    certificate = certify(rules, yhat, y=p.y)
    # Outputs that satisfy the rules, as projections of something else.
    moved = torch.tensor([[v + r.uniform(-4, 4) for v in yhat] for _ in range(8)]).double()
    others = gdpnet.project(rules, moved, solver="exact").y
    far = (others - start).abs().sum(1)
    worse = others[far.argmax()] if float(far.max()) > float(p.distance) + 1e-4 else None
    for _ in range(25):
        wrong = mutated(r, certificate, rules)
        assert not verify(rules, yhat, None, certificate=replace(wrong, bound=INF))
        verdict = verify(rules, yhat, p.y, certificate=wrong)
        assert verdict.bound <= float(p.distance) + 1e-6
        if worse is not None:
            assert not verify(rules, yhat, worse, certificate=wrong)


@given(SEEDS)
@settings(RANDOM, max_examples=40)
def test_weights_of_all_sizes(seed: int) -> None:
    """The nearest is proved, what is clearly further is not, by the weights of what moves."""
    rules, yhat = random_rules(seed)
    r = random.Random(seed + 1)
    d = len(yhat)
    start = torch.tensor(yhat, dtype=torch.float64)
    weights = torch.tensor([10.0 ** r.uniform(-4, 4) for _ in range(d)], dtype=torch.float64)
    p = gdpnet.project(rules, start, solver="exact", weights=weights)
    if p.status == Status.CONFLICT:
        return
    certificate = certify(rules, yhat, y=p.y, weights=weights)
    verdict = verify(rules, yhat, p.y, certificate=certificate, weights=weights)
    assert verdict, verdict.reason
    others = torch.tensor([[v + r.uniform(-4, 4) for v in yhat] for _ in range(8)]).double()
    for y in gdpnet.project(rules, others, solver="exact").y:
        moves = (y - start).abs()
        far = float(weights @ moves)
        allowed = 2e-6 * max(far, float((weights * (moves > 0)).max()))
        if far - float(p.distance) > allowed:
            assert not verify(rules, yhat, y, certificate=certificate, weights=weights)
