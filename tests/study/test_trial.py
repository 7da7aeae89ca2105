"""What a model file gets wrong is told in a sentence, before anything is trained or written."""

from __future__ import annotations

from pathlib import Path

import pytest

from gdpnet.errors import InputError, ModelFileError
from gdpnet.study import Grid, train
from tests.study._tasks import GAP

GRID = Grid(methods=("base", "dnf"), sizes=(12,), seeds=(0,), protocols=("short",))

WRONG = {
    "sample that ignores n": (
        "_sample = sample\ndef sample(n, split, seed): return _sample(50, split, seed)",
        r"sample\(12, split='train', seed=0\) returned 50 rows",
    ),
    "sample of texts": (
        "def sample(n, split, seed): return 'a', 'b'",
        "returned str and str",
    ),
    "target with NaN": (
        "_sample = sample\n"
        "def sample(n, split, seed):\n"
        "    x, target = _sample(n, split, seed)\n"
        "    target[3] = float('nan')\n"
        "    return x, target\n",
        r"NaN or infinity in target, in 1 of \d+ rows, the first of them row 3",
    ),
    # n x 2 less n is n x n where it is anything.
    "target of another shape": (
        "_sample = sample\n"
        "def sample(n, split, seed):\n"
        "    x, target = _sample(n, split, seed)\n"
        "    return x, target[:, :1]\n",
        r"target of shape \(60, 1\), but the mean squared error needs",
    ),
    "network of other inputs": (
        "def network(): return torch.nn.Linear(5, 2)",
        r"cannot be called with x of shape \(60, 1\)",
    ),
    "network of other outputs": (
        "def network(): return torch.nn.Linear(1, 3)",
        r"should give 2 outputs a sample .* gave a tensor of shape \(60, 3\)",
    ),
    "network without weights": (
        "def network(): return torch.nn.Identity()",
        "without any weights",
    ),
    "loss that raises": (
        "def loss(y, target): raise KeyError('u')",
        r"loss\(\) raised KeyError at line",
    ),
    "loss of each sample": (
        "def loss(y, target): return (y - target).square().mean(1)",
        r"loss\(\) should return a tensor with one number",
    ),
    "metrics that raise": (
        "def metrics(y, target): raise KeyError('u')",
        r"metrics\(\) raised KeyError at line",
    ),
    "metrics without names": (
        "def metrics(y, target): return [1.0]",
        r"metrics\(\) should return a dict",
    ),
    "metrics that are no numbers": (
        "def metrics(y, target): return {'mse': 'low'}",
        "'mse': expected a number, got str",
    ),
    "metrics with a taken name": (
        "def metrics(y, target): return {'seed': 1.0}",
        "'seed' is the name of another column",
    ),
    "rule_inputs that raises": (
        "def rule_inputs(x): raise KeyError('u')",
        r"rule_inputs\(\) raised KeyError at line",
    ),
    "test seeds in a list": ("TEST_SEEDS = ['near']", "TEST_SEEDS: expected a dict, got list"),
    "no test seeds": ("TEST_SEEDS = {}", "TEST_SEEDS: expected at least one split"),
    "test size": ("TEST_SIZE = '60'", "TEST_SIZE: expected a whole number"),
    "methods": ("METHODS = {'mine': 'dnf'}", "METHODS: expected names and a Method for each"),
    "method under another name": (
        "from gdpnet.study import Method\n"
        "METHODS = {'mine': Method('yours', projection={'relaxation': 'dnf'})}",
        "'mine' is called 'yours' itself",
    ),
    "protocols": (
        "PROTOCOLS = {'short': {'epochs': 3}}",
        "PROTOCOLS: expected names and a Protocol for each",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_told_before_anything_is_written(tmp_path: Path, wrong: str) -> None:
    text, told = WRONG[wrong]
    path = tmp_path / "wrong.py"
    path.write_text(f"{GAP}\n{text}\n")
    with pytest.raises(ModelFileError, match=told):
        train(path, GRID, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_training_that_diverges_is_told_and_has_no_results(tmp_path: Path) -> None:
    path = tmp_path / "hot.py"
    path.write_text(
        f"{GAP}\nPROTOCOLS['short'] = Protocol(Stage(4, 1e300, epochs=9), Stage(1, 1., 1))"
    )
    with pytest.raises(InputError, match=r"Training diverged: after 27 steps at .* 1e\+300"):
        train(path, GRID, tmp_path / "out")
    assert not (tmp_path / "out" / "results.csv").exists()
    assert not list((tmp_path / "out").rglob("*base.pt"))
