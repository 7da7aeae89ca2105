"""Clauses of logic, back to propositions that a modeller reads: `a implies b`, `exactly 1 of ...`.

What is written is what the clauses say, not what was once typed in.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from math import comb

from gdpnet.ir.logic import ClauseWriter, Proposition

Clauses = Sequence[tuple[int, ...]]

_LONGEST = 12  # parts of a proposition before it is cut


def propositions(clauses: Clauses, helpers: set[int]) -> list[Proposition] | None:
    """What clauses say, as propositions that hold together; None where that is not seen.

    Args:
        clauses: literals of each clause.
        helpers: booleans that `ClauseWriter` made; they are put back as what they stand for.
    """
    meaning: dict[int, list[tuple[int, ...]]] = {}  # clauses that a helper implies
    top = []
    for clause in _without_free(clauses, helpers):
        if clause and -clause[0] - 1 in helpers:
            meaning.setdefault(-clause[0], []).append(clause[1:])
        else:
            top.append(clause)
    try:
        return _Recovery(meaning)(top)
    except _UnseenError:
        return None


def _without_free(clauses: Clauses, helpers: set[int]) -> list[tuple[int, ...]]:
    """Without clauses that a helper satisfies which implies nothing."""
    left = list(clauses)
    while True:
        bound = {-clause[0] for clause in left if clause and -clause[0] - 1 in helpers}
        kept = [c for c in left if all(k - 1 not in helpers or k in bound for k in c)]
        if len(kept) == len(left):
            return kept
        left = kept


class _UnseenError(Exception):
    """Helpers whose meaning is not seen."""


class _Recovery:
    """Args: the clauses that each helper implies."""

    def __init__(self, meaning: dict[int, list[tuple[int, ...]]]) -> None:
        self._meaning = meaning
        self._open: set[int] = set()

    def __call__(self, clauses: Clauses) -> list[Proposition]:
        left, said = _cardinalities(clauses)
        left, equivalent = self._equivalences(left)
        return [*said, *equivalent, *_both_ways(list(map(self._clause, left)))]

    def _literal(self, literal: int) -> Proposition:
        if literal not in self._meaning:
            return ("literal", literal)
        counted = self._count(literal)
        if counted is not None:
            return counted
        if literal in self._open:  # the steps of a count are asked for more than once
            raise _UnseenError
        self._open.add(literal)
        return _and(self(self._meaning[literal]))

    def _clause(self, clause: tuple[int, ...]) -> Proposition:
        if not clause:
            return ("false",)
        if len(clause) == 1:
            return self._literal(clause[0])
        needed: list[Proposition] = [("literal", -k) for k in clause if k < 0]
        then = [self._literal(k) for k in clause if k > 0]
        # `c or (not a and not b)`: (a or b) implies c.
        none = [part for part in then if part[0] == "and" and all(map(_is_negative, part[1:]))]
        if none and len(none) < len(then):
            needed += [_or([("literal", -k) for _, k in part[1:]]) for part in none]
            then = [part for part in then if part not in none]
        if not needed:
            return _or(then)
        if then:
            return ("implies", _and(needed), _or(then))
        if len(needed) == 2:
            return ("implies", needed[0], ("not", needed[1]))
        return ("not", _and(needed))

    def _equivalences(self, clauses: Clauses) -> tuple[list[tuple[int, ...]], list[Proposition]]:
        """Takes out `(k or others)` with `(not k or not other)` for each: not k iff (others)."""
        left = {frozenset(clause): clause for clause in clauses}
        said: list[Proposition] = []
        for clause in clauses:
            for k in clause:
                others = [other for other in clause if other != k]
                keys = [frozenset(clause), *(frozenset((-k, -other)) for other in others)]
                if not others or not all(key in left for key in keys):
                    continue
                if k < 0:
                    found = ("iff", ("literal", -k), _or([self._literal(o) for o in others]))
                elif max(others) < 0:
                    found = ("iff", ("literal", k), _and([("literal", -o) for o in others]))
                elif len(others) == 1:
                    found = ("xor", ("literal", k), ("literal", others[0]))
                else:
                    continue
                said.append(found)
                for key in keys:
                    left.pop(key, None)
        return list(left.values()), said

    def _count(self, helper: int) -> Proposition | None:
        """The count that `ClauseWriter` wrote, if a helper stands for one."""
        steps = self._steps(helper)
        if not steps:
            return None
        literals = dict.fromkeys(
            k for step in steps for body in self._meaning[step] for k in body if k not in steps
        )
        parts: list[Proposition] = [("literal", k) for k in literals]
        said = {(-step, *body) for step in (helper, *steps) for body in self._meaning[step]}
        for least in range(1, len(parts) + 1):
            # The last step of the count is the one that the helper implies.
            if helper + len(parts) * least == max(steps):
                same = said <= _written(("atleast", least, *parts), helper - 1)
                return _at_least(least, list(literals)) if same else None
        return None

    def _steps(self, helper: int) -> list[int]:
        found: set[int] = set()
        waiting = [helper]
        while waiting:
            for body in self._meaning[waiting.pop()]:
                new = [k for k in body if k in self._meaning and k not in found]
                found.update(new)
                waiting += new
        return sorted(found)


def _written(proposition: Proposition, first: int) -> set[tuple[int, ...]]:
    """Clauses of a proposition whose helpers are numbered from `first` on."""
    made = count(first)

    def new_boolean(name: str) -> int:
        return next(made)

    return set(ClauseWriter(new_boolean).clauses(proposition, ""))


def _both_ways(parts: list[Proposition]) -> list[Proposition]:
    """`p implies q` and `q implies p` as one."""
    found: list[Proposition] = []
    for part in parts:
        back = ("implies", *part[:0:-1])
        if part[0] == "implies" and back in found:
            found[found.index(back)] = ("iff", *back[1:])
        else:
            found.append(part)
    return found


def _is_negative(part: Proposition) -> bool:
    return part[0] == "literal" and part[1] < 0


def _at_least(least: int, literals: Sequence[int]) -> Proposition:
    if all(k < 0 for k in literals):
        return ("atmost", len(literals) - least, *(("literal", -k) for k in literals))
    return ("atleast", least, *(("literal", k) for k in literals))


def _cardinalities(clauses: Clauses) -> tuple[list[tuple[int, ...]], list[Proposition]]:
    """Takes out clauses that are all choices of so many of some literals."""
    groups: dict[tuple[int, bool], dict[frozenset[int], tuple[int, ...]]] = {}
    left = []
    for clause in clauses:
        if len(clause) > 1 and (min(clause) > 0 or max(clause) < 0):
            groups.setdefault((len(clause), clause[0] > 0), {})[frozenset(clause)] = clause
        else:
            left.append(clause)
    said: list[Proposition] = []
    for (size, _), members in groups.items():
        every = list(dict.fromkeys(k for clause in members.values() for k in clause))
        if len(members) < 3 or len(members) != comb(len(every), size):
            left += members.values()
            continue
        said.append(_at_least(len(every) - size + 1, every))
    for k, proposition in enumerate(said):
        # At most 1, and the one clause that says at least 1.
        every = [part[1] for part in proposition[2:]]
        one = next((c for c in left if set(c) == set(every)), None)
        if proposition[:2] == ("atmost", 1) and one is not None:
            said[k] = ("exactly", *proposition[1:])
            left.remove(one)
    return left, said


def _and(parts: Sequence[Proposition]) -> Proposition:
    return parts[0] if len(parts) == 1 else ("and", *parts)


def _or(parts: Sequence[Proposition]) -> Proposition:
    if len(parts) == 2 and all(p[0] == "and" and len(p) == 3 for p in parts):
        (_, one, other), (_, *opposite) = parts
        if opposite == [_negated(one), _negated(other)]:
            return ("xor", one, _negated(other)) if _is_negative(other) else ("iff", one, other)
    return parts[0] if len(parts) == 1 else ("or", *parts)


def _negated(part: Proposition) -> Proposition:
    return ("literal", -part[1]) if part[0] == "literal" else ("not", part)


_COUNTS = {"exactly": "exactly", "atleast": "at least", "atmost": "at most"}


def text(proposition: Proposition, names: Sequence[str]) -> str:
    """A proposition in words.

    Args:
        proposition: as in `_logic`.
        names: of the booleans.
    """
    kind = proposition[0]
    if kind == "literal":
        name = names[abs(proposition[1]) - 1]
        return name if proposition[1] > 0 else f"not {name}"
    if kind == "false":
        return "never"
    if kind in _COUNTS:
        parts = [text(part, names) for part in _cut(proposition[2:])]
        more = _more(proposition[2:], ", ")
        return f"{_COUNTS[kind]} {proposition[1]} of ({', '.join(parts)}{more})"
    parts = [_inner(part, names) for part in _cut(proposition[1:])]
    if kind == "not":
        return f"not {parts[0]}"
    return f" {kind} ".join(parts) + _more(proposition[1:], f" {kind} ")


def _inner(part: Proposition, names: Sequence[str]) -> str:
    written = text(part, names)
    return written if part[0] in ("literal", "not", *_COUNTS) else f"({written})"


def _cut(parts: Sequence[Proposition]) -> Sequence[Proposition]:
    return parts[:_LONGEST]


def _more(parts: Sequence[Proposition], sign: str) -> str:
    return f"{sign}... {len(parts)} in all" if len(parts) > _LONGEST else ""
