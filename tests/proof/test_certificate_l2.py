"""Certificates of squared Euclidean distances: made over the bank, and refused where wrong."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from hypothesis import given, settings
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet import Status
from gdpnet.errors import InputError, SolverError
from gdpnet.proof._instance import RationalInstance
from gdpnet.proof._tree import ClauseNode, ColumnNode, Leaf
from gdpnet.proof.certificate import Certificate, certify, verify
from gdpnet.testing import BY_NAME, PROBLEMS, Problem
from tests.proof.test_certificate import (
    INF,
    RANDOM,
    SEEDS,
    gap,
    heavy_and_light,
    kinds,
    mutated,
    random_rules,
    tampered,
)
from tests.solve.l2_oracle import Oracle

L2: dict[str, Any] = {"norm": "l2"}


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_bank_is_certified(problem: Problem) -> None:
    rules = problem.rules()
    weights = np.linspace(0.5, 2.0, len(rules.output_names)).tolist()
    for each in (None, weights):
        p = gdpnet.project(rules, problem.yhat, problem.x, norm="l2", weights=each)
        for k in range(len(problem.samples)):
            yhat, x = problem.yhat[k], None if problem.x is None else problem.x[k]
            y = None if p.status[k] == Status.CONFLICT else p.y[k]
            certificate = certify(rules, yhat, x, y, norm="l2", weights=each)
            verdict = verify(rules, yhat, y, x, certificate, norm="l2", weights=each)
            assert verdict, verdict.reason
            assert certificate.bound == verdict.bound
            if y is None:
                assert verdict.bound == verdict.value == verdict.distance == INF
                continue
            assert verdict.value == pytest.approx(float(p.value[k]), rel=1e-7, abs=1e-9)
            assert verdict.distance == pytest.approx(math.sqrt(verdict.value))
            assert verdict.bound == pytest.approx(verdict.value, rel=1e-7, abs=1e-7)
            read = Certificate.from_json(certificate.to_json())
            assert verify(rules, yhat, y, x, read, norm="l2", weights=each) == verdict


def test_kinds_of_nodes() -> None:
    def made(name: str) -> Certificate:
        problem = BY_NAME[name]
        return certify(problem.rules(), problem.yhat[0], norm="l2")

    assert ColumnNode in kinds(made("whole_outputs"))
    assert ColumnNode in kinds(made("plain_milp"))
    assert all(leaf.ray for leaf in made("contradictory_logic").nodes if isinstance(leaf, Leaf))


def test_the_bound_is_that_of_the_dual() -> None:
    """Least of w^2 (z - yhat)^2 + m (a z - b) over the box, against a fine grid of z."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var([0, 1], bounds=(-1, 2))
    m.row = pyo.Constraint(expr=m.y[0] - 3 * m.y[1] <= -2)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    yhat, weights = np.array([1.5, -0.5]), np.array([0.7, 2.0])
    instance = RationalInstance(rules, torch.zeros(1, 0), yhat, weights, "l2")
    line = np.linspace(-1, 2, 3001)
    for price in (0.0, 0.3, 2.0, 7.0, 100.0):
        bound = instance.bound(instance.root, [(0, Fraction(price))])
        terms = [
            (w * (line - h)) ** 2 + price * a * line
            for w, h, a in zip(weights, yhat, (1.0, -3.0), strict=True)
        ]
        assert float(bound) == pytest.approx(sum(t.min() for t in terms) + 2 * price, abs=1e-5)
        assert isinstance(bound, Fraction)


# ---- what is wrong is refused ---------------------------------------------------------------

SPLIT, LOW, HIGH = 0, 1, 2
TREE = Certificate(
    (ClauseNode(0, ((1, LOW), (2, HIGH))), Leaf(((0, 3.0),)), Leaf(((1, 5.0),))), 2.25
)


@pytest.mark.parametrize(
    ("index", "node", "reason"),
    [
        (SPLIT, ClauseNode(0, ((1, 1),)), "1 too few"),
        (SPLIT, ClauseNode(0, ((1, 1), (2, 1))), "not enforced"),
        (SPLIT, ColumnNode(0, 5, (1, 2)), "no whole number"),
        (LOW, Leaf(((0, -3.0),)), "not enforced"),
        (LOW, Leaf(((1, 3.0),)), "not enforced"),
        (LOW, Leaf(((0, 3.0),), ray=True), "do not contradict"),
        (LOW, Leaf(((0, math.nan),)), "no multiplier"),
        (LOW, Leaf(((0, 2.0),)), "is proved"),
        (LOW, Leaf(((0, 6.0),)), "is proved"),
        (LOW, Leaf(((0, 1e300),)), "is proved"),
        (LOW, Leaf(()), "only 0 is proved"),
    ],
)
def test_tampered_trees(index: int, node: Any, reason: str) -> None:
    rules = gap()
    good = verify(rules, [4.5], [3.0], certificate=TREE, **L2)
    assert good
    assert (good.bound, good.value, good.distance) == (2.25, 2.25, 1.5)
    assert good.reason == (
        "y satisfies the rules, and none of the 2 leaves has anything nearer than 1.5."
    )
    verdict = verify(rules, [4.5], [3.0], certificate=tampered(TREE, index, node), **L2)
    assert not verdict
    assert reason in verdict.reason
    assert verdict.bound <= 2.25


def test_certificates_of_another_norm_prove_no_more_than_they_do() -> None:
    rules = gap()
    one, two = certify(rules, [4.5]), certify(rules, [4.5], **L2)
    assert not verify(rules, [4.5], [3.0], certificate=one, **L2)
    assert not verify(rules, [4.5], [3.0], certificate=two)


def test_worse_outputs() -> None:
    rules = gap()
    worse = verify(rules, [4.5], [7.0], certificate=TREE, **L2)
    assert not worse
    assert worse.reason == "An output nearer than y may exist: y is at 2.5, only 1.5 is proved."
    assert not verify(rules, [4.5], [3.1], certificate=TREE, **L2).feasible
    assert not verify(rules, [4.5], [3.0 - 1e-4], certificate=TREE, **L2)
    assert verify(rules, [4.5], [3.0 - 1e-4], certificate=TREE, tol=1e-3, **L2)
    with pytest.raises(InputError, match=r"not the nearest. It is at 2\.5, and an output at 1\.5"):
        certify(rules, [4.5], y=[7.0], **L2)
    with pytest.raises(InputError, match="does not satisfy"):
        certify(rules, [4.5], y=[4.5], **L2)
    with pytest.raises(InputError, match="norm: expected one of 'l1', 'l2', got 'linf'"):
        certify(rules, [4.5], norm="linf")
    with pytest.raises(SolverError, match="nodes"):
        certify(rules, [4.5], y=[3.0], node_limit=1, **L2)


def test_without_certificate_one_is_made() -> None:
    rules = gap()
    assert verify(rules, [4.5], [3.0], **L2)
    assert "made for the purpose" in verify(rules, [4.5], [3.0], **L2).reason
    far = verify(rules, [4.5], [7.0], **L2)
    assert not far
    assert far.feasible
    assert far.bound == pytest.approx(2.25)
    assert not verify(rules, [4.5], [4.5], **L2)
    assert not verify(rules, [4.5], None, **L2)
    problem = BY_NAME["contradictory_globals"]
    assert verify(problem.rules(), problem.yhat[0], None, **L2)


@pytest.mark.parametrize("heavy", [1.0, 1e4, 1e7])
def test_weight_of_an_output_that_stays_excuses_nothing(heavy: float) -> None:
    rules, yhat, weights = heavy_and_light(), [0.0, 4.5], [heavy, 1.0]
    certificate = certify(rules, yhat, weights=weights, **L2)
    assert verify(rules, yhat, [0.0, 3.0], certificate=certificate, weights=weights, **L2)
    for v in (7.0, 10.0, 3.0 - 1e-4):
        verdict = verify(rules, yhat, [0.0, v], certificate=certificate, weights=weights, **L2)
        assert not verdict
        assert verdict.feasible
        assert verdict.bound == pytest.approx(2.25)


def test_auxiliaries_without_bounds_need_exact_sums() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([0, 1])
    m.a = pyo.Var(range(3))
    m.first = pyo.Constraint(expr=m.a[0] == 0.1 * m.y[0] + 0.7 * m.y[1])
    m.second = pyo.Constraint(expr=m.a[1] == 0.3 * m.a[0] - m.y[1])
    m.third = pyo.Constraint(expr=7 * m.a[2] == m.a[0] + m.a[1])
    m.rule = Disjunction(expr=[[m.a[2] <= -0.1, m.a[1] >= 2], [m.a[2] >= 1.3]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    for yhat in np.random.default_rng(0).normal(size=(10, 2)):
        y = gdpnet.project(rules, torch.from_numpy(yhat), norm="l2").y
        certificate = certify(rules, yhat, y=y, **L2)
        verdict = verify(rules, yhat, y, certificate=certificate, **L2)
        assert verdict, verdict.reason
        wanted = Oracle(rules, yhat).solve()
        assert verdict.bound == pytest.approx(wanted, rel=1e-7)
        values = [
            v for leaf in certificate.nodes if isinstance(leaf, Leaf) for _, v in leaf.multipliers
        ]
        assert any(isinstance(v, Fraction) for v in values)


# ---- random problems ------------------------------------------------------------------------


@RANDOM
@given(SEEDS)
def test_random_problems(seed: int) -> None:
    rules, yhat = random_rules(seed)
    r = random.Random(seed + 1)
    weights = [10.0 ** r.uniform(-2, 2) for _ in yhat] if seed % 2 else None
    start = torch.tensor(yhat, dtype=torch.float64)
    p = gdpnet.project(rules, start, norm="l2", weights=weights)
    y = None if p.status == Status.CONFLICT else p.y
    certificate = certify(rules, yhat, y=y, weights=weights, **L2)
    read = Certificate.from_json(certificate.to_json())
    verdict = verify(rules, yhat, y, certificate=read, weights=weights, **L2)
    assert verdict, verdict.reason
    wanted = Oracle(rules, yhat, weights=weights).solve()
    assert verdict.bound == pytest.approx(wanted, abs=1e-7, rel=1e-6)


@given(SEEDS)
@settings(RANDOM, max_examples=40)
def test_nothing_false_is_ever_proved(seed: int) -> None:
    rules, yhat = random_rules(seed)
    start = torch.tensor(yhat, dtype=torch.float64)
    p = gdpnet.project(rules, start, norm="l2")
    if p.status == Status.CONFLICT:
        return
    r = random.Random(seed)
    certificate = certify(rules, yhat, y=p.y, **L2)
    moved = torch.tensor([[v + r.uniform(-4, 4) for v in yhat] for _ in range(8)]).double()
    others = gdpnet.project(rules, moved, norm="l2").y
    far = (others - start).norm(dim=1)
    worse = others[far.argmax()] if float(far.max()) > float(p.distance) + 1e-4 else None
    for _ in range(25):
        wrong = mutated(r, certificate, rules)
        assert not verify(rules, yhat, None, certificate=replace(wrong, bound=INF), **L2)
        verdict = verify(rules, yhat, p.y, certificate=wrong, **L2)
        assert verdict.bound <= float(p.value) + 1e-6
        if worse is not None:
            assert not verify(rules, yhat, worse, certificate=wrong, **L2)
