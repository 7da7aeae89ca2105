"""The tree of a certificate, and its text."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from gdpnet.errors import InputError

# Longer numbers are refused: they take longer to read than the rest of the check.
_DIGITS = 4_000

# Formats of the text, without tangents and with them.
_LINEAR, _CONVEX = "gdpnet certificate 1", "gdpnet certificate 2"


@dataclass(frozen=True)
class ClauseNode:
    """One of the literals of a clause is true.

    Attributes:
        clause: index into `rules.data.clauses`.
        children: literal and node, in the order in which they were dealt with. A child may assume
            that the literals before its own do not hold.
    """

    clause: int
    children: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class BooleanNode:
    """An indicator that stands in logic is true or false.

    Attributes:
        boolean: index into `rules.data.booleans`.
        children: node where it is true, node where it is false.
    """

    boolean: int
    children: tuple[int, int]


@dataclass(frozen=True)
class ColumnNode:
    """A whole number is at most `value` or at least `value + 1`.

    Attributes:
        column: index into `rules.data.columns`.
        value: where it is split.
        children: node below, node above.
    """

    column: int
    value: int
    children: tuple[int, int]


@dataclass(frozen=True)
class Leaf:
    """A bound on the distance, or a proof that nothing satisfies the rows.

    Attributes:
        multipliers: row and multiplier, negative for the side `a z >= b` of an equality or of a
            disjunct that was dealt with before. A Fraction where the sum over a column without
            bounds has to vanish exactly. Tangents are numbered on from the last row.
        ray: whether it proves that there is no point at all.
    """

    multipliers: tuple[tuple[int, float | Fraction], ...] = ()
    ray: bool = False


Node = ClauseNode | BooleanNode | ColumnNode | Leaf


@dataclass(frozen=True)
class Touch:
    """Where a convex row was touched. It holds wherever the row does.

    Attributes:
        row: index into `rules.data.rows`.
        points: for each of the row's curves, one number an argument: of a sum of squares the
            arguments where it was touched, of a norm a direction that is at most 1 long, of an
            exponential, a logarithm or a power its slope there.
    """

    row: int
    points: tuple[tuple[float | Fraction, ...], ...]


@dataclass(frozen=True, repr=False)
class Certificate:
    """A proof that no output that satisfies the rules is nearer than a bound.

    Made by `certify`, checked by `verify`.

    Attributes:
        nodes: the tree; the first one is its root, children are places in this tuple.
        bound: what it is said to prove, inf: that no output satisfies the rules. `verify` computes
            it anew.
        tangents: of convex rows; leaves may use them like rows.
    """

    nodes: tuple[Node, ...]
    bound: float
    tangents: tuple[Touch, ...] = ()

    @property
    def leaves(self) -> int:
        """How many leaves it has."""
        return sum(isinstance(node, Leaf) for node in self.nodes)

    @cached_property
    def depth(self) -> int:
        """Assumptions on the longest way down."""
        deepest, stack = 0, [(0, 0)]
        seen: set[int] = set()
        while stack:
            index, depth = stack.pop()
            if not is_index(index, len(self.nodes)) or index in seen:
                continue
            seen.add(index)
            deepest = max(deepest, depth)
            stack += [(child, depth + 1) for child in _children(self.nodes[index])]
        return deepest

    def to_json(self) -> str:
        """As text; numbers are written exactly."""
        bound = self.bound if math.isfinite(self.bound) else str(self.bound)
        nodes = [_node_to_dict(node) for node in self.nodes]
        text: dict[str, Any] = {"format": _LINEAR, "bound": bound, "nodes": nodes}
        if self.tangents:
            points = [[[_number(v) for v in each] for each in t.points] for t in self.tangents]
            rows = [t.row for t in self.tangents]
            text |= {"format": _CONVEX, "tangents": list(zip(rows, points, strict=True))}
        return json.dumps(text)

    @staticmethod
    def from_json(text: str) -> Certificate:
        """A certificate that `to_json` wrote."""
        try:
            given = json.loads(text)
            if given["format"] not in (_LINEAR, _CONVEX):
                raise InputError(f"certificate: unknown format {given['format']!r}.")
            nodes = tuple(_node_from_dict(node) for node in given["nodes"])
            tangents = tuple(
                Touch(row, tuple(tuple(_read_number(v) for v in each) for each in points))
                for row, points in (given["tangents"] if given["format"] == _CONVEX else ())
            )
            return Certificate(nodes, float(given["bound"]), tangents)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"certificate: this is no text that Certificate.to_json wrote ({error!r})."
            ) from None

    def __repr__(self) -> str:
        return f"Certificate({self.leaves} leaves, depth {self.depth}, bound {self.bound:.9g})"


def is_index(value: Any, count: int) -> bool:
    """Whether a value that is not to be trusted is a place in a list."""
    return type(value) is int and 0 <= value < count


def _children(node: Node) -> list[Any]:
    if isinstance(node, ClauseNode):
        return [child for _, child in node.children]
    return list(node.children) if isinstance(node, BooleanNode | ColumnNode) else []


def _node_to_dict(node: Node) -> dict[str, Any]:
    if isinstance(node, ClauseNode):
        return {"clause": node.clause, "children": node.children}
    if isinstance(node, BooleanNode):
        return {"boolean": node.boolean, "children": node.children}
    if isinstance(node, ColumnNode):
        return {"column": node.column, "value": node.value, "children": node.children}
    rows = [(row, _number(v)) for row, v in node.multipliers]
    return {"ray": rows} if node.ray else {"rows": rows}


def _node_from_dict(given: dict[str, Any]) -> Node:
    if "clause" in given:
        return ClauseNode(given["clause"], tuple((k, child) for k, child in given["children"]))
    if "boolean" in given:
        yes, no = given["children"]
        return BooleanNode(given["boolean"], (yes, no))
    if "column" in given:
        below, above = given["children"]
        return ColumnNode(given["column"], given["value"], (below, above))
    rows = given["ray"] if "ray" in given else given["rows"]
    return Leaf(tuple((row, _read_number(v)) for row, v in rows), ray="ray" in given)


def as_fraction(value: Any) -> Fraction:
    """A number that is not to be trusted; raises `ValueError` where it is none."""
    if type(value) is float and math.isfinite(value):
        return Fraction(value)
    if type(value) is int or type(value) is Fraction:
        return Fraction(value)
    raise ValueError(f"{value!r} is no number")


def _number(value: float | Fraction) -> float | str:
    """As it is written; `_read_number` reads it."""
    return f"{value.numerator}/{value.denominator}" if isinstance(value, Fraction) else value


def _read_number(value: Any) -> Any:
    if not isinstance(value, str):
        return value  # whether it is a number is checked where it is used
    if len(value) > _DIGITS or not re.fullmatch(r"-?[0-9]+/[1-9][0-9]*", value):
        raise ValueError(f"{value[:40]!r} is no fraction")
    numerator, denominator = value.split("/")
    return Fraction(int(numerator), int(denominator))
