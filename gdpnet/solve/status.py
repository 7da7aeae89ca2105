"""What became of each sample."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """Status of one projected sample; `.message` is the sentence a user reads.

    Example:
        >>> import gdpnet
        >>> gdpnet.Status(1).message
        'moved to the nearest output that satisfies all active rules'
    """

    SATISFIED = 0
    PROJECTED = 1
    RELAXED = 2
    CONFLICT = 3
    LIMIT = 4
    ERROR = 5
    UNSOLVED = 6

    @property
    def message(self) -> str:
        """What it means, and what to do."""
        return _MESSAGES[self]


_MESSAGES = {
    Status.SATISFIED: "the prediction already satisfies all active rules and passes unchanged",
    Status.PROJECTED: "moved to the nearest output that satisfies all active rules",
    Status.RELAXED: (
        "the relaxation was solved but its point breaks a rule; use relaxation='dnf' for outputs "
        "that satisfy every rule"
    ),
    Status.CONFLICT: (
        "no output satisfies all active rules and global constraints; "
        "rules.explain_conflict(x) names those that contradict each other"
    ),
    Status.LIMIT: (
        "the output satisfies the rules but is not proved to be the nearest: a limit was reached, "
        "raise time_limit, or node_limit of gdpnet.solve.Exact"
    ),
    Status.ERROR: (
        "the sample could not be used: NaN or infinity in it, or no output of its type beside the "
        "nearest point satisfies the rules within the tolerance (info.rounding has by how much "
        "they are broken; use float64, or smaller units)"
    ),
    Status.UNSOLVED: (
        "no output that satisfies the rules was found and none was excluded: a limit was reached, "
        "or the numbers are too close to decide; the prediction passes unchanged"
    ),
}
