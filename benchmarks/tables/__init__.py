"""What the pages show: by name, functions from stored rows to lines of a table, or to a value.

A module stands beside each benchmark. Units, ratios and rounding are made here, from times that are
stored with all their digits.
"""

from __future__ import annotations

from collections.abc import Callable

from . import (
    bulk,
    constants,
    convex,
    cooling,
    coupled,
    euclidean,
    exact,
    forwards,
    gradients,
    instructions,
    layer,
    native,
    overhead,
    pbmc,
    peers,
    plans,
    prices,
    programs,
    relaxations,
    rules,
    serving,
    tasks,
)
from ._stored import NotMeasuredError, Stored, described, stamps

__all__ = ["TABLES", "VALUES", "NotMeasuredError", "Stored", "described", "stamps"]

_MODULES = (
    bulk, constants, convex, cooling, coupled, euclidean, exact, forwards, gradients, instructions,
    layer, native, overhead, pbmc, peers, plans, prices, programs, relaxations, rules, serving,
    tasks,
)  # fmt: skip
TABLES: dict[str, Callable[[Stored], list[str]]] = {
    name: made for module in _MODULES for name, made in module.TABLES.items()
}
VALUES: dict[str, Callable[[Stored], str]] = {
    name: made for module in _MODULES for name, made in module.VALUES.items()
}
