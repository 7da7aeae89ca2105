"""Expressions in the inputs alone, as plain nested tuples.

A coefficient of a rule may depend on the inputs in any way Pyomo can write. What is left of such
an expression once Pyomo is gone is a tree of tuples: hashable (equal sub-trees are evaluated
once), storable as JSON, and evaluated for a whole batch in torch, differentiably.

    ("input", 3)                      column 3 of x
    ("number", 2.5)
    ("sum", a, b, ...)   ("product", a, b)   ("divide", a, b)   ("power", a, b)
    ("exp", a)  ("log", a)  ...       functions of one argument
    ("max", a, b, ...)   ("min", a, b, ...)
    ("if", condition, a, b)

Conditions (what `active_when` holds, and the first argument of "if"):

    ("<=", a, b)  ("<", a, b)  ("==", a, b)
    ("and", p, ...)  ("or", p, ...)  ("not", p)  ("true",)  ("false",)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

Tree = tuple[Any, ...]

FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "abs": torch.abs,
    "exp": torch.exp,
    "log": torch.log,
    "log10": torch.log10,
    "sqrt": torch.sqrt,
    "sin": torch.sin,
    "cos": torch.cos,
    "tan": torch.tan,
    "asin": torch.asin,
    "acos": torch.acos,
    "atan": torch.atan,
    "sinh": torch.sinh,
    "cosh": torch.cosh,
    "tanh": torch.tanh,
    "asinh": torch.asinh,
    "acosh": torch.acosh,
    "atanh": torch.atanh,
    "ceil": torch.ceil,
    "floor": torch.floor,
}

# Trees are walked by functions that call themselves, here, in pickle and in JSON: so many levels
# fit into Python's stack, whoever calls.
DEEPEST = 100

TRUE: Tree = ("true",)
FALSE: Tree = ("false",)


def number(value: float) -> Tree:
    """A constant leaf."""
    return ("number", float(value))


class Evaluator:
    """Evaluates trees on one batch; equal sub-trees once.

    Args:
        x: inputs, `batch x p`, float64.
    """

    def __init__(self, x: torch.Tensor) -> None:
        self.x = x
        self._known: dict[Tree, torch.Tensor] = {}

    def __call__(self, tree: Tree) -> torch.Tensor:
        """Value of a tree, shape `batch` (bool for a condition)."""
        known = self._known.get(tree)
        if known is None:
            known = self._known[tree] = self._evaluate(tree)
        return known

    def _evaluate(self, tree: Tree) -> torch.Tensor:
        kind = tree[0]
        if kind == "input":
            return self.x[:, tree[1]]
        if kind == "number":
            return self.x.new_full((len(self.x),), tree[1])
        if kind in ("true", "false"):
            return torch.full((len(self.x),), kind == "true", device=self.x.device)
        if kind == "if":
            return self._branch(*tree[1:])
        arguments = [self(argument) for argument in tree[1:]]
        if kind in FUNCTIONS:
            return FUNCTIONS[kind](arguments[0])
        return _OPERATIONS[kind](arguments)

    def _branch(self, condition: Tree, then: Tree, otherwise: Tree) -> torch.Tensor:
        # torch.where would evaluate both branches everywhere, and a NaN in the branch not taken
        # (a logarithm of a negative number, say) would come back through the gradient.
        mask = self(condition)
        if bool(mask.all()):
            return self(then)
        if not bool(mask.any()):
            return self(otherwise)
        value = self.x.new_empty(len(self.x))
        value = value.index_put((mask,), Evaluator(self.x[mask])(then))
        return value.index_put((~mask,), Evaluator(self.x[~mask])(otherwise))


def _fold(operation: Callable[[Any, Any], Any]) -> Callable[[Sequence[Any]], Any]:
    def apply(arguments: Sequence[Any]) -> Any:
        value = arguments[0]
        for argument in arguments[1:]:
            value = operation(value, argument)
        return value

    return apply


_OPERATIONS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "sum": _fold(lambda a, b: a + b),
    "product": _fold(lambda a, b: a * b),
    "divide": _fold(lambda a, b: a / b),
    "power": _fold(lambda a, b: a**b),
    "max": _fold(torch.maximum),
    "min": _fold(torch.minimum),
    "<=": lambda arguments: arguments[0] <= arguments[1],
    "<": lambda arguments: arguments[0] < arguments[1],
    "==": lambda arguments: arguments[0] == arguments[1],
    "and": _fold(lambda a, b: a & b),
    "or": _fold(lambda a, b: a | b),
    "not": lambda arguments: ~arguments[0],
}

CONDITIONS = {"<=", "<", "==", "and", "or", "not", "true", "false"}
# Arguments of each kind; functions have one, the others one or more.
_ARITY = {"<=": 2, "<": 2, "==": 2, "not": 1, "if": 3, "true": 0, "false": 0}
_ARITY |= {"input": 1, "number": 1}
KINDS = {"input", "number", "true", "false", "if", *_OPERATIONS, *FUNCTIONS}


def too_deep(tree: Tree) -> bool:
    """Whether a tree has more than `DEEPEST` levels."""
    level = [tree]
    for _ in range(DEEPEST):
        level = [part for node in level for part in node[1:] if isinstance(part, tuple)]
        if not level:
            return False
    return True


def is_finite(tree: Tree) -> bool:
    """Whether the constants of a tree are finite."""
    if tree[0] == "number":
        return math.isfinite(tree[1])
    return all(is_finite(part) for part in tree[1:] if isinstance(part, tuple))


def inputs_of(tree: Tree) -> set[int]:
    """Columns of x that a tree reads."""
    if tree[0] == "input":
        return {tree[1]}
    return set().union(*(inputs_of(part) for part in tree[1:] if isinstance(part, tuple)), set())


def arity(kind: str) -> int | None:
    """How many arguments a kind of tree has; None for one or more."""
    return _ARITY.get(kind, 1 if kind in FUNCTIONS else None)


_PRECEDENCE = {"or": 1, "and": 2, "not": 3, "<=": 4, "<": 4, "==": 4, "sum": 5, "product": 6}
_PRECEDENCE |= {"divide": 6, "power": 8}
_SIGN = {"or": " or ", "and": " and ", "<=": " <= ", "<": " < ", "==": " == "}
_SIGN |= {"product": "*", "divide": "/", "power": "**"}
_FLIPPED = {"<=": " >= ", "<": " > "}


def text(tree: Tree, names: Sequence[str], parent: int = 0) -> str:
    """Readable mathematics of a tree.

    Args:
        tree: what to write.
        names: names of the inputs, by column.
        parent: precedence of the operator around it; weaker operators get parentheses.
    """
    kind = tree[0]
    if kind == "input":
        return names[tree[1]]
    if kind == "number":
        written = format_number(tree[1])
        return f"({written})" if written.startswith("-") and parent > 6 else written
    if kind in ("true", "false"):
        return kind
    level = _PRECEDENCE.get(kind)
    if level is None:
        return f"{kind}({', '.join(text(part, names) for part in tree[1:])})"
    if kind == "not" and tree[1][0] == "==":
        level = _PRECEDENCE["=="]
        written = " != ".join(text(part, names, level + 1) for part in tree[1][1:])
    elif kind == "not":
        written = f"not {text(tree[1], names, level + 1)}"
    elif kind in _FLIPPED and tree[1][0] == "number":
        # Pyomo keeps `Ta >= 28` as `28 <= Ta`; put the number back on the right.
        left, right = (text(part, names, level + 1) for part in (tree[2], tree[1]))
        written = f"{left}{_FLIPPED[kind]}{right}"
    elif kind == "product" and tree[1] == ("number", -1.0):
        written = f"-{text(tree[2], names, level + 1)}"
    elif kind == "sum":
        written = text(tree[1], names, level)
        for part in tree[2:]:
            term = text(part, names, level)
            written += f" - {term[1:]}" if term.startswith("-") else f" + {term}"
    elif kind in ("and", "or"):
        # `a or b and c` is clear to a machine only.
        inner = _PRECEDENCE["not"]
        written = _SIGN[kind].join(text(part, names, inner) for part in tree[1:])
    else:
        # a / b / c is (a / b) / c, but a ** b ** c is a ** (b ** c).
        tight = 0 if kind == "power" else 1
        parts = [text(part, names, level + (i == tight)) for i, part in enumerate(tree[1:])]
        written = _SIGN[kind].join(parts)
    return f"({written})" if level < parent else written


def format_number(value: float) -> str:
    """A number as a modeller would write it."""
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return f"{value + 0.0:.6g}"  # + 0.0 turns -0 into 0
