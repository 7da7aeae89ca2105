"""Explanations agree with the projection, and account for all of the distance."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet.explain.explanation import Explanation, Move, TightRow
from gdpnet.testing import BY_NAME, CONVEX, PROBLEMS, Problem, random_predictions, random_rules
from models.cooling import model as cooling


def all_rows(told: Explanation) -> list[TightRow]:
    return [row for rule in told.rules for row in rule.tight] + list(told.always)


NORMS = ("l1", "l2")


def check(
    rules: gdpnet.RuleModel, x: torch.Tensor | None, yhat: torch.Tensor, norm: str = "l1"
) -> int:
    """Compare with the projection, and sum up; returns how many samples could be summed up."""
    weights = torch.linspace(0.5, 1.5, yhat.shape[-1]).tolist() if norm == "l2" else None
    p = gdpnet.project(rules, yhat, x, norm=norm, weights=weights)
    violation = rules.violation(yhat, x)
    told = rules.explain(yhat, x, weights, norm=norm)
    assert isinstance(told, list)
    summed = 0
    for i, one in enumerate(told):
        assert one.status == gdpnet.Status(int(p.status[i])).name
        assert list(one.y) == p.y[i].tolist()
        assert one.distance == p.distance[i].item()
        moves = {move.output: move.after - move.before for move in one.moved}
        for name, before, after in zip(rules.output_names, yhat[i], p.y[i], strict=True):
            assert moves.get(name, 0.0) == (after - before).item()
        chosen = [r for r in range(len(rules.names)) if rules_active(rules, x, i)[r]]
        assert [rule.name for rule in one.rules] == [rules.names[r] for r in chosen]
        for rule, r in zip(one.rules, chosen, strict=True):
            assert rule.violation == violation[i, r].item()
            assert (rule.disjunct is None) == (p.disjunct[i, r] < 0)
            for row in rule.tight:
                assert any(data.name == row.name for data in rules.data.rows)
        if one.status == "PROJECTED" and p.info.solver == "exact" and not rules.auxiliary_names:
            shares = sum(row.share for row in all_rows(one))
            assert shares == pytest.approx(one.distance, rel=1e-7, abs=1e-7)
            summed += 1
        assert repr(one).startswith(one.status)
        assert one._repr_html_().count("<tr>") >= len(one.rules)
    return summed


def rules_active(rules: gdpnet.RuleModel, x: torch.Tensor | None, i: int) -> list[bool]:
    given = torch.zeros(0) if x is None else x[i]
    return rules.active(given).tolist()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_bank(problem: Problem, norm: str) -> None:
    check(problem.rules(), problem.x, problem.yhat, norm)


@pytest.mark.parametrize("norm", NORMS)
def test_shares_of_the_rows_sum_to_the_distance_on_cooling(norm: str) -> None:
    x, _ = cooling.sample(60, "ood", seed=3)
    yhat = torch.rand(60, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    assert check(cooling.build(), x, yhat * 1.4 - 0.2, norm) > 40


@pytest.mark.parametrize("norm", NORMS)
def test_shares_sum_on_random_rules(norm: str) -> None:
    summed = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        rules = random_rules(rng)
        yhat = torch.from_numpy(random_predictions(rng, len(rules.output_names)))
        summed += check(rules, None, yhat, norm)
    assert summed > 60


@pytest.mark.parametrize("norm", NORMS)
def test_rate_is_what_a_relaxed_row_saves(norm: str) -> None:
    """Finite differences: move the right side of the tight row, project again."""

    def built(cap: float, low: float) -> gdpnet.RuleModel:
        m = pyo.ConcreteModel()
        m.y = pyo.Var(range(2), bounds=(0, 10))
        m.cap = pyo.Constraint(expr=2 * m.y[0] + 5 * m.y[1] <= cap)
        m.rule = Disjunction(expr=[[m.y[0] >= low], [m.y[1] >= 9]])
        return gdpnet.RuleModel(m, outputs=[m.y])

    yhat, weights = torch.tensor([1.0, 3.0], dtype=torch.float64), [1.0, 4.0]

    def distance(cap: float, low: float) -> float:
        p = gdpnet.project(built(cap, low), yhat, weights=weights, norm=norm)
        return p.distance.item()

    told = built(12, 3).explain(yhat, weights=weights, norm=norm)
    assert isinstance(told, Explanation)
    (row,), (cap,) = told.rules[0].tight, told.always
    wanted = 2 + 4 * 1.8 if norm == "l1" else math.hypot(2, 4 * 1.8)
    assert told.distance == pytest.approx(wanted)
    h = 1e-5
    assert row.rate == pytest.approx((distance(12, 3 + h) - distance(12, 3 - h)) / (2 * h))
    assert cap.rate == pytest.approx((distance(12 - h, 3) - distance(12 + h, 3)) / (2 * h))
    assert row.share + cap.share == pytest.approx(told.distance)


def hot() -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.Ta = pyo.Param(mutable=True, initialize=20.0)
    m.f, m.c = pyo.Var(bounds=(0, 1)), pyo.Var(bounds=(0, 1))
    m.hot = Disjunction(expr=[[m.c >= 0.45], [m.f >= 0.75]])
    m.calm = Disjunction(expr=[[m.f <= 0.9], [m.c <= 0.1]])
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.active_when[m.hot] = m.Ta >= 28
    return gdpnet.RuleModel(m, outputs=[m.f, m.c], inputs=[m.Ta])


def test_sentences() -> None:
    told = hot().explain([-0.25, 0.25], [30.0])
    assert repr(told).splitlines() == [
        "PROJECTED: moved to the nearest output that satisfies all active rules, by 0.45",
        "  outputs moved",
        "    f: -0.25 -> 0 (+0.25)",
        "    c: 0.25 -> 0.45 (+0.2)",
        "  rules that apply",
        "    hot: broken by 0.2 at the prediction; the result takes hot_disjuncts[0]; "
        "c >= 0.45 is just met; each unit of it costs 1, 0.2 of the distance",
        "    calm: holds at the prediction",
        "  always",
        "    bounds of f: f >= 0 is just met; each unit of it costs 1, 0.25 of the distance",
    ]
    assert isinstance(told, Explanation)
    assert told.broken == ("hot",)
    html = told._repr_html_()
    assert "c &gt;= 0.45 is just met" in html
    assert "<b>PROJECTED</b>" in html


def test_what_rounding_leaves_of_a_zero_is_told_as_zero() -> None:
    assert str(Move("f", 5.6e-17, 0.3)) == "f: 0 -> 0.3 (+0.3)"
    assert str(TightRow("r", "f <= 1", 1.0, 5.6e-17)).endswith("costs 1, 0 of the distance")
    assert str(TightRow("r", "f <= 1", -1e-17, 0.2)) == "f <= 1 is just met, at no cost"
    assert str(TightRow("r", "f <= 1", 1e-6, 0.2)).endswith("costs 1e-06, 2e-07 of the distance")


def test_nothing_to_move() -> None:
    told = hot().explain([0.5, 0.25], [20.0])
    assert isinstance(told, Explanation)
    assert (told.status, told.distance, told.moved, told.always) == ("SATISFIED", 0.0, (), ())
    assert [rule.name for rule in told.rules] == ["calm"]
    assert told.broken == ()


def test_rounding_of_the_prediction_is_not_broken() -> None:
    told = hot().explain(torch.tensor([0.5, 0.45 - 1e-7]), torch.tensor([30.0]))
    assert isinstance(told, Explanation)
    assert told.status == "SATISFIED"
    assert told.broken == ()


def test_contradiction_is_named() -> None:
    problem = BY_NAME["conflict_at_some_inputs"]
    told = problem.rules().explain(problem.yhat, problem.x)
    assert isinstance(told, list)
    assert told[0].conflict == ()
    assert set(told[1].conflict) == {"gap", "never"}
    assert told[1].distance == math.inf
    assert told[1].moved == ()
    assert "gap, never contradict each other; the prediction is unchanged" in repr(told[1])


def test_whole_numbers_are_named() -> None:
    m = pyo.ConcreteModel()
    m.n = pyo.Var(domain=pyo.Integers, bounds=(0, 9))
    told = gdpnet.RuleModel(m, outputs=[m.n]).explain([3.3])
    assert isinstance(told, Explanation)
    (row,) = told.always
    assert (row.name, row.text) == ("n is whole", "n == 3")
    assert row.share == pytest.approx(0.3)


def test_single_and_several() -> None:
    rules = hot()
    one = rules.explain([0.2, 0.2], [30.0])
    several = rules.explain([[0.2, 0.2], [0.9, 0.9]], [30.0])
    assert isinstance(one, Explanation)
    assert isinstance(several, list)
    assert several[0] == one
    assert len(several) == 2
    assert rules.explain(torch.zeros(0, 2), torch.zeros(0, 1)) == []


def test_immutable_and_independent_of_tensors() -> None:
    yhat = torch.tensor([0.2, 0.2], requires_grad=True)
    told = hot().explain(yhat, torch.tensor([30.0]))
    assert isinstance(told, Explanation)
    with pytest.raises(dataclasses.FrozenInstanceError):
        told.distance = 0.0  # type: ignore[misc]
    assert type(told.distance) is float
    assert all(type(value) is float for value in told.y)
    assert hash(told) == hash(hot().explain(yhat, torch.tensor([30.0])))


def test_bad_arguments() -> None:
    with pytest.raises(gdpnet.errors.InputError, match="yhat: expected 2 columns"):
        hot().explain([0.2, 0.2, 0.2], [30.0])
    with pytest.raises(gdpnet.errors.InputError, match="x: these rules have inputs"):
        hot().explain([0.2, 0.2])
    with pytest.raises(gdpnet.errors.InputError, match="weights: expected 2 positive numbers"):
        hot().explain([0.2, 0.2], [30.0], weights=[1.0])


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("problem", CONVEX, ids=lambda p: p.name)
def test_convex_rows_explain_the_distance(problem: Problem, norm: str) -> None:
    """Tangents that are just met sum to the distance; where none balance it, none is named."""
    rules = problem.rules()
    if rules.auxiliary_names:
        pytest.skip("parts of rows with auxiliaries are not known")
    for told in rules.explain(problem.yhat, problem.x, norm=norm):
        tight = [row for rule in told.rules for row in rule.tight] + list(told.always)
        if told.status != "PROJECTED":
            continue
        if not tight:
            assert problem.name in ("single_point", "flat", "ice_cream")  # thin, or at an apex
            continue
        assert sum(row.share for row in tight) == pytest.approx(told.distance, abs=2e-6)
