"""Tensors on another device: what is solved on the CPU gets there before it becomes float64."""

from __future__ import annotations

from collections.abc import Iterator

import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet.ir import batch
from gdpnet.nn import RulePenalty, RuleSatisfaction, with_rules
from tests.nn._device import ELSEWHERE, Elsewhere, Moves


@pytest.fixture
def without_float64(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(batch, "_WITHOUT_FLOAT64", (ELSEWHERE.type,))
    with Moves():
        yield


@pytest.fixture(scope="module")
def rules() -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.t = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var([1, 2], bounds=(0, 10))
    m.least = pyo.Constraint(expr=m.y[1] + m.t * m.y[2] >= 3 * m.t)
    m.gap = Disjunction(expr=[[m.y[2] <= 3], [m.y[2] >= 7 + m.t]])
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t])


def sampled(shape: tuple[int, ...] = (6,)) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    yhat = 12 * torch.rand(*shape, 2, generator=generator) - 1
    return yhat, torch.rand(*shape, 1, generator=generator) + 0.5


def back(value: torch.Tensor | None) -> torch.Tensor:
    assert isinstance(value, Elsewhere)
    return value.inner


def test_the_device_refuses_float64(without_float64) -> None:
    there = torch.ones(2).to(ELSEWHERE)
    assert not there.is_cpu
    with pytest.raises(TypeError, match="no float64"):
        there.double()
    with pytest.raises(RuntimeError, match="two devices"):
        there + torch.ones(2)


@pytest.mark.parametrize("gradient", ["auto", "qp", "straight_through"])
@pytest.mark.parametrize("shape", [(6,), (2, 3)])
def test_outputs_and_gradients_are_those_of_the_cpu(
    rules, without_float64, gradient, shape
) -> None:
    layer = gdpnet.ProjectionLayer(rules, gradient=gradient)
    found = {}
    for where in ("cpu", ELSEWHERE):
        yhat, x = (t.to(where).requires_grad_() for t in sampled(shape))
        y, info = layer(yhat, x, return_info=True)
        assert y.device == info.status.device == info.bound.device == torch.device(where)
        (y * y).sum().backward()
        found[where] = [y.detach(), yhat.grad, x.grad, info.distance, info.disjunct, info.bound]
    for here, there in zip(found["cpu"], found[ELSEWHERE], strict=True):
        assert torch.equal(back(there).to(here.dtype), here.to(there.dtype).to(here.dtype))


def test_inputs_are_moved_to_the_predictions(rules, without_float64) -> None:
    layer = gdpnet.ProjectionLayer(rules)
    yhat, x = sampled()
    expected = layer(yhat, x)
    assert torch.equal(back(layer(yhat.to(ELSEWHERE), x)), expected)
    assert torch.equal(back(layer(yhat.to(ELSEWHERE), x[0])), layer(yhat, x[0]))
    assert torch.equal(layer(yhat, x.to(ELSEWHERE)), expected)
    inputs = x.to(ELSEWHERE).requires_grad_()
    layer(yhat, inputs).sum().backward()
    wanted = x.clone().requires_grad_()
    layer(yhat, wanted).sum().backward()
    assert torch.equal(back(inputs.grad), wanted.grad)


def test_derivatives_of_torch_func_and_second_ones(rules, without_float64) -> None:
    layer = gdpnet.ProjectionLayer(rules, gradient="vertex")
    found = {}
    for where in ("cpu", ELSEWHERE):
        yhat, x = (t.to(where) for t in sampled())
        leaf = yhat.clone().requires_grad_()
        (first,) = torch.autograd.grad(layer(leaf, x).square().sum(), leaf, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), leaf)
        found[where] = [first.detach(), second]
    for here, there in zip(found["cpu"], found[ELSEWHERE], strict=True):
        torch.testing.assert_close(back(there), here)


def test_a_program_is_solved_for_another_device(without_float64) -> None:
    m = pyo.ConcreteModel()
    m.p = pyo.Param([1, 2], mutable=True, initialize=1.0)
    m.y = pyo.Var([1, 2], bounds=(0, 3))
    m.total = pyo.Constraint(expr=m.y[1] + m.y[2] == 2)
    m.cost = pyo.Objective(expr=pyo.quicksum((m.y[i] - m.p[i]) ** 2 for i in (1, 2)))
    layer = gdpnet.nn.ProgramLayer(m, inputs=[m.p], outputs=[m.y])
    found = {}
    for where in ("cpu", ELSEWHERE):
        given = sampled()[0].to(where).requires_grad_()
        y, info = layer(given, return_info=True)
        assert y.device == info.status.device == torch.device(where)
        y.square().sum().backward()
        found[where] = [y.detach(), given.grad]
    for here, there in zip(found["cpu"], found[ELSEWHERE], strict=True):
        torch.testing.assert_close(back(there), here)


def test_rules_are_measured(rules, without_float64) -> None:
    yhat, x = sampled()
    there = yhat.to(ELSEWHERE)
    for inputs in (x, x.to(ELSEWHERE)):
        assert torch.equal(back(rules.satisfied(there, inputs)), rules.satisfied(yhat, x))
        assert torch.equal(back(rules.violation(there, inputs)), rules.violation(yhat, x))
        assert torch.equal(
            back(rules.global_violation(there, inputs)), rules.global_violation(yhat, x)
        )
    assert torch.equal(back(rules.active(x.to(ELSEWHERE))), rules.active(x))
    graph = gdpnet.plan.interaction_graph(rules, there, x.to(ELSEWHERE))
    assert graph.graph["samples"] == 6


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_penalty(rules, without_float64, reduction) -> None:
    penalty = RulePenalty(rules, reduction=reduction)
    yhat, x = sampled()
    there = yhat.to(ELSEWHERE).requires_grad_()
    value = penalty(there, x.to(ELSEWHERE))
    assert torch.equal(back(value.detach()), penalty(yhat, x))
    value.sum().backward()
    here = yhat.clone().requires_grad_()
    penalty(here, x).sum().backward()
    assert torch.equal(back(there.grad), here.grad)


def test_metric(rules, without_float64) -> None:
    metric = RuleSatisfaction(rules)
    yhat, x = sampled()
    metric.update(yhat.to(ELSEWHERE), x.to(ELSEWHERE))
    assert metric.compute()["csat"].item() == rules.satisfied(yhat, x).float().mean().item()


def test_a_network_with_scales(rules, without_float64) -> None:
    keywords = {"output_scale": (5.0, 3.0), "input_scale": (1.0, 0.25)}
    model = with_rules(torch.nn.Identity(), rules, lambda x: x[..., :1], **keywords)
    features = torch.randn(6, 2, generator=torch.Generator().manual_seed(1))
    expected, physical = model(features), model.physical(features)
    model.to(ELSEWHERE)
    there = features.to(ELSEWHERE).requires_grad_()
    y = model(there)
    assert torch.equal(back(y.detach()), expected)
    assert torch.equal(back(model.physical(there).detach()), physical)
    y.sum().backward()
    here = features.clone().requires_grad_()
    model(here).sum().backward()
    assert torch.equal(back(there.grad), here.grad)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("of_x", ["cpu", "cuda"])
def test_cuda(rules, of_x: str) -> None:
    yhat, x = sampled()
    there = yhat.cuda().requires_grad_()
    y, info = gdpnet.ProjectionLayer(rules)(there, x.to(of_x), return_info=True)
    assert y.is_cuda
    assert info.bound.dtype == torch.float64
    torch.testing.assert_close(y.cpu(), gdpnet.ProjectionLayer(rules)(yhat, x))
    y.sum().backward()
    assert there.grad.is_cuda
    assert torch.equal(rules.satisfied(there, x.to(of_x)).cpu(), rules.satisfied(yhat, x))


# ---- CUDA: where there is none, what is asked of torch is written down instead -----------------


class OnCuda:
    """What `to_cpu` and `to_device` ask of a tensor, with the calls they make, in order."""

    def __init__(self, calls: list[tuple]) -> None:
        self.calls = calls
        self.shape, self.dtype = torch.Size([2, 3]), torch.float32
        self.device, self.is_cuda = torch.device("cuda", 1), True

    def cpu(self) -> None:
        raise AssertionError("a copy into pageable memory, which waits for the device")

    def copy_(self, value: OnCuda, **how: bool) -> OnCuda:
        self.calls.append(("copy", value.device, how))
        return self

    def synchronize(self) -> None:
        self.calls.append(("wait",))

    def pin_memory(self) -> OnCuda:
        self.calls.append(("pin",))
        return self

    def to(self, device: torch.device, **how: bool) -> OnCuda:
        self.calls.append(("to", device, how))
        return self


def test_copies_from_cuda_are_pinned_and_waited_for_once(monkeypatch) -> None:
    calls: list[tuple] = []
    value, pinned = OnCuda(calls), OnCuda(calls)

    def empty(shape: torch.Size, **how: object) -> OnCuda:
        calls.append(("empty", tuple(shape), how))
        return pinned

    def stream(device: torch.device) -> OnCuda:
        calls.append(("stream", device))
        return value

    monkeypatch.setattr(torch, "empty", empty)
    monkeypatch.setattr(torch.cuda, "current_stream", stream)
    assert batch.to_cpu(value) is pinned
    monkeypatch.undo()
    assert calls == [
        ("empty", (2, 3), {"dtype": torch.float32, "pin_memory": True}),
        ("copy", value.device, {"non_blocking": True}),
        ("stream", value.device),  # of the tensor, not of the device that is current
        ("wait",),
    ]


def test_copies_to_cuda_are_pinned_and_not_waited_for() -> None:
    calls: list[tuple] = []
    device = torch.device("cuda", 1)
    batch.to_device(OnCuda(calls), device)
    assert calls == [("pin",), ("to", device, {"non_blocking": True})]


def test_a_program_is_handed_to_cuda_the_same_way(monkeypatch) -> None:
    asked = []

    def to_cpu(value: torch.Tensor) -> torch.Tensor:
        asked.append(value.shape)
        return value

    monkeypatch.setattr("gdpnet.nn.program.to_cpu", to_cpu)
    m = pyo.ConcreteModel()
    m.p = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var(bounds=(0, 3))
    m.cost = pyo.Objective(expr=(m.y - m.p) ** 2)
    layer = gdpnet.nn.ProgramLayer(m, inputs=[m.p], outputs=[m.y])
    assert layer(torch.tensor([[2.0], [5.0]])).shape == (2, 1)
    assert asked == [(2, 1)]
