"""Rules in readable mathematics, as text and as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from gdpnet.rules import _atoms
from gdpnet.rules._data import Clause, Column, Condition, Row, RuleData
from gdpnet.rules._linear import Coefficient

_LONGEST = 12  # entries of a list shown before it is cut
_AND = 2  # precedence of `and` in `_atoms.text`


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
        _count(len({data.rows[i].name for i in data.global_rows}), "global constraint"),
    ]
    if auxiliaries:
        plural = "auxiliary" if auxiliaries == 1 else "auxiliaries"
        counts.append(f"{auxiliaries} {plural}")
    return ", ".join(counts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _sections(data: RuleData) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    yield "outputs", [("", _cut(_column(c) for c in data.columns[: data.outputs]))]
    if len(data.columns) > data.outputs:
        yield "auxiliaries", [("", _cut(_column(c) for c in data.columns[data.outputs :]))]
    if data.inputs:
        pairs = zip(data.inputs, data.input_bounds, strict=True)
        yield "inputs", [("", _cut(_interval(name, *bounds) for name, bounds in pairs))]
    if data.global_rows:
        rows = [data.rows[i] for i in data.global_rows]
        yield "always", [(row.name, row_text(data, row)) for row in rows]
    if data.rules:
        yield "rules", [(rule.name, clause_text(data, rule.clause)) for rule in data.rules]
    propositions = dict.fromkeys(c.name for c in data.clauses if _is_proposition(data, c))
    if propositions:
        yield "logic", [("", name) for name in propositions]


def _is_proposition(data: RuleData, clause: Clause) -> bool:
    return clause.logic and all(clause.name != c.name for c in data.clauses if not c.logic)


def _column(column: Column) -> str:
    if column.integer and (column.lower, column.upper) == (0.0, 1.0):
        return f"{column.name} in {{0, 1}}"
    return _interval(column.name, column.lower, column.upper) + " whole" * column.integer


def _interval(name: str, low: float, high: float) -> str:
    if low == -float("inf") and high == float("inf"):
        return name
    return f"{name} in [{_atoms.format_number(low)}, {_atoms.format_number(high)}]"


def _cut(entries: Iterable[str]) -> str:
    listed = list(entries)
    more = f", ... ({len(listed)} in all)" if len(listed) > _LONGEST else ""
    return ", ".join(listed[:_LONGEST]) + more


def clause_text(data: RuleData, index: int) -> str:
    """A rule: its condition, then its disjuncts joined by `or`."""
    clause = data.clauses[index]
    # Several conditions are joined by `and`: one that is an `or` needs parentheses then.
    parent = _AND if len(clause.conditions) > 1 else 0
    when = " and ".join(_condition(data, data.conditions[k], parent) for k in clause.conditions)
    disjuncts = [disjunct_text(data, literal - 1) for literal in clause.literals]
    alone = len(disjuncts) == 1
    body = disjuncts[0] if alone else " or ".join(_wrapped(d) for d in disjuncts)
    return f"if {when}: {body}" if when else body


def disjunct_text(data: RuleData, boolean: int) -> str:
    """A disjunct: its rows, and the disjunctions nested in it, joined by `and`."""
    parts = [row_text(data, data.rows[i]) for i in data.booleans[boolean].true_rows]
    parts += [f"({clause_text(data, k)})" for k in data.guarded.get(boolean, ())]
    return " and ".join(parts) or "anything"


def row_text(data: RuleData, row: Row) -> str:
    """A row, written the way a modeller would: positive first coefficient, no `-x <= -1`."""
    if not row.terms:
        sign = "==" if row.equality else "<="
        return f"0 {sign} {_coefficient(data, row.bound)}"
    negative = [_is_negative(a) for _, a in row.terms]
    # Turned round where that leaves no minus on the left, or fewer in all.
    signs = negative if row.equality else [*negative, _is_negative(row.bound)]
    flip = all(negative) or 2 * sum(signs) > len(signs)
    factor = -1.0 if flip else 1.0
    left = ""
    for column, coefficient in row.terms:
        term = _term(data, coefficient.scaled(factor), data.columns[column].name)
        if not left:
            left = term
        else:
            left += f" - {term[1:]}" if term.startswith("-") else f" + {term}"
    sign = "==" if row.equality else (">=" if flip else "<=")
    return f"{left} {sign} {_coefficient(data, row.bound.scaled(factor))}"


def _is_negative(coefficient: Coefficient) -> bool:
    if coefficient.is_number:
        return coefficient.number < 0
    return coefficient.number <= 0 and all(c < 0 for c in coefficient.atoms.values())


def _term(data: RuleData, coefficient: Coefficient, name: str) -> str:
    if coefficient.is_number:
        if abs(coefficient.number) == 1.0:
            return name if coefficient.number > 0 else f"-{name}"
        return f"{_atoms.format_number(coefficient.number)}*{name}"
    return f"{_atoms.text(coefficient.tree(), data.inputs, parent=6)}*{name}"


def _coefficient(data: RuleData, coefficient: Coefficient) -> str:
    return _atoms.text(coefficient.tree(), data.inputs)


def _condition(data: RuleData, condition: Condition, parent: int) -> str:
    if condition.tree is None:
        name = getattr(condition.function, "__name__", "function")
        return f"{name}(x)"
    return _atoms.text(condition.tree, data.inputs, parent)


def _wrapped(text: str) -> str:
    return f"({text})" if " and " in text or " or " in text else text
