"""Conditions and coefficients of a batch, evaluated without torch.

A single prediction is projected in microseconds; evaluating the inputs' expressions operation by
operation in torch would cost a hundred times that. The expressions are therefore compiled to a
tape of elementary operations that one kernel runs through for every sample.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import typeof

from gdpnet.kernels._block import unpack
from gdpnet.kernels._jit import Array, jit, source_stamp

OPERATIONS = (
    *("input", "number", "sum", "product", "divide", "max", "min", "abs"),
    *("if", "<=", "<", "==", "and", "or", "not"),
)
"""Names of the operations, by code."""

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


_NUMBERS, _INDICES = np.zeros(0), np.zeros(0, dtype=np.int64)
_TERMS = Terms(to=_INDICES, register=_INDICES, multiplier=_NUMBERS)
INSTRUCTIONS = typeof(
    Instructions(
        tape=Tape(_INDICES, _INDICES, _INDICES, _INDICES, _NUMBERS),
        bound=_NUMBERS,
        bound_terms=_TERMS,
        varying=np.zeros((0, 0)),
        varying_terms=_TERMS,
        clause_start=_INDICES,
        clause_register=_INDICES,
    )
)


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
        instructions = unpack(words, INSTRUCTIONS)
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


instantiate = _compile_instantiate(source_stamp("kernels/_block", "kernels/tape"))
