"""Evaluation: how good outputs are, how often they satisfy the rules, and what they cost."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator

import torch
from torch import nn

from gdpnet.model import RuleModel
from gdpnet.study.samples import what_holds
from gdpnet.study.training._task import Data, Task

_SINGLES = 64  # samples that are timed one by one

LOOSER = (1e-4, 1e-3, 1e-2, 1e-1)
"""Tolerances at which satisfaction is told besides the usual one."""


class Outputs(nn.Module):
    """What a method gives out: the network's outputs, projected where the method projects.

    Args:
        network: the backbone.
        layer: the projection, or None.
    """

    def __init__(self, network: nn.Module, layer: nn.Module | None) -> None:
        super().__init__()
        self.network = network
        self.layer = layer

    def forward(self, data: Data) -> torch.Tensor:
        """Outputs, `n x d`."""
        y: torch.Tensor = self.network(data.x)
        return y if self.layer is None else self.layer(y, data.rule_x)


def evaluate(task: Task, outputs: Outputs, split: str) -> dict[str, float]:
    """The task's own metrics, rule satisfaction and times on a test split.

    Args:
        task: the task.
        outputs: what is given out.
        split: name of the test split.

    Returns:
        The task's metrics; `csat`, the share of samples that satisfy everything, rules, global
        constraints and bounds; `csat_rules`, the active rules alone, as the paper counts; both also
        over the samples that some output could satisfy (`_conflict_free`), and over all at looser
        tolerances (`csat_1e-02`); `violation_mean`, `violation_95` and `violation_most`, mean, 95 %
        quantile and largest of what each sample breaks most, everything counted, and of the active
        rules alone (`violation_rules_...`); `csat/NAME` over the samples where a rule is active;
        `samples`; `inference_us`, microseconds a sample of the whole split as one batch, and
        `single_us` one by one. A share of no samples is NaN.
    """
    data = task.test(split)
    outputs.eval()
    with torch.no_grad():
        y = outputs(data)
        found = {name: float(value) for name, value in task.metrics(y, data.target).items()}
        found |= _satisfaction(task, split, data, y)
        found |= sizes_of_violations(task.rules, data.rule_x, y)
        found["samples"] = float(len(data))
        found["inference_us"] = 1e6 * _median_time(lambda: [outputs(data)], 5) / len(data)
        singles = [data.take(slice(k, k + 1)) for k in range(min(_SINGLES, len(data)))]
        found["single_us"] = 1e6 * _median_time(lambda: map(outputs, singles), 1)
    return found


def _satisfaction(task: Task, split: str, data: Data, y: torch.Tensor) -> dict[str, float]:
    rules, free = task.rules, task.conflict_free(split)
    # An inactive rule holds.
    holds = what_holds(rules, data.rule_x, y)
    held, everything = holds[:, :-2], holds[:, -1]
    alone = held.all(1)
    found = {
        "csat": _share(everything),
        "csat_conflict_free": _share(everything[free]),
        "csat_rules": _share(alone),
        "csat_rules_conflict_free": _share(alone[free]),
        "conflict_free": float(free.sum()),
    }
    active = rules.active(data.rule_x) if data.rule_x is not None else torch.ones_like(held)
    for k, name in enumerate(rules.names):
        found[f"csat/{name}"] = _share(held[active[:, k], k])
    return found


def sizes_of_violations(
    rules: RuleModel, x: torch.Tensor | None, y: torch.Tensor
) -> dict[str, float]:
    """By how much outputs break the rules, and the share that is within looser tolerances.

    Args:
        rules: the rules.
        x: their inputs, `n x p`, or None.
        y: outputs, `n x d`.
    """
    each, globally = rules.measure(y, x)
    alone = each.amax(1) if each.shape[1] else torch.zeros_like(globally)
    found = {}
    for name, worst in (("", torch.maximum(alone, globally)), ("_rules", alone)):
        worst = worst.double().clamp(min=0.0)
        found[f"violation{name}_mean"] = float(worst.mean())
        found[f"violation{name}_95"] = float(worst.quantile(0.95))
        found[f"violation{name}_most"] = float(worst.amax())
        found |= {f"csat{name}_{tol:.0e}": _share(worst <= tol) for tol in LOOSER}
    return found


def _share(mask: torch.Tensor) -> float:
    return float(mask.double().mean())  # NaN where there are none


def _median_time(calls: Callable[[], Iterator[object] | list[object]], repeats: int) -> float:
    """Median time of single calls."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        for _ in calls():
            now = time.perf_counter()
            times.append(now - started)
            started = now
    return statistics.median(times)
