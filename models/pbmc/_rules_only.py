"""The rules without any network: a random choice of disjuncts that can be had together."""

import itertools
from functools import cache

import torch
from torch import nn

from gdpnet.bio import MarkerRules


class RulesOnly(nn.Module):
    """For each cell, one class of each active rule, at random among the choices that are feasible.

    The chosen classes share the probability equally, which satisfies every rule whose rho is at
    most that share. Without an active rule, or where the rules contradict each other, one class is
    drawn from all and gets everything. The draws depend on torch's seed when it is made.
    """

    def __init__(self, markers: MarkerRules) -> None:
        super().__init__()
        self._markers = markers
        self._seed = torch.initial_seed()
        self._choices = cache(self._feasible)  # cells share few combinations of active rules

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Probabilities, `cells x classes`, of the rules' inputs, `cells x rules`."""
        random = torch.Generator().manual_seed(self._seed)
        classes = len(self._markers.classes)
        y = x.new_zeros(len(x), classes)
        for i, active in enumerate(self._markers.rules.active(x).tolist()):
            choices = self._choices(tuple(active))
            chosen = choices[int(torch.randint(len(choices), (), generator=random))]
            y[i, list(chosen)] = 1.0 / len(chosen)
        return y

    def _feasible(self, active: tuple[bool, ...]) -> list[tuple[int, ...]]:
        """Sets of classes, one entry for each feasible choice of disjuncts."""
        markers = [m for m, on in zip(self._markers.markers, active, strict=True) if on]
        index = {name: k for k, name in enumerate(self._markers.classes)}
        found = []
        for choice in itertools.product(*(marker.classes for marker in markers)):
            least = dict.fromkeys(choice, 0.0)
            for marker, name in zip(markers, choice, strict=True):
                least[name] = max(least[name], marker.rho or 0.0)
            if least and max(least.values()) <= 1.0 / len(least) + 1e-12:
                found.append(tuple(index[name] for name in least))
        return found or [(k,) for k in range(len(index))]
