"""Propositions over booleans, turned into clauses.

A proposition is a nested tuple over literals of `_data`:

    ("literal", +-(k + 1))   ("true",)   ("false",)
    ("and", p, ...)  ("or", p, ...)  ("not", p)  ("implies", p, q)  ("iff", p, q)  ("xor", p, q)
    ("atleast", n, p, ...)  ("atmost", n, p, ...)  ("exactly", n, p, ...)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, count
from typing import Any

Proposition = tuple[Any, ...]

# Above this many clauses a cardinality is counted with helper booleans instead of written out.
_WRITTEN_OUT = 64


class ClauseWriter:
    """Turns propositions into clauses (conjunctive normal form).

    Args:
        new_boolean: makes a helper boolean of a given name and returns its index.
    """

    def __init__(self, new_boolean: Callable[[str], int]) -> None:
        self._new_boolean = new_boolean

    def clauses(self, proposition: Proposition, name: str) -> list[tuple[int, ...]]:
        """Clauses that hold for some value of the helpers if and only if the proposition holds."""
        found: list[tuple[int, ...]] = []
        for part in self._conjuncts(_positive(proposition, True)):
            literals = self._flat(part, name, found)
            if literals is not None:
                found.append(literals)
        return found

    def _conjuncts(self, proposition: Proposition) -> list[Proposition]:
        kind = proposition[0]
        if kind == "and":
            return [part for p in proposition[1:] for part in self._conjuncts(p)]
        if kind == "atleast":
            written = _atleast(proposition[1], proposition[2:])
            if written is not None:
                return [part for p in written for part in self._conjuncts(p)]
        return [proposition]

    def _flat(
        self, proposition: Proposition, name: str, found: list[tuple[int, ...]]
    ) -> tuple[int, ...] | None:
        """One clause for a disjunction; None where it is always true."""
        parts = proposition[1:] if proposition[0] == "or" else (proposition,)
        literals: dict[int, None] = {}
        for part in parts:
            if part[0] == "true":
                return None
            if part[0] == "false":
                continue
            if part[0] == "or":
                inner = self._flat(part, name, found)
                if inner is None:
                    return None
                literals.update(dict.fromkeys(inner))
            else:
                literals[self._literal(part, name, found)] = None
        if any(-literal in literals for literal in literals):
            return None
        return tuple(literals)

    def _literal(self, part: Proposition, name: str, found: list[tuple[int, ...]]) -> int:
        """A literal that implies `part`; a helper where `part` is not a literal itself."""
        if part[0] == "literal":
            return int(part[1])
        helper = self._new_boolean(name) + 1
        if part[0] == "atleast":
            written = _atleast(part[1], part[2:])
            part = ("count", part) if written is None else ("and", *written)
        if part[0] == "count":
            self._count(part[1][1], part[1][2:], helper, name, found)
            return helper
        for inner in self._conjuncts(part):
            literals = self._flat(inner, name, found)
            if literals is not None:
                found.append((-helper, *literals))
        return helper

    def _count(
        self,
        least: int,
        parts: Sequence[Proposition],
        helper: int,
        name: str,
        found: list[tuple[int, ...]],
    ) -> None:
        """`helper` implies that at least `least` of `parts` hold, by a running count.

        `reached[j]` after part i says that at least j of the first i parts hold.
        """
        literals = [self._literal(part, name, found) for part in parts]
        reached: dict[int, int] = {}
        for literal in literals:
            now: dict[int, int] = {}
            for j in range(1, least + 1):
                this = self._new_boolean(name) + 1
                now[j] = this
                before, one_less = reached.get(j), reached.get(j - 1)
                # this -> (j before) or (literal and j - 1 before)
                kept = (-this,) if before is None else (-this, before)
                found.append((*kept, literal))
                if j > 1:
                    found.append(kept if one_less is None else (*kept, one_less))
            reached = now
        found.append((-helper, reached[least]))


@dataclass(frozen=True)
class Counted:
    """A running count that `ClauseWriter` wrote: its last step implies `least` of the members.

    Attributes:
        least: so many.
        members: literals that are counted.
        cells: booleans of its steps, numbered from 1, in their order: `least` for each member.
        clauses: that say so.
    """

    least: int
    members: tuple[int, ...]
    cells: tuple[int, ...]
    clauses: frozenset[tuple[int, ...]]

    def steps(self, true: Mapping[int, bool]) -> dict[int, bool]:
        """Truth of all steps but the last, where that of the members is known."""
        found, reached = {}, 0
        for i, k in enumerate(self.members):
            reached += true[abs(k)] == (k > 0)
            for j in range(self.least):
                found[self.cells[i * self.least + j]] = reached > j
        del found[self.cells[-1]]
        return found


def counts_in(clauses: Sequence[tuple[int, ...]], helpers: Collection[int]) -> list[Counted]:
    """Running counts among clauses, each as `ClauseWriter` writes it and used by nothing else.

    Args:
        clauses: literals of each.
        helpers: booleans that were made up, numbered from 1.
    """
    meaning: dict[int, list[tuple[int, ...]]] = {}
    used: dict[int, int] = {}
    for clause in clauses:
        for k in clause:
            if -k in helpers:
                meaning.setdefault(-k, []).append(clause)
            elif k in helpers:
                used[k] = used.get(k, 0) + 1
    found: list[Counted] = []
    taken: set[int] = set()
    for last in sorted(
        helpers, reverse=True
    ):  # a step of a longer count is the end of a shorter one
        if last in taken:
            continue
        # From the last step back: its second clauses lead to one less, its first ones to the left.
        least, at = 1, last
        while len(meaning.get(at, ())) == 2 and len(meaning[at][1]) == 3:
            at = meaning[at][1][2]
            least += 1
        members, at = [], last
        while len(meaning.get(at, ())) in (1, 2) and len(meaning[at][0]) == 3:
            members.append(meaning[at][0][2])
            at = meaning[at][0][1]
        if len(meaning.get(at, ())) not in (1, 2) or len(meaning[at][0]) != 2:
            continue
        members = [*members, meaning[at][0][1]][::-1]
        first = last - least * len(members) + 1
        cells = range(first, last + 1)
        if len(members) < 2 or least < 2 or not all(k in meaning for k in cells):
            continue
        said: list[tuple[int, ...]] = []
        numbers = count(first - 1)
        writer = ClauseWriter(lambda _, numbers=numbers: next(numbers))  # type: ignore[misc]
        writer._count(least, [("literal", k) for k in members], 0, "", said)
        own = frozenset(said[:-1])
        inside: dict[int, int] = {}
        for clause in own:
            for k in clause:
                if k in cells:
                    inside[k] = inside.get(k, 0) + 1
        alone = all(used.get(k, 0) == inside.get(k, 0) for k in cells[:-1])
        if alone and {c for k in cells for c in meaning[k]} == own:
            taken.update(cells)
            found.append(Counted(least, tuple(members), tuple(cells), own))
    return found[::-1]


def _atleast(least: int, parts: Sequence[Proposition]) -> list[Proposition] | None:
    """Clauses of `at least n`: every choice of len - n + 1 parts contains a true one.

    None where that would be too many to write out.
    """
    size = len(parts) - least + 1
    if least <= 0:
        return [("true",)]
    if size <= 0:
        return [("false",)]
    choices = 1
    for k in range(size):
        choices = choices * (len(parts) - k) // (k + 1)
    if choices > _WRITTEN_OUT:
        return None
    return [("or", *chosen) for chosen in combinations(parts, size)]


def _positive(p: Proposition, wanted: bool) -> Proposition:
    """Negation normal form of `p` (or of its negation): and, or, atleast over literals."""
    kind = p[0]
    if kind == "literal":
        return ("literal", p[1] if wanted else -p[1])
    if kind in ("true", "false"):
        return ("true",) if (kind == "true") == wanted else ("false",)
    if kind == "not":
        return _positive(p[1], not wanted)
    if kind in ("and", "or"):
        flipped = {"and": "or", "or": "and"}[kind]
        return (kind if wanted else flipped, *(_positive(q, wanted) for q in p[1:]))
    if kind == "implies":
        return _positive(("or", ("not", p[1]), p[2]), wanted)
    if kind == "iff":
        both = ("and", ("or", ("not", p[1]), p[2]), ("or", p[1], ("not", p[2])))
        return _positive(both, wanted)
    if kind == "xor":
        return _positive(("iff", p[1], p[2]), not wanted)
    if kind == "exactly":
        return _positive(("and", ("atleast", *p[1:]), ("atmost", *p[1:])), wanted)
    if kind == "atmost":
        return _positive(("atleast", p[1] + 1, *p[2:]), not wanted)
    if kind == "atleast":
        least, parts = p[1], p[2:]
        if wanted:
            return ("atleast", least, *(_positive(q, True) for q in parts))
        # Fewer than n hold: at least len - n + 1 do not.
        return ("atleast", len(parts) - least + 1, *(_positive(q, False) for q in parts))
    raise ValueError(f"not a proposition: {kind!r}")


def find_assignment(
    clauses: Sequence[tuple[int, ...]], fixed: dict[int, bool]
) -> dict[int, bool] | None:
    """Truth values that satisfy all clauses, by unit propagation and branching.

    Args:
        clauses: literals of each clause.
        fixed: values already known.

    Returns:
        A value for each boolean that had to be decided, or None where there is none.
    """
    values = dict(fixed)
    open_clauses = list(clauses)
    while True:
        left: list[tuple[int, ...]] = []
        changed = False
        for clause in open_clauses:
            unknown = []
            for literal in clause:
                value = values.get(abs(literal) - 1)
                if value is None:
                    unknown.append(literal)
                elif value == (literal > 0):
                    break
            else:
                if not unknown:
                    return None
                if len(unknown) == 1:
                    values[abs(unknown[0]) - 1] = unknown[0] > 0
                    changed = True
                else:
                    left.append(tuple(unknown))
        open_clauses = left
        if not changed:
            break
    if not open_clauses:
        return values
    literal = open_clauses[0][0]
    for value in (literal > 0, literal < 0):
        found = find_assignment(open_clauses, {**values, abs(literal) - 1: value})
        if found is not None:
            return found
    return None
