"""The judge of relaxed points against what `RuleModel` says of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gdpnet
from gdpnet.ir.instance import Instance
from gdpnet.solve.extended.judge import Judge
from gdpnet.testing import PROBLEMS, Problem, random_predictions, random_rules

TOLERANCE = 1e-6


def agrees(rules: gdpnet.RuleModel, x: np.ndarray, y: np.ndarray) -> int:
    """Compare on a batch, every second sample of it; returns how many satisfy everything."""
    instance = Instance.of(rules, np.ascontiguousarray(x))
    active = rules.active(torch.as_tensor(x) if rules.input_names else None).numpy()
    active = np.broadcast_to(active, (len(y), len(rules.names)))
    samples = np.arange(0, len(y), 2)
    assignment = np.full((len(y), len(rules.data.booleans)), -7, dtype=np.int8)
    violation = np.full((len(y), len(rules.names)), -7.0)
    holds = Judge(rules)(
        samples, instance, np.ascontiguousarray(active), y, TOLERANCE, assignment, violation
    )
    inputs = torch.as_tensor(x) if rules.input_names else None
    points = torch.as_tensor(y)
    expected = rules.violation(points, inputs).numpy()
    satisfied = rules.satisfied(points, inputs, TOLERANCE).numpy()
    np.testing.assert_array_equal(holds, satisfied[samples])
    np.testing.assert_allclose(violation[samples], expected[samples], rtol=1e-12, atol=1e-14)
    for r, rule in enumerate(rules.data.rules):
        literals = [k - 1 for k in rules.data.clauses[rule.clause].literals]
        some = assignment[samples][:, literals].any(1)
        near = expected[samples, r] <= TOLERANCE
        np.testing.assert_array_equal(some | ~active[samples, r], near)
    assert (violation[1::2] == -7.0).all()  # others are left alone
    assert (assignment[1::2] == -7).all()
    return int(holds.sum())


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_bank(problem: Problem) -> None:
    rules = problem.rules()
    if not rules.is_plain:
        pytest.skip("judged by a search")
    rng = np.random.default_rng(0)
    for sample in problem.samples:
        x = np.zeros((0,)) if sample.x is None else np.asarray(sample.x, dtype=float)
        spread = np.asarray(sample.yhat, dtype=float) + rng.normal(0, 1, (8, len(sample.yhat)))
        near = gdpnet.project(rules, spread, np.tile(x, (8, 1)) if len(x) else None).y.numpy()
        y = np.ascontiguousarray(np.vstack([spread, near]))
        agrees(rules, np.tile(x, (len(y), 1)), y)


def test_random_rules() -> None:
    satisfied = plain = 0
    for seed in range(300):
        rng = np.random.default_rng([seed, 41])
        rules = random_rules(rng)
        if not rules.is_plain:
            continue
        plain += 1
        yhat = random_predictions(rng, rules.data.outputs)
        y = np.vstack([yhat, gdpnet.project(rules, yhat).y.numpy()])
        satisfied += agrees(rules, np.zeros((len(y), 0)), np.ascontiguousarray(y))
    assert plain > 100
    assert satisfied > 100
