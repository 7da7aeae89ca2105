"""Certificates of rules with convex rows: over the bank, and refused where wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
import torch

import gdpnet
from gdpnet import Status
from gdpnet.errors import InputError
from gdpnet.ir.data import Shape
from gdpnet.proof._instance import RationalInstance
from gdpnet.proof._tangents import touching
from gdpnet.proof._tree import ClauseNode, Leaf, Touch
from gdpnet.proof.certificate import Certificate, certify, verify
from gdpnet.testing import BY_NAME, CONVEX, Problem, random_convex_model

NORMS = ("l1", "l2")


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("problem", CONVEX, ids=lambda p: p.name)
def test_bank_is_certified(problem: Problem, norm: str) -> None:
    rules = problem.rules()
    p = gdpnet.project(rules, problem.yhat, problem.x, norm=norm)
    for k, sample in enumerate(problem.samples):
        yhat, x = problem.yhat[k], None if problem.x is None else problem.x[k]
        y = None if p.status[k] == Status.CONFLICT else p.y[k]
        certificate = certify(rules, yhat, x, y, norm=norm)
        verdict = verify(rules, yhat, y, x, certificate, norm=norm)
        assert verdict, verdict.reason
        assert certificate.bound == verdict.bound
        read = Certificate.from_json(certificate.to_json())
        assert read == certificate
        assert verify(rules, yhat, y, x, read, norm=norm) == verdict
        known = sample.distance if norm == "l1" else sample.euclidean
        if known is not None:
            proved = math.sqrt(verdict.bound) if norm == "l2" else verdict.bound
            assert proved == pytest.approx(known, rel=1e-6, abs=1e-6)
            # The tangents allow everything that is feasible: no more than the truth is proved.
            assert proved <= known * (1 + 1e-12)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", ["ellipsoids", "cones", "mixed"])
@pytest.mark.parametrize("seed", range(6))
def test_random_models(seed: int, kind: str, norm: str) -> None:
    rng = np.random.default_rng(seed)
    m = random_convex_model(rng, 2 + seed % 2, kind, thin=0.0)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    yhat = torch.from_numpy(rng.uniform(-4, 4, len(rules.output_names)))
    p = gdpnet.project(rules, yhat, norm=norm)
    certificate = certify(rules, yhat, y=p.y, norm=norm)
    verdict = verify(rules, yhat, p.y, certificate=certificate, norm=norm)
    assert verdict, verdict.reason
    assert verdict.bound == pytest.approx(float(p.value), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("norm", NORMS)
def test_without_a_certificate_one_is_made(norm: str) -> None:
    rules = BY_NAME["two_discs"].rules()
    assert verify(rules, [6.0, 0.0], [5.0, 0.0], norm=norm)
    nearer = verify(rules, [6.0, 0.0], [4.9, 0.0], norm=norm)
    assert not nearer
    assert nearer.feasible
    assert "nearer" in nearer.reason


# ---- tangents -----------------------------------------------------------------------------


def _instance(name: str, norm: str = "l1") -> RationalInstance:
    problem = BY_NAME[name]
    rules = problem.rules()
    x = torch.zeros(1, 0) if problem.x is None else problem.x[:1].double()
    d = len(rules.output_names)
    return RationalInstance(rules, x, np.zeros(d), np.ones(d), norm)


def _line(
    terms: list[tuple[int, Fraction]], bound: Fraction, unit: Fraction
) -> Callable[[np.ndarray], float]:
    def line(z: np.ndarray) -> float:
        exact = sum((a * Fraction(float(z[j])) for j, a in terms), -bound)
        return float(exact / unit)

    return line


@pytest.mark.parametrize("name", ["two_discs", "ellipse_written_out", "ice_cream", "moving_disc"])
def test_a_tangent_lies_below_its_row_and_touches_it(name: str) -> None:
    """The row's own value, in floating-point numbers, against the exact tangent."""
    instance = _instance(name)
    sample, data = instance.sample, instance.data
    rng = np.random.default_rng(0)

    def left(row: int, z: np.ndarray) -> float:
        values = sample.matrix @ z - sample.bound
        bent = 0.0
        for curve in data.rows[row].curves:
            squares = float((values[list(curve.arguments)] ** 2).sum())
            bent += curve.weight * (math.sqrt(squares) if curve.shape is Shape.NORM else squares)
        return float(values[row]) + bent

    for row in data.curved:
        for _ in range(20):
            at = rng.uniform(-4, 4, len(instance.lower))
            tangent = touching(data.rows[row], row, sample.matrix @ at - sample.bound)
            line = _line(*instance.tangent(tangent))
            assert line(at) == pytest.approx(left(row, at), rel=1e-12, abs=1e-12)
            for other in rng.uniform(-4, 4, (20, len(at))):
                assert line(other) <= left(row, other) + 1e-12


# ---- what is wrong is refused ---------------------------------------------------------------


def _made(name: str, k: int, norm: str) -> tuple[Any, Any, Any, Certificate]:
    problem = BY_NAME[name]
    rules, yhat = problem.rules(), problem.yhat[k]
    y = gdpnet.project(rules, yhat, norm=norm).y
    return rules, yhat, y, certify(rules, yhat, y=y, norm=norm)


@pytest.mark.parametrize("norm", NORMS)
def test_a_tangent_moved_proves_less(norm: str) -> None:
    rules, yhat, y, good = _made("two_discs", 2, norm)
    assert verify(rules, yhat, y, certificate=good, norm=norm)
    for k, tangent in enumerate(good.tangents):
        for shift in (0.5, -0.5, 1e9, Fraction(1, 3)):
            points = tuple(tuple(v + shift for v in each) for each in tangent.points)
            moved = [*good.tangents]
            moved[k] = replace(tangent, points=points)
            verdict = verify(
                *(rules, yhat, y),
                certificate=replace(good, tangents=tuple(moved)),
                norm=norm,
            )
            # Another tangent is one too: nothing false can follow, only less.
            assert verdict.covered
            assert verdict.bound <= good.bound
    weaker = tuple(replace(t, points=((0.0, 0.0),)) for t in good.tangents)
    verdict = verify(rules, yhat, y, certificate=replace(good, tangents=weaker), norm=norm)
    assert not verdict
    assert "is proved" in verdict.reason


@pytest.mark.parametrize("norm", NORMS)
def test_a_direction_longer_than_one_is_refused(norm: str) -> None:
    rules, yhat, y, good = _made("ice_cream", 2, norm)
    assert verify(rules, yhat, y, certificate=good, norm=norm)
    (tangent,) = good.tangents
    for points in (((1.0, 2.0**-60),), ((0.6, 0.8000000000000002),), ((-2, 0),)):
        long = replace(good, tangents=(replace(tangent, points=points),))
        verdict = verify(rules, yhat, y, certificate=long, norm=norm)
        assert not verdict
        assert "longer than 1" in verdict.reason


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    ("tangent", "reason"),
    [
        (Touch(99, ((0.0, 0.0),)), "no row"),
        (Touch(-1, ((0.0, 0.0),)), "no row"),
        (Touch(True, ((0.0, 0.0),)), "no row"),
        (Touch(1, ((0.0,),)), "tangent 0 is none"),
        (Touch(1, ()), "tangent 0 is none"),
        (Touch(0, ((math.nan, 0.0),)), "tangent 0 is none"),
        (Touch(0, (("1", 0.0),)), "tangent 0 is none"),  # type: ignore[arg-type]
        (None, "tangent 0 is none"),
    ],
)
def test_what_is_no_tangent(tangent: Any, reason: str, norm: str) -> None:
    rules, yhat, y, good = _made("two_discs", 2, norm)
    bad = replace(good, tangents=(tangent, *good.tangents[1:]))
    verdict = verify(rules, yhat, y, certificate=bad, norm=norm)
    assert not verdict
    assert not verdict.covered
    assert reason in verdict.reason


@pytest.mark.parametrize("norm", NORMS)
def test_leaves_that_misuse_rows(norm: str) -> None:
    """A convex row without its curves is no row, a tangent has one side, and its disjunct only."""
    rules, yhat, y, good = _made("two_discs", 2, norm)
    first = len(rules.data.rows)
    leaves = [i for i, node in enumerate(good.nodes) if isinstance(node, Leaf)]
    assert isinstance(good.nodes[0], ClauseNode)
    assert len(leaves) == len(good.tangents) == 2

    def refused(index: int, multipliers: tuple[tuple[int, float], ...], why: str) -> None:
        nodes = [*good.nodes]
        nodes[index] = Leaf(multipliers)
        bad = replace(good, nodes=tuple(nodes))
        verdict = verify(rules, yhat, y, certificate=bad, norm=norm)
        assert not verdict
        assert why in verdict.reason

    for index in leaves:
        leaf = good.nodes[index]
        assert isinstance(leaf, Leaf)
        ((own, value),) = leaf.multipliers
        refused(index, ((own, -float(value)),), "not enforced")
        refused(index, ((2 * first + 1 - own, float(value)),), "not enforced")
        refused(index, ((first + 2, float(value)),), "there is no row")
        for row in (*rules.data.curved, *rules.data.arguments):
            refused(index, ((row, 1.0),), "not enforced")
        refused(index, ((own, float(value) / 100),), "is proved")
        refused(index, ((own, float(value) * 100),), "is proved")


def test_the_other_side_of_a_convex_row_is_not_assumed() -> None:
    instance = _instance("two_discs")
    assert not instance.opposite_row
    path = instance.root.children(instance, [1, 2])[1]
    assert path == instance.root.with_literal(instance, 2)


@pytest.mark.parametrize("norm", NORMS)
def test_outputs_outside_are_refused(norm: str) -> None:
    rules, yhat, _, good = _made("two_discs", 2, norm)
    outside = verify(rules, yhat, [5.0 + 1e-4, 0.0], certificate=good, norm=norm)
    assert not outside.feasible
    assert outside.reason == "y does not satisfy the rules."
    with pytest.raises(InputError, match="does not satisfy"):
        certify(rules, yhat, y=[5.0 + 1e-4, 0.0], norm=norm)
    with pytest.raises(InputError, match="not the nearest"):
        certify(rules, yhat, y=[4.9, 0.0], norm=norm)


@pytest.mark.parametrize("norm", NORMS)
def test_a_conflict_is_proved_by_tangents_alone_that_contradict(norm: str) -> None:
    problem = BY_NAME["disc_without_room"]
    rules, yhat = problem.rules(), problem.yhat[0]
    good = certify(rules, yhat, norm=norm)
    assert verify(rules, yhat, None, certificate=good, norm=norm)
    none = replace(good, tangents=tuple(replace(t, points=((0.0, 0.0),)) for t in good.tangents))
    verdict = verify(rules, yhat, None, certificate=none, norm=norm)
    assert not verdict
    assert "do not contradict" in verdict.reason

    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(-6, 6))
    m.disc = pyo.Constraint(expr=m.y[0] ** 2 + m.y[1] ** 2 <= 4.5)  # with room for (-1, -1), (2, 0)
    m.far = pyo.Constraint(expr=m.y[0] >= 2)
    wide = gdpnet.RuleModel(m, outputs=[m.y])
    assert not verify(wide, [0.0, 0.0], None, norm=norm)


def test_a_text_of_tangents_is_of_the_second_format() -> None:
    _, _, _, good = _made("two_discs", 2, "l1")
    text = good.to_json()
    assert '"gdpnet certificate 2"' in text
    assert replace(good, tangents=()).to_json().startswith('{"format": "gdpnet certificate 1"')
    for old, new in (('"tangents"', '"other"'), ('"tangents": [[', '"tangents": [["x", ')):
        with pytest.raises(InputError, match="certificate"):
            Certificate.from_json(text.replace(old, new))
    exact = replace(good, tangents=(Touch(0, ((Fraction(1, 3), 0.5),)),))
    assert Certificate.from_json(exact.to_json()) == exact


@pytest.mark.parametrize("size", [0.25, 1.0, 6.0])
def test_convex_rows_of_any_size_are_judged_beside_auxiliaries(size: float) -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(-5, 5))
    m.a = pyo.Var(bounds=(0, 60))
    m.above = pyo.Constraint(expr=m.a >= m.y[0])
    m.below = pyo.Constraint(expr=m.a <= m.y[1] + 5)
    m.disc = gdpnet.rule(gdpnet.any_of(m.y[0] ** 2 + m.y[1] ** 2 <= size, m.y[1] >= 3))
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    held = 0
    for y in np.random.default_rng(0).uniform(-2, 4, (40, 2)).tolist():
        holds = (y[0] ** 2 + y[1] ** 2 <= size or y[1] >= 3) and y[0] <= y[1] + 5
        held += holds
        assert verify(rules, y, y).feasible == holds
    assert 0 < held < 40
