"""Certificates of rules with prices: leaves pay, and nothing in a certificate is trusted."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet.errors import InputError
from gdpnet.proof import Certificate, certify, verify
from gdpnet.proof._tree import ClauseNode, Leaf
from gdpnet.testing import PROBLEMS, Problem, random_predictions, random_rules, with_random_prices

NORMS = ("l1", "l2")


def gap(price: float = 1.0, low: float = 0.0) -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.gap = Disjunction(expr=[[m.y <= 3], [m.y >= 7]])
    prices = {m.gap: price, m.gap.disjuncts[0]: low}
    return gdpnet.RuleModel(m, outputs=[m.y], prices=prices)


@pytest.mark.parametrize(
    ("norm", "yhat", "y", "value"),
    [
        ("l1", 3.5, 3.0, 0.5),
        ("l1", 5.0, 5.0, 1.0),
        ("l1", 7.5, 7.5, 0.0),
        ("l2", 3.5, 3.0, 0.25),
        ("l2", 4.5, 4.5, 1.0),
    ],
)
def test_distance_and_price(norm: str, yhat: float, y: float, value: float) -> None:
    rules = gap()
    made = certify(rules, [yhat], norm=norm)
    assert made.bound == value
    found = verify(rules, [yhat], [y], certificate=made, norm=norm)
    assert found.ok, found.reason
    assert (found.value, found.bound) == (value, value)
    assert found.distance == abs(y - yhat)
    assert verify(rules, [yhat], [y], norm=norm).ok
    again = Certificate.from_json(made.to_json())
    assert verify(rules, [yhat], [y], certificate=again, norm=norm).ok


def test_what_is_said_of_dearer_outputs() -> None:
    rules = gap()
    made = certify(rules, [5.0])
    for y, cost in ((3.0, 2), (7.0, 2), (5.5, 1.5)):
        found = verify(rules, [5.0], [y], certificate=made)
        assert not found.ok
        told = f"An output cheaper than y may exist: y costs {cost}, only 1 is proved."
        assert found.reason == told
    assert verify(rules, [5.0], [5.0], certificate=made).reason == (
        "y satisfies the rules, and none of the 3 leaves has anything cheaper than 1."
    )
    with pytest.raises(InputError, match="not the nearest"):
        certify(rules, [5.0], y=[3.0])


def test_prices_are_those_of_the_rules_not_of_the_certificate() -> None:
    """Made for one price, and checked where the rule costs another."""
    made = certify(gap(1.0), [5.0])
    assert verify(gap(1.0), [5.0], [5.0], certificate=made).ok
    dear = verify(gap(1.5), [5.0], [5.0], certificate=made)
    assert dear.ok, "the leaves of the sides prove 2, and this one 1.5"
    assert dear.bound == 1.5
    holds = certify(gap(3.0), [5.0])
    assert verify(gap(3.0), [5.0], [3.0], certificate=holds).ok
    cheap = verify(gap(0.25), [5.0], [3.0], certificate=holds)
    assert not cheap.ok
    assert cheap.bound == 0.25


def test_the_way_out_cannot_be_left_out() -> None:
    rules = gap()
    made = certify(rules, [5.0])
    (place,) = [k for k, node in enumerate(made.nodes) if isinstance(node, ClauseNode)]
    node: Any = made.nodes[place]
    nodes = list(made.nodes)
    nodes[place] = replace(node, children=tuple(c for c in node.children if c[0] != 3))
    found = verify(rules, [5.0], [3.0], certificate=replace(made, nodes=tuple(nodes)))
    assert not found.ok
    assert "1 too few" in found.reason


def test_leaves_that_claim_too_much_are_caught() -> None:
    rules = gap()
    made = certify(rules, [3.5])
    for place, node in enumerate(made.nodes):
        if not isinstance(node, Leaf):
            continue
        for row in range(len(rules.data.rows)):
            nodes = list(made.nodes)
            nodes[place] = Leaf(((row, 5.0),))
            found = verify(rules, [3.5], [3.5], certificate=replace(made, nodes=tuple(nodes)))
            assert not found.ok or found.value <= 0.5


def test_the_other_side_of_a_dearer_disjunct_is_not_assumed() -> None:
    """Where both hold the cheaper one is chosen, so nothing may be concluded from the dearer."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.rule = Disjunction(expr=[[m.y >= 2], [m.y >= 4]])
    prices = {m.rule.disjuncts[0]: 3.0}
    rules = gdpnet.RuleModel(m, outputs=[m.y], prices=prices)
    # At 5 both hold: the second is free. Were `y <= 2` assumed beside it, it would cost 3.
    made = certify(rules, [5.0], y=[5.0])
    assert made.bound == 0.0
    root = ClauseNode(0, ((1, 1), (2, 2)))
    forged = Certificate((root, Leaf(), Leaf(((0, -1.0),), ray=False)), 3.0)
    found = verify(rules, [5.0], [1.0], certificate=forged)
    assert not found.covered or not found.ok
    from gdpnet.proof._instance import RationalInstance

    instance = RationalInstance(
        rules, np_tensor(np.zeros((1, 0))), np.array([5.0]), np.array([1.0])
    )
    first, second = instance.root.children(instance, [1, 2])
    assert second.lower == frozenset()
    assert instance.paid(first) == 3
    assert instance.paid(instance.root) == 0
    turned = instance.root.children(instance, [2, 1])[1]
    assert turned.lower == {1}, "the cheaper one may be taken as dealt with"


def np_tensor(array: np.ndarray) -> Any:
    import torch

    return torch.from_numpy(array)


def checked(rules: Any, yhat: Any, x: Any, norm: str, told: Any) -> bool:
    p = gdpnet.project(rules, yhat, x, norm=norm)
    status = gdpnet.Status(int(p.status))
    if status not in (gdpnet.Status.SATISFIED, gdpnet.Status.PROJECTED):
        return False
    made = certify(rules, yhat, x, y=p.y, norm=norm)
    found = verify(rules, yhat, p.y, x, made, norm=norm)
    assert found.ok, (told, found.reason)
    assert found.value == pytest.approx(float(p.value), rel=1e-6, abs=1e-6), told
    return True


@pytest.mark.parametrize("norm", NORMS)
def test_random_rules(norm: str) -> None:
    done = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        rules = with_random_prices(random_rules(rng), rng)
        yhat = random_predictions(rng, len(rules.output_names))[seed % 4]
        done += checked(rules, yhat, None, norm, seed)
    assert done > 20


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_the_bank(problem: Problem) -> None:
    if len(problem.rules().data.rules) > 12:
        pytest.skip("too large to be proved here")
    rules = with_random_prices(problem.rules(), np.random.default_rng(5))
    for k in range(min(2, len(problem.yhat))):
        x = None if problem.x is None else problem.x[k]
        checked(rules, problem.yhat[k], x, NORMS[k % 2], problem.name)


def test_prices_are_rational_numbers() -> None:
    rules = gap(0.1)
    made = certify(rules, [5.0])
    assert Fraction(made.bound) == Fraction(0.1)
