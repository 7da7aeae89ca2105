"""The check of a certificate: what its leaves prove, nothing in it trusted."""

from __future__ import annotations

from typing import Any

from gdpnet.proof._instance import Branch, Number, RationalInstance
from gdpnet.proof._tree import (
    BooleanNode,
    ClauseNode,
    ColumnNode,
    Leaf,
    Node,
    Touch,
    as_fraction,
    is_index,
)

# Deeper trees are refused: no search makes them, and each level costs memory.
_DEPTH = 10_000


class UnprovedError(Exception):
    """A certificate does not prove its claim; the message says where and why."""


def walk(
    instance: RationalInstance, nodes: tuple[Node, ...], tangents: tuple[Touch, ...] = ()
) -> Number:
    """Least bound of all leaves; raises `UnprovedError`."""
    if not (isinstance(nodes, tuple) and isinstance(tangents, tuple)):
        raise UnprovedError("its nodes, or its tangents, are no tuple")
    _touch(instance, tangents)
    least: Number = float("inf")
    seen: set[int] = set()
    stack: list[tuple[Any, Branch, int]] = [(0, instance.root, 0)]
    while stack:
        index, path, depth = stack.pop()
        if not is_index(index, len(nodes)):
            raise UnprovedError(f"there is no node {index!r}")
        if index in seen:
            raise UnprovedError(f"node {index} has two parents")
        if depth > _DEPTH:
            raise UnprovedError(f"the tree is deeper than {_DEPTH}")
        seen.add(index)
        node = nodes[index]
        try:
            if isinstance(node, Leaf):
                least = min(least, _leaf_bound(instance, path, node))
            else:
                stack += [(k, p, depth + 1) for k, p in _paths(instance, path, node)]
        except UnprovedError as error:
            raise UnprovedError(f"at node {index}, {error}") from None
        except (TypeError, ValueError, AttributeError, LookupError) as error:
            raise UnprovedError(f"node {index} is malformed ({error})") from None
    return least


def _touch(instance: RationalInstance, tangents: tuple[Touch, ...]) -> None:
    instance.forget_tangents()
    for k, tangent in enumerate(tangents):
        try:
            if not is_index(tangent.row, len(instance.data.rows)):
                raise ValueError(f"there is no row {tangent.row!r}")
            instance.touch([tangent])
        except (TypeError, ValueError, AttributeError, LookupError) as error:
            raise UnprovedError(f"tangent {k} is none ({error})") from None


def _leaf_bound(instance: RationalInstance, path: Branch, leaf: Leaf) -> Number:
    multipliers = []
    for row, value in leaf.multipliers:
        if not is_index(row, len(instance.rows)):
            raise UnprovedError(f"there is no row {row!r}")
        try:
            multipliers.append((row, as_fraction(value)))
        except ValueError:
            raise UnprovedError(f"{value!r} is no multiplier") from None
    if not instance.enforced(path, multipliers):
        raise UnprovedError("a row has a multiplier and is not enforced, or on its other side only")
    if not leaf.ray:
        return instance.bound(path, multipliers)
    if not instance.contradicts(path, multipliers):
        raise UnprovedError("the rows of the leaf do not contradict each other")
    return float("inf")


def _paths(instance: RationalInstance, path: Branch, node: Any) -> list[tuple[Any, Branch]]:
    """Children of an inner node, and what they may assume."""
    if isinstance(node, ClauseNode):
        return _clause_paths(instance, path, node)
    if isinstance(node, BooleanNode):
        k = node.boolean
        if not (is_index(k, len(instance.data.booleans)) and k in instance.named):
            raise UnprovedError(f"boolean {k!r} does not stand in a clause that applies")
        if not instance.data.booleans[k].tied:
            raise UnprovedError(f"boolean {k} is a disjunct: that it is false means nothing")
        yes, no = node.children
        return [
            (yes, path.with_literal(instance, k + 1)),
            (no, path.with_literal(instance, -k - 1)),
        ]
    if not isinstance(node, ColumnNode):
        raise UnprovedError(f"{type(node).__name__} is no node")
    columns = instance.data.columns
    if not (is_index(node.column, len(columns)) and columns[node.column].integer):
        raise UnprovedError(f"column {node.column!r} is no whole number")
    if type(node.value) is not int:
        raise UnprovedError(f"a whole number is split at {node.value!r}")
    below, above = path.split(instance, node.column, node.value)
    return [(node.children[0], below), (node.children[1], above)]


def _clause_paths(
    instance: RationalInstance, path: Branch, node: ClauseNode
) -> list[tuple[Any, Branch]]:
    if not is_index(node.clause, len(instance.data.clauses)):
        raise UnprovedError(f"there is no clause {node.clause!r}")
    clause = instance.data.clauses[node.clause]
    name = f"clause {node.clause} ('{clause.name}')"
    if not instance.active[node.clause]:
        raise UnprovedError(f"{name} does not apply")
    if not path.requires(clause):
        raise UnprovedError(f"{name} is nested in what is not chosen")
    literals = [literal for literal, _ in node.children]
    if not all(type(k) is int and k in clause.literals for k in literals):
        raise UnprovedError(f"{name} has no such literals: {literals}")
    missing = set(path.open_literals(clause)) - set(literals)
    if missing or len(set(literals)) < len(literals):
        raise UnprovedError(
            f"{name} has {len(clause.literals)} literals and the "
            f"children deal with {len(set(literals))}, {len(missing)} too few"
        )
    children = [child for _, child in node.children]
    return list(zip(children, path.children(instance, literals), strict=True))
