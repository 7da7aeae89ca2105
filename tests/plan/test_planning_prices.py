"""The planner knows prices: a rule may be bought off, and what that costs counts."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

import gdpnet
from gdpnet.plan._sampled import Sampled
from gdpnet.relaxation.layouts import layouts_of
from tests.solve.priced_oracle import least_l1, random_model


@pytest.mark.parametrize("seed", range(12))
def test_what_clusters_cost_and_how_large_they_are(seed: int) -> None:
    model, yhat = random_model(seed)
    if model.implied or model.weights is not None:
        pytest.skip("rules of which some say nothing without the others")
    rules = model.rules_of()
    sampled = Sampled(rules, np.zeros((len(yhat), 0)), yhat)
    layouts, every = layouts_of(rules), np.ones(len(rules.data.clauses), dtype=bool)
    for size in (1, 2):
        for cluster in itertools.combinations(range(len(rules.names)), size):
            alone = replace(model, rules=[model.rules[k] for k in cluster])
            wanted = [least_l1(alone, one) for one in yhat]
            assert sampled.distance(cluster) == pytest.approx(wanted, abs=1e-6)
            parts = layouts.listed[layouts.number([cluster], every, True)]
            count = sum(len(b.products) for part in parts for b in part.blocks if b.rules)
            assert sampled.products(cluster, 500).tolist() == [count]


def test_a_plan_is_made_and_helps() -> None:
    model, yhat = random_model(3)
    rules, given = model.rules_of(), torch.from_numpy(yhat)
    plan = gdpnet.plan.choose(rules, yhat=given, budget=64)
    cnf = gdpnet.project(rules, given, relaxation="cnf").value
    planned = gdpnet.project(rules, given, relaxation=plan).value
    assert (planned >= cnf - 1e-7).all()
