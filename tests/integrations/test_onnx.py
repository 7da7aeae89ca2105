"""ONNX: the network in front of the rules runs in onnxruntime, and its outputs are projected."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch

import gdpnet
from tests.integrations._networks import Net, samples


def test_the_network_runs_elsewhere_and_saved_rules_project(tmp_path: Path) -> None:
    network = Net().eval()
    backbone = torch.nn.Sequential(network.hidden, torch.nn.Tanh(), network.out).eval()
    x, _ = samples()
    file = tmp_path / "backbone.onnx"
    batch = {0: torch.export.Dim("batch", min=1)}
    torch.onnx.export(
        backbone, (x,), file, dynamo=True, dynamic_shapes=(batch,), input_names=["x"], verbose=False
    )
    onnx.checker.check_model(onnx.load(file))
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    network.layer.rules.save(tmp_path / "rules.json")
    rules = gdpnet.load_rules(tmp_path / "rules.json")
    for rows in (1, 20):
        [yhat] = session.run(None, {session.get_inputs()[0].name: x[:rows].numpy()})
        y = gdpnet.project(rules, yhat, x[:rows, :1]).y
        with torch.no_grad():
            np.testing.assert_allclose(y.numpy(), network(x[:rows]).numpy(), atol=1e-5)
        assert rules.satisfied(y, x[:rows, :1], tol=1e-5).all()
