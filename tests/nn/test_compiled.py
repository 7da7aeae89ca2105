"""The layer in torch.compile and torch.export: the operator `gdpnet::project`."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction
from torch.fx.experimental.proxy_tensor import make_fx

import gdpnet
from gdpnet.errors import InputError, RuleError
from gdpnet.projection.library import CompiledProjection
from gdpnet.projection.projector import Projector
from gdpnet.projection.recipe import _LIVING, projector_of, recipe_of
from gdpnet.study import load_model
from tests.nn._processes import Ruled

Tensor = torch.Tensor
MODELS = Path(__file__).parents[2] / "models"


@pytest.fixture(scope="module")
def cooling() -> gdpnet.RuleModel:
    return load_model(MODELS / "cooling").build()


@pytest.fixture(scope="module")
def x() -> Tensor:
    return load_model(MODELS / "cooling").sample(16, split="ood", seed=1)[0].double()


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()


def network(rules: gdpnet.RuleModel, gradient: Any = "auto") -> torch.nn.Module:
    torch.manual_seed(0)
    return Ruled(rules, gradient)


def gradients(model: torch.nn.Module, *arguments: Tensor) -> list[Tensor]:
    model.zero_grad()
    model(*arguments).square().sum().backward()
    return [p.grad.clone() for p in model.parameters()]


def predictions(size: int) -> Tensor:
    return torch.rand(size, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("gradient", ["auto", "qp"])
def test_one_graph(cooling, x, backend, gradient) -> None:
    model = network(cooling, gradient)
    expected, wanted = model(x), gradients(model, x)
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    assert torch.equal(compiled(x), expected)
    for found, g in zip(gradients(compiled, x), wanted, strict=True):
        torch.testing.assert_close(found, g)
    with torch.no_grad():
        assert torch.equal(compiled(x), expected)
    assert torch.equal(compiled(x[:5]), model(x[:5]))


# In a process of its own. Inductor pickles what it compiles, and where pickle has to look for the
# module of an object it asks everything in sys.modules, Pyomo's stand-ins for missing packages too;
# these raise an error that pickle does not expect.
INDUCTOR = """
import sys, torch, gdpnet
from tests.nn._processes import Ruled

torch.manual_seed(0)
rules = gdpnet.load_rules(sys.argv[1])
model, x = Ruled(rules, "auto"), torch.load(sys.argv[2])

def gradients(model):
    model.zero_grad()
    model(x).square().sum().backward()
    return [p.grad.clone() for p in model.parameters()]

expected, wanted = model(x), gradients(model)
compiled = torch.compile(model, fullgraph=True)
torch.testing.assert_close(compiled(x), expected)
for found, g in zip(gradients(compiled), wanted, strict=True):
    torch.testing.assert_close(found, g)
assert "pyomo" not in sys.modules
"""


@pytest.mark.slow
def test_inductor(cooling, x, tmp_path) -> None:
    cooling.save(tmp_path / "rules.json")
    torch.save(x, tmp_path / "x.pt")
    files = [str(tmp_path / "rules.json"), str(tmp_path / "x.pt")]
    subprocess.run([sys.executable, "-c", INDUCTOR, *files], check=True, cwd=MODELS.parent)


def test_gradients_of_inputs_and_of_one_input_for_all(cooling, x) -> None:
    layer = gdpnet.ProjectionLayer(cooling, gradient="vertex")
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    every = x.clone().requires_grad_()
    layer(predictions(16), every).square().sum().backward()
    steep = every.grad.any(1)
    for inputs in (x, x[steep][0]):
        found = []
        for call in (layer, compiled):
            leaves = predictions(16).requires_grad_(), inputs.clone().requires_grad_()
            call(*leaves).square().sum().backward()
            found.append([leaf.grad for leaf in leaves])
        for one, other in zip(*found, strict=True):
            assert torch.equal(one, other)
        assert all(leaf.any() for leaf in found[0])


def test_rules_without_inputs() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.gap = Disjunction(expr=[[m.y <= 3], [m.y >= 7]])
    layer = gdpnet.ProjectionLayer(gdpnet.RuleModel(m, outputs=[m.y]), gradient="straight_through")
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    yhat = torch.tensor([[4.0], [8.0]], requires_grad=True)
    y = compiled(yhat)
    y.sum().backward()
    assert (y.tolist(), yhat.grad.tolist()) == ([[3.0], [8.0]], [[1.0], [1.0]])
    assert torch.export.export(layer, (yhat.detach(),)).module()(yhat).tolist() == y.tolist()


def test_two_calls_before_one_backward(cooling, x) -> None:
    layer = gdpnet.ProjectionLayer(cooling, gradient="vertex")

    def loss(a: Tensor) -> Tensor:
        return (layer(a, x) * layer(1 - a, x)).sum()

    found = []
    for call in (loss, torch.compile(loss, backend="aot_eager", fullgraph=True)):
        leaf = predictions(16).requires_grad_()
        call(leaf).backward()
        found.append(leaf.grad)
    assert torch.equal(*found)


def test_a_network_with_rules_added(cooling, x) -> None:
    torch.manual_seed(0)
    body = torch.nn.Linear(x.shape[1], 3).double()
    model = gdpnet.nn.with_rules(body, cooling, lambda x: x, output_scale=(0.5, 0.2))
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    assert torch.equal(compiled(x), model(x))


# torch looks at .grad of what stands at a break of its graph, and warns itself of that.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
def test_info_breaks_the_graph(cooling, x) -> None:
    layer = gdpnet.ProjectionLayer(cooling)

    def call(a: Tensor) -> Any:
        y, info = layer(2 * a, x, return_info=True)
        return y + 1, info.status

    leaf = predictions(16).requires_grad_()
    y, status = torch.compile(call, backend="aot_eager")(leaf)
    assert torch.equal(y, call(leaf)[0])
    assert torch.equal(status, call(leaf)[1])


def test_torch_finds_nothing_wrong_with_the_operator(cooling, x) -> None:
    layer = gdpnet.ProjectionLayer(cooling, gradient="vertex")
    made = CompiledProjection(layer._projector)
    given = (made.rules, made.recipe, True)
    leaves = predictions(16).requires_grad_(), x.clone().requires_grad_()
    torch.library.opcheck(torch.ops.gdpnet.project.default, (*leaves, *given))
    plain = predictions(16), predictions(16), x, *given[:2]
    torch.library.opcheck(torch.ops.gdpnet.project_backward.default, plain)


def test_recording_by_hand_is_refused(cooling, x) -> None:
    layer = gdpnet.ProjectionLayer(cooling)
    for call in (layer, lambda a, b: gdpnet.project(cooling, a, b).y):
        with pytest.raises(InputError, match="make_fx records tensor operations"):
            make_fx(call)(predictions(16), x)


# ---- exported ----------------------------------------------------------------------------------


@pytest.mark.parametrize("strict", [False, True])
def test_export_with_a_batch_of_any_size(cooling, x, strict) -> None:
    model = network(cooling)
    shapes = ({0: torch.export.Dim("batch")},)
    program = torch.export.export(model, (x,), dynamic_shapes=shapes, strict=strict)
    for size in (1, 5, 16):
        assert torch.equal(program.module()(x[:size]), model(x[:size]))
    for found, g in zip(gradients(program.module(), x), gradients(model, x), strict=True):
        torch.testing.assert_close(found, g)


ELSEWHERE = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pyomo", "highspy", "gurobipy"):
            raise ImportError(name)

sys.meta_path.insert(0, Missing())
import torch, gdpnet

folder = sys.argv[1]
x, y, few, gradients = torch.load(folder + "/expected.pt")
model = torch.export.load(folder + "/model.pt2").module()
assert torch.equal(model(x), y)
assert torch.equal(model(x[:3]), few)
model(x).square().sum().backward()
for p, g in zip(model.parameters(), gradients, strict=True):
    torch.testing.assert_close(p.grad, g)
"""


@pytest.mark.filterwarnings("ignore:.*:FutureWarning")
def test_a_program_that_was_saved_runs_without_pyomo(cooling, x, tmp_path) -> None:
    model = network(cooling)
    program = torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim("batch")},))
    torch.export.save(program, tmp_path / "model.pt2")
    # A network's products of few samples are added up in another order on some CPUs.
    expected = model(x).detach(), model(x[:3]).detach(), gradients(model, x)
    torch.save((x, *expected), tmp_path / "expected.pt")
    subprocess.run([sys.executable, "-c", ELSEWHERE, str(tmp_path)], check=True)


class Half(gdpnet.derivative.Sensitivity):
    """A gradient that gdpnet does not know."""

    def backward(self, request: Any, answer: Any) -> Any:
        return gdpnet.StraightThrough().backward(request, answer)


@pytest.mark.parametrize(
    "keywords",
    [{}, {"norm": "l2", "gradient": "vertex"}, {"weights": [1.0, 2.0, 0.5], "strict": True},
     {"relaxation": "cnf", "solver": "highs"}, {"relaxation": "pdnf:3", "gradient": "qp"},
     {"relaxation": "adaptive"}, {"gradient": None, "time_limit": 5.0, "threads": 1},
     {"gradient": gdpnet.Mixed(gdpnet.QP(0.5, 8), gdpnet.StraightThrough(True), 0.75)},
     {"solver": gdpnet.solve.Exact(tie="least_norm", node_limit=77), "on_conflict": "nearest"},
     {"forward": "qp", "gradient": gdpnet.QP(0.1), "on_invalid": "mark"},
     {"relaxation": "cnf", "norm": "l2"}, {"solver": "milp", "gradient": "straight_through"}],
)  # fmt: skip
def test_recipes_make_the_same_projector(cooling, x, keywords) -> None:
    projector = Projector(cooling, **keywords)
    recipe = recipe_of(projector)
    assert projector_of(recipe, b"") is projector
    content = bytes(CompiledProjection(projector).rules.tolist())
    expected = projector(predictions(16), x)
    del _LIVING[recipe]  # as in another process
    other = projector_of(recipe, content)
    assert other is not projector
    assert recipe_of(other) == recipe
    assert repr(other.sensitivity) == repr(projector.sensitivity)
    assert repr(other.backend) == repr(projector.backend)
    found = other(predictions(16), x)
    torch.testing.assert_close(found.y, expected.y)
    assert torch.equal(found.status, expected.status)


def test_recipes_that_cannot_be_followed(cooling) -> None:
    own = Projector(cooling, gradient=Half())
    recipe = recipe_of(own)
    assert projector_of(recipe, b"") is own
    assert recipe_of(Projector(cooling, gradient=Half())) != recipe
    content = bytes(CompiledProjection(own).rules.tolist())
    del _LIVING[recipe]
    with pytest.raises(InputError, match=r"Half is no class of gdpnet.*Build that layer here"):
        projector_of(recipe, content)
    recipe = recipe_of(Projector(cooling))
    _LIVING.pop(recipe, None)
    with pytest.raises(RuleError, match="these are no rules"):
        projector_of(recipe, b"nothing")
    others = Projector(load_model(MODELS / "toy").build())
    with pytest.raises(InputError, match="not those it was exported with"):
        projector_of(recipe, bytes(CompiledProjection(others).rules.tolist()))


def test_copies_have_a_recipe_of_their_own(cooling, x) -> None:
    layer = gdpnet.ProjectionLayer(cooling, gradient=Half())
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert other._compiled.projector is other._projector
        assert other._compiled.recipe != layer._compiled.recipe
        compiled = torch.compile(other, backend="eager", fullgraph=True)
        assert torch.equal(compiled(predictions(16), x), layer(predictions(16), x))
