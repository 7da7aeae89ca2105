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
- *Distances.* A column with a centre c is c + up - down, and of the box of a disjunct both moves
  have bounds: where it lies above c, up is at least what is missing, and down is 0. These bounds
  are the hull of the distance over the disjuncts: without them a program does not see what a
  Disjunction costs before it is decided. For rows with several entries, the columns that they
  touch move at least as far as the nearest point of the row chosen is away.
- *Squared distances.* By tangents, and these by disjuncts (`tangents`).
- *Prices.* What a boolean costs where it is true is the cost of its binary.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from gdpnet.ir.compressed import Compressed
from gdpnet.lp.program import SparseLinearProgram
from gdpnet.solve.milp.boxes import Box, propagate
from gdpnet.solve.milp.envelopes import Envelopes
from gdpnet.solve.milp.frame import Copies
from gdpnet.solve.milp.moves import Moves
from gdpnet.solve.milp.tangents import Tangents

if TYPE_CHECKING:
    from gdpnet.solve.milp.disjunctive import DisjunctiveProgram

Array = np.ndarray

# Solvers round a switch that is off by 1e-9: times more than this it would let a rule slip.
_LARGEST_M = 1e8

_ROUNDS = 3  # of propagation, through the global rows and then through those of disjuncts

# The order of rows: what belongs to a choice stands together.
_GLOBAL, _SWITCHED, _LOGIC = -1, 2**40, 2**40 + 1
_KINDS = 3  # of rows of a choice


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
        self.program, self._frame = program, program.frame
        self._moves, self._lines, self._split = Moves(program.moves), _Lines(), _Lines()
        self._first = len(program.cost)  # binary
        self.possible = self._write()

    def with_guess(self, literals: frozenset[int] | None) -> SparseLinearProgram:
        """The program, to be searched from true literals of a known point on."""
        if literals is None:
            return self.linear
        frame = self._frame
        guess = np.full(len(self.linear.cost), np.nan)
        own = guess[self._first :]
        own[:] = [k in literals for k in frame.booleans.tolist()]
        # Of a choice exactly one: the first.
        true = own[frame.binary]
        before = np.cumsum(true) - true
        first = np.searchsorted(frame.group, np.arange(frame.choices))
        again = (true > 0.0) & (before > before[first][frame.group] if len(first) else False)
        own[frame.binary[again]] = 0.0
        return replace(self.linear, guess=guess)

    @property
    def choice(self) -> Array:
        """By column, which choice it is a binary of; -1 for none."""
        found = np.full(len(self.linear.cost), -1)
        found[self._first + self._frame.binary] = self._frame.group
        return found

    def point(self, point: Array) -> Array:
        """A point of the disjunctive program from one of the written."""
        squares = self.program.squares
        found = self._moves.back(point) if squares is None else squares.back(point)
        return found[: self._first]

    def literals(self, point: Array) -> frozenset[int]:
        """Literals that are true at a point of the written program."""
        binaries = (point[self._first :] > 0.5).tolist()
        true = dict(zip(self._frame.booleans.tolist(), binaries, strict=True))
        for count in self._frame.counts:  # steps of a count are what has been counted by then
            true |= count.steps(true)
        return frozenset(k if is_true else -k for k, is_true in true.items())

    # ---- writing ------------------------------------------------------------------------------

    def _write(self) -> bool:
        program, frame, lines = self.program, self._frame, self._lines
        box = Box(program.lower.copy(), program.upper.copy())
        index = np.fromiter(dict.fromkeys(program.global_rows), dtype=np.int64)
        rows, bound = program.rows.take(index), program.bound[index]
        propagate(rows, bound, program.equality[index], box, _ROUNDS)
        low = np.where(program.equality[index], bound, -np.inf)
        lines.add(np.full(len(index), _GLOBAL), low, bound, [(rows.row, rows.column, rows.value)])
        kept = np.ones(len(frame.members), dtype=bool)
        if not (self._write_choices(box, kept) and self._write_switches(box)):
            return False
        logic = frame.logic
        entries = logic.row, self._first + logic.column, logic.value
        endless = np.full(len(frame.least), np.inf)
        lines.add(np.full(len(frame.least), _LOGIC), frame.least, endless, [entries])
        prices = [program.prices.get(k - 1, 0.0) for k in frame.booleans.tolist()]
        binaries = np.ones(len(frame.booleans))
        upper = binaries.copy()
        upper[frame.binary[~kept]] = 0.0
        start, column, value, row_lower, row_upper = lines.compressed()
        whole = SparseLinearProgram(
            cost=np.concatenate([program.cost, prices]),
            row_lower=row_lower,
            row_upper=row_upper,
            lower=np.concatenate([program.lower, 0.0 * binaries]),
            upper=np.concatenate([program.upper, upper]),
            start=start,
            column=column,
            value=value,
            integer=np.concatenate([program.integer, binaries > 0.0]),
        )
        squares = program.squares
        moved = self._moves.split(whole) if squares is None else squares.shifted(whole)
        self.linear = self._split.under(moved)
        return True

    def _write_choices(self, box: Box, kept: Array) -> bool:
        """Rows of choices; `kept` loses the disjuncts that have no point."""
        program, frame = self.program, self._frame
        slots = Box(box.lower[frame.slot_column], box.upper[frame.slot_column])
        own = frame.own
        bound, equality = program.bound[own.row], program.equality[own.row]
        copied = _over(own, program, len(frame.slot_column))
        empty = propagate(copied, bound, equality, slots, _ROUNDS)
        blank = np.diff(own.start) == 0  # it holds or it does not
        empty |= blank & ((bound < 0.0) | (equality & (bound != 0.0)))
        kept[frame.own_owner[empty]] = False
        every = np.arange(frame.choices)
        total = np.where(frame.guard >= 0, 0.0, 1.0)
        guarded = np.flatnonzero(frame.guard >= 0)
        self._lines.add(
            _KINDS * every,
            *(total, total),
            [
                (frame.group, self._first + frame.binary, np.ones(len(frame.group))),
                (guarded, self._first + frame.guard[guarded], -np.ones(len(guarded))),
            ],
        )
        return (
            self._write_bounds(box, slots, kept)
            and self._write_distances(kept)
            and self._write_long(box, slots, kept)
            and self._write_squares(slots, kept)
        )

    def _write_bounds(self, box: Box, slots: Box, kept: Array) -> bool:
        """What disjuncts say of single columns: one row for a column and all of them."""
        frame, moves = self._frame, self._moves
        sign, column, choice = frame.bound_sign, frame.bound_column, frame.bound_choice
        end = np.where(sign > 0.0, box.upper[column], -box.lower[column])
        pair, slot = frame.bound_pair, frame.bound_slot
        ends = np.where(sign[pair] > 0.0, slots.upper[slot], -slots.lower[slot])
        owner = frame.slot_owner[slot]
        down, centre = moves.spread(len(self.program.cost))
        apart, every = down[column] >= 0, np.arange(len(end))
        given = Envelopes(choice, 1, (every, column, sign), end, (pair, owner, ends))
        if not self._envelopes(self._lines, given, given.cutting(kept) & ~apart, kept):
            return False
        # Measured from the centre: what is left to move that way, and what has to be moved back.
        off, offs = end - sign * centre[column], ends - (sign * centre[column])[pair]
        # Rows hold a column within its box, but not each of its moves.
        whole = np.where(sign > 0.0, self.program.upper[column], -self.program.lower[column])
        whole = whole - sign * centre[column]
        there, back = column, down[column]
        ahead = np.where(sign > 0.0, there, back), np.where(sign > 0.0, back, there)
        for at, by, least in ((ahead[0], 1.0, np.maximum), (ahead[1], -1.0, np.minimum)):
            left = every, at, np.full(len(end), by)
            far = least(0.0, off), (pair, owner, least(0.0, offs))
            given = Envelopes(choice, 1, left, *far)
            wanted = replace(given, end=least(0.0, whole)).cutting(kept) & apart
            if not self._envelopes(self._split, given, wanted, kept):
                return False
        return True

    def _write_distances(self, kept: Array) -> bool:
        """How far the columns of a choice have to move, for each of its disjuncts."""
        program, frame = self.program, self._frame
        down, centre = self._moves.spread(len(program.cost))
        column, choice = frame.touched_column, frame.touched_choice
        inside = down[column] >= 0
        column, choice = column[inside], choice[inside]
        weight = np.where(down >= 0, program.cost[down], 0.0)
        own = frame.own
        value = program.rows.value[own.entry]
        at = program.rows.column[own.entry]
        broken = np.bincount(own.owner, value * centre[at], len(own.row)) - program.bound[own.row]
        broken = np.where(program.equality[own.row], np.abs(broken), broken)
        with np.errstate(divide="ignore"):
            steep = np.abs(value) / weight[at]  # infinite where a column moves for nothing
        steepest = _over(own, program, len(frame.slot_column)).most(steep)
        needed = np.divide(broken, steepest, where=steepest > 0.0, out=np.zeros(len(broken)))
        ends = np.zeros(len(frame.members))
        np.maximum.at(ends, frame.own_owner, needed)
        every = np.arange(frame.choices)
        left = np.tile(choice, 2), np.concatenate([column, down[column]])
        pairs = frame.group, np.arange(len(ends)), -ends
        given = Envelopes(
            every, 2, (*left, -np.tile(weight[column], 2)), np.zeros(len(every)), pairs
        )
        some = np.bincount(choice, minlength=frame.choices) > 0
        return self._envelopes(self._split, given, given.cutting(kept) & some, kept)

    def _write_long(self, box: Box, slots: Box, kept: Array) -> bool:
        """Rows with several entries, each with a constant for every other disjunct."""
        program, frame = self.program, self._frame
        size, long, far = program.rows.largest, frame.long, frame.far
        value = long.sign[long.owner] * program.rows.value[long.entry] / size[long.row[long.owner]]
        end = np.bincount(long.owner, box.farthest(long.column, value), len(long.row))
        away = far.sign[far.owner] * program.rows.value[far.entry] / size[far.row[far.owner]]
        ends = np.bincount(far.owner, slots.farthest(far.column, away), len(far.row))
        right = long.sign * program.bound[long.row] / size[long.row]
        itself = frame.far_owner == frame.long_owner[frame.far_of]
        ends = np.where(itself, right[frame.far_of], ends)
        return self._envelopes(
            self._lines,
            Envelopes(
                frame.group[frame.long_owner],
                2,
                (long.owner, long.column, value),
                end,
                (frame.far_of, frame.far_owner, ends),
            ),
            *((end > right) & kept[frame.long_owner], kept),
        )

    def _write_squares(self, slots: Box, kept: Array) -> bool:
        """Tangents of squared distances."""
        squares = self.program.squares
        if squares is None:
            return True
        plain, upper, lifted = Tangents(self.program, squares, slots, kept).rows()
        self._split.add(np.full(len(upper), _GLOBAL), np.full(len(upper), -np.inf), upper, [plain])
        return all(self._envelopes(self._split, given, wanted, kept) for given, wanted in lifted)

    def _envelopes(self, to: _Lines, given: Envelopes, wanted: Array, kept: Array) -> bool:
        """`a v <= sum_k ends_k z_k`, and `end` where the guard is not chosen.

        Args:
            to: where they are written to.
            given: the rows.
            wanted: which of them are written, bool.
            kept: disjuncts that have a point, bool.
        """
        frame = self._frame
        pair, owner, ends = given.pairs
        guarded = frame.guard[given.choice] >= 0
        some = wanted[pair] & kept[owner]
        pair, owner, ends = pair[some], owner[some], ends[some]
        if not (np.abs(ends) < _LARGEST_M).all():
            return False
        if not (np.abs(given.end[wanted & guarded]) < _LARGEST_M).all():
            return False
        # Relative to the last disjunct, whose binary then has no entry; of what is guarded relative
        # to the end without it, so that nothing is said there.
        last = np.zeros(len(wanted))
        last[pair] = ends  # pairs are in order: the last one stays
        last = np.where(guarded, given.end, last)
        left, column, value = given.left
        inside = wanted[left]
        number = np.cumsum(wanted) - 1
        entries = [
            (number[left[inside]], column[inside], value[inside]),
            (number[pair], self._first + frame.binary[owner], last[pair] - ends),
        ]
        key = _KINDS * given.choice[wanted] + given.kind
        to.add(key, np.full(len(key), -np.inf), last[wanted], entries)
        return True

    def _write_switches(self, box: Box) -> bool:
        """Rows that hold where a boolean is true (or false); False where there is no constant."""
        program, frame = self.program, self._frame
        rows = frame.switched
        largest = program.rows.largest[rows.row]
        size = np.where(largest > 0.0, largest, 1.0)
        value = rows.sign[rows.owner] * program.rows.value[rows.entry] / size[rows.owner]
        bound = rows.sign * program.bound[rows.row] / size
        slack = np.bincount(rows.owner, box.farthest(rows.column, value), len(rows.row)) - bound
        wanted = slack > 0.0
        if not (slack[wanted] < _LARGEST_M).all():
            return False
        number, inside = np.cumsum(wanted) - 1, wanted[rows.owner]
        up = np.where(frame.on, slack, -slack)[wanted]
        entries = [
            (number[rows.owner[inside]], rows.column[inside], value[inside]),
            (np.arange(len(up)), self._first + frame.switch[wanted], up),
        ]
        right = np.where(frame.on, bound + slack, bound)[wanted]
        self._lines.add(np.full(len(up), _SWITCHED), np.full(len(up), -np.inf), right, entries)
        return True


@dataclass
class _Lines:
    """Rows as they are written: blocks of them, put in order at the end."""

    key: list[Array] = field(default_factory=list)
    lower: list[Array] = field(default_factory=list)
    upper: list[Array] = field(default_factory=list)
    row: list[Array] = field(default_factory=list)
    column: list[Array] = field(default_factory=list)
    value: list[Array] = field(default_factory=list)
    count: int = 0

    def add(
        self, key: Array, lower: Array, upper: Array, entries: list[tuple[Array, Array, Array]]
    ) -> None:
        """A block: places of rows in the order, their ends, and (row, column, value) within it."""
        self.key.append(key)
        self.lower.append(lower)
        self.upper.append(upper)
        for row, column, value in entries:
            self.row.append(self.count + row)
            self.column.append(column)
            self.value.append(value)
        self.count += len(key)

    def compressed(self) -> tuple[Array, Array, Array, Array, Array]:
        """Start, column and value of all rows, lower and upper ends; without entries that are 0."""
        order = np.argsort(np.concatenate(self.key), kind="stable")
        place = np.empty(self.count, dtype=np.int64)
        place[order] = np.arange(self.count)
        row, column = place[np.concatenate(self.row)], np.concatenate(self.column)
        value = np.concatenate(self.value)
        entry = np.flatnonzero(value != 0.0)
        entry = entry[np.argsort(row[entry], kind="stable")]
        start = np.searchsorted(row[entry], np.arange(self.count + 1))
        lower, upper = np.concatenate(self.lower)[order], np.concatenate(self.upper)[order]
        return start, column[entry], value[entry], lower, upper

    def under(self, program: SparseLinearProgram) -> SparseLinearProgram:
        """A program with these rows besides its own."""
        if not self.count:
            return program
        start, column, value, lower, upper = self.compressed()
        return replace(
            program,
            start=np.concatenate([program.start, program.start[-1] + start[1:]]),
            column=np.concatenate([program.column, column]),
            value=np.concatenate([program.value, value]),
            row_lower=np.concatenate([program.row_lower, lower]),
            row_upper=np.concatenate([program.row_upper, upper]),
        )


def _over(copies: Copies, program: DisjunctiveProgram, columns: int) -> Compressed:
    """Copies of rows as rows over their own columns."""
    value = program.rows.value[copies.entry]
    return Compressed(copies.start, copies.column, value, columns)
