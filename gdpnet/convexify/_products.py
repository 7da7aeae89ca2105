"""Terms of the disjunction that basic steps make of a cluster of rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from gdpnet.errors import RuleError
from gdpnet.rules._data import Clause, RuleData
from gdpnet.rules._logic import find_assignment

# Beyond this the products of a cluster are not written down.
MOST_PRODUCTS = 20_000


@dataclass(frozen=True)
class Product:
    """One term: a choice of a disjunct for every rule of the cluster.

    Attributes:
        literals: booleans chosen, as literals.
        rows: rows they enforce, without the global ones.
    """

    literals: frozenset[int]
    rows: tuple[int, ...]


def products(data: RuleData, rules: Sequence[int], active: Sequence[bool]) -> list[Product]:
    """All products of a cluster, nested disjunctions included.

    Products for which no truth values of the other booleans satisfy the propositions are left out.
    What propositions say across clusters is left to the relaxation.

    Args:
        data: the rules.
        rules: the cluster.
        active: which clauses apply, by clause.
    """
    logic = [c for c, on in zip(data.clauses, active, strict=True) if on and c.logic]
    exclusive = {frozenset(c.literals) for c in logic if len(c.literals) == 2}
    own = {
        literal - 1
        for r in rules
        for k in data.subtree(data.rules[r].clause)
        for literal in data.clauses[k].literals
    }
    tied = {k for k in own if data.booleans[k].tied}
    propositions = [
        (*c.literals, -(c.guard + 1)) if c.guard >= 0 else tuple(c.literals) for c in logic
    ]
    clauses = [data.clauses[data.rules[r].clause] for r in rules]
    found = []
    for literals in _choices(data, clauses, active, exclusive):
        values = {k: k + 1 in literals for k in tied}
        if find_assignment(propositions, values) is None:
            continue
        rows = [row for k in sorted(literals) for row in data.booleans[k - 1].true_rows]
        false = [k for k, true in values.items() if not true]
        rows += [row for k in false for row in data.booleans[k].false_rows]
        signed = literals | {-(k + 1) for k in false}
        found.append(Product(signed, tuple(dict.fromkeys(rows))))
    return found


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
    clauses: Sequence[Clause],
    active: Sequence[bool],
    exclusive: set[frozenset[int]],
) -> Iterator[frozenset[int]]:
    """Every choice of literals for each clause, and for the clauses that a literal requires."""
    stack: list[tuple[frozenset[int], list[Clause]]] = [(frozenset(), list(clauses))]
    count = 0
    while stack:
        literals, required = stack.pop()
        if not required:
            count += 1
            if count > MOST_PRODUCTS:
                raise RuleError(
                    f"The merged rules have more than {MOST_PRODUCTS} products, too many to write "
                    "down. Merge fewer rules, or use relaxation='dnf' with solver='exact', which "
                    "needs none of them."
                )
            yield literals
            continue
        clause, *others = required
        for chosen in reversed(_options(data, clause, exclusive)):
            nested = [
                data.clauses[k]
                for literal in chosen
                for k in data.guarded.get(literal - 1, ())
                if active[k]
            ]
            stack.append((literals | frozenset(chosen), [*others, *nested]))


def _options(
    data: RuleData, clause: Clause, exclusive: set[frozenset[int]]
) -> list[tuple[int, ...]]:
    """One disjunct each, and several of those that logic names where XOR does not forbid it."""
    one: list[tuple[int, ...]] = [(literal,) for literal in clause.literals]
    if all(frozenset((-a, -b)) in exclusive for a, b in combinations(clause.literals, 2)):
        return one
    tied = [literal for literal in clause.literals if data.booleans[literal - 1].tied]
    sizes = range(2, len(tied) + 1)
    return one + [chosen for size in sizes for chosen in combinations(tied, size)]
