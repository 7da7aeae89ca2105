"""A disjunctive linear program for one sample, and two ways to solve it exactly.

    minimise cost v + prices of true literals
    over v within its bounds, the global rows, and for every required clause the rows of one of its
    true literals

Projection, least violation and feasibility are all of this form. `solve_milp` writes it as a
mixed-integer program; where that cannot be done (an unbounded variable), `solve_search`
branches on broken clauses and solves a linear program at every node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from gdpnet.ir.compressed import Compressed
from gdpnet.ir.data import Boolean, Clause
from gdpnet.ir.semantics import enforced
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.lp import highs
from gdpnet.lp.clock import UNLIMITED, Clock
from gdpnet.lp.program import Outcome, Solution, Solver, SparseLinearProgram
from gdpnet.solve.milp.frame import Frame, Frames
from gdpnet.solve.milp.moves import Moves
from gdpnet.solve.milp.squares import Squares
from gdpnet.solve.milp.written import Written

_CLOSED = 1e-9  # relative: a point is the best where no more than this is missing from its bound
_SAME_NORMAL, _NEARLY_PARALLEL = 1e-14, 1e-3  # differences of normals of length 1


@dataclass(frozen=True)
class DisjunctiveProgram:
    """See the module's docstring.

    Attributes:
        cost: `n`.
        rows: by their nonzeros, `rows x n`.
        bound: right sides, `rows`.
        equality: bool `rows`.
        lower: `n`.
        upper: `n`.
        integer: bool `n`.
        global_rows: rows that always hold.
        booleans: what their literals stand for.
        clauses: the required ones; a guarded one is required where its guard is true.
        curved: rows in which curves stand as well: the row of the rules that has them, and their
            factor; `cuts.solve` knows them.
        prices: what booleans cost where they are true; none of them is negative.
        moves: columns that cost their distance from a centre: the column that is this distance,
            which stands in no row, and the centre.
        squares: columns that cost its square instead; `solve_milp` knows them.
        frames: where those of programs alike are kept; None for nowhere.
    """

    cost: np.ndarray
    rows: Compressed
    bound: np.ndarray
    equality: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    integer: np.ndarray
    global_rows: Sequence[int]
    booleans: Sequence[Boolean]
    clauses: Sequence[Clause]
    curved: Mapping[int, tuple[int, float]] = field(default_factory=dict)
    prices: Mapping[int, float] = field(default_factory=dict)
    moves: Mapping[int, tuple[int, float]] = field(default_factory=dict)
    squares: Squares | None = None
    frames: Frames | None = None

    def value(self, point: np.ndarray, literals: Iterable[int]) -> float:
        """What a point costs, and the literals that are true there."""
        paid = sum(self.prices.get(literal - 1, 0.0) for literal in literals if literal > 0)
        return float(self.cost @ point) + paid

    @cached_property
    def matrix(self) -> np.ndarray:
        """The rows as a dense matrix, `rows x n`."""
        return self.rows.dense()

    @cached_property
    def frame(self) -> Frame:
        """Where its numbers stand in a mixed-integer program."""
        return Frame(self) if self.frames is None else self.frames.of(self)

    def solved(
        self, rows: Sequence[int], solver: Solver, clock: Clock, relaxed: bool = False
    ) -> Solution:
        """What a solver finds for the linear program over the global rows and `rows`.

        Args:
            rows: besides the global ones.
            solver: solves it.
            clock: its limit.
            relaxed: whole numbers need not be whole.
        """
        index = np.fromiter(dict.fromkeys([*self.global_rows, *rows]), dtype=np.int64)
        taken = self.rows.take(index)
        upper = self.bound[index]
        moves = Moves(self.moves)
        linear = SparseLinearProgram(
            cost=self.cost,
            row_lower=np.where(self.equality[index], upper, -np.inf),
            row_upper=upper,
            lower=self.lower,
            upper=self.upper,
            start=taken.start,
            column=taken.column,
            value=taken.value,
            integer=None if relaxed else self.integer,
        )
        found = solver(moves.split(linear), clock)
        return found if found.point is None else replace(found, point=moves.back(found.point))

    def rows_of(self, literals: Sequence[int]) -> list[int]:
        """Rows that a set of true literals enforces."""
        return enforced(self.booleans, literals)


@dataclass(frozen=True)
class DisjunctiveAnswer:
    """What was found.

    Attributes:
        outcome: how it ended.
        point: `n`, where one was found.
        value: `cost point`, and prices.
        bound: proved lower bound on the optimal value.
        literals: literals that are true at the point.
        nodes: linear programs solved.
    """

    outcome: Outcome
    point: np.ndarray | None = None
    value: float = np.inf
    bound: float = -np.inf
    literals: frozenset[int] = frozenset()
    nodes: int = 0

    @property
    def closed(self) -> bool:
        """Whether there is a point that costs no more than what is proved."""
        if not (np.isfinite(self.value) and np.isfinite(self.bound)):
            return False
        return self.value - self.bound <= _CLOSED * max(1.0, abs(self.value))


def solve(
    program: DisjunctiveProgram,
    solver: Solver = highs.solve,
    clock: Clock = UNLIMITED,
    guess: frozenset[int] | None = None,
) -> DisjunctiveAnswer:
    """By MILP where it can be written and the solver copes with it, else by search."""
    answer = solve_milp(program, solver, clock, guess)
    if answer is None or answer.outcome in (Outcome.FAILED, Outcome.UNBOUNDED):
        return solve_search(program, solver, clock)
    return answer


def polish(
    program: DisjunctiveProgram, answer: DisjunctiveAnswer, solver: Solver = highs.solve
) -> DisjunctiveAnswer:
    """Solve again with the chosen literals and whole numbers fixed: no big-M, a vertex."""
    if answer.point is None:
        return answer
    whole = np.rint(answer.point)
    fixed = replace(
        program,
        lower=np.where(program.integer, whole, program.lower),
        upper=np.where(program.integer, whole, program.upper),
    )
    rows = program.rows_of(sorted(answer.literals))
    found = fixed.solved(rows, solver, UNLIMITED, relaxed=True)
    if found.outcome is not Outcome.OPTIMAL or found.point is None:
        return answer
    value = program.value(found.point, answer.literals)
    return replace(answer, point=found.point, value=value)


def nearly_parallel(program: DisjunctiveProgram) -> bool:
    """Whether rows differ by so little that tolerances of a mixed-integer solver decide.

    Equal normals are told apart by their right sides, however close they are.
    """
    length = np.linalg.norm(program.matrix, axis=1)
    unit = program.matrix[length > 0.0] / length[length > 0.0, None]
    for i, row in enumerate(unit):
        others = unit[i + 1 :]
        apart = np.minimum(np.abs(others - row).max(1), np.abs(others + row).max(1))
        if ((apart > _SAME_NORMAL) & (apart < _NEARLY_PARALLEL)).any():
            return True
    return False


def loosened(program: DisjunctiveProgram, margin: float) -> DisjunctiveProgram:
    """The same program where every row and bound gives way by a margin, scaled."""
    size = np.maximum(1.0, np.maximum(np.abs(program.bound), program.rows.largest))
    back = np.flatnonzero(program.equality)
    opposite = dict(zip(back.tolist(), range(len(program.bound), 2**62), strict=False))

    def both(rows: Sequence[int]) -> tuple[int, ...]:
        return (*rows, *(opposite[i] for i in rows if i in opposite))

    room = margin * np.maximum(1.0, np.nan_to_num(np.abs(program.lower), posinf=0.0))
    above = margin * np.maximum(1.0, np.nan_to_num(np.abs(program.upper), posinf=0.0))
    return replace(
        program,
        rows=program.rows.above(program.rows.take(back).by(-np.ones(len(back)))),
        bound=np.concatenate([program.bound, -program.bound[back]])
        + margin * np.concatenate([size, size[back]]),
        equality=np.zeros(len(program.bound) + len(back), dtype=bool),
        lower=np.where(program.integer, program.lower, program.lower - room),
        upper=np.where(program.integer, program.upper, program.upper + above),
        global_rows=both(program.global_rows),
        booleans=tuple(
            replace(b, true_rows=both(b.true_rows), false_rows=both(b.false_rows))
            for b in program.booleans
        ),
    )


# ---- mixed-integer ------------------------------------------------------------------------


def solve_milp(
    program: DisjunctiveProgram,
    solver: Solver = highs.solve,
    clock: Clock = UNLIMITED,
    guess: frozenset[int] | None = None,
) -> DisjunctiveAnswer | None:
    """One mixed-integer program; None where a row that can be switched off goes too far.

    Args:
        program: what to solve.
        solver: solves it.
        clock: limit of the whole.
        guess: literals that are true at a point that is known.
    """
    written = Written(program)
    if not written.possible:
        return None
    answer = solver(written.with_guess(guess), clock)
    if answer.point is None:
        return DisjunctiveAnswer(answer.outcome, bound=answer.bound, nodes=1)
    point = written.point(answer.point)
    literals = written.literals(answer.point)
    value = program.value(point, literals)
    return DisjunctiveAnswer(answer.outcome, point, value, answer.bound, literals, 1)


# ---- search -------------------------------------------------------------------------------


def solve_search(
    program: DisjunctiveProgram,
    solver: Solver = highs.solve,
    clock: Clock = UNLIMITED,
    first: bool = False,
) -> DisjunctiveAnswer:
    """Branch on broken clauses, depth first, nearest child first; needs no bounds.

    Args:
        program: what to solve.
        solver: solves the nodes.
        clock: limit of the whole search.
        first: stop at the first feasible point.
    """
    search = _TreeSearch(program, solver, clock, first)
    return search.run()


class _TreeSearch:
    def __init__(
        self, program: DisjunctiveProgram, solver: Solver, clock: Clock, first: bool
    ) -> None:
        self.program = program
        self.solver = solver
        self.first = first
        self.clock = clock
        self.unfinished = False
        self.nodes = 0
        self.best = DisjunctiveAnswer(Outcome.INFEASIBLE)
        self.guarded: dict[int, list[Clause]] = {}
        for clause in program.clauses:
            self.guarded.setdefault(clause.guard, []).append(clause)
        # Clauses over truth values alone, their guards as negative literals.
        self.logic = [
            (*((-(clause.guard + 1),) if clause.guard >= 0 else ()), *clause.literals)
            for clause in program.clauses
            if all(program.booleans[abs(literal) - 1].tied for literal in clause.literals)
        ]

    def run(self) -> DisjunctiveAnswer:
        forced = self._propagated(frozenset())
        if forced is None:
            return self.best
        root = self._solve(forced)
        if root.outcome not in (Outcome.OPTIMAL, Outcome.INFEASIBLE):
            return DisjunctiveAnswer(root.outcome, nodes=1)
        stack = [(root, forced)]
        while stack:
            answer, literals = stack.pop()
            if answer.point is None or not self._improves(answer, literals):
                continue
            if self.clock.over:
                return replace(self.best, outcome=Outcome.LIMIT, bound=root.bound)
            broken = self._broken(answer.point, literals)
            if broken is None:
                true = self._true_literals(answer.point, literals)
                value = self.program.value(answer.point, true)
                if self.best.point is not None and value >= self.best.value:
                    continue
                self.best = DisjunctiveAnswer(
                    Outcome.OPTIMAL, answer.point, value, value, true, self.nodes
                )
                if self.first:
                    break
                continue
            children = []
            refused: list[int] = []
            for literal in broken.literals:
                if -literal in literals:
                    continue
                child = literals | {literal}
                if self.program.booleans[abs(literal) - 1].tied:
                    # Children need not repeat each other: later ones refuse earlier literals.
                    child |= {-k for k in refused}
                    refused.append(literal)
                known = self._propagated(child)
                if known is not None:
                    children.append((self._solve(known), known))
            children.sort(key=lambda child: -child[0].bound - self._paid(child[1]))
            stack += children
        if self.unfinished:  # a node was not, so nothing is excluded
            return replace(self.best, outcome=Outcome.LIMIT, bound=root.bound, nodes=self.nodes)
        return replace(self.best, nodes=self.nodes)

    def _propagated(self, literals: frozenset[int]) -> frozenset[int] | None:
        """The literals and all that logic makes of them; None where they contradict it."""
        known = set(literals)
        changed = True
        while changed:
            changed = False
            for clause in self.logic:
                if known.isdisjoint(clause):
                    left = [literal for literal in clause if -literal not in known]
                    if not left:
                        return None
                    if len(left) == 1:
                        known.add(left[0])
                        changed = True
        return frozenset(known)

    def _solve(self, literals: frozenset[int]) -> Solution:
        self.nodes += 1
        rows = self.program.rows_of(sorted(literals))
        answer = self.program.solved(rows, self.solver, self.clock)
        self.unfinished |= answer.outcome is Outcome.LIMIT
        return answer

    def _paid(self, literals: frozenset[int]) -> float:
        return sum(self._price(literal) for literal in literals)

    def _price(self, literal: int) -> float:
        return self.program.prices.get(literal - 1, 0.0) if literal > 0 else 0.0

    def _improves(self, answer: Solution, literals: frozenset[int]) -> bool:
        bound = answer.bound + self._paid(literals)
        return self.best.point is None or bound < self.best.value - 1e-12

    def _broken(self, point: np.ndarray, literals: frozenset[int]) -> Clause | None:
        required = list(self.guarded.get(-1, ()))
        for literal in literals:
            if literal > 0:
                required += self.guarded.get(literal - 1, ())
        for clause in required:
            if self._chosen(clause, point, literals) is None:
                return clause
        return None

    def _chosen(self, clause: Clause, point: np.ndarray, literals: frozenset[int]) -> int | None:
        """A literal that holds and costs no more than any that may be chosen; the first of them."""
        if not literals.isdisjoint(clause.literals):
            return next(k for k in clause.literals if k in literals)
        left = [self._price(k) for k in clause.literals if -k not in literals]
        least = min(left, default=0.0)
        cheap = (k for k in clause.literals if self._price(k) <= least)
        return next((k for k in cheap if self._holds(k, point, literals)), None)

    def _holds(self, literal: int, point: np.ndarray, literals: frozenset[int]) -> bool:
        if literal in literals:
            return True  # its rows are enforced, and what is nested in it is required by itself
        boolean = self.program.booleans[abs(literal) - 1]
        if boolean.tied or literal < 0:
            return False
        return self._rows_hold(boolean.true_rows, point) and all(
            any(
                self._price(inner) == 0.0 and self._holds(inner, point, literals)
                for inner in clause.literals
            )
            for clause in self.guarded.get(literal - 1, ())
        )

    def _rows_hold(self, rows: Sequence[int], point: np.ndarray) -> bool:
        if not rows:
            return True
        index = list(rows)
        taken, bound = self.program.rows.take(index), self.program.bound[index]
        excess = taken.times(point) - bound
        excess = np.where(self.program.equality[index], np.abs(excess), excess)
        scale = np.maximum(1.0, np.maximum(np.abs(bound), taken.largest))
        return bool((excess <= TOLERANCES.holds * scale).all())

    def _true_literals(self, point: np.ndarray, literals: frozenset[int]) -> frozenset[int]:
        """The literals chosen, and of each required clause one that holds at the point."""
        true = set(literals)
        required = list(self.guarded.get(-1, ()))
        for literal in literals:
            required += self.guarded.get(literal - 1, ()) if literal > 0 else ()
        while required:
            clause = required.pop()
            chosen = self._chosen(clause, point, literals)
            if chosen is not None and chosen not in true:
                true.add(chosen)
                required += self.guarded.get(chosen - 1, ())
        return frozenset(true)
