"""ProjectionLayer in the surroundings that networks live in."""

from __future__ import annotations

import copy
import io
import pickle
import threading
import warnings
from pathlib import Path

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction
from safetensors.torch import load_file, save_file, save_model
from safetensors.torch import load_model as load_model_file
from torch import nn
from torch.utils.checkpoint import checkpoint

import gdpnet
from gdpnet.study._models import load_model
from tests.nn import _processes

MODELS = Path(__file__).parents[2] / "models"


@pytest.fixture(scope="module")
def cooling() -> gdpnet.RuleModel:
    return load_model(MODELS / "cooling").build()


@pytest.fixture(scope="module")
def batch() -> tuple[torch.Tensor, torch.Tensor]:
    x, _ = load_model(MODELS / "cooling").sample(64, split="ood", seed=1)
    generator = torch.Generator().manual_seed(0)
    return torch.rand(64, 3, generator=generator, dtype=torch.float64), x.double()


def gap() -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.gap = Disjunction(expr=[[m.y <= 3], [m.y >= 7]])
    return gdpnet.RuleModel(m, outputs=[m.y])


def network(rules: gdpnet.RuleModel, gradient: str = "auto") -> nn.Module:
    torch.manual_seed(0)
    return _processes.Ruled(rules, gradient)


def gradients(model: nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
    model.zero_grad()
    model(x).square().sum().backward()
    return [p.grad.clone() for p in model.parameters()]


# ---- shapes, types, keywords -------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(64,), (8, 8), (2, 4, 8), (1, 64)])
def test_any_leading_shape(cooling, batch, shape) -> None:
    yhat, x = batch
    layer = gdpnet.ProjectionLayer(cooling)
    expected = layer(yhat, x)
    assert torch.equal(
        layer(yhat.reshape(*shape, 3), x.reshape(*shape, -1)).reshape(-1, 3), expected
    )


def test_a_single_sample_and_an_empty_batch(cooling, batch) -> None:
    yhat, x = batch
    layer = gdpnet.ProjectionLayer(cooling)
    assert torch.equal(layer(yhat[0], x[0]), layer(yhat, x)[0])
    empty = layer(yhat[:0].requires_grad_(), x[:0])
    assert empty.shape == (0, 3)
    empty.sum().backward()


@pytest.mark.parametrize(
    ("dtype", "tol"),
    [(torch.float16, 4e-3), (torch.bfloat16, 3e-2), (torch.float32, 1e-6), (torch.float64, 1e-9)],
)
def test_type_in_is_type_out_for_values_and_gradients(cooling, batch, dtype, tol) -> None:
    yhat, x = (t.to(dtype, copy=True) for t in batch)
    yhat.requires_grad_()
    y = gdpnet.ProjectionLayer(cooling)(yhat, x)
    y.sum().backward()
    assert y.dtype == yhat.grad.dtype == dtype
    assert cooling.satisfied(y, x, tol).all()


def test_inputs_of_another_type_than_predictions(cooling, batch) -> None:
    yhat, x = batch
    y = gdpnet.ProjectionLayer(cooling)(yhat.float(), x)
    assert y.dtype == torch.float32


def test_no_grad_prepares_nothing(cooling, batch) -> None:
    yhat, x = batch
    yhat = yhat.clone().requires_grad_()
    layer = gdpnet.ProjectionLayer(cooling, gradient="vertex")
    with torch.no_grad():
        projection = layer.project(yhat, x)
    assert not projection.y.requires_grad
    assert not projection.answer.linearisation.solved.detailed
    assert layer.project(yhat, x).answer.linearisation.solved.detailed
    assert not gdpnet.project(cooling, yhat, x).y.requires_grad


def test_info_holds_status_and_timing(cooling, batch) -> None:
    yhat, x = batch
    y, info = gdpnet.ProjectionLayer(cooling)(yhat.clone().requires_grad_(), x, return_info=True)
    assert info.status.shape == info.distance.shape == (64,)
    assert info.disjunct.shape == (64, len(cooling.names))
    assert set(info.seconds) == {"assemble", "solve"}
    y.sum().backward()
    assert info.seconds["backward"] > 0


def test_repr_tells_rules_relaxation_solver_and_gradient(cooling) -> None:
    text = repr(gdpnet.ProjectionLayer(cooling, gradient="vertex", on_conflict="nearest"))
    for part in ("7 rules", "d=3", "'dnf'", "Exact()", "Vertex()", "on_conflict='nearest'"):
        assert part in text


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"gradient": "sideways"}, "gradient: expected one of 'auto', 'qp', 'vertex'"),
        ({"gradient": 3}, "gradient: expected one of"),
        ({"relaxation": "xnf"}, "relaxation"),
        ({"forward": "qp", "gradient": "vertex"}, "forward: 'qp'"),
    ],
)
def test_bad_keywords_are_refused_when_the_layer_is_made(cooling, keywords, message) -> None:
    with pytest.raises(gdpnet.errors.InputError, match=message):
        gdpnet.ProjectionLayer(cooling, **keywords)


@pytest.mark.parametrize("make", [lambda: gdpnet.QP(eps=0), lambda: gdpnet.QP(eps=float("nan")),
                                  lambda: gdpnet.QP(cap=0), lambda: gdpnet.Mixed("qp", alpha=2),
                                  lambda: gdpnet.Mixed("other")])  # fmt: skip
def test_bad_sensitivities_are_refused(make) -> None:
    with pytest.raises(gdpnet.errors.InputError):
        make()


# ---- bad samples -------------------------------------------------------------------------------


def test_a_bad_sample_does_not_touch_the_others(cooling, batch) -> None:
    yhat, x = (t.clone() for t in batch)
    good, wanted = gdpnet.ProjectionLayer(cooling, gradient="vertex"), yhat.clone().requires_grad_()
    good(wanted, x).square().sum().backward()
    bad = yhat.clone()
    bad[5, 1], x[9, 0] = float("nan"), float("inf")
    bad.requires_grad_()
    layer = gdpnet.ProjectionLayer(cooling, gradient="vertex", on_invalid="mark")
    y, info = layer(bad, x.requires_grad_(), return_info=True)
    assert info.status[[5, 9]].tolist() == [gdpnet.Status.ERROR] * 2
    y.square().sum().backward()
    rest = [k for k in range(64) if k not in (5, 9)]
    assert torch.equal(bad.grad[rest], wanted.grad[rest])
    assert not bad.grad[[5, 9]].any()
    assert bad.grad.isfinite().all()
    assert x.grad.isfinite().all()


def test_conflicts_pass_with_their_gradient() -> None:
    m = pyo.ConcreteModel()
    m.p = pyo.Param(mutable=True, initialize=0.0)
    m.y = pyo.Var(bounds=(0, 10))
    m.least = Disjunction(expr=[[m.y >= 5 + m.p]])
    m.most = Disjunction(expr=[[m.y <= 5]])
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    yhat = torch.tensor([[2.0], [8.0]], requires_grad=True)
    x = torch.tensor([[0.0], [1.0]])
    for choice, found in (("pass", 8.0), ("nearest", None)):
        layer = gdpnet.ProjectionLayer(rules, gradient="straight_through", on_conflict=choice)
        y, info = layer(yhat, x, return_info=True)
        assert info.status.tolist() == [gdpnet.Status.PROJECTED, gdpnet.Status.CONFLICT]
        if found is not None:
            assert y[1].item() == found
        yhat.grad = None
        y.sum().backward()
        assert yhat.grad[1].item() == 1.0
    with pytest.raises(gdpnet.errors.ConflictError, match="row 1"):
        gdpnet.ProjectionLayer(rules, on_conflict="raise")(yhat, x)


def test_a_batch_whose_gradient_vanishes_is_told_of() -> None:
    yhat = torch.tensor([[4.0], [6.5]], requires_grad=True)
    layer = gdpnet.ProjectionLayer(gap(), gradient="vertex")
    with pytest.warns(gdpnet.errors.ZeroGradientWarning, match="straight_through"):
        layer(yhat, None).sum().backward()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer(torch.tensor([[4.0], [8.0]], requires_grad=True)).sum().backward()
        (0 * layer(yhat)).sum().backward()
        # Nothing holds what could not be used.
        marked = gdpnet.ProjectionLayer(gap(), gradient="vertex", on_invalid="mark")
        marked(torch.tensor([[float("nan")]], requires_grad=True)).nansum().backward()


@pytest.mark.parametrize(
    ("gradient", "advised"),
    [
        ("vertex", True),
        ("qp", True),
        (gdpnet.Mixed("qp", "vertex"), True),
        ("auto", False),
        (gdpnet.StraightThrough(inward=True), False),
        (gdpnet.Mixed(gdpnet.Mixed("vertex", gdpnet.StraightThrough(inward=True)), "qp"), False),
    ],
)
def test_the_advice_is_not_the_gradient_in_use(gradient, advised) -> None:
    layer = gdpnet.ProjectionLayer(gap(), gradient=gradient)
    # The rule holds it at 3, and the loss drives the prediction higher.
    yhat = torch.tensor([[4.0]], requires_grad=True)
    with pytest.warns(gdpnet.errors.ZeroGradientWarning) as told:
        (-layer(yhat)).sum().backward()
    message = str(told[0].message)
    assert ("gradient='auto'" in message) == advised
    assert "gradient='straight_through'" in message
    assert ("further away" in message) != advised
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other = "auto" if advised else "straight_through"
        sign = 1 if advised else -1
        (sign * gdpnet.ProjectionLayer(gap(), gradient=other)(yhat)).sum().backward()


# ---- writing into the outputs ------------------------------------------------------------------

IN_PLACE = {
    "mul_": (lambda y: y.mul_(2.0), lambda y: y * 2.0),
    "clamp_": (lambda y: y.clamp_(0.2, 0.6), lambda y: y.clamp(0.2, 0.6)),
    "relu": (nn.ReLU(inplace=True), nn.ReLU()),
    "+=": (lambda y: y.__iadd__(torch.ones_like(y)), lambda y: y + 1.0),
    "column": (lambda y: y.index_fill_(-1, torch.tensor([1]), 0.5),
               lambda y: y.index_fill(-1, torch.tensor([1]), 0.5)),
}  # fmt: skip


@pytest.mark.parametrize("write", IN_PLACE)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(64,), (4, 16)])
@pytest.mark.parametrize("gradient", ["auto", "vertex", "qp", "straight_through"])
def test_operations_in_place_behind_the_layer(
    cooling, batch, write, dtype, shape, gradient
) -> None:
    layer = gdpnet.ProjectionLayer(cooling, gradient=gradient)
    found = []
    for operation in IN_PLACE[write]:
        yhat, x = (t.to(dtype).reshape(*shape, -1).clone().requires_grad_() for t in batch)
        y, info = layer(yhat, x, return_info=True)
        after = operation(y)
        after.square().sum().backward()
        found.append((after.detach(), yhat.grad, x.grad, info.distance, info.tight[0]))
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


LEAST_NORM = gdpnet.solve.Exact(tie="least_norm")


@pytest.mark.parametrize("keywords", [{"solver": LEAST_NORM}, {"relaxation": "cnf"},
                                      {"relaxation": "cnf", "solver": "highs"},
                                      {"strict": True}, {"on_conflict": "nearest"}])  # fmt: skip
def test_operations_in_place_behind_every_solver(cooling, batch, keywords) -> None:
    found = []
    for operation in IN_PLACE["mul_"]:
        # Fresh rules: HiGHS goes on from the last basis.
        layer = gdpnet.ProjectionLayer(gdpnet.RuleModel.from_data(cooling.data), **keywords)
        yhat = batch[0].clone().requires_grad_()
        operation(layer(yhat, batch[1])).square().sum().backward()
        found.append(yhat.grad)
    assert torch.equal(*found)


def test_writing_into_outputs_without_a_graph_changes_nothing_else(cooling, batch) -> None:
    yhat, x = batch
    expected = gdpnet.project(cooling, yhat, x).distance
    p = gdpnet.project(cooling, yhat, x)
    p.y.zero_()
    assert torch.equal(p.distance, expected)
    assert expected.any()


def test_a_single_sample_may_be_written_into() -> None:
    yhat = torch.tensor([4.0], requires_grad=True)
    y = gdpnet.ProjectionLayer(gap(), gradient="straight_through")(yhat)
    y += 1
    y.sum().backward()
    assert (y.item(), yhat.grad.item()) == (4.0, 1.0)


# ---- copies and checkpoints --------------------------------------------------------------------


def test_deepcopy_and_pickle(cooling, batch) -> None:
    yhat, x = batch
    layer = gdpnet.ProjectionLayer(cooling, relaxation="dnf", gradient=gdpnet.QP(1e-3))
    expected = layer(yhat, x)
    copied = copy.deepcopy(layer)
    assert copied.rules is layer.rules
    loaded = pickle.loads(pickle.dumps(layer))
    assert loaded.rules.fingerprint == cooling.fingerprint
    for other in (copied, loaded):
        assert torch.equal(other(yhat, x), expected)
        assert repr(other) == repr(layer)


def test_a_checkpoint_knows_its_rules(cooling) -> None:
    model = network(cooling)
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    buffer.seek(0)
    state = torch.load(buffer, weights_only=True)
    network(cooling).load_state_dict(state)
    other = copy.deepcopy(model)
    other.layer = gdpnet.ProjectionLayer(gap())
    with pytest.raises(gdpnet.errors.InputError, match="other rules"):
        other.load_state_dict(state)
    plain = {key: value for key, value in state.items() if "extra" not in key}
    network(cooling).load_state_dict(plain)
    with pytest.raises(RuntimeError, match=r"unexpected_key|Unexpected key"):
        network(cooling).load_state_dict({**plain, "surprise": torch.zeros(1)})
    with pytest.raises(RuntimeError, match=r"[Mm]issing"):
        network(cooling).load_state_dict({})


def test_a_checkpoint_written_when_the_state_was_a_dict() -> None:
    layer = gdpnet.ProjectionLayer(gap())
    old = {"_extra_state": {"rules": layer.rules.fingerprint}}
    assert layer.load_state_dict(old).missing_keys == []
    other = {"_extra_state": {"rules": "0" * 64}}
    with pytest.raises(
        gdpnet.errors.InputError, match=r"other rules \(fingerprint 000000000000\.\.\."
    ):
        layer.load_state_dict(other)


def test_the_state_is_a_tensor_that_no_cast_hurts(cooling) -> None:
    state = network(cooling).state_dict()
    assert all(isinstance(value, torch.Tensor) for value in state.values())
    assert state["layer._extra_state"].dtype == torch.uint8
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        network(cooling).load_state_dict({key: value.to(dtype) for key, value in state.items()})
    # Loading in place, as distributed checkpoints do, writes into a copy.
    state["layer._extra_state"].zero_()
    with pytest.raises(gdpnet.errors.InputError, match="other rules"):
        network(cooling).load_state_dict(state)
    network(cooling).load_state_dict(network(cooling).state_dict())


def test_a_model_made_without_memory(cooling) -> None:
    state = network(cooling).state_dict()
    with torch.device("meta"):
        model = network(cooling)
    model.load_state_dict({key: value.to("meta") for key, value in state.items()})
    model.load_state_dict(state, assign=True)
    assert torch.equal(model.body[0].weight, state["body.0.weight"])


def test_safetensors(cooling, batch, tmp_path) -> None:
    model = network(cooling)
    expected = model(batch[1])
    # As Hugging Face's trainer saves a module, and loads it again.
    save_file(model.state_dict(), tmp_path / "model.safetensors", metadata={"format": "pt"})
    fresh = network(cooling)
    nn.init.zeros_(fresh.body[0].weight)
    fresh.load_state_dict(load_file(tmp_path / "model.safetensors"))
    assert torch.equal(fresh(batch[1]), expected)
    save_model(model, str(tmp_path / "whole.safetensors"))
    nn.init.zeros_(fresh.body[0].weight)
    assert load_model_file(fresh, str(tmp_path / "whole.safetensors")) == (set(), [])
    assert torch.equal(fresh(batch[1]), expected)
    fresh.layer = gdpnet.ProjectionLayer(gap())
    with pytest.raises(gdpnet.errors.InputError, match="other rules"):
        load_model_file(fresh, str(tmp_path / "whole.safetensors"))


def test_in_a_sequential() -> None:
    model = nn.Sequential(nn.Linear(2, 1), gdpnet.ProjectionLayer(gap()))
    y = model(torch.randn(32, 2) * 10)
    assert gap().satisfied(y).all()
    y.sum().backward()


# ---- torch's own machinery ---------------------------------------------------------------------


@pytest.mark.parametrize("gradient", ["vertex", "qp", "straight_through"])
def test_checkpointing_gives_the_same_gradients(cooling, batch, gradient) -> None:
    _, x = batch
    model = network(cooling, gradient)
    expected = gradients(model, x)
    model.zero_grad()
    checkpoint(model, x, use_reentrant=False).square().sum().backward()
    for parameter, wanted in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, wanted)


def test_accumulated_gradients_are_those_of_the_whole_batch(cooling, batch) -> None:
    _, x = batch
    model = network(cooling)
    expected = gradients(model, x)
    model.zero_grad()
    for part in x.split(16):
        model(part).square().sum().backward()
    for parameter, wanted in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, wanted)


def test_mixed_precision(cooling, batch) -> None:
    _, x = batch
    model = network(cooling).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = model(x.float())
    assert y.dtype == torch.bfloat16
    assert cooling.satisfied(y, x, 3e-2).all()
    y.float().square().sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


# torch itself says that it will be gone one day, and what it makes constants of.
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*:torch.jit.TracerWarning")
def test_tracing_is_refused(cooling, batch) -> None:
    _, x = batch
    model = network(cooling)
    for module in (model, lambda x: gdpnet.project(cooling, x[:, :3], x).y):
        with torch.no_grad(), pytest.raises(gdpnet.errors.InputError, match=r"torch\.jit\.trace"):
            torch.jit.trace(module, (x,))
    # What the message says to do instead.
    body = torch.jit.trace(model.body, (x,))
    assert torch.equal(model.layer(body(x / 30), x), model(x))


def test_workers_that_are_spawned(cooling) -> None:
    found = _processes.project_in_workers(cooling)
    assert cooling.satisfied(found[:, :3], found[:, 3:], 1e-6).all()


def test_two_ranks_have_the_gradients_of_one_process(cooling, batch, tmp_path) -> None:
    _, x = batch
    model = network(cooling)
    expected = [g / 2 for g in gradients(model, x)]  # ranks are averaged
    found = _processes.gradients_of_two_ranks(model, x, tmp_path)
    for one, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(one, wanted)


def test_one_layer_called_from_two_threads(cooling) -> None:
    x, _ = load_model(MODELS / "cooling").sample(2000, split="ood", seed=3)
    yhat = torch.rand(2000, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    layer = gdpnet.ProjectionLayer(cooling, gradient="qp")

    def work(at: int) -> None:
        mine = yhat[at : at + 500].clone().requires_grad_()
        y = layer(mine, x[at : at + 500].double())
        y.square().sum().backward()
        found[at] = torch.cat([y.detach(), mine.grad], 1)

    found: dict[int, torch.Tensor] = {}
    starts = range(0, 2000, 500)
    for at in starts:
        work(at)
    alone, found = found, {}
    for _ in range(5):
        threads = [threading.Thread(target=work, args=(at,)) for at in starts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(torch.equal(found[at], alone[at]) for at in starts)


def test_outputs_satisfy_the_rules_throughout_training(cooling, batch) -> None:
    _, x = batch
    model = network(cooling)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    target = torch.from_numpy(np.random.default_rng(0).uniform(0, 1, (64, 3)))
    losses = []
    for _ in range(30):
        y = model(x)
        assert cooling.satisfied(y, x).all()
        loss = (y - target).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
