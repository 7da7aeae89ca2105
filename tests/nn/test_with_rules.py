"""Rules added to a network that works in standardised units."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import gdpnet
from gdpnet.study._models import load_model

MODELS = Path(__file__).parents[2] / "models"


@pytest.fixture(scope="module")
def cooling():
    model = load_model(MODELS / "cooling")
    rules = model.build()
    x, y = model.sample(500, split="ood", seed=4)
    x, y = x.double(), y.double()
    noise = torch.rand(500, 2, dtype=torch.float64)
    features = torch.cat([noise[:, :1], x.flip(1), noise[:, 1:]], 1)
    return rules, x, y, features, list(range(7, 0, -1))


def standardised(values: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
    mean, scale = values.mean(0), values.std(0).clamp(min=1e-6)
    return (values - mean) / scale, (mean, scale)


def backbone() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(9, 8), nn.ReLU(), nn.Linear(8, 3))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_standardised_inputs_and_targets(cooling, dtype) -> None:
    rules, x, y, features, columns = cooling
    seen, input_scale = standardised(features)
    target, output_scale = standardised(y)
    network = backbone().to(dtype)
    ruled = gdpnet.nn.with_rules(
        network, rules, rule_inputs=columns, output_scale=output_scale, input_scale=input_scale
    )
    found = ruled(seen.to(dtype))
    assert found.dtype == dtype
    physical = found.double() * output_scale[1] + output_scale[0]
    tol = 1e-9 if dtype == torch.float64 else 1e-5
    assert rules.satisfied(physical, x, tol).all()
    torch.testing.assert_close(ruled.physical(seen.to(dtype)).double(), physical, atol=tol, rtol=0)
    loss = (found - target.to(dtype)).square().mean()
    loss.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())
    # Wired without the scales the rules are switched by standardised numbers, wrongly.
    naive = gdpnet.nn.with_rules(network, rules, rule_inputs=columns)
    physical = naive(seen.to(dtype)).double() * output_scale[1] + output_scale[0]
    assert not rules.satisfied(physical, x, 1e-3).all()


def test_functions_instead_of_numbers(cooling) -> None:
    rules, x, y, features, columns = cooling
    _, (mean, scale) = standardised(y)
    ruled = gdpnet.nn.with_rules(
        backbone().double(),
        rules,
        rule_inputs=lambda seen: seen[..., columns],
        output_scale=(lambda z: z * scale + mean, lambda z: (z - mean) / scale),
        gradient="straight_through",
    )
    assert rules.satisfied(ruled.physical(features), x).all()
    torch.testing.assert_close(ruled(features) * scale + mean, ruled.physical(features))


def test_scales_and_fingerprint_are_part_of_a_checkpoint(cooling) -> None:
    rules, _, y, _, columns = cooling
    _, output_scale = standardised(y)

    def made(scale):
        return gdpnet.nn.with_rules(backbone(), rules, rule_inputs=columns, output_scale=scale)

    first, second = made(output_scale), made((torch.zeros(3), 1.0 + torch.arange(3.0)))
    second.load_state_dict(first.state_dict())
    x = torch.rand(20, 9)
    assert torch.equal(first(x), second(x))


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({}, "9 columns"),
        ({"rule_inputs": [1, 2]}, "expected 7 columns"),
        ({"rule_inputs": range(7), "output_scale": (0.0, 0.0)}, "positive"),
        ({"rule_inputs": range(7), "gradient": "none"}, "gradient"),
    ],
)
def test_bad_wiring_is_told(cooling, keywords, message) -> None:
    rules, _, _, features, _ = cooling
    with pytest.raises(gdpnet.errors.InputError, match=message):
        gdpnet.nn.with_rules(backbone().double(), rules, **keywords)(features)


def test_the_backbone_is_a_module(cooling) -> None:
    with pytest.raises(gdpnet.errors.InputError, match=r"torch\.nn\.Module"):
        gdpnet.nn.with_rules(lambda x: x, cooling[0])
