"""The Euclidean norm: a quadratic program for each product, and the nearest of their answers.

Solvers are kept, one for each set of rows that a product has; a sample changes the linear cost and
right sides. Products that are empty at a sample's input are told by the solver's status.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np
import torch
from scipy.sparse import csc_matrix

from ..problem import Array, Part, Problem, Samples
from ._base import ByPattern

for _name in ("clarabel", "daqp", "moreau.torch", "piqp"):
    with suppress(ImportError):
        import_module(_name)  # now, so that no measured call pays for it

Key = tuple[tuple[int, ...], tuple[int, ...]]


class Separate(ByPattern):
    """Programs of products, by columns and rows."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.kept: dict[Key, Any] = {}

    def make(self, parts: tuple[Part, ...]) -> Any:
        made = []
        for part in parts:
            (block,) = part.blocks
            keys = [(part.columns, tuple(dict.fromkeys((*part.rows, *rows)))) for rows in block]
            for key in keys:
                if key not in self.kept:
                    self.kept[key] = self.setup(*(np.array(each, dtype=int) for each in key))
            made.append((np.array(part.columns, dtype=int), keys))
        return made

    @abstractmethod
    def setup(self, columns: Array, rows: Array) -> Any:
        """The solver of a product."""


class OneByOne(Separate):
    """A solver without batches and without gradients."""

    @abstractmethod
    def nearest(self, solver: Any, yhat: Array, right: Array) -> Array | None:
        """The point of a product; None if it is empty."""

    def solve(self, made: Any, yhat: torch.Tensor, samples: Samples, index: Array) -> torch.Tensor:
        start, bound = self.problem.start(samples)[index], samples.bound[index]
        y = start.copy()
        for columns, keys in made:
            for s in range(len(y)):
                own, best = start[s, columns], np.inf
                for key in keys:
                    solver, rows = self.kept[key]
                    found = self.nearest(solver, own, bound[s, rows])
                    if found is not None and (value := ((found - own) ** 2).sum()) < best:
                        best, y[s, columns] = value, found
        return torch.from_numpy(y)


class DAQP(OneByOne):
    """Dual active set."""

    def setup(self, columns: Array, rows: Array) -> Any:
        import daqp

        problem, model = self.problem, daqp.Model()
        equal = np.concatenate([np.zeros(len(columns), dtype=bool), problem.equality[rows]])
        upper = np.concatenate([problem.upper[columns], problem.random.bound[0, rows]])
        lower = np.concatenate([problem.lower[columns], np.full(len(rows), -1e30)])
        sense = np.where(equal, 5, 0).astype(np.int32)
        matrix = np.ascontiguousarray(problem.matrix[np.ix_(rows, columns)])
        lower[equal] = upper[equal]
        model.setup(np.eye(len(columns)), np.zeros(len(columns)), matrix, upper, lower, sense)
        return (model, upper, lower, sense, equal), rows

    def nearest(self, solver: Any, yhat: Array, right: Array) -> Array | None:
        model, upper, lower, sense, equal = solver
        upper[len(yhat) :] = right
        lower[equal] = upper[equal]
        # With flags of its own: it would else go on from where it ended.
        model.update(f=-yhat, bupper=upper, blower=lower, sense=sense)
        found, _, flag, _ = model.solve()
        return np.array(found) if flag > 0 else None


class PIQP(OneByOne):
    """Interior point, dense."""

    def setup(self, columns: Array, rows: Array) -> Any:
        import piqp

        problem, solver = self.problem, piqp.DenseSolver()
        equal = problem.equality[rows]
        matrix, right = problem.matrix[np.ix_(rows, columns)], problem.random.bound[0, rows]
        zero = np.zeros(len(columns))
        solver.setup(
            np.eye(len(columns)), zero, matrix[equal], right[equal], matrix[~equal], None,
            right[~equal], problem.lower[columns], problem.upper[columns],
        )  # fmt: skip
        return (solver, equal), rows

    def nearest(self, solver: Any, yhat: Array, right: Array) -> Array | None:
        import piqp

        model, equal = solver
        model.update(c=-yhat, b=right[equal], h_u=right[~equal])
        return np.array(model.result.x) if model.solve() == piqp.PIQP_SOLVED else None


class _Conic(Separate):
    """Rows of a product as `A y + s = b`, equalities first, then inequalities and bounds."""

    def rows_of(self, columns: Array, rows: Array) -> tuple[Array, Array, Array, int]:
        """Rows in their order, matrix, right side at the first sample, number of equalities."""
        problem = self.problem
        equal = problem.equality[rows]
        order = np.concatenate([rows[equal], rows[~equal]])
        eye = np.eye(len(columns))
        matrix = np.vstack([problem.matrix[np.ix_(order, columns)], eye, -eye])
        return order, matrix, self.right(columns, problem.random.bound[0, order]), int(equal.sum())

    def right(self, columns: Array, bound: Array) -> Array:
        """Right sides, of one sample or of many."""
        ends = np.concatenate([self.problem.upper[columns], -self.problem.lower[columns]])
        return np.concatenate([bound, np.broadcast_to(ends, (*bound.shape[:-1], len(ends)))], -1)


class Clarabel(_Conic, OneByOne):
    """Interior point, sparse."""

    def setup(self, columns: Array, rows: Array) -> Any:
        import clarabel

        order, matrix, right, equalities = self.rows_of(columns, rows)
        settings = clarabel.DefaultSettings()
        settings.verbose, settings.presolve_enable, settings.max_threads = False, False, 1
        cones = [
            clarabel.ZeroConeT(equalities),
            clarabel.NonnegativeConeT(len(right) - equalities),
        ]
        zero = np.zeros(len(columns))
        solver = clarabel.DefaultSolver(
            csc_matrix(np.eye(len(columns))), zero, csc_matrix(matrix), right, cones, settings
        )
        return (solver, columns), order

    def nearest(self, solver: Any, yhat: Array, right: Array) -> Array | None:
        import clarabel

        model, columns = solver
        model.update(q=-yhat, b=self.right(columns, right))
        found = model.solve()
        return np.array(found.x) if found.status == clarabel.SolverStatus.Solved else None


class Moreau(_Conic):
    """MOREAU's torch solver, a batch for each product; gradients from that of the nearest one."""

    differentiable = True
    whole = True

    def setup(self, columns: Array, rows: Array) -> Any:
        import moreau
        import moreau.torch

        order, matrix, right, equalities = self.rows_of(columns, rows)
        d, at = len(columns), np.nonzero(matrix)
        cones = moreau.Cones(num_zero_cones=equalities, num_nonneg_cones=len(right) - equalities)
        offsets = np.concatenate([[0], np.cumsum(np.bincount(at[0], minlength=len(right)))])
        values = torch.from_numpy(matrix[at])
        solvers: dict[int, Any] = {}  # one for each size of batch, as it wants it

        def of_size(n: int) -> Any:
            if n not in solvers:
                solvers[n] = moreau.torch.Solver(
                    n=d, m=len(right),
                    P_row_offsets=torch.arange(d + 1), P_col_indices=torch.arange(d),
                    A_row_offsets=torch.from_numpy(offsets), A_col_indices=torch.from_numpy(at[1]),
                    cones=cones, settings=moreau.Settings(device="cpu", batch_size=n),
                )  # fmt: skip
            return solvers[n]

        return (of_size, values), order

    def layer(self, yhat: torch.Tensor, samples: Samples, index: Array) -> torch.Tensor:
        """Each product once, for all samples whose active rules have it."""
        import moreau

        asked: dict[Key, list[int]] = {}
        for s, pattern in enumerate(samples.pattern[index].tolist()):
            for _, keys in self.made[pattern]:
                for key in keys:
                    asked.setdefault(key, []).append(s)
        lower, upper = torch.from_numpy(self.problem.lower), torch.from_numpy(self.problem.upper)
        start = torch.minimum(torch.maximum(yhat, lower), upper)
        y, least = start.clone(), torch.full(start.shape, torch.inf, dtype=torch.float64)
        for key, at in asked.items():
            (of_size, entries), order = self.kept[key]
            columns, n = np.array(key[0], dtype=int), len(at)
            own = start[np.ix_(at, columns)]
            right = torch.from_numpy(self.right(columns, samples.bound[np.ix_(index[at], order)]))
            solver = of_size(n)
            ones = torch.ones(n, len(columns), dtype=torch.float64)
            answer = solver.solve(ones, entries.expand(n, -1).contiguous(), -own, right)
            solved = torch.tensor(
                [each == moreau.SolverStatus.Solved for each in np.atleast_1d(solver.info.status)]
            )
            moved = (answer.x.detach() - own.detach()).square().sum(1)
            better = solved & (moved < least[np.ix_(at, columns[:1])].ravel())
            rows = torch.tensor(at)[better]
            where = (rows[:, None], torch.from_numpy(columns))
            y = y.index_put(where, answer.x[better])
            least = least.index_put(where, moved[better, None].expand(-1, len(columns)))
        return y

    def solve(self, made: Any, yhat: torch.Tensor, samples: Samples, index: Array) -> torch.Tensor:
        raise NotImplementedError("all patterns are solved together")
