"""What became of the samples of a class."""

from __future__ import annotations

from dataclasses import dataclass, field

UNFINISHED = "unfinished"


@dataclass
class Tally:
    """What became of the samples of a class.

    Attributes:
        samples: predictions that were judged, each in all its modes.
        failures: what is wrong, one sentence each.
        unfinished: answers with status LIMIT or UNSOLVED, and certificates refused.
        undecided: samples that are too large for the oracle.
    """

    samples: int = 0
    failures: list[str] = field(default_factory=list)
    unfinished: int = 0
    undecided: int = 0

    def add(self, other: Tally) -> None:
        self.samples += other.samples
        self.failures += other.failures
        self.unfinished += other.unfinished
        self.undecided += other.undecided
