"""Terms of the disjunction that basic steps make of a cluster of rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from gdpnet.errors import RuleError
from gdpnet.ir.data import Clause, RuleData
from gdpnet.ir.logic import find_assignment
from gdpnet.ir.semantics import enforced, options
from gdpnet.relaxation.feasibility import FeasibilityCheck

# Beyond this the products of a cluster are not written down.
MOST_PRODUCTS = 20_000


@dataclass(frozen=True)
class Product:
    """One term: a choice of a disjunct for every rule of the cluster.

    Attributes:
        literals: booleans that are decided, as literals.
        rows: rows they enforce, without the global ones.
    """

    literals: frozenset[int]
    rows: tuple[int, ...]


def products(
    data: RuleData,
    rules: Sequence[int],
    active: Sequence[bool],
    same: dict[int, int] | None = None,
    feasibility: FeasibilityCheck | None = None,
) -> list[Product]:
    """All products of a cluster, nested disjunctions included.

    Products for which no truth values of the other booleans satisfy the propositions are left out.
    What propositions say across clusters is left to the relaxation.

    Args:
        data: the rules.
        rules: the cluster.
        active: which clauses apply, by clause.
        same: booleans that are the truth of a nested disjunct (a literal) where it is required.
        feasibility: leave products out that it finds empty; keep all where it is None.
    """
    below = [data.clauses[k] for r in rules for k in data.subtree(data.rules[r].clause)]
    tied = {abs(n) - 1 for c in below for n in c.literals if data.booleans[abs(n) - 1].tied}
    required = {n: c.guard + 1 for c in below for n in c.literals}
    aliases = {k: n for k, n in (same or {}).items() if n in required}
    said = propositions(data, active)
    found = []
    for literals in _choices(data, rules, active, feasibility):
        values = {k: k + 1 in literals for k in tied}
        if find_assignment(said, values) is None:
            continue
        for k, nested in aliases.items():
            if required[nested] in literals:
                values[k] = nested in literals
        decided = [k + 1 if true else -(k + 1) for k, true in values.items()]
        rows = enforced(data.booleans, [*sorted(n for n in literals if n > 0), *decided])
        found.append(Product(literals | set(decided), tuple(dict.fromkeys(rows))))
    return found


def propositions(data: RuleData, active: Sequence[bool]) -> list[tuple[int, ...]]:
    """All that logic, and the rules that it names, say about truth values."""
    return [
        (*c.literals, -(c.guard + 1)) if c.guard >= 0 else c.literals
        for c, on in zip(data.clauses, active, strict=True)
        if on and (c.logic or all(data.booleans[abs(n) - 1].tied for n in c.literals))
    ]


def count_products(data: RuleData, rules: Sequence[int]) -> int:
    """Number of products of a cluster before any is left out."""
    count = 1
    for r in rules:
        count *= _terms(data, data.clauses[data.rules[r].clause])
    return count


def _terms(data: RuleData, clause: Clause) -> int:
    total = 0
    for literal in clause.literals:
        product = 1
        for nested in data.guarded.get(literal - 1, ()):
            product *= _terms(data, data.clauses[nested])
        total += product
    return total


def _choices(
    data: RuleData,
    rules: Sequence[int],
    active: Sequence[bool],
    feasibility: FeasibilityCheck | None,
) -> Iterator[frozenset[int]]:
    """Every choice of literals for each rule, and for the rules that a literal requires."""
    count = 0
    options_of = cache(lambda clause: options(data, data.clauses[clause]))

    def extend(literals: frozenset[int], required: list[int]) -> Iterator[frozenset[int]]:
        nonlocal count
        if not required:
            count += 1
            if count > MOST_PRODUCTS:
                _refuse(data, rules)
            yield literals
            return
        clause, *others = required
        for chosen in options_of(clause):
            nested = [
                k for literal in chosen for k in data.guarded.get(literal - 1, ()) if active[k]
            ]
            rows = enforced(data.booleans, [n for n in chosen if n > 0])
            if feasibility is None or feasibility.push(rows):
                yield from extend(literals | frozenset(chosen), [*others, *nested])
            if feasibility is not None:
                feasibility.pop()

    yield from extend(frozenset(), [data.rules[r].clause for r in rules])


def _refuse(data: RuleData, rules: Sequence[int]) -> None:
    names = [data.rules[r].name for r in rules]
    listed = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    raise RuleError(
        f"Merging {listed} gives more than {MOST_PRODUCTS:,} products (up to "
        f"{count_products(data, rules):,}), too many to write down. Merge fewer rules with a Plan, "
        "or use relaxation='dnf' with solver='exact', which needs none of them."
    )
