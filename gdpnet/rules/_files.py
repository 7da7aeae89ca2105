"""Rules as a JSON file: portable, readable, no pickle."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from gdpnet.errors import RuleError
from gdpnet.rules import _atoms
from gdpnet.rules._data import Boolean, Clause, Column, Condition, Row, Rule, RuleData
from gdpnet.rules._linear import Coefficient

FORMAT = "gdpnet rules"
VERSION = 1

# What stands in a file for a condition that is a Python function.
_FUNCTION = "function"


def fingerprint(data: RuleData) -> str:
    """SHA-256 of what the rules say."""
    text = json.dumps(_encode(data), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def save(data: RuleData, path: str | PathLike[str]) -> None:
    """Write rules to a file; a condition that is a function is left open."""
    Path(path).write_text(json.dumps(_encode(data), indent=1) + "\n", encoding="utf-8")


def load(path: str | PathLike[str], conditions: Mapping[str, Any]) -> RuleData:
    """Read rules from a file."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise RuleError(f"{path}: not a file of rules ({error}).") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise RuleError(f"{path}: not a file of rules; write one with RuleModel.save.")
    if content.get("version") != VERSION:
        raise RuleError(
            f"{path}: version {content.get('version')} of the format; this gdpnet reads "
            f"version {VERSION}."
        )
    try:
        needed = {c["owner"] for c in content["conditions"] if c["tree"] == _FUNCTION}
        unknown = set(conditions) - needed
        if unknown:
            raise RuleError(
                f"conditions: {', '.join(sorted(unknown))} needs none in {path}; functions are "
                f"needed for {', '.join(sorted(needed)) or 'nothing'}."
            )
        data = _decode(content, dict(conditions))
        _check(data)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
        raise RuleError(f"{path}: the file is damaged ({error!r}).") from None
    return data


def _encode(data: RuleData) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "inputs": [
            {"name": name, "bounds": [_finite(low), _finite(high)]}
            for name, (low, high) in zip(data.inputs, data.input_bounds, strict=True)
        ],
        "outputs": data.outputs,
        "columns": [
            {"name": c.name, "bounds": [_finite(c.lower), _finite(c.upper)], "integer": c.integer}
            for c in data.columns
        ],
        "rows": [
            {
                "name": row.name,
                "terms": [[column, *_encode_coefficient(a)] for column, a in row.terms],
                "sense": "==" if row.equality else "<=",
                "bound": _encode_coefficient(row.bound),
            }
            for row in data.rows
        ],
        "global_rows": list(data.global_rows),
        "booleans": [
            {"name": b.name, "true": list(b.true_rows), "false": list(b.false_rows), "tied": b.tied}
            for b in data.booleans
        ],
        "clauses": [
            {
                "name": c.name,
                "literals": list(c.literals),
                "guard": c.guard,
                "conditions": list(c.conditions),
                "logic": c.logic,
            }
            for c in data.clauses
        ],
        "rules": [
            {"name": r.name, "clause": r.clause, "positions": list(r.positions)} for r in data.rules
        ],
        "conditions": [
            {"owner": c.owner, "tree": _FUNCTION if c.tree is None else c.tree}
            for c in data.conditions
        ],
    }


def _decode(content: dict[str, Any], conditions: dict[str, Any]) -> RuleData:
    inputs = content["inputs"]
    return RuleData(
        inputs=tuple(str(i["name"]) for i in inputs),
        input_bounds=tuple(_bounds(i["bounds"]) for i in inputs),
        outputs=int(content["outputs"]),
        columns=tuple(
            Column(c["name"], *_bounds(c["bounds"]), bool(c["integer"])) for c in content["columns"]
        ),
        rows=tuple(
            Row(
                r["name"],
                tuple((int(column), _coefficient(a, len(inputs))) for column, *a in r["terms"]),
                _coefficient(r["bound"], len(inputs)),
                {"==": True, "<=": False}[r["sense"]],
            )
            for r in content["rows"]
        ),
        global_rows=tuple(content["global_rows"]),
        booleans=tuple(
            Boolean(b["name"], tuple(b["true"]), tuple(b["false"]), bool(b["tied"]))
            for b in content["booleans"]
        ),
        clauses=tuple(
            Clause(
                *(c["name"], tuple(c["literals"]), c["guard"], tuple(c["conditions"]), c["logic"])
            )
            for c in content["clauses"]
        ),
        rules=tuple(Rule(r["name"], r["clause"], tuple(r["positions"])) for r in content["rules"]),
        conditions=tuple(_condition(c, conditions, len(inputs)) for c in content["conditions"]),
    )


def _condition(content: dict[str, Any], conditions: dict[str, Any], inputs: int) -> Condition:
    owner = content["owner"]
    if content["tree"] != _FUNCTION:
        return Condition(owner, tree=_atoms.from_json(content["tree"], inputs, condition=True))
    if owner not in conditions:
        raise RuleError(
            f"The condition of '{owner}' is a Python function and was not saved. Pass it as "
            f"conditions={{'{owner}': function}}."
        )
    if not callable(conditions[owner]):
        raise RuleError(
            f"conditions: '{owner}' needs a function x -> bool (batch,), got {conditions[owner]!r}."
        )
    return Condition(owner, function=conditions[owner])


def _encode_coefficient(coefficient: Coefficient) -> list[Any]:
    return [coefficient.number, *([c, atom] for atom, c in coefficient.atoms.items())]


def _coefficient(content: list[Any], inputs: int) -> Coefficient:
    number, *atoms = content
    return Coefficient(float(number), {_atoms.from_json(a, inputs): float(c) for c, a in atoms})


def _check(data: RuleData) -> None:
    """Refuses data whose parts do not fit together, before they are used."""

    def within(index: int, count: int, what: str) -> None:
        if not (isinstance(index, int) and 0 <= index < count):
            raise ValueError(f"there is no {what} {index}")

    named: list[Any] = [*data.columns, *data.rows, *data.booleans, *data.clauses, *data.rules]
    if not all(isinstance(part.name, str) for part in named):
        raise ValueError("a name is not text")
    if not 1 <= data.outputs <= len(data.columns):
        raise ValueError(f"{data.outputs} outputs of {len(data.columns)} columns")
    for column in data.columns:
        if not column.lower <= column.upper:
            raise ValueError(f"the bounds of {column.name} are crossed")
    for row in data.rows:
        for index, _ in row.terms:
            within(index, len(data.columns), "column")
    rows = [data.global_rows, *(b.true_rows + b.false_rows for b in data.booleans)]
    for index in (row for part in rows for row in part):
        within(index, len(data.rows), "row")
    for clause in data.clauses:
        for literal in clause.literals:
            within(abs(literal) - 1, len(data.booleans), "boolean")
        within(clause.guard + 1, len(data.booleans) + 1, "guard")
        for condition in clause.conditions:
            within(condition, len(data.conditions), "condition")
    for rule in data.rules:
        within(rule.clause, len(data.clauses), "clause")
        if len(rule.positions) != len(data.clauses[rule.clause].literals):
            raise ValueError(f"the disjuncts of {rule.name} are not those of its clause")


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _bounds(pair: list[float | None]) -> tuple[float, float]:
    low, high = pair
    return (-math.inf if low is None else float(low), math.inf if high is None else float(high))
