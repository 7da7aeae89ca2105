"""What files of format 1 do not say about rules, inferred from names and from pairs of clauses.

The names are those that reading a Pyomo model gave: they are unique there. Nothing else may do so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations

from gdpnet.ir.data import Boolean, Clause, Kind, Role, Row, RuleData


def inferred(data: RuleData) -> RuleData:
    """The rules with roles, kinds, sources, XOR and helpers.

    Args:
        data: the rules of a file; a clause is a disjunction or a proposition.
    """
    clauses = _clauses(data)
    disjuncts = data.disjuncts
    # What says that a BooleanVar is fixed has its name as well, and one literal.
    said = {c.name for c in clauses if c.kind is Kind.PROPOSITION and len(c.literals) > 1}

    def helps(k: int, boolean: Boolean) -> bool:
        return k not in disjuncts and boolean.name in said

    return replace(
        data,
        rows=_rows(data),
        booleans=tuple(replace(b, helper=helps(k, b)) for k, b in enumerate(data.booleans)),
        clauses=clauses,
    )


def _rows(data: RuleData) -> tuple[Row, ...]:
    links = {
        i
        for b in data.booleans
        if b.false_rows
        for i in (*b.true_rows, *b.false_rows)
        if data.rows[i].name == b.name
    }
    always = set(data.global_rows)
    source: dict[str, int] = {}
    rows = []
    for i, row in enumerate(data.rows):
        role = Role.CONSTRAINT
        if i in links:  # both have the name of their boolean
            rows.append(replace(row, role=Role.LINK, source=i))
            continue
        if i in always and len(row.terms) == 1 and not row.bound.is_number:
            name = data.columns[row.terms[0][0]].name
            bounds = {f"{role} bound of {name}": role for role in (Role.LOWER, Role.UPPER)}
            role = bounds.get(row.name, role)
        rows.append(replace(row, role=role, source=source.setdefault(row.name, i)))
    return tuple(rows)


def _clauses(data: RuleData) -> tuple[Clause, ...]:
    rules = {c.name: (k, c) for k, c in enumerate(data.clauses) if not c.logic}
    source: dict[tuple[object, ...], int] = {}
    clauses = []
    for index, clause in enumerate(data.clauses):
        if not clause.logic:
            kind = _kind_of_rule(clause, data)
            xor = kind is Kind.DISJUNCTION and _is_xor(clause, data)
            clauses.append(replace(clause, kind=kind, xor=xor, source=index))
            continue
        place, rule = rules.get(clause.name, (-1, None))
        kind = Kind.PROPOSITION if rule is None else _kind_about(clause, rule, data)
        if kind is Kind.PROPOSITION:
            key = (clause.name, clause.guard, clause.conditions)
            place = source.setdefault(key, index)
        clauses.append(replace(clause, kind=kind, source=place))
    return tuple(clauses)


def _kind_of_rule(clause: Clause, data: RuleData) -> Kind:
    """A Constraint with a condition was a rule of one disjunct that bears its name."""
    alone = len(clause.literals) == 1 and clause.conditions
    if alone and data.booleans[clause.literals[0] - 1].name == clause.name:
        return Kind.CONDITIONAL
    return Kind.DISJUNCTION


def _is_xor(clause: Clause, data: RuleData) -> bool:
    """Whether XOR was written out; it was where logic names a disjunct, and says nothing else."""
    if not any(data.booleans[literal - 1].tied for literal in clause.literals):
        return True
    written = {
        frozenset(c.literals)
        for c in data.clauses
        if c.logic and c.name == clause.name and c.guard == clause.guard
    }
    return _pairs(clause.literals) <= written


def _pairs(literals: Iterable[int]) -> set[frozenset[int]]:
    return {frozenset((-one, -other)) for one, other in combinations(literals, 2)}


def _kind_about(clause: Clause, rule: Clause, data: RuleData) -> Kind:
    """What a clause that bears the name of a Disjunction says about its disjuncts."""
    literals = clause.literals
    if len(literals) == 1 and literals[0] in rule.literals:
        return Kind.FIXED
    if frozenset(literals) in _pairs(rule.literals):
        return Kind.XOR
    if len(literals) != 2 or literals[0] * literals[1] > 0:
        return Kind.PROPOSITION
    twin, nested = (abs(literal) for literal in literals)
    fits = nested in rule.literals and twin - 1 not in data.disjuncts
    return Kind.TWIN if fits else Kind.PROPOSITION
