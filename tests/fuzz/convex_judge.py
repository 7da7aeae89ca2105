"""Projections onto rules with convex rows against Clarabel, product by product, with margins.

What is told of a sample is compared with two programs: that of the rules relaxed by a margin, whose
distance an answer must not fall short of, and that of the rules tightened by it, whose distance it
must not exceed. What is infeasible when tightened has no interior to speak of, and what a solver
widens is no point: points that an answer is compared with hold by themselves.
"""

from __future__ import annotations

import itertools
import warnings
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import clarabel
import numpy as np
from scipy import sparse

import gdpnet
from gdpnet import Status
from gdpnet.errors import ConflictWarning
from tests.fuzz.convex import Array, ConvexCase, Piece, convex_case
from tests.fuzz.tally import UNFINISHED, Tally

CONVEX = {"convex": 0.0, "convex_thin": 0.35}
"""Classes, and the share of disjuncts without an interior."""

MARGIN = 1e-8  # by which rules are relaxed and tightened, of their sizes
CLOSE = 2e-6  # distances, in units of the heaviest output
EQUAL = 2e-10  # distances that count as equal, relative
OF_THIN = 1e-3  # tolerances widen what touches by their root
HOLDS = 1e-9  # docs/convex.md
ROUNDING = 1e-12  # of rows that are computed here in another order than where they were shrunk


def judge_convex(name: str, seed: int) -> Tally:
    """Project the case of a class and a seed in every mode, and compare."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    case, tally = convex_case(rng, CONVEX[name]), Tally()
    tally.samples = len(case.yhat)
    for norm in ("l1", "l2"):
        oracles = [_Oracle(case, yhat.numpy(), norm) for yhat in case.yhat]
        for mode, keywords in _modes(case):
            where = f"{name} seed {seed} %s{norm} {mode}"
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConflictWarning)
                    p = gdpnet.project(
                        case.rules, case.yhat, norm=norm, weights=case.weights.tolist(), **keywords
                    )
            except Exception as error:  # whatever it is, it is a finding
                tally.failures.append(f"{where % ''}: {type(error).__name__}: {error}")
                continue
            for i, oracle in enumerate(oracles):
                for found in _compare(mode, oracle, p, i):
                    if found == UNFINISHED:
                        tally.unfinished += 1
                    else:
                        tally.failures.append(f"{where % f'sample {i} '}: {found}")
    return tally


def _modes(case: ConvexCase) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "auto", {}
    if not case.thin:
        yield "strict", {"strict": True}
    if np.isfinite(case.lower).all() and not case.whole.any():
        yield "cnf", {"relaxation": "cnf"}
        if len(case.disjuncts) > 1:
            yield "pdnf:2", {"relaxation": "pdnf:2"}


def _compare(mode: str, oracle: _Oracle, p: Any, i: int) -> Iterator[str]:
    status, y = Status(int(p.status[i])), p.y[i].numpy()
    size = max(1.0, float(np.abs(oracle.yhat).max()))
    if status is Status.CONFLICT:
        if oracle.inside() < np.inf:
            yield f"CONFLICT, yet there is a point at {oracle.inside()!r}"
        return
    if status in (Status.LIMIT, Status.UNSOLVED):
        yield UNFINISHED
        # What auxiliaries without a cost, or Clarabel on a relaxation, leave open is counted.
        searched = mode in ("auto", "strict") and len(oracle.case.lower) == oracle.d
        if searched and not oracle.case.thin:
            yield f"{status.name}, yet every set has an interior"
    if status in (Status.SATISFIED, Status.PROJECTED, Status.LIMIT):
        allowed = ROUNDING if p.info.strict is not None and bool(p.info.strict[i]) else HOLDS
        if not oracle.holds(y, allowed if mode in ("auto", "strict") else 1e-6):
            yield f"{status.name}, yet rules do not hold at {y.tolist()}"
    if mode in ("auto", "strict"):
        if status in (Status.SATISFIED, Status.PROJECTED):
            own = oracle.distance_of(y)
            if abs(own - float(p.distance[i])) > 1e-9 * max(size, own):
                yield f"distance {float(p.distance[i])!r}, yet y is at {own!r}"
            yield from _far(oracle, own, size)
        return
    if status in (Status.SATISFIED, Status.PROJECTED, Status.RELAXED):
        value = float(p.value[i])
        bound = value if oracle.norm == "l1" else value**0.5
        if bound > oracle.outside() + 10 * CLOSE * size and bound > oracle.inside() + CLOSE * size:
            yield f"lower bound {bound!r}, yet there is a point at {oracle.inside()!r}"


def _far(oracle: _Oracle, own: float, size: float) -> Iterator[str]:
    """Whether a distance is less than is possible, or more than that of a point."""
    slack = CLOSE * max(1.0, float(oracle.case.weights.max())) + EQUAL * own + 1e-15 * size
    below = oracle.outside()
    # Near the rules squares are what is known.
    if own < below - slack and (oracle.norm == "l1" or own**2 < below**2 - slack):
        yield f"at {own!r}, yet nothing is nearer than {below!r}"
    above = oracle.inside()
    if oracle.case.thin:  # right to about 1e-6, told of as such
        above, slack = min(above, oracle.least(0.0)), slack + OF_THIN * max(1.0, own)
    if own > above + slack and (oracle.norm == "l1" or own**2 > above**2 + slack):
        yield f"at {own!r}, yet a point is at {above!r}"


class _Oracle:
    """What is right for one prediction and norm."""

    def __init__(self, case: ConvexCase, yhat: Array, norm: str) -> None:
        self.case, self.yhat, self.norm = case, yhat, norm
        self.d = len(yhat)
        self._known: dict[float, float] = {}

    def inside(self) -> float:
        """Distance to the rules tightened by the margin."""
        return self.least(-MARGIN)

    def outside(self) -> float:
        """Distance to the rules relaxed by the margin."""
        return self.least(MARGIN)

    def distance_of(self, y: Array) -> float:
        away = self.case.weights * np.abs(y - self.yhat)
        return float(away.sum() if self.norm == "l1" else np.linalg.norm(away))

    def holds(self, y: Array, tolerance: float) -> bool:
        """Whether some product has values of the auxiliaries with which it holds."""
        case = self.case
        low, high = case.lower[: self.d], case.upper[: self.d]
        if ((y < low - tolerance * np.maximum(1.0, np.abs(low))) | (y > high + tolerance)).any():
            return False
        if (np.rint(y) != y)[case.whole[: self.d]].any():
            return False
        if len(case.lower) == self.d:
            return any(
                all(piece.excess(y) <= tolerance * piece.size for piece in pieces)
                for pieces in self._products()
            )
        # Clarabel finds the auxiliaries, to its own accuracy.
        lower, upper = case.lower.copy(), case.upper.copy()
        lower[: self.d], upper[: self.d] = y - 1e-9, y + 1e-9
        relaxed = ([p.relaxed(1e-7) for p in pieces] for pieces in self._products())
        return any(self._solve(pieces, lower, upper) < np.inf for pieces in relaxed)

    def least(self, by: float) -> float:
        """Least distance over the products, relaxed by a multiple of their sizes."""
        if by not in self._known:
            self._known[by] = min(
                self._solve([piece.relaxed(by) for piece in pieces], lower, upper, known=by <= 0.0)
                for pieces in self._products()
                for lower, upper in self._boxes()
            )
        return self._known[by]

    def _products(self) -> Iterator[list[Piece]]:
        for choice in itertools.product(*self.case.disjuncts):
            yield [*self.case.always, *(piece for pieces in choice for piece in pieces)]

    def _boxes(self) -> Iterator[tuple[Array, Array]]:
        case = self.case
        columns = np.flatnonzero(case.whole)
        ranges = [range(int(case.lower[j]), int(case.upper[j]) + 1) for j in columns]
        for values in itertools.product(*ranges):
            lower, upper = case.lower.copy(), case.upper.copy()
            lower[columns] = upper[columns] = values
            yield lower, upper

    def _solve(
        self, pieces: Sequence[Piece], lower: Array, upper: Array, known: bool = False
    ) -> float:
        """The distance of Clarabel's point; infinite where `known` and it does not hold."""
        z = _Program(self.d, lower, upper, pieces).nearest(self.yhat, self.case.weights, self.norm)
        if z is None:
            return np.inf
        z = np.clip(z[: len(lower)], lower, upper)
        # What a solver widens is no point.
        if known and any(piece.excess(z) > 0.5 * MARGIN * piece.size for piece in pieces):
            return np.inf
        return self.distance_of(z[: self.d])


class _Program:
    """A conic program over z, what functions are at most, and what outputs are away."""

    def __init__(self, d: int, lower: Array, upper: Array, pieces: Sequence[Piece]) -> None:
        self.d, self.n = d, len(lower)
        curved = [piece for piece in pieces if piece.shape != "linear"]
        self.width = self.n + len(curved) + d
        self.lines: list[Array] = []
        self.right: list[Array] = []
        self.cones: list[Any] = []
        finite = np.isfinite(lower), np.isfinite(upper)
        one = np.eye(self.n)
        self._nonnegative(self._wide(one[finite[0]]), -lower[finite[0]])
        self._nonnegative(-self._wide(one[finite[1]]), upper[finite[1]])
        at = self.n
        for piece in pieces:
            row = -self._wide(piece.slope[None])
            if piece.shape != "linear":
                row[0, at] = -piece.weight
                self._above(piece, at)
                at += 1
            factor = 1.0 / max(1e-12, float(np.abs(row).max()))
            self._nonnegative(row * factor, np.array([piece.bound * factor]))

    def _wide(self, matrix: Array) -> Array:
        return np.hstack([matrix, np.zeros((len(matrix), self.width - matrix.shape[1]))])

    def _nonnegative(self, matrix: Array, shift: Array) -> None:
        self._cone(clarabel.NonnegativeConeT(len(shift)), matrix, shift)

    def _cone(self, cone: Any, matrix: Array, shift: Array) -> None:
        """`matrix v + shift` lies in it."""
        if len(shift):
            self.lines.append(-matrix)
            self.right.append(shift)
            self.cones.append(cone)

    def _above(self, piece: Piece, at: int) -> None:
        """Column `at` is at least the function."""
        inner, shift = self._wide(piece.matrix), -piece.at
        s = np.zeros((1, self.width))
        s[0, at] = 1.0
        zero, one = np.zeros((1, self.width)), np.ones(1)
        if piece.shape == "squares":  # |2 t, s - 1| <= s + 1
            lines = np.vstack([s, s, 2.0 * inner])
            self._cone(
                clarabel.SecondOrderConeT(len(lines)), lines, np.concatenate([one, -one, 2 * shift])
            )
        elif piece.shape == "norm":
            lines = np.vstack([s, inner])
            self._cone(
                clarabel.SecondOrderConeT(len(lines)), lines, np.concatenate([0 * one, shift])
            )
        elif piece.shape == "exp":  # (t, 1, s)
            lines = np.vstack([inner, zero, s])
            self._cone(clarabel.ExponentialConeT(), lines, np.concatenate([shift, one, 0 * one]))
        elif piece.shape == "log":  # (-s, 1, t)
            lines = np.vstack([-s, zero, inner])
            self._cone(clarabel.ExponentialConeT(), lines, np.concatenate([0 * one, one, shift]))
        else:
            self._power(piece.exponent, inner, shift, s)

    def _power(self, p: float, t: Array, shift: Array, s: Array) -> None:
        zero, one, none = np.zeros_like(s), np.ones(1), np.zeros(1)
        if p > 1.0:  # |t| <= s^(1/p), and t >= 0 unless p is even
            self._cone(
                *(clarabel.PowerConeT(1.0 / p), np.vstack([s, zero, t])),
                np.concatenate([none, one, shift]),
            )
            if p % 2.0:
                self._nonnegative(t, shift)
        elif p > 0.0:  # -s <= t^p
            self._cone(
                *(clarabel.PowerConeT(p), np.vstack([t, zero, -s])),
                np.concatenate([shift, one, none]),
            )
        else:  # 1 <= s^(1 / (1 - p)) t^(-p / (1 - p))
            self._cone(
                *(clarabel.PowerConeT(1.0 / (1.0 - p)), np.vstack([s, t, zero])),
                np.concatenate([none, shift, one]),
            )

    def nearest(self, yhat: Array, weights: Array, norm: str) -> Array | None:
        """The nearest z; None where there is none."""
        d = self.d
        cost, curvature = np.zeros(self.width), np.zeros(self.width)
        # Far predictions are brought to where their direction is all that counts.
        if norm == "l1":
            inside = np.clip(yhat, -1e3, 1e3)
            away = np.zeros((2 * d, self.width))
            for j in range(d):
                away[j, [j, self.width - d + j]] = -1.0, 1.0
                away[d + j, [j, self.width - d + j]] = 1.0, 1.0
            self._nonnegative(away, np.concatenate([inside, -inside]))
            cost[self.width - d :] = weights
        else:
            size = max(1.0, float(np.abs(yhat).max()) / 1e3)
            curvature[:d] = 2.0 * weights**2 / size
            cost[:d] = -2.0 * weights**2 * (yhat / size)
        matrix = sparse.csc_matrix(np.vstack(self.lines))
        for accuracy in (1e-10, 1e-8):
            settings = clarabel.DefaultSettings()
            settings.verbose = False
            settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = accuracy
            found = clarabel.DefaultSolver(
                *(sparse.csc_matrix(np.diag(curvature)), cost, matrix),
                *(np.concatenate(self.right), self.cones, settings),
            ).solve()
            if "Infeasible" in str(found.status):
                return None
            if str(found.status) == "Solved":
                break
        return np.array(found.x)
