"""What of a mixed-integer program depends on the rules alone: which numbers stand where.

A disjunct has a box of its own: each column that its Disjunction touches is a *slot* there. Rows of
disjuncts are written over slots, once for the disjunct that they belong to, to tighten its box, and
once for each disjunct of the Disjunction, to see how far the row can go there.

Programs of many samples differ in numbers alone. So all of this is found once, and writing a
program is a matter of a few operations on whole arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gdpnet.ir.compressed import Compressed
from gdpnet.ir.data import Kind
from gdpnet.ir.logic import counts_in
from gdpnet.ir.rules import Rules

if TYPE_CHECKING:
    from gdpnet.solve.milp.disjunctive import DisjunctiveProgram

Array = np.ndarray

_MOST_FRAMES = 8  # kept of one rule model


@dataclass(frozen=True)
class Copies:
    """Rows of the program, written once more over other columns.

    Attributes:
        row: which row of the program each is.
        sign: 1, or -1 for the other side of an equality.
        start: entries of each, `copies + 1`.
        entry: which entry of the program each entry is.
        column: of each entry: a slot, or a column of the program.
    """

    row: Array
    sign: Array
    start: Array
    entry: Array
    column: Array

    @property
    def owner(self) -> Array:
        """Which copy an entry belongs to."""
        return np.repeat(np.arange(len(self.row)), np.diff(self.start))


class _Copying:
    """Copies as they are listed."""

    def __init__(self, rows: Compressed) -> None:
        self._start, self._columns = rows.start.tolist(), rows.column.tolist()
        self.row: list[int] = []
        self.sign: list[float] = []
        self._at, self._entry, self._column = [0], list[int](), list[int]()

    def columns(self, i: int) -> list[int]:
        """Columns of a row of the program."""
        return self._columns[self._start[i] : self._start[i + 1]]

    def add(self, i: int, sign: float, columns: Sequence[int]) -> None:
        """One more copy of row i."""
        self.row.append(i)
        self.sign.append(sign)
        self._entry += range(self._start[i], self._start[i + 1])
        self._column += columns
        self._at.append(len(self._entry))

    def copies(self) -> Copies:
        """All of them."""
        return Copies(
            _integers(self.row),
            np.array(self.sign, dtype=float),
            _integers(self._at),
            _integers(self._entry),
            _integers(self._column),
        )


class Frame:
    """Where the numbers of a disjunctive program stand in its mixed-integer one.

    Args:
        program: one with this pattern.

    Attributes:
        booleans: literals that have a binary, in the order of the binaries.
        counts: "at least n of these", each one row.
        members, group: literals of choices, choice by choice, and their choice: the disjuncts.
        choices: how many choices there are.
        guard: binary of the literal under which a choice is required, -1 for always.
        binary: of each disjunct.
        slot_column, slot_owner: column and disjunct of each slot.
        own: rows of disjuncts over their slots; `own_owner` are their disjuncts.
        bound_choice, bound_column, bound_sign: what single entries bound in some disjunct.
        bound_pair, bound_slot: for each of those and each disjunct of its choice, the slot.
        touched_choice, touched_column: columns of choices in which a row has several entries.
        long: rows of disjuncts with several entries, over the columns; `long_owner`.
        far: the same once for each disjunct of the choice, over its slots; `far_of` is the
            row of `long`, `far_owner` the disjunct.
        switched: rows that a boolean by itself enforces; `switch` its binary, `on` where it does so
            by being true.
        logic: clauses as rows over binaries; `least` their left ends.
    """

    def __init__(self, program: DisjunctiveProgram) -> None:
        self._pattern = _Pattern.of(program)
        clauses, booleans = program.clauses, program.booleans
        self.counts = counts_in(
            [clause.literals for clause in clauses],
            {k + 1 for k, boolean in enumerate(booleans) if boolean.helper},
        )
        inner = {cell for count in self.counts for cell in count.cells[:-1]}
        relevant = {abs(literal) for clause in clauses for literal in clause.literals}
        relevant |= {clause.guard + 1 for clause in clauses if clause.guard >= 0}
        named = sorted(relevant - inner)
        self.booleans = _integers(named)
        self._place = {k: at for at, k in enumerate(named)}
        chosen = _choices(program)
        self.members = [k for group in chosen for k in group.literals]
        self.group = np.repeat(np.arange(len(chosen)), [len(group.literals) for group in chosen])
        self.choices = len(chosen)
        self.binary = _integers([self._place[k] for k in self.members])
        guards = [self._place[group.guard] if group.guard else -1 for group in chosen]
        self.guard = _integers(guards)
        self._write_choices(program, chosen)
        self._write_switches(program)
        self._write_logic(program, chosen)

    @cached_property
    def pairs(self) -> tuple[Array, Array, Array]:
        """Choices and the columns that they touch, pair by pair; for each slot its pair."""
        choice = self.group[self.slot_owner]
        found, pair = np.unique(np.stack([choice, self.slot_column]), axis=1, return_inverse=True)
        return found[0], found[1], pair.ravel()

    def matches(self, program: DisjunctiveProgram) -> bool:
        """Whether a program has this pattern."""
        mine, other = self._pattern, _Pattern.of(program)
        return mine.said == other.said and all(
            a is b or np.array_equal(a, b) for a, b in zip(mine.arrays, other.arrays, strict=True)
        )

    def _write_choices(self, program: DisjunctiveProgram, chosen: Sequence[Choice]) -> None:
        rows, equality = program.rows, program.equality.tolist()
        own, long, far = _Copying(rows), _Copying(rows), _Copying(rows)
        slot_column, slot_owner = list[int](), list[int]()
        own_owner, long_owner, far_of, far_owner = (
            list[int](),
            list[int](),
            list[int](),
            list[int](),
        )
        bounds = list[tuple[int, int, float]]()
        bound_pair, bound_slot = list[int](), list[int]()
        many = list[tuple[int, int]]()
        first = 0  # disjunct of the choice
        for g, group in enumerate(chosen):
            each = [program.booleans[k - 1].true_rows for k in group.literals]
            touched = sorted({j for some in each for i in some for j in own.columns(i)})
            local = {j: at for at, j in enumerate(touched)}
            base = [len(slot_column) + p * len(touched) for p in range(len(each))]
            for p in range(len(each)):
                slot_column += touched
                slot_owner += [first + p] * len(touched)
            single = {own.columns(i)[0] for s in each for i in s if len(own.columns(i)) == 1}
            for j in sorted(single):
                for sign in (1.0, -1.0):
                    bound_pair += [len(bounds)] * len(each)
                    bound_slot += [b + local[j] for b in base]
                    bounds.append((g, j, sign))
            if any(len(own.columns(i)) > 1 for some in each for i in some):
                many += [(g, j) for j in touched]
            for p, some in enumerate(each):
                for i in some:
                    ats = [local[j] for j in own.columns(i)]
                    own.add(i, 1.0, [base[p] + at for at in ats])
                    own_owner.append(first + p)
                    if len(ats) < 2:
                        continue
                    for sign in (1.0, -1.0) if equality[i] else (1.0,):
                        for q, b in enumerate(base):
                            far.add(i, sign, [b + at for at in ats])
                            far_of.append(len(long.row))
                            far_owner.append(first + q)
                        long.add(i, sign, own.columns(i))
                        long_owner.append(first + p)
            first += len(each)
        self.slot_column, self.slot_owner = _integers(slot_column), _integers(slot_owner)
        self.own, self.own_owner = own.copies(), _integers(own_owner)
        self.bound_choice = _integers([g for g, _, _ in bounds])
        self.bound_column = _integers([j for _, j, _ in bounds])
        self.bound_sign = np.array([sign for *_, sign in bounds], dtype=float)
        self.bound_pair, self.bound_slot = _integers(bound_pair), _integers(bound_slot)
        self.touched_choice = _integers([g for g, _ in many])
        self.touched_column = _integers([j for _, j in many])
        self.long, self.long_owner = long.copies(), _integers(long_owner)
        self.far, self.far_of = far.copies(), _integers(far_of)
        self.far_owner = _integers(far_owner)

    def _write_switches(self, program: DisjunctiveProgram) -> None:
        copying, equality = _Copying(program.rows), program.equality.tolist()
        chosen, switch, on = set(self.members), list[int](), list[bool]()
        for k, at in self._place.items():
            boolean = program.booleans[k - 1]
            for rows, true in ((boolean.true_rows, True), (boolean.false_rows, False)):
                for i in () if true and k in chosen else rows:
                    for sign in (1.0, -1.0) if equality[i] else (1.0,):
                        copying.add(i, sign, copying.columns(i))
                        switch.append(at)
                        on.append(true)
        self.switched = copying.copies()
        self.switch, self.on = _integers(switch), np.array(on, dtype=bool)

    def _write_logic(self, program: DisjunctiveProgram, chosen: Sequence[Choice]) -> None:
        done = {group.clause for group in chosen}
        apart = {pair for group in chosen if not group.guard for pair in group.pairs}
        counted = {clause for count in self.counts for clause in count.clauses}
        start, column, value, least = [0], list[int](), list[float](), list[float]()

        def add(literals: Sequence[int], low: float, other: int = 0, by: float = 0.0) -> None:
            column.extend(self._place[abs(k)] for k in literals)
            value.extend(1.0 if k > 0 else -1.0 for k in literals)
            if other:
                column.append(self._place[other])
                value.append(by)
            start.append(len(column))
            least.append(low - sum(k < 0 for k in literals))

        for at, clause in enumerate(program.clauses):
            literals = clause.literals
            if at in done or (clause.guard < 0 and literals in counted):
                continue
            if len(literals) == 2 and clause.guard < 0 and frozenset(-k for k in literals) in apart:
                continue
            if clause.guard < 0:
                add(literals, 1.0)
            else:
                add(literals, 0.0, clause.guard + 1, -1.0)
        for count in self.counts:
            add(count.members, 0.0, count.cells[-1], -float(count.least))
        self.logic = Compressed(
            _integers(start), _integers(column), np.array(value, dtype=float), len(self.booleans)
        )
        self.least = np.array(least, dtype=float)


class Frames:
    """The last frames of a rule model's programs.

    Args:
        rules: the rules.
    """

    def __init__(self, rules: Rules) -> None:
        self._kept: list[Frame] = []

    def of(self, program: DisjunctiveProgram) -> Frame:
        """That of a program, made where there is none yet."""
        kept = self._kept
        for frame in kept:
            if frame.matches(program):
                return frame
        frame = Frame(program)
        self._kept = [frame, *kept[: _MOST_FRAMES - 1]]
        return frame


@dataclass(frozen=True)
class Choice:
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


def _choices(program: DisjunctiveProgram) -> list[Choice]:
    """Clauses of which exactly one literal may be taken to be true."""
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
            found.append(Choice(at, literals, clause.guard + 1, frozenset(pairs)))
    return found


class _Pattern(NamedTuple):
    """What programs of one frame have in common: width, clauses and booleans; where entries are."""

    said: tuple[object, ...]
    arrays: tuple[Array, ...]

    @staticmethod
    def of(program: DisjunctiveProgram) -> _Pattern:
        """That of a program."""
        said = len(program.cost), tuple(program.clauses), tuple(program.booleans)
        return _Pattern(said, (program.rows.start, program.rows.column, program.equality))


def listed(owner: Array, count: int) -> Compressed:
    """Which items each owner has, as columns; those of owner -1 nobody has."""
    order = np.argsort(owner, kind="stable")
    order = order[np.searchsorted(owner[order], 0) :]
    start = np.searchsorted(owner[order], np.arange(count + 1))
    return Compressed(start, order, np.ones(len(order)), len(owner))


def _integers(numbers: Sequence[int]) -> Array:
    return np.array(numbers, dtype=np.int64)
