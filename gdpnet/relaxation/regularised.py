"""The quadratic term that makes a program's solution move continuously.

`eps / 2 v^2` on every column in which what is minimised is not curved by itself. Of a program that
gdpnet convexified it is that of `gdpnet.QP`, in the units of the heaviest output: on the weights of
the products, and with the l1 norm on every copy, measured from the prediction, of its distance and
of auxiliaries; on no sum of copies. There a variable that stands in some products only has one copy
for all others together, which is taken apart first.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gdpnet.ir.data import Row
from gdpnet.ir.linear import Coefficient, LinearForm
from gdpnet.relaxation.parametric import ParametricProgram
from gdpnet.relaxation.program import Variable

Term = tuple[float, LinearForm]
_ONE, _MINUS = Coefficient(1.0), Coefficient(-1.0)


def regularised(program: ParametricProgram, eps: float) -> ParametricProgram:
    """The program with its quadratic term.

    Args:
        program: the program.
        eps: size of the term; 0 leaves it out.
    """
    if eps == 0.0:
        return program
    distances = [j for j, v in enumerate(program.variables) if v.kind == "distance"]
    if not distances:
        plain = [
            j
            for j, v in enumerate(program.variables)
            if not program.curved[j] and v.kind != "curve"
        ]
        return program.with_squares([(eps, _column(j)) for j in plain])
    unit = max(abs(program.costs[j].number) for j in distances) or 1.0
    if program.cones:
        chosen = [j for j, v in enumerate(program.variables) if v.kind == "weight"]
        return program.with_squares([(eps * unit, _column(j)) for j in chosen])
    program = _taken_apart(program)
    forms = [*_deviations(program), *map(_column, _copies(program))]
    return program.with_squares([(eps * unit, form) for form in forms])


def _column(j: int) -> LinearForm:
    return LinearForm(columns={j: _ONE})


def _deviations(program: ParametricProgram) -> list[LinearForm]:
    """What distances bound: outputs, or their copies, less the prediction."""
    found: dict[int, LinearForm] = {}
    for row in program.rows:
        terms = dict(row.terms)
        for j, a in row.terms:
            if program.variables[j].kind != "distance" or row.equality or a != _MINUS:
                continue
            name = program.variables[j].name
            values = [
                b
                for k, b in row.terms
                if (v := program.variables[k]).kind == "value" and v.name == name
            ]
            if len(values) == 1 and values[0] == _ONE and j not in found:
                rest = {k: b for k, b in terms.items() if k != j}
                found[j] = LinearForm(row.bound.scaled(-1.0), rest)
    return list(found.values())


def _copies(program: ParametricProgram) -> list[int]:
    """Weights, distances and auxiliaries, those that are no sums."""
    summed = {(v.kind, v.name) for v in program.variables if v.rules}
    outputs = {v.name for v in program.variables if v.kind == "distance"}
    chosen = []
    for j, v in enumerate(program.variables):
        is_sum = not v.rules and (v.kind, v.name) in summed
        is_output = v.kind == "value" and v.name in outputs
        if not is_sum and not is_output:
            chosen.append(j)
    return chosen


def _taken_apart(program: ParametricProgram) -> ParametricProgram:
    """With a copy for each product of what products without a variable have in common."""
    products: dict[tuple[str, ...], list[tuple[frozenset[str], int]]] = {}
    for j, v in enumerate(program.variables):
        if v.kind == "weight":
            products.setdefault(v.rules, []).append((v.term, j))
    own = {(v.kind, v.name, v.rules, v.term) for v in program.variables}
    ends = {
        (v.kind, v.name): (program.lower[j], program.upper[j])
        for j, v in enumerate(program.variables)
        if not v.rules
    }
    variables, rows, lower, upper = list(program.variables), list(program.rows), [], []
    for j, v in enumerate(program.variables):
        if not v.rules or v.term or v.kind == "weight":
            continue
        low, high = ends[v.kind, v.name]
        parts = []
        for term, weight in products[v.rules]:
            if (v.kind, v.name, v.rules, term) in own:
                continue
            part = len(variables)
            variables.append(Variable(v.kind, v.name, v.rules, term))
            lower.append(-np.inf)
            upper.append(np.inf)
            parts.append(part)
            for end, sign in ((low, -1.0), (high, 1.0)):
                if np.isfinite(end):
                    terms = ((part, Coefficient(sign)), (weight, Coefficient(-sign * end)))
                    rows.append(Row(v.name, terms, Coefficient()))
        total = ((j, _MINUS), *((part, _ONE) for part in parts))
        rows.append(Row(v.name, total, Coefficient(), True))
        variables[j] = Variable(v.kind, v.name)  # a sum now
    more = len(lower)
    return replace(
        program,
        variables=tuple(variables),
        rows=tuple(rows),
        lower=np.concatenate([program.lower, lower]),
        upper=np.concatenate([program.upper, upper]),
        costs=(*program.costs, *[Coefficient()] * more),
        square=np.concatenate([program.square, np.zeros(more)]),
        curved=np.concatenate([program.curved, np.zeros(more, dtype=bool)]),
    )
