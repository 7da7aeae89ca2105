"""Rules as a JSON file: portable, readable, no pickle.

A file has the sections of `RuleData`. Format 2 is open to additions: a row says its `kind` and
`role`, a clause its `kind`, and a section, kind or role that is not known is refused by name, never
passed over. Format 1 had none of these; `_format_1` infers them. Format 3 has rows of the kind
`convex`, and is written where there are any. Format 4 has prices of booleans, which boolean breaks
a clause and importances of rules, and is written where there are any.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from gdpnet.errors import RuleError
from gdpnet.ir.data import Curve, Kind, RuleData, Shape
from gdpnet.ir.linear import Coefficient
from gdpnet.rules import _decode
from gdpnet.rules._parts import Damage, Unknown

FORMAT = "gdpnet rules"
VERSION = 4
# What other rules are written in, for any gdpnet that reads it.
_CURVED, _LINEAR = 3, 2


def fingerprint(data: RuleData) -> str:
    """SHA-256 of what the rules say, as format 1 says it: what it cannot say changes no answer."""
    text = json.dumps(_as_format_1(_encode(data)), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def save(data: RuleData, path: str | PathLike[str]) -> None:
    """Write rules to a file; a condition that is a function is left open."""
    Path(path).write_text(json.dumps(_encode(data), indent=1) + "\n", encoding="utf-8")


def load(path: str | PathLike[str], conditions: Mapping[str, Any]) -> RuleData:
    """Read rules from a file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        content = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:  # of the encoding, of JSON, of endless numbers
        raise RuleError(f"{path}: not a file of rules ({error}).") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise RuleError(f"{path}: not a file of rules; write one with RuleModel.save.")
    version = content.get("version")
    if version.__class__ is not int or not 1 <= version <= VERSION:
        raise RuleError(
            f"{path}: version {version} of the format; this gdpnet reads versions 1 to {VERSION}. "
            "Update gdpnet to read newer ones."
        )
    try:
        return _decode.decode(content, conditions, str(path))
    except Unknown as unknown:
        raise RuleError(
            f"{path}: {unknown} A newer gdpnet wrote the file: update gdpnet to read it."
        ) from None
    except Damage as damage:
        raise RuleError(f"{path}: the file is damaged: {damage}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        twice = next(key for k, (key, _) in enumerate(pairs) if key in dict(pairs[:k]))
        raise ValueError(f"'{twice}' stands twice in one record")
    return record


def _encode(data: RuleData) -> dict[str, Any]:
    numbered = _numbered(data)
    return {
        "format": FORMAT,
        "version": VERSION if numbered else _CURVED if data.curved else _LINEAR,
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
                "kind": _decode.CONVEX if row.curves else _decode.LINEAR,
                "role": row.role,
                "source": row.source,
                "name": row.name,
                "terms": [[column, *_encode_coefficient(a)] for column, a in row.terms],
                "sense": "==" if row.equality else "<=",
                "bound": _encode_coefficient(row.bound),
                **({"curves": [_encode_curve(c) for c in row.curves]} if row.curves else {}),
            }
            for row in data.rows
        ],
        "global_rows": list(data.global_rows),
        "booleans": [
            {
                "name": b.name,
                "true": list(b.true_rows),
                "false": list(b.false_rows),
                "tied": b.tied,
                "helper": b.helper,
                **({"price": _encode_coefficient(b.price)} if numbered else {}),
            }
            for b in data.booleans
        ],
        "clauses": [
            {
                "kind": c.kind,
                **({"xor": c.xor} if c.kind is Kind.DISJUNCTION else {}),
                "source": c.source,
                "name": c.name,
                "literals": list(c.literals),
                "guard": c.guard,
                "conditions": list(c.conditions),
                **({"breaking": c.breaking} if numbered else {}),
            }
            for c in data.clauses
        ],
        "rules": [
            {
                "name": r.name,
                "clause": r.clause,
                "positions": list(r.positions),
                **({"importance": r.importance} if numbered else {}),
            }
            for r in data.rules
        ],
        "conditions": [
            {"owner": c.owner, "tree": _decode.FUNCTION if c.tree is None else c.tree}
            for c in data.conditions
        ],
    }


def _numbered(data: RuleData) -> bool:
    """Whether there is a price or an importance."""
    breaking = any(clause.breaking >= 0 for clause in data.clauses)
    return bool(data.priced) or breaking or any(r.importance != 1.0 for r in data.rules)


def _as_format_1(content: dict[str, Any]) -> dict[str, Any]:
    """What format 1 says of the rules; it has the same entries but for these."""
    rules = {Kind.DISJUNCTION, Kind.CONDITIONAL}
    added = {"kind", "role", "source", "xor", "helper"}

    def without(record: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in record.items() if key not in added}

    return {
        **content,
        "version": 1,
        "rows": [without(row) for row in content["rows"]],
        "booleans": [without(boolean) for boolean in content["booleans"]],
        "clauses": [without(c) | {"logic": c["kind"] not in rules} for c in content["clauses"]],
    }


def _encode_curve(curve: Curve) -> dict[str, Any]:
    power = {"exponent": curve.exponent} if curve.shape is Shape.POWER else {}
    return {
        "shape": curve.shape,
        "weight": curve.weight,
        "arguments": list(curve.arguments),
        **power,
    }


def _encode_coefficient(coefficient: Coefficient) -> list[Any]:
    return [coefficient.number, *([c, atom] for atom, c in coefficient.atoms.items())]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
