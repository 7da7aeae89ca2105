"""Finds certificates: a depth-first search with the optimum already known.

Nodes are linear programs in HiGHS, or Euclidean projections. What they say is only a hint: a leaf
is kept if its multipliers, in the arithmetic of the check itself, prove enough.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import torch

from gdpnet import core
from gdpnet.errors import InputError, SolverError
from gdpnet.ir.rules import Rules
from gdpnet.ir.semantics import enforced
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.projection import project
from gdpnet.proof._exactly import vanish
from gdpnet.proof._instance import Branch, Number, RationalInstance
from gdpnet.proof._prices import price_at
from gdpnet.proof._relaxation import NodeAnswer, NodeRelaxation
from gdpnet.proof._tangents import touching
from gdpnet.proof._tree import BooleanNode, Certificate, ClauseNode, ColumnNode, Leaf, Node, Touch
from gdpnet.solve.status import Status

# By how much the bound of a leaf may fall short, as in `Instance.slack`: when a node is taken as a
# leaf, and when nothing is left to branch on (a y in single precision is not the nearest point,
# only nearly so).
_SHORT = 2e-8
_LAST = 5e-7

# Around a convex set without an interior, points that break its rows by next to nothing are this
# much nearer: it does not follow that y is not the nearest.
_THIN = 1e-3

# A convex row is touched where that cuts off more than this, relative to the point; so often at a
# node before it is branched, and so often where there is nothing to branch on.
_DEPTH = 1e-10
_ROUNDS = 8
_LAST_ROUNDS = 500

# Clauses whose children are looked at before one is chosen.
_LOOKS = 4

Multipliers = list[tuple[int, Fraction]]


def certificate(
    rules: Rules,
    instance: RationalInstance,
    x: torch.Tensor,
    yhat: torch.Tensor,
    y: torch.Tensor | None,
    *,
    time_limit: float | None,
    node_limit: int,
) -> Certificate:
    """See `gdpnet.proof.certificate.certify`.

    Args:
        rules: the rules.
        instance: the problem.
        x: inputs, `p`.
        yhat: prediction, `d`.
        y: nearest outputs, `d`, or None.
        time_limit: seconds.
        node_limit: nodes of the tree.
    """
    deadline = None if time_limit is None else time.monotonic() + time_limit
    if y is None:
        weights = [float(w) for w in instance.weights]
        found = project(rules, yhat, x, norm=instance.norm, weights=weights, time_limit=time_limit)
        status = Status(int(found.status))
        if status not in (Status.SATISFIED, Status.PROJECTED, Status.CONFLICT):
            raise SolverError(f"certify: the nearest output was not found: {status.message}")
        y = None if status is Status.CONFLICT else found.y
    price = Fraction(0) if y is None else price_at(rules, instance, x, y, TOLERANCES.satisfied)
    return _CertificateSearch(
        instance, None if y is None else y.tolist(), price, deadline, node_limit
    ).run()


class _CertificateSearch:
    def __init__(
        self,
        instance: RationalInstance,
        y: list[float] | None,
        price: Fraction,
        deadline: float | None,
        node_limit: int,
    ) -> None:
        self.instance = instance
        self.value: Number = float("inf") if y is None else instance.away(y) + price
        self.short = Fraction(0) if y is None else instance.slack(y, _SHORT, price)
        self.last = Fraction(0) if y is None else instance.slack(y, _LAST, price)
        thin = _THIN if instance.curved else 0.0
        self.thin = Fraction(0) if y is None else instance.slack(y, thin, price)
        self.deadline = deadline
        self.node_limit = node_limit
        instance.forget_tangents()
        self.relaxation = _relaxation(instance)
        whole = instance.curved and y is not None and len(y) == len(instance.lower)
        self.known = np.array(y) if whole else None
        if self.known is not None:
            self._touch(sorted(instance.curved), self.known, depth=-np.inf)
        self.nodes: list[Node | None] = [None]
        self.least: Number = float("inf")
        data, named = instance.data, instance.named
        self.decided = [
            k
            for k, boolean in enumerate(data.booleans)
            if k in named and boolean.tied and boolean.false_rows
        ]

    def run(self) -> Certificate:
        stack = [(0, self.instance.root)]
        while stack:
            index, path = stack.pop()
            self._heed_limits()
            node, paths = self._node(path)
            first = len(self.nodes)
            self.nodes += [None] * len(paths)
            self.nodes[index] = _linked(node, range(first, len(self.nodes)))
            stack += list(zip(range(first, len(self.nodes)), paths, strict=True))
        nodes = tuple(node for node in self.nodes if node is not None)
        return self._used(nodes)

    def _heed_limits(self) -> None:
        if len(self.nodes) > self.node_limit:
            raise SolverError(
                f"certify: not proved within {self.node_limit} nodes. Raise node_limit."
            )
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise SolverError(
                f"certify: not proved within the time limit, at {len(self.nodes)} nodes."
            )

    def _node(self, path: Branch) -> tuple[Node, list[Branch]]:
        """A leaf, or an inner node whose children are still to be numbered."""
        forced = self._forced(path)
        if forced is not None:
            return self._branch(path, forced, self.instance.data.clauses[forced].literals)
        answer: NodeAnswer
        leaf: Leaf | None
        for rounds in itertools.count():
            solved = self._solve(path)
            if solved is None:
                return self._without_a_point(path), []
            answer, leaf = solved, None
            bound: Number = float("-inf")
            if answer.value >= self.value - self.short / 2:
                leaf, bound = self._leaf(path, answer)
                if bound >= self.value - self.short:
                    self.least = min(self.least, bound)
                    return leaf, []
            if rounds < _ROUNDS and self._cut_off(path, answer.point):
                continue
            found = self._split(path, answer.point, TOLERANCES.holds)
            if found is not None:
                return found
            if rounds < _LAST_ROUNDS and self._cut_off(path, answer.point):
                continue
            found = self._split(path, answer.point, -1.0)  # at last, on all that is not chosen
            if found is not None:
                return found
            break
        if leaf is None:
            leaf, bound = self._leaf(path, answer)
        self._accept(bound, answer.value)
        self.least = min(self.least, bound)
        return leaf, []

    # ---- tangents ------------------------------------------------------------------------

    def _cut_off(self, path: Branch, point: np.ndarray) -> bool:
        """Tangents at a point of the convex rows that it breaks; False where there are none."""
        curved = sorted(self.instance.curved & path.upper)
        if not curved:
            return False
        self._heed_limits()
        return self._touch(curved, point, _DEPTH * max(1.0, float(np.abs(point).max())))

    def _touch(self, rows: list[int], point: np.ndarray, depth: float) -> bool:
        """Add the tangents at a point that cut off more than a depth; False where none does."""
        values, known = self.relaxation.values(point), set(self.instance.tangents)
        found = [touching(self.instance.data.rows[row], row, values) for row in rows]
        fresh = [t for t in found if t not in known and self._depth(t, point) > depth]
        if fresh:
            self.instance.touch(fresh)
            self.relaxation = _relaxation(self.instance)
        return bool(fresh)

    def _depth(self, tangent: Touch, point: np.ndarray) -> float:
        """By how much a tangent is broken at a point; its coefficients are about 1."""
        terms, bound, _ = self.instance.tangent(tangent)
        return float(sum((a * Fraction(float(point[j])) for j, a in terms), -bound))

    def _used(self, nodes: tuple[Node, ...]) -> Certificate:
        """The certificate, with the tangents that have a multiplier."""
        first = len(self.instance.data.rows)
        leaves = [node for node in nodes if isinstance(node, Leaf)]
        used = sorted({row for leaf in leaves for row, _ in leaf.multipliers if row >= first})
        place = {row: first + k for k, row in enumerate(used)}
        renumbered = tuple(
            replace(n, multipliers=tuple((place.get(i, i), v) for i, v in n.multipliers))
            if isinstance(n, Leaf)
            else n
            for n in nodes
        )
        tangents = tuple(self.instance.tangents[row - first] for row in used)
        return Certificate(renumbered, float(self.least), tangents)

    def _accept(self, bound: Number, value: float) -> None:
        """Nothing is left to branch on: the point of the node satisfies the rules."""
        if self.value == np.inf:
            raise SolverError(
                "certify: the rules contradict each other by less than what can be proved; "
                "an output that breaks them by 1e-9 at most exists."
            )
        if bound >= self.value - self.last:
            return
        if value < self.value - self.last and value >= self.value - self.thin:
            raise SolverError(
                f"certify: only {self._told(bound)} is proved of {self._told(self.value)}. Either "
                "y is not the nearest, or convex rows leave a set without an interior, where "
                "tangents do not come near enough; give it some room."
            )
        if value < self.value - self.last:
            raise InputError(
                f"y: it is not the nearest. It is at {self._told(self.value)}, and an output at "
                f"{self._told(value)} satisfies the rules."
            )
        raise SolverError(
            f"certify: the bound is lost in rounding errors: {self._told(bound)} is proved of "
            f"{self._told(self.value)}."
        )

    def _told(self, value: Number) -> str:
        return f"{self.instance.told(value):.9g}"

    # ---- leaves --------------------------------------------------------------------------

    def _leaf(self, path: Branch, answer: NodeAnswer) -> tuple[Leaf, Number]:
        multipliers = self._usable(path, answer.multipliers)
        multipliers = vanish(self.instance, path, multipliers, costs=True)
        sound = self.instance.enforced(path, multipliers)
        bound = self.instance.bound(path, multipliers) if sound else float("-inf")
        if bound < 0:  # rounding errors prove less than nothing does
            multipliers, bound = [], self.instance.bound(path, [])
        return Leaf(_written(multipliers)), bound

    def _without_a_point(self, path: Branch) -> Leaf:
        """Where tangents meet in a point, it may be lost in rounding; y proves as much then."""
        try:
            return self._contradiction(path)
        except SolverError:
            answer = None if self.known is None else self.relaxation.at(path, self.known)
            if answer is None:
                raise
            leaf, bound = self._leaf(path, answer)
            if bound < self.value - self.last:
                raise
            self.least = min(self.least, bound)
            return leaf

    def _contradiction(self, path: Branch) -> Leaf:
        for ray in self.relaxation.rays(path):
            multipliers = self._usable(path, ray)
            multipliers = vanish(self.instance, path, multipliers, costs=False)
            sound = self.instance.enforced(path, multipliers)
            if sound and self.instance.contradicts(path, multipliers):
                return Leaf(_written(multipliers), ray=True)
        raise SolverError(
            "certify: HiGHS finds that rows contradict each other, and no proof of it that is "
            "above rounding errors."
        )

    def _usable(self, path: Branch, multipliers: np.ndarray) -> Multipliers:
        """Those of the right sign, and not tiny."""
        scaled = np.abs(multipliers) * self.relaxation.scale
        floor = 1e-12 * scaled.max(initial=0.0)
        equality, lower = self.instance.equality, path.lower
        upper = self.instance.linear(path)
        return [
            (row, Fraction(float(multipliers[row])))
            for row in map(int, np.flatnonzero(scaled > floor))
            if (multipliers[row] > 0 and row in upper)
            or (multipliers[row] < 0 and (row in lower or (row in upper and equality[row])))
        ]

    # ---- branching -----------------------------------------------------------------------

    def _required(self, path: Branch) -> Iterator[int]:
        """Clauses that have to hold and have no true literal yet."""
        for c, clause in self.instance.clauses.items():
            if path.requires(clause) and path.literals.isdisjoint(clause.literals):
                yield c

    def _forced(self, path: Branch) -> int | None:
        """A clause with at most one literal left."""
        found = None
        for c in self._required(path):
            count = len(path.open_literals(self.instance.data.clauses[c]))
            if count == 0:
                return c
            if count == 1 and found is None:
                found = c
        return found

    def _branch(
        self, path: Branch, clause: int, order: Sequence[int]
    ) -> tuple[ClauseNode, list[Branch]]:
        literals = [k for k in dict.fromkeys(order) if -k not in path.literals]
        paths = path.children(self.instance, literals)
        return ClauseNode(clause, tuple((k, -1) for k in literals)), paths

    def _split(
        self, path: Branch, point: np.ndarray, holds: float
    ) -> tuple[Node, list[Branch]] | None:
        """On what is broken at a point; None where nothing is."""
        broken = self._broken(path, point, holds)
        column = self._fractional(point)
        if column >= 0 and not (broken and broken[0][0] > TOLERANCES.holds):
            value = int(np.floor(point[column]))
            paths = path.split(self.instance, column, value)
            return ColumnNode(column, value, (-1, -1)), list(paths)
        if broken:
            clause, order = self._promising(path, [c for _, c in broken[:_LOOKS]])
            return self._branch(path, clause, order)
        for k in self.decided:
            if not path.literals & {k + 1, -k - 1}:
                signs = (k + 1, -k - 1)
                paths_of = [path.with_literal(self.instance, literal) for literal in signs]
                return BooleanNode(k, (-1, -1)), paths_of
        return None

    def _broken(self, path: Branch, point: np.ndarray, holds: float) -> list[tuple[float, int]]:
        """Clauses that do not hold at a point, and by how much, the worst first."""
        residual = self.relaxation.residual(point)
        found = []
        for c in self._required(path):
            literals = path.open_literals(self.instance.data.clauses[c])
            # What holds at more than the least price may not be what is to be chosen.
            price = min(map(self.instance.price, literals))
            cheap = [k for k in literals if self.instance.price(k) == price]
            least = min(self._residual(k, residual) for k in cheap)
            tied = any(self.instance.data.booleans[abs(k) - 1].tied for k in literals)
            if least > holds or tied:
                found.append((least, c))
        return sorted(found, key=lambda pair: -pair[0])

    def _promising(self, path: Branch, clauses: list[int]) -> tuple[int, list[int]]:
        """The clause whose children promise the largest bounds, and their order.

        The child with the least bound comes last: it may assume most.
        """
        best: tuple[tuple[float, float], int, list[int]] | None = None
        cutoff = float(self.value)
        for c in clauses:
            literals = path.open_literals(self.instance.data.clauses[c])
            values = [self._value(path.with_literal(self.instance, k)) for k in literals]
            capped = [min(v, cutoff, 1e300) for v in values]
            score = (min(capped), sum(capped) / len(capped))
            if best is None or score > best[0]:
                order = [k for _, k in sorted(zip(values, literals, strict=True), reverse=True)]
                best = (score, c, order)
        assert best is not None
        return best[1], best[2]

    def _solve(self, path: Branch) -> NodeAnswer | None:
        """Optimum of a node, with what is paid there; None where there is none."""
        answer = self.relaxation.solve(path)
        if answer is None or not self.instance.prices:
            return answer
        return replace(answer, value=answer.value + float(self.instance.paid(path)))

    def _value(self, path: Branch) -> float:
        answer = self._solve(path)
        return np.inf if answer is None else answer.value

    def _residual(self, literal: int, residual: np.ndarray) -> float:
        """How far a literal is from holding at a point."""
        data = self.instance.data
        rows = enforced(data.booleans, [literal])
        worst = max((float(residual[row]) for row in rows), default=0.0)
        for c in data.guarded.get(literal - 1, ()):
            if self.instance.active[c]:
                inner = (self._residual(k, residual) for k in data.clauses[c].literals)
                worst = max(worst, min(inner))
        return worst

    def _fractional(self, point: np.ndarray) -> int:
        off = np.abs(point - np.rint(point)) * self.instance.sample.integer
        return int(off.argmax()) if off.max(initial=0.0) > TOLERANCES.integer else -1


def _relaxation(instance: RationalInstance) -> NodeRelaxation:
    if instance.norm == "l1":
        return NodeRelaxation(instance)
    reason = core.unavailable("certify: norm='l2'", "norm='l1'")
    if reason is not None:
        raise SolverError(reason)
    from gdpnet.proof._euclidean import EuclideanRelaxation

    return EuclideanRelaxation(instance)


def _linked(node: Node, places: range) -> Node:
    """The node with the places of its children."""
    if isinstance(node, ClauseNode):
        pairs = zip(node.children, places, strict=True)
        return ClauseNode(node.clause, tuple((k, place) for (k, _), place in pairs))
    if isinstance(node, BooleanNode):
        return BooleanNode(node.boolean, (places[0], places[1]))
    if isinstance(node, ColumnNode):
        return ColumnNode(node.column, node.value, (places[0], places[1]))
    return node


def _written(multipliers: Multipliers) -> tuple[tuple[int, float | Fraction], ...]:
    """Floats where they are exact."""
    return tuple((row, float(v) if Fraction(float(v)) == v else v) for row, v in multipliers)
