"""The expressions of rules as instructions of the core, where it can express them.

Only operations whose result is the same to the last bit as torch's are taken (so that a threshold
is never seen differently); rules with others, or with Python functions as conditions, have no tape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gdpnet.core import OPERATIONS, Array
from gdpnet.ir.atoms import Tree
from gdpnet.ir.data import RuleData

_CODES = {name: code for code, name in enumerate(OPERATIONS)}


class Lines(NamedTuple):
    """Operations in order; operation r writes register r.

    Attributes:
        code: which operation, (registers,).
        first: register, or column of x for an input, (registers,).
        second: register, (registers,).
        third: register, (registers,).
        constant: for numbers, (registers,).
    """

    code: Array
    first: Array
    second: Array
    third: Array
    constant: Array


class Terms(NamedTuple):
    """`value[to] += multiplier * register`, in order.

    Attributes:
        to: flat index of the entry, (terms,).
        register: (terms,).
        multiplier: (terms,).
    """

    to: Array
    register: Array
    multiplier: Array


class Instructions(NamedTuple):
    """All that is needed to instantiate rules for a sample.

    Attributes:
        inputs: columns of x.
        lines: the operations.
        bound: constant part of the right sides, (m,).
        bound_terms: what the inputs add to them.
        varying: constant part of the coefficients that depend on x, (k, n).
        varying_terms: what the inputs add to them, flat over (k, n).
        clause_start: conditions of each clause, (clauses + 1,).
        clause_register: registers of those conditions.
        price: constant part of the prices, (priced,).
        price_terms: what the inputs add to them; 0 in all where a rule does not apply.
    """

    inputs: int
    lines: Lines
    bound: Array
    bound_terms: Terms
    varying: Array
    varying_terms: Terms
    clause_start: Array
    clause_register: Array
    price: Array
    price_terms: Terms


def compile_tape(data: RuleData) -> Instructions | None:
    """Instructions for the rules, or None where there are none that can express them."""
    writer = _TapeWriter()
    try:
        conditions = [writer.register(c.tree) for c in data.conditions]
        bound, bound_terms = np.zeros(len(data.rows)), []
        left: list[tuple[int, int, int, float]] = []
        varying: dict[int, np.ndarray] = {}
        for i, row in enumerate(data.rows):
            bound[i] = row.bound.number
            for atom, multiplier in row.bound.atoms.items():
                bound_terms.append((i, writer.register(atom), multiplier))
            constant = np.zeros(len(data.columns))
            for column, coefficient in row.terms:
                constant[column] = coefficient.number
                for atom, multiplier in coefficient.atoms.items():
                    left.append((i, column, writer.register(atom), multiplier))
                    varying[i] = constant
        prices = [writer.price(data, boolean) for boolean in data.priced]
    except _Untaped:
        return None
    place = {row: k for k, row in enumerate(sorted(varying))}
    n = len(data.columns)
    starts = np.cumsum([0, *(len(c.conditions) for c in data.clauses)])
    registers = [conditions[k] for c in data.clauses for k in c.conditions]
    return Instructions(
        inputs=len(data.inputs),
        lines=writer.lines(),
        bound=bound,
        bound_terms=_terms(bound_terms),
        varying=np.array([varying[row] for row in sorted(varying)]).reshape(len(varying), n),
        varying_terms=_terms([(place[i] * n + j, r, c) for i, j, r, c in left]),
        clause_start=starts.astype(np.int64),
        clause_register=np.array(registers, dtype=np.int64),
        price=np.array([number for number, _ in prices], dtype=np.float64),
        price_terms=_terms([(k, r, c) for k, (_, terms) in enumerate(prices) for r, c in terms]),
    )


class _Untaped(Exception):  # noqa: N818
    """An operation that the tape does not have."""


class _TapeWriter:
    """Writes each different tree once."""

    def __init__(self) -> None:
        self._known: dict[Tree, int] = {}
        self._lines: list[tuple[int, int, int, int, float]] = []

    def register(self, tree: Tree | None) -> int:
        """The register that will hold a tree's value."""
        if tree is None:
            raise _Untaped
        if tree not in self._known:
            self._known[tree] = self._write(tree)
        return self._known[tree]

    def price(self, data: RuleData, boolean: int) -> tuple[float, list[tuple[int, float]]]:
        """The price of a boolean: its constant part, and registers with their multipliers."""
        price = data.booleans[boolean].price
        required = dict.fromkeys(
            k for clause in data.required_by(boolean) for k in data.clauses[clause].conditions
        )
        if not required:
            return price.number, [(self.register(atom), c) for atom, c in price.atoms.items()]
        trees = [data.conditions[k].tree for k in required]
        applies = trees[0] if len(trees) == 1 else ("and", *trees)
        return 0.0, [(self.register(("if", applies, price.tree(), ("number", 0.0))), 1.0)]

    def _write(self, tree: Tree) -> int:
        kind, *parts = tree
        if kind == "input":
            return self._line(_CODES[kind], parts[0])
        if kind == "number":
            return self._line(_CODES[kind], constant=parts[0])
        if kind in ("true", "false"):
            return self._line(_CODES["number"], constant=float(kind == "true"))
        if kind not in _CODES:
            raise _Untaped
        code = _CODES[kind]
        registers = [self.register(part) for part in parts]
        if kind == "if":
            return self._line(code, *registers)
        if len(registers) == 1:
            return self._line(code, registers[0]) if kind in ("abs", "not") else registers[0]
        value = registers[0]
        for other in registers[1:]:  # from left to right, as torch does
            value = self._line(code, value, other)
        return value

    def _line(
        self, code: int, first: int = 0, second: int = 0, third: int = 0, constant: float = 0.0
    ) -> int:
        self._lines.append((code, first, second, third, constant))
        return len(self._lines) - 1

    def lines(self) -> Lines:
        columns = list(zip(*self._lines, strict=True)) or [(), (), (), (), ()]
        code, first, second, third = (np.array(c, dtype=np.int64) for c in columns[:4])
        return Lines(code, first, second, third, np.array(columns[4], dtype=np.float64))


def _terms(terms: Sequence[tuple[int, int, float]]) -> Terms:
    columns = list(zip(*terms, strict=True)) or [(), (), ()]
    return Terms(
        np.array(columns[0], dtype=np.int64),
        np.array(columns[1], dtype=np.int64),
        np.array(columns[2], dtype=np.float64),
    )
