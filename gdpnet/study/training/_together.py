"""Seeds side by side: networks of one architecture trained as one, with the steps of each alone.

At batch 1 a step of a small network is the overhead of its operations; three networks that take
their steps together cost little more than one.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from gdpnet.study.training._objective import Objective
from gdpnet.study.training._protocols import Stage
from gdpnet.study.training._task import Data
from gdpnet.study.training._training import Training, epoch_order

# Outputs of the networks side by side and alone differ by rounding only.
_ROUNDING = 1e-9


class _Linears(nn.Module):
    """Linear layers of several networks: `networks x batch x in` to `networks x batch x out`."""

    def __init__(self, layers: Sequence[nn.Linear]) -> None:
        super().__init__()
        trained = layers[0].weight.requires_grad
        weight = torch.stack([layer.weight.detach() for layer in layers])
        self.weight = nn.Parameter(weight, requires_grad=trained)
        self.bias = None
        if layers[0].bias is not None:
            bias = torch.stack([layer.bias.detach() for layer in layers]).unsqueeze(1)
            self.bias = nn.Parameter(bias, requires_grad=layers[0].bias.requires_grad)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.bias is None:
            return torch.bmm(x, self.weight.mT)
        return torch.baddbmm(self.bias, x, self.weight.mT)


class _Networks(nn.Module):
    """Several networks as one: `batch x networks x features` to `batch x networks x d`."""

    def __init__(self, stacked: nn.Module) -> None:
        super().__init__()
        self.stacked = stacked

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.stacked(x.transpose(0, 1))
        return y.transpose(0, 1)


def stacked(networks: Sequence[nn.Module], x: torch.Tensor) -> nn.Module | None:
    """Networks as one, or None where that cannot be had.

    It can where all weights are those of linear layers, and everything between them treats any
    leading dimensions alike; the latter is tried out.

    Args:
        networks: of one architecture.
        x: some inputs, `batch x networks x features`.
    """
    found = copy.deepcopy(networks[0])
    for name, module in networks[0].named_modules():
        if type(module) is nn.Linear:
            parent, _, own = name.rpartition(".")
            layers: list[Any] = [network.get_submodule(name) for network in networks]
            if not own:
                return None
            setattr(found.get_submodule(parent), own, _Linears(layers))
        elif [*module.parameters(recurse=False), *module.buffers(recurse=False)]:
            return None
    together = _Networks(found)
    with torch.no_grad():
        alone = torch.stack([network(x[:, k]) for k, network in enumerate(networks)], dim=1)
        try:
            same = torch.allclose(together(x), alone, rtol=_ROUNDING, atol=_ROUNDING)
        except RuntimeError:  # shapes that do not go with another leading dimension
            return None
    return together if same else None


class Together(Training):
    """A stage of several networks under way, side by side.

    Args:
        networks: are trained, one for each seed.
        objective: what each minimises.
        stage: for how long.
        data: training samples of each.
        held: validation samples of each, None where the stage does not look at any.
        seeds: of the order of samples.
        number: of the stage.
    """

    def __init__(
        self,
        networks: Sequence[nn.Module],
        objective: Objective,
        stage: Stage,
        data: Sequence[Data],
        held: Sequence[Data] | None,
        seeds: Sequence[int],
        number: int,
    ) -> None:
        self._networks, self._seeds, self._alone = networks, seeds, objective
        samples = _side_by_side(data)
        network = stacked(networks, samples.x[:2])
        self.possible = network is not None
        super().__init__(
            network or networks[0],
            objective.summed(len(networks)),
            stage,
            samples,
            None if held is None else _side_by_side(held),
            seeds[0],
            number,
        )

    def unstacked(self) -> list[dict[str, Any]]:
        """The state of each network by itself, and its share of the time."""
        weights = self.network.stacked.state_dict()  # type: ignore[union-attr]
        share = self.seconds / len(self._networks)
        found = []
        for k, network in enumerate(self._networks):
            network.load_state_dict(
                {name: weights[name][k].view_as(w) for name, w in network.state_dict().items()}
            )
            curve = [(step, losses[k]) for step, losses in self.curve]
            state = {"network": network.state_dict(), "curve": curve, "step": self.step}
            found.append({**state, "seconds": share})
        return found

    def _shuffled(self, epoch: int, first: int, last: int) -> Data:
        count = len(self.data)
        orders = [epoch_order(count, seed, self._number, epoch) for seed in self._seeds]
        rows = torch.stack(orders, dim=1)[first:last]
        return self.data.take((rows, torch.arange(len(orders))))

    def _check(self) -> None:
        """Keep each network where it is the best so far."""
        assert self.held is not None
        self.network.eval()
        with torch.no_grad():
            losses = self._alone.each(self.network, self.held)
        now = self.network.state_dict()
        if not self._best:
            self._best = copy.deepcopy(now)
        else:
            better = losses < torch.tensor([before for _, before in self.curve]).double().amin(0)
            for name, best in self._best.items():
                best[better] = now[name][better]
        self.curve.append((self.step, losses.tolist()))


def _side_by_side(parts: Sequence[Data]) -> Data:
    """Samples of several networks: `batch x networks x features`."""
    rule_x = [part.rule_x for part in parts]
    return Data(
        torch.stack([part.x for part in parts], dim=1),
        None if rule_x[0] is None else torch.stack(rule_x, dim=1),  # type: ignore[arg-type]
        torch.stack([part.target for part in parts], dim=1),
    )
