"""Protocols: how long, in which batches and how fast, as data."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from gdpnet.errors import InputError


@dataclass(frozen=True)
class Stage:
    """One round of AdamW, without weight decay.

    Attributes:
        batch: samples of a step.
        rate: learning rate.
        epochs: passes over the training samples; or
        steps: steps, however many passes that is.
        check_every: steps between looks at the validation samples; the best network met is the
            stage's result, its start included. 0: no looks, the last network is.

    Example:
        >>> Stage(batch=32, rate=1e-3, epochs=5).total(100)
        20
    """

    batch: int
    rate: float
    epochs: int | None = None
    steps: int | None = None
    check_every: int = 0

    def __post_init__(self) -> None:
        for name in ("batch", "epochs", "steps"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise InputError(f"Stage: {name}: expected a whole number >= 1, got {value!r}.")
        if (self.epochs is None) == (self.steps is None):
            raise InputError("Stage: expected either epochs or steps.")
        if not 0 < self.rate < math.inf:
            raise InputError(f"Stage: rate: expected a positive number, got {self.rate!r}.")

    def epoch(self, samples: int) -> int:
        """Steps of a pass over so many samples."""
        return math.ceil(samples / self.batch)

    def total(self, samples: int) -> int:
        """Steps of the stage with so many training samples."""
        return self.steps or (self.epochs or 0) * self.epoch(samples)


@dataclass(frozen=True)
class Protocol:
    """How every method of a study is trained.

    Methods that are fine-tuned start from the network that the first stage made of the plain loss.

    Attributes:
        base: the first stage.
        finetune: the second.
        both: whether methods that are not fine-tuned get the second stage as well, so that all
            have the same number of steps.
        validation: share of the training samples that is kept back to choose the best network.

    Example:
        >>> slow = Stage(batch=1, rate=3e-3, epochs=500)
        >>> Protocol(base=slow, finetune=Stage(batch=1, rate=3e-3, epochs=15)).both
        False
    """

    base: Stage
    finetune: Stage
    both: bool = False
    validation: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.validation < 1:
            raise InputError(
                f"Protocol: validation: expected a share from 0 to 1, got {self.validation!r}."
            )
        if (self.base.check_every or self.finetune.check_every) and not self.validation:
            raise InputError("Protocol: check_every needs validation samples: set validation.")

    def held_back(self, size: int) -> int:
        """How many of so many samples are kept back for validation; one at least is not."""
        return min(size - 1, max(1, round(self.validation * size))) if self.validation else 0

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers, for a file."""
        return asdict(self)


PROTOCOLS = {
    "paper": Protocol(
        base=Stage(batch=256, rate=1e-3, epochs=5),
        finetune=Stage(batch=1, rate=1e-3, epochs=1),
    ),
    "converged": Protocol(
        base=Stage(batch=32, rate=3e-3, steps=2000, check_every=50),
        finetune=Stage(batch=32, rate=3e-3, steps=1000, check_every=50),
        both=True,
        validation=0.2,
    ),
    "quick": Protocol(
        base=Stage(batch=32, rate=1e-2, steps=400, check_every=50),
        finetune=Stage(batch=32, rate=3e-3, steps=200, check_every=50),
        both=True,
        validation=0.2,
    ),
}
"""By name: the paper's; one that trains every method to its best with the same steps; and the same
in a fraction of the time, for a first look."""


def protocol_named(name: str, more: dict[str, Protocol] | None = None) -> Protocol:
    """A protocol by name, out of the task's own and the usual ones."""
    known = {**PROTOCOLS, **(more or {})}
    if name not in known:
        raise InputError(f"There is no protocol {name!r}; known are {', '.join(known)}.")
    return known[name]
