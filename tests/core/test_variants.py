"""The core for several CPUs: the same answers to the last bit, and one that can be forced."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gdpnet import core

ROOT = Path(__file__).parents[2]

# Points, gradients and outcomes of the bank, of everything that is compiled more than once.
BANK = """
import sys, warnings
import numpy as np, torch
import gdpnet
from gdpnet import core
from gdpnet.testing import PROBLEMS

warnings.simplefilter("ignore")
torch.set_num_threads(1)
found = {"variant": np.array(core.VARIANT)}
for problem in PROBLEMS:
    for relaxation in (None, "cnf"):
        yhat = problem.yhat.clone().requires_grad_()
        options = {} if relaxation is None else {"relaxation": relaxation, "forward": "qp"}
        try:
            p = gdpnet.project(problem.rules(), yhat, problem.x, gradient="qp", **options)
        except gdpnet.errors.GdpnetError:  # no relaxation without bounds
            continue
        slope = torch.cos(torch.arange(p.y.numel(), dtype=p.y.dtype)).reshape(p.y.shape)
        if p.y.requires_grad:
            (p.y * slope).sum().backward()
        name = f"{problem.name} {relaxation} "
        found[name + "y"] = p.y.detach().numpy()
        found[name + "status"] = p.status.numpy()
        if yhat.grad is not None:
            found[name + "gradient"] = yhat.grad.numpy()
np.savez(sys.argv[1], **found)
"""


def run(code: str, variant: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "GDPNET_CPU": variant, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True
    )


def test_the_widest_is_used_unless_another_is_forced() -> None:
    wanted = os.environ.get("GDPNET_CPU") or core.cpu_variants()[-1]
    assert wanted == core.VARIANT == core.cpu_variant()
    assert core.cpu_variants()[0] == "baseline"
    shown = run("from gdpnet import core; print(core.VARIANT)", "baseline")
    assert shown.stdout.strip() == "baseline"


def test_a_variant_that_cannot_be_had_is_an_error() -> None:
    failed = run("from gdpnet import core", "sse9")
    assert failed.returncode != 0
    assert "InputError: GDPNET_CPU=sse9: expected 'baseline', 'avx2' or 'avx512'" in failed.stderr
    assert f"Here can be used: {', '.join(core.cpu_variants())}." in failed.stderr


@pytest.mark.slow
def test_answers_are_the_same_to_the_last_bit(tmp_path: Path) -> None:
    found = {}
    for variant in core.cpu_variants():
        path = tmp_path / f"{variant}.npz"
        done = run(BANK, variant, str(path))
        assert done.returncode == 0, done.stderr
        with np.load(path) as arrays:
            found[variant] = dict(arrays)
        assert found[variant].pop("variant") == variant
    baseline = found.pop("baseline")
    assert len(baseline) > 100
    for arrays in found.values():
        assert arrays.keys() == baseline.keys()
        for name, array in arrays.items():
            assert array.tobytes() == baseline[name].tobytes(), name
