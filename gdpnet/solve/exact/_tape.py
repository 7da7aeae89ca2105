"""Conditions and coefficients of a batch, evaluated without torch.

A single prediction is projected in microseconds; evaluating the inputs' expressions operation by
operation in torch would cost a hundred times that. The expressions are therefore compiled to a
tape of elementary operations that one kernel runs through for every sample. Only operations whose
result is the same to the last bit as torch's are taken (so that a threshold is never seen
differently); rules with others, or with Python functions as conditions, are evaluated in torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import typeof

from gdpnet.ir.atoms import Tree
from gdpnet.ir.data import RuleData
from gdpnet.solve.exact._block import Block, unpack
from gdpnet.solve.exact._jit import Array, jit, source_stamp

_OPERATIONS = (
    *("input", "number", "sum", "product", "divide", "max", "min", "abs"),
    *("if", "<=", "<", "==", "and", "or", "not"),
)
_CODES = {name: code for code, name in enumerate(_OPERATIONS)}
_INPUT, _NUMBER, _SUM, _PRODUCT, _DIVIDE, _MAX, _MIN, _ABS = range(8)
_IF, _LESS_EQUAL, _LESS, _EQUAL, _AND, _OR, _NOT = range(8, 15)


class Tape(NamedTuple):
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
        tape: the operations.
        bound: constant part of the right sides, (m,).
        bound_terms: what the inputs add to them.
        varying: constant part of the coefficients that depend on x, (k, n).
        varying_terms: what the inputs add to them, flat over (k, n).
        clause_start: conditions of each clause, (clauses + 1,).
        clause_register: registers of those conditions.
    """

    tape: Tape
    bound: Array
    bound_terms: Terms
    varying: Array
    varying_terms: Terms
    clause_start: Array
    clause_register: Array


def compile_instructions(data: RuleData) -> Block | None:
    """The `Instructions` of a rule model, or None where the tape cannot express it."""
    instructions = _compile(data)
    return None if instructions is None else Block(instructions, _INSTRUCTIONS)


def _compile(data: RuleData) -> Instructions | None:
    writer = _Writer()
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
    except _Untaped:
        return None
    place = {row: k for k, row in enumerate(sorted(varying))}
    n = len(data.columns)
    starts = np.cumsum([0, *(len(c.conditions) for c in data.clauses)])
    registers = [conditions[k] for c in data.clauses for k in c.conditions]
    return Instructions(
        tape=writer.tape(),
        bound=bound,
        bound_terms=_terms(bound_terms),
        varying=np.array([varying[row] for row in sorted(varying)]).reshape(len(varying), n),
        varying_terms=_terms([(place[i] * n + j, r, c) for i, j, r, c in left]),
        clause_start=starts.astype(np.int64),
        clause_register=np.array(registers, dtype=np.int64),
    )


class _Untaped(Exception):  # noqa: N818
    """An operation that the tape does not have."""


class _Writer:
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

    def _write(self, tree: Tree) -> int:
        kind, *parts = tree
        if kind == "input":
            return self._line(_INPUT, parts[0])
        if kind == "number":
            return self._line(_NUMBER, constant=parts[0])
        if kind in ("true", "false"):
            return self._line(_NUMBER, constant=float(kind == "true"))
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

    def tape(self) -> Tape:
        columns = list(zip(*self._lines, strict=True)) or [(), (), (), (), ()]
        code, first, second, third = (np.array(c, dtype=np.int64) for c in columns[:4])
        return Tape(code, first, second, third, np.array(columns[4], dtype=np.float64))


def _terms(terms: Sequence[tuple[int, int, float]]) -> Terms:
    columns = list(zip(*terms, strict=True)) or [(), (), ()]
    return Terms(
        np.array(columns[0], dtype=np.int64),
        np.array(columns[1], dtype=np.int64),
        np.array(columns[2], dtype=np.float64),
    )


@jit
def run_tape(tape, x, value):
    """Fills the registers for one sample."""
    for r in range(tape.code.size):
        code, a, b = tape.code[r], tape.first[r], tape.second[r]
        if code == _INPUT:
            value[r] = x[a]
        elif code == _NUMBER:
            value[r] = tape.constant[r]
        elif code == _SUM:
            value[r] = value[a] + value[b]
        elif code == _PRODUCT:
            value[r] = value[a] * value[b]
        elif code == _DIVIDE:
            value[r] = value[a] / value[b]
        elif code == _MAX:
            value[r] = value[a] if value[a] > value[b] or np.isnan(value[a]) else value[b]
        elif code == _MIN:
            value[r] = value[a] if value[a] < value[b] or np.isnan(value[a]) else value[b]
        elif code == _ABS:
            value[r] = abs(value[a])
        elif code == _IF:
            value[r] = value[b] if value[a] != 0.0 else value[tape.third[r]]
        elif code == _LESS_EQUAL:
            value[r] = 1.0 if value[a] <= value[b] else 0.0
        elif code == _LESS:
            value[r] = 1.0 if value[a] < value[b] else 0.0
        elif code == _EQUAL:
            value[r] = 1.0 if value[a] == value[b] else 0.0
        elif code == _AND:
            value[r] = value[a] * value[b]
        elif code == _OR:
            value[r] = max(value[a], value[b])
        else:
            value[r] = 1.0 - value[a]


_NOTHING = RuleData((), (), 0, (), (), (), (), (), (), ())
_INSTRUCTIONS = typeof(_compile(_NOTHING))


def _compile_instantiate(stamp: int) -> Any:
    @jit
    def instantiate(words, x, active, bound, varying):
        """Conditions, right sides and varying coefficients of a batch.

        Args:
            words: of the block of the rule model's instructions.
            x: (B, p).
            active: (B, clauses) bool, written.
            bound: (B, m), written.
            varying: (B, k, n), written.

        Returns:
            Whether all coefficients are finite numbers.
        """
        instructions = unpack(words, _INSTRUCTIONS)
        value = np.empty(instructions.tape.code.size)
        total = 0.0  # of zeros, or NaN
        for s in range(stamp * 0, x.shape[0]):
            run_tape(instructions.tape, x[s], value)
            for c in range(active.shape[1]):
                holds = True
                for e in range(instructions.clause_start[c], instructions.clause_start[c + 1]):
                    holds = holds and value[instructions.clause_register[e]] != 0.0
                active[s, c] = holds
            bound[s] = instructions.bound
            terms = instructions.bound_terms
            for e in range(terms.to.size):
                bound[s, terms.to[e]] += terms.multiplier[e] * value[terms.register[e]]
                total += 0.0 * bound[s, terms.to[e]]
            varying[s] = instructions.varying
            flat = varying[s].ravel()
            terms = instructions.varying_terms
            for e in range(terms.to.size):
                flat[terms.to[e]] += terms.multiplier[e] * value[terms.register[e]]
                total += 0.0 * flat[terms.to[e]]
        return total == 0.0

    return instantiate


instantiate = _compile_instantiate(source_stamp("solve/exact/_block", "solve/exact/_tape"))
