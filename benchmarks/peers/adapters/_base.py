"""What a peer has to do, and the grouping by active rules that most of them need."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch

from ..problem import Array, Part, Problem, Samples
from ..program import Program


class NotSupportedError(Exception):
    """The peer cannot express or hold this problem; the message tells why."""


class Peer(ABC):
    """Projects predictions.

    Attributes:
        differentiable: whether gradients flow through `layer`.
        whole: whether a call takes about as long for few samples as for many, so that a batch
            must not be cut.
    """

    differentiable = False
    whole = False

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def prepare(self, samples: Samples, index: Array) -> None:
        """Build what these samples need, so that calls are not the first ones."""
        del samples, index  # most need something

    @abstractmethod
    def layer(self, yhat: torch.Tensor, samples: Samples, index: Array) -> torch.Tensor:
        """Projected predictions (n, d) of the samples `index`, whose predictions are `yhat`."""


class ByPattern(Peer):
    """A peer that needs one program for each set of active rules.

    Attributes:
        form: of the problem's `forms`.
        shifted: which copies the program has.
    """

    form = "dnf"
    shifted = True

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        if problem.forms[self.form] is None:
            count = 1
            for rule in problem.rules:
                count *= len(rule)
            raise NotSupportedError(f"too large: {count:.0e} products to write down")
        self.made: dict[int, Any] = {}

    def prepare(self, samples: Samples, index: Array) -> None:
        forms = self.problem.forms[self.form]
        assert forms is not None
        for pattern in np.unique(samples.pattern[index]).tolist():
            if pattern not in self.made:
                self.made[pattern] = self.make(forms[pattern])

    def program(self, parts: tuple[Part, ...]) -> Program:
        """The matrices of a pattern."""
        return Program(self.problem, parts, self.shifted)

    @abstractmethod
    def make(self, parts: tuple[Part, ...]) -> Any:
        """What is kept for a pattern."""

    @abstractmethod
    def solve(self, made: Any, yhat: torch.Tensor, samples: Samples, index: Array) -> torch.Tensor:
        """As `layer`, for samples of one pattern."""

    def layer(self, yhat: torch.Tensor, samples: Samples, index: Array) -> torch.Tensor:
        pattern = samples.pattern[index]
        if (pattern == pattern[0]).all():
            return self.solve(self.made[int(pattern[0])], yhat, samples, index)
        order = np.argsort(pattern, kind="stable")
        edges = np.flatnonzero(np.diff(pattern[order])) + 1
        found = []
        for group in np.split(order, edges):
            made = self.made[int(pattern[group[0]])]
            found.append(self.solve(made, yhat[torch.from_numpy(group)], samples, index[group]))
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return torch.cat(found)[torch.from_numpy(back)]


class OneByOne(ByPattern):
    """A solver without batches and without gradients."""

    shifted = False

    @abstractmethod
    def solution(self, made: Any, theta: Array) -> Array:
        """Variables of the program of a pattern at the parameters of a sample."""

    @abstractmethod
    def program_of(self, made: Any) -> Program:
        """The program that was made."""

    def solve(self, made: Any, yhat: torch.Tensor, samples: Samples, index: Array) -> torch.Tensor:
        program = self.program_of(made)
        theta = program.parameters(samples, index)
        start = self.problem.start(samples)[index]
        y = [program.point(self.solution(made, t), s) for t, s in zip(theta, start, strict=True)]
        return torch.from_numpy(np.array(y))


class Batched(ByPattern):
    """A differentiable layer over programs of one pattern."""

    differentiable = True
    form = "qp"
    eps = 1e-2

    def parameters(self, yhat: torch.Tensor, samples: Samples, index: Array) -> torch.Tensor:
        """Those of a shifted program, (n, parameters); they follow the predictions."""
        problem = self.problem
        lower, upper = torch.from_numpy(problem.lower), torch.from_numpy(problem.upper)
        start = torch.minimum(torch.maximum(yhat, lower), upper)
        bound = torch.from_numpy(samples.bound[index])
        slack = bound - start @ torch.from_numpy(problem.matrix.T)
        return torch.cat([slack, lower - start, upper - start], 1)

    def start(self, yhat: torch.Tensor) -> torch.Tensor:
        """Predictions within the bounds."""
        lower, upper = torch.from_numpy(self.problem.lower), torch.from_numpy(self.problem.upper)
        return torch.minimum(torch.maximum(yhat, lower), upper)


def dense(rows: Any, theta: torch.Tensor) -> torch.Tensor:
    """Matrices of `Rows` for a batch of parameters, (n, rows, variables)."""
    fixed = torch.from_numpy(rows.matrix.toarray())
    moving = torch.from_numpy(rows.sign) * theta[:, torch.from_numpy(rows.source)]
    where = (torch.from_numpy(rows.row), torch.from_numpy(rows.column))
    batch = torch.arange(len(theta))[:, None]
    return fixed.expand(len(theta), -1, -1).index_put((batch, *where), moving)


def refuse_dense(program: Program, limit: float = 2e8) -> None:
    """Refuse a program whose matrices do not fit densely, a sample a few times over."""
    entries = program.size * (program.size + len(program.less.right) + len(program.equal.right))
    if 8.0 * entries > limit:
        raise NotSupportedError(f"too large: dense matrices of {8e-9 * entries:.1f} GB a sample")
