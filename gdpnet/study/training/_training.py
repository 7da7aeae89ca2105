"""Training: one stage of one network, which can stop anywhere and go on as if it had not."""

from __future__ import annotations

import copy
import math
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from gdpnet.errors import InputError, ZeroGradientWarning
from gdpnet.study.training._objective import Objective
from gdpnet.study.training._protocols import Stage
from gdpnet.study.training._task import Data

# Steps between two looks at the clock, where no validation comes first.
_STRIDE = 64

# Samples of a step before the clock starts.
_WARM_UP = 16


class Training:
    """A stage under way.

    The order of samples depends on the seed, the stage and the epoch alone: all methods see the
    same, and a training that goes on needs no memory of it.

    Args:
        network: is trained in place.
        objective: what is minimised.
        stage: for how long.
        data: training samples.
        held: validation samples, None where the stage does not look at any.
        seed: of the order of samples and of the network's own randomness.
        number: of the stage.

    Attributes:
        step: steps done.
        seconds: taken by them, validation and the loading of solvers not counted.
        curve: steps and losses of the validation samples; side by side one for each network.
    """

    def __init__(
        self,
        network: nn.Module,
        objective: Objective,
        stage: Stage,
        data: Data,
        held: Data | None,
        seed: int,
        number: int,
    ) -> None:
        self.network, self.objective, self.stage = network, objective, stage
        self.data, self.held = data, held
        self.step, self.total = 0, stage.total(len(data))
        self.seconds = 0.0
        self.curve: list[tuple[int, Any]] = []
        self._seed, self._number = seed, number
        self._best: dict[str, torch.Tensor] = {}
        self._random = torch.Generator().manual_seed(_mixed(seed, number)).get_state()
        trained = [p for p in network.parameters() if p.requires_grad]
        # One kernel for all tensors: at batch 1 the optimiser is a third of a small network's step.
        self._optimiser = torch.optim.AdamW(trained, lr=stage.rate, weight_decay=0.0, fused=True)

    @property
    def done(self) -> bool:
        """Whether nothing is left to do."""
        return self.step >= self.total

    def run(self, pause: Callable[[Training], None] | None = None) -> None:
        """Train to the end; the network then is the stage's result.

        Args:
            pause: called every now and then, between steps.
        """
        every = self.stage.check_every if self.held is not None else 0
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            # At batch 1 a gradient that vanishes is a sample like any other.
            warnings.simplefilter("ignore", ZeroGradientWarning)
            if not self.done:
                self._warm_up()
            torch.set_rng_state(self._random)
            if every and not self.curve:
                self._check()
            while not self.done:
                stop = self.step - self.step % every + every if every else self.step + _STRIDE
                self._advance(min(stop, self.total))
                if every:
                    self._check()
                self._random = torch.get_rng_state()
                if pause is not None:
                    pause(self)
        if self._best:
            self.network.load_state_dict(self._best)
        if not all(bool(weight.isfinite().all()) for weight in self.network.parameters()):
            raise InputError(
                f"Training diverged: after {self.step} steps at a learning rate of "
                f"{self.stage.rate:g} weights are NaN or infinite. Lower the protocol's rate, or "
                "scale the network's inputs and outputs."
            )

    def state(self) -> dict[str, Any]:
        """All that going on needs, as tensors and plain values."""
        return {
            "network": self.network.state_dict(),
            "optimiser": self._optimiser.state_dict(),
            "best": self._best,
            "random": self._random,
            "curve": self.curve,
            "step": self.step,
            "seconds": self.seconds,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.network.load_state_dict(state["network"])
        self._optimiser.load_state_dict(state["optimiser"])
        self._best, self._random = state["best"], state["random"]
        self.curve = [(step, loss) for step, loss in state["curve"]]
        self.step, self.seconds = state["step"], state["seconds"]

    def _warm_up(self) -> None:
        """Have solvers loaded before the clock starts; nothing is kept.

        The method that comes first would pay for all others.
        """
        network = self.network.train()
        kept = copy.deepcopy(network.state_dict())
        self.objective(network, self.data.take(slice(self.stage.batch))).backward()
        # A network that was trained may break no rule here, and then nothing is solved.
        with torch.no_grad():
            for weight in network.parameters():
                weight.add_(torch.randn_like(weight) * weight.std(correction=0))
        self.objective(network, self.data.take(slice(_WARM_UP))).backward()
        network.load_state_dict(kept)
        network.zero_grad()

    def _advance(self, stop: int) -> None:
        network, objective, optimiser = self.network, self.objective, self._optimiser
        batch, epoch_steps = self.stage.batch, self.stage.epoch(len(self.data))
        network.train()
        started = time.perf_counter()
        while self.step < stop:
            epoch, position = divmod(self.step, epoch_steps)
            last = min(epoch_steps, position + stop - self.step)
            data = self._shuffled(epoch, position * batch, last * batch)
            for first in range(0, len(data), batch):
                loss = objective(network, data.take(slice(first, first + batch)))
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
            self.step += last - position
        self.seconds += time.perf_counter() - started

    def _shuffled(self, epoch: int, first: int, last: int) -> Data:
        """Part of the samples in the order of an epoch."""
        order = epoch_order(len(self.data), self._seed, self._number, epoch)
        return self.data.take(order[first:last])

    def _check(self) -> None:
        """Keep the network where it is the best so far."""
        assert self.held is not None
        self.network.eval()
        with torch.no_grad():
            loss = float(self.objective(self.network, self.held))
        least = min((found for _, found in self.curve), default=math.inf)
        if loss < least or not self._best:
            self._best = copy.deepcopy(self.network.state_dict())
        self.curve.append((self.step, loss))


def epoch_order(samples: int, seed: int, number: int, epoch: int) -> torch.Tensor:
    """The order of so many samples in an epoch of a stage."""
    random = torch.Generator().manual_seed(_mixed(seed, number, epoch))
    return torch.randperm(samples, generator=random)


def _mixed(*numbers: int) -> int:
    """One seed out of several."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)
