"""Rules in readable mathematics, as text and as HTML."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import islice

from gdpnet.ir import atoms
from gdpnet.ir.data import Clause, Column, Condition, Curve, Kind, Row, Rule, RuleData, Shape
from gdpnet.ir.linear import Coefficient
from gdpnet.rules import _logic_text

_LONGEST = 12  # entries of a list shown before it is cut
_LONGEST_ROW = 24  # terms of a row
_LONG_SECTION = 60  # entries of a section; of a longer one the first are shown
_SHOWN = 20
_AND = 2  # precedence of `and` in `atoms.text`


def as_text(data: RuleData) -> str:
    """Several lines: counts, outputs, inputs, constraints, rules."""
    lines = [f"RuleModel: {_counts(data)}"]
    for title, entries in _sections(data):
        lines.append(f"  {title}")
        lines += [f"    {name}: {body}" if name else f"    {body}" for name, body in entries]
    return "\n".join(lines)


def as_html(data: RuleData) -> str:
    """A table for notebooks and reports."""
    parts = [f"<div class='gdpnet-rules'><p><b>RuleModel</b>: {escape(_counts(data))}</p>"]
    parts.append("<table style='border-collapse:collapse'>")
    for title, entries in _sections(data):
        style = "text-align:left;padding-top:.6em"
        parts.append(f"<tr><th colspan='2' style='{style}'>{escape(title)}</th></tr>")
        parts += [
            f"<tr><td style='text-align:left;vertical-align:top;padding-right:1em'>"
            f"{escape(name)}</td><td style='text-align:left'><code>{escape(body)}</code></td></tr>"
            for name, body in entries
        ]
    return "".join([*parts, "</table></div>"])


def _counts(data: RuleData) -> str:
    auxiliaries = len(data.columns) - data.outputs
    counts = [
        _count(len(data.rules), "rule"),
        _count(data.outputs, "output"),
        _count(len(data.inputs), "input"),
        _count(len({data.rows[i].source for i in data.global_rows}), "global constraint"),
    ]
    if auxiliaries:
        plural = "auxiliary" if auxiliaries == 1 else "auxiliaries"
        counts.append(f"{auxiliaries} {plural}")
    return ", ".join(counts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _sections(data: RuleData) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    yield "outputs", [("", _columns(data.columns[: data.outputs]))]
    if len(data.columns) > data.outputs:
        yield "auxiliaries", [("", _columns(data.columns[data.outputs :]))]
    if data.inputs:
        pairs = list(zip(data.inputs, data.input_bounds, strict=True))
        open_ended = all(_is_free(*bounds) for _, bounds in pairs)
        shown = (name if open_ended else _interval(name, *bounds) for name, bounds in pairs)
        yield "inputs", [("", _cut(shown))]
    if data.global_rows:
        rows = (data.rows[i] for i in data.global_rows)
        entries = ((row.name, row_text(data, row)) for row in rows)
        yield "always", _first(entries, len(data.global_rows), "constraint")
    if data.rules:
        entries = ((rule.name, _rule(data, rule)) for rule in data.rules)
        yield "rules", _first(entries, len(data.rules), "rule")
    logic = _logic(data)
    if logic:
        entries = ((clauses[0].name, _logic_text_of(data, clauses)) for clauses in logic)
        yield "logic", _first(entries, len(logic), "proposition")


def _first(entries: Iterable[tuple[str, str]], count: int, noun: str) -> list[tuple[str, str]]:
    """All entries of a short section, the first of a long one; the others are not even written."""
    if count <= _LONG_SECTION:
        return list(entries)
    more = f"... and {_count(count - _SHOWN, f'more {noun}')}"
    return [*islice(entries, _SHOWN), ("", more)]


def _logic(data: RuleData) -> list[list[Clause]]:
    """Clauses of each proposition; those that XOR and fixed indicators add are not shown."""
    found: dict[int, list[Clause]] = {}
    for clause in data.clauses:
        if clause.kind is Kind.PROPOSITION:
            found.setdefault(clause.source, []).append(clause)
    return list(found.values())


def _logic_text_of(data: RuleData, clauses: list[Clause]) -> str:
    first = clauses[0]
    literals = [clause.literals for clause in clauses]
    named = {abs(k) - 1 for part in literals for k in part}
    helpers = {k for k in named if data.booleans[k].helper}
    names = [boolean.name for boolean in data.booleans]
    said = _logic_text.propositions(literals, helpers)
    if said is None:
        body = f"{len(literals)} clauses over {_cut(names[k] for k in sorted(named - helpers))}"
    else:
        written = [_logic_text.text(one, names) for one in said[:_LONGEST]]
        if len(said) > _LONGEST:
            written.append(f"... {len(said)} in all")
        body = written[0] if len(written) == 1 else " and ".join(f"({one})" for one in written)
    when = [] if first.guard < 0 else [data.booleans[first.guard].name]
    when += _conditions(data, first)
    return f"if {' and '.join(when)}: {body}" if when else body


def _columns(columns: Sequence[Column]) -> str:
    # Names alone, where none has bounds: beside others they would be read as sharing theirs.
    if all(_is_free(column.lower, column.upper) for column in columns):
        return _cut(column.name for column in columns)
    return _cut(map(_column, columns))


def _column(column: Column) -> str:
    if column.integer and (column.lower, column.upper) == (0.0, 1.0):
        return f"{column.name} in {{0, 1}}"
    return _interval(column.name, column.lower, column.upper) + " whole" * column.integer


def _interval(name: str, low: float, high: float) -> str:
    if _is_free(low, high):
        return f"{name} free"
    return f"{name} in [{atoms.format_number(low)}, {atoms.format_number(high)}]"


def _is_free(low: float, high: float) -> bool:
    return low == -math.inf and high == math.inf


def _cut(entries: Iterable[str]) -> str:
    listed = list(entries)
    more = f", ... ({len(listed)} in all)" if len(listed) > _LONGEST else ""
    return ", ".join(listed[:_LONGEST]) + more


def _rule(data: RuleData, rule: Rule) -> str:
    said = "" if rule.importance == 1.0 else f" (importance {atoms.format_number(rule.importance)})"
    return clause_text(data, rule.clause) + said


def clause_text(data: RuleData, index: int) -> str:
    """A rule: its condition, then its disjuncts, with their names, joined by `or`."""
    clause = data.clauses[index]
    disjuncts = [_disjunct(data, clause, literal - 1) for literal in clause.disjuncts[:_LONGEST]]
    alone = len(clause.literals) == 1
    body = " or ".join(text if alone else wrapped for text, wrapped in disjuncts)
    if len(clause.disjuncts) > _LONGEST:
        body += f" or ... ({len(clause.disjuncts)} disjuncts in all)"
    if clause.breaking >= 0:
        body += f" or broken for {_coefficient(data, data.booleans[clause.breaking].price)}"
    when = " and ".join(_conditions(data, clause))
    return f"if {when}: {body}" if when else body


def _disjunct(data: RuleData, clause: Clause, boolean: int) -> tuple[str, str]:
    """A disjunct by itself, and as one of several."""
    text = disjunct_text(data, boolean)
    name = data.booleans[boolean].name
    # Pyomo makes up `rule_disjuncts[0]` for a disjunct that is a list of constraints.
    made_up = name == clause.name or name.startswith(f"{_component(clause.name)}_disjuncts")
    price = data.booleans[boolean].price
    if made_up and not data.booleans[boolean].tied:
        if price.is_zero:
            return text, _wrapped(text)
        name = ""
    text = f"{name} ({text})".lstrip()
    if not price.is_zero:
        text += f" for {_coefficient(data, price)}"
    return text, text


def _component(name: str) -> str:
    """The name of `unit.rule[3]` without its index."""
    return name[: name.rindex("[")] if name.endswith("]") and "[" in name else name


def _conditions(data: RuleData, clause: Clause) -> list[str]:
    # Several conditions are joined by `and`: one that is an `or` needs parentheses then.
    parent = _AND if len(clause.conditions) + (clause.logic and clause.guard >= 0) > 1 else 0
    return [_condition(data, data.conditions[k], parent) for k in clause.conditions]


def disjunct_text(data: RuleData, boolean: int) -> str:
    """A disjunct: its rows, and the disjunctions nested in it, joined by `and`."""
    rows = data.booleans[boolean].true_rows
    parts = [row_text(data, data.rows[i]) for i in rows[:_LONGEST]]
    if len(rows) > _LONGEST:
        parts.append(f"... ({len(rows)} rows in all)")
    parts += [f"({clause_text(data, k)})" for k in data.guarded.get(boolean, ())]
    return " and ".join(parts) or "anything"


def row_text(data: RuleData, row: Row) -> str:
    """A row, written the way a modeller would: positive first coefficient, no `-x <= -1`."""
    bent = [term for curve in row.curves for term in _curve(data, curve)]
    if not row.terms and not bent:
        sign = "==" if row.equality else "<="
        return f"0 {sign} {_coefficient(data, row.bound)}"
    negative = [sign < 0 for sign, _ in bent] + [_is_negative(a) for _, a in row.terms]
    # Turned round where that leaves no minus on the left, or fewer in all.
    signs = negative if row.equality else [*negative, _is_negative(row.bound)]
    flip = all(negative) or (not bent and 2 * sum(signs) > len(signs))
    factor = -1.0 if flip else 1.0
    written = [text if sign * factor > 0 else f"-{text}" for sign, text in bent[:_LONGEST_ROW]]
    written += [
        _term(data, coefficient.scaled(factor), data.columns[column].name)
        for column, coefficient in row.terms[: _LONGEST_ROW - len(written)]
    ]
    left = _added(written)
    if len(written) < len(negative):
        left += f" + ... ({len(negative)} terms in all)"
    sign = "==" if row.equality else (">=" if flip else "<=")
    return f"{left} {sign} {_coefficient(data, row.bound.scaled(factor))}"


def _added(terms: list[str]) -> str:
    """Terms as a sum; those that begin with a minus are taken off."""
    text = terms[0]
    for term in terms[1:]:
        text += f" - {term[1:]}" if term.startswith("-") else f" + {term}"
    return text


def _curve(data: RuleData, curve: Curve) -> list[tuple[int, str]]:
    """The terms of a curve: sign, and text without it."""
    inner = [_argument(data, data.rows[i]) for i in curve.arguments]
    squares = [f"{_base(text)}^2" for text in inner]
    weight = "" if curve.weight == 1.0 else f"{atoms.format_number(curve.weight)}*"
    if curve.shape is Shape.SQUARES:
        return [(1, weight + one) for one in squares]
    if curve.shape is Shape.NORM:
        norm = f"|{inner[0]}|" if len(inner) == 1 else f"sqrt({_added(squares)})"
        return [(1, weight + norm)]
    if curve.shape is Shape.EXP:
        return [(1, f"{weight}exp({inner[0]})")]
    if curve.shape is Shape.LOG:
        return [(-1, f"{weight}log({inner[0]})")]
    exponent = atoms.format_number(curve.exponent)
    power = f"{_base(inner[0])}^{exponent if curve.exponent > 0 else f'({exponent})'}"
    text = f"sqrt({inner[0]})" if curve.exponent == 0.5 else power
    return [(-1 if 0.0 < curve.exponent < 1.0 else 1, weight + text)]


def _argument(data: RuleData, row: Row) -> str:
    """`a z - b` of a row."""
    terms = [_term(data, a, data.columns[column].name) for column, a in row.terms[:_LONGEST_ROW]]
    if len(row.terms) > _LONGEST_ROW:
        terms.append(f"... ({len(row.terms)} terms in all)")
    if not row.bound.is_zero or not terms:
        terms.append(atoms.text(row.bound.scaled(-1.0).tree(), data.inputs, parent=4))
    return _added(terms)


def _base(text: str) -> str:
    """What stands under an exponent."""
    alone = not any(sign in text for sign in " *-+/")
    return text if alone else f"({text})"


def _is_negative(coefficient: Coefficient) -> bool:
    if coefficient.is_number:
        return coefficient.number < 0
    return coefficient.number <= 0 and all(c < 0 for c in coefficient.atoms.values())


def _term(data: RuleData, coefficient: Coefficient, name: str) -> str:
    if coefficient.is_number:
        if abs(coefficient.number) == 1.0:
            return name if coefficient.number > 0 else f"-{name}"
        return f"{atoms.format_number(coefficient.number)}*{name}"
    return f"{atoms.text(coefficient.tree(), data.inputs, parent=6)}*{name}"


def price_text(data: RuleData, boolean: int) -> str:
    """What choosing a boolean costs."""
    return _coefficient(data, data.booleans[boolean].price)


def _coefficient(data: RuleData, coefficient: Coefficient) -> str:
    return atoms.text(coefficient.tree(), data.inputs)


def _condition(data: RuleData, condition: Condition, parent: int) -> str:
    if condition.tree is None:
        name = getattr(condition.function, "__name__", "function")
        return f"{name}(x)"
    return atoms.text(condition.tree, data.inputs, parent)


def _wrapped(text: str) -> str:
    return f"({text})" if " and " in text or " or " in text else text
