"""`RuleData` from the content of a file, in which nothing is taken on trust."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

from gdpnet.errors import RuleError
from gdpnet.ir import atoms
from gdpnet.ir.data import (
    Boolean,
    Clause,
    Column,
    Condition,
    Curve,
    Kind,
    Role,
    Row,
    Rule,
    RuleData,
    Shape,
)
from gdpnet.ir.linear import Coefficient
from gdpnet.ir.table import refuse_huge
from gdpnet.rules._format_1 import inferred
from gdpnet.rules._parts import Record, Unknown

# What stands in a file for a condition that is a Python function.
FUNCTION = "function"
LINEAR, CONVEX = "linear", "convex"  # kinds of rows

_SECTIONS = (
    *("format", "version", "inputs", "outputs", "columns", "rows", "global_rows"),
    *("booleans", "clauses", "rules", "conditions"),
)


def decode(content: dict[str, Any], functions: Mapping[str, Any], path: str) -> RuleData:
    """The rules of a file.

    Args:
        content: what JSON holds.
        functions: conditions that are Python functions, by their owner.
        path: the file, for messages.

    Raises:
        Damage: something is not what it has to be, with its place.
    """
    version = content["version"]
    unknown = [key for key in content if key not in _SECTIONS]
    if unknown and version > 1:
        raise Unknown(f"the section {unknown[0][:40]!r} is not known.")
    part = Record(content, "").record(*_SECTIONS)
    rows, columns = part["rows"].list(), part["columns"].list()
    refuse_huge(len(rows), len(columns), path)
    inputs = [one.record("name", "bounds") for one in part["inputs"].list()]
    _refuse_unneeded(part["conditions"], functions, path)
    data = RuleData(
        inputs=_names(inputs),
        input_bounds=tuple(one["bounds"].bounds() for one in inputs),
        outputs=part["outputs"].index(len(columns) + 1, "number of outputs"),
        columns=tuple(map(_column, columns)),
        rows=tuple(_row(row, len(columns), len(inputs), version) for row in rows),
        global_rows=part["global_rows"].indices(len(rows), "row"),
        booleans=tuple(
            _boolean(one, len(rows), len(inputs), version) for one in part["booleans"].list()
        ),
        conditions=tuple(
            _condition(one, functions, len(inputs)) for one in part["conditions"].list()
        ),
        clauses=(),
        rules=(),
    )
    if not data.outputs:
        part["outputs"].refuse("expected at least one output")
    _names([column.record("name", "bounds", "integer") for column in columns])
    clauses = _clauses(part["clauses"], data, version)
    data = replace(data, clauses=clauses, rules=_rules(part["rules"], clauses, version))
    if version == 1:
        return inferred(data)
    _check_roles(part, data)
    _check_kinds(part["clauses"].list(), data)
    _check_prices(part, data)
    return data


def _names(records: list[dict[str, Record]]) -> tuple[str, ...]:
    known: dict[str, None] = {}
    for record in records:
        name = record["name"].text()
        if name in known:
            record["name"].refuse(f"'{name}' is there already")
        known[name] = None
    return tuple(known)


def _column(part: Record) -> Column:
    record = part.record("name", "bounds", "integer")
    (low, high), integer = record["bounds"].bounds(), record["integer"].flag()
    if integer and not (math.isfinite(low) and math.isfinite(high) and low % 1 == high % 1 == 0):
        record["bounds"].refuse("an integer needs whole numbers as bounds")
    return Column(record["name"].text(), low, high, integer)


def _row(part: Record, columns: int, inputs: int, version: int) -> Row:
    keys, role, curved = ["name", "terms", "sense", "bound"], Role.CONSTRAINT, False
    if version > 1:
        # Format 2 knows no curves, and so no arguments of any.
        roles = [one for one in Role if version > 2 or one is not Role.ARGUMENT]
        curved = part.kind("kind", [LINEAR, CONVEX] if version > 2 else [LINEAR]) == CONVEX
        role = Role(part.kind("role", roles))
        keys += ["kind", "role", "source", *(("curves",) if curved else ())]
    record = part.record(*keys)
    source = _source(record["source"]) if version > 1 else -1
    terms: dict[int, Coefficient] = {}
    for term in record["terms"].list():
        members = term.list()
        if len(members) < 2:
            term.refuse("expected a column and its coefficient")
        column = members[0].index(columns, "column")
        if column in terms:
            term.refuse(f"column {column} stands twice in the row")
        terms[column] = _coefficient(members[1:], inputs)
    sense = record["sense"].text()
    if sense not in ("==", "<="):
        record["sense"].refuse(f"expected '==' or '<=', got {sense[:20]!r}")
    bound = record["bound"].list()
    if not bound:
        record["bound"].refuse("expected a number")
    name = record["name"].text()
    right = _coefficient(bound, inputs)
    curves = tuple(map(_curve, record["curves"].list())) if curved else ()
    if curved and (not curves or sense == "==" or role is not Role.CONSTRAINT):
        part.refuse("kind 'convex' needs curves, the sense '<=' and the role 'constraint'")
    return Row(name, tuple(terms.items()), right, sense == "==", role, source, curves)


def _curve(part: Record) -> Curve:
    shape = Shape(part.kind("shape", list(Shape)))
    power = shape is Shape.POWER
    record = part.record("shape", "weight", "arguments", *(("exponent",) if power else ()))
    weight = record["weight"].number()
    if weight <= 0.0:
        record["weight"].refuse(f"expected a positive number, got {weight:g}")
    arguments = tuple(one.whole() for one in record["arguments"].list())
    if not arguments or (len(arguments) > 1 and shape not in (Shape.SQUARES, Shape.NORM)):
        record["arguments"].refuse("expected one row, or for squares and norms one or more")
    if not power:
        return Curve(shape, weight, arguments)
    exponent = record["exponent"].number()
    if exponent in (0.0, 1.0):
        record["exponent"].refuse(f"expected a power that is curved, got {exponent:g}")
    return Curve(shape, weight, arguments, exponent)


def _source(part: Record) -> int:
    source = part.whole()
    if source < 0:
        part.refuse("expected a number from 0 on")
    return source


def _coefficient(parts: list[Record], inputs: int) -> Coefficient:
    multipliers: dict[atoms.Tree, float] = {}
    for part in parts[1:]:
        multiplier, tree = part.list(2)
        atom = _tree(tree, inputs)
        if atom in multipliers:
            part.refuse("the same expression stands twice in one coefficient")
        multipliers[atom] = multiplier.number()
    return Coefficient(parts[0].number(), multipliers)


def _tree(part: Record, inputs: int, condition: bool = False, depth: int = 1) -> atoms.Tree:
    """An expression (or condition) of the inputs; only what `atoms` knows."""
    if depth > atoms.DEEPEST:
        part.refuse(f"nested more than {atoms.DEEPEST} deep")
    members = part.list()
    kind = members[0].value if members else None
    known = kind.__class__ is str and kind in atoms.KINDS
    if not known or (kind in atoms.CONDITIONS) != condition:
        part.refuse(f"not {'a condition' if condition else 'an expression'}: {str(kind)[:40]!r}")
    arguments = members[1:]
    expected = atoms.arity(str(kind))
    if len(arguments) != expected if expected is not None else not arguments:
        part.refuse(f"wrong number of arguments of '{kind}': {len(arguments)}")
    if kind == "input":
        return ("input", arguments[0].index(inputs, "input"))
    if kind == "number":
        return atoms.number(arguments[0].number())
    logical = [kind in ("and", "or", "not")] * len(arguments)
    if kind == "if":
        logical[0] = True
    inner = zip(arguments, logical, strict=True)
    return (kind, *(_tree(one, inputs, wanted, depth + 1) for one, wanted in inner))


def _boolean(part: Record, rows: int, inputs: int, version: int) -> Boolean:
    keys = ["name", "true", "false", "tied", *(("helper",) if version > 1 else ())]
    record = part.record(*keys, *(("price",) if version > 3 else ()))
    false, tied = record["false"].indices(rows, "row"), record["tied"].flag()
    if false and not tied:
        record["tied"].refuse("expected true where there are rows for false")
    true, helper = record["true"].indices(rows, "row"), version > 1 and record["helper"].flag()
    price = Coefficient()
    if version > 3:
        price = _coefficient(
            record["price"].list() or [Record(None, record["price"].place)], inputs
        )
        if price.is_number and price.number < 0.0:
            record["price"].refuse(f"expected a number from 0 on, got {price.number:g}")
    return Boolean(record["name"].text(), true, false, tied, helper, price)


def _refuse_unneeded(part: Record, functions: Mapping[str, Any], path: str) -> None:
    records = [one.record("owner", "tree") for one in part.list()]
    needed = {one["owner"].text() for one in records if one["tree"].value == FUNCTION}
    unknown = set(functions) - needed
    if unknown:
        raise RuleError(
            f"conditions: {', '.join(sorted(unknown))} needs none in {path}; functions are "
            f"needed for {', '.join(sorted(needed)) or 'nothing'}."
        )


def _condition(part: Record, functions: Mapping[str, Any], inputs: int) -> Condition:
    record = part.record("owner", "tree")
    owner = record["owner"].text()
    if record["tree"].value != FUNCTION:
        return Condition(owner, tree=_tree(record["tree"], inputs, condition=True))
    if owner not in functions:
        raise RuleError(
            f"The condition of '{owner}' is a Python function and was not saved. Pass it as "
            f"conditions={{'{owner}': function}}."
        )
    if not callable(functions[owner]):
        raise RuleError(
            f"conditions: '{owner}' needs a function x -> bool (batch,), got {functions[owner]!r}."
        )
    return Condition(owner, function=functions[owner])


def _clauses(part: Record, data: RuleData, version: int) -> tuple[Clause, ...]:
    clauses: list[Clause] = []
    clause_of: dict[int, int] = {}  # the Disjunction of each disjunct
    guards: list[Record] = []
    for index, one in enumerate(part.list()):
        record, kind, xor, source = _kind(one, version)
        breaking = record["breaking"].whole() if version > 3 else -1
        clause = Clause(
            record["name"].text(),
            tuple(_literal(literal, data) for literal in record["literals"].list()),
            record["guard"].whole(),
            record["conditions"].indices(len(data.conditions), "condition"),
            *(kind, xor, source, breaking),
        )
        if breaking != -1 and (clause.logic or clause.literals[-1:] != (breaking + 1,)):
            record["breaking"].refuse("expected the boolean of the last literal of a rule, or -1")
        clauses.append(clause)
        guards.append(record["guard"])
        if not -1 <= clause.guard < len(data.booleans):
            record["guard"].refuse("there is no such boolean")
        if clause.logic:
            if not all(data.booleans[abs(k) - 1].tied for k in clause.literals):
                record["literals"].refuse("logic names a boolean that is not tied")
            continue
        if not clause.disjuncts or min(clause.literals) < 0:
            record["literals"].refuse("expected the disjuncts of a rule, all positive")
        for literal in clause.literals:
            if literal - 1 in clause_of:
                record["literals"].refuse(f"disjunct {literal} stands in two places")
            clause_of[literal - 1] = index
        # Its guard stands in an earlier clause, so that no rule is nested in itself.
        if clause.guard >= 0 and clause_of.get(clause.guard, index) >= index:
            record["guard"].refuse("expected a disjunct of an earlier clause")
    for clause, guard in zip(clauses, guards, strict=True):
        if clause.guard < 0:
            continue
        if clause.guard not in clause_of:
            guard.refuse("expected a disjunct")
        tied = any(data.booleans[abs(k) - 1].tied for k in clause.literals)
        if tied and not data.booleans[clause.guard].tied:
            guard.refuse("it is not tied, though a literal of its clause is")
    return tuple(clauses)


def _kind(part: Record, version: int) -> tuple[dict[str, Record], Kind, bool, int]:
    """The entries of a clause; what it says, whether as XOR, and where it came from."""
    common = ("name", "literals", "guard", "conditions", *(("breaking",) if version > 3 else ()))
    if version == 1:
        record = part.record(*common, "logic")
        kind = Kind.PROPOSITION if record["logic"].flag() else Kind.DISJUNCTION
        return record, kind, False, -1
    kind = Kind(part.kind("kind", list(Kind)))
    has_xor = kind is Kind.DISJUNCTION
    record = part.record("kind", *(("xor",) if has_xor else ()), "source", *common)
    return record, kind, has_xor and record["xor"].flag(), _source(record["source"])


def _check_roles(part: dict[str, Record], data: RuleData) -> None:
    always = set(data.global_rows)
    enforced = always.union(*(b.true_rows + b.false_rows for b in data.booleans))
    for i, (row, one) in enumerate(zip(data.rows, part["rows"].list(), strict=True)):
        if row.is_bound:
            sign = Coefficient(1.0 if row.role is Role.UPPER else -1.0)
            if i not in always or row.equality or [a for _, a in row.terms] != [sign]:
                one.refuse(f"role '{row.role}' needs a global row {sign.number:g} * column <= b")
        if row.role is Role.ARGUMENT and (row.equality or i in enforced):
            one.refuse("role 'argument' needs a row a z <= b that nothing enforces")
        arguments = [k for curve in row.curves for k in curve.arguments]
        if any(k not in data.arguments for k in arguments):
            one.refuse("expected rows of the role 'argument' as arguments of its curves")
        if row.role is Role.LINK and not (row.equality and len(row.terms) == 1):
            one.refuse("role 'link' needs a row column == b")
    for boolean, one in zip(data.booleans, part["booleans"].list(), strict=True):
        true, false = (
            [data.rows[i].terms[0][0] for i in rows if data.rows[i].role is Role.LINK]
            for rows in (boolean.true_rows, boolean.false_rows)
        )
        if len(true) > 1 or true != false or len(false) < len(boolean.false_rows):
            one.refuse("expected one row 'link' for true and for false, of one column, or none")


def _check_kinds(parts: list[Record], data: RuleData) -> None:
    rules: dict[int, Clause] = {}
    exclusive: dict[int, set[frozenset[int]]] = {}
    for clause, part in zip(data.clauses, parts, strict=True):
        rule = rules.get(clause.source)
        if clause.logic and clause.kind is not Kind.PROPOSITION:
            if rule is None or not _is_about(clause, rule, data):
                part.refuse(f"kind '{clause.kind}' does not fit the rule of its source")
            if clause.kind is Kind.XOR:
                exclusive.setdefault(clause.source, set()).add(frozenset(clause.literals))
            continue
        if rule is not None:
            part.refuse(f"source {clause.source} is a rule already")
        one = len(clause.disjuncts) == 1
        if clause.kind is Kind.CONDITIONAL and not (one and clause.conditions):
            part.refuse("kind 'conditional' needs one literal, and a condition")
        if not clause.logic:
            rules[clause.source] = clause
    for clause, part in zip(data.clauses, parts, strict=True):
        if clause.kind is Kind.PROPOSITION and clause.source in rules:
            part.refuse(f"source {clause.source} is a rule already")
        if clause.kind is Kind.DISJUNCTION:
            tied = any(data.booleans[literal - 1].tied for literal in clause.literals)
            pairs = {frozenset((-a, -b)) for a, b in combinations(clause.literals, 2)}
            if exclusive.get(clause.source, set()) != (pairs if clause.xor and tied else set()):
                part.refuse("its 'xor', and the clauses of kind 'xor', contradict each other")


def _is_about(clause: Clause, rule: Clause, data: RuleData) -> bool:
    """Whether a clause says of the disjuncts of a rule what its kind is there for."""
    literals = clause.literals
    if clause.guard != rule.guard or len(literals) != (1 if clause.kind is Kind.FIXED else 2):
        return False
    if clause.kind is Kind.TWIN:
        twin, nested = literals
        outside = abs(twin) - 1 not in data.disjuncts
        return outside and twin * nested < 0 and abs(nested) in rule.literals
    sign = 1 if clause.kind is Kind.FIXED else -1
    return {sign * literal for literal in literals} <= set(rule.literals)


def _check_prices(part: dict[str, Record], data: RuleData) -> None:
    breaking = {clause.breaking for clause in data.clauses} - {-1}
    for k, (boolean, one) in enumerate(zip(data.booleans, part["booleans"].list(), strict=True)):
        if k in breaking and (boolean.true_rows or boolean.false_rows or k in data.guarded):
            one.refuse("expected no rows, and no rule in it, of what breaks a rule")
        if not boolean.price.is_zero and k not in data.disjuncts:
            one.refuse("expected no price of what is no disjunct")


def _literal(part: Record, data: RuleData) -> int:
    literal = part.whole()
    if not 1 <= abs(literal) <= len(data.booleans):
        part.refuse("there is no such boolean")
    return literal


def _rules(part: Record, clauses: tuple[Clause, ...], version: int) -> tuple[Rule, ...]:
    rules: list[Rule] = []
    wanted = {k for k, clause in enumerate(clauses) if not clause.logic and clause.guard < 0}
    for one in part.list():
        keys = ("name", "clause", "positions", *(("importance",) if version > 3 else ()))
        record = one.record(*keys)
        clause = record["clause"].index(len(clauses), "clause")
        if clause not in wanted:
            record["clause"].refuse("it is no rule, or is another rule already")
        wanted.remove(clause)
        positions = tuple(position.whole() for position in record["positions"].list())
        if len(positions) != len(clauses[clause].literals):
            record["positions"].refuse("expected one for each disjunct of the clause")
        broken = clauses[clause].breaking >= 0
        own = positions[:-1] if broken else positions
        if len(set(own)) < len(own) or min(own) < 0 or (broken and positions[-1] != -1):
            record["positions"].refuse(
                "expected different numbers from 0 on, and -1 for what breaks the rule"
            )
        importance = record["importance"].number() if version > 3 else 1.0
        if importance <= 0.0:
            record["importance"].refuse(f"expected a positive number, got {importance:g}")
        rules.append(Rule(record["name"].text(), clause, positions, importance))
    if wanted:
        part.refuse(f"clause {min(wanted)} is a Disjunction that is not nested, but no rule")
    return tuple(rules)
