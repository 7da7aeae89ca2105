"""The Euclidean projection by plain enumeration: a quadratic program of DAQP for every choice."""

from __future__ import annotations

from typing import Any

import clarabel
import daqp
import numpy as np
from scipy import sparse

import gdpnet
from gdpnet.ir.instance import Instance

INF = float("inf")


class Oracle:
    """All choices of disjuncts and whole numbers of one sample.

    Args:
        rules: the rules.
        yhat: prediction, `d`.
        x: inputs, `p`, or None.
        weights: `d`, or None.
    """

    def __init__(
        self, rules: gdpnet.RuleModel, yhat: Any, x: Any = None, weights: Any = None
    ) -> None:
        data = self.data = rules.data
        self.yhat = np.asarray(yhat, dtype=float)
        d, n = data.outputs, len(data.columns)
        self.square = np.zeros(n)
        self.square[:d] = 1.0 if weights is None else np.asarray(weights, dtype=float) ** 2
        inputs = np.zeros(0) if x is None else np.asarray(x, dtype=float)
        instance = Instance.of(rules, np.ascontiguousarray(inputs)[None])
        self.active, self.bound = instance.active[0], instance.bound[0].copy()
        self.rows = np.zeros((len(data.rows), n))
        varying = 0
        for i, row in enumerate(data.rows):
            if all(a.is_number for _, a in row.terms):
                for j, a in row.terms:
                    self.rows[i, j] += a.number
            else:
                self.rows[i] = instance.varying[0, varying]
                varying += 1
        size = np.abs(self.rows).max(1, initial=0.0)
        size[size == 0.0] = 1.0
        self.rows, self.bound = self.rows / size[:, None], self.bound / size
        self.lower = np.array([c.lower for c in data.columns])
        self.upper = np.array([c.upper for c in data.columns])
        self.best, self.point, self.programs = INF, np.full(n, np.nan), 0

    def solve(self) -> float:
        """The squared distance of the nearest point, infinite where there is none."""
        self._descend({}, frozenset(self.data.global_rows))
        return self.best

    def _descend(self, truth: dict[int, bool], enforced: frozenset[int]) -> None:
        value, z = self._program(enforced)
        if value == INF or (self.best < INF and value >= self.best - 1e-11 * max(1.0, self.best)):
            return
        options = self._next(truth)
        for literal in options or ():
            k, chosen = abs(literal) - 1, literal > 0
            boolean = self.data.booleans[k]
            rows = boolean.true_rows if chosen else boolean.false_rows
            self._descend({**truth, k: chosen}, enforced | frozenset(rows))
        if options is not None:
            return
        whole = [j for j, c in enumerate(self.data.columns) if c.integer]
        column = max(whole, key=lambda j: abs(z[j] - round(z[j])), default=None)
        if column is None or abs(z[column] - round(z[column])) <= 1e-7:
            kept = self.lower.copy(), self.upper.copy()
            self.lower[whole] = self.upper[whole] = np.round(z[whole])
            value, z = self._program(enforced)
            self.lower, self.upper = kept
            if value < self.best:
                self.best, self.point = value, z
            return
        low, high = self.lower[column], self.upper[column]
        self.upper[column] = np.floor(z[column])
        self._descend(truth, enforced)
        self.lower[column], self.upper[column] = np.ceil(z[column]), high
        self._descend(truth, enforced)
        self.lower[column] = low

    def _next(self, truth: dict[int, bool]) -> list[int] | None:
        """Literals of a clause that is still open, None if there is none."""
        named = set()
        for c, clause in enumerate(self.data.clauses):
            if not self.active[c] or (clause.guard >= 0 and not truth.get(clause.guard, False)):
                continue
            named |= {abs(k) - 1 for k in clause.literals}
            if any(truth.get(abs(k) - 1) == (k > 0) for k in clause.literals):
                continue
            return [k for k in clause.literals if abs(k) - 1 not in truth]
        for k in sorted(named - truth.keys()):
            if self.data.booleans[k].false_rows:
                return [k + 1, -k - 1]
        return None

    def _program(self, enforced: frozenset[int]) -> tuple[float, np.ndarray]:
        self.programs += 1
        which = sorted(enforced)
        empty = [i for i in which if not self.rows[i].any()]
        nothing = INF, np.full(len(self.lower), np.nan)
        if (self.lower > self.upper).any():
            return nothing
        for i in empty:
            if self.bound[i] < -1e-9 or (self.data.rows[i].equality and self.bound[i] > 1e-9):
                return nothing
        which = [i for i in which if i not in empty]
        # DAQP wants strictly convex programs.
        found = self._by_daqp(which) if self.square.all() else None
        return self._by_clarabel(which) if found is None else found

    def _by_daqp(self, which: list[int]) -> tuple[float, np.ndarray] | None:
        n = len(self.lower)
        equal = np.array([self.data.rows[i].equality for i in which], dtype=bool)
        high = np.concatenate([self.upper, self.bound[which]])
        low = np.concatenate([self.lower, np.where(equal, self.bound[which], -1e30)])
        fixed = self.lower == self.upper
        sense = np.concatenate([np.where(fixed, 5, 0), np.where(equal, 5, 0)]).astype(np.int32)
        rows = np.ascontiguousarray(self.rows[which])
        moved = np.concatenate([self.yhat, rows @ self.yhat])
        u, _, flag, _ = daqp.solve(
            *(np.diag(self.square), np.zeros(n), rows),
            *(np.clip(high, -1e30, 1e30) - moved, np.clip(low, -1e30, 1e30) - moved, sense),
            primal_tol=1e-11,
        )
        z = u + self.yhat
        excess = np.concatenate([self.lower - z, z - self.upper, rows @ z - self.bound[which]])
        short = (self.bound[which] - rows @ z)[equal]
        size = max(1.0, float(np.abs(z).max(initial=0.0)))
        if flag != 1 or max(excess.max(initial=0.0), short.max(initial=0.0)) > 1e-8 * size:
            return None  # also what it calls infeasible gets a second opinion
        return float(self.square @ (u * u)), z

    def _by_clarabel(self, which: list[int]) -> tuple[float, np.ndarray]:
        d, n = self.data.outputs, len(self.lower)
        shift = np.concatenate([self.yhat, np.zeros(n - d)])
        equal = np.array([self.data.rows[i].equality for i in which], dtype=bool)
        rows, bound = self.rows[which], self.bound[which]
        a, b = [rows[equal], rows[~equal]], [bound[equal], bound[~equal]]
        for sign, side in ((1.0, self.upper), (-1.0, self.lower)):
            finite = np.isfinite(side)
            a.append(sign * np.eye(n)[finite])
            b.append(sign * side[finite])
        matrix, right = np.vstack(a), np.concatenate(b)
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
        solver = clarabel.DefaultSolver(
            sparse.csc_matrix(np.diag(self.square)),
            np.zeros(n),
            sparse.csc_matrix(matrix),
            right - matrix @ shift,
            [
                clarabel.ZeroConeT(int(equal.sum())),
                clarabel.NonnegativeConeT(len(right) - int(equal.sum())),
            ],
            settings,
        )
        found = solver.solve()
        u = np.array(found.x)
        over = matrix @ (u + shift) - right
        over[: int(equal.sum())] = np.abs(over[: int(equal.sum())])
        if "Infeasible" in str(found.status) or over.max(initial=0.0) > 1e-7:
            return INF, np.full(n, np.nan)
        return float(self.square @ (u * u)), u + shift
