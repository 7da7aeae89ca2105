"""Objective: from a network and samples to the number that is minimised."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from gdpnet.study.training._methods import Method
from gdpnet.study.training._task import Data, Task

# Batches at which a loss is tried for being a mean over samples: a weighted one is, by chance,
# where all samples have the same weight.
_LOOKS = 64


class Objective:
    """The loss of a method.

    Args:
        loss: of outputs and targets.
        layer: moves the network's outputs, or None.
        penalty: of outputs and the rules' inputs, or None.
    """

    def __init__(
        self,
        loss: Callable[..., torch.Tensor],
        layer: nn.Module | None = None,
        penalty: Callable[..., torch.Tensor] | None = None,
    ) -> None:
        self._loss = loss
        self._layer = layer
        self._penalty = penalty

    @classmethod
    def of(cls, task: Task, method: Method, layer: nn.Module | None) -> Objective:
        """What a method minimises on a task."""
        return cls(
            task.loss,
            layer if method.loss == "projected" else None,
            task.penalty if method.loss == "penalty" else None,
        )

    def summed(self, networks: int) -> Objective:
        """The sum over networks side by side, whose outputs are `batch x networks x d`.

        Args:
            networks: how many.
        """
        loss, penalty = self._loss, self._penalty
        is_mean, looks = True, 0

        def losses(y: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
            nonlocal is_mean, looks
            if is_mean:
                # Most losses are means over samples: one call instead of one for each network.
                total = networks * loss(y.flatten(0, 1), target.flatten(0, 1))
                if looks == _LOOKS:
                    return total
                looks += 1
            summed = torch.stack([loss(y[:, k], target[:, k]) for k in range(networks)]).sum()
            if is_mean:
                is_mean = torch.allclose(total, summed, rtol=1e-12, atol=0.0)
            # What a training that goes on returns here, too.
            return total if is_mean else summed

        def penalties(y: torch.Tensor, x: torch.Tensor | None) -> torch.Tensor:
            assert penalty is not None
            total: torch.Tensor = networks * penalty(y, x)  # the penalty is a mean
            return total

        return Objective(losses, self._layer, None if penalty is None else penalties)

    def each(self, network: nn.Module, data: Data) -> torch.Tensor:
        """The loss of each of the networks side by side, whose outputs are `batch x networks x d`.

        Args:
            network: several as one.
            data: samples of each.
        """
        y = self._outputs(network, data)
        own = [data.take((slice(None), k)) for k in range(y.shape[1])]
        return torch.stack([self._value(y[:, k], part) for k, part in enumerate(own)])

    def __call__(self, network: nn.Module, data: Data) -> torch.Tensor:
        """A scalar."""
        return self._value(self._outputs(network, data), data)

    def _outputs(self, network: nn.Module, data: Data) -> torch.Tensor:
        y: torch.Tensor = network(data.x)
        return y if self._layer is None else self._layer(y, data.rule_x)

    def _value(self, y: torch.Tensor, data: Data) -> torch.Tensor:
        value = self._loss(y, data.target)
        return value if self._penalty is None else value + self._penalty(y, data.rule_x)
