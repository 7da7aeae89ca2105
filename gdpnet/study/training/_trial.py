"""try_out: what a file gets wrong is told before anything is trained or written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from gdpnet.errors import ModelFileError
from gdpnet.study._models import describe
from gdpnet.study.training._folder import KEYS
from gdpnet.study.training._task import Data, Task

# Columns of the table of results that are no metric of the task.
_TAKEN = {
    *KEYS,
    "conflict_free",
    "samples",
    "inference_us",
    "single_us",
    "train_seconds",
    "train_steps",
    "epoch_seconds",
}


def try_out(task: Task) -> None:
    """Call a task's network, loss and metrics once, on its first test split; raises.

    Args:
        task: the task.
    """
    data = task.test(next(iter(task.test_seeds)))
    y = _outputs(task, data)
    if (not task.own_loss or not task.own_metrics) and data.target.shape != y.shape:
        missing = " and ".join(
            name
            for name, own in (("loss", task.own_loss), ("metrics", task.own_metrics))
            if not own
        )
        raise ModelFileError(
            f"{task.path}: sample() returned a target of shape {tuple(data.target.shape)}, but the "
            f"mean squared error needs that of the outputs, {tuple(y.shape)}. Return it so, or "
            f"define {missing}."
        )
    value: Any = task.loss(y, data.target)
    if not isinstance(value, torch.Tensor) or value.ndim or not value.is_floating_point():
        raise ModelFileError(
            f"{task.path}: loss() should return a tensor with one number, but returned "
            f"{_told(value)}. Take the mean over the samples."
        )
    _check_metrics(task, task.metrics(y, data.target))


def _outputs(task: Task, data: Data) -> torch.Tensor:
    network = task.new_network(0).eval()
    if not any(weight.requires_grad for weight in network.parameters()):
        raise ModelFileError(
            f"{task.path}: network() returned {type(network).__name__} without any weights to "
            "train."
        )
    try:
        with torch.no_grad():
            y: Any = network(data.x)
    except Exception as error:  # whatever a module raises
        raise ModelFileError(
            f"{task.path}: the module that network() returned cannot be called with x of shape "
            f"{tuple(data.x.shape)}, dtype float64: {describe(error, task.path)}. Correct "
            "network() or sample()."
        ) from error
    names = task.rules.output_names
    if not isinstance(y, torch.Tensor) or y.shape != (len(data), len(names)):
        raise ModelFileError(
            f"{task.path}: the module that network() returned should give {len(names)} outputs a "
            f"sample ({', '.join(names[:8])}), shape ({len(data)}, {len(names)}), but gave "
            f"{_told(y)}."
        )
    return y


def _check_metrics(task: Task, found: Any) -> None:
    if not isinstance(found, Mapping) or not found:
        raise ModelFileError(
            f"{task.path}: metrics() should return a dict of names and numbers, but returned "
            f"{_told(found)}."
        )
    for name, value in found.items():
        try:
            float(value)
        except (TypeError, ValueError, RuntimeError):
            raise ModelFileError(
                f"{task.path}: metrics(): {name!r}: expected a number, got {_told(value)}."
            ) from None
        if not isinstance(name, str) or name in _TAKEN or name.startswith(("csat", "violation")):
            raise ModelFileError(
                f"{task.path}: metrics(): {name!r} is the name of another column of the results. "
                "Choose another one."
            )


def _told(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}, {value.dtype}"
    return "nothing" if value is None else type(value).__name__
