"""What rules as data mean: what may be chosen, what a choice enforces, what is connected."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from gdpnet.ir.data import Boolean, Clause, RuleData


class DisjointSets:
    """Connected components of things that are joined, one after the other.

    Example:
        >>> from gdpnet.ir.semantics import DisjointSets
        >>> sets = DisjointSets()
        >>> sets.join(["a", "b"])
        >>> sets.join(["c", "b"])
        >>> sets.find("a") == sets.find("c"), sets.find("a") == sets.find("d")
        (True, False)
    """

    def __init__(self) -> None:
        self._parent: dict[Hashable, Hashable] = {}

    def find(self, item: Hashable) -> Hashable:
        """The representative of the component of an item."""
        path = []
        while (parent := self._parent.setdefault(item, item)) != item:
            path.append(item)
            item = parent
        for passed in path:
            self._parent[passed] = item
        return item

    def join(self, items: Iterable[Hashable]) -> None:
        """Put items into one component."""
        first, *others = [self.find(item) for item in items] or [None]
        for other in others:
            self._parent[self.find(other)] = self.find(first)


def enforced(booleans: Sequence[Boolean], literals: Iterable[int]) -> list[int]:
    """Rows that hold where literals are true, in their order."""
    rows: list[int] = []
    for literal in literals:
        boolean = booleans[abs(literal) - 1]
        rows += boolean.true_rows if literal > 0 else boolean.false_rows
    return rows


def options(data: RuleData, clause: Clause) -> list[tuple[int, ...]]:
    """Literals of a rule that may be chosen: each alone, and several whose truth matters.

    Several are left out where XOR forbids them, or a proposition that applies wherever the rule
    does. What else logic forbids is left to whoever chooses.

    Args:
        data: the rules.
        clause: of a rule.
    """
    found: list[tuple[int, ...]] = [(literal,) for literal in clause.literals]
    tied = [literal for literal in clause.literals if data.booleans[abs(literal) - 1].tied]
    if clause.xor or len(tied) < 2:
        return found
    excluded = {
        frozenset(-literal for literal in c.literals)
        for c in data.clauses
        if c.logic and c.guard in (-1, clause.guard) and set(c.conditions) <= set(clause.conditions)
    }
    together: list[tuple[int, ...]] = [(place,) for place in range(len(tied))]
    while together:
        together = [
            (*places, new)
            for places in together
            for new in range(places[-1] + 1, len(tied))
            if not any(frozenset((tied[k], tied[new])) in excluded for k in places)
        ]
        found += [tuple(tied[k] for k in places) for places in together]
    return found
