"""A network with its rules in one file of ONNX."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import gdpnet
from gdpnet.errors import InputError
from gdpnet.study import load_model
from tests.nn._processes import Ruled

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")

from gdpnet.nn.onnx import Session, export  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # of the exporter, about itself

MODELS = Path(__file__).parents[2] / "models"


@pytest.fixture(scope="module")
def x() -> torch.Tensor:
    return load_model(MODELS / "cooling").sample(16, split="ood", seed=1)[0].double()


class Twice(torch.nn.Module):
    """Two projections, and something behind and beside them.

    The exporter writes constants as float32: these are the same there.
    """

    def __init__(self, rules: gdpnet.RuleModel) -> None:
        super().__init__()
        self.first = Ruled(rules, "auto")
        self.second = gdpnet.ProjectionLayer(rules, norm="l2")

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.first(x)
        return self.second(1.25 * y.flip(-1) - 0.125, x) + 1, 2 * y


@pytest.mark.parametrize("kind", [lambda r: Ruled(r, "auto"), Twice], ids=["once", "twice"])
def test_a_file_gives_what_the_network_gives(x, tmp_path, kind) -> None:
    torch.manual_seed(0)
    model = kind(load_model(MODELS / "cooling").build()).eval()
    path = tmp_path / "model.onnx"
    export(model, (x,), path, dynamic_shapes=({0: torch.export.Dim("batch")},))
    session = Session(path)
    for size in (1, 5, 16):
        with torch.no_grad():
            expected = model(x[:size])
        expected = expected if isinstance(expected, tuple) else (expected,)
        found = session.run(None, {session.inputs[0]: x[:size].numpy()})
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other.numpy(), rtol=1e-9, atol=1e-9)
    nodes = [node for node in onnx.load(path).graph.node if node.domain == "gdpnet"]
    assert {node.op_type for node in nodes} == {"Project"}
    with pytest.raises(InputError, match="is missing"):
        session.run(None, {})


def test_without_the_new_exporter_it_is_refused(x, tmp_path) -> None:
    model = Ruled(load_model(MODELS / "cooling").build(), "auto")
    with pytest.raises(InputError, match="dynamo"):
        export(model, (x,), tmp_path / "model.onnx", dynamo=False)
    with torch.no_grad(), pytest.raises(InputError, match=r"torch\.jit\.trace"):
        torch.onnx.export(model, (x,), tmp_path / "model.onnx", dynamo=False)
