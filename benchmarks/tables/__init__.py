"""What the pages show: by name, functions from stored rows to lines of a table, or to a value.

A module stands beside each benchmark. Units, ratios and rounding are made here, from times that are
stored with all their digits.
"""

from __future__ import annotations

from collections.abc import Callable

from . import (
    convex,
    coupled,
    euclidean,
    exact,
    gradients,
    instructions,
    layer,
    native,
    overhead,
    peers,
    plans,
    relaxations,
    rules,
)
from ._stored import NotMeasuredError, Stored, described, stamps

__all__ = ["TABLES", "VALUES", "NotMeasuredError", "Stored", "described", "stamps"]

_MODULES = (
    convex, coupled, euclidean, exact, gradients, instructions, layer, native, overhead, peers,
    plans, relaxations, rules,
)  # fmt: skip
TABLES: dict[str, Callable[[Stored], list[str]]] = {
    name: made for module in _MODULES for name, made in module.TABLES.items()
}
VALUES: dict[str, Callable[[Stored], str]] = {
    name: made for module in _MODULES for name, made in module.VALUES.items()
}
