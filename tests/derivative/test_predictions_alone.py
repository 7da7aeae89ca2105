"""The gradient of the predictions alone is that of everything, whoever is asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gdpnet
from tests.derivative.random_models import random_model


@pytest.mark.parametrize(
    "keywords",
    [
        {"gradient": "vertex"},
        {"gradient": "vertex", "norm": "l2"},
        {"gradient": "vertex", "relaxation": "cnf"},
        {"gradient": "auto"},
        {"gradient": "straight_through"},
        {"gradient": "mixed:0.25"},
    ],
    ids=lambda keywords: " ".join(keywords.values()),
)
def test_it_is_that_of_everything(keywords: dict[str, Any]) -> None:
    moved = 0
    for seed in range(20):
        model = random_model(seed)
        yhat = model.yhat.clone().requires_grad_()
        p = gdpnet.project(model.rules, yhat, model.x, **keywords)
        assert p.derivative is not None
        gradient = np.random.default_rng(seed).normal(size=yhat.shape)
        given = gradient.copy()
        alone = p.derivative.vjp_yhat(gradient)
        np.testing.assert_array_equal(alone, p.derivative.vjp(gradient).yhat)
        np.testing.assert_array_equal(gradient, given)
        assert not np.shares_memory(alone, gradient)
        moved += int((alone != gradient).sum())
    assert moved or keywords["gradient"] == "straight_through"
