"""A disjunctive program as a mixed-integer one, in the form that solvers like best.

- *Counts.* "At least n of these" arrives as clauses over helper booleans (`ir.logic`), of which
  there are n for every member; here it is one row.
- *Choices.* A Disjunction is exactly one of its disjuncts wherever that loses nothing, so its
  binaries add up to 1, which leaves fewer of them and no row for each pair.
- *Constants.* A row `a v <= b` of disjunct k is written with one constant for each other disjunct l
  of its Disjunction, the most that `a v` can be in the box of l:

      a v <= b z_k + sum_l M_l z_l

  and bounds of a column in several disjuncts are one row, `v <= sum_k upper_k z_k`. Boxes come from
  the bounds of the columns, tightened by propagation through the global rows and then through
  those of the disjunct.
- *Prices.* What a boolean costs where it is true is the cost of its binary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from gdpnet.ir.data import Kind
from gdpnet.ir.logic import counts_in
from gdpnet.lp.program import SparseLinearProgram
from gdpnet.solve.milp.boxes import Box, propagate
from gdpnet.solve.milp.moves import Moves

if TYPE_CHECKING:
    from gdpnet.solve.milp.disjunctive import DisjunctiveProgram

# Solvers round a switch that is off by 1e-9: times more than this it would let a rule slip.
_LARGEST_M = 1e8

_ROUNDS = 3  # of propagation through the global rows


@dataclass
class _Rows:
    """Rows as they are written."""

    start: list[int] = field(default_factory=lambda: [0])
    column: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)

    def add(self, columns: Sequence[int], values: Sequence[float], low: float, up: float) -> None:
        self.column += columns
        self.value += values
        self.start.append(len(self.column))
        self.lower.append(low)
        self.upper.append(up)


class Written:
    """The mixed-integer program of a disjunctive one.

    Args:
        program: what is written.

    Attributes:
        possible: whether it can be written: where a row can be switched off, it needs a constant.
        linear: the program; distances are split into moves up and down.
    """

    linear: SparseLinearProgram

    def __init__(self, program: DisjunctiveProgram) -> None:
        self.program = program
        self._rows, self._moves = _Rows(), Moves(program.moves)
        self._source = program.source
        self._counts = counts_in(
            [clause.literals for clause in program.clauses],
            {k + 1 for k, boolean in enumerate(program.booleans) if boolean.helper},
        )
        inner = {cell for count in self._counts for cell in count.cells[:-1]}
        relevant = {abs(literal) for clause in program.clauses for literal in clause.literals}
        relevant |= {clause.guard + 1 for clause in program.clauses if clause.guard >= 0}
        self._place = {k: len(program.cost) + at for at, k in enumerate(sorted(relevant - inner))}
        self._fixed: set[int] = set()  # booleans that cannot be true
        self.possible = self._write(inner)

    def with_guess(self, literals: frozenset[int] | None) -> SparseLinearProgram:
        """The program, to be searched from true literals of a known point on."""
        if literals is None:
            return self.linear
        guess = np.full(len(self.linear.cost), np.nan)
        for k, at in self._place.items():
            guess[at] = float(k in literals)
        for literals_of in self._chosen:  # exactly one of them, and all of them are there
            true = [self._place[k] for k in literals_of if k in literals]
            guess[true[1:]] = 0.0
        return replace(self.linear, guess=guess)

    def point(self, point: np.ndarray) -> np.ndarray:
        """A point of the disjunctive program from one of the written."""
        return self._moves.back(point)[: len(self.program.cost)]

    def literals(self, point: np.ndarray) -> frozenset[int]:
        """Literals that are true at a point of the written program."""
        true = {k: point[at] > 0.5 for k, at in self._place.items()}
        for count in self._counts:  # steps of a count are what has been counted by then
            true |= count.steps(true)
        return frozenset(k if is_true else -k for k, is_true in true.items())

    # ---- writing ------------------------------------------------------------------------------

    def _write(self, inner: set[int]) -> bool:
        program = self.program
        n, width = len(program.cost), len(program.cost) + len(self._place)
        box = Box(program.lower.copy(), program.upper.copy())
        propagate(self._source, program.global_rows, box, _ROUNDS)
        for i in dict.fromkeys(program.global_rows):
            columns, values, bound, equal = self._source.row(i)
            self._rows.add(columns, values, bound if equal else -np.inf, bound)
        chosen = self._choices()
        self._chosen = [group.literals for group in chosen]
        own = {k for group in chosen for k in group.literals}
        for group in chosen:
            if not self._write_choice(group, box):
                return False
        for k in self._place:
            boolean = program.booleans[k - 1]
            if k not in own and not self._switched(boolean.true_rows, k, True, box):
                return False
            if not self._switched(boolean.false_rows, k, False, box):
                return False
        self._write_logic(chosen, inner)
        lower, upper = np.zeros(width), np.ones(width)
        lower[:n], upper[:n] = program.lower, program.upper
        upper[[self._place[k] for k in self._fixed]] = 0.0
        rows = self._rows
        prices = [program.prices.get(k - 1, 0.0) for k in self._place]  # in the order of places
        integer = np.ones(width, dtype=bool)
        integer[:n] = program.integer
        whole = SparseLinearProgram(
            cost=np.concatenate([program.cost, prices]),
            row_lower=np.array(rows.lower),
            row_upper=np.array(rows.upper),
            lower=lower,
            upper=upper,
            start=np.array(rows.start),
            column=np.array(rows.column, dtype=np.int64),
            value=np.array(rows.value, dtype=float),
            integer=integer,
        )
        self.linear = self._moves.split(whole)
        return True

    def _choices(self) -> list[_Choice]:
        """Clauses of which exactly one literal may be taken to be true."""
        program = self.program
        met: dict[int, int] = {}
        for clause in program.clauses:
            for literal in clause.literals:
                if literal > 0:
                    met[literal] = met.get(literal, 0) + 1
        excluded = {
            frozenset((-c.literals[0], -c.literals[1]))
            for c in program.clauses
            if len(c.literals) == 2 and c.guard < 0 and max(c.literals) < 0
        }
        found, taken = [], set[int]()
        for at, clause in enumerate(program.clauses):
            literals = clause.literals
            if clause.kind is not Kind.DISJUNCTION or len(literals) < 2 or min(literals) < 0:
                continue
            plain = all(not program.booleans[k - 1].tied and met[k] == 1 for k in literals)
            pairs = [frozenset((a, b)) for i, a in enumerate(literals) for b in literals[:i]]
            apart = clause.guard < 0 and all(pair in excluded for pair in pairs)
            if (plain or apart) and taken.isdisjoint(literals):
                taken.update(literals)
                found.append(_Choice(at, literals, clause.guard + 1, frozenset(pairs)))
        return found

    def _write_choice(self, group: _Choice, box: Box) -> bool:
        """The rows of all disjuncts of a choice."""
        booleans = self.program.booleans
        rows = [booleans[k - 1].true_rows for k in group.literals]
        touched = sorted({j for each in rows for i in each for j in self._source.row(i)[0]})
        local = {j: at for at, j in enumerate(touched)}
        boxes, kept = [], []
        for k, each in zip(group.literals, rows, strict=True):
            own = Box(box.lower[touched], box.upper[touched])
            if self._source.tighten(each, own, local):
                boxes.append(own)
                kept.append((k, each))
            else:
                self._fixed.add(k)
        places = [self._place[k] for k, _ in kept]
        base = Box(box.lower[touched], box.upper[touched])
        guard = [self._place[group.guard]] if group.guard else []
        total = 0.0 if guard else 1.0
        ones = [1.0] * len(places) + [-1.0] * len(guard)
        self._rows.add([*places, *guard], ones, total, total)
        single = (i for each in rows for i in each if self._source.single(i))
        bounded = {self._source.row(i)[0][0] for i in single}
        for j in sorted(bounded):
            at = local[j]
            for sign, ends, end in (
                (1.0, [b.upper[at] for b in boxes], base.upper[at]),
                (-1.0, [-b.lower[at] for b in boxes], -base.lower[at]),
            ):
                if min(ends, default=end) < end and not self._envelope(
                    group, [j], [sign], places, ends, end
                ):
                    return False
        for position, (_, each) in enumerate(kept):
            for i in each:
                columns, values, bound, equal = self._source.row(i)
                if len(columns) == 1:
                    continue
                size = max(map(abs, values), default=0.0)
                if size == 0.0:
                    if bound < 0.0 or (equal and bound != 0.0):
                        self._fixed.add(kept[position][0])
                    continue
                for sign in (1.0, -1.0) if equal else (1.0,):
                    a = [sign * value / size for value in values]
                    b = sign * bound / size
                    ats = [local[j] for j in columns]
                    end = base.most(ats, a)
                    if end <= b:
                        continue  # it holds anyway
                    ends = [each_box.most(ats, a) for each_box in boxes]
                    ends[position] = b
                    if not self._envelope(group, columns, a, places, ends, end):
                        return False
        return True

    def _envelope(
        self,
        group: _Choice,
        columns: Sequence[int],
        values: Sequence[float],
        places: Sequence[int],
        ends: Sequence[float],
        end: float,
    ) -> bool:
        """`a v <= sum_k ends_k z_k`, and `end` where the guard is not chosen."""
        if not max(map(abs, [*ends, end] if group.guard else ends)) < _LARGEST_M:
            return False
        if group.guard:
            # z_1 + ... + z_K = guard: relative to `end`, so that nothing is said without it.
            off = [end - e for e in ends]
            self._rows.add([*columns, *places], [*values, *off], -np.inf, end)
            return True
        # Relative to the last disjunct, whose binary then has no entry: one nonzero less.
        last = ends[-1]
        entries = [(p, last - e) for p, e in zip(places, ends, strict=True) if e != last]
        self._rows.add(
            [*columns, *(p for p, _ in entries)], [*values, *(v for _, v in entries)], -np.inf, last
        )
        return True

    def _switched(self, rows: Sequence[int], k: int, on: bool, box: Box) -> bool:
        """Rows that hold where boolean k is true (or false); False where no constant can be had."""
        for i in rows:
            columns, values, bound, equal = self._source.row(i)
            size = max(map(abs, values), default=0.0) or 1.0
            for sign in (1.0, -1.0) if equal else (1.0,):
                a, b = [sign * value / size for value in values], sign * bound / size
                slack = box.most(columns, a) - b
                if slack <= 0.0:
                    continue
                if not slack < _LARGEST_M:
                    return False
                at = self._place[k]
                if on:
                    self._rows.add([*columns, at], [*a, slack], -np.inf, b + slack)
                else:
                    self._rows.add([*columns, at], [*a, -slack], -np.inf, b)
        return True

    def _write_logic(self, chosen: Sequence[_Choice], inner: set[int]) -> None:
        program = self.program
        done = {group.clause for group in chosen}
        apart = {pair for group in chosen if not group.guard for pair in group.pairs}
        counted = {clause for count in self._counts for clause in count.clauses}
        for at, clause in enumerate(program.clauses):
            literals = clause.literals
            if at in done or (clause.guard < 0 and literals in counted):
                continue
            if len(literals) == 2 and clause.guard < 0 and frozenset(-k for k in literals) in apart:
                continue
            columns = [self._place[abs(k)] for k in literals]
            values = [1.0 if k > 0 else -1.0 for k in literals]
            low = 1.0 - sum(k < 0 for k in literals)
            if clause.guard >= 0:
                columns.append(self._place[clause.guard + 1])
                values.append(-1.0)
                low -= 1.0
            self._rows.add(columns, values, low, np.inf)
        for count in self._counts:
            columns = [self._place[abs(k)] for k in count.members]
            values = [1.0 if k > 0 else -1.0 for k in count.members]
            low = -float(sum(k < 0 for k in count.members))
            self._rows.add(
                [*columns, self._place[count.cells[-1]]],
                [*values, -float(count.least)],
                low,
                np.inf,
            )


@dataclass(frozen=True)
class _Choice:
    """A clause of which exactly one literal is true.

    Attributes:
        clause: its place.
        literals: of it, all positive.
        guard: literal under which it is required, 0 for always.
        pairs: of its literals.
    """

    clause: int
    literals: tuple[int, ...]
    guard: int
    pairs: frozenset[frozenset[int]]
