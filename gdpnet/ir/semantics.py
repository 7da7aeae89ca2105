"""What rules as data mean: which disjuncts may be chosen together."""

from __future__ import annotations

from gdpnet.ir.data import Clause, RuleData


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
