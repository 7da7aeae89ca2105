"""What the exact engine found, as an answer that is made when somebody looks."""

from __future__ import annotations

from typing import Any

import numpy as np

from gdpnet.solve.base import Answer, Request
from gdpnet.solve.exact.linearisation import ExactLinearisation
from gdpnet.solve.status import Status

_SOLVERS = ("none", "exact", "milp")

# By outcome of the engine: solved, no solution, node limit, numerical trouble, accepted as it is.
_STATUS = np.array(
    [Status.PROJECTED, Status.CONFLICT, Status.UNSOLVED, Status.UNSOLVED, Status.SATISFIED],
    dtype=np.int8,
)


class ExactAnswer(Answer):
    """What the engine found; all but y is made when it is first asked for.

    Args:
        request: the batch.
        linearisation: what was found.
    """

    __slots__ = ("looked_at", "proved")

    def __init__(self, request: Request, linearisation: ExactLinearisation) -> None:
        self.linearisation, self.looked_at = linearisation, False
        found = linearisation.found
        if found is None:
            self.proved, z = linearisation.solved.proved, linearisation.solved.z
        else:
            self.proved, z = found[0].proved, found[1]
        d = request.yhat.shape[1]
        self.y = z if z.shape[1] == d else z[:, :d]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # of no answer; copy and pickle ask for such
            raise AttributeError(name)
        linearisation, self.looked_at = self.linearisation, True
        assert isinstance(linearisation, ExactLinearisation)
        engine, solved = linearisation.engine, linearisation.solved
        active = linearisation.instance.active
        self.status = _STATUS.take(solved.status)
        self.value, self.assignment, self.nodes = solved.distance, solved.assignment, solved.nodes
        self.active = active if engine.all_rules else active[:, engine.rule_clauses]
        self.solver, self.solvers = np.ones(len(solved.z), np.int8), _SOLVERS
        self.auxiliaries = solved.z[:, self.y.shape[1] :]
        self.notes = {}
        return object.__getattribute__(self, name)

    @property
    def ordinary(self) -> bool:
        """Whether every sample is projected, or was right as it was."""
        return super().ordinary if self.looked_at else self.proved
