"""Rules as plain data that a page can compute with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from gdpnet.errors import InputError
from gdpnet.ir import atoms
from gdpnet.ir.data import Clause, RuleData
from gdpnet.ir.linear import Coefficient
from gdpnet.model import RuleModel
from gdpnet.rules import describe

# Corners of polytopes are listed in as many dimensions.
MOST_OUTPUTS = 6


def model_of(
    rules: RuleModel, name: str, outputs: Sequence[int], samples: Sequence[Sequence[float]]
) -> dict[str, Any]:
    """What the page knows of the rules.

    Args:
        rules: the rules.
        name: what the model is called.
        outputs: the two outputs that the page shows first; of one output its distance is shown.
        samples: inputs to choose from, each `p`.
    """
    data = rules.data
    refuse_unsupported(data)
    return {
        "name": name,
        "pair": list(outputs),
        "outputs": [{"name": c.name, "low": c.lower, "high": c.upper} for c in data.columns],
        "start": [(c.lower + c.upper) / 2 for c in data.columns],
        "inputs": _inputs(data, samples),
        "samples": [list(x) for x in samples],
        "rows": [
            {
                "name": row.name,
                "terms": [[column, _coefficient(a)] for column, a in row.terms],
                "bound": _coefficient(row.bound),
                "equality": row.equality,
                **({"curves": [asdict(curve) for curve in row.curves]} if row.curves else {}),
            }
            for row in data.rows
        ],
        "globals": list(data.global_rows),
        "always": [describe.row_text(data, data.rows[i]) for i in data.global_rows],
        "clauses": [_clause(data, clause) for clause in data.clauses],
        "rules": [_rule(data, rule.name, rule.clause) for rule in data.rules],
        "priced": bool(data.priced) or any(clause.breaking >= 0 for clause in data.clauses),
    }


def refuse_unsupported(data: RuleData) -> None:
    """Raise where the page cannot compute with the rules, naming what it is."""
    auxiliaries = [c.name for c in data.columns[data.outputs :]]
    whole = [c.name for c in data.columns[: data.outputs] if c.integer]
    tied = [c.name for c in data.clauses if c.logic] or [b.name for b in data.booleans if b.tied]
    ends = [c.name for c in data.columns if not (math.isfinite(c.lower) and math.isfinite(c.upper))]
    functions = {k for k, condition in enumerate(data.conditions) if condition.tree is None}
    inner = [c.name for c in data.clauses if c.guard >= 0 and functions.intersection(c.conditions)]
    for names, what in (
        (auxiliaries, "variables that are no outputs"),
        (whole, "whole numbers"),
        (tied, "logic over indicators"),
        (inner, "Python functions as conditions of nested rules"),
    ):
        if names:
            listed = ", ".join(dict.fromkeys(names[:8]))
            raise InputError(
                f"The explorer does not know {what} ({listed}). plot_region draws such rules."
            )
    if data.outputs > MOST_OUTPUTS:
        listed = ", ".join(c.name for c in data.columns[:8])
        more = ", ..." if data.outputs > 8 else ""
        raise InputError(
            f"The explorer shows models with up to {MOST_OUTPUTS} outputs; this one has "
            f"{data.outputs} ({listed}{more}). plot_region draws two of many."
        )
    if ends:
        raise InputError(
            f"The explorer needs finite bounds, but {', '.join(ends)} "
            f"{'has' if len(ends) == 1 else 'have'} none that hold for all inputs. Give "
            f"{'it' if len(ends) == 1 else 'them'} bounds in the Pyomo model."
        )


def _inputs(data: RuleData, samples: Sequence[Sequence[float]]) -> list[dict[str, Any]]:
    """Inputs with the range of their sliders: `input_bounds`, or what the samples span."""
    found, unknown = [], []
    for k, (name, (low, high)) in enumerate(zip(data.inputs, data.input_bounds, strict=True)):
        values = [float(x[k]) for x in samples]
        if not (math.isfinite(low) and math.isfinite(high)):
            if not values:
                unknown.append(name)
                continue
            low, high = min(values), max(values)
            if low == high:
                low, high = low - 1.0, high + 1.0
        start = values[0] if values else (low + high) / 2
        found.append({"name": name, "low": low, "high": high, "start": start})
    if unknown:
        raise InputError(
            f"The explorer needs a range for every input, and knows none of {', '.join(unknown)}. "
            "Give RuleModel input_bounds, or the model file a sample(n, split, seed)."
        )
    return found


def _clause(data: RuleData, clause: Clause) -> dict[str, Any]:
    trees = [data.conditions[k].tree for k in clause.conditions]
    breaking = clause.breaking
    return {
        "conditions": [tree for tree in trees if tree is not None],
        "price": None if breaking < 0 else _coefficient(data.booleans[breaking].price),
        "disjuncts": [
            {
                "rows": list(data.booleans[literal - 1].true_rows),
                "nested": list(data.guarded.get(literal - 1, ())),
                "price": _coefficient(data.booleans[literal - 1].price),
            }
            for literal in clause.disjuncts
        ],
    }


def _rule(data: RuleData, name: str, index: int) -> dict[str, Any]:
    clause = data.clauses[index]
    trees = [data.conditions[k].tree for k in clause.conditions]
    # Several conditions are joined by `and`: one that is an `or` needs parentheses then.
    parent = 2 if len(trees) > 1 else 0
    disjuncts = [describe.disjunct_text(data, literal - 1) for literal in clause.disjuncts]
    prices = [data.booleans[literal - 1].price for literal in clause.disjuncts]
    if len(disjuncts) > 1 or not all(price.is_zero for price in prices):
        disjuncts = [
            f"({text})" if " and " in text or " or " in text else text for text in disjuncts
        ]
    for k, literal in enumerate(clause.disjuncts):
        if not prices[k].is_zero:
            disjuncts[k] += f" for {describe.price_text(data, literal - 1)}"
    known = [atoms.text(tree, data.inputs, parent) for tree in trees if tree is not None]
    return {
        "name": name,
        "clause": index,
        "when": " and ".join(known),
        "hand": len(known) < len(trees),
        "disjuncts": disjuncts,
        "price": "" if clause.breaking < 0 else describe.price_text(data, clause.breaking),
    }


def _coefficient(coefficient: Coefficient) -> list[Any]:
    return [coefficient.number, *([factor, tree] for tree, factor in coefficient.atoms.items())]
